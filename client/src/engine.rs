//! Takes changesets, makes them durable, and brings them to the chain.
//!
//! [`Committor::commit`] returns once the changeset is on disk. From there each bundle waits until every earlier bundle of
//! its accounts has ended (`scheduler`), is planned against what the chain says, and is applied (`bundle`). Every
//! step is recorded before it is taken; on start, what had not ended goes on.

mod admission;
mod audit;
mod builder;
mod bundle;
mod dry_run;
mod error;
mod event;
mod facts;
mod queues;
mod rehearsal;
mod retention;
mod round;
mod scheduler;
mod settings;
mod shared;
pub mod tables;
mod ticket;
mod verify;

use std::{fs::File, future::Future, sync::Arc, time::Duration};

use committor_sdk::address;
use solana_address::Address;
use solana_signer::Signer;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use audit::{Audit, AuditedAccount, AuditedBatch, Verdict};
pub use builder::Builder;
pub use dry_run::{BundlePreview, Preview};
pub use error::EngineError;
pub(crate) use error::chain_of;
pub use event::Event;
pub use settings::{EngineSettings, SharedSigner, Signers};
pub use ticket::Ticket;
pub use verify::{Mismatch, Verification};

use crate::{
    chain::{Chain, RpcChain},
    store::{BundleReport, ChangesetReport, Identity, QueuedBundle, Store},
    types::{BundleId, BundleKey, Changeset, ChangesetId, LookupTable, TableHolder, TransactionVersion},
};
use bundle::Runner;
use scheduler::{Message, Scheduler};

/// Events that a reader may lag behind before it loses some (and is told so).
const EVENT_BUFFER: usize = 8_192;

/// The engine. Cheap to clone: all clones are one engine.
///
/// [`Self::builder`] starts one. [`Self::commit`] submits, [`Self::events`] tells what happens, [`Self::verify`] reads back,
/// and [`Self::shutdown`] stops in good order; what has not ended by then goes on at the next start. Dropping the last clone
/// stops it too, at once.
///
/// ```no_run
/// # async fn run(authority: solana_keypair::Keypair, changeset: committor_client::Changeset)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use committor_client::Committor;
/// use std::time::Duration;
///
/// let committor = Committor::builder()
///     .cluster("http://localhost:8899")
///     .authority(authority)
///     .store("committor.db")
///     .start()
///     .await?;
/// // What an earlier process left unfinished is being worked on from here; wait for it, or do not.
/// committor.idle().await;
///
/// let report = committor.commit(changeset).await?.finished().await?;
/// let verification = committor.verify(report.changeset).await?;
/// assert!(verification.mismatches.is_empty());
///
/// let left = committor.shutdown(Duration::from_secs(10)).await?;
/// println!("{left} bundles go on at the next start");
/// # Ok(()) }
/// ```
pub struct Committor<C: Chain = RpcChain> {
    inner: Arc<Inner<C>>,
}

impl<C: Chain> Clone for Committor<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<C: Chain> {
    runner: Runner<C>,
    scheduler: mpsc::UnboundedSender<Message>,
    tasks: TaskTracker,
    /// Nothing new is taken any more.
    closing: CancellationToken,
    cancelled: CancellationToken,
    /// Held as long as this process works on the store.
    _lock: Option<File>,
}

/// The caller's ids of bundles, and their keys.
type Names = Vec<(BundleId, BundleKey)>;

impl<C: Chain> Inner<C> {
    /// What takes bundles to the scheduler, and what tells that the work on them has ended. The store calls it in the order of
    /// its changes, so that both know one order.
    fn submit(&self) -> (impl FnOnce(Vec<QueuedBundle>) -> Names + Send + 'static, oneshot::Receiver<()>) {
        let scheduler = self.scheduler.clone();
        let (done, finished) = oneshot::channel();
        let submit = move |bundles: Vec<QueuedBundle>| {
            let names = bundles.iter().map(|bundle| (bundle.id, bundle.key)).collect();
            let submitted = scheduler.send(Message::Submit { bundles, done: Some(done) });
            // If it is gone, the committor stops, and the bundles are taken up at the next start.
            drop(submitted);
            names
        };
        (submit, finished)
    }
}

