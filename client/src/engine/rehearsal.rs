//! Running a plan before it costs anything, where the chain can do that in this process.

use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use super::{
    EngineError,
    bundle::Runner,
    round::{MAX_COMPUTE_UNITS, with_units},
};
use crate::{
    chain::{Chain, ChainError},
    plan::{PlanContext, PlannedTransaction},
    types::{ComputeLimit, Stage},
};

impl<C: Chain> Runner<C> {
    /// Runs the rounds of a plan one after the other on the chain's state of one slot: a bundle that is doomed ends before
    /// anything is spent. Compute-unit limits come from it where the settings want simulated ones. The rounds, and whether
    /// they were run.
    ///
    /// # Errors
    /// [`EngineError::Transaction`] for the first transaction that would fail.
    pub(super) async fn rehearsed(
        &self,
        rounds: Vec<Vec<PlannedTransaction>>,
        simulate: bool,
        context: &PlanContext,
    ) -> Result<(Vec<Vec<PlannedTransaction>>, bool), EngineError> {
        let limits = |planned: &PlannedTransaction| {
            simulate || self.settings.budgets.of(planned.stage).compute == ComputeLimit::Simulate
        };
        let unsigned = |planned: &PlannedTransaction| {
            let planned = planned.clone();
            let planned =
                if limits(&planned) { planned.with_compute_unit_limit(MAX_COMPUTE_UNITS) } else { planned };
            let message = planned.message(&context.payer, Hash::default())?;
            let signatures = vec![Signature::default(); message.header().num_required_signatures.into()];
            Ok::<_, EngineError>(VersionedTransaction { signatures, message })
        };
        let transactions = rounds.iter().flatten().map(unsigned).collect::<Result<Vec<_>, _>>()?;
        let Some(simulations) = self.chain.rehearse(&transactions).await else { return Ok((rounds, false)) };
        let mut simulations = simulations.into_iter();
        let mut limited = Vec::with_capacity(rounds.len());
        for round in &rounds {
            let mut transactions = Vec::with_capacity(round.len());
            for planned in round {
                let Some(simulation) = simulations.next() else { return Ok((rounds, false)) };
                match simulation.outcome {
                    Ok(()) if limits(planned) => {
                        transactions.push(with_units(planned.clone(), simulation.compute_units));
                    }
                    Ok(()) => transactions.push(planned.clone()),
                    // By then the bundle is applied, and what is left can be closed at any time.
                    Err(_) if planned.stage == Stage::Cleanup => return Ok((rounds, false)),
                    Err(failure) => {
                        let signed = self.sign(planned, context, Hash::default())?;
                        let signature = signed.signatures.first().copied().unwrap_or_default();
                        let source = ChainError::Refused { signature, failure: Box::new(failure) };
                        return Err(EngineError::Transaction { stage: planned.stage, source });
                    }
                }
            }
            limited.push(transactions);
        }
        Ok((limited, true))
    }
}
