//! Simulating transactions here, on state fetched from a node when it is needed, and pinned.
//!
//! A [`Proxy`] answers what would else be a node's `simulateTransaction`. It fetches the accounts that a transaction names,
//! all of one slot, keeps them (and that others do not exist) as a [`View`], and runs the transaction on them in LiteSVM. A
//! second simulation on the same view asks the node nothing. What can't be answered here goes to the node, and the
//! [`Fallback`] says why: a wrong answer would be worse than a slow one.
//!
//! ```no_run
//! # async fn run(transaction: solana_transaction::versioned::VersionedTransaction)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use committor_client::{chain::{RpcChain, RpcSettings}, proxy::ProxySettings};
//!
//! let chain = RpcChain::new(RpcSettings {
//!     proxy: Some(ProxySettings::default()),
//!     ..RpcSettings::new("http://localhost:8899")
//! });
//! let proxy = chain.proxy().ok_or("no proxy")?;
//! match proxy.view(std::slice::from_ref(&transaction)).await {
//!     Ok(view) => println!("{} units at slot {}", view.simulate(transaction).await?.compute_units, view.slot()),
//!     Err(fallback) => println!("a question for the node: {fallback}"),
//! }
//! # Ok(()) }
//! ```
//!
//! **What is pinned.** Every batch of accounts carries the Clock sysvar first and last. Accounts belong to one view if all
//! those Clocks, and the slots that the node names, are equal; otherwise all is fetched again, and after
//! [`ProxySettings::attempts`] the question is the node's. A view is used until the node is known to have moved on: once a
//! transaction landed in a later slot, or after [`ProxySettings::max_age`].
//!
//! **What a transaction needs** is fetched in at most three rounds: what it names, lookup tables and sysvars; what the tables
//! hold, and the code of programs; the code of programs that the tables hold. Programs are kept over views by the slot that
//! they were deployed in, of which only the header is asked again.

mod checks;
mod fetch;
mod machine;
mod needs;
mod source;
mod view;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use solana_address::Address;
use solana_transaction::versioned::VersionedTransaction;
use tokio::time::Instant;

use machine::Machine;
pub use source::{Batch, MAX_BATCH, Source};
pub use view::{Execution, View};

/// How a [`Proxy`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxySettings {
    /// How long a view is used after it was begun.
    pub max_age: Duration,
    /// How often accounts are fetched that turn out to be of several slots; 0 counts as 1.
    pub attempts: u32,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self { max_age: Duration::from_millis(400), attempts: 4 }
    }
}

/// Why a question is one for the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The node did not tell what simulating takes.
    Unread(String),
    /// The node's answers were of several slots, as often as it was asked.
    Moving,
    /// A feature is active on the cluster that is not known here.
    UnknownFeature(Address),
    /// The node tells of no features.
    NoFeatures,
    /// A program is called that the runtime brings along, and the one here does not.
    Builtin(Address),
    /// A program is called that does not exist, or is none.
    NoProgram(Address),
    /// A program was deployed in the slot of the view: it can't be called before the next one.
    JustDeployed(Address),
    /// A program does not load here.
    Unloadable(Address),
    /// A program may ask for the stake of validators, which is in no account.
    EpochStake(Address),
    /// The transaction advances a durable nonce, which takes the blockhash that it was signed with.
    DurableNonce,
    /// The accounts that the transaction loads are larger than it allows.
    LoadedData {
        /// Bytes that it loads.
        loads: u64,
        /// Bytes that it allows.
        allows: u64,
    },
    /// The virtual machine failed.
    Broken,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(why) => write!(f, "accounts could not be read: {why}"),
            Self::Moving => f.write_str("the chain moved on faster than accounts could be read"),
            Self::UnknownFeature(feature) => write!(f, "feature {feature} is active, and not known here"),
            Self::NoFeatures => f.write_str("the node tells of no features"),
            Self::Builtin(program) => write!(f, "{program} is part of the runtime, and not here"),
            Self::NoProgram(program) => write!(f, "{program} is no program"),
            Self::JustDeployed(program) => write!(f, "{program} was deployed in this slot"),
            Self::Unloadable(program) => write!(f, "{program} does not load"),
            Self::EpochStake(program) => write!(f, "{program} may ask for validators' stake"),
            Self::DurableNonce => f.write_str("it advances a durable nonce"),
            Self::LoadedData { loads, allows } => {
                write!(f, "it loads {loads} bytes of accounts, and allows {allows}")
            }
            Self::Broken => f.write_str("the virtual machine failed"),
        }
    }
}

impl std::error::Error for Fallback {}

