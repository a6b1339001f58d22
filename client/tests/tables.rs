//! Lookup tables on a real local validator: through a chain that fails, lies or dies at a chosen point, and beside
//! somebody else who works on the same tables.
//!
//! Whatever happens: what is reserved can be used, no address is in twice, and no table's rent stays behind.

use std::{
    collections::BTreeSet,
    future::pending,
    path::Path,
    process::{Command, Output},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, EngineError, Lamports, Signers, Store,
    chain::{
        AccountHeader, Chain, ChainError, Landed, RecentBlockhash, Rent, RpcChain, RpcSettings,
        SignedTransaction, Simulation, TransactionCost, TransactionFailure,
    },
    engine::tables::{TableError, TableReport, TableSettings, TableState, Tables, Upkeep},
    store::{BundleEnd, SeenTable, TableTransaction, TransactionOutcome},
    types::{LookupTable, TableHolder, TableOrigin, TableStatus, TableStep, TransactionVersion},
};
use committor_localnet::Localnet;
use futures::{StreamExt, future::join_all, stream};
use solana_account::Account;
use solana_address::Address;
use solana_address_lookup_table_interface::{instruction, state::AddressLookupTable};
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{AddressLookupTableAccount, VersionedMessage, v0};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;
use tokio::sync::Notify;

/// More than an authority's transactions can cost here, and less than the rent of the smallest table.
const MAX_FEES: u64 = 1_000_000;
const BALANCE: u64 = 10_000_000_000;

/// What the chain does at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    None,
    /// This call and as many after it fail, as on a node that answers nonsense.
    Fail(usize),
    /// The call never comes back.
    Die,
}

/// A chain with one fault. Every call has two points: before it has any effect, and after it had.
struct FaultyChain {
    inner: RpcChain,
    fault: Fault,
    at: usize,
    points: AtomicUsize,
    reached: Notify,
    landed: AtomicUsize,
    /// What somebody else lands right before the next transaction.
    ambush: Mutex<Option<SignedTransaction>>,
}

impl FaultyChain {
    async fn point(&self) -> Result<(), ChainError> {
        let point = self.points.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::Fail(count) if (self.at..self.at + count).contains(&point) => {
                let found = "a fault".to_owned();
                Err(ChainError::Nonsense { method: "any", found, expected: "an answer" })
            }
            Fault::Die if point == self.at => {
                self.reached.notify_one();
                pending().await
            }
            Fault::None | Fault::Fail(_) | Fault::Die => Ok(()),
        }
    }
}

macro_rules! faulty {
    ($self:ident, $call:expr) => {{
        $self.point().await?;
        let result = $call.await?;
        $self.point().await?;
        Ok(result)
    }};
}

impl Chain for FaultyChain {
    async fn recent_blockhash(&self) -> Result<RecentBlockhash, ChainError> {
        faulty!(self, self.inner.recent_blockhash())
    }

    async fn block_height(&self) -> Result<u64, ChainError> {
        faulty!(self, self.inner.block_height())
    }

    async fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, ChainError> {
        faulty!(self, self.inner.accounts(addresses))
    }

    async fn headers(&self, addresses: &[Address]) -> Result<Vec<Option<AccountHeader>>, ChainError> {
        faulty!(self, self.inner.headers(addresses))
    }

    async fn tables_of(&self, authority: &Address) -> Result<Vec<(Address, Account)>, ChainError> {
        faulty!(self, self.inner.tables_of(authority))
    }

    async fn rent(&self) -> Result<Rent, ChainError> {
        faulty!(self, self.inner.rent())
    }

    async fn supports_v1(&self) -> Result<bool, ChainError> {
        faulty!(self, self.inner.supports_v1())
    }

    async fn slot(&self) -> Result<u64, ChainError> {
        faulty!(self, self.inner.slot())
    }

    async fn priority_fees(&self, writable: &[Address]) -> Result<Vec<u64>, ChainError> {
        faulty!(self, self.inner.priority_fees(writable))
    }

    async fn simulate(&self, transaction: &VersionedTransaction) -> Result<Simulation, ChainError> {
        faulty!(self, self.inner.simulate(transaction))
    }

