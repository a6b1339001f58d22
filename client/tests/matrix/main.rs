//! Bundles of every size through the whole engine, on a real local validator: each lands byte for byte, in the cheapest way
//! that the chain's limits allow and no other, or is refused before it costs anything.
//!
//! What "cheapest" comes to for each cell is worked out in [`model`], which knows the chain's limits and not the planner.

mod model;
mod patches;
mod planned;
mod world;

use std::sync::Arc;

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, CommitMode,
    store::BundleReport,
    types::{BundleStatus, TransactionVersion},
};
use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{BufferView, address, chunk_buffer, delegation, delegation::Delegation};
use futures::{StreamExt, stream};
use sha2::{Digest, Sha256};
use solana_address::Address;
use solana_signer::Signer;
use tokio::sync::Mutex;

use model::{Cell, Expected, Finalize, Way};
use world::{Desk, World};

/// Whether the engine makes lookup tables. While it does not, the cells that need one are left out.
const TABLES: bool = true;
/// Cells that are worked on at a time.
const CELLS_IN_FLIGHT: usize = 32;

const SIZES: [usize; 13] = [0, 1, 82, 800, 1_011, 1_012, 1_013, 3_855, 3_856, 3_857, 10_239, 10_240, 10_241];
const LARGE: usize = 65_536;
const MIB: usize = 1 << 20;
const COUNTS: [usize; 7] = [1, 2, 3, 8, 12, 20, 21];
const VERSIONS: [TransactionVersion; 2] = [TransactionVersion::V0, TransactionVersion::V1];