/// What a [`Proxy`] did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyStats {
    /// Transactions that were run here.
    pub simulated: u64,
    /// Questions that were the node's.
    pub fallbacks: u64,
    /// Calls for accounts and features.
    pub calls: u64,
    /// Views that were begun.
    pub views: u64,
}

#[derive(Default)]
struct Counters {
    simulated: AtomicU64,
    fallbacks: AtomicU64,
    calls: AtomicU64,
    views: AtomicU64,
}

/// The view in use.
struct Current {
    begun_at: Instant,
    view: Arc<View>,
}

/// Simulates transactions on accounts of a [`Source`].
pub struct Proxy<S> {
    source: S,
    settings: ProxySettings,
    machine: tokio::sync::Mutex<Option<Arc<Machine>>>,
    current: Mutex<Option<Current>>,
    /// Held while a view is begun.
    beginning: tokio::sync::Mutex<()>,
    counters: Arc<Counters>,
}

impl<S: Source> Proxy<S> {
    /// Prepares; asks for nothing yet.
    pub fn new(source: S, settings: ProxySettings) -> Self {
        Self {
            source,
            settings,
            machine: tokio::sync::Mutex::default(),
            current: Mutex::default(),
            beginning: tokio::sync::Mutex::default(),
            counters: Arc::default(),
        }
    }

    /// A view that holds everything that these transactions need, one after the other or each alone.
    ///
    /// # Errors
    /// [`Fallback`] if they can't be run here.
    pub async fn view(&self, transactions: &[VersionedTransaction]) -> Result<Arc<View>, Fallback> {
        let found = self.find_view(transactions).await;
        if found.is_err() {
            self.counters.fallbacks.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// What it did since it was made.
    pub fn stats(&self) -> ProxyStats {
        let Counters { simulated, fallbacks, calls, views } = &*self.counters;
        ProxyStats {
            simulated: simulated.load(Ordering::Relaxed),
            fallbacks: fallbacks.load(Ordering::Relaxed),
            calls: calls.load(Ordering::Relaxed),
            views: views.load(Ordering::Relaxed),
        }
    }

    async fn find_view(&self, transactions: &[VersionedTransaction]) -> Result<Arc<View>, Fallback> {
        for transaction in transactions {
            checks::before(transaction)?;
        }
        let mut wanted = needs::named(transactions);
        if let Some(view) = self.usable()
            && let Some(view) =
                self.fill(&view.machine().clone(), Some(view), transactions, &mut wanted).await?
        {
            return Ok(view);
        }
        // Those who need a new view at the same time share one.
        let _beginning = self.beginning.lock().await;
        for _ in 0..self.settings.attempts.max(1) {
            let begun_at = Instant::now();
            let (view, machine) = match self.usable() {
                Some(view) => (Some(view.clone()), view.machine().clone()),
                None => (None, self.machine().await?),
            };
            if let Some(view) = self.fill(&machine, view, transactions, &mut wanted).await? {
                self.keep(begun_at, &view);
                return Ok(view);
            }
            // What is known to be needed by now is asked for in one round.
            self.forget();
        }
        Err(Fallback::Moving)
    }

    async fn fill(
        &self,
        machine: &Arc<Machine>,
        view: Option<Arc<View>>,
        transactions: &[VersionedTransaction],
        wanted: &mut BTreeSet<Address>,
    ) -> Result<Option<Arc<View>>, Fallback> {
        view::fill(&self.source, machine, &self.counters, view, transactions, wanted).await
    }

    /// The view in use, if it is new enough.
    fn usable(&self) -> Option<Arc<View>> {
        let floor = self.source.floor();
        let fits = |current: &&Current| {
            current.begun_at.elapsed() <= self.settings.max_age && current.view.slot() >= floor
        };
        self.current().as_ref().filter(fits).map(|current| current.view.clone())
    }

    fn keep(&self, begun_at: Instant, view: &Arc<View>) {
        let mut current = self.current();
        if !current.as_ref().is_some_and(|current| Arc::ptr_eq(&current.view, view)) {
            *current = Some(Current { begun_at, view: view.clone() });
        }
    }

    fn forget(&self) {
        *self.current() = None;
    }

    fn current(&self) -> MutexGuard<'_, Option<Current>> {
        // Every change is one assignment.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine of the current epoch, with its features and programs.
    async fn machine(&self) -> Result<Arc<Machine>, Fallback> {
        let mut machine = self.machine.lock().await;
        if let Some(machine) = machine.as_ref().filter(|machine| !machine.is_over()) {
            return Ok(machine.clone());
        }
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let features = self.source.features().await.map_err(|error| Fallback::Unread(error.to_string()))?;
        let made = Arc::new(Machine::new(features)?);
        *machine = Some(made.clone());
        Ok(made)
    }
}
