//! Takes changesets, makes them durable, and brings them to the chain.
//!
//! [`Committor::commit`] returns once the changeset is on disk. From there each bundle waits until every earlier bundle of
//! its accounts has ended (`scheduler`), is planned against what the chain says, and is applied (`bundle`). Every
//! step is recorded before it is taken; on start, what had not ended goes on.

mod bundle;
mod error;
mod facts;
mod scheduler;
pub mod tables;
mod verify;

use std::{
    fs::{File, TryLockError},
    future::Future,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use solana_keypair::Keypair;
use solana_signature::Signature;
use solana_signer::Signer;
use tokio::sync::{Mutex, broadcast, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use error::EngineError;
pub use verify::{Mismatch, Verification};

use crate::{
    chain::{Chain, RpcChain, RpcSettings},
    store::{ChangesetReport, Store},
    types::{BundleId, BundleKey, BundleStatus, Changeset, ChangesetId, Stage, TransactionVersion},
};
use bundle::Runner;
use scheduler::{Message, Scheduler};
use tables::{TableSettings, Tables};

/// Events that a reader may lag behind before it loses some (and is told so).
const EVENT_BUFFER: usize = 8_192;

/// How the engine works.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Bundles that are worked on at a time.
    pub bundles_in_flight: usize,
    /// Transactions of one bundle that are on their way at a time.
    pub transactions_in_flight: usize,
    /// How often a bundle is planned anew after an error that may pass. While the node is out of reach, it goes on without
    /// end: only the chain can tell what became of a bundle.
    pub attempts: u32,
    /// Wait before the second attempt; it doubles with each one, up to 10 s.
    pub first_retry_delay: Duration,
    /// The transaction format to use; by default v1 where the cluster has it.
    pub version: Option<TransactionVersion>,
    /// Whether to ask for what each transaction cost: one more request per transaction.
    pub record_costs: bool,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            bundles_in_flight: 64,
            transactions_in_flight: 64,
            attempts: 5,
            first_retry_delay: Duration::from_millis(250),
            version: None,
            record_costs: true,
        }
    }
}

/// Who signs.
#[derive(Clone)]
pub struct Signers {
    /// Pays fees and rent.
    pub payer: Arc<Keypair>,
    /// The authority that the accounts are delegated to. May be the payer.
    pub authority: Arc<Keypair>,
}

impl std::fmt::Debug for Signers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (payer, authority) = (self.payer.pubkey(), self.authority.pubkey());
        f.debug_struct("Signers").field("payer", &payer).field("authority", &authority).finish()
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A bundle was planned.
    Planned {
        /// The bundle.
        bundle: BundleKey,
        /// How many transactions it takes, from here.
        transactions: usize,
    },
    /// A transaction landed.
    Landed {
        /// The bundle it is for.
        bundle: BundleKey,
        /// What it was for.
        stage: Stage,
        /// The transaction.
        signature: Signature,
    },
    /// A bundle is tried again.
    Retrying {
        /// The bundle.
        bundle: BundleKey,
        /// Why.
        reason: String,
    },
    /// A bundle ended.
    Ended {
        /// The bundle.
        bundle: BundleKey,
        /// How.
        status: BundleStatus,
    },
}

/// Makes a [`Committor`].
///
/// ```no_run
/// # async fn run(authority: solana_keypair::Keypair, changeset: committor_client::Changeset)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use committor_client::Committor;
///
/// let committor = Committor::builder()
///     .cluster("http://localhost:8899")
///     .authority(authority)
///     .store("committor.db")
///     .start()
///     .await?;
/// let ticket = committor.commit(changeset).await?; // durable from here on
/// let report = ticket.finished().await?; // per account: status, strategy, signatures
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Builder {
    rpc: Option<RpcSettings>,
    authority: Option<Arc<Keypair>>,
    payer: Option<Arc<Keypair>>,
    store: Option<PathBuf>,
    settings: EngineSettings,
}

impl Builder {
    /// The cluster, by the URL of its JSON-RPC service.
    pub fn cluster(mut self, url: impl Into<String>) -> Self {
        self.rpc = Some(RpcSettings::new(url));
        self
    }

    /// The cluster, with settings.
    pub fn rpc(mut self, settings: RpcSettings) -> Self {
        self.rpc = Some(settings);
        self
    }

    /// The authority that the accounts are delegated to.
    pub fn authority(mut self, keypair: impl Into<Arc<Keypair>>) -> Self {
        self.authority = Some(keypair.into());
        self
    }

    /// Who pays fees and rent; by default the authority.
    pub fn payer(mut self, keypair: impl Into<Arc<Keypair>>) -> Self {
        self.payer = Some(keypair.into());
        self
    }

    /// The store's file.
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// How the engine works.
    pub fn settings(mut self, settings: EngineSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Opens the store, takes up what had not ended, and is ready.
    ///
    /// # Errors
    /// [`EngineError::Missing`] names what was not given; [`EngineError::Store`] if the store can't be opened.
    pub async fn start(self) -> Result<Committor, EngineError> {
        let settings = self.settings;
        let (chain, store, signers, lock) = self.open().await?;
        Committor::start(chain, store, signers, settings, Some(lock)).await
    }

    /// Opens the store for its lookup tables alone: nothing that had not ended is taken up.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn tables(self, settings: TableSettings) -> Result<Tables<RpcChain>, EngineError> {
        let (chain, store, signers, lock) = self.open().await?;
        Ok(Tables::with_lock(Arc::new(chain), store, signers, settings, Some(lock)))
    }