/// Bytes that no patch makes shorter, other ones for every seed.
fn noise(len: usize, seed: &[u64]) -> Vec<u8> {
    let mut hash = Sha256::new();
    seed.iter().for_each(|part| hash.update(part.to_le_bytes()));
    let mut state = u64::from_le_bytes(hash.finalize()[..8].try_into().unwrap()) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        // Xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A cell with its accounts.
struct Task {
    cell: Cell,
    accounts: Vec<Address>,
    old: Vec<Vec<u8>>,
    new: Vec<Arc<[u8]>>,
}

impl Task {
    fn new(number: usize, cell: Cell) -> Self {
        let seed = |index: usize, what| [number as u64, index as u64, what];
        let address = |index| Address::new_from_array(noise(32, &seed(index, 0)).try_into().unwrap());
        Self {
            cell,
            accounts: (0..cell.count).map(address).collect(),
            old: (0..cell.count).map(|index| noise(cell.old_len, &seed(index, 1))).collect(),
            new: (0..cell.count).map(|index| noise(cell.len, &seed(index, 2)).into()).collect(),
        }
    }

    fn genesis(&self) -> (&Cell, Vec<(Address, Vec<u8>)>) {
        (&self.cell, self.accounts.iter().copied().zip(self.old.iter().cloned()).collect())
    }

    fn bundle(&self) -> CommitBundle {
        let commits = self.accounts.iter().zip(&self.new);
        let commits =
            commits.map(|(account, state)| AccountCommit { account: *account, state: state.clone() });
        CommitBundle::new(BundleId(1), commits.collect()).mode(self.cell.mode)
    }
}

/// What does not hold, in words.
type Check = Result<(), String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Check {
    ensure(found == expected, || format!("{what} is {found:?}, expected {expected:?}"))
}

/// What a patch makes of a state: its new length, then ranges of offset, length and content.
fn apply(old: &[u8], patch: &[u8]) -> Vec<u8> {
    let number = |at: usize| u32::from_le_bytes(patch[at..at + 4].try_into().unwrap()) as usize;
    let mut state = old.to_vec();
    state.resize(number(0), 0);
    let mut at = 4;
    while at < patch.len() {
        let (offset, len) = (number(at), number(at + 4));
        at += 8;
        state[offset..offset + len].copy_from_slice(&patch[at..at + len]);
        at += len;
    }
    state
}

/// How each of a bundle's accounts went, sorted, and how often.
fn strategies(report: &BundleReport) -> Vec<String> {
    let mut strategies: Vec<String> =
        report.accounts.iter().map(|account| account.strategy.clone().unwrap_or_default()).collect();
    strategies.sort_unstable();
    strategies
}

impl Way {
    fn strategies(&self, cell: &Cell) -> Vec<String> {
        let tables = if self.tables { "-tables" } else { "" };
        let name = |method: &str| format!("{method}-{}{tables}", cell.version);
        let mut strategies = vec![name("buffer"); self.buffers];
        strategies.resize(cell.count, name("inline"));
        strategies
    }
}

impl Task {
    async fn run(&self, world: &World) -> Check {
        let desk = world.desk(&self.cell);
        match self.cell.expected() {
            Expected::Refused(limit) => self.is_refused(world, desk, &limit).await,
            Expected::Lands(way) => self.lands(world, desk, &way, way.strategies(&self.cell)).await,
        }
    }

    async fn submit(&self, desk: &Desk) -> BundleReport {
        let ticket = desk.committor.commit(Changeset { bundles: vec![self.bundle()] }).await.unwrap();
        let mut report = ticket.finished().await.unwrap();
        report.bundles.remove(0)
    }

    async fn is_refused(&self, world: &World, desk: &Desk, limit: &str) -> Check {
        let ticket = desk.committor.commit(Changeset { bundles: vec![self.bundle()] }).await.unwrap();
        equal("the number of refused bundles", ticket.refused().len(), 1)?;
        let report = ticket.finished().await.unwrap().bundles.remove(0);
        equal("the status", report.status, BundleStatus::Failed)?;
        equal("the number of transactions", report.transactions, 0)?;
        let error = report.error.unwrap_or_default();
        ensure(error.contains(limit), || format!("the error is {error:?}, expected {limit:?}"))?;
        for (account, old) in self.accounts.iter().zip(&self.old) {
            self.holds(world, *account, delegation::ID, old).await?;
        }
        Ok(())
    }

    async fn lands(&self, world: &World, desk: &Desk, way: &Way, expected: Vec<String>) -> Check {
        let report = self.submit(desk).await;
        let end =
            if self.cell.mode == CommitMode::Stage { BundleStatus::Staged } else { BundleStatus::Landed };
        ensure(report.status == end, || format!("it is {}: {:?}", report.status, report.error))?;
        equal("the way", strategies(&report), expected)?;
        equal("the number of transactions", report.transactions, way.transactions as u64)?;
        match self.cell.mode {
            CommitMode::Finalize => self.is_applied(world).await,
            CommitMode::Undelegate => self.is_handed_back(world).await,
            CommitMode::Stage => {
                self.is_staged(world, desk).await?;
                let Some(Finalize { transactions, .. }) = way.finalize else { return Ok(()) };
                let ticket = desk.committor.finalize(report.key).await.unwrap();
                let report = ticket.finished().await.unwrap().bundles.remove(0);
                ensure(report.status == BundleStatus::Landed, || {
                    format!("finalizing left it {}: {:?}", report.status, report.error)
                })?;
                let total = (way.transactions + transactions) as u64;
                equal("the number of transactions after finalizing", report.transactions, total)?;
                self.is_applied(world).await
            }
        }
    }

    /// The account has this owner and holds these bytes.
    async fn holds(&self, world: &World, account: Address, owner: Address, state: &[u8]) -> Check {
        let found = world.account(account).await.ok_or("an account is gone")?;
        equal("an account's owner", found.owner, owner)?;
        ensure(found.data == state, || format!("account {account} holds other bytes"))
    }

    async fn is_applied(&self, world: &World) -> Check {
        for (account, state) in self.accounts.iter().zip(&self.new) {
            self.holds(world, *account, delegation::ID, state).await?;
            let record = world.account(address::record(account)).await.ok_or("a record is gone")?;
            let record = Delegation::read(&record.data).unwrap();
            equal("nonce and staged nonce", (record.nonce, record.staged_nonce), (1, 0))?;
        }
        Ok(())
    }

    async fn is_handed_back(&self, world: &World) -> Check {
        for (account, state) in self.accounts.iter().zip(&self.new) {
            self.holds(world, *account, OWNER_PROGRAM_ID, state).await?;
            equal("a record", world.account(address::record(account)).await, None)?;
        }
        Ok(())
    }

    /// The accounts are what they were, and each one's record names a sealed buffer that holds the new state.
    async fn is_staged(&self, world: &World, desk: &Desk) -> Check {
        for ((account, old), state) in self.accounts.iter().zip(&self.old).zip(&self.new) {
            self.holds(world, *account, delegation::ID, old).await?;
            let record = world.account(address::record(account)).await.ok_or("a record is gone")?;
            let record = Delegation::read(&record.data).unwrap();
            equal("nonce and staged nonce", (record.nonce, record.staged_nonce), (0, 1))?;
            let buffer = world.account(record.staged_buffer).await.ok_or("the staged buffer is gone")?;
            equal("the buffer's owner", buffer.owner, chunk_buffer::ID)?;
            let view = BufferView::parse(&buffer.data).map_err(|error| error.to_string())?;
            equal("the buffer's authority", view.header().authority, desk.authority.pubkey())?;
            ensure(view.is_sealed(), || "the buffer is not sealed".into())?;
            let staged = match record.staged_kind {
                0 => view.payload().to_vec(),
                _ => apply(old, view.payload()),
            };
            ensure(staged == state[..], || "the buffer holds another state".into())?;
        }
        Ok(())
    }
}

/// One validator at a time: several of them on a small machine make one another's requests time out, and what is sent anew
/// after that is another number of transactions.
static TURN: Mutex<()> = Mutex::const_new(());

/// Runs cells side by side and reports on all that went wrong.
async fn run(cells: Vec<Cell>) {
    let _turn = TURN.lock().await;
    let needs_tables = |cell: &Cell| match cell.expected() {
        Expected::Lands(way) => way.tables || way.finalize.is_some_and(|finalize| finalize.tables),
        Expected::Refused(_) => false,
    };
    let cells = cells.into_iter().filter(|cell| TABLES || !needs_tables(cell));
    let tasks: Vec<Task> = cells.enumerate().map(|(number, cell)| Task::new(number, cell)).collect();
    assert!(!tasks.is_empty());
    let world = World::new(tasks.iter().map(Task::genesis)).await;
    let checks = stream::iter(&tasks)
        .map(|task| async { task.run(&world).await.map_err(|error| format!("{}: {error}", task.cell)) })
        .buffer_unordered(CELLS_IN_FLIGHT);
    let wrong: Vec<String> = checks.filter_map(async |check| check.err()).collect().await;
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), tasks.len(), wrong.join("\n"));
    world.check().await;
    world.end().await;
}

