//! A local validator with delegated accounts, a store, and a chain with a fault between it and the engine.

use std::{
    future::pending,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, CommitMode, Committor, EngineSettings, Signers, Store,
    chain::{
        AccountHeader, Chain, ChainError, Landed, RecentBlockhash, Rent, RpcChain, RpcSettings,
        SignedTransaction, Simulation, TransactionCost, TransactionFailure,
    },
    types::{BundleStatus, TransactionVersion},
};
use committor_localnet::{Localnet, LocalnetBuilder, OWNER_PROGRAM_ID, Validator};
use committor_sdk::{
    address,
    delegation::{self, Delegation},
};
use solana_account::Account;
use solana_address::Address;
use solana_hash::Hash;
use solana_instruction_error::InstructionError;
use solana_keypair::Keypair;
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;
use tokio::sync::{Notify, watch};

/// What the chain does at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// This call and as many after it fail, as on a node that answers nonsense.
    Fail(usize),
    /// The call never comes back, and the engine is stopped.
    Die,
}

/// Holds transactions back until it is opened.
pub struct Gate {
    open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    /// Lets everything through, from here on.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until `count` transactions wait at the gate.
    pub async fn holds(&self, count: usize) {
        self.waiting.subscribe().wait_for(|waiting| *waiting == count).await.unwrap();
    }

    async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
        self.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

/// A chain with one fault. Every call has two points: before it has any effect, and after it had.
pub struct FaultyChain {
    inner: RpcChain,
    fault: Fault,
    at: usize,
    points: Arc<AtomicUsize>,
    reached: Arc<Notify>,
    gate: Arc<Gate>,
    /// How many transactions are refused before one is let through.
    refuse: AtomicUsize,
    /// Whether transactions are lost on their way, for good.
    lose: bool,
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
    fn saw(&self, slot: u64) {
        self.inner.saw(slot);
    }

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

    async fn finalized_slot(&self) -> Result<u64, ChainError> {
        faulty!(self, self.inner.finalized_slot())
    }

