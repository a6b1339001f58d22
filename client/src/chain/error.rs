//! What goes wrong between here and the cluster.

use std::{sync::Arc, time::Duration};

use committor_sdk::ProgramError;
use solana_rpc_client_api::client_error;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use thiserror::Error;

use super::{FaultKind, fault::Fault};

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
    /// The node did not answer, or with an error.
    #[error("{method} failed ({fault}, tried {attempts}x)")]
    Rpc {
        /// The RPC method.
        method: &'static str,
        /// What kind of trouble it is.
        fault: FaultKind,
        /// How often it was tried.
        attempts: u32,
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
    /// Names the method of a request that was given up.
    pub(super) fn rpc(method: &'static str) -> impl Fn(Fault) -> Self {
        move |Fault { kind, attempts, source }| Self::Rpc {
            method,
            fault: kind,
            attempts,
            source: Box::new(source),
        }
    }

    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Rpc { fault, .. } => fault.is_outage(),
            Self::Expired { .. } | Self::Nonsense { .. } | Self::GaveUp { .. } => true,
            Self::Stopped { .. } => false,
            Self::Failed { failure, .. } | Self::Refused { failure, .. } => {
                matches!(failure.error, TransactionError::BlockhashNotFound | TransactionError::AccountInUse)
            }
        }
    }

    /// Whether the node, or the way to it, is the trouble, and not what was asked for.
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Rpc { fault, .. } => fault.is_outage(),
            Self::Nonsense { .. } | Self::GaveUp { .. } => true,
            Self::Failed { .. } | Self::Refused { .. } | Self::Expired { .. } | Self::Stopped { .. } => false,
        }
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

    /// What the user can do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Rpc { fault, .. } => fault.hint(),
            Self::Failed { failure, .. } | Self::Refused { failure, .. } => match failure.error {
                TransactionError::InsufficientFundsForFee
                | TransactionError::InsufficientFundsForRent { .. }
                | TransactionError::AccountNotFound => "fund the account that pays",
                TransactionError::BlockhashNotFound | TransactionError::AccountInUse => "try again",
                _ => "the program's logs, kept with this error, tell more",
            },
            Self::Expired { .. } => {
                "sign and send it again; where that happens often, pay a higher priority fee or use another node"
            }
            Self::Stopped { .. } => "ask for the transaction again at the next start: it may land",
            Self::Nonsense { .. } => {
                "check that the URL is that of a Solana JSON-RPC service of this cluster"
            }
            Self::GaveUp { .. } => "ask for the transaction again once the node is back: it may have landed",
        }
    }
}

#[cfg(test)]
mod tests {
    use solana_rpc_client_api::request::RpcError;

    use super::*;

    fn rpc(fault: FaultKind) -> ChainError {
        let source = RpcError::RpcRequestError("a test".to_owned());
        let source = client_error::ErrorKind::from(source).into();
        ChainError::rpc("getSlot")(Fault { kind: fault, attempts: 3, source })
    }

    #[test]
    fn what_lies_at_the_node_is_waited_out_and_what_lies_at_the_request_is_not() {
        for fault in FaultKind::ALL {
            let error = rpc(fault);
            assert_eq!(error.is_outage(), fault != FaultKind::Rejected, "{fault}");
            assert_eq!(error.is_transient(), error.is_outage(), "{fault}");
            assert!(!error.hint().is_empty() && error.signature().is_none(), "{fault}");
        }
        let signature = Signature::default();
        let expired = ChainError::Expired { signature };
        assert!(expired.is_transient() && !expired.is_outage() && expired.signature() == Some(signature));
        let stopped = ChainError::Stopped { signature };
        assert!(!stopped.is_transient() && !stopped.is_outage());
    }

    #[test]
    fn the_text_names_method_kind_and_tries() {
        assert_eq!(rpc(FaultKind::RateLimited).to_string(), "getSlot failed (rate limited, tried 3x)");
    }
}
