use clap::CommandFactory;
use clap_complete::Shell;

use crate::{
    args::Args,
    exit::{CommandError, Kind},
    output,
};

/// Print what a shell completes this command with
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For bash: committor completions bash > ~/.local/share/bash-completion/completions/committor
For zsh:  committor completions zsh > a folder of $fpath/_committor
For fish: committor completions fish > ~/.config/fish/completions/committor.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn run(command: &Completions) -> Result<Kind, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Args::command(), "committor", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Kind::Success)
}