/// Bundles of `counts` accounts of `sizes` bytes each, in every format and mode; the accounts keep their lengths.
fn cells(sizes: &[usize], counts: &[usize], own_payer: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    for version in VERSIONS {
        for mode in CommitMode::ALL {
            for len in sizes.iter().copied() {
                for count in counts.iter().copied() {
                    cells.push(Cell { len, old_len: len, count, version, mode, own_payer });
                }
            }
        }
    }
    cells
}

/// The same, with accounts that had another length before.
fn resized(lens: &[(usize, usize)], counts: &[usize]) -> Vec<Cell> {
    let resize = |(old_len, len): &(usize, usize)| {
        let old_len = *old_len;
        cells(&[*len], counts, false).into_iter().map(move |cell| Cell { old_len, ..cell })
    };
    lens.iter().flat_map(resize).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_of_up_to_21_accounts_of_up_to_10_241_bytes() {
    run(cells(&SIZES, &COUNTS, false)).await;
}

fn is_slow(cell: &Cell) -> bool {
    cell.len == MIB && cell.version == TransactionVersion::V0
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_of_a_few_accounts_of_65_536_bytes_and_1_mib() {
    let mut cells = cells(&[LARGE, MIB], &[1, 2, 3], false);
    // Each of these takes more than a thousand transactions of v0.
    cells.retain(|cell| cell.count == 1 || !is_slow(cell));
    run(cells).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "uploads 300 MiB in a quarter of a million transactions, which takes a quarter of an hour"]
async fn bundles_of_many_accounts_of_65_536_bytes_and_1_mib() {
    run(cells(&[LARGE], &[8, 12, 20, 21], false)).await;
    run(cells(&[MIB], &[2, 3], false).into_iter().filter(is_slow).collect()).await;
    for count in [8, 12, 20, 21] {
        run(cells(&[MIB], &[count], false)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_that_somebody_else_pays_for() {
    let mut cells = cells(&[0, 82, 800, 3_760, 3_761, 10_240], &[1, 3, 8, 19, 20, 21], true);
    // One account more than a transaction locks, and it is known only once the chain is asked: the owner program.
    cells.extend(resized(&[(0, 3_857)], &[19, 20]).into_iter().map(|cell| Cell { own_payer: true, ..cell }));
    run(cells).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_grow_or_shrink_on_the_way() {
    let few =
        [(0, 1), (0, 82), (0, 800), (5_000, 16_000), (0, 10_240), (0, 10_241), (1, 10_241), (0, 20_481)];
    let mut cells = resized(&few, &[1, 3]);
    cells.extend(resized(&[(0, LARGE), (10_240, LARGE), (82, 0), (10_240, 82), (LARGE, 3_857)], &[1, 2]));
    // As many as fit, and more, where every account needs its rent, and a step of growth besides.
    cells.extend(resized(&[(0, 82), (0, 3_857), (100, 12_000)], &[12, 16, 17, 20, 21]));
    // More growth than one transaction holds.
    let v1 = |cell: &Cell| cell.version == TransactionVersion::V1;
    cells.extend(resized(&[(0, MIB)], &[1, 2]).into_iter().filter(v1));
    run(cells).await;
}
