//! One bundle, from its turn to its end.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use solana_keypair::Keypair;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use tokio::sync::broadcast;

use super::{EngineError, EngineSettings, Event, Signers, error::chain_of};
use crate::{
    chain::{Chain, ChainError, Landed, SignedTransaction},
    plan::{BundleFacts, PlanContext, PlannedTransaction, plan_bundle, plan_cleanup},
    store::{BundleEnd, CommitDecision, NewTransaction, Store, StoredBundle, TransactionOutcome},
    types::{BundleKey, BundleStatus, Lamports, Stage},
};

/// The longest wait between attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// What it takes to work on bundles.
pub(super) struct Runner<C> {
    pub(super) chain: Arc<C>,
    pub(super) store: Store,
    pub(super) signers: Signers,
    pub(super) settings: EngineSettings,
    pub(super) events: broadcast::Sender<Event>,
}

impl<C> Clone for Runner<C> {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            store: self.store.clone(),
            signers: self.signers.clone(),
            settings: self.settings,
            events: self.events.clone(),
        }
    }
}

/// The transaction that applied a bundle, if it is known.
type Proof = Option<Signature>;

/// What the chain says about a bundle.
enum Outcome {
    Landed(Proof),
    NotLanded,
    /// A committing transaction is still on its way.
    MayLand,
}

/// Waits longer each time.
struct Backoff(Duration);

impl Backoff {
    async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(MAX_RETRY_DELAY);
    }
}

impl<C: Chain> Runner<C> {
    /// Works on a bundle until it has ended, and records the end.
    pub(super) async fn run(&self, bundle: &StoredBundle) {
        let end = match self.attempts(bundle).await {
            Ok(proof) => BundleEnd::Landed(proof),
            Err(error) => {
                self.clean_up(bundle).await;
                BundleEnd::Failed(chain_of(&error))
            }
        };
        let status = match &end {
            BundleEnd::Landed(_) => BundleStatus::Landed,
            BundleEnd::Failed(reason) => {
                tracing::warn!(bundle = %bundle.key, reason, "bundle failed");
                BundleStatus::Failed
            }
        };
        if let Err(error) = self.store.end(bundle.key, end).await {
            // It stays unfinished, and the next start takes it up.
            tracing::error!(bundle = %bundle.key, error = chain_of(&error), "could not record the end of a bundle");
        }
        self.tell(Event::Ended { bundle: bundle.key, status });
    }

    /// Tries until the bundle has landed, or is certain not to.
    async fn attempts(&self, bundle: &StoredBundle) -> Result<Proof, EngineError> {
        let mut left = self.settings.attempts.max(1);
        let mut delay = Backoff(self.settings.first_retry_delay);
        loop {
            let error = match self.attempt(bundle).await {
                Ok(proof) => return Ok(proof),
                Err(error) => error,
            };
            if !error.is_outage() {
                left -= 1;
            }
            if !error.is_transient() || left == 0 {
                return match self.outcome(bundle).await {
                    Some(proof) => Ok(proof),
                    None => Err(error),
                };
            }
            self.tell(Event::Retrying { bundle: bundle.key, reason: chain_of(&error) });
            delay.wait().await;
        }
    }

    /// Whether the bundle has landed after all: an error may be the echo of an earlier transaction that did.
    ///
    /// Comes back only once the chain has told, and no committing transaction of the bundle can land any more.
    async fn outcome(&self, bundle: &StoredBundle) -> Option<Proof> {
        let mut delay = Backoff(self.settings.first_retry_delay);
        loop {
            match self.look(bundle).await {
                Ok(Outcome::Landed(proof)) => return Some(proof),
                Ok(Outcome::NotLanded) => return None,
                Ok(Outcome::MayLand) => (),
                // Neither answer is certain, so neither is given: a bundle called failed may not land after all.
                Err(error) => self.tell(Event::Retrying { bundle: bundle.key, reason: chain_of(&error) }),
            }
            delay.wait().await;
        }
    }

    async fn look(&self, bundle: &StoredBundle) -> Result<Outcome, EngineError> {
        // The height first: what is not found below may have landed before it, but not after.
        let height = self.chain.block_height().await?;
        let (context, facts) = tokio::try_join!(self.context(), self.facts(bundle))?;
        if let Some(proof) = self.landed(bundle, &facts, &context).await? {
            return Ok(Outcome::Landed(proof));
        }
        let open = self.store.open_commits(bundle.key).await?;
        let may_land = open.iter().any(|open| open.unknown && open.last_valid_block_height >= height);
        Ok(if may_land { Outcome::MayLand } else { Outcome::NotLanded })
    }

    /// Closes the buffers of a bundle that failed, so that their rent comes back.
    async fn clean_up(&self, bundle: &StoredBundle) {
        match tokio::try_join!(self.context(), self.facts(bundle)) {
            Ok((context, facts)) => self.close_buffers(bundle.key, &facts, &context).await,
            Err(error) => {
                tracing::warn!(bundle = %bundle.key, error = chain_of(&error), "could not look for buffers")
            }
        }
    }

    /// Closes the buffers that exist. Where that fails they stay: nothing else depends on it.
    async fn close_buffers(&self, key: BundleKey, facts: &BundleFacts, context: &PlanContext) {
        let close = async {
            let cleanup = plan_cleanup(facts, context)?;
            if cleanup.is_empty() { Ok(None) } else { self.round(key, &cleanup, context).await }
        };
        if let Err(error) = close.await {
            tracing::warn!(bundle = %key, error = chain_of(&error), "could not close buffers");
        }
    }

