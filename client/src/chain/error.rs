//! What goes wrong between here and the cluster.

use std::{sync::Arc, time::Duration};

use committor_sdk::ProgramError;
use solana_rpc_client_api::client_error;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use thiserror::Error;

/// Why a transaction had no effect, as the cluster tells it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.describe())]
pub struct TransactionFailure {
    /// The runtime's error.
    pub error: TransactionError,
    /// The same, if it is an error of one of the two programs.
    pub program_error: Option<ProgramError>,
    /// The program's logs, as far as they are known.
    pub logs: Vec<String>,
}

impl TransactionFailure {
    fn describe(&self) -> String {
        match &self.program_error {
            Some(error) => error.to_string(),
            None => self.error.to_string(),
        }
    }
}

/// What goes wrong between here and the cluster.
#[derive(Debug, Error)]
pub enum ChainError {
    /// The node did not answer, or not what was asked for.
    #[error("{method} failed")]
    Rpc {
        /// The RPC method.
        method: &'static str,
        /// Why.
        #[source]
        source: Box<client_error::Error>,
    },
    /// The transaction is in a block, with an error.
    #[error("transaction {signature} failed")]
    Failed {
        /// The transaction.
        signature: Signature,
        /// Why.
        #[source]
        failure: Box<TransactionFailure>,
    },
    /// The node refused the transaction after simulating it; nothing was spent.
    #[error("transaction {signature} was refused before it was sent on")]
    Refused {
        /// The transaction.
        signature: Signature,
        /// Why.
        #[source]
        failure: Box<TransactionFailure>,
    },
    /// The transaction's blockhash expired, and the chain does not know it.
    #[error("transaction {signature} expired")]
    Expired {
        /// The transaction.
        signature: Signature,
    },
    /// The chain layer was shut down while it waited.
    #[error("stopped waiting for transaction {signature}")]
    Stopped {
        /// The transaction. It may land.
        signature: Signature,
    },
    /// The node's answer makes no sense.
    #[error("{method} answered {found}, expected {expected}")]
    Nonsense {
        /// The RPC method.
        method: &'static str,
        /// What came.
        found: String,
        /// What was to come.
        expected: &'static str,
    },
    /// The node went on failing for as long as it was given.
    #[error("what became of transaction {signature} can't be told: the node failed for {} s", .after.as_secs())]
    GaveUp {
        /// The transaction. It may have landed.
        signature: Signature,
        /// How long it was tried.
        after: Duration,
        /// The last error.
        #[source]
        source: Arc<ChainError>,
    },
}

impl ChainError {
    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Rpc { .. } | Self::Expired { .. } | Self::Nonsense { .. } => true,
            Self::GaveUp { .. } => true,
            Self::Stopped { .. } => false,
            Self::Failed { failure, .. } | Self::Refused { failure, .. } => {
                matches!(failure.error, TransactionError::BlockhashNotFound | TransactionError::AccountInUse)
            }
        }
    }

    /// Whether the node, or the way to it, is the trouble, and not what was asked for.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Rpc { .. } | Self::Nonsense { .. } | Self::GaveUp { .. })
    }

    /// The transaction that the error is about.
    pub const fn signature(&self) -> Option<Signature> {
        match self {
            Self::Failed { signature, .. }
            | Self::Refused { signature, .. }
            | Self::Expired { signature }
            | Self::Stopped { signature }
            | Self::GaveUp { signature, .. } => Some(*signature),
            Self::Rpc { .. } | Self::Nonsense { .. } => None,
        }
    }
}
