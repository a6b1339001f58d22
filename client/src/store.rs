//! What is durable: changesets, their outcomes, and every transaction that was signed for them. The only module with SQL.
//!
//! One writer thread runs what is waiting in one transaction (group commit): a call returns once its change is committed.
//! Reads have connections of their own. Statements know the database only by the traits of `sql`.
//!
//! # What is durable when
//!
//! Every change survives the end of the process from the moment in which its call returns. A power cut, or a machine that
//! stops, is another matter: surviving it takes a sync, which is most of what a small change costs.
//!
//! | change | survives a power cut | what a power cut before that costs |
//! |---|---|---|
//! | [`Store::accept`] | at once | the caller was told that it is durable |
//! | [`Store::signed`] | at once | a transaction could land that nobody knows of |
//! | [`Store::finalize`], [`Store::retry`] | at once | the caller was told that it will be worked on |
//! | [`Store::abandon`] | at once | the caller was told that it is never tried again |
//! | [`Store::identify`] | at once | bundles could be worked on for another cluster |
//! | [`Store::end`] as failed, [`Store::supersede`] | at once | the chain does not know of it: a bundle whose caller was told that it will not land could land |
//! | [`Store::end`] otherwise | within a second | the chain knows: the next start finds the bundle landed, or staged |
//! | [`Store::decide`] | with the first `signed` of the plan | the bundle is planned anew; nothing of the plan was sent |
//! | [`Store::settled`], [`Store::cost`] | within a second | the chain is asked again; what a transaction cost may stay unknown |
//! | [`Store::verified`] | within a second | the account has to be read back again |
//! | [`Store::prune`] | within a second | what was pruned is there again, and pruned again |
//! | [`Store::table_planned`], [`Store::table_signed`] | at once | a table could hold rent that nobody knows of |
//! | [`Store::reserve_keys`], [`Store::release_keys`] under a name | at once | the caller was told that it is done |
//! | the same for a bundle, [`Store::release_ended`] | within a second | the bundle reserves anew before it signs; what has ended is released at the next start |
//! | [`Store::table_closing`] | at once; with `unless_used` within a second | the caller was told; upkeep marks it again |
//! | [`Store::table_settled`], [`Store::tables_seen`], [`Store::table_discovered`] | within a second | the chain is asked again |
//!
//! One log holds all changes in their order: a sync makes every earlier change durable too, and what a power cut takes is
//! always the end of the log. So a group with one change that has to survive makes all changes of the group survive, and
//! a store never has a change without those before it.

mod action;
mod audit;
mod error;
mod find;
mod identity;
mod migrations;
mod read;
mod reader;
mod report;
mod retention;
mod sql;
mod sqlite;
mod tables;
mod write;
mod writer;

use std::{path::Path, sync::Arc};

use solana_address::Address;
use solana_signature::Signature;

pub use error::{DatabaseError, StoreError};
pub use find::{BundleFilter, Totals};
pub use identity::Identity;
use reader::{READERS, Readers};
pub use report::{BundleReport, ChangesetReport, ChangesetSummary, CommitReport, StepReport};
pub use retention::Pruned;
use sql::{Durability, Sql};
pub use tables::{SeenTable, StoredTable, TableTransaction};
use writer::Writer;

use crate::types::{
    Action, BundleId, BundleKey, BundleStatus, Changeset, ChangesetId, CommitId, CommitMode, Lamports, Nonce,
    Stage, Strategy,
};

/// What accepting does, for errors.
const ACCEPT: &str = "accept a changeset";

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
    /// How far it goes.
    pub mode: CommitMode,
    /// Where it stands.
    pub status: BundleStatus,
    /// When it was accepted, or asked for again, in milliseconds since 1970.
    pub asked_at_ms: i64,
    /// Its commits, in order.
    pub commits: Vec<StoredCommit>,
    /// Instructions that ride along.
    pub actions: Vec<Action>,
}

