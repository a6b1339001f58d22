//! What goes wrong with lookup tables.

use std::time::Duration;

use solana_address::Address;
use solana_instruction_error::InstructionError;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use thiserror::Error;

use crate::{chain::ChainError, types::TableStep};

/// What goes wrong with lookup tables.
#[derive(Debug, Error)]
pub enum TableError {
    /// A transaction did not land.
    #[error("could not {step} the lookup table {table}")]
    Transaction {
        /// The table.
        table: Address,
        /// What was to be done to it.
        step: TableStep,
        /// Why.
        #[source]
        source: Box<ChainError>,
    },
    /// The cluster makes no slots.
    #[error("the cluster did not get past slot {slot} in {} s", .after.as_secs())]
    Stalled {
        /// Where it stands.
        slot: u64,
        /// How long that was waited for.
        after: Duration,
    },
    /// Whatever was tried, addresses are in no table.
    #[error("{left} addresses are still in no lookup table after {attempts} attempts")]
    NoRoom {
        /// How many.
        left: usize,
        /// How often it was tried.
        attempts: u32,
    },
    /// Not a table of this authority.
    #[error("{0} is not a lookup table of this authority")]
    Unknown(Address),
}

impl TableError {
    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transaction { source, .. } => source.is_transient() || is_stale(source),
            Self::Stalled { .. } | Self::NoRoom { .. } => true,
            Self::Unknown(_) => false,
        }
    }

    /// What the user can do.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Transaction { source, .. } => Some(source.hint()),
            Self::Stalled { .. } => Some("check the cluster (`--url`): it makes no slots"),
            Self::NoRoom { .. } => Some("`committor tables list --discover` shows what tables there are"),
            Self::Unknown(_) => Some("`committor tables list --discover` shows those that it has"),
        }
    }

    /// The transaction that the error is about.
    pub const fn signature(&self) -> Option<Signature> {
        match self {
            Self::Transaction { source, .. } => source.signature(),
            Self::Stalled { .. } | Self::NoRoom { .. } | Self::Unknown(_) => None,
        }
    }

    /// Whether the node, or the way to it, is the trouble.
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Transaction { source, .. } => source.is_outage(),
            Self::Stalled { .. } => true,
            Self::NoRoom { .. } | Self::Unknown(_) => false,
        }
    }
}

/// Whether the table is other than it was thought to be: someone else extended, deactivated or closed it, its slot is not
/// recent any more, or it has not cooled down yet.
///
/// The table program names all of these with the runtime's own errors. A custom error is the system program's: the payer
/// lacks lamports.
pub(super) fn is_stale(error: &ChainError) -> bool {
    let (ChainError::Failed { failure, .. } | ChainError::Refused { failure, .. }) = error else {
        return false;
    };
    match &failure.error {
        TransactionError::InstructionError(_, InstructionError::Custom(_)) => false,
        TransactionError::InstructionError(..) => true,
        _ => false,
    }
}
