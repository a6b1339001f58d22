//! What is told while it happens.

use solana_signature::Signature;

use crate::types::{BundleKey, BundleStatus, Stage};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A bundle was planned.
    Planned {
        /// The bundle.
        bundle: BundleKey,
        /// How many transactions it takes, from here; none if it shares another bundle's.
        transactions: usize,
    },
    /// A transaction landed.
    Landed {
        /// The bundle it is for; of several that share it, the first.
        bundle: BundleKey,
        /// What it was for.
        stage: Stage,
        /// The transaction.
        signature: Signature,
    },
    /// A bundle is tried again.
    Retrying {
        /// The bundle.
        bundle: BundleKey,
        /// Why.
        reason: String,
    },
    /// A bundle that was never sent gave way to a newer one of the same accounts.
    Superseded {
        /// The bundle.
        bundle: BundleKey,
        /// The newer one.
        by: BundleKey,
    },
    /// The work on a bundle ended.
    Ended {
        /// The bundle.
        bundle: BundleKey,
        /// How.
        status: BundleStatus,
    },
}

impl Event {
    /// The bundle that the event is about.
    pub const fn bundle(&self) -> BundleKey {
        match self {
            Self::Planned { bundle, .. }
            | Self::Landed { bundle, .. }
            | Self::Retrying { bundle, .. }
            | Self::Superseded { bundle, .. }
            | Self::Ended { bundle, .. } => *bundle,
        }
    }
}
