//! Takes changesets, makes them durable, and brings them to the chain.
//!
//! [`Committor::commit`] returns once the changeset is on disk. From there each bundle waits until every earlier bundle of
//! its accounts has ended (`scheduler`), is planned against what the chain says, and is applied (`bundle`). Every
//! step is recorded before it is taken; on start, what had not ended goes on.

mod admission;
mod builder;
mod bundle;
mod dry_run;
mod error;
mod event;
mod facts;
mod queues;
mod retention;
mod round;
mod scheduler;
mod settings;
mod shared;
mod ticket;
mod verify;

use std::{fs::File, future::Future, sync::Arc, time::Duration};

use solana_address::Address;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use builder::Builder;
pub use dry_run::{BundlePreview, Preview};
pub use error::EngineError;
pub use event::Event;
pub use settings::{EngineSettings, Signers};
pub use ticket::Ticket;
pub use verify::{Mismatch, Verification};

use crate::{
    chain::{Chain, RpcChain},
    store::{BundleReport, ChangesetReport, Store},
    types::{BundleKey, Changeset, ChangesetId},
};
use bundle::Runner;
use scheduler::{Message, Scheduler};

/// Events that a reader may lag behind before it loses some (and is told so).
const EVENT_BUFFER: usize = 8_192;

/// The engine. Cheap to clone.
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

impl<C: Chain> Drop for Inner<C> {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
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
    /// [`EngineError::Store`] if what had not ended can't be read.
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
        let unfinished = store.unfinished().await?;
        let (events, _) = broadcast::channel(EVENT_BUFFER);
        let task_store = store.clone();
        let runner = Runner { chain: Arc::new(chain), store, signers, settings, events };
        let (scheduler, messages) = mpsc::unbounded_channel();
        let (tasks, closing, cancelled) =
            (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let task = Scheduler::new(runner.clone(), scheduler.clone(), tasks.clone(), cancelled.clone());
        tasks.spawn(task.run(messages));
        if let Some(keep) = settings.keep {
            tasks.spawn(retention::run(task_store, keep, cancelled.clone()));
        }
        // The scheduler ends only when it is cancelled.
        let _ = scheduler.send(Message::Submit { bundles: unfinished, done: None });
        Ok(Self { inner: Arc::new(Inner { runner, scheduler, tasks, closing, cancelled, _lock: lock }) })
    }

    /// Submits a changeset. When this returns, it is on disk: it will be worked on even if the process dies.
    ///
    /// A bundle that can't be atomic is refused, recorded as failed, and named by [`Ticket::refused`]; the others go on.
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
        let scheduler = inner.scheduler.clone();
        let (done, finished) = oneshot::channel();
        // In the order of the store, so that store and scheduler know one order.
        let submit = move |changeset, bundles: Vec<crate::store::QueuedBundle>| {
            let keys = bundles.iter().map(|bundle| (bundle.id, bundle.key)).collect();
            let submitted = scheduler.send(Message::Submit { bundles, done: Some(done) });
            // If it is gone, the committor stops, and the changeset is taken up at the next start.
            drop(submitted);
            (changeset, keys)
        };
        let (changeset, bundles) = inner.runner.store.accept_then(changeset, refusals, submit).await?;
        let refused = refused.into_iter().map(|refused| (refused.id, refused.error)).collect();
        Ok(Ticket { changeset, bundles, refused, store: inner.runner.store.clone(), finished })
    }

    /// Applies what a bundle has staged. When this returns, that it is to be applied is on disk.
    ///
    /// # Errors
    /// [`EngineError::Store`] if the bundle is not staged.
    pub async fn finalize(&self, bundle: BundleKey) -> Result<Ticket, EngineError> {
        let inner = &self.inner;
        if inner.closing.is_cancelled() {
            return Err(EngineError::ShuttingDown);
        }
        let queued = inner.runner.store.finalize(bundle).await?;
        let (changeset, bundles) = (queued.changeset, vec![(queued.id, queued.key)]);
        let (done, finished) = oneshot::channel();
        let submitted = inner.scheduler.send(Message::Submit { bundles: vec![queued], done: Some(done) });
        submitted.map_err(|_| EngineError::ShuttingDown)?;
        let (refused, store) = (Vec::new(), inner.runner.store.clone());
        Ok(Ticket { changeset, bundles, refused, store, finished })
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
