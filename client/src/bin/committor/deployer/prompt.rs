//! Asking before something is spent.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};

use crate::exit::{CommandError, Kind};

/// Asks, unless the answer was given with `--yes`. Whoever can't be asked has to say it.
pub fn confirm(question: &str, yes: bool) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    if !stdin().is_terminal() || !stderr().is_terminal() {
        let hint = "`--yes` goes on without asking; nothing was done";
        return Err(CommandError::new(Kind::Usage, "there is no terminal to ask on").hint(hint));
    }
    let other = |error| CommandError::new(Kind::Other, error);
    let mut stderr = stderr().lock();
    write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()).map_err(other)?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer).map_err(other)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(CommandError::new(Kind::Usage, "not agreed to").hint("nothing was done"))
}