    async fn land(&self, transaction: SignedTransaction) -> Result<Landed, ChainError> {
        let signature = transaction.signature();
        self.point().await?;
        let ambush = self.ambush.lock().unwrap().take();
        if let Some(ambush) = ambush {
            self.inner.land(ambush).await?;
        }
        let landed = self.inner.land(transaction).await?;
        self.landed.fetch_add(1, Ordering::SeqCst);
        // The worst lie: it landed, and the answer is that it never will.
        match self.point().await {
            Ok(()) => Ok(landed),
            Err(_) => Err(ChainError::Expired { signature }),
        }
    }

    async fn find(
        &self,
        signature: Signature,
    ) -> Result<Option<Result<Landed, TransactionFailure>>, ChainError> {
        faulty!(self, self.inner.find(signature))
    }

    async fn cost(&self, signature: Signature) -> Result<Option<TransactionCost>, ChainError> {
        faulty!(self, self.inner.cost(signature))
    }
}

/// An authority of tables on a local validator, and its store. Several share a validator: cool-downs take long.
struct World {
    localnet: Arc<Localnet>,
    authority: Arc<Keypair>,
    folder: tempfile::TempDir,
}

impl World {
    /// As many authorities on one validator.
    async fn many(count: usize) -> Vec<Self> {
        let authorities: Vec<_> = (0..count).map(|_| Arc::new(Keypair::new())).collect();
        // A cool-down takes 512 slots.
        let mut builder = Localnet::builder().slot_time(Duration::from_millis(10));
        for authority in &authorities {
            builder = builder.airdrop(authority.pubkey(), BALANCE);
        }
        let localnet = Arc::new(builder.start().await.unwrap());
        let folder = || tempfile::tempdir().unwrap();
        let world = |authority| Self { localnet: localnet.clone(), authority, folder: folder() };
        authorities.into_iter().map(world).collect()
    }

    async fn new() -> Self {
        Self::many(1).await.remove(0)
    }

    fn store_path(&self) -> std::path::PathBuf {
        Path::new(self.folder.path()).join("committor.db")
    }

    fn store(&self) -> Store {
        Store::open(&self.store_path()).unwrap()
    }

    fn rpc(&self) -> RpcChain {
        RpcChain::new(RpcSettings {
            websocket_url: Some(self.localnet.ws_url().to_owned()),
            poll_interval: Duration::from_millis(100),
            ..RpcSettings::new(self.localnet.rpc_url())
        })
    }

    fn signers(&self) -> Signers {
        Signers { payer: self.authority.clone(), authority: self.authority.clone() }
    }

    fn settings() -> TableSettings {
        TableSettings { slot_poll_interval: Duration::from_millis(20), ..TableSettings::default() }
    }

    /// A manager, and its chain.
    fn tables(&self) -> (Tables<FaultyChain>, Arc<FaultyChain>) {
        self.faulty(Fault::None, usize::MAX, Self::settings())
    }

    fn faulty(
        &self,
        fault: Fault,
        at: usize,
        settings: TableSettings,
    ) -> (Tables<FaultyChain>, Arc<FaultyChain>) {
        let chain = Arc::new(FaultyChain {
            inner: self.rpc(),
            fault,
            at,
            points: AtomicUsize::new(0),
            reached: Notify::new(),
            landed: AtomicUsize::new(0),
            ambush: Mutex::new(None),
        });
        (Tables::new(chain.clone(), self.store(), self.signers(), settings), chain)
    }

    async fn sign(
        &self,
        chain: &RpcChain,
        instructions: &[Instruction],
        tables: &[LookupTable],
    ) -> SignedTransaction {
        let recent = chain.recent_blockhash().await.unwrap();
        let account = |table: &LookupTable| AddressLookupTableAccount {
            key: table.address,
            addresses: table.addresses.clone(),
        };
        let tables: Vec<_> = tables.iter().map(account).collect();
        let payer = self.authority.pubkey();
        let message = v0::Message::try_compile(&payer, instructions, &tables, recent.blockhash).unwrap();
        let message = VersionedMessage::V0(message);
        SignedTransaction {
            transaction: VersionedTransaction::try_new(message, &[&self.authority]).unwrap(),
            last_valid_block_height: recent.last_valid_block_height,
            preflight: true,
        }
    }

