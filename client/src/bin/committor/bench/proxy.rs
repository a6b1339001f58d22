//! Simulating here against having the node simulate: calls, bytes and time, by how many transactions share a view and how far
//! away the node is.
//!
//! The arms are interleaved, and the first of them runs twice: how far the two are apart is the noise.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use committor_client::{
    chain::{AnsweredBy, Chain, RpcChain, RpcSettings},
    proxy::ProxySettings,
};
use committor_faults::{Counts, Fault, FaultProxy, Rule};
use committor_sdk::{address, delegation};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use solana_address::Address;
use solana_hash::Hash;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v1};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use super::statistics::Ratios;
use crate::{
    args::{BenchProxy, Global, Output},
    exit::{CommandError, Kind},
    output,
};

const ARMS: [&str; 4] = ["node", "node again", "proxy", "proxy, at its start"];
/// Length of each state, in bytes.
const STATE_LEN: usize = 512;
/// Simulations that the node is asked for at a time, as the engine does.
const SIMULATIONS_IN_FLIGHT: usize = 16;

#[derive(Serialize)]
struct Row {
    latency_ms: u64,
    /// Transactions that are simulated on one view.
    size: usize,
    arm: &'static str,
    /// Time over that of the first arm in the same repeat.
    #[serde(flatten)]
    ratios: Ratios,
    /// Median time, in milliseconds.
    total_ms: f64,
    /// Calls of one repeat, the last one.
    calls: u64,
    /// Bytes of its questions and answers.
    bytes: u64,
}

/// What one arm took in one repeat.
#[derive(Clone, Copy)]
struct Taken {
    time: Duration,
    calls: u64,
    bytes: u64,
}

struct World {
    proxy: FaultProxy,
    rpc: RpcSettings,
    node: RpcChain,
    /// Has simulated before, and begins a new view each time.
    here: RpcChain,
    transactions: Vec<VersionedTransaction>,
}

pub async fn run(global: &Global, options: &BenchProxy) -> Result<Kind, CommandError> {
    let authority = Arc::new(Keypair::new());
    let largest = options.simulations.iter().copied().max().unwrap_or(1);
    let accounts: Vec<Address> = (0..largest).map(|_| Keypair::new().pubkey()).collect();
    let mut builder = committor_localnet::Localnet::builder().airdrop(authority.pubkey(), 1_000_000_000_000);
    for account in &accounts {
        builder = builder.delegated(*account, authority.pubkey(), vec![0; STATE_LEN]);
    }
    let localnet = super::super::localnet::start(builder).await?;
    let proxy = FaultProxy::start(localnet.rpc_url(), localnet.ws_url(), 1)
        .await
        .map_err(|error| CommandError::new(Kind::Other, error))?;
    let rpc = RpcSettings { websocket_url: None, ..RpcSettings::new(proxy.rpc_url()) };
    let node = RpcChain::new(rpc.clone());
    let here = RpcChain::new(with_proxy(&rpc));
    let transactions = transactions(&node, &authority, &accounts).await?;
    let world = World { proxy, rpc, node, here, transactions };
    let mut rows = Vec::new();
    for latency_ms in &options.latency {
        world.proxy.clear();
        if *latency_ms > 0 {
            world.proxy.add(Rule::new(Fault::Delay(Duration::from_millis(*latency_ms))));
        }
        for size in &options.simulations {
            rows.extend(world.measure(*latency_ms, *size, options.repeats).await?);
        }
    }
    match global.output {
        Output::Display => output::print(&display(&rows, options))?,
        form => output::json(&serde_json::json!({ "rows": rows }), form)?,
    }
    Ok(Kind::Success)
}

/// Every view is new: none is old enough.
fn with_proxy(rpc: &RpcSettings) -> RpcSettings {
    let settings = ProxySettings { max_age: Duration::ZERO, ..ProxySettings::default() };
    RpcSettings { proxy: Some(settings), ..rpc.clone() }
}

