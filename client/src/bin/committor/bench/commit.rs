//! Commits at a fixed rate over a pool of accounts: how long it takes until one is accepted, and until it has landed.
//!
//! Bare transfers by another payer go along at a tenth of the rate: what they take is what the chain takes.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Committor, EngineSettings, Event,
    chain::{Chain, RpcChain, RpcSettings, SignedTransaction},
    types::{BundleKey, BundleStatus, Stage},
};
use committor_localnet::Localnet;
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng};
use serde::Serialize;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;
use tokio::{sync::broadcast::error::RecvError, task::JoinSet};

use super::statistics::Statistics;
use crate::{
    args::{BenchCommit, Global, Output},
    exit::{CommandError, Kind},
    output,
};

/// One bare transfer for so many bundles.
const BUNDLES_PER_TRANSFER: usize = 10;
/// What a transfer moves, in lamports: enough to be rent exempt.
const LAMPORTS: u64 = 1_000_000;

/// What one number of accounts per bundle came to. Times are in microseconds.
#[derive(Serialize)]
struct Figures {
    accounts_per_bundle: usize,
    accounts: usize,
    account_bytes: usize,
    /// Commits, one per account and bundle, that were asked for per second.
    rate: u32,
    /// Bundles.
    bundles: usize,
    /// Commits that landed.
    landed: usize,
    failed: usize,
    /// Commits that landed per second, from the first submission to the last landing.
    landed_per_second: f64,
    /// From the call of `commit` until it returned.
    accept: Statistics,
    /// From the call of `commit` until the committing transaction had landed.
    land: Statistics,
    /// The same in slots.
    land_slots: f64,
    /// Bare transfers, from sending to landing.
    transfer: Statistics,
    /// The slowest acceptance over the median one.
    accept_worst_ratio: f64,
    /// The median landing over that of a bare transfer.
    land_ratio: f64,
    /// The median landing of the first bundles of all accounts, over that of all later ones.
    first_ratio: f64,
}

/// When things happened to the bundles, by bundle.
#[derive(Default)]
struct Times {
    submitted: HashMap<BundleKey, (usize, Instant)>,
    landed: HashMap<BundleKey, Instant>,
}

pub async fn run(global: &Global, options: &BenchCommit) -> Result<Kind, CommandError> {
    let mut figures = Vec::new();
    for accounts_per_bundle in &options.accounts_per_bundle {
        if *accounts_per_bundle == 0 || *accounts_per_bundle > options.accounts {
            let message = format!(
                "--accounts-per-bundle is {accounts_per_bundle}, expected 1 to {}, as many as --accounts",
                options.accounts
            );
            return Err(CommandError::new(Kind::Usage, message));
        }
        figures.push(measure(options, *accounts_per_bundle).await?);
    }
    match global.output {
        Output::Display => figures.iter().try_for_each(|figures| output::print(&display(figures)))?,
        form => output::json(&serde_json::json!({ "runs": figures }), form)?,
    }
    Ok(if figures.iter().all(|figures| figures.failed == 0) { Kind::Success } else { Kind::Failed })
}

async fn measure(options: &BenchCommit, accounts_per_bundle: usize) -> Result<Figures, CommandError> {
    let authority = Arc::new(Keypair::new());
    let payer = Arc::new(Keypair::new());
    let accounts: Vec<Address> = (0..options.accounts).map(|_| Keypair::new().pubkey()).collect();
    let mut builder = Localnet::builder()
        .slot_time(Duration::from_millis(options.slot_ms.into()))
        .airdrop(authority.pubkey(), 1_000_000_000_000)
        .airdrop(payer.pubkey(), 1_000_000_000_000);
    for account in &accounts {
        builder = builder.delegated(*account, authority.pubkey(), vec![0; options.bytes]);
    }
    let localnet = super::super::localnet::start(builder).await?;
    let rpc = RpcSettings {
        websocket_url: Some(localnet.ws_url().to_owned()),
        ..RpcSettings::new(localnet.rpc_url())
    };
    let folder = tempfile::tempdir().map_err(|error| CommandError::new(Kind::Other, error))?;
    let committor = Committor::builder()
        .rpc(rpc.clone())
        .authority(authority)
        .store(folder.path().join("bench.db"))
        .settings(EngineSettings { record_costs: false, ..EngineSettings::default() })
        .start()
        .await?;
    let chain = Arc::new(RpcChain::new(rpc));
    // What is asked for once, such as the format of transactions, is not what is measured.
    bare_transfer(chain.clone(), payer.clone()).await?;
    let figures = drive(options, accounts_per_bundle, &accounts, &committor, &chain, &payer).await;
    committor.shutdown(Duration::ZERO).await?;
    chain.shutdown().await;
    figures
}

