//! One round of transactions: limited, signed, recorded, sent, confirmed.

use futures::{
    StreamExt, TryStreamExt,
    stream::{self, FuturesUnordered},
};
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use super::{EngineError, Event, SharedSigner, Signers, bundle::Runner, error::chain_of};
use crate::{
    chain::{Chain, ChainError, Landed, SignedTransaction},
    plan::{ComputeUnits, PlanContext, PlannedTransaction},
    store::{NewTransaction, TransactionOutcome},
    types::{BundleKey, ComputeLimit, Lamports, Stage},
};

/// The most that one transaction may use.
pub(super) const MAX_COMPUTE_UNITS: u32 = 1_400_000;
/// Simulations of one round at a time.
const SIMULATIONS_IN_FLIGHT: usize = 16;

/// Transactions that are signed and recorded in one go.
const SIGNED_TOGETHER: usize = 32;
/// Requests for what transactions cost at a time.
const COSTS_IN_FLIGHT: usize = 32;

/// Transactions that are sent together, each with the commits that it serves.
pub(super) struct Round {
    pub(super) transactions: Vec<(PlannedTransaction, Vec<(BundleKey, usize)>)>,
    /// Whether limits come from simulation, whatever the settings say: those from the table were too low.
    pub(super) simulate: bool,
    /// Whether they have been run already: limits and outcomes are as good as they can be known.
    pub(super) rehearsed: bool,
}

impl Round {
    /// The transactions of one bundle.
    pub(super) fn of(key: BundleKey, transactions: Vec<PlannedTransaction>) -> Self {
        let serves = |transaction: PlannedTransaction| {
            let serves = transaction.commits.iter().map(|commit| (key, *commit)).collect();
            (transaction, serves)
        };
        Self {
            transactions: transactions.into_iter().map(serves).collect(),
            simulate: false,
            rehearsed: false,
        }
    }
}

