//! How much memory this process takes while one chain lands very many transactions. The validator, which keeps them all, is
//! another process.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use committor_client::{
    chain::{Chain, ChainError, RpcChain, RpcSettings},
    config::KeypairSource,
};
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use solana_keypair::Keypair;
use solana_signer::Signer;

use super::{
    Confirm,
    transfers::{cluster, signed},
};
use crate::exit::{CommandError, Kind};

/// Transactions on their way at a time.
const IN_FLIGHT: usize = 256;
/// Bytes of a page on the systems where the kernel tells.
const PAGE_LEN: u64 = 4_096;

#[derive(Serialize)]
pub struct Figures {
    /// Before the first transaction, after a tenth of them, and after all.
    pub samples: Vec<Sample>,
    pub per_second: f64,
    /// Those that expired, and were signed anew.
    pub expired: u64,
}

#[derive(Clone, Copy, Serialize)]
pub struct Sample {
    pub transactions: u64,
    /// `None` where the system does not tell.
    pub resident_bytes: Option<u64>,
}

impl Sample {
    fn take(transactions: u64) -> Self {
        Self { transactions, resident_bytes: resident_bytes() }
    }
}

/// What a localnet says about itself.
#[derive(Deserialize)]
struct Running {
    rpc_url: String,
    websocket_url: String,
}

/// A validator in another process, which ends with this value.
struct Validator(Child);

impl Drop for Validator {
    fn drop(&mut self) {
        // It may have ended of itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub async fn measure(options: &Confirm) -> Result<Figures, CommandError> {
    let folder = tempfile::tempdir().map_err(other)?;
    let keypair = folder.path().join("id.json");
    let (_validator, running) = start(&keypair)?;
    let payer = KeypairSource::File(keypair).read()?;
    let websocket_url = Some(running.websocket_url);
    let chain = RpcChain::new(RpcSettings { websocket_url, ..RpcSettings::new(running.rpc_url) });
    let receiver = Keypair::new().pubkey();
    let (chain, payer, receiver) = (&chain, &payer, &receiver);
    let expired = AtomicU64::new(0);
    let land = |number: u64| {
        let expired = &expired;
        async move {
            loop {
                let recent = chain.recent_blockhash().await.map_err(cluster)?;
                match chain.land(signed(payer, receiver, number, recent)?).await {
                    Ok(_) => return Ok::<(), CommandError>(()),
                    // It will not land any more, so that another one may.
                    Err(ChainError::Expired { .. }) => expired.fetch_add(1, Ordering::Relaxed),
                    Err(error) => return Err(cluster(error)),
                };
            }
        }
    };
    // One that is not counted: the connections are made, and the account is there.
    land(0).await?;
    let started = Instant::now();
    let mut samples = vec![Sample::take(0)];
    let mut landed = stream::iter(1..=options.transactions).map(land).buffer_unordered(IN_FLIGHT);
    let mut count = 0;
    while let Some(end) = landed.next().await {
        end?;
        count += 1;
        if count == options.transactions / 10 || count == options.transactions {
            samples.push(Sample::take(count));
        }
    }
    drop(landed);
    let per_second = options.transactions as f64 / started.elapsed().as_secs_f64();
    chain.shutdown().await;
    Ok(Figures { samples, per_second, expired: expired.into_inner() })
}

/// Starts this program's own localnet, with a new keypair.
fn start(keypair: &Path) -> Result<(Validator, Running), CommandError> {
    let mut command = Command::new(std::env::current_exe().map_err(other)?);
    command.args(["localnet", "--rpc-port", "0", "--ws-port", "0", "--output", "json-compact", "--keypair"]);
    let child =
        command.arg(keypair).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut validator = Validator(child.map_err(other)?);
    let mut line = String::new();
    if let Some(stdout) = validator.0.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(other)?;
    }
    let running = serde_json::from_str(&line);
    Ok((
        validator,
        running.map_err(|error| CommandError::new(Kind::Other, error).about("the local validator"))?,
    ))
}

/// What this process keeps in memory, as Linux tells.
fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split_whitespace().nth(1)?.parse::<u64>().ok()? * PAGE_LEN)
}

fn other(error: std::io::Error) -> CommandError {
    CommandError::new(Kind::Other, error)
}