    async fn genesis_hash(&self) -> Result<Hash, ChainError> {
        // Asked once, before there is anything that could be lost.
        self.inner.genesis_hash().await
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
        self.gate.pass().await;
        let refuse = self.refuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if refuse.is_ok() {
            let error = TransactionError::InstructionError(0, InstructionError::GenericError);
            let failure = Box::new(TransactionFailure { error, program_error: None, logs: Vec::new() });
            return Err(ChainError::Refused { signature, failure });
        }
        if self.lose {
            return Err(ChainError::Expired { signature });
        }
        self.point().await?;
        let landed = self.inner.land(transaction).await?;
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

/// A local validator with delegated accounts, and a store.
pub struct World {
    pub localnet: Arc<Localnet>,
    pub authority: Arc<Keypair>,
    lot: u8,
    folder: tempfile::TempDir,
}

/// What tests start from: v1 transactions, and no time lost between attempts.
pub fn settings() -> EngineSettings {
    EngineSettings {
        version: Some(TransactionVersion::V1),
        first_retry_delay: Duration::from_millis(5),
        ..EngineSettings::default()
    }
}

/// An authority with lamports, to whom accounts are delegated.
pub fn prepare(builder: LocalnetBuilder, lot: u8) -> LocalnetBuilder {
    let authority = authority(lot).pubkey();
    let builder = builder.airdrop(authority, 1_000_000_000_000);
    (1..=8).fold(builder, |builder, byte| builder.delegated(account(lot, byte), authority, vec![0; 100]))
}

fn authority(lot: u8) -> Keypair {
    Keypair::new_from_array([lot + 1; 32])
}

fn account(lot: u8, byte: u8) -> Address {
    let mut bytes = [byte; 32];
    bytes[0] = lot;
    Address::new_from_array(bytes)
}

pub fn state(len: usize, seed: u8) -> Arc<[u8]> {
    (0..len).map(|index| (index as u8).wrapping_mul(7).wrapping_add(seed)).collect()
}

impl World {
    pub async fn new(validator: Validator) -> Self {
        let (localnet, lot) = validator.start(prepare).await.unwrap();
        Self { localnet, authority: Arc::new(authority(lot)), lot, folder: tempfile::tempdir().unwrap() }
    }

    /// The first eight are delegated to the authority; there are no others.
    pub fn account(&self, byte: u8) -> Address {
        account(self.lot, byte)
    }

    /// A bundle of one account, with a state of that length.
    pub fn bundle(&self, id: u64, byte: u8, len: usize) -> CommitBundle {
        let commit = AccountCommit { account: self.account(byte), state: state(len, byte) };
        CommitBundle::new(BundleId(id), vec![commit])
    }

    /// Such a bundle alone.
    pub fn one(&self, byte: u8, len: usize) -> Changeset {
        Changeset { bundles: vec![self.bundle(1, byte, len)] }
    }

    /// The store's file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("committor.db")
    }

    pub fn store(&self) -> Store {
        Store::open(&self.path()).unwrap()
    }

    pub fn rpc(&self) -> RpcChain {
        RpcChain::new(RpcSettings {
            websocket_url: Some(self.localnet.ws_url().to_owned()),
            ..RpcSettings::new(self.localnet.rpc_url())
        })
    }

    /// A committor whose chain has a fault; what counts its points, and what tells that the fault was reached.
    pub async fn committor(
        &self,
        fault: Fault,
        at: usize,
    ) -> (Committor<FaultyChain>, Arc<AtomicUsize>, Arc<Notify>) {
        let (points, reached) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let chain =
            FaultyChain { fault, at, points: points.clone(), reached: reached.clone(), ..self.chain() };
        (self.start(chain, settings()).await, points, reached)
    }

    /// A committor whose transactions wait at a gate.
    pub async fn gated(&self, settings: EngineSettings) -> (Committor<FaultyChain>, Arc<Gate>) {
        let gate = Arc::new(Gate { open: watch::Sender::new(false), waiting: watch::Sender::new(0) });
        let chain = FaultyChain { gate: gate.clone(), ..self.chain() };
        (self.start(chain, settings).await, gate)
    }

    /// A committor whose first transaction is refused.
    pub async fn refusing(&self, transactions: usize) -> Committor<FaultyChain> {
        self.start(FaultyChain { refuse: AtomicUsize::new(transactions), ..self.chain() }, settings()).await
    }

    /// A committor whose transactions never land.
    pub async fn expiring(&self, settings: EngineSettings) -> Committor<FaultyChain> {
        self.start(FaultyChain { lose: true, ..self.chain() }, settings).await
    }

    /// A committor without faults.
    pub async fn sound(&self, settings: EngineSettings) -> Committor<FaultyChain> {
        self.start(self.chain(), settings).await
    }

    fn chain(&self) -> FaultyChain {
        FaultyChain {
            inner: self.rpc(),
            fault: Fault::None,
            at: usize::MAX,
            points: Arc::default(),
            reached: Arc::default(),
            gate: Arc::new(Gate { open: watch::Sender::new(true), waiting: watch::Sender::new(0) }),
            refuse: AtomicUsize::new(0),
            lose: false,
        }
    }

    async fn start(&self, chain: FaultyChain, settings: EngineSettings) -> Committor<FaultyChain> {
        let signers = Signers { payer: self.authority.clone(), authority: self.authority.clone() };
        Committor::with_chain(chain, self.store(), signers, settings).await.unwrap()
    }

    /// A bundle for every way to the chain: two small ones that can share a transaction, one through a buffer that waits for
    /// the first, one that is staged, and two that hand their accounts back, inline and through a buffer.
    pub fn changeset(&self) -> Changeset {
        let commit = |byte, state| AccountCommit { account: self.account(byte), state };
        let bundle = |id, commits| CommitBundle::new(BundleId(id), commits);
        Changeset {
            bundles: vec![
                bundle(u64::MAX, vec![commit(1, state(50, 1)), commit(2, state(300, 2))]),
                bundle(0, vec![commit(2, state(9_000, 3)), commit(3, state(0, 0))]),
                bundle(7, vec![commit(4, state(100, 4))]),
                bundle(8, vec![commit(5, state(5_000, 5)), commit(6, state(10, 6))]).mode(CommitMode::Stage),
                bundle(9, vec![commit(7, state(60, 7))]).mode(CommitMode::Undelegate),
                bundle(10, vec![commit(8, state(11_000, 8))]).mode(CommitMode::Undelegate),
            ],
        }
    }

    /// Finalizes what is staged, as somebody would who has looked at it.
    pub async fn finalize_all<C: Chain>(&self, committor: &Committor<C>) {
        for bundle in self.store().staged().await.unwrap() {
            committor.finalize(bundle.key).await.unwrap().finished().await.unwrap();
        }
    }

    /// The end that every run must come to.
    pub async fn check(&self, context: &str) {
        let store = self.store();
        let report = store.report(None).await.unwrap();
        for bundle in &report.bundles {
            assert_eq!(
                bundle.status,
                BundleStatus::Landed,
                "{context}: {}: {:?}",
                bundle.bundle,
                bundle.error
            );
        }
        let chain = self.rpc();
        let expected = [
            (1, state(50, 1), Some(1)),
            (2, state(9_000, 3), Some(2)),
            (3, state(0, 0), Some(1)),
            (4, state(100, 4), Some(1)),
            (5, state(5_000, 5), Some(1)),
            (6, state(10, 6), Some(1)),
            (7, state(60, 7), None),
            (8, state(11_000, 8), None),
        ];
        for (byte, state, nonce) in expected {
            let address = self.account(byte);
            let found = chain.accounts(&[address, address::record(&address)]).await.unwrap();
            let account = found[0].as_ref().unwrap();
            assert_eq!(account.data, &state[..], "{context}: account {byte}");
            let owner = if nonce.is_some() { delegation::ID } else { OWNER_PROGRAM_ID };
            assert_eq!(account.owner, owner, "{context}: account {byte}");
            let record = found[1].as_ref().map(|record| Delegation::read(&record.data).unwrap());
            let record = record.map(|record| (record.nonce, record.staged_nonce));
            assert_eq!(
                record,
                nonce.map(|nonce| (nonce, 0)),
                "{context}: account {byte} is committed once per bundle"
            );
        }
        for bundle in &report.bundles {
            let steps: Vec<&str> = bundle.steps.iter().map(|step| step.step.as_str()).collect();
            let all = ["commit", "finalize", "undelegate"];
            let expected = if bundle.mode == "undelegate" { &all[..] } else { &all[..2] };
            // What was found to have landed without a trace of the transaction has no proof.
            assert!(steps.is_empty() || steps == expected || steps == ["commit"], "{context}: {steps:?}");
            let buffers = store.buffers(bundle.key).await.unwrap();
            let addresses: Vec<Address> = buffers.into_iter().map(|(_, address)| address).collect();
            let found = chain.accounts(&addresses).await.unwrap();
            assert!(found.iter().all(Option::is_none), "{context}: a buffer stayed");
        }
    }
}
