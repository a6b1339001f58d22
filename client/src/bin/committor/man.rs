use std::path::PathBuf;

use clap::CommandFactory;

use crate::{
    args::Args,
    exit::{CommandError, Kind},
    files,
};

/// Write the manual pages of all commands to a folder
#[derive(Debug, clap::Args)]
pub struct Man {
    /// The folder; `man -l FOLDER/committor.1` shows a page
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub fn run(command: &Man) -> Result<Kind, CommandError> {
    let fail = |error: std::io::Error| CommandError::new(Kind::Usage, error);
    std::fs::create_dir_all(&command.folder)
        .map_err(|error| fail(error).about(format!("could not make folder {}", command.folder.display())))?;
    let mut args = Args::command();
    args.build();
    page(&args, &command.folder)
}

/// Writes the page of a command and those of its subcommands.
fn page(command: &clap::Command, folder: &std::path::Path) -> Result<Kind, CommandError> {
    let man = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text).map_err(|error| CommandError::new(Kind::Other, error))?;
    files::write(&folder.join(man.get_filename()), &text, true)?;
    let named = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help");
    named.into_iter().try_for_each(|subcommand| page(subcommand, folder).map(drop))?;
    Ok(Kind::Success)
}