/// Submits at the rate asked for, and waits for everything.
async fn drive(
    options: &BenchCommit,
    accounts_per_bundle: usize,
    accounts: &[Address],
    committor: &Committor,
    chain: &Arc<RpcChain>,
    payer: &Arc<Keypair>,
) -> Result<Figures, CommandError> {
    let bundles = options.commits.div_ceil(accounts_per_bundle);
    let mut random = StdRng::seed_from_u64(1);
    let mut events = committor.events();
    let landings = tokio::spawn(async move {
        let mut landed = HashMap::new();
        while landed.len() < bundles {
            match events.recv().await {
                Ok(Event::Landed { bundle, stage: Stage::Commit, .. }) => {
                    landed.insert(bundle, Instant::now());
                }
                Ok(Event::Ended { bundle, status: BundleStatus::Failed }) => {
                    landed.insert(bundle, Instant::now());
                }
                Ok(_) | Err(RecvError::Lagged(_)) => (),
                Err(RecvError::Closed) => break,
            }
        }
        landed
    });
    let interval = Duration::from_secs(1).mul_f64(accounts_per_bundle as f64 / f64::from(options.rate));
    let (mut submissions, mut transfers) = (JoinSet::new(), JoinSet::new());
    let mut next = accounts.iter().cycle();
    let (started, first_slot) = (Instant::now(), chain.slot().await.map_err(failed)?);
    for index in 0..bundles {
        let commits = next.by_ref().take(accounts_per_bundle).map(|account| {
            let mut state = vec![0; options.bytes];
            random.fill_bytes(&mut state);
            AccountCommit { account: *account, state: state.into() }
        });
        let bundle = CommitBundle::new(BundleId(index as u64), commits.collect());
        // At any time of its interval: else all would come at one and the same time of a slot.
        let at = interval.mul_f64(index as f64 + random.random::<f64>());
        tokio::time::sleep_until((started + at).into()).await;
        let committor = committor.clone();
        // The submission of one does not wait for that of another.
        submissions.spawn(async move {
            let submitted = Instant::now();
            let ticket = committor.commit(Changeset { bundles: vec![bundle] }).await?;
            let accepted = submitted.elapsed();
            let key = ticket.bundles().first().map(|(_, key)| *key);
            let report = ticket.finished().await?;
            let landed = report.bundles.iter().all(|bundle| bundle.status == BundleStatus::Landed);
            Ok::<_, committor_client::EngineError>((index, key, submitted, accepted, landed))
        });
        if index % BUNDLES_PER_TRANSFER == 0 {
            let (wait, chain, payer) = (interval.mul_f64(random.random()), chain.clone(), payer.clone());
            transfers.spawn(async move {
                tokio::time::sleep(wait).await;
                bare_transfer(chain, payer).await
            });
        }
    }
    let (mut times, mut accept, mut failures) = (Times::default(), Vec::with_capacity(bundles), 0);
    while let Some(submission) = submissions.join_next().await {
        let (index, key, submitted, accepted, landed) =
            submission.map_err(|error| CommandError::new(Kind::Other, error))??;
        accept.push(accepted);
        failures += usize::from(!landed);
        times.submitted.extend(key.map(|key| (key, (index, submitted))));
    }
    let mut transfer = Vec::new();
    while let Some(landed) = transfers.join_next().await {
        transfer.push(landed.map_err(|error| CommandError::new(Kind::Other, error))??);
    }
    let last_slot = chain.slot().await.map_err(failed)?;
    let slot = started.elapsed().as_secs_f64() / last_slot.saturating_sub(first_slot).max(1) as f64;
    times.landed = landings.await.map_err(|error| CommandError::new(Kind::Other, error))?;
    let seconds = times.landed.values().max().map_or(0.0, |last| (*last - started).as_secs_f64());
    let mut land: Vec<(usize, Duration)> = times
        .submitted
        .iter()
        .filter_map(|(key, (index, submitted))| {
            Some((*index, times.landed.get(key)?.duration_since(*submitted)))
        })
        .collect();
    land.sort_unstable();
    // As many as it takes until every account had its first commit.
    let first = accounts.len().div_ceil(accounts_per_bundle).min(land.len());
    let of = |land: &[(usize, Duration)]| Statistics::of(land.iter().map(|(_, time)| *time));
    let (firsts, later) = (of(&land[..first]), of(&land[first..]));
    let (accept, land, transfer) = (Statistics::of(accept), of(&land), Statistics::of(transfer));
    let landed = (bundles - failures) * accounts_per_bundle;
    Ok(Figures {
        accounts_per_bundle,
        accounts: accounts.len(),
        account_bytes: options.bytes,
        rate: options.rate,
        bundles,
        landed,
        failed: failures * accounts_per_bundle,
        landed_per_second: landed as f64 / seconds.max(f64::EPSILON),
        accept_worst_ratio: accept.max / accept.median,
        land_ratio: land.median / transfer.median,
        first_ratio: firsts.median / later.median,
        land_slots: land.median / 1e6 / slot,
        accept,
        land,
        transfer,
    })
}