    async fn attempt(&self, bundle: &StoredBundle) -> Result<Proof, EngineError> {
        let (context, facts) = tokio::try_join!(self.context(), self.facts(bundle))?;
        if let Some(proof) = self.landed(bundle, &facts, &context).await? {
            return Ok(proof);
        }
        let plan = plan_bundle(&facts, &context)?;
        let transactions = plan.transactions().count();
        self.tell(Event::Planned { bundle: bundle.key, transactions });
        let decisions = plan.commits.iter().map(|commit| CommitDecision {
            session: commit.session,
            nonce: commit.nonce,
            strategy: commit.strategy,
            rent: commit.rent,
        });
        self.store.decide(bundle.key, decisions.collect()).await?;
        let mut committed = None;
        for round in &plan.rounds {
            match self.round(bundle.key, round, &context).await {
                Ok(commit) => committed = committed.or(commit),
                // It is applied; what is left of its buffers can be closed at any time.
                Err(error) if committed.is_some() => {
                    tracing::warn!(bundle = %bundle.key, error = chain_of(&error), "could not close buffers");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(committed)
    }

    /// Whether an earlier attempt has landed. If so, closes the buffers that it left.
    ///
    /// One commit that is its account's last proves it for the whole bundle, which lands as one. If another committor has
    /// committed since, the recorded transactions prove it.
    async fn landed(
        &self,
        bundle: &StoredBundle,
        facts: &BundleFacts,
        context: &PlanContext,
    ) -> Result<Option<Proof>, EngineError> {
        let mut proof = None;
        for open in self.store.open_commits(bundle.key).await? {
            if let Some(Ok(landed)) = self.chain.find(open.signature).await? {
                self.settle(open.signature, &Ok(landed)).await?;
                proof = Some(open.signature);
                break;
            }
        }
        if proof.is_none() && !facts.accounts.iter().any(|account| account.has_landed()) {
            return Ok(None);
        }
        self.close_buffers(bundle.key, facts, context).await;
        Ok(Some(proof))
    }

    /// Signs, records, sends and confirms the transactions of one round. Returns the committing one, if it was among them.
    async fn round(
        &self,
        key: BundleKey,
        round: &[PlannedTransaction],
        context: &PlanContext,
    ) -> Result<Option<Signature>, EngineError> {
        let recent = self.chain.recent_blockhash().await?;
        let mut signed = Vec::with_capacity(round.len());
        let mut records = Vec::with_capacity(round.len());
        for planned in round {
            let message = planned.message(&context.payer, recent.blockhash)?;
            let keypairs = self.keypairs(message.header().num_required_signatures);
            let transaction = SignedTransaction {
                transaction: VersionedTransaction::try_new(message, &keypairs)?,
                last_valid_block_height: recent.last_valid_block_height,
                // Uploads are many, cheap and independent; what commits should fail before it costs anything.
                preflight: planned.stage == Stage::Commit,
            };
            records.push(NewTransaction {
                stage: planned.stage,
                signature: transaction.signature(),
                last_valid_block_height: recent.last_valid_block_height,
                commits: planned.commits.clone(),
            });
            signed.push((planned.stage, transaction));
        }
        self.store.signed(key, records).await?;

        let mut committed = None;
        let mut failed = None;
        let mut outcomes = stream::iter(signed)
            .map(|(stage, transaction)| self.send(key, stage, transaction))
            .buffer_unordered(self.settings.transactions_in_flight.max(1));
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok((Stage::Commit, signature)) => committed = Some(signature),
                Ok(_) => (),
                Err(error) if error.is_transient() && !error.is_outage() => failed = failed.or(Some(error)),
                // No use in sending the rest.
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(committed), Err)
    }

    async fn send(
        &self,
        key: BundleKey,
        stage: Stage,
        transaction: SignedTransaction,
    ) -> Result<(Stage, Signature), EngineError> {
        let signature = transaction.signature();
        let landed = self.chain.land(transaction).await;
        self.settle(signature, &landed).await?;
        landed.map_err(|source| EngineError::Transaction { stage, source })?;
        self.tell(Event::Landed { bundle: key, stage, signature });
        Ok((stage, signature))
    }

    /// Records what became of a transaction; of one that may still land, nothing.
    async fn settle(
        &self,
        signature: Signature,
        landed: &Result<Landed, ChainError>,
    ) -> Result<(), EngineError> {
        let outcome = match landed {
            Ok(Landed { slot }) => {
                let cost = if self.settings.record_costs {
                    self.chain.cost(signature).await.ok().flatten()
                } else {
                    None
                };
                TransactionOutcome::Landed {
                    slot: *slot,
                    compute_units: cost.map(|cost| cost.compute_units),
                    fee: cost.map(|cost| Lamports(cost.fee_lamports)),
                }
            }
            Err(error @ (ChainError::Failed { .. } | ChainError::Refused { .. })) => {
                TransactionOutcome::Failed(chain_of(error))
            }
            Err(ChainError::Expired { .. }) => TransactionOutcome::Expired,
            Err(
                ChainError::Rpc { .. }
                | ChainError::Nonsense { .. }
                | ChainError::Stopped { .. }
                | ChainError::GaveUp { .. },
            ) => return Ok(()),
        };
        Ok(self.store.settled(signature, outcome).await?)
    }

    /// The payer first, and the authority if it is another key and has to sign.
    fn keypairs(&self, signers: u8) -> Vec<&Keypair> {
        let (payer, authority) = (&*self.signers.payer, &*self.signers.authority);
        if signers < 2 { vec![payer] } else { vec![payer, authority] }
    }

    fn tell(&self, event: Event) {
        // Nobody has to listen.
        let _ = self.events.send(event);
    }
}
