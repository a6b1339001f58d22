use committor_client::{ChangesetId, Store};

use crate::{
    args::{Global, Status},
    exit::{CommandError, Kind},
    output,
};

/// Changesets that `--all` lists at most.
const MAX_LISTED: u32 = 1_000;

pub async fn run(global: &Global, command: &Status) -> Result<Kind, CommandError> {
    require_store(global)?;
    let store = Store::open(&global.store)?;
    if command.all {
        output::summaries(&store.changesets(MAX_LISTED).await?, global.output)?;
    } else {
        output::report(&store.report(command.changeset.map(ChangesetId)).await?, global.output)?;
    }
    Ok(Kind::Success)
}

/// Refuses to make a store where one is only read.
pub fn require_store(global: &Global) -> Result<(), CommandError> {
    if global.store.exists() {
        return Ok(());
    }
    let missing = format!("there is no store at {}", global.store.display());
    Err(CommandError::new(Kind::Store, missing)
        .hint("`--store FILE` names another one; `committor commit` and `committor demo` make it"))
}
