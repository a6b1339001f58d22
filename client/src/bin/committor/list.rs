use committor_client::{Lamports, deploy::BufferReport};
use serde_json::json;
use solana_address::Address;
use solana_signer::Signer;

use crate::{
    args::{Global, Output},
    deployer,
    exit::{CommandError, Kind},
    output,
};

/// List buffers, those of programs on their way too
#[derive(Debug, clap::Args)]
pub struct List {
    /// Whose [default: the authority's]
    #[arg(long, value_name = "PUBKEY")]
    authority: Option<Address>,
    /// Only those that are not sealed
    #[arg(long)]
    unsealed: bool,
}

pub async fn run(global: &Global, command: &List) -> Result<Kind, CommandError> {
    let authority = match command.authority {
        Some(authority) => authority,
        None => global.authority()?.pubkey(),
    };
    let (buffers, chain) = deployer::buffers(global).await?;
    let found = tokio::try_join!(buffers.of(authority), buffers.of_loader(authority));
    chain.shutdown().await;
    let (mut found, programs) = found?;
    found.retain(|buffer| !command.unsealed || !buffer.sealed);
    if global.output != Output::Display {
        output::json(&json!({ "buffers": found, "program_buffers": programs }), global.output)?;
        return Ok(Kind::Success);
    }
    let mut table = output::table(["buffer", "kind", "bytes", "chunks written", "state", "lamports"]);
    for buffer in &found {
        table.add_row([
            buffer.pubkey.to_string(),
            "file".to_owned(),
            buffer.payload_len.to_string(),
            format!("{} of {}", buffer.written_chunks, buffer.chunks),
            state(buffer).to_owned(),
            buffer.lamports.to_string(),
        ]);
    }
    for buffer in &programs {
        table.add_row([
            buffer.pubkey.to_string(),
            "program".to_owned(),
            buffer.payload_len.to_string(),
            "-".to_owned(),
            "open".to_owned(),
            buffer.lamports.to_string(),
        ]);
    }
    output::align_right(&mut table, [2, 3, 5]);
    let lamports = found.iter().map(|buffer| buffer.lamports);
    let locked: Lamports = lamports.chain(programs.iter().map(|buffer| buffer.lamports)).sum();
    let count = found.len() + programs.len();
    let plural = if count == 1 { "" } else { "s" };
    output::print(&format!("{table}\n{count} buffer{plural} of {authority}, {locked} lamports locked.\n"))?;
    Ok(Kind::Success)
}

/// A buffer's state, for people.
pub fn state(buffer: &BufferReport) -> &'static str {
    if buffer.sealed { "sealed" } else { "open" }
}
