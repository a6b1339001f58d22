//! What is durable: changesets, their outcomes, and every transaction that was signed for them. The only module with SQL.
//!
//! One writer thread owns the connection and runs what is waiting in one SQLite transaction (group commit): a call returns
//! once its change is on disk.

mod error;
mod migrations;
mod read;
mod report;
mod tables;
mod write;
mod writer;

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use solana_address::Address;
use solana_signature::Signature;

pub use error::StoreError;
pub use report::{BundleReport, ChangesetReport, ChangesetSummary, CommitReport, StepReport};
pub use tables::{SeenTable, StoredTable, TableTransaction};
use writer::Writer;

use crate::types::{
    BundleId, BundleKey, BundleStatus, ChangesetId, CommitId, Lamports, Nonce, Stage, Strategy,
};

/// One commit of a stored bundle.
#[derive(Clone, Debug)]
pub struct StoredCommit {
    /// The delegated account.
    pub account: Address,
    /// The commit's id on chain.
    pub commit_id: CommitId,
    /// The whole new state.
    pub state: Arc<[u8]>,
}

/// A bundle with all that is needed to apply it.
#[derive(Clone, Debug)]
pub struct StoredBundle {
    /// Its key in the store.
    pub key: BundleKey,
    /// Its changeset.
    pub changeset: ChangesetId,
    /// The caller's id.
    pub id: BundleId,
    /// Where it stands.
    pub status: BundleStatus,
    /// Its commits, in order.
    pub commits: Vec<StoredCommit>,
}

/// What was decided for one commit.
#[derive(Clone, Copy, Debug)]
pub struct CommitDecision {
    /// The delegation of the account that it is made for.
    pub session: u64,
    /// The nonce it takes.
    pub nonce: Nonce,
    /// How its bytes travel.
    pub strategy: Strategy,
    /// Lamports that the plan moves into its account and buffer.
    pub rent: Lamports,
}

/// A transaction that is about to be sent.
#[derive(Clone, Debug)]
pub struct NewTransaction {
    /// What it is for.
    pub stage: Stage,
    /// Its first signature.
    pub signature: Signature,
    /// When it expires.
    pub last_valid_block_height: u64,
    /// Which commits of the bundle it serves, by position.
    pub commits: Vec<usize>,
}

/// A transaction that may have landed, as far as the store knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Its first signature.
    pub signature: Signature,
    /// When it expires.
    pub last_valid_block_height: u64,
    /// Whether what became of it is unknown.
    pub unknown: bool,
}

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// It is in a block.
    Landed {
        /// The block's slot.
        slot: u64,
        /// Compute units used, if the node still tells.
        compute_units: Option<u64>,
        /// Fee paid, if the node still tells.
        fee: Option<Lamports>,
    },
    /// It failed, and why.
    Failed(String),
    /// It can't land any more.
    Expired,
}

/// How a bundle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleEnd {
    /// Applied, by this transaction if it is known.
    Landed(Option<Signature>),
    /// Not applied, and why.
    Failed(String),
}

/// A handle to a store file. Cheap to clone; the file is closed when the last handle is dropped.
#[derive(Clone)]
pub struct Store {
    writer: Arc<Writer>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at `path`, and makes or migrates it if need be.
    ///
    /// # Errors
    /// [`StoreError`] if the file can't be opened, is another application's, or comes from a newer version; it is left
    /// untouched then.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = |source| StoreError::Open { path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(open)?;
        connection.execute_batch("PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON;").map_err(open)?;
        // Before the first pragma that writes: what is not ours must stay as it is.
        let version = migrations::version(&connection, path)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;").map_err(open)?;
        migrations::run(&mut connection, version, path)?;
        Ok(Self { writer: Arc::new(Writer::start(connection)?) })
    }

    /// Makes a changeset durable. Each commit gets its id here.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written; nothing of it is stored then.
    pub async fn accept(
        &self,
        changeset: crate::types::Changeset,
    ) -> Result<(ChangesetId, Vec<StoredBundle>), StoreError> {
        self.writer.run("accept a changeset", move |sql| write::accept(sql, &changeset)).await
    }

    /// All bundles that have not ended, in the order of submission.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn unfinished(&self) -> Result<Vec<StoredBundle>, StoreError> {
        self.writer.run("read unfinished bundles", read::unfinished).await
    }

    /// One bundle.
    ///
    /// # Errors
    /// [`StoreError::NoBundle`] if there is none.
    pub async fn bundle(&self, key: BundleKey) -> Result<StoredBundle, StoreError> {
        self.writer.run("read a bundle", move |sql| read::bundle(sql, key)).await
    }

    /// Records how a bundle is going to be applied.
    ///
    /// # Errors
    /// [`StoreError::OtherSession`] if an account was delegated anew since the first plan; [`StoreError`] if it could not
    /// be written, or the bundle has ended.
    pub async fn decide(&self, key: BundleKey, decisions: Vec<CommitDecision>) -> Result<(), StoreError> {
        self.writer.run("record a plan", move |sql| write::decide(sql, key, &decisions)).await
    }

    /// Records transactions before they are sent; one of [`Stage::Commit`] moves the bundle on.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be written, or the bundle has ended.
    pub async fn signed(&self, key: BundleKey, transactions: Vec<NewTransaction>) -> Result<(), StoreError> {
        self.writer.run("record transactions", move |sql| write::signed(sql, key, &transactions)).await
    }

    /// Records what became of a transaction.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn settled(&self, signature: Signature, outcome: TransactionOutcome) -> Result<(), StoreError> {
        self.writer.run("record an outcome", move |sql| write::settled(sql, signature, &outcome)).await
    }

    /// Records the end of a bundle.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written, or the bundle has ended already.
    pub async fn end(&self, key: BundleKey, end: BundleEnd) -> Result<(), StoreError> {
        self.writer.run("record the end of a bundle", move |sql| write::end(sql, key, &end)).await
    }

    /// The committing transactions of a bundle that are not known to have failed, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn open_commits(&self, key: BundleKey) -> Result<Vec<OpenTransaction>, StoreError> {
        self.writer.run("read transactions", move |sql| read::open_commits(sql, key)).await
    }

    /// Records that an account was read back and is, byte for byte, what was committed.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn verified(&self, key: BundleKey, account: Address) -> Result<(), StoreError> {
        self.writer.run("record a verification", move |sql| write::verified(sql, key, &account)).await
    }

    /// Everything about one changeset; about the newest if none is named.
    ///
    /// # Errors
    /// [`StoreError::NoChangeset`] if there is none.
    pub async fn report(&self, changeset: Option<ChangesetId>) -> Result<ChangesetReport, StoreError> {
        self.writer.run("read a changeset", move |sql| report::changeset(sql, changeset)).await
    }

    /// All changesets, the newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn changesets(&self, limit: u32) -> Result<Vec<ChangesetSummary>, StoreError> {
        self.writer.run("list changesets", move |sql| report::changesets(sql, limit)).await
    }
}