    /// What is in a table on chain.
    async fn entries(&self, table: Address) -> Vec<Address> {
        let account = self.rpc().accounts(&[table]).await.unwrap().pop().flatten().unwrap();
        AddressLookupTable::deserialize(&account.data).unwrap().addresses.to_vec()
    }

    async fn balance(&self) -> u64 {
        let account = self.rpc().accounts(&[self.authority.pubkey()]).await.unwrap().pop().flatten();
        account.unwrap().lamports
    }

    /// The end that every run must come to: nothing is left on chain, and all rent came back.
    async fn check_all_closed(&self, context: &str) {
        let left = self.rpc().tables_of(&self.authority.pubkey()).await.unwrap();
        assert!(left.is_empty(), "{context}: {} tables are left", left.len());
        let spent = BALANCE - self.balance().await;
        assert!(spent < MAX_FEES, "{context}: {spent} lamports are gone");
    }

    async fn committor(&self, args: &[&str]) -> Output {
        let keypair = self.folder.path().join("id.json");
        std::fs::write(&keypair, format!("{:?}", self.authority.to_bytes())).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_committor"));
        command.args(args).env_clear().env("HOME", self.folder.path()).current_dir(self.folder.path());
        command.args([
            "--url",
            self.localnet.rpc_url(),
            "--ws",
            self.localnet.ws_url(),
            "--keypair",
            "id.json",
        ]);
        // The validator lives in this process: it must go on meanwhile.
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }
}

fn keys(range: std::ops::Range<u16>) -> Vec<Address> {
    let key = |number: u16| {
        let mut bytes = [7; 32];
        bytes[..2].copy_from_slice(&number.to_le_bytes());
        Address::new_from_array(bytes)
    };
    range.map(key).collect()
}

fn named(name: &str) -> TableHolder {
    TableHolder::Named(name.to_owned())
}

fn assert_distinct(entries: &[Address]) {
    assert_eq!(entries.iter().collect::<BTreeSet<_>>().len(), entries.len(), "an address is in twice");
}

fn states(list: &[TableReport]) -> Vec<TableState> {
    list.iter().map(|table| table.state).collect()
}

