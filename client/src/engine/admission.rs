//! Which bundles are refused before they are accepted.

use solana_signer::Signer;

use super::{EngineError, bundle::Runner, error::chain_of};
use crate::{
    chain::Chain,
    plan::{Admission, PlanContext, PlanError, Prices, RentSchedule, StagePrice, admit, plan_bundle},
    store::{Refusal, StoredBundle, StoredCommit},
    types::{
        BundleId, BundleKey, BundleStatus, Changeset, ChangesetId, CommitBundle, CommitId, ComputeLimit,
        Lamports, PriorityFee,
    },
};

/// A bundle that can't be atomic.
pub(super) struct Refused {
    pub(super) position: usize,
    pub(super) id: BundleId,
    pub(super) error: PlanError,
}

impl Refused {
    /// What the store keeps of it.
    pub(super) fn refusal(&self) -> Refusal {
        let hint = self.error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
        Refusal { position: self.position, reason: format!("{}{hint}", chain_of(&self.error)) }
    }
}

impl<C: Chain> Runner<C> {
    /// The bundles of a changeset that fit no transaction. The chain is asked only where that depends on what the accounts
    /// hold; if it can't be reached, the bundle is accepted, and refused when its turn comes.
    ///
    /// # Errors
    /// [`EngineError::Changeset`] if an action has to be signed by somebody else.
    pub(super) async fn refused(&self, changeset: &Changeset) -> Result<Vec<Refused>, EngineError> {
        let (payer, authority) = (self.signers.payer.pubkey(), self.signers.authority.pubkey());
        for bundle in &changeset.bundles {
            bundle.check_signers(payer, authority)?;
        }
        let Some(context) = self.admission_context().await else { return Ok(Vec::new()) };
        let mut refused = Vec::new();
        for (position, bundle) in changeset.bundles.iter().enumerate() {
            let error = match admit(bundle, &context) {
                Admission::Fits => continue,
                Admission::Refused(error) => error,
                Admission::Depends => match self.plan_now(bundle).await {
                    Err(EngineError::Plan(error @ PlanError::DoesNotFit { .. })) => error,
                    _ => continue,
                },
            };
            refused.push(Refused { position, id: bundle.id, error });
        }
        Ok(refused)
    }

    /// What bundles are measured with before anything about them is known; `None` if the transaction format is not known
    /// and can't be asked for now.
    async fn admission_context(&self) -> Option<PlanContext> {
        let version = self.transaction_version().await.ok()?;
        let prices = Prices::new(|stage| {
            let budget = self.settings.budgets.of(stage);
            StagePrice {
                // Any price takes the same room.
                micro_lamports_per_unit: u64::from(budget.priority_fee != PriorityFee::default()),
                fixed_limit: match budget.compute {
                    ComputeLimit::Fixed(units) => Some(units),
                    ComputeLimit::Table | ComputeLimit::Simulate => None,
                },
            }
        });
        Some(PlanContext {
            payer: self.signers.payer.pubkey(),
            authority: self.signers.authority.pubkey(),
            version,
            rent: RentSchedule { empty_account: Lamports(1), per_byte: Lamports(1) },
            prices,
            tables: Vec::new(),
        })
    }

    /// Plans a bundle as if its turn had come.
    async fn plan_now(&self, bundle: &CommitBundle) -> Result<(), EngineError> {
        let bundle = unstored(bundle);
        let (context, mut facts) = tokio::try_join!(self.context(&[]), self.facts(&bundle))?;
        self.add_bases(&mut facts, &context).await?;
        plan_bundle(&facts, &context)?;
        Ok(())
    }
}

/// A bundle in the form of a stored one, before it is stored.
pub(super) fn unstored(bundle: &CommitBundle) -> StoredBundle {
    let commit = |commit: &crate::types::AccountCommit| StoredCommit {
        account: commit.account,
        // No commit has it: ids are random.
        commit_id: CommitId(0),
        state: commit.state.clone(),
    };
    StoredBundle {
        key: BundleKey(0),
        changeset: ChangesetId(0),
        id: bundle.id,
        mode: bundle.mode,
        status: BundleStatus::Accepted,
        asked_at_ms: 0,
        commits: bundle.commits.iter().map(commit).collect(),
        actions: bundle.actions.clone(),
    }
}
