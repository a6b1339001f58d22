//! Sending transactions and finding out what became of them.
//!
//! The websocket tells first. What it has not told in time is asked for by one poller, for all transactions on their way,
//! 256 a call. A transaction that stays unconfirmed is sent again until its blockhash expires, and given up only after a
//! look in the node's history.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{StreamExt, stream};
use solana_commitment_config::CommitmentConfig;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::config::RpcSendTransactionConfig;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use solana_transaction_status_client_types::TransactionStatus;
use tokio::{
    sync::{Notify, Semaphore, oneshot},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use super::{
    ChainError, Landed, RpcSettings, SignedTransaction, TransactionFailure, decode,
    rpc::rpc,
    websocket::{Notification, Websocket},
};

/// Signatures that one `getSignatureStatuses` takes.
const MAX_STATUSES_PER_CALL: usize = 256;
/// Sends at a time. More only queue up inside the node.
const MAX_SENDS_IN_FLIGHT: usize = 32;

/// Sends transactions and waits for their outcomes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Confirmer {
    shared: Arc<Shared>,
}

struct Shared {
    client: Arc<RpcClient>,
    websocket: Websocket,
    settings: RpcSettings,
    landed_slot: Arc<AtomicU64>,
    pending: Mutex<HashMap<Signature, Pending>>,
    arrived: Notify,
    sends: Semaphore,
}

struct Pending {
    transaction: SignedTransaction,
    sent_at: Instant,
    /// When the poller asks next: not before the websocket had its chance.
    poll_at: Instant,
    outcome: oneshot::Sender<Result<Landed, ChainError>>,
}

impl Confirmer {
    /// A confirmer, and the poller that the caller has to run.
    pub(super) fn new(
        client: Arc<RpcClient>,
        settings: &RpcSettings,
        landed_slot: Arc<AtomicU64>,
        tasks: TaskTracker,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let shared = Arc::new(Shared {
            client,
            websocket: Websocket::new(settings.websocket_url.clone(), settings.commitment, tasks),
            settings: settings.clone(),
            landed_slot,
            pending: Mutex::new(HashMap::new()),
            arrived: Notify::new(),
            sends: Semaphore::new(MAX_SENDS_IN_FLIGHT),
        });
        let poller = poll(shared.clone());
        (Self { shared }, poller)
    }

    /// Sends a transaction until it lands, fails or expires.
    pub(super) async fn land(&self, transaction: SignedTransaction) -> Result<Landed, ChainError> {
        let shared = &self.shared;
        let signature = transaction.signature();
        // A subscription made after the transaction landed is notified all the same, so neither waits for the other.
        let (sent, subscription) = tokio::join!(
            shared.send(&transaction, transaction.preflight),
            shared.websocket.subscribe(signature)
        );
        match sent {
            Ok(()) => (),
            // The node may have got it all the same: from here on it is like one that does not land.
            Err(error @ ChainError::Rpc { .. }) => tracing::debug!(%signature, %error, "send failed"),
            Err(error) => return Err(error),
        }
        let now = Instant::now();
        let (outcome, mut verdict) = oneshot::channel();
        let wait = if subscription.is_some() {
            shared.settings.resend_interval
        } else {
            shared.settings.poll_interval
        };
        shared.lock().insert(signature, Pending { transaction, sent_at: now, poll_at: now + wait, outcome });
        shared.arrived.notify_one();
        if let Some(subscription) = subscription {
            tokio::select! {
                verdict = &mut verdict => return answer(verdict, signature),
                notification = subscription.next() => {
                    if let Some(Notification::Landed { slot }) = notification {
                        shared.lock().remove(&signature);
                        return Ok(shared.landed(slot));
                    }
                    // An error may be one that the node's own simulation found: only the status tells. And a websocket
                    // that went away tells nothing.
                    if let Some(pending) = shared.lock().get_mut(&signature) {
                        pending.poll_at = Instant::now();
                    }
                    shared.arrived.notify_one();
                }
            }
        }
        answer(verdict.await, signature)
    }

    /// Tells everybody who waits that nobody will answer any more.
    pub(super) fn stop(&self) {
        self.shared.lock().clear();
    }

    /// What became of a transaction, from the node's whole history.
    pub(super) async fn find(
        &self,
        signature: Signature,
    ) -> Result<Option<Result<Landed, TransactionFailure>>, ChainError> {
        let statuses = self.shared.client.get_signature_statuses_with_history(&[signature]).await;
        let status = statuses.map_err(rpc("getSignatureStatuses"))?.value.pop().flatten();
        Ok(status.filter(|status| self.shared.is_final_enough(status)).map(|status| match status.err {
            None => Ok(self.shared.landed(status.slot)),
            Some(error) => Err(TransactionFailure { error, program_error: None, logs: Vec::new() }),
        }))
    }
}