/// A bundle without its states: what it takes to decide when it is worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedBundle {
    /// Its key in the store.
    pub key: BundleKey,
    /// Its changeset.
    pub changeset: ChangesetId,
    /// The caller's id.
    pub id: BundleId,
    /// Where it stands.
    pub status: BundleStatus,
    /// Its accounts, in order.
    pub accounts: Vec<Address>,
    /// How many bytes its states have.
    pub state_bytes: u64,
    /// Whether it has nothing but states that are to be finalized: a later bundle of the same accounts can take its place.
    pub is_plain: bool,
}

/// A bundle that was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The bundle's position in its changeset.
    pub position: usize,
    /// Why, causes included.
    pub reason: String,
}

/// The last state of an account that the store knows to have landed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedState {
    /// The delegation that it was committed to.
    pub session: u64,
    /// The nonce that it took.
    pub nonce: Nonce,
    /// Its commit's id.
    pub commit_id: CommitId,
    /// The state.
    pub state: Arc<[u8]>,
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
    /// The buffer they travel through, if they do.
    pub buffer: Option<Address>,
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
    /// Which commits it serves: bundle, and position in it.
    pub serves: Vec<(BundleKey, usize)>,
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
    },
    /// It failed, and why.
    Failed(String),
    /// It can't land any more.
    Expired,
}

/// The last commit of an account that landed from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLanding {
    /// The account.
    pub account: Address,
    /// The commit's bundle.
    pub bundle: BundleKey,
    /// How far that went.
    pub mode: CommitMode,
    /// The delegation that the commit was made for.
    pub session: u64,
    /// The commit's nonce.
    pub nonce: Nonce,
    /// The commit's id.
    pub commit_id: CommitId,
    /// The state.
    pub state: Arc<[u8]>,
    /// Whether there are bundles of the account that have not ended.
    pub unfinished: bool,
}

/// How the work on a bundle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleEnd {
    /// Staged, by this transaction if it is known.
    Staged(Option<Signature>),
    /// What is staged could not be applied for now, and why.
    Postponed(String),
    /// Applied, by this transaction if it is known.
    Landed(Option<Signature>),
    /// Not applied, and why.
    Failed(String),
}

