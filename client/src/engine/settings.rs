//! How the engine works, and who signs.

use std::{sync::Arc, time::Duration};

use solana_signer::Signer;

use super::tables::TableSettings;
use crate::types::{Budgets, TransactionVersion};

/// How the engine works.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Bundles that are worked on at a time. The default is the smallest number that lands as many per second as any: see
    /// `docs/performance.md`.
    pub bundles_in_flight: usize,
    /// Transactions of one bundle that are on their way at a time.
    pub transactions_in_flight: usize,
    /// How often a bundle is planned anew after an error that may pass. While the node is out of reach, it goes on without
    /// end: only the chain can tell what became of a bundle.
    pub attempts: u32,
    /// Wait before the second attempt; it doubles with each one.
    pub first_retry_delay: Duration,
    /// What it doubles up to.
    pub max_retry_delay: Duration,
    /// How long after it was accepted, or asked for again, a bundle is planned anew after an error that may pass; by default as
    /// long as it has attempts. An outage of the node does not end it here either.
    pub retry_for: Option<Duration>,
    /// The transaction format to use; by default v1 where the cluster has it.
    pub version: Option<TransactionVersion>,
    /// How transactions are limited and paid for, by stage.
    pub budgets: Budgets,
    /// Whether a bundle that waits for its turn gives way to a newer one that commits all of its accounts.
    pub coalesce: bool,
    /// Whether small bundles of a changeset share transactions.
    pub share_transactions: bool,
    /// How lookup tables are managed; only v0 transactions use them.
    pub tables: TableSettings,
    /// Whether to ask for what each transaction cost: one more request per transaction.
    pub record_costs: bool,
    /// How long changesets that have ended are kept, with their states; by default for ever.
    pub keep: Option<Duration>,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            bundles_in_flight: 128,
            transactions_in_flight: 64,
            attempts: 5,
            first_retry_delay: Duration::from_millis(250),
            max_retry_delay: Duration::from_secs(10),
            retry_for: None,
            version: None,
            budgets: Budgets::default(),
            coalesce: false,
            share_transactions: true,
            tables: TableSettings::default(),
            record_costs: true,
            keep: None,
        }
    }
}

/// Something that signs: a keypair in memory, or whatever keeps one.
pub type SharedSigner = Arc<dyn Signer + Send + Sync>;

/// Who signs.
#[derive(Clone)]
pub struct Signers {
    /// Pays fees and rent.
    pub payer: SharedSigner,
    /// The authority that the accounts are delegated to. May be the payer.
    pub authority: SharedSigner,
}

impl std::fmt::Debug for Signers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (payer, authority) = (self.payer.pubkey(), self.authority.pubkey());
        f.debug_struct("Signers").field("payer", &payer).field("authority", &authority).finish()
    }
}
