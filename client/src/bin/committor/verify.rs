use std::path::PathBuf;

use committor_client::deploy::first_difference;
use serde_json::json;
use solana_address::Address;

use crate::{
    args::{Global, Output},
    deployer,
    exit::{CommandError, Kind},
    files, output,
};

/// Compare a file with a buffer's payload, byte by byte
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The buffer
    #[arg(value_name = "ADDRESS")]
    address: Address,
}

pub async fn run(global: &Global, command: &Verify) -> Result<Kind, CommandError> {
    let file = files::read(&command.file)?;
    let (buffers, chain) = deployer::buffers(global).await?;
    let found = buffers.download(command.address).await;
    chain.shutdown().await;
    let found = found?;
    let difference = first_difference(&file, &found.payload);
    let (file_len, len) = (file.len(), found.payload.len());
    match global.output {
        Output::Display => {
            let (name, address) = (command.file.display(), command.address);
            let state = if found.sealed { "sealed" } else { "not sealed: it may change" };
            let text = match difference {
                None => format!("{name} and {address} are equal: {len} bytes, {state}\n"),
                Some(at) => format!(
                    "{name} ({file_len} bytes) and {address} ({len} bytes, {state}) differ from byte {at} on\n"
                ),
            };
            output::print(&text)?;
        }
        form => {
            let document = json!({
                "equal": difference.is_none(),
                "sealed": found.sealed,
                "first_difference": difference,
                "file_bytes": file_len,
                "payload_bytes": len,
            });
            output::json(&document, form)?;
        }
    }
    Ok(if difference.is_none() && found.sealed { Kind::Success } else { Kind::NotVerified })
}
