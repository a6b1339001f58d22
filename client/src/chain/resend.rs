//! Sending, again and again.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use solana_rpc_client_api::config::RpcSendTransactionConfig;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use solana_transaction_status_client_types::UiTransactionEncoding;
use tokio::time::{Instant, sleep_until};

use super::{
    ChainError, FaultKind, Lifetime, SignedTransaction, decode,
    endpoints::Needs,
    fault::Fault,
    pending::{Outcome, Shared},
};

const METHOD: &str = "sendTransaction";
/// How long a node has at least to take a transaction, its simulation included.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

impl Shared {
    /// Sends a registered transaction once. What the node says about it is an error only if it is certain that no node has
    /// taken it.
    pub(super) async fn send(&self, transaction: &SignedTransaction) -> Result<(), ChainError> {
        let signature = transaction.signature();
        let on_its_way = self.lock().get(&signature).is_some_and(|pending| pending.on_its_way);
        // It may be in a block already: a simulation then tells about the state after it.
        let preflight = transaction.preflight && !on_its_way;
        let sent = {
            // The semaphore is never closed.
            let _permit = self.sends.acquire().await;
            self.request(transaction, preflight).await
        };
        let verdict = match sent {
            Ok(()) => {
                let at = Instant::now() + self.settings.resend_interval;
                self.update(signature, |pending| {
                    pending.on_its_way = true;
                    pending.failures = 0;
                    pending.resend_at = at;
                });
                Ok(())
            }
            Err(fault) => self.not_sent(transaction, fault).await,
        };
        self.update(signature, |pending| pending.sending = false);
        self.to_poll.notify_one();
        self.to_resend.notify_one();
        verdict
    }

    /// What follows from a try to send that failed.
    async fn not_sent(&self, transaction: &SignedTransaction, fault: Fault) -> Result<(), ChainError> {
        let (now, settings) = (Instant::now(), &self.settings);
        let signature = transaction.signature();
        let message = &transaction.transaction.message;
        let refused = decode::preflight(&fault.source);
        // It is in a block, or was: the status tells which and how.
        let known = matches!(refused, Some((TransactionError::AlreadyProcessed, _)));
        // Either the node has not seen the blockhash yet, or its time is over: the block height tells.
        let unknown_blockhash = matches!(refused, Some((TransactionError::BlockhashNotFound, _)));
        let mut on_its_way = false;
        self.update(signature, |pending| {
            pending.on_its_way |= known || fault.kind.may_have_worked();
            pending.failures = pending.failures.saturating_add(1);
            pending.resend_at = now + settings.resend_interval;
            if fault.kind.is_outage() {
                pending.resend_at = now + settings.retry.delay(pending.failures);
            }
            if known {
                pending.poll_at = now;
            }
            if unknown_blockhash {
                pending.resend_at = now + settings.poll_interval;
                pending.poll_at = now;
                pending.doubt_at = now;
            }
            on_its_way = pending.on_its_way;
        });
        if unknown_blockhash {
            self.node.forget_blockhash(message.recent_blockhash()).await;
        }
        let (kind, error) = (fault.kind, &fault.source);
        tracing::debug!(%signature, %kind, %error, on_its_way, "send failed");
        if on_its_way || unknown_blockhash || fault.kind.is_outage() {
            return Ok(());
        }
        Err(match refused {
            Some((error, logs)) => {
                let failure = Box::new(decode::failure(error, Some(message), logs));
                ChainError::Refused { signature, failure }
            }
            None => ChainError::rpc(METHOD)(fault),
        })
    }

    async fn request(&self, transaction: &SignedTransaction, preflight: bool) -> Result<(), Fault> {
        let unsendable = |error| Fault::of(FaultKind::Rejected, 0, error);
        #[cfg(feature = "tpu")]
        if let Some(tpu) = self.tpu.as_ref().filter(|_| !preflight) {
            let bytes = decode::wire(&transaction.transaction).map_err(unsendable)?;
            tpu.send(bytes).await?;
            self.count(|stats| stats.sent_to_leaders += 1);
            return Ok(());
        }
        let bytes = decode::base64(&transaction.transaction).map_err(unsendable)?;
        let config = RpcSendTransactionConfig {
            skip_preflight: !preflight,
            preflight_commitment: Some(self.settings.commitment.commitment),
            encoding: Some(UiTransactionEncoding::Base64),
            // Resending is this module's work.
            max_retries: Some(0),
            // A simulation has to know the blockhash and the accounts as this client does.
            min_context_slot: self.node.seen().filter(|_| preflight),
        };
        // A node that does not answer must not keep the transaction from the next one. That it got it, is possible.
        let timeout = self.settings.resend_interval.saturating_mul(2).max(MIN_TIMEOUT);
        let timeout = Some(timeout.min(self.settings.request_timeout));
        let needs = Needs { once: true, in_turn: true, floor: None, timeout };
        let name: String = self.node.endpoints.request(METHOD, json!([bytes, config]), needs).await?;
        if name != transaction.signature().to_string() {
            // It told of another transaction: what became of this one is open.
            return Err(Fault::of(FaultKind::Garbage, 1, format!("it sent {name}")));
        }
        Ok(())
    }
}

/// Sends again what is not confirmed, as long as it can land.
pub(super) async fn resend(shared: Arc<Shared>) {
    loop {
        let next =
            shared.lock().values().filter(|pending| !pending.sending).map(|pending| pending.resend_at).min();
        match next {
            None => shared.to_resend.notified().await,
            Some(at) if at > Instant::now() => {
                tokio::select! {
                    () = sleep_until(at) => (),
                    () = shared.to_resend.notified() => (),
                }
            }
            Some(_) => {
                // Each in a task of its own, since a node may let one wait for long; the semaphore bounds how many there are
                // that do anything.
                for signature in due(&shared) {
                    let task = send_again(shared.clone(), signature);
                    shared.tasks.spawn(shared.cancelled.clone().run_until_cancelled_owned(task));
                }
            }
        }
    }
}

fn due(shared: &Shared) -> Vec<Signature> {
    let now = Instant::now();
    let mut pending = shared.lock();
    let due = pending.iter_mut().filter(|(_, pending)| !pending.sending && pending.resend_at <= now);
    due.map(|(signature, pending)| {
        pending.sending = true;
        *signature
    })
    .collect()
}

async fn send_again(shared: Arc<Shared>, signature: Signature) {
    let Some((transaction, lifetime)) =
        shared.lock().get(&signature).map(|pending| (pending.transaction.clone(), pending.lifetime))
    else {
        return;
    };
    if let Lifetime::BlockHeight(last) = lifetime
        // While the node does not tell the height, the transaction may live.
        && shared.node.position().await.is_ok_and(|position| position.block_height > last)
    {
        let at = Instant::now() + shared.settings.resend_interval;
        shared.update(signature, |pending| {
            pending.sending = false;
            pending.resend_at = at;
            pending.doubt_at = Instant::now();
        });
        shared.to_poll.notify_one();
        return;
    }
    shared.count(|stats| stats.resent += 1);
    match shared.send(&transaction).await {
        Ok(()) => (),
        Err(ChainError::Refused { failure, .. }) => shared.tell(signature, Outcome::Refused(failure)),
        Err(error) => {
            let (after, source) = (shared.settings.resend_interval, Arc::new(error));
            shared.tell(signature, Outcome::Unknown { after, source });
        }
    }
}
