use std::path::PathBuf;

use committor_client::deploy::ContentKind;
use solana_address::Address;

use crate::{
    args::Global,
    deployer,
    exit::{CommandError, Kind},
    files,
};

/// Write what is in a buffer or a program to a file
#[derive(Debug, clap::Args)]
pub struct Download {
    /// The buffer, or the program
    #[arg(value_name = "ADDRESS")]
    buffer: Address,
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Take a buffer that is not sealed: parts may be missing, and the rest may change
    #[arg(long)]
    unsealed: bool,
}

pub async fn run(global: &Global, command: &Download) -> Result<Kind, CommandError> {
    let (buffers, chain) = deployer::buffers(global).await?;
    let found = buffers.download(command.buffer).await;
    chain.shutdown().await;
    let found = found?;
    if found.kind == (ContentKind::File { sealed: false }) && !command.unsealed {
        let message = format!("buffer {} is not sealed: parts may be missing", command.buffer);
        return Err(CommandError::new(Kind::Usage, message).hint("`--unsealed` takes it as it is"));
    }
    files::write(&command.file, &found.payload, command.force)?;
    eprintln!("{} bytes written to {}", found.payload.len(), command.file.display());
    Ok(Kind::Success)
}