/// A handle to a store file. Cheap to clone; the file is closed when the last handle is dropped.
#[derive(Clone)]
pub struct Store {
    readers: Arc<Readers>,
    writer: Arc<Writer>,
    /// How errors call it.
    name: Arc<str>,
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
        let name: Arc<str> = sqlite::name(path).into();
        let writing = sqlite::open(path)?;
        let reading = (0..READERS).map(|_| Ok(Box::new(sqlite::reading(path)?) as Box<dyn Sql + Send>));
        let readers = Readers::start(reading.collect::<Result<_, StoreError>>()?, name.clone())?;
        let writer = Writer::start(Box::new(writing), name.clone())?;
        Ok(Self { readers: Arc::new(readers), writer: Arc::new(writer), name })
    }

    /// Makes a changeset durable. Each commit gets its id here. Bundles that were refused are recorded as failed, and are
    /// not among those returned.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written; nothing of it is stored then.
    pub async fn accept(
        &self,
        changeset: Changeset,
        refused: Vec<Refusal>,
    ) -> Result<(ChangesetId, Vec<QueuedBundle>), StoreError> {
        self.writer.run(ACCEPT, Durability::Power, move |sql| write::accept(sql, &changeset, &refused)).await
    }

    /// As [`Self::accept`], and calls `then` once the changeset is on disk: calls come one after the other, in the order of
    /// the keys. Returns what `then` does.
    ///
    /// # Errors
    /// As [`Self::accept`]; `then` is not called.
    pub async fn accept_then<T: Send + 'static>(
        &self,
        changeset: Changeset,
        refused: Vec<Refusal>,
        then: impl FnOnce(ChangesetId, Vec<QueuedBundle>) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |sql: &dyn Sql| write::accept(sql, &changeset, &refused);
        self.writer
            .run_and(ACCEPT, Durability::Power, work, |(changeset, bundles)| then(changeset, bundles))
            .await
    }

    /// All bundles that are to be worked on, in the order of submission.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn unfinished(&self) -> Result<Vec<QueuedBundle>, StoreError> {
        self.readers.run("read unfinished bundles", read::unfinished).await
    }

    /// One bundle.
    ///
    /// # Errors
    /// [`StoreError::NoBundle`] if there is none.
    pub async fn bundle(&self, key: BundleKey) -> Result<StoredBundle, StoreError> {
        self.readers.run("read a bundle", move |sql| read::bundle(sql, key)).await
    }

    /// The last state of an account that landed here.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be read.
    pub async fn last_landed(&self, account: Address) -> Result<Option<LandedState>, StoreError> {
        self.readers
            .run("read the last state of an account", move |sql| read::last_landed(sql, &account))
            .await
    }

    /// Accounts that have commits here, in the order of their addresses' bytes: those after `after`, `limit` at most.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn accounts_after(
        &self,
        after: Option<Address>,
        limit: u32,
    ) -> Result<Vec<Address>, StoreError> {
        self.readers.run("list accounts", move |sql| audit::accounts(sql, after, limit)).await
    }

    /// What landed last for each of these accounts; those that nothing landed for are left out.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn landings(&self, accounts: Vec<Address>) -> Result<Vec<StoredLanding>, StoreError> {
        let read = move |sql: &dyn sql::Sql| {
            let landings = accounts.into_iter().map(|account| audit::landing(sql, account));
            landings.filter_map(Result::transpose).collect()
        };
        self.readers.run("read what landed last", read).await
    }

    /// The highest slot in which a transaction is known to have landed of a bundle or of the last ones before it that commit
    /// to its accounts.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be read.
    pub async fn last_slot(&self, key: BundleKey) -> Result<Option<u64>, StoreError> {
        self.readers.run("read the last slot of a bundle", move |sql| read::last_slot(sql, key)).await
    }

    /// The buffers that were planned for a bundle, each with the position of its commit.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn buffers(&self, key: BundleKey) -> Result<Vec<(usize, Address)>, StoreError> {
        self.readers.run("read buffers", move |sql| read::buffers(sql, key)).await
    }

    /// Records how a bundle is going to be applied.
    ///
    /// # Errors
    /// [`StoreError::OtherSession`] if an account was delegated anew since the first plan; [`StoreError`] if it could not
    /// be written, or the bundle has ended.
    pub async fn decide(&self, key: BundleKey, decisions: Vec<CommitDecision>) -> Result<(), StoreError> {
        self.writer
            .run("record a plan", Durability::Process, move |sql| write::decide(sql, key, &decisions))
            .await
    }

    /// Records transactions before they are sent; one of [`Stage::Commit`] moves the bundles that it serves on.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be written, or a bundle has ended.
    pub async fn signed(&self, transactions: Vec<NewTransaction>) -> Result<(), StoreError> {
        self.writer
            .run("record transactions", Durability::Power, move |sql| write::signed(sql, &transactions))
            .await
    }

    /// Records that what a bundle staged is to be applied, and calls `then` once that is on disk, in the order of all such
    /// calls and those of [`Self::accept_then`]. Returns what `then` does.
    ///
    /// # Errors
    /// [`StoreError`] if the bundle is not staged, or it could not be written; `then` is not called.
    pub async fn finalize<T: Send + 'static>(
        &self,
        key: BundleKey,
        then: impl FnOnce(QueuedBundle) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |sql: &dyn Sql| write::finalize(sql, key);
        self.writer.run_and("record that a bundle is finalized", Durability::Power, work, then).await
    }

    /// Records that a bundle that failed is to be worked on again, from where it failed: a staged one is finalized. Calls
    /// `then` as [`Self::finalize`] does.
    ///
    /// # Errors
    /// [`StoreError::NewerBundle`] if a newer bundle of one of its accounts has not failed: its state would be overwritten
    /// with an older one. [`StoreError`] if the bundle has not failed, or it could not be written. `then` is not called.
    pub async fn retry<T: Send + 'static>(
        &self,
        key: BundleKey,
        then: impl FnOnce(QueuedBundle) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |sql: &dyn Sql| write::retry(sql, key);
        self.writer.run_and("record that a bundle is tried again", Durability::Power, work, then).await
    }

    /// Records that a bundle that failed is never tried again.
    ///
    /// # Errors
    /// [`StoreError`] if the bundle has not failed, or it could not be written.
    pub async fn abandon(&self, key: BundleKey) -> Result<(), StoreError> {
        self.writer
            .run("record that a bundle is abandoned", Durability::Power, move |sql| write::abandon(sql, key))
            .await
    }

    /// Records that a bundle that was never sent gives way to a newer one.
    ///
    /// # Errors
    /// [`StoreError`] if the bundle has been worked on, or it could not be written.
    pub async fn supersede(&self, key: BundleKey, by: BundleKey) -> Result<(), StoreError> {
        self.writer
            .run("record that a bundle gave way", Durability::Power, move |sql| {
                write::supersede(sql, key, by)
            })
            .await
    }

    /// Records what became of a transaction.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn settled(&self, signature: Signature, outcome: TransactionOutcome) -> Result<(), StoreError> {
        self.writer
            .run("record an outcome", Durability::Process, move |sql| {
                write::settled(sql, signature, &outcome)
            })
            .await
    }

    /// Records what a landed transaction cost.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn cost(
        &self,
        signature: Signature,
        compute_units: u64,
        fee: Lamports,
    ) -> Result<(), StoreError> {
        self.writer
            .run("record a cost", Durability::Process, move |sql| {
                write::cost(sql, signature, compute_units, fee)
            })
            .await
    }

    /// The landed transactions of a bundle of which it is not known what they cost.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn without_cost(&self, key: BundleKey) -> Result<Vec<Signature>, StoreError> {
        self.readers.run("read transactions", move |sql| read::without_cost(sql, key)).await
    }

    /// Records the end of the work on a bundle.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written, or the bundle has ended already.
    pub async fn end(&self, key: BundleKey, end: BundleEnd) -> Result<(), StoreError> {
        let durability = match &end {
            // The chain can't tell, and somebody has been told.
            BundleEnd::Failed(_) => Durability::Power,
            BundleEnd::Staged(_) | BundleEnd::Postponed(_) | BundleEnd::Landed(_) => Durability::Process,
        };
        self.writer.run("record the end of a bundle", durability, move |sql| write::end(sql, key, &end)).await
    }

    /// The transactions of a stage of a bundle that are not known to have failed, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn open_transactions(
        &self,
        key: BundleKey,
        stage: Stage,
    ) -> Result<Vec<OpenTransaction>, StoreError> {
        self.readers.run("read transactions", move |sql| read::open_transactions(sql, key, stage)).await
    }

    /// Records that an account was read back and is, byte for byte, what was committed.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn verified(&self, key: BundleKey, account: Address) -> Result<(), StoreError> {
        self.writer
            .run("record a verification", Durability::Process, move |sql| write::verified(sql, key, &account))
            .await
    }

    /// Everything about one changeset; about the newest if none is named.
    ///
    /// # Errors
    /// [`StoreError::NoChangeset`] if there is none.
    pub async fn report(&self, changeset: Option<ChangesetId>) -> Result<ChangesetReport, StoreError> {
        self.readers.run("read a changeset", move |sql| report::changeset(sql, changeset)).await
    }

    /// Everything about one bundle.
    ///
    /// # Errors
    /// [`StoreError::NoBundle`] if there is none.
    pub async fn bundle_report(&self, key: BundleKey) -> Result<BundleReport, StoreError> {
        self.readers.run("read a bundle", move |sql| report::bundle(sql, key)).await
    }

    /// The bundles that commit to an account, the newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn history(&self, account: Address, limit: u32) -> Result<Vec<BundleReport>, StoreError> {
        self.readers
            .run("read the history of an account", move |sql| report::history(sql, &account, limit))
            .await
    }

    /// The bundles that are staged and wait to be finalized, in the order of submission.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn staged(&self) -> Result<Vec<QueuedBundle>, StoreError> {
        self.readers.run("read staged bundles", read::staged).await
    }

    /// All changesets, the newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn changesets(&self, limit: u32) -> Result<Vec<ChangesetSummary>, StoreError> {
        self.readers.run("list changesets", move |sql| report::changesets(sql, limit)).await
    }
}
