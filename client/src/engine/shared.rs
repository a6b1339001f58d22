//! Small bundles of one changeset that share a transaction.
//!
//! Whatever goes wrong with a shared transaction, each of its bundles is then worked on alone: none takes another down.

use futures::future::join_all;
use solana_address::Address;
use tokio::sync::mpsc;

use super::{
    EngineError, Event,
    bundle::{Runner, decisions},
    error::chain_of,
    round::Round,
    scheduler::Message,
};
use crate::{
    chain::Chain,
    plan::{BundlePlan, PlanContext, Shared, pack, plan_bundle},
    store::{BundleEnd, StoredBundle},
    types::BundleKey,
};

impl<C: Chain> Runner<C> {
    /// Works on bundles that share no account until the work on all of them has ended, and tells the scheduler of each.
    pub(super) async fn run_group(&self, keys: &[BundleKey], ended: &mpsc::UnboundedSender<Message>) {
        let mut left = keys.to_vec();
        if keys.len() > 1 {
            match self.share(keys).await {
                Ok(landed) => {
                    left.retain(|key| !landed.contains(key));
                    // The scheduler is gone only when everything ends.
                    landed.into_iter().for_each(|key| drop(ended.send(Message::Ended(key))));
                }
                Err(error) => {
                    tracing::debug!(error = chain_of(&error), "bundles could not share transactions");
                }
            }
        }
        let alone: Vec<_> = left.into_iter().map(|key| self.run_alone(key, ended)).collect();
        join_all(alone).await;
    }

    async fn run_alone(&self, key: BundleKey, ended: &mpsc::UnboundedSender<Message>) {
        self.run(key).await;
        let _ = ended.send(Message::Ended(key));
    }

    /// Brings what can share a transaction to the chain, and returns the bundles that landed.
    async fn share(&self, keys: &[BundleKey]) -> Result<Vec<BundleKey>, EngineError> {
        let mut bundles = Vec::with_capacity(keys.len());
        for key in keys {
            bundles.push(self.store.bundle(*key).await?);
        }
        let accounts: Vec<Address> =
            bundles.iter().flat_map(|bundle| &bundle.commits).map(|commit| commit.account).collect();
        let (context, facts) = tokio::try_join!(self.context(&accounts), self.facts_of(&bundles))?;
        let plans: Vec<Option<BundlePlan>> =
            facts.iter().map(|facts| plan_bundle(facts, &context).ok()).collect();
        let shared = pack(&plans, &context);
        let sent: Vec<_> =
            shared.iter().map(|shared| self.send_shared(&bundles, &plans, shared, &context)).collect();
        let mut landed = Vec::new();
        for (shared, sent) in shared.iter().zip(join_all(sent).await) {
            let keys = shared.bundles.iter().map(|index| bundles[*index].key);
            match sent {
                Ok(()) => landed.extend(keys),
                Err(error) => {
                    let reason = chain_of(&error);
                    keys.for_each(|bundle| self.tell(Event::Retrying { bundle, reason: reason.clone() }));
                }
            }
        }
        Ok(landed)
    }

    async fn send_shared(
        &self,
        bundles: &[StoredBundle],
        plans: &[Option<BundlePlan>],
        shared: &Shared,
        context: &PlanContext,
    ) -> Result<(), EngineError> {
        let mut serves = Vec::new();
        for (position, index) in shared.bundles.iter().enumerate() {
            let (bundle, Some(plan)) = (&bundles[*index], &plans[*index]) else { continue };
            self.tell(Event::Planned { bundle: bundle.key, transactions: usize::from(position == 0) });
            self.store.decide(bundle.key, decisions(plan)).await?;
            serves.extend((0..bundle.commits.len()).map(|commit| (bundle.key, commit)));
        }
        let alone = vec![vec![shared.transaction.clone()]];
        let (rounds, rehearsed) = self.rehearsed(alone, false, context).await?;
        let transactions = rounds.into_iter().flatten().map(|planned| (planned, serves.clone())).collect();
        let round = Round { transactions, simulate: false, rehearsed };
        let proof = self.round(round, context).await?;
        let keys = shared.bundles.iter().map(|index| bundles[*index].key);
        // Once for all of them.
        self.record_costs(bundles[shared.bundles[0]].key).await;
        let ends: Vec<_> = keys.map(|key| self.end(key, BundleEnd::Landed(proof))).collect();
        join_all(ends).await;
        Ok(())
    }
}
