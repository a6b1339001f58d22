use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use solana_address::Address;

use crate::{
    args::{Global, Output},
    deployer,
    exit::{CommandError, Kind},
    list::state,
    output,
};

/// Show one buffer
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The buffer
    #[arg(value_name = "ADDRESS")]
    buffer: Address,
}

fn time(seconds_since_1970: i64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds_since_1970).ok()?))
}

pub async fn run(global: &Global, command: &Show) -> Result<Kind, CommandError> {
    let (buffers, chain) = deployer::buffers(global).await?;
    let (found, last_used) = tokio::join!(buffers.get(command.buffer), buffers.last_used(command.buffer));
    chain.shutdown().await;
    // Not every node keeps what it takes to tell.
    let (buffer, last_used) = (found?, last_used.ok().flatten());
    if global.output != Output::Display {
        output::json(&json!({ "buffer": buffer, "last_used": last_used }), global.output)?;
        return Ok(Kind::Success);
    }
    let digest = buffer.digest.as_deref().unwrap_or("-");
    let last_used = last_used.and_then(time).map_or_else(|| "unknown".to_owned(), httpdate::fmt_http_date);
    let state = state(&buffer);
    let committor_client::deploy::BufferReport {
        pubkey,
        authority,
        payload_len,
        chunk_size,
        chunks,
        written_chunks,
        lamports,
        ..
    } = &buffer;
    output::print(&format!(
        "buffer      {pubkey}
authority   {authority}
bytes       {payload_len}
chunks      {chunks} of {chunk_size} bytes, {written_chunks} written
state       {state}
SHA-256     {digest}
lamports    {lamports}
last used   {last_used}\n"
    ))?;
    Ok(Kind::Success)
}
