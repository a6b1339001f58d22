//! What the caller holds of a changeset.

use tokio::sync::oneshot;

use super::EngineError;
use crate::{
    plan::PlanError,
    store::{ChangesetReport, Store},
    types::{BundleId, BundleKey, ChangesetId},
};

/// A changeset that has been accepted.
#[derive(Debug)]
pub struct Ticket {
    pub(super) changeset: ChangesetId,
    pub(super) bundles: Vec<(BundleId, BundleKey)>,
    pub(super) refused: Vec<(BundleId, PlanError)>,
    pub(super) store: Store,
    pub(super) finished: oneshot::Receiver<()>,
}

impl Ticket {
    /// The changeset's number.
    pub const fn changeset(&self) -> ChangesetId {
        self.changeset
    }

    /// The changeset's bundles that were accepted: the caller's ids, and the keys that events name.
    pub fn bundles(&self) -> &[(BundleId, BundleKey)] {
        &self.bundles
    }

    /// The bundles that were refused because they can't be atomic, and the limit that each breaks. Nothing was spent on
    /// them.
    pub fn refused(&self) -> &[(BundleId, PlanError)] {
        &self.refused
    }

    /// Waits until the work on every bundle has ended: it landed, is staged, failed, or gave way to a newer one. Reports on
    /// all bundles of the changeset. A bundle that failed is in the report, not an error.
    ///
    /// ```no_run
    /// # async fn run(ticket: committor_client::Ticket) -> Result<(), committor_client::EngineError> {
    /// use committor_client::types::BundleStatus;
    ///
    /// let report = ticket.finished().await?;
    /// for bundle in &report.bundles {
    ///     match (bundle.status, &bundle.error) {
    ///         (BundleStatus::Landed, _) => println!("bundle {}: {} lamports", bundle.bundle, bundle.fee_lamports),
    ///         (status, error) => println!("bundle {} is {status}: {error:?}", bundle.bundle),
    ///     }
    ///     for account in &bundle.accounts {
    ///         println!("{} by {:?} in {:?}", account.pubkey, account.strategy, account.signatures);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`] if the committor stops before that.
    pub async fn finished(self) -> Result<ChangesetReport, EngineError> {
        self.finished.await.map_err(|_| EngineError::ShuttingDown)?;
        Ok(self.store.report(Some(self.changeset)).await?)
    }
}