impl<C: Chain> Drop for Inner<C> {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

/// Sees to it that a store is worked on for one cluster and one authority alone.
async fn identify<C: Chain>(chain: &C, store: &Store, signers: &Signers) -> Result<(), EngineError> {
    let cluster = chain.genesis_hash().await?;
    Ok(store.identify(Identity { cluster, authority: signers.authority.pubkey() }).await?)
}

/// Closes lookup tables that nobody needs, from when there are any.
async fn upkeep_of_tables<C: Chain>(runner: Runner<C>, cancelled: CancellationToken) {
    let upkeep = async {
        let none = runner
            .store
            .tables(runner.signers.authority.pubkey())
            .await
            .is_ok_and(|tables| tables.is_empty());
        if none {
            runner.tables_needed.notified().await;
        }
        runner.tables.run().await;
    };
    cancelled.run_until_cancelled(upkeep).await;
}

impl Committor<RpcChain> {
    /// Starts to describe a committor.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<C: Chain> Committor<C> {
    /// Starts on a chain and a store of the caller's: [`Builder::start`] does the same with an [`RpcChain`], and sees to it
    /// that no other process works on the store.
    ///
    /// # Errors
    /// [`EngineError::Chain`] if the cluster does not say which one it is; [`EngineError::Store`] if the store is another
    /// cluster's or another authority's, or what had not ended can't be read.
    pub async fn with_chain(
        chain: C,
        store: Store,
        signers: Signers,
        settings: EngineSettings,
    ) -> Result<Self, EngineError> {
        Self::start(chain, store, signers, settings, None).await
    }