/// What the poller answered, unless it was stopped before it could.
fn answer(
    verdict: Result<Result<Landed, ChainError>, oneshot::error::RecvError>,
    signature: Signature,
) -> Result<Landed, ChainError> {
    verdict.unwrap_or(Err(ChainError::Stopped { signature }))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Signature, Pending>> {
        // A panic elsewhere leaves the map whole: every change is one insert or one remove.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, transaction: &SignedTransaction, preflight: bool) -> Result<(), ChainError> {
        // The semaphore is never closed.
        let _permit = self.sends.acquire().await;
        let config = RpcSendTransactionConfig {
            skip_preflight: !preflight,
            preflight_commitment: Some(self.settings.commitment.commitment),
            // Resending is this module's work.
            max_retries: Some(0),
            ..RpcSendTransactionConfig::default()
        };
        let sent = self.client.send_transaction_with_config(&transaction.transaction, config).await;
        let Err(error) = sent else { return Ok(()) };
        let signature = transaction.signature();
        match decode::preflight(&error) {
            Some((TransactionError::AlreadyProcessed, _)) => Ok(()),
            Some((error, logs)) => {
                let failure = decode::failure(error, &transaction.transaction.message, logs);
                Err(ChainError::Refused { signature, failure: Box::new(failure) })
            }
            None => Err(rpc("sendTransaction")(error)),
        }
    }

    fn is_final_enough(&self, status: &TransactionStatus) -> bool {
        status.satisfies_commitment(CommitmentConfig { commitment: self.settings.commitment.commitment })
    }

    fn landed(&self, slot: u64) -> Landed {
        self.landed_slot.fetch_max(slot, Ordering::AcqRel);
        Landed { slot }
    }

    /// Answers the one whose transaction has a final status.
    fn settle(&self, signature: Signature, status: &TransactionStatus) {
        if !self.is_final_enough(status) {
            return;
        }
        let Some(pending) = self.lock().remove(&signature) else { return };
        let outcome = match &status.err {
            None => Ok(self.landed(status.slot)),
            Some(error) => {
                let message = &pending.transaction.transaction.message;
                let failure = Box::new(decode::failure(error.clone(), message, Vec::new()));
                Err(ChainError::Failed { signature, failure })
            }
        };
        // A caller that went away does not want to know.
        let _ = pending.outcome.send(outcome);
    }

    /// Tells everybody that the node can't be worked with.
    fn abandon(&self, last_error: ChainError) {
        let (after, last_error) = (self.settings.patience, Arc::new(last_error));
        for (signature, pending) in self.lock().drain() {
            let error = ChainError::GaveUp { signature, after, source: last_error.clone() };
            let _ = pending.outcome.send(Err(error));
        }
    }

    /// When something is due, if anything is on its way.
    fn next_poll(&self) -> Option<Instant> {
        self.lock().values().map(|pending| pending.poll_at).min()
    }

    /// One round: ask for the statuses that are due, settle what is final, give up what expired, send the rest again.
    async fn round(&self) -> Result<(), ChainError> {
        let now = Instant::now();
        let due: Vec<Signature> = self
            .lock()
            .iter_mut()
            .filter(|(_, pending)| pending.poll_at <= now)
            .map(|(signature, pending)| {
                pending.poll_at = now + self.settings.poll_interval;
                *signature
            })
            .collect();
        for chunk in due.chunks(MAX_STATUSES_PER_CALL) {
            let statuses = self.client.get_signature_statuses(chunk).await;
            let statuses = statuses.map_err(rpc("getSignatureStatuses"))?.value;
            for (signature, status) in chunk.iter().zip(statuses) {
                if let Some(status) = status {
                    self.settle(*signature, &status);
                }
            }
        }
        let now = Instant::now();
        let unconfirmed: Vec<SignedTransaction> = self
            .lock()
            .values()
            .filter(|pending| now - pending.sent_at >= self.settings.resend_interval)
            .map(|pending| pending.transaction.clone())
            .collect();
        if unconfirmed.is_empty() {
            return Ok(());
        }
        let height = self.client.get_block_height().await.map_err(rpc("getBlockHeight"))?;
        let (alive, expired): (Vec<_>, Vec<_>) =
            unconfirmed.into_iter().partition(|transaction| transaction.last_valid_block_height >= height);
        self.resend(alive).await;
        self.give_up(expired).await
    }

    async fn resend(&self, transactions: Vec<SignedTransaction>) {
        let resend = |transaction: SignedTransaction| async move {
            let signature = transaction.signature();
            // It passed its preflight once; whatever is wrong now, the next round tells.
            if let Err(error) = self.send(&transaction, false).await {
                tracing::debug!(%signature, %error, "resend failed");
            }
            if let Some(pending) = self.lock().get_mut(&signature) {
                pending.sent_at = Instant::now();
            }
        };
        stream::iter(transactions).for_each_concurrent(MAX_SENDS_IN_FLIGHT, resend).await;
    }

    /// A last look in the history, then the verdict.
    async fn give_up(&self, transactions: Vec<SignedTransaction>) -> Result<(), ChainError> {
        for chunk in transactions.chunks(MAX_STATUSES_PER_CALL) {
            let signatures: Vec<Signature> = chunk.iter().map(SignedTransaction::signature).collect();
            let statuses = self.client.get_signature_statuses_with_history(&signatures).await;
            let statuses = statuses.map_err(rpc("getSignatureStatuses"))?.value;
            for (signature, status) in signatures.into_iter().zip(statuses) {
                if let Some(status) = status {
                    self.settle(signature, &status);
                } else if let Some(pending) = self.lock().remove(&signature) {
                    let _ = pending.outcome.send(Err(ChainError::Expired { signature }));
                }
            }
        }
        Ok(())
    }
}

/// Runs rounds as long as there is something to wait for.
async fn poll(shared: Arc<Shared>) {
    let mut failing_since: Option<Instant> = None;
    loop {
        match shared.next_poll() {
            None => shared.arrived.notified().await,
            Some(at) if at > Instant::now() => {
                tokio::select! {
                    () = tokio::time::sleep_until(at) => (),
                    () = shared.arrived.notified() => (),
                }
            }
            Some(_) => {
                let Err(error) = shared.round().await else {
                    failing_since = None;
                    continue;
                };
                tracing::warn!(%error, "could not ask what became of transactions");
                let since = *failing_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= shared.settings.patience {
                    shared.abandon(error);
                    failing_since = None;
                }
                tokio::time::sleep(shared.settings.poll_interval).await;
            }
        }
    }
}
