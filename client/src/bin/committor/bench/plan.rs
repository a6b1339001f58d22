//! What planning costs per account, for changesets of 1 to 10,000 accounts.
//!
//! Every size plans the same accounts: as many small changesets as it takes, or one large one. So the figures differ by the
//! size of the changeset and by nothing else.

use std::{
    collections::BTreeMap,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use bytemuck::Zeroable;
use committor_client::{
    CommitMode, Lamports,
    plan::{AccountFacts, BundleFacts, BundlePlan, PlanContext, Prices, RentSchedule, pack, plan_bundle},
    types::{CommitId, TransactionVersion},
};
use committor_sdk::delegation;
use serde::Serialize;
use solana_address::Address;

use crate::{
    args::{BenchPlan, Global, Output},
    exit::{CommandError, Kind},
    output,
};

/// The size of changeset that the largest one is compared with.
const COMPARED: usize = 100;
/// Bundles have 1 to this many accounts, in turn.
const MAX_BUNDLE: usize = 5;
/// Length of a token account's state, in bytes: it goes inline.
const SHORT: usize = 165;
/// Length of a market's or a pool's state, in bytes: what changed of it goes inline, all of it through a buffer.
const LONG: usize = 10_240;
/// Where and how far a patched state changes, in bytes.
const CHANGES: [(usize, usize); 4] = [(8, 16), (1_000, 64), (5_000, 8), (10_000, 120)];

/// What the benchmark prints.
#[derive(Serialize)]
struct Figures {
    /// How often each size was measured.
    repeats: u32,
    /// Accounts that each size plans in one repeat.
    accounts: u64,
    /// How the accounts reach the chain: strategies, and how many accounts have each.
    strategies: BTreeMap<String, u64>,
    /// Processor time: median over the repeats, in nanoseconds, by number of accounts in the changeset.
    per_account_ns: BTreeMap<usize, u64>,
    /// The figure of the largest changeset over that of 100 accounts.
    ratio: f64,
}

pub fn run(global: &Global, options: &BenchPlan) -> Result<Kind, CommandError> {
    let context = context();
    let sizes: Vec<usize> = std::iter::successors(Some(1), |size| Some(size * 10))
        .take_while(|size| *size <= options.accounts as usize)
        .collect();
    let largest = sizes.last().copied().unwrap_or(1);
    let accounts: Vec<AccountFacts> = (0..largest).map(|index| account(index, &context)).collect();
    let by_size: Vec<(usize, Vec<Vec<BundleFacts>>)> =
        sizes.into_iter().map(|size| (size, accounts.chunks(size).map(changeset).collect())).collect();
    let strategies = count(&plan(&changeset(&accounts), &context));
    let mut times: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for _ in 0..options.repeats {
        // One size after the other in each repeat: what else the machine does meets all of them alike.
        for (size, changesets) in &by_size {
            let started = Clock::start();
            for changeset in changesets {
                black_box(plan(changeset, &context));
            }
            let per_account = started.elapsed().as_nanos() / largest as u128;
            times.entry(*size).or_default().push(u64::try_from(per_account).unwrap_or(u64::MAX));
        }
    }
    let per_account_ns: BTreeMap<usize, u64> =
        times.into_iter().map(|(size, times)| (size, median(times))).collect();
    let [large, small] =
        [largest, COMPARED].map(|size| per_account_ns.get(&size).copied().unwrap_or_default());
    // Two digits behind the point: what follows is noise.
    let ratio = (large as f64 / small.max(1) as f64 * 100.0).round() / 100.0;
    let figures =
        Figures { repeats: options.repeats, accounts: largest as u64, strategies, per_account_ns, ratio };
    match global.output {
        Output::Display => output::print(&display(&figures))?,
        form => output::json(&figures, form)?,
    }
    Ok(Kind::Success)
}

/// What the engine does with a changeset before it sends anything: a plan for each bundle, and small ones together.
fn plan(changeset: &[BundleFacts], context: &PlanContext) -> Vec<Option<BundlePlan>> {
    let plans: Vec<Option<BundlePlan>> =
        changeset.iter().map(|facts| plan_bundle(facts, context).ok()).collect();
    black_box(pack(&plans, context));
    plans
}

fn count(plans: &[Option<BundlePlan>]) -> BTreeMap<String, u64> {
    let mut strategies = BTreeMap::new();
    for commit in plans.iter().flatten().flat_map(|plan| &plan.commits) {
        *strategies.entry(commit.strategy.to_string()).or_default() += 1;
    }
    strategies
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn display(figures: &Figures) -> String {
    let mut table = output::table(["accounts", "changesets", "ns per account"]);
    for (size, ns) in &figures.per_account_ns {
        table.add_row([size.to_string(), (figures.accounts as usize / size).to_string(), ns.to_string()]);
    }
    output::align_right(&mut table, 0..3);
    let mix: Vec<String> =
        figures.strategies.iter().map(|(strategy, count)| format!("{count} {strategy}")).collect();
    format!(
        "{table}\nPlanned were {}. Median of {} repeats.\nAn account of {} costs {:.2} times one of {COMPARED}.\n",
        mix.join(", "),
        figures.repeats,
        figures.accounts,
        figures.ratio
    )
}

fn context() -> PlanContext {
    let authority = Address::new_from_array([200; 32]);
    PlanContext {
        payer: authority,
        authority,
        version: TransactionVersion::V1,
        rent: RentSchedule { empty_account: Lamports(890_880), per_byte: Lamports(6_960) },
        prices: Prices::default(),
        tables: Vec::new(),
    }
}

/// Bundles of 1 to [`MAX_BUNDLE`] accounts, in turn.
fn changeset(accounts: &[AccountFacts]) -> Vec<BundleFacts> {
    let mut bundles = Vec::new();
    let mut left = accounts;
    for size in (1..=MAX_BUNDLE).cycle() {
        if left.is_empty() {
            break;
        }
        let (accounts, rest) = left.split_at(size.min(left.len()));
        left = rest;
        let (mode, accounts) = (CommitMode::Finalize, accounts.to_vec());
        bundles.push(BundleFacts { mode, accounts, actions: Vec::new(), extra_loaded: 0 });
    }
    bundles
}

/// Account number `index`: of four, two go inline, one as a patch, one through a buffer.
fn account(index: usize, context: &PlanContext) -> AccountFacts {
    let mut random = Random(index as u64);
    let account = Address::new_from_array(std::array::from_fn(|_| random.next() as u8));
    let len = if index.is_multiple_of(2) { SHORT } else { LONG };
    let base: Arc<[u8]> = random.bytes(len).into();
    let state: Arc<[u8]> = if index % 4 == 1 {
        let mut state = base.to_vec();
        for (start, len) in CHANGES {
            state[start..start + len].copy_from_slice(&random.bytes(len));
        }
        state.into()
    } else {
        random.bytes(len).into()
    };
    let record = delegation::Delegation {
        account,
        authority: context.authority,
        session: 1,
        nonce: 7,
        // Delegated.
        state: 2,
        version: 1,
        ..delegation::Delegation::zeroed()
    };
    AccountFacts {
        account,
        state,
        commit_id: CommitId(random.next()),
        owner: Some(delegation::ID),
        len,
        lamports: context.rent.minimum(len as u64),
        record: Some(record),
        base: Some(base),
        buffers: Vec::new(),
    }
}

/// Processor time of this thread where the system tells it, so that what else the machine does matters little; else the time
/// that passes.
struct Clock {
    on_processor: Option<Duration>,
    started: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { on_processor: Self::on_processor(), started: Instant::now() }
    }

    fn elapsed(&self) -> Duration {
        match (self.on_processor, Self::on_processor()) {
            (Some(started), Some(now)) => now.saturating_sub(started),
            _ => self.started.elapsed(),
        }
    }

    /// Linux only. It is as old as the last tick, some milliseconds: little beside what is measured.
    fn on_processor() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }
}

/// SplitMix64: numbers that nothing compresses, the same at every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