    async fn start(
        chain: C,
        store: Store,
        signers: Signers,
        settings: EngineSettings,
        lock: Option<File>,
    ) -> Result<Self, EngineError> {
        identify(&chain, &store, &signers).await?;
        let unfinished = store.unfinished().await?;
        let (events, _) = broadcast::channel(EVENT_BUFFER);
        let runner = Runner::new(Arc::new(chain), store, signers, settings, events);
        let (scheduler, messages) = mpsc::unbounded_channel();
        let (tasks, closing, cancelled) =
            (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let task = Scheduler::new(runner.clone(), scheduler.clone(), tasks.clone(), cancelled.clone());
        tasks.spawn(task.run(messages));
        tasks.spawn(upkeep_of_tables(runner.clone(), cancelled.clone()));
        if let Some(keep) = settings.keep {
            tasks.spawn(retention::run(runner.store.clone(), keep, cancelled.clone()));
        }
        // The scheduler ends only when it is cancelled.
        let _ = scheduler.send(Message::Submit { bundles: unfinished, done: None });
        Ok(Self { inner: Arc::new(Inner { runner, scheduler, tasks, closing, cancelled, _lock: lock }) })
    }

    /// Submits a changeset. When this returns, it is on disk: it will be worked on even if the process dies.
    ///
    /// A bundle that can't be atomic is refused, recorded as failed, and named by [`Ticket::refused`]; the others go on.
    ///
    /// ```no_run
    /// # async fn run(committor: committor_client::Committor, [player, opponent]: [solana_address::Address; 2])
    /// # -> Result<(), committor_client::EngineError> {
    /// use committor_client::{AccountCommit, BundleId, Changeset, CommitBundle};
    ///
    /// // Both accounts change in one transaction, or neither does.
    /// let bundle = CommitBundle::new(
    ///     BundleId(7),
    ///     vec![
    ///         AccountCommit { account: player, state: vec![1, 0, 0, 0].into() },
    ///         AccountCommit { account: opponent, state: vec![0, 0, 0, 1].into() },
    ///     ],
    /// );
    /// let ticket = committor.commit(Changeset { bundles: vec![bundle] }).await?;
    /// // Durable from here on. Nothing was spent on what was refused.
    /// for (bundle, error) in ticket.refused() {
    ///     println!("bundle {bundle}: {error}; {}", error.hint().unwrap_or_default());
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Changeset`] if it makes no sense, [`EngineError::Store`] if it could not be written,
    /// [`EngineError::ShuttingDown`] after [`Self::shutdown`]. Nothing of it is stored then.
    pub async fn commit(&self, changeset: Changeset) -> Result<Ticket, EngineError> {
        let inner = &self.inner;
        if inner.closing.is_cancelled() {
            return Err(EngineError::ShuttingDown);
        }
        changeset.check()?;
        let refused = inner.runner.refused(&changeset).await?;
        let refusals = refused.iter().map(admission::Refused::refusal).collect();
        let (submit, finished) = inner.submit();
        let submit = move |changeset, bundles| (changeset, submit(bundles));
        let (changeset, bundles) = inner.runner.store.accept_then(changeset, refusals, submit).await?;
        let refused = refused.into_iter().map(|refused| (refused.id, refused.error)).collect();
        Ok(Ticket { changeset, bundles, refused, store: inner.runner.store.clone(), finished })
    }

    /// Makes lookup tables for accounts ahead of time, so that no v0 bundle that commits to them has to wait for one. They
    /// are kept until [`Self::release`] is called with the same name. Returns the tables; none where transactions are v1,
    /// which use none, and nothing is spent then.
    ///
    /// # Errors
    /// [`EngineError::Table`] if the tables can't be made.
    pub async fn reserve(&self, name: &str, accounts: &[Address]) -> Result<Vec<LookupTable>, EngineError> {
        let runner = &self.inner.runner;
        if runner.transaction_version().await? == TransactionVersion::V1 {
            return Ok(Vec::new());
        }
        let keys: Vec<Address> =
            accounts.iter().flat_map(|account| [*account, address::record(account)]).collect();
        runner.tables_needed.notify_one();
        runner.tables.reserve(TableHolder::Named(name.to_owned()), &keys).await
    }

    /// Gives up what was reserved under a name. Tables that nobody needs any more are closed in the background.
    ///
    /// # Errors
    /// [`EngineError::Store`] if it could not be written.
    pub async fn release(&self, name: &str) -> Result<(), EngineError> {
        self.inner.runner.tables.release(TableHolder::Named(name.to_owned())).await
    }

    /// The lookup tables of the authority.
    pub fn tables(&self) -> &tables::Tables<C> {
        &self.inner.runner.tables
    }

    /// Applies what a bundle has staged. When this returns, that it is to be applied is on disk. If it can't be applied for
    /// now, the bundle stays staged, and its report says why.
    ///
    /// ```no_run
    /// # async fn run(committor: committor_client::Committor, bundle: committor_client::CommitBundle)
    /// # -> Result<(), committor_client::EngineError> {
    /// use committor_client::{Changeset, CommitMode};
    ///
    /// let changeset = Changeset { bundles: vec![bundle.mode(CommitMode::Stage)] };
    /// let ticket = committor.commit(changeset).await?;
    /// let keys = ticket.bundles().to_vec();
    /// ticket.finished().await?; // staged: the buffers can be read, the accounts are as they were
    /// for (_, key) in keys {
    ///     committor.finalize(key).await?.finished().await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Store`] if the bundle is not staged.
    pub async fn finalize(&self, bundle: BundleKey) -> Result<Ticket, EngineError> {
        let inner = &self.inner;
        if inner.closing.is_cancelled() {
            return Err(EngineError::ShuttingDown);
        }
        let (submit, finished) = inner.submit();
        let submit = |bundle: QueuedBundle| (bundle.changeset, submit(vec![bundle]));
        let (changeset, bundles) = inner.runner.store.finalize(bundle, submit).await?;
        let (refused, store) = (Vec::new(), inner.runner.store.clone());
        Ok(Ticket { changeset, bundles, refused, store, finished })
    }

    /// Tries a bundle that failed once more, from where it failed: from its first attempt, or, if it had been staged, what
    /// applies it. What has landed after all is found and not applied again, and a state is never applied to a later
    /// delegation than the one it was planned for. When this returns, that it is to be tried is on disk.
    ///
    /// # Errors
    /// [`EngineError::Store`] if the bundle has not failed, or a newer one of its accounts has come since.
    pub async fn retry(&self, bundle: BundleKey) -> Result<Ticket, EngineError> {
        let inner = &self.inner;
        if inner.closing.is_cancelled() {
            return Err(EngineError::ShuttingDown);
        }
        let (submit, finished) = inner.submit();
        let submit = |bundle: QueuedBundle| (bundle.changeset, submit(vec![bundle]));
        let (changeset, bundles) = inner.runner.store.retry(bundle, submit).await?;
        let (refused, store) = (Vec::new(), inner.runner.store.clone());
        Ok(Ticket { changeset, bundles, refused, store, finished })
    }

    /// Gives a bundle that failed up for good. Its accounts stay as they are.
    ///
    /// # Errors
    /// [`EngineError::Store`] if the bundle has not failed.
    pub async fn abandon(&self, bundle: BundleKey) -> Result<(), EngineError> {
        Ok(self.inner.runner.store.abandon(bundle).await?)
    }

    /// What happens from here on. A reader that falls behind by more than 8,192 events is told how many it missed; what it
    /// missed is in the store all the same.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.runner.events.subscribe()
    }

