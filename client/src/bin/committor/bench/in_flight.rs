//! How many bundles to work on at a time: what a local validator lands per second, by that number.
//!
//! Each bundle commits one account of its own and shares its transaction with none, so that the number is what decides.

use std::{sync::Arc, time::Instant};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Committor, EngineSettings, chain::RpcSettings,
    types::BundleStatus,
};
use committor_localnet::Localnet;
use serde::Serialize;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::{
    args::{BenchInFlight, Global, Output},
    exit::{CommandError, Kind},
    output,
};

/// Length of each state, in bytes.
const STATE_LEN: usize = 512;

/// What one number of bundles at a time came to.
#[derive(Serialize)]
struct Row {
    /// Bundles at a time.
    in_flight: usize,
    /// Median of the repeats: bundles that landed per second.
    median_per_second: u64,
    min_per_second: u64,
    max_per_second: u64,
    /// The median over that of the first row.
    ratio: f64,
}

pub async fn run(global: &Global, options: &BenchInFlight) -> Result<Kind, CommandError> {
    let authority = Arc::new(Keypair::new());
    let accounts: Vec<Address> = (0..options.bundles).map(|_| Keypair::new().pubkey()).collect();
    let mut builder = Localnet::builder().airdrop(authority.pubkey(), 1_000_000_000_000);
    for account in &accounts {
        builder = builder.delegated(*account, authority.pubkey(), vec![0; STATE_LEN]);
    }
    let localnet = super::super::localnet::start(builder).await?;
    let rpc = RpcSettings {
        websocket_url: Some(localnet.ws_url().to_owned()),
        ..RpcSettings::new(localnet.rpc_url())
    };
    let mut rates: Vec<(usize, Vec<u64>)> =
        options.in_flight.iter().map(|in_flight| (*in_flight, Vec::new())).collect();
    for repeat in 0..options.repeats {
        // One number after the other in each repeat: what else the machine does meets all of them alike.
        for (in_flight, rates) in &mut rates {
            rates.push(measure(&rpc, &authority, &accounts, *in_flight, repeat as u8).await?);
        }
    }
    let first = rates.first().map_or(1, |(_, rates)| median(rates).max(1));
    let rows: Vec<Row> = rates
        .iter()
        .map(|(in_flight, rates)| Row {
            in_flight: *in_flight,
            median_per_second: median(rates),
            min_per_second: rates.iter().copied().min().unwrap_or_default(),
            max_per_second: rates.iter().copied().max().unwrap_or_default(),
            ratio: (median(rates) as f64 / first as f64 * 100.0).round() / 100.0,
        })
        .collect();
    match global.output {
        Output::Display => output::print(&display(&rows, options))?,
        form => output::json(&serde_json::json!({ "rows": rows }), form)?,
    }
    Ok(Kind::Success)
}

/// Bundles per second, from the submission of all of them to the end of the last.
async fn measure(
    rpc: &RpcSettings,
    authority: &Arc<Keypair>,
    accounts: &[Address],
    in_flight: usize,
    content: u8,
) -> Result<u64, CommandError> {
    let folder = tempfile::tempdir().map_err(|error| CommandError::new(Kind::Other, error))?;
    let settings = EngineSettings {
        bundles_in_flight: in_flight,
        share_transactions: false,
        record_costs: false,
        ..EngineSettings::default()
    };
    let committor = Committor::builder()
        .rpc(rpc.clone())
        .authority(authority.clone())
        .store(folder.path().join("bench.db"))
        .settings(settings)
        .start()
        .await?;
    let bundle = |(account, id): (&Address, u64)| {
        let state = vec![content.wrapping_add(in_flight as u8).wrapping_add(1); STATE_LEN].into();
        CommitBundle::new(BundleId(id), vec![AccountCommit { account: *account, state }])
    };
    let changeset = Changeset { bundles: accounts.iter().zip(1..).map(bundle).collect() };
    let started = Instant::now();
    let report = committor.commit(changeset).await?.finished().await?;
    let seconds = started.elapsed().as_secs_f64();
    committor.shutdown(std::time::Duration::ZERO).await?;
    let failed = report.bundles.iter().find(|bundle| bundle.status != BundleStatus::Landed);
    if let Some(failed) = failed {
        let error = failed.error.clone().unwrap_or_default();
        return Err(CommandError::new(
            Kind::Failed,
            format!("bundle {} did not land: {error}", failed.bundle),
        ));
    }
    Ok((accounts.len() as f64 / seconds) as u64)
}

fn median(rates: &[u64]) -> u64 {
    let mut rates = rates.to_vec();
    rates.sort_unstable();
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

fn display(rows: &[Row], options: &BenchInFlight) -> String {
    let mut table = output::table(["in flight", "bundles per second", "min", "max", "ratio"]);
    for row in rows {
        table.add_row([
            row.in_flight.to_string(),
            row.median_per_second.to_string(),
            row.min_per_second.to_string(),
            row.max_per_second.to_string(),
            format!("{:.2}", row.ratio),
        ]);
    }
    output::align_right(&mut table, 0..5);
    format!(
        "{table}\n{} bundles of one account of {STATE_LEN} bytes each, median of {} repeats, ratio to the first row.\n",
        options.bundles, options.repeats
    )
}