impl World {
    /// Measures every arm in each repeat, beginning with another one each time.
    async fn measure(&self, latency_ms: u64, size: usize, repeats: u32) -> Result<Vec<Row>, CommandError> {
        let mut taken = vec![Vec::new(); ARMS.len()];
        for repeat in 0..repeats as usize {
            for turn in 0..ARMS.len() {
                let arm = (repeat + turn) % ARMS.len();
                taken[arm].push(self.taken(arm, &self.transactions[..size]).await?);
            }
        }
        let first: Vec<Duration> = taken[0].iter().map(|taken: &Taken| taken.time).collect();
        let row = |(arm, taken): (&'static str, Vec<Taken>)| {
            let mut times: Vec<Duration> = taken.iter().map(|taken| taken.time).collect();
            let ratios = Ratios::of(times.iter().copied().zip(first.iter().copied()));
            times.sort_unstable();
            let total_ms = times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3);
            let (calls, bytes) = taken.last().map_or((0, 0), |taken| (taken.calls, taken.bytes));
            Row { latency_ms, size, arm, ratios, total_ms, calls, bytes }
        };
        Ok(ARMS.into_iter().zip(taken).map(row).collect())
    }

    async fn taken(&self, arm: usize, transactions: &[VersionedTransaction]) -> Result<Taken, CommandError> {
        let totals = |counts: &Counts| (counts.calls.values().sum::<u64>(), counts.bytes);
        let (calls, bytes) = totals(&self.proxy.counts());
        let started = Instant::now();
        match arm {
            0 | 1 => by_node(&self.node, transactions).await?,
            2 => by_proxy(&self.here, transactions).await?,
            _ => by_proxy(&RpcChain::new(with_proxy(&self.rpc)), transactions).await?,
        }
        let time = started.elapsed();
        let (calls_after, bytes_after) = totals(&self.proxy.counts());
        Ok(Taken { time, calls: calls_after - calls, bytes: bytes_after - bytes })
    }
}

async fn by_node(chain: &RpcChain, transactions: &[VersionedTransaction]) -> Result<(), CommandError> {
    let asked: Vec<_> = transactions.iter().map(|transaction| chain.simulate(transaction)).collect();
    let answers = stream::iter(asked).buffer_unordered(SIMULATIONS_IN_FLIGHT);
    let answers: Vec<_> =
        answers.try_collect().await.map_err(|error| CommandError::new(Kind::Cluster, error))?;
    let fits = answers
        .iter()
        .all(|answer| answer.outcome.is_ok() && answer.answered_by == AnsweredBy::Node { because: None });
    if fits { Ok(()) } else { Err(CommandError::new(Kind::Other, "a simulation failed")) }
}

async fn by_proxy(chain: &RpcChain, transactions: &[VersionedTransaction]) -> Result<(), CommandError> {
    let other = |error| CommandError::new(Kind::Other, error);
    let proxy = chain.proxy().ok_or_else(|| CommandError::new(Kind::Other, "there is no proxy"))?;
    let view = proxy.view(transactions).await.map_err(other)?;
    for transaction in transactions {
        if view.simulate(transaction.clone()).await.map_err(other)?.outcome.is_err() {
            return Err(CommandError::new(Kind::Other, "a simulation failed"));
        }
    }
    Ok(())
}

/// A commit to each account.
async fn transactions(
    chain: &RpcChain,
    authority: &Keypair,
    accounts: &[Address],
) -> Result<Vec<VersionedTransaction>, CommandError> {
    let other = |error: &dyn std::fmt::Display| CommandError::new(Kind::Other, error.to_string());
    let records: Vec<Address> = accounts.iter().map(address::record).collect();
    let found = chain.accounts(&records).await.map_err(|error| CommandError::new(Kind::Cluster, error))?;
    let transaction = |(account, found): (&Address, Option<solana_account::Account>)| {
        let found = found.ok_or_else(|| CommandError::new(Kind::Other, "an account is not delegated"))?;
        let record = delegation::Delegation::read(&found.data).map_err(|error| other(&error))?;
        let accounts = delegation::Commit {
            authority: authority.pubkey(),
            account: *account,
            record: address::record(account),
        };
        let data = [7; STATE_LEN];
        let args = delegation::CommitArgs { session: record.session, nonce: 1, commit_id: 1, data: &data };
        let config = v1::TransactionConfig::default()
            .with_compute_unit_limit(50_000)
            .with_loaded_accounts_data_size_limit(1 << 20);
        let instructions = [accounts.instruction(args)];
        let message =
            v1::Message::try_compile_with_config(&authority.pubkey(), &instructions, Hash::default(), config);
        let message = message.map_err(|error| other(&error))?;
        VersionedTransaction::try_new(VersionedMessage::V1(message), &[authority])
            .map_err(|error| other(&error))
    };
    accounts.iter().zip(found).map(transaction).collect()
}

fn display(rows: &[Row], options: &BenchProxy) -> String {
    let mut table =
        output::table(["latency", "simulations", "arm", "ratio", "min", "max", "ms", "calls", "bytes"]);
    for row in rows {
        table.add_row([
            format!("{} ms", row.latency_ms),
            row.size.to_string(),
            row.arm.to_owned(),
            format!("{:.2}", row.ratios.median_ratio),
            format!("{:.2}", row.ratios.min_ratio),
            format!("{:.2}", row.ratios.max_ratio),
            format!("{:.1}", row.total_ms),
            row.calls.to_string(),
            row.bytes.to_string(),
        ]);
    }
    output::align_right(&mut table, [0, 1, 3, 4, 5, 6, 7, 8]);
    format!(
        "{table}\n{} repeats, commits of {STATE_LEN} bytes. Ratios are to the node's time in the same repeat, medians over the repeats.\n",
        options.repeats
    )
}
