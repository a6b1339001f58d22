//! The transactions that are on their way, which those who send, ask and wait share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use solana_commitment_config::CommitmentConfig;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use solana_transaction_status_client_types::TransactionStatus;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[cfg(feature = "tpu")]
use super::tpu::Tpu;
use super::{
    ChainError, ChainStats, Landed, Lifetime, RpcSettings, SignedTransaction, TransactionFailure, node::Node,
    websocket::Websocket,
};

/// What became of a transaction.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Landed { slot: u64 },
    Failed { slot: u64, error: TransactionError },
    Refused(Box<TransactionFailure>),
    Expired,
    Unknown { after: Duration, source: Arc<ChainError> },
}

/// A transaction on its way.
pub(super) struct Pending {
    pub(super) transaction: SignedTransaction,
    pub(super) lifetime: Lifetime,
    /// Whether a node may have taken it, so that it may land whatever another one says.
    pub(super) on_its_way: bool,
    /// Whether it is being sent now.
    pub(super) sending: bool,
    /// Tries to send it that failed, since the last that did not.
    pub(super) failures: u32,
    pub(super) resend_at: Instant,
    /// When the poller asks first: not before the websocket had its chance.
    pub(super) poll_at: Instant,
    /// When to look whether its lifetime is over.
    pub(super) doubt_at: Instant,
    /// How often the history did not know it after its lifetime.
    pub(super) misses: u32,
    outcome: watch::Sender<Option<Outcome>>,
}

/// What sending, asking and waiting share.
pub(super) struct Shared {
    pub(super) node: Arc<Node>,
    pub(super) websocket: Websocket,
    pub(super) settings: RpcSettings,
    pending: Mutex<HashMap<Signature, Pending>>,
    /// Tells the poller that there is something to ask for.
    pub(super) to_poll: Notify,
    /// Tells the resender that there is something to send.
    pub(super) to_resend: Notify,
    pub(super) sends: Semaphore,
    #[cfg(feature = "tpu")]
    pub(super) tpu: Option<Tpu>,
    pub(super) tasks: TaskTracker,
    pub(super) cancelled: CancellationToken,
}

impl Shared {
    pub(super) fn new(
        node: Arc<Node>,
        websocket: Websocket,
        settings: RpcSettings,
        tasks: TaskTracker,
        cancelled: CancellationToken,
    ) -> Self {
        let sends = Semaphore::new(settings.connections.get());
        #[cfg(feature = "tpu")]
        let tpu = settings.tpu.clone().map(|settings| Tpu::new(settings, node.clone(), cancelled.clone()));
        Self {
            node,
            websocket,
            settings,
            pending: Mutex::default(),
            to_poll: Notify::new(),
            to_resend: Notify::new(),
            sends,
            #[cfg(feature = "tpu")]
            tpu,
            tasks,
            cancelled,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Signature, Pending>> {
        // A panic elsewhere leaves the map whole: every change is one insert or one remove.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut ChainStats)) {
        self.node.endpoints.counters.count(count);
    }

    /// Takes a transaction in, which is about to be sent. Whoever lands the same one at the same time waits for the same
    /// outcome.
    pub(super) fn register(&self, transaction: &SignedTransaction) -> watch::Receiver<Option<Outcome>> {
        let now = Instant::now();
        let pending = || Pending {
            transaction: transaction.clone(),
            lifetime: transaction.lifetime(),
            on_its_way: false,
            sending: true,
            failures: 0,
            resend_at: now + self.settings.resend_interval,
            poll_at: now + self.settings.resend_interval,
            doubt_at: now + self.settings.resend_interval,
            misses: 0,
            outcome: watch::Sender::new(None),
        };
        let receiver = self.lock().entry(transaction.signature()).or_insert_with(pending).outcome.subscribe();
        self.to_poll.notify_one();
        receiver
    }

    /// Changes a transaction that is on its way, if it still is.
    pub(super) fn update(&self, signature: Signature, change: impl FnOnce(&mut Pending)) {
        if let Some(pending) = self.lock().get_mut(&signature) {
            change(pending);
        }
    }

    /// Has the poller ask for a transaction within so much time.
    pub(super) fn poll_within(&self, signature: Signature, time: Duration) {
        let at = Instant::now() + time;
        self.update(signature, |pending| pending.poll_at = pending.poll_at.min(at));
        self.to_poll.notify_one();
    }

    pub(super) fn forget_unless_awaited(&self, signature: Signature) {
        let mut pending = self.lock();
        if pending.get(&signature).is_some_and(|pending| pending.outcome.receiver_count() == 0) {
            pending.remove(&signature);
        }
    }

    /// Tells an outcome to those who wait for it.
    pub(super) fn tell(&self, signature: Signature, outcome: Outcome) {
        if let Some(pending) = self.lock().remove(&signature) {
            pending.outcome.send_replace(Some(outcome));
        }
    }

    /// Tells everybody that the node can't be worked with.
    pub(super) fn abandon(&self, after: Duration, error: ChainError) {
        let source = Arc::new(error);
        for (_, pending) in self.lock().drain() {
            pending.outcome.send_replace(Some(Outcome::Unknown { after, source: source.clone() }));
        }
    }

    /// Whether a status is at the commitment asked for. One that is not proves nothing, neither success nor error.
    pub(super) fn is_final_enough(&self, status: &TransactionStatus) -> bool {
        status.satisfies_commitment(CommitmentConfig { commitment: self.settings.commitment.commitment })
    }

    /// From here on, reads see what landed in this slot.
    pub(super) fn landed(&self, slot: u64) -> Landed {
        self.node.saw(slot);
        Landed { slot }
    }
}
