//! Where the tests' stores are, and what the tests put into them.

use std::sync::Arc;

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Lamports, Store,
    store::{CommitDecision, NewTransaction, TransactionOutcome},
    types::{BundleKey, Method, Nonce, Stage, Strategy, TransactionVersion},
};
use solana_address::Address;
use solana_signature::Signature;
use tempfile::TempDir;

/// A place for one store.
pub enum Place {
    Sqlite(TempDir),
}

impl Place {
    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// Opens the store that is there.
    pub async fn open(&self) -> Store {
        match self {
            Self::Sqlite(folder) => Store::open(&folder.path().join("s.db")).unwrap(),
        }
    }
}

/// Runs a test on an empty place of every kind that this machine has.
pub async fn on_each(test: impl AsyncFn(Place)) {
    test(Place::sqlite()).await;
}

pub fn bundle(id: u64, accounts: &[u8]) -> CommitBundle {
    let commit = |byte: &u8| AccountCommit {
        account: Address::new_from_array([*byte; 32]),
        state: Arc::from(vec![*byte; usize::from(*byte)]),
    };
    CommitBundle::new(BundleId(id), accounts.iter().map(commit).collect())
}

pub fn changeset(bundles: &[CommitBundle]) -> Changeset {
    Changeset { bundles: bundles.to_vec() }
}

pub fn signature(byte: u8) -> Signature {
    Signature::from([byte; 64])
}

pub fn transaction(key: BundleKey, stage: Stage, byte: u8, commits: &[usize]) -> NewTransaction {
    NewTransaction {
        stage,
        signature: signature(byte),
        last_valid_block_height: u64::MAX,
        serves: commits.iter().map(|commit| (key, *commit)).collect(),
    }
}

pub const LANDED: TransactionOutcome = TransactionOutcome::Landed { slot: 9 };

/// Records that a transaction landed, and what it cost.
pub async fn landed(store: &Store, signature: Signature, compute_units: u64) {
    store.settled(signature, LANDED).await.unwrap();
    store.cost(signature, compute_units, Lamports(5_000)).await.unwrap();
}

pub fn decision() -> CommitDecision {
    let strategy = Strategy { method: Method::Buffer, version: TransactionVersion::V1, tables: false };
    CommitDecision { session: u64::MAX, nonce: Nonce(u64::MAX), strategy, buffer: None, rent: Lamports(7) }
}
