//! Asking what became of transactions.

use std::{collections::HashMap, sync::Arc};

use solana_address::Address;
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction_status_client_types::TransactionStatus;
use tokio::time::{Instant, sleep_until};

use super::{
    ChainError, Lifetime,
    node::MAX_STATUSES_PER_CALL,
    nonce::stored_nonce,
    pace::Pace,
    pending::{Outcome, Shared},
};

/// How often the history must not know a transaction, after its lifetime, before that is believed.
const MISSES: u32 = 2;

impl Shared {
    /// One round: ask for the statuses that are due, settle what is final, give up what can't land any more. Returns the
    /// number of status calls, and whether there was any news.
    async fn round(&self) -> Result<(usize, bool), ChainError> {
        let now = Instant::now();
        let due: Vec<Signature> = self
            .lock()
            .iter()
            .filter(|(_, pending)| pending.poll_at <= now)
            .map(|(signature, _)| *signature)
            .collect();
        let mut news = false;
        let statuses = self.node.statuses(&due, false, None).await?;
        for (signature, status) in due.iter().zip(statuses) {
            news |= status.is_some_and(|status| self.settle(*signature, &status));
        }
        let over = self.over().await?;
        let calls = due.len().div_ceil(MAX_STATUSES_PER_CALL) + over.len().div_ceil(MAX_STATUSES_PER_CALL);
        self.give_up(over).await?;
        Ok((calls, news))
    }

    /// Tells the outcome of a transaction that has a final status.
    fn settle(&self, signature: Signature, status: &TransactionStatus) -> bool {
        if !self.is_final_enough(status) {
            return false;
        }
        let slot = status.slot;
        let outcome = match &status.err {
            None => Outcome::Landed { slot },
            Some(error) => Outcome::Failed { slot, error: error.clone() },
        };
        self.count(|stats| stats.polled += 1);
        self.tell(signature, outcome);
        true
    }

    /// The transactions whose lifetime is over. They may have landed within it.
    async fn over(&self) -> Result<Vec<Signature>, ChainError> {
        let now = Instant::now();
        let again_at = now + self.settings.resend_interval;
        let (mut heights, mut nonces) = (Vec::new(), Vec::new());
        for (signature, pending) in self.lock().iter_mut().filter(|(_, pending)| pending.doubt_at <= now) {
            match pending.lifetime {
                Lifetime::BlockHeight(last) => heights.push((*signature, last)),
                Lifetime::Nonce { account, nonce } => {
                    // Not in every round: accounts are dear to ask for.
                    pending.doubt_at = again_at;
                    nonces.push((*signature, account, nonce));
                }
            }
        }
        let mut over = Vec::new();
        if !heights.is_empty() {
            let height = self.node.position().await?.block_height;
            over.extend(
                heights.into_iter().filter(|(_, last)| *last < height).map(|(signature, _)| signature),
            );
        }
        if !nonces.is_empty() {
            let stored = self.nonces(nonces.iter().map(|(_, account, _)| *account).collect()).await?;
            let changed = |account: &Address, nonce: &Hash| stored.get(account) != Some(nonce);
            let used = nonces.into_iter().filter(|(_, account, nonce)| changed(account, nonce));
            let used: Vec<Signature> = used.map(|(signature, ..)| signature).collect();
            // A nonce does not come back, so the next look need not wait.
            for signature in &used {
                self.update(*signature, |pending| pending.doubt_at = now);
            }
            over.extend(used);
        }
        Ok(over)
    }

    /// What nonce accounts hold now.
    async fn nonces(&self, mut accounts: Vec<Address>) -> Result<HashMap<Address, Hash>, ChainError> {
        accounts.sort_unstable();
        accounts.dedup();
        let found = self.node.accounts(&accounts, true).await?;
        let mut nonces = HashMap::with_capacity(accounts.len());
        for (address, account) in accounts.into_iter().zip(found) {
            let account = account.and_then(|account| account.to_account());
            if let Some(nonce) = account.as_ref().and_then(stored_nonce) {
                nonces.insert(address, nonce);
            }
        }
        Ok(nonces)
    }

    /// A last look in the history of a node that has seen the end of these transactions' lifetimes; then the verdict.
    async fn give_up(&self, over: Vec<Signature>) -> Result<(), ChainError> {
        let floor = self.node.seen();
        let statuses = self.node.statuses(&over, true, floor).await?;
        for (signature, status) in over.into_iter().zip(statuses) {
            if let Some(status) = status {
                // Known, but perhaps not final yet: it may still end either way.
                if !self.settle(signature, &status) {
                    self.update(signature, |pending| pending.misses = 0);
                }
                continue;
            }
            let mut misses = 0;
            self.update(signature, |pending| {
                pending.misses += 1;
                misses = pending.misses;
            });
            if misses >= MISSES {
                self.count(|stats| stats.expired += 1);
                self.tell(signature, Outcome::Expired);
            }
        }
        Ok(())
    }

    /// When something is to be asked for, if anything is on its way; and how much there is.
    fn next_poll(&self) -> (Option<Instant>, usize) {
        let pending = self.lock();
        let next = pending.values().map(|pending| pending.poll_at.min(pending.doubt_at)).min();
        (next, pending.len())
    }
}

/// Runs rounds as long as there is something to wait for.
pub(super) async fn poll(shared: Arc<Shared>) {
    let mut failing_since: Option<Instant> = None;
    let mut pace = Pace::new(shared.settings.poll_interval, Instant::now());
    let mut before = 0;
    loop {
        let (next, count) = shared.next_poll();
        match next.map(|at| at.max(pace.next())) {
            None => shared.to_poll.notified().await,
            Some(at) if at > Instant::now() => {
                tokio::select! {
                    () = sleep_until(at) => (),
                    () = shared.to_poll.notified() => (),
                }
            }
            Some(_) => {
                let started = Instant::now();
                match shared.round().await {
                    Ok((calls, news)) => {
                        failing_since = None;
                        pace.round(started, calls, news || count > before);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "could not ask what became of transactions");
                        let since = *failing_since.get_or_insert(started);
                        if since.elapsed() >= shared.settings.patience {
                            shared.abandon(since.elapsed(), error);
                            failing_since = None;
                        }
                        // The request has waited and tried enough; what is due stays so.
                        pace.round(Instant::now(), 1, true);
                    }
                }
                before = shared.next_poll().1;
            }
        }
    }
}