impl<C: Chain> Runner<C> {
    /// Signs, records, sends and confirms the transactions of one round. Returns the one that commits or finalizes, if it
    /// was among them.
    pub(super) async fn round(
        &self,
        round: Round,
        context: &PlanContext,
    ) -> Result<Option<Signature>, EngineError> {
        let Round { transactions, simulate, rehearsed } = round;
        let planned = stream::iter(transactions)
            .map(|(planned, serves)| async move {
                let planned =
                    if rehearsed { planned } else { self.limited(planned, simulate, context).await? };
                Ok::<_, EngineError>((planned, serves))
            })
            .buffered(SIMULATIONS_IN_FLIGHT);
        let planned: Vec<(PlannedTransaction, Vec<(BundleKey, usize)>)> = planned.try_collect().await?;
        let mut planned = planned.into_iter();
        let mut sending = FuturesUnordered::new();
        let mut applied = None;
        let mut failed = None;
        loop {
            // Signed when they are about to be sent: a blockhash does not outlive a long upload.
            while sending.len() < self.settings.transactions_in_flight.max(1) {
                let batch: Vec<_> = planned.by_ref().take(SIGNED_TOGETHER).collect();
                if batch.is_empty() {
                    break;
                }
                for (bundle, stage, transaction) in self.sign_and_record(batch, rehearsed, context).await? {
                    sending.push(self.send(bundle, stage, transaction));
                }
            }
            let Some(outcome) = sending.next().await else { break };
            match outcome {
                Ok((Stage::Commit | Stage::Finalize, signature)) => applied = Some(signature),
                Ok(_) => (),
                Err(error) if error.is_transient() && !error.is_outage() => failed = failed.or(Some(error)),
                // No use in sending the rest.
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(applied), Err)
    }

    /// Signs transactions with a fresh blockhash, and records them before anybody can send them.
    async fn sign_and_record(
        &self,
        planned: Vec<(PlannedTransaction, Vec<(BundleKey, usize)>)>,
        rehearsed: bool,
        context: &PlanContext,
    ) -> Result<Vec<(Option<BundleKey>, Stage, SignedTransaction)>, EngineError> {
        let recent = self.chain.recent_blockhash().await?;
        let mut signed = Vec::with_capacity(planned.len());
        let mut records = Vec::with_capacity(planned.len());
        for (planned, serves) in planned {
            let transaction = SignedTransaction {
                transaction: self.sign(&planned, context, recent.blockhash)?,
                last_valid_block_height: recent.last_valid_block_height,
                // Uploads are many, cheap and independent; what applies should fail before it costs anything.
                preflight: !rehearsed && matches!(planned.stage, Stage::Commit | Stage::Finalize),
            };
            let first = serves.first().map(|(bundle, _)| *bundle);
            records.push(NewTransaction {
                stage: planned.stage,
                signature: transaction.signature(),
                last_valid_block_height: recent.last_valid_block_height,
                serves,
            });
            signed.push((first, planned.stage, transaction));
        }
        self.store.signed(records).await?;
        Ok(signed)
    }

    /// The transaction with a compute-unit limit from where the settings say.
    async fn limited(
        &self,
        planned: PlannedTransaction,
        simulate: bool,
        context: &PlanContext,
    ) -> Result<PlannedTransaction, EngineError> {
        let stage = planned.stage;
        if !simulate && self.settings.budgets.of(stage).compute != ComputeLimit::Simulate {
            return Ok(planned);
        }
        let unlimited = planned.clone().with_compute_unit_limit(MAX_COMPUTE_UNITS);
        let transaction = self.sign(&unlimited, context, Hash::default())?;
        let signature = transaction.signatures.first().copied().unwrap_or_default();
        let simulation = self.chain.simulate(&transaction).await?;
        if let Err(failure) = simulation.outcome {
            let source = ChainError::Refused { signature, failure: Box::new(failure) };
            return Err(EngineError::Transaction { stage, source });
        }
        Ok(with_units(planned, simulation.compute_units))
    }

    pub(super) fn sign(
        &self,
        planned: &PlannedTransaction,
        context: &PlanContext,
        blockhash: Hash,
    ) -> Result<VersionedTransaction, EngineError> {
        let message = planned.message(&context.payer, blockhash)?;
        let keypairs = self.keypairs(message.header().num_required_signatures);
        Ok(VersionedTransaction::try_new(message, &keypairs)?)
    }

    /// The payer first, and the authority if it is another key and has to sign.
    fn keypairs(&self, signers: u8) -> Vec<&SharedSigner> {
        let Signers { payer, authority } = &self.signers;
        if signers < 2 { vec![payer] } else { vec![payer, authority] }
    }

    async fn send(
        &self,
        bundle: Option<BundleKey>,
        stage: Stage,
        transaction: SignedTransaction,
    ) -> Result<(Stage, Signature), EngineError> {
        let signature = transaction.signature();
        let landed = self.chain.land(transaction).await;
        self.settle(signature, &landed).await?;
        landed.map_err(|source| EngineError::Transaction { stage, source })?;
        if let Some(bundle) = bundle {
            self.tell(Event::Landed { bundle, stage, signature });
        }
        Ok((stage, signature))
    }

    /// Records what became of a transaction; of one that may still land, nothing.
    pub(super) async fn settle(
        &self,
        signature: Signature,
        landed: &Result<Landed, ChainError>,
    ) -> Result<(), EngineError> {
        let outcome = match landed {
            Ok(Landed { slot }) => TransactionOutcome::Landed { slot: *slot },
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

    /// Asks for what the landed transactions of a bundle cost, and records it. Nothing waits for it but the end of the
    /// bundle; what the node does not tell stays unknown.
    pub(super) async fn record_costs(&self, key: BundleKey) {
        if !self.settings.record_costs {
            return;
        }
        let signatures = match self.store.without_cost(key).await {
            Ok(signatures) => signatures,
            Err(error) => {
                tracing::warn!(bundle = %key, error = chain_of(&error), "could not look for costs");
                return;
            }
        };
        let costs: Vec<_> = signatures.into_iter().map(|signature| self.record_cost(signature)).collect();
        stream::iter(costs).buffer_unordered(COSTS_IN_FLIGHT).collect::<()>().await;
    }

    async fn record_cost(&self, signature: Signature) {
        let Ok(Some(cost)) = self.chain.cost(signature).await else { return };
        let (units, fee) = (cost.compute_units, Lamports(cost.fee_lamports));
        if let Err(error) = self.store.cost(signature, units, fee).await {
            tracing::warn!(%signature, error = chain_of(&error), "could not record a cost");
        }
    }
}

/// The transaction with a limit that leaves room above the compute units that it was seen to use.
pub(super) fn with_units(planned: PlannedTransaction, units: u64) -> PlannedTransaction {
    let limit = u32::try_from(ComputeUnits(units).with_margin().0).unwrap_or(MAX_COMPUTE_UNITS);
    planned.with_compute_unit_limit(limit.min(MAX_COMPUTE_UNITS))
}