/// Sends lamports to a new account, and waits until that has landed.
async fn bare_transfer(chain: Arc<RpcChain>, payer: Arc<Keypair>) -> Result<Duration, CommandError> {
    let started = Instant::now();
    let recent = chain.recent_blockhash().await.map_err(failed)?;
    let instruction = transfer(&payer.pubkey(), &Keypair::new().pubkey(), LAMPORTS);
    let message = v0::Message::try_compile(&payer.pubkey(), &[instruction], &[], recent.blockhash);
    let message = message.map_err(|error| CommandError::new(Kind::Other, error))?;
    let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), &[&*payer])
        .map_err(|error| CommandError::new(Kind::Other, error))?;
    let last_valid_block_height = recent.last_valid_block_height;
    // As the committing transactions are sent.
    let signed = SignedTransaction { transaction, last_valid_block_height, preflight: true };
    chain.land(signed).await.map_err(failed)?;
    Ok(started.elapsed())
}

fn failed(error: committor_client::chain::ChainError) -> CommandError {
    CommandError::new(Kind::Cluster, error)
}

fn display(figures: &Figures) -> String {
    let mut table =
        output::table(["microseconds", "n", "median", "min", "max", "average", "95th", "99th", "deviation"]);
    for (name, statistics) in
        [("accept", &figures.accept), ("land", &figures.land), ("bare transfer", &figures.transfer)]
    {
        table.add_row(statistics.row(name));
    }
    output::align_right(&mut table, 1..9);
    let Figures { accounts_per_bundle, accounts, account_bytes, rate, landed, failed, .. } = figures;
    format!(
        "{accounts} accounts of {account_bytes} bytes, {accounts_per_bundle} per bundle, {rate} commits per second
{table}
{landed} commits landed, {failed} failed, {:.1} per second; {:.1} slots to land.
Worst acceptance {:.1} times the median; landing {:.2} times a bare transfer; an account's first {:.2} times its later ones.\n",
        figures.landed_per_second,
        figures.land_slots,
        figures.accept_worst_ratio,
        figures.land_ratio,
        figures.first_ratio
    )
}
