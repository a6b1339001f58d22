use std::path::PathBuf;

use committor_client::deploy::ContentKind;
use serde_json::json;
use solana_address::Address;

use crate::{
    args::{Global, Output},
    deployer,
    exit::{CommandError, Kind},
    files, output,
};

/// Compare a file with what is in a buffer or a program, byte by byte
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The buffer, or the program
    #[arg(value_name = "ADDRESS")]
    address: Address,
}

pub async fn run(global: &Global, command: &Verify) -> Result<Kind, CommandError> {
    let file = files::read(&command.file)?;
    let (buffers, chain) = deployer::buffers(global).await?;
    let found = buffers.download(command.address).await;
    chain.shutdown().await;
    let found = found?;
    let difference = found.first_difference(&file);
    let (kind, state, is_final) = match found.kind {
        ContentKind::File { sealed: true } => ("buffer", "sealed", true),
        ContentKind::File { sealed: false } => ("buffer", "not sealed: it may change", false),
        ContentKind::LoaderBuffer => {
            ("program_buffer", "a program's buffer, which its authority can change", true)
        }
        ContentKind::Program => ("program", "a program", true),
    };
    let (file_len, len) = (file.len(), found.payload.len());
    match global.output {
        Output::Display => {
            let (name, address) = (command.file.display(), command.address);
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
                "kind": kind,
                "sealed": found.kind == ContentKind::File { sealed: true },
                "first_difference": difference,
                "file_bytes": file_len,
                "payload_bytes": len,
            });
            output::json(&document, form)?;
        }
    }
    Ok(if difference.is_none() && is_final { Kind::Success } else { Kind::NotVerified })
}