/// Nothing but an error that may pass comes before the answer.
async fn until_ok<T>(mut call: impl AsyncFnMut() -> Result<T, EngineError>) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_v0_transaction_reaches_more_accounts_through_tables_than_it_could_name() {
    let world = World::new().await;
    let (tables, chain) = world.tables();
    let receivers = keys(0..60);
    let instructions: Vec<_> =
        receivers.iter().map(|key| transfer(&world.authority.pubkey(), key, 1_000_000)).collect();
    let named_all = world.sign(&chain.inner, &instructions[..40], &[]).await.transaction;
    let max = TransactionVersion::V0.max_len() as u64;
    assert!(wincode::serialized_size(&named_all).unwrap() > max);

    assert_eq!(tables.tables_for(&receivers), []);
    let serving = tables.reserve(named("test"), &receivers).await.unwrap();
    assert_eq!((serving.len(), &tables.tables_for(&receivers)), (1, &serving));
    let transaction = world.sign(&chain.inner, &instructions[..40], &serving).await;
    assert!(wincode::serialized_size(&transaction.transaction).unwrap() <= max);
    chain.inner.land(transaction).await.unwrap();
    for account in chain.inner.accounts(&receivers[..40]).await.unwrap() {
        assert_eq!(account.unwrap().lamports, 1_000_000);
    }
    assert_eq!(world.entries(serving[0].address).await, serving[0].addresses);
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_of_the_same_new_addresses_at_once_give_one_entry_each() {
    let world = World::new().await;
    let (tables, chain) = world.tables();
    let reserve = async |number: u16| {
        // Overlapping, so that no two ask for the same, and all for some of the same.
        let keys = keys(number..number + 20);
        let serving = tables.reserve(named(&number.to_string()), &keys).await.unwrap();
        let served: BTreeSet<_> = serving.iter().flat_map(|table| &table.addresses).copied().collect();
        assert!(keys.iter().all(|key| served.contains(key)));
    };
    join_all((0..20).map(reserve)).await;
    let list = tables.list().await.unwrap();
    assert_eq!((list.len(), list[0].entries, list[0].references), (1, 39, 400));
    assert_distinct(&world.entries(list[0].address).await);
    let transactions = chain.landed.load(Ordering::SeqCst);
    assert!(transactions <= 4, "who waits for a turn goes with those before: {transactions} transactions");
    // Again, by the same holder: it counts once, and costs nothing.
    tables.reserve(named("0"), &keys(0..20)).await.unwrap();
    assert_eq!(tables.list().await.unwrap(), list);
    assert_eq!(chain.landed.load(Ordering::SeqCst), transactions);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_addresses_than_a_table_holds_take_two() {
    let world = World::new().await;
    let (tables, _) = world.tables();
    let serving = tables.reserve(named("test"), &keys(0..300)).await.unwrap();
    let mut lens: Vec<_> = serving.iter().map(|table| table.addresses.len()).collect();
    lens.sort_unstable();
    assert_eq!(lens, [44, 256]);
    // The rest of the second one is used before a third is made.
    let serving = tables.reserve(named("test"), &keys(300..512)).await.unwrap();
    assert_eq!((serving.len(), serving[0].addresses.len()), (1, 256));
    let mut all = Vec::new();
    for table in tables.list().await.unwrap() {
        all.extend(world.entries(table.address).await);
    }
    assert_eq!(all.len(), 512);
    assert_distinct(&all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_nobody_needs_is_closed_after_its_cool_down_and_its_rent_comes_back() {
    let world = World::new().await;
    let (tables, _) = world.tables();
    tables.reserve(named("one"), &keys(0..5)).await.unwrap();
    tables.reserve(named("two"), &keys(3..8)).await.unwrap();
    assert_eq!(tables.close_unused().await.unwrap().deactivated, []);
    tables.release(named("one")).await.unwrap();
    let done = tables.close_unused().await.unwrap();
    assert_eq!((done.deactivated, done.closed), (vec![], vec![]), "another one needs addresses in it");
    tables.release(named("two")).await.unwrap();
    assert_eq!(tables.maintain().await.unwrap().deactivated, [], "it has not been idle for an hour");

    let table = tables.list().await.unwrap()[0].address;
    let Upkeep { deactivated, closed, failed } = tables.close_unused().await.unwrap();
    assert_eq!((deactivated, closed, failed.len()), (vec![table], vec![], 0));
    assert_eq!(tables.tables_for(&keys(0..8)), [], "no new transaction counts on it");
    let list = tables.list().await.unwrap();
    assert!(matches!(list[0].state, TableState::Deactivating { .. }), "{list:?}");
    let done = tables.close_unused().await.unwrap();
    assert_eq!(
        (done.deactivated, done.closed, done.failed.len()),
        (vec![], vec![], 0),
        "not before its time"
    );

    // What is needed again meanwhile goes into another one.
    let serving = tables.reserve(named("three"), &keys(0..1)).await.unwrap();
    assert_ne!(serving[0].address, table);
    assert_eq!(tables.closed().await.unwrap(), [table]);
    let list = tables.list().await.unwrap();
    assert_eq!(states(&list), [TableState::Closed, TableState::Active]);
    tables.release(named("three")).await.unwrap();
    tables.close_unused().await.unwrap();
    tables.closed().await.unwrap();
    world.check_all_closed("in the end").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_somebody_else_extended_is_read_back_before_it_is_extended() {
    let world = World::new().await;
    let (tables, chain) = world.tables();
    let table = tables.reserve(named("test"), &keys(0..5)).await.unwrap()[0].address;
    let authority = world.authority.pubkey();
    let extend = instruction::extend_lookup_table(table, authority, Some(authority), keys(5..15));
    chain.inner.land(world.sign(&chain.inner, &[extend], &[]).await).await.unwrap();
    let serving = tables.reserve(named("test"), &keys(0..20)).await.unwrap();
    assert_eq!((serving.len(), serving[0].addresses.len()), (1, 20));
    assert_distinct(&world.entries(table).await);

    // After a restart, without any reason to extend it.
    let extend = instruction::extend_lookup_table(table, authority, Some(authority), keys(20..25));
    chain.inner.land(world.sign(&chain.inner, &[extend], &[]).await).await.unwrap();
    let (tables, chain) = world.tables();
    let serving = tables.reserve(named("test"), &keys(0..25)).await.unwrap();
    assert_eq!((serving[0].addresses.len(), chain.landed.load(Ordering::SeqCst)), (25, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_somebody_else_deactivated_is_replaced_and_closed() {
    let world = World::new().await;
    let authority = world.authority.pubkey();
    let deactivate = async |chain: &RpcChain, table| {
        world.sign(chain, &[instruction::deactivate_lookup_table(table, authority)], &[]).await
    };
    // Found out when it is to be extended.
    let (tables, chain) = world.tables();
    let first = tables.reserve(named("test"), &keys(0..5)).await.unwrap()[0].address;
    chain.inner.land(deactivate(&chain.inner, first).await).await.unwrap();
    tables.reserve(named("test"), &keys(5..6)).await.unwrap();
    let serving = tables.reserve(named("test"), &keys(0..6)).await.unwrap();
    let second = serving[0].address;
    assert!(serving.len() == 1 && second != first);
    // Only while it is being extended: it refuses.
    *chain.ambush.lock().unwrap() = Some(deactivate(&chain.inner, second).await);
    let serving = tables.reserve(named("test"), &keys(0..7)).await.unwrap();
    let third = serving[0].address;
    assert!(serving.len() == 1 && third != first && third != second);
    // Found out at the next start.
    chain.inner.land(deactivate(&chain.inner, third).await).await.unwrap();
    let (tables, _) = world.tables();
    let serving = tables.reserve(named("test"), &keys(0..7)).await.unwrap();
    assert!(serving.len() == 1 && ![first, second, third].contains(&serving[0].address));

    tables.release(named("test")).await.unwrap();
    tables.close_unused().await.unwrap();
    assert_eq!(tables.closed().await.unwrap().len(), 4);
    world.check_all_closed("in the end").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_no_store_knows_is_found_and_closed_only_if_asked_for() {
    let world = World::new().await;
    let (tables, _) = world.tables();
    let table = tables.reserve(named("test"), &keys(0..5)).await.unwrap()[0].address;
    drop(tables);
    std::fs::remove_file(world.store_path()).unwrap();

    let (tables, _) = world.tables();
    let unknown = tables.close(&[table]).await.unwrap_err();
    assert!(matches!(unknown, EngineError::Table(TableError::Unknown(unknown)) if unknown == table));
    assert_eq!(tables.discover().await.unwrap(), [table]);
    assert_eq!(tables.discover().await.unwrap(), [], "it is known now");
    let list = tables.list().await.unwrap();
    assert_eq!((list[0].origin, list[0].state), (TableOrigin::Discovered, TableState::Active));
    assert_eq!(tables.tables_for(&keys(0..5)), []);
    assert_eq!(tables.close_unused().await.unwrap().deactivated, [], "another process may need it");
    assert_eq!(tables.close(&[table]).await.unwrap().deactivated, [table]);
    assert_eq!(tables.closed().await.unwrap(), [table]);
    world.check_all_closed("in the end").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_bundle_reserved_is_released_once_it_has_ended_also_after_a_crash() {
    let world = World::new().await;
    let (tables, _) = world.tables();
    let commit = AccountCommit { account: keys(0..1)[0], state: Arc::from([]) };
    let changeset = Changeset { bundles: vec![CommitBundle::new(BundleId(1), vec![commit])] };
    let (_, bundles) = world.store().accept(changeset, vec![]).await.unwrap();
    let holder = TableHolder::Bundle(bundles[0].key);
    let table = tables.reserve(holder, &keys(0..5)).await.unwrap()[0].address;
    assert_eq!(tables.list().await.unwrap()[0].references, 5);
    world.store().end(bundles[0].key, BundleEnd::Failed("no matter".to_owned())).await.unwrap();
    drop(tables);
    let (tables, _) = world.tables();
    assert_eq!(tables.close_unused().await.unwrap().deactivated, [table]);
    let nobody = TableHolder::Bundle(committor_client::types::BundleKey(99));
    assert!(matches!(tables.reserve(nobody, &keys(0..1)).await, Err(EngineError::Store(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payer_pays_and_gets_the_rent_back_and_the_authority_needs_no_lamports() {
    let world = World::new().await;
    let authority = Arc::new(Keypair::new());
    let signers = Signers { payer: world.authority.clone(), authority: authority.clone() };
    let chain = Arc::new(world.rpc());
    let tables = Tables::new(chain.clone(), world.store(), signers, World::settings());
    // More than one transaction's worth, so that it is made and extended.
    let table = tables.reserve(named("a"), &keys(0..60)).await.unwrap()[0].address;
    let found = chain.tables_of(&authority.pubkey()).await.unwrap();
    assert_eq!(found.into_iter().map(|(address, _)| address).collect::<Vec<_>>(), [table]);
    assert_eq!(chain.tables_of(&world.authority.pubkey()).await.unwrap(), []);
    tables.release(named("a")).await.unwrap();
    tables.close_unused().await.unwrap();
    assert_eq!(tables.closed().await.unwrap(), [table]);
    world.check_all_closed("in the end").await;
    assert_eq!(chain.accounts(&[authority.pubkey()]).await.unwrap(), [None]);
}

#[tokio::test]
async fn the_store_keeps_a_table_with_its_first_transaction_and_closes_none_that_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let [authority, other, table] = [0, 1, 2].map(|number| keys(number..number + 1)[0]);
    let create = |byte: u8| TableTransaction {
        table,
        step: TableStep::Create,
        signature: Signature::from([byte; 64]),
        last_valid_block_height: u64::MAX,
        wire: vec![byte; 1_232],
    };
    store.table_planned(authority, create(1)).await.unwrap();
    store.table_planned(authority, create(2)).await.unwrap_err();
    store.table_signed(vec![create(1)]).await.unwrap();
    store.table_discovered(authority, table).await.unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.open_table_transactions(authority).await.unwrap(), [create(1)]);
    assert_eq!(store.open_table_transactions(other).await.unwrap(), []);
    store.table_settled(create(1).signature, TransactionOutcome::Landed { slot: 9 }).await.unwrap();
    assert_eq!(store.open_table_transactions(authority).await.unwrap(), []);

    let seen = |entries| SeenTable {
        address: table,
        status: TableStatus::Active,
        deactivation_slot: None,
        lamports: Lamports(5),
        absent_since_slot: None,
        entries,
    };
    store.tables_seen(vec![seen(keys(10..12))]).await.unwrap();
    // Whatever a lagging node says, what was there stays.
    for entries in [keys(10..15), keys(10..11)] {
        store.tables_seen(vec![seen(entries)]).await.unwrap();
    }
    store.reserve_keys(named("a"), keys(14..20)).await.unwrap();
    store.reserve_keys(named("a"), keys(14..20)).await.unwrap();
    store.reserve_keys(named("b"), keys(14..15)).await.unwrap();
    let [stored] = &store.tables(authority).await.unwrap()[..] else { panic!("one table") };
    assert_eq!((&stored.entries, stored.references, stored.unused_since_ms), (&keys(10..15), 2, None));
    assert_eq!((stored.origin, stored.status), (TableOrigin::Created, TableStatus::Active));
    assert!(!store.table_closing(table, true).await.unwrap());
    store.release_keys(named("a")).await.unwrap();
    assert!(!store.table_closing(table, true).await.unwrap());
    store.release_keys(named("b")).await.unwrap();
    assert!(store.tables(authority).await.unwrap()[0].unused_since_ms.is_some());
    assert!(store.table_closing(table, true).await.unwrap());
    // A status and its columns agree.
    let closed = SeenTable { status: TableStatus::Deactivating, ..seen(vec![]) };
    store.tables_seen(vec![closed]).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_lists_tables_and_closes_them() {
    let world = World::new().await;
    let (tables, _) = world.tables();
    let unused = tables.reserve(named("a"), &keys(0..256)).await.unwrap()[0].address;
    let needed = tables.reserve(named("b"), &keys(256..259)).await.unwrap()[0].address;
    tables.release(named("a")).await.unwrap();
    drop(tables);
    let json = async |args: &[&str]| -> serde_json::Value {
        let output = world.committor(&[args, &["--output", "json"]].concat()).await;
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{error}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let rent = world.rpc().rent().await.unwrap();
    let table = |table: Address, state: &str, entries: u64, references: u64| {
        let lamports = rent.empty_account_lamports + rent.lamports_per_byte * (56 + 32 * entries);
        serde_json::json!({
            "pubkey": table.to_string(), "origin": "created", "state": state, "deactivated_since_slot": null,
            "entries": entries, "references": references, "lamports": lamports,
        })
    };
    let list = json(&["tables", "list"]).await;
    assert_eq!(list["tables"][0], table(unused, "active", 256, 0));
    assert_eq!(list["tables"][1], table(needed, "active", 3, 3));
    let shown = world.committor(&["tables", "list"]).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(&unused.to_string()) && shown.contains("active"), "{shown}");

    // Nobody's table: nothing is done.
    let output = world.committor(&["tables", "close", &unused.to_string(), &keys(1..2)[0].to_string()]).await;
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("is not a lookup table of this authority"), "{error}");
    // What nobody needs; then one by name, and all that there are.
    let done = json(&["tables", "close"]).await;
    assert_eq!(done["deactivated"], serde_json::json!([unused.to_string()]));
    let list = json(&["tables", "list"]).await;
    assert!(list["tables"][0]["deactivated_since_slot"].is_u64(), "{list}");
    let done = json(&["tables", "close", &needed.to_string()]).await;
    assert_eq!(done["deactivated"], serde_json::json!([needed.to_string()]));
    let done = json(&["tables", "close", "--all", "--wait"]).await;
    assert_eq!(done["closed"].as_array().unwrap().len(), 2);
    assert_eq!(json(&["tables", "list"]).await["tables"], serde_json::json!([]));
    assert_eq!(json(&["tables", "list", "--all"]).await["tables"][1]["state"], "closed");
    world.check_all_closed("in the end").await;
}

/// Everything that a manager does, in order.
async fn life(tables: &Tables<FaultyChain>) {
    let reserve = async |name, range: std::ops::Range<u16>| {
        let serving = until_ok(async || tables.reserve(named(name), &keys(range.clone())).await).await;
        let served: BTreeSet<_> = serving.into_iter().flat_map(|table| table.addresses).collect();
        assert!(keys(range).iter().all(|key| served.contains(key)));
    };
    reserve("a", 0..40).await;
    reserve("b", 30..45).await;
    for name in ["a", "b"] {
        until_ok(async || tables.release(named(name)).await).await;
    }
    until_ok(async || tables.close_unused().await).await;
    until_ok(async || tables.closed().await).await;
}

/// The slot is asked for rarely while a cool-down is waited for: each time is a point to fail at.
fn rarely() -> TableSettings {
    TableSettings { slot_poll_interval: Duration::from_millis(400), ..TableSettings::default() }
}

/// How many points an undisturbed run passes.
async fn undisturbed_points() -> usize {
    let world = World::new().await;
    let (tables, chain) = world.faulty(Fault::None, usize::MAX, rarely());
    life(&tables).await;
    world.check_all_closed("undisturbed").await;
    chain.points.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail_anywhere_strand_nothing() {
    let points = undisturbed_points().await;
    let worlds = World::many(points).await;
    let run = |(at, world): (usize, World)| async move {
        let (tables, _) = world.faulty(Fault::Fail(1 + at % 3), at, rarely());
        life(&tables).await;
        world.check_all_closed(&format!("failures from point {at} of {points}")).await;
    };
    stream::iter(worlds.into_iter().enumerate()).for_each_concurrent(24, run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_dies_anywhere_strands_nothing() {
    let points = undisturbed_points().await;
    let worlds = World::many(points).await;
    let run = |(at, world): (usize, World)| async move {
        let (tables, chain) = world.faulty(Fault::Die, at, rarely());
        // How many calls a run makes varies a little: the last points may not be reached.
        tokio::select! {
            () = chain.reached.notified() => (),
            () = life(&tables) => (),
        }
        drop((tables, chain));
        let (tables, _) = world.faulty(Fault::None, usize::MAX, rarely());
        life(&tables).await;
        world.check_all_closed(&format!("death at point {at} of {points}")).await;
        let store = world.store();
        let open = store.open_table_transactions(world.authority.pubkey()).await.unwrap();
        assert_eq!(open, [], "death at point {at}: what became of every transaction is known");
    };
    stream::iter(worlds.into_iter().enumerate()).for_each_concurrent(24, run).await;
}
