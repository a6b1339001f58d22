//! The engine on a real local validator, through a chain that fails, lies or dies at a chosen point.
//!
//! Whatever happens where: every bundle lands, in order, once, and no buffer's rent stays behind.

use std::{
    future::pending,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Committor, EngineSettings, Event, Signers, Store,
    chain::{
        AccountHeader, Chain, ChainError, Landed, RecentBlockhash, Rent, RpcChain, RpcSettings,
        SignedTransaction, Simulation, TransactionCost, TransactionFailure,
    },
    plan::buffer_seed,
    types::{BundleStatus, TransactionVersion},
};
use committor_localnet::Localnet;
use committor_sdk::{address, delegation::Delegation};
use futures::{StreamExt, stream};
use solana_account::Account;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use tokio::sync::Notify;

/// What the chain does at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    None,
    /// This call and as many after it fail, as on a node that answers nonsense.
    Fail(usize),
    /// The call never comes back, and the engine is stopped.
    Die,
}

/// A chain with one fault. Every call has two points: before it has any effect, and after it had.
struct FaultyChain {
    inner: RpcChain,
    fault: Fault,
    at: usize,
    points: Arc<AtomicUsize>,
    reached: Arc<Notify>,
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

/// A local validator with three delegated accounts, and a store.
struct World {
    localnet: Localnet,
    authority: Arc<Keypair>,
    folder: tempfile::TempDir,
}

fn account(byte: u8) -> Address {
    Address::new_from_array([byte; 32])
}

fn state(len: usize, seed: u8) -> Arc<[u8]> {
    (0..len).map(|index| (index as u8).wrapping_mul(7).wrapping_add(seed)).collect()
}

impl World {
    async fn new() -> Self {
        let authority = Arc::new(Keypair::new());
        let mut builder = Localnet::builder().airdrop(authority.pubkey(), 1_000_000_000_000);
        for byte in 1..=3 {
            builder = builder.delegated(account(byte), authority.pubkey(), vec![0; 100]);
        }
        let localnet = builder.start().await.unwrap();
        Self { localnet, authority, folder: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> Store {
        Store::open(&Path::new(self.folder.path()).join("committor.db")).unwrap()
    }

    fn rpc(&self) -> RpcChain {
        RpcChain::new(RpcSettings {
            websocket_url: Some(self.localnet.ws_url().to_owned()),
            ..RpcSettings::new(self.localnet.rpc_url())
        })
    }

    /// A committor whose chain has a fault; what counts its points, and what tells that the fault was reached.
    async fn committor(
        &self,
        fault: Fault,
        at: usize,
    ) -> (Committor<FaultyChain>, Arc<AtomicUsize>, Arc<Notify>) {
        let (points, reached) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let chain =
            FaultyChain { inner: self.rpc(), fault, at, points: points.clone(), reached: reached.clone() };
        let signers = Signers { payer: self.authority.clone(), authority: self.authority.clone() };
        let settings = EngineSettings {
            version: Some(TransactionVersion::V1),
            first_retry_delay: Duration::from_millis(5),
            ..EngineSettings::default()
        };
        let committor = Committor::with_chain(chain, self.store(), signers, settings).await.unwrap();
        (committor, points, reached)
    }

    /// Two bundles that share an account; one goes inline, the other through a buffer.
    fn changeset() -> Changeset {
        let commit = |byte, state| AccountCommit { account: account(byte), state };
        let first = CommitBundle {
            id: BundleId(u64::MAX),
            commits: vec![commit(1, state(50, 1)), commit(2, state(300, 2))],
        };
        let second = CommitBundle {
            id: BundleId(0),
            commits: vec![commit(2, state(9_000, 3)), commit(3, state(0, 0))],
        };
        Changeset { bundles: vec![first, second] }
    }

    /// The end that every run must come to.
    async fn check(&self, context: &str) {
        let store = self.store();
        let report = store.report(None).await.unwrap();
        for bundle in &report.bundles {
            assert_eq!(bundle.status, BundleStatus::Landed, "{context}: {:?}", bundle.error);
        }
        let chain = self.rpc();
        let expected = [(1, state(50, 1), 1), (2, state(9_000, 3), 2), (3, state(0, 0), 1)];
        for (byte, state, nonce) in expected {
            let address = account(byte);
            let found = chain.accounts(&[address, address::record(&address)]).await.unwrap();
            assert_eq!(found[0].as_ref().unwrap().data, &state[..], "{context}: account {byte}");
            let record = Delegation::read(&found[1].as_ref().unwrap().data).unwrap();
            assert_eq!(record.nonce, nonce, "{context}: account {byte} is committed once per bundle");
        }
        for bundle in &report.bundles {
            for commit in store.bundle(bundle.key).await.unwrap().commits {
                let seed = buffer_seed(&commit.account, commit.commit_id, &commit.state);
                let buffer = address::buffer(&self.authority.pubkey(), &seed).unwrap();
                assert_eq!(chain.accounts(&[buffer]).await.unwrap(), [None], "{context}: a buffer stayed");
            }
        }
    }
}

/// How many points an undisturbed run passes.
async fn undisturbed_points() -> usize {
    let world = World::new().await;
    let (committor, points, _) = world.committor(Fault::None, usize::MAX).await;
    committor.commit(World::changeset()).await.unwrap().finished().await.unwrap();
    committor.shutdown().await;
    world.check("undisturbed").await;
    points.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail_anywhere_and_for_however_long_change_nothing_about_the_end() {
    let points = undisturbed_points().await;
    let run = |at| async move {
        // 7 failures are more than the attempts that a bundle has: an outage is waited out.
        for count in [1, 7] {
            let world = World::new().await;
            let (committor, ..) = world.committor(Fault::Fail(count), at).await;
            committor.commit(World::changeset()).await.unwrap().finished().await.unwrap();
            committor.shutdown().await;
            world.check(&format!("{count} failures from point {at} of {points}")).await;
        }
    };
    stream::iter(0..points).for_each_concurrent(8, run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_dies_anywhere_comes_to_the_same_end_after_a_restart() {
    let points = undisturbed_points().await;
    let run = |at| async move {
        let world = World::new().await;
        let (committor, _, reached) = world.committor(Fault::Die, at).await;
        let ticket = committor.commit(World::changeset()).await.unwrap();
        // How many calls a run makes varies a little: the last points may not be reached.
        tokio::select! {
            () = reached.notified() => (),
            finished = ticket.finished() => drop(finished.unwrap()),
        }
        committor.shutdown().await;
        drop(committor);
        let (committor, ..) = world.committor(Fault::None, usize::MAX).await;
        committor.idle().await;
        committor.shutdown().await;
        world.check(&format!("death at point {at} of {points}")).await;
    };
    stream::iter(0..points).for_each_concurrent(8, run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_can_not_land_fails_alone_and_says_why() {
    let world = World::new().await;
    let (committor, ..) = world.committor(Fault::None, usize::MAX).await;
    let mut events = committor.events();
    let nobody = account(99);
    let commit = |account, len| AccountCommit { account, state: state(len, 1) };
    let changeset = Changeset {
        bundles: vec![
            CommitBundle { id: BundleId(1), commits: vec![commit(account(1), 10), commit(nobody, 10)] },
            CommitBundle { id: BundleId(2), commits: vec![commit(account(1), 20)] },
        ],
    };
    let ticket = committor.commit(changeset).await.unwrap();
    let keys = ticket.bundles().to_vec();
    let report = ticket.finished().await.unwrap();
    let statuses: Vec<BundleStatus> = report.bundles.iter().map(|bundle| bundle.status).collect();
    assert_eq!(statuses, [BundleStatus::Failed, BundleStatus::Landed]);
    let error = report.bundles[0].error.as_deref().unwrap();
    assert!(error.contains(&nobody.to_string()) && error.contains("does not exist"), "{error}");
    assert_eq!(report.bundles[0].transactions, 0, "nothing was sent for it");
    let mut ended = Vec::new();
    while ended.len() < 2 {
        if let Event::Ended { bundle, status } = events.recv().await.unwrap() {
            ended.push((bundle, status));
        }
    }
    assert_eq!(ended, [(keys[0].1, BundleStatus::Failed), (keys[1].1, BundleStatus::Landed)]);
    let verification = committor.verify(report.changeset).await.unwrap();
    assert_eq!((verification.equal.as_slice(), verification.mismatches.len()), ([account(1)].as_slice(), 0));
    committor.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_since_is_found_when_it_is_read_back() {
    let world = World::new().await;
    let (committor, ..) = world.committor(Fault::None, usize::MAX).await;
    let commit = |len| CommitBundle {
        id: BundleId(1),
        commits: vec![AccountCommit { account: account(1), state: state(len, 1) }],
    };
    let first =
        committor.commit(Changeset { bundles: vec![commit(10)] }).await.unwrap().finished().await.unwrap();
    committor.commit(Changeset { bundles: vec![commit(11)] }).await.unwrap().finished().await.unwrap();
    let verification = committor.verify(first.changeset).await.unwrap();
    assert_eq!(verification.equal, []);
    assert_eq!(verification.mismatches[0].reason, "it has 11 bytes, committed were 10");
    committor.shutdown().await;
}