    async fn open(self) -> Result<(RpcChain, Store, Signers, File), EngineError> {
        let rpc = self.rpc.ok_or(EngineError::Missing("cluster"))?;
        let authority = self.authority.ok_or(EngineError::Missing("authority"))?;
        let path = self.store.ok_or(EngineError::Missing("store"))?;
        let payer = self.payer.unwrap_or_else(|| authority.clone());
        let (lock, store) = tokio::task::spawn_blocking(move || open(path)).await??;
        Ok((RpcChain::new(rpc), store, Signers { payer, authority }, lock))
    }
}

/// Opens a store for this process alone. What only reads it needs no lock.
fn open(path: PathBuf) -> Result<(File, Store), EngineError> {
    let mut name = path.clone().into_os_string();
    name.push(".lock");
    let locked = File::create(&name).map_err(TryLockError::Error).and_then(|file| {
        file.try_lock()?;
        Ok(file)
    });
    match locked {
        Ok(lock) => Ok((lock, Store::open(&path)?)),
        Err(TryLockError::WouldBlock) => Err(EngineError::StoreInUse { path }),
        Err(TryLockError::Error(source)) => Err(EngineError::Lock { path, source }),
    }
}

/// The engine. Cheap to clone.
pub struct Committor<C: Chain = RpcChain> {
    inner: Arc<Inner<C>>,
}

impl<C: Chain> Clone for Committor<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<C> {
    chain: Arc<C>,
    store: Store,
    /// Held from the store's acceptance to the scheduler's, so that both know one order.
    scheduler: Mutex<mpsc::UnboundedSender<Message>>,
    events: broadcast::Sender<Event>,
    tasks: TaskTracker,
    cancelled: CancellationToken,
    /// Held as long as this process works on the store.
    _lock: Option<File>,
}

impl<C> Drop for Inner<C> {
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
        let chain = Arc::new(chain);
        let (events, _) = broadcast::channel(EVENT_BUFFER);
        let (sender, messages) = mpsc::unbounded_channel();
        let (tasks, cancelled) = (TaskTracker::new(), CancellationToken::new());
        let runner =
            Runner { chain: chain.clone(), store: store.clone(), signers, settings, events: events.clone() };
        let scheduler = Scheduler::new(runner, sender.clone(), tasks.clone(), cancelled.clone());
        tasks.spawn(scheduler.run(messages));

        let unfinished = store.unfinished().await?;
        // The scheduler ends only when it is cancelled.
        let _ = sender.send(Message::Submit { bundles: unfinished, done: None });
        let scheduler = Mutex::new(sender);
        Ok(Self { inner: Arc::new(Inner { chain, store, scheduler, events, tasks, cancelled, _lock: lock }) })
    }

    /// Submits a changeset. When this returns, it is on disk: it will be worked on even if the process dies.
    ///
    /// # Errors
    /// [`EngineError::Changeset`] if it makes no sense, [`EngineError::Store`] if it could not be written. Nothing of it
    /// is stored then.
    pub async fn commit(&self, changeset: Changeset) -> Result<Ticket, EngineError> {
        changeset.check()?;
        let scheduler = self.inner.scheduler.lock().await;
        let (changeset, bundles) = self.inner.store.accept(changeset).await?;
        let keys = bundles.iter().map(|bundle| (bundle.id, bundle.key)).collect();
        let (done, finished) = oneshot::channel();
        scheduler
            .send(Message::Submit { bundles, done: Some(done) })
            .map_err(|_| EngineError::ShuttingDown)?;
        Ok(Ticket { changeset, bundles: keys, store: self.inner.store.clone(), finished })
    }

    /// What happens from here on. A reader that falls behind is told how much it missed.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    /// Waits until nothing is left to do: no bundle is running or waits for its turn.
    pub async fn idle(&self) {
        let (reply, idle) = oneshot::channel();
        // If the scheduler has ended, there is nothing to wait for.
        if self.inner.scheduler.lock().await.send(Message::WhenIdle(reply)).is_ok() {
            let _ = idle.await;
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Reads every account of a changeset back and compares it, byte for byte, with what was committed to it last.
    ///
    /// # Errors
    /// [`EngineError`] if the accounts or the states could not be read.
    pub fn verify(
        &self,
        changeset: ChangesetId,
    ) -> impl Future<Output = Result<Verification, EngineError>> + Send {
        verify::verify(self.inner.chain.clone(), self.inner.store.clone(), changeset)
    }

    /// Stops. What is on its way is left to the chain, and taken up at the next start.
    pub async fn shutdown(&self) {
        self.inner.cancelled.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

/// A changeset that has been accepted.
#[derive(Debug)]
pub struct Ticket {
    changeset: ChangesetId,
    bundles: Vec<(BundleId, BundleKey)>,
    store: Store,
    finished: oneshot::Receiver<()>,
}

impl Ticket {
    /// The changeset's number.
    pub fn changeset(&self) -> ChangesetId {
        self.changeset
    }

    /// The changeset's bundles: the caller's ids, and the keys that events name.
    pub fn bundles(&self) -> &[(BundleId, BundleKey)] {
        &self.bundles
    }

    /// Waits until every bundle has ended, and reports on all of them. A bundle that failed is in the report, not an error.
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`] if the committor stops before that.
    pub async fn finished(self) -> Result<ChangesetReport, EngineError> {
        self.finished.await.map_err(|_| EngineError::ShuttingDown)?;
        Ok(self.store.report(Some(self.changeset)).await?)
    }
}
