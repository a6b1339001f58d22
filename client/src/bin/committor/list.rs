use committor_client::deploy::BufferReport;
use serde_json::json;
use solana_address::Address;
use solana_signer::Signer;

use crate::{
    args::{Global, Output},
    deployer,
    exit::{CommandError, Kind},
    output,
};

/// List buffers
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
    let found = buffers.of(authority).await;
    chain.shutdown().await;
    let mut found = found?;
    found.retain(|buffer| !command.unsealed || !buffer.sealed);
    if global.output != Output::Display {
        output::json(&json!({ "buffers": found }), global.output)?;
        return Ok(Kind::Success);
    }
    let mut table = output::table(["buffer", "bytes", "chunks written", "state", "lamports"]);
    for buffer in &found {
        table.add_row([
            buffer.pubkey.to_string(),
            buffer.payload_len.to_string(),
            format!("{} of {}", buffer.written_chunks, buffer.chunks),
            state(buffer).to_owned(),
            buffer.lamports.to_string(),
        ]);
    }
    output::align_right(&mut table, [1, 2, 4]);
    let locked: u64 = found.iter().map(|buffer| buffer.lamports.0).sum();
    let plural = if found.len() == 1 { "" } else { "s" };
    let count = found.len();
    output::print(&format!("{table}\n{count} buffer{plural} of {authority}, {locked} lamports locked.\n"))?;
    Ok(Kind::Success)
}

/// A buffer's state, for people.
pub fn state(buffer: &BufferReport) -> &'static str {
    if buffer.sealed { "sealed" } else { "open" }
}