    /// Waits until nothing is left to do: no bundle is running or waits for its turn.
    pub async fn idle(&self) {
        let (reply, idle) = oneshot::channel();
        // If the scheduler has ended, there is nothing to wait for.
        if self.inner.scheduler.send(Message::WhenIdle(reply)).is_ok() {
            let _ = idle.await;
        }
    }

    /// The chain.
    pub fn chain(&self) -> &C {
        &self.inner.runner.chain
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.inner.runner.store
    }

    /// Where a changeset stands: every bundle and account, with signatures.
    ///
    /// # Errors
    /// [`EngineError::Store`] if there is none.
    pub async fn changeset(&self, changeset: ChangesetId) -> Result<ChangesetReport, EngineError> {
        Ok(self.store().report(Some(changeset)).await?)
    }

    /// Where a bundle stands: its accounts, its steps and their signatures.
    ///
    /// # Errors
    /// [`EngineError::Store`] if there is none.
    pub async fn bundle(&self, bundle: BundleKey) -> Result<BundleReport, EngineError> {
        Ok(self.store().bundle_report(bundle).await?)
    }

    /// The bundles that commit to an account, the newest first, at most `limit`.
    ///
    /// # Errors
    /// [`EngineError::Store`] if they can't be read.
    pub async fn account(&self, account: Address, limit: u32) -> Result<Vec<BundleReport>, EngineError> {
        Ok(self.store().history(account, limit).await?)
    }

    /// Reads every account of a changeset back and compares it, byte for byte, with what was committed to it last.
    ///
    /// # Errors
    /// [`EngineError`] if the accounts or the states could not be read.
    pub fn verify(
        &self,
        changeset: ChangesetId,
    ) -> impl Future<Output = Result<Verification, EngineError>> + Send {
        verify::verify(self.inner.runner.chain.clone(), self.inner.runner.store.clone(), changeset)
    }

    /// Stops: takes nothing new, starts nothing more, and gives what is on its way `within` to end. What has not ended by
    /// then is left to the chain, and taken up at the next start. Returns how many bundles that are.
    pub async fn shutdown(&self, within: Duration) -> Result<usize, EngineError> {
        let inner = &self.inner;
        inner.closing.cancel();
        let (reply, drained) = oneshot::channel();
        if !within.is_zero() && inner.scheduler.send(Message::Drain(reply)).is_ok() {
            // Either way it is over.
            let _ = tokio::time::timeout(within, drained).await;
        }
        inner.cancelled.cancel();
        inner.tasks.close();
        inner.tasks.wait().await;
        Ok(inner.runner.store.unfinished().await?.len())
    }
}
