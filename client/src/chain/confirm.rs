//! Sending transactions and finding out what became of them.
//!
//! The websocket tells first. What it has not told in time is asked for by one poller (`poll`), for all transactions on
//! their way. A transaction that stays unconfirmed is sent again (`resend`) until its lifetime is over, and given up only
//! after a look in the node's history.

use std::{sync::Arc, time::Duration};

use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use solana_transaction_status_client_types::option_serializer::OptionSerializer;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ChainError, Landed, RpcSettings, SignedTransaction, TransactionFailure, decode,
    node::Node,
    pending::{Outcome, Shared},
    poll::poll,
    resend::resend,
    websocket::{Notification, Websocket},
};

/// How often a failed transaction's logs are asked for before it is told without. A node has the status a moment before it
/// has the block.
const LOG_TRIES: u32 = 5;

/// Sends transactions and waits for their outcomes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Confirmer {
    shared: Arc<Shared>,
}

/// Forgets a transaction that nobody waits for any more.
struct Waiting<'a> {
    shared: &'a Shared,
    signature: Signature,
    outcome: Option<watch::Receiver<Option<Outcome>>>,
}

impl Waiting<'_> {
    /// The outcome; `None` if nobody will tell it any more.
    async fn outcome(&mut self) -> Option<Outcome> {
        let outcome = self.outcome.as_mut()?.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.outcome = None;
        self.shared.forget_unless_awaited(self.signature);
        // Whoever else waits must not depend on a send that ended here.
        self.shared.update(self.signature, |pending| pending.sending = false);
        self.shared.to_resend.notify_one();
    }
}

impl Confirmer {
    /// A confirmer, whose tasks run until they are cancelled.
    pub(super) fn new(
        node: Arc<Node>,
        settings: RpcSettings,
        tasks: &TaskTracker,
        cancelled: &CancellationToken,
    ) -> Self {
        let websocket = Websocket::new(&settings, tasks.clone());
        let shared = Arc::new(Shared::new(node, websocket, settings, tasks.clone(), cancelled.clone()));
        tasks.spawn(cancelled.clone().run_until_cancelled_owned(poll(shared.clone())));
        tasks.spawn(cancelled.clone().run_until_cancelled_owned(resend(shared.clone())));
        Self { shared }
    }

    /// Sends a transaction until it lands, fails or expires.
    pub(super) async fn land(&self, transaction: SignedTransaction) -> Result<Landed, ChainError> {
        let shared = &self.shared;
        let signature = transaction.signature();
        let outcome = Some(shared.register(&transaction));
        shared.count(|stats| stats.sent += 1);
        let mut waiting = Waiting { shared, signature, outcome };
        // A subscription made after the transaction landed is notified all the same, so neither waits for the other.
        let send = shared.send(&transaction);
        let notification = async {
            match shared.websocket.subscribe(signature).await {
                Some(subscription) => subscription.next().await,
                None => None,
            }
        };
        tokio::pin!(send, notification);
        let (mut sent, mut told) = (false, false);
        loop {
            tokio::select! {
                result = &mut send, if !sent => {
                    sent = true;
                    result?;
                }
                notification = &mut notification, if !told => {
                    told = true;
                    match notification {
                        Some(Notification::Landed { slot }) => {
                            shared.count(|stats| stats.notified += 1);
                            return Ok(shared.landed(slot));
                        }
                        // An error may be one that the node's own simulation found: only the status tells.
                        Some(Notification::Failed) => shared.poll_within(signature, Duration::ZERO),
                        // A websocket that went away tells nothing.
                        None => shared.poll_within(signature, shared.settings.poll_interval),
                    }
                }
                outcome = waiting.outcome() => {
                    let Some(outcome) = outcome else { return Err(ChainError::Stopped { signature }) };
                    return self.conclude(&transaction, outcome).await;
                }
                () = shared.cancelled.cancelled() => return Err(ChainError::Stopped { signature }),
            }
        }
    }

    async fn conclude(
        &self,
        transaction: &SignedTransaction,
        outcome: Outcome,
    ) -> Result<Landed, ChainError> {
        let signature = transaction.signature();
        match outcome {
            Outcome::Landed { slot } => Ok(self.shared.landed(slot)),
            Outcome::Failed { slot, error } => {
                self.shared.landed(slot);
                let logs = self.logs(signature).await;
                let failure = Box::new(decode::failure(error, Some(&transaction.transaction.message), logs));
                Err(ChainError::Failed { signature, failure })
            }
            Outcome::Refused(failure) => Err(ChainError::Refused { signature, failure }),
            Outcome::Expired => Err(ChainError::Expired { signature }),
            Outcome::Unknown { after, source } => Err(ChainError::GaveUp { signature, after, source }),
        }
    }

    /// What a failed transaction's programs logged; empty if the node does not tell.
    async fn logs(&self, signature: Signature) -> Vec<String> {
        for _ in 0..LOG_TRIES {
            match self.shared.node.transaction(signature).await {
                Ok(Some(found)) => {
                    return match found.transaction.meta.map(|meta| meta.log_messages) {
                        Some(OptionSerializer::Some(logs)) => logs,
                        _ => Vec::new(),
                    };
                }
                Ok(None) => tokio::time::sleep(self.shared.settings.poll_interval).await,
                Err(error) => {
                    tracing::debug!(%signature, %error, "no logs");
                    break;
                }
            }
        }
        Vec::new()
    }

    /// Tells everybody who waits that nobody will answer any more, and ends the connections to the leaders.
    pub(super) async fn stop(&self) {
        self.shared.lock().clear();
        #[cfg(feature = "tpu")]
        if let Some(tpu) = &self.shared.tpu {
            tpu.shutdown().await;
        }
    }

    /// What became of a transaction, from the node's whole history.
    pub(super) async fn find(
        &self,
        signature: Signature,
    ) -> Result<Option<Result<Landed, TransactionFailure>>, ChainError> {
        let node = &self.shared.node;
        let status = node.statuses(&[signature], true, node.seen()).await?.pop().flatten();
        let Some(status) = status.filter(|status| self.shared.is_final_enough(status)) else {
            return Ok(None);
        };
        let landed = self.shared.landed(status.slot);
        Ok(Some(match status.err {
            None => Ok(landed),
            Some(error) => Err(self.failure(signature, error).await),
        }))
    }

    /// A failure of a transaction that only the node has.
    async fn failure(&self, signature: Signature, error: TransactionError) -> TransactionFailure {
        let found = self.shared.node.transaction(signature).await.ok().flatten();
        let transaction = found.as_ref().and_then(|found| found.transaction.transaction.decode());
        let logs = match found.and_then(|found| found.transaction.meta).map(|meta| meta.log_messages) {
            Some(OptionSerializer::Some(logs)) => logs,
            _ => Vec::new(),
        };
        decode::failure(error, transaction.as_ref().map(|transaction| &transaction.message), logs)
    }
}
