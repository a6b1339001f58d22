//! Why the engine could not do what was asked.

use std::path::PathBuf;

use committor_sdk::{ProgramError, delegation::DelegationError};
use solana_instruction_error::InstructionError;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use thiserror::Error;

use super::tables::TableError;
use crate::{
    chain::ChainError,
    plan::{CompileError, PlanError},
    store::StoreError,
    types::{ChangesetError, Stage},
};

/// Why the engine could not do what was asked.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The builder lacks something.
    #[error("no {0} was given to the builder")]
    Missing(&'static str),
    /// The changeset makes no sense.
    #[error("the changeset was refused")]
    Changeset(#[from] ChangesetError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The chain, or the way to it, failed.
    #[error("the chain failed")]
    Chain(#[from] ChainError),
    /// A transaction did not land.
    #[error("the bundle's {} transaction did not land", .stage.as_str())]
    Transaction {
        /// What it was for.
        stage: Stage,
        /// Why.
        #[source]
        source: ChainError,
    },
    /// Lookup tables failed.
    #[error("lookup tables failed")]
    Table(#[from] TableError),
    /// There is no plan.
    #[error("the bundle can't be planned")]
    Plan(#[from] PlanError),
    /// A planned transaction can't be compiled.
    #[error("a transaction can't be compiled")]
    Compile(#[from] CompileError),
    /// A transaction can't be signed.
    #[error("a transaction can't be signed")]
    Sign(#[from] solana_signer::SignerError),
    /// A background task died.
    #[error("a background task died")]
    Task(#[from] tokio::task::JoinError),
    /// Another process works on the store.
    #[error("another process works on the store {}", .path.display())]
    StoreInUse {
        /// The store's file.
        path: PathBuf,
    },
    /// The store's lock file can't be made.
    #[error("could not lock the store {}", .path.display())]
    Lock {
        /// The store's file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The committor is shutting down.
    #[error("the committor is shutting down")]
    ShuttingDown,
}

impl EngineError {
    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Chain(error) => error.is_transient(),
            Self::Table(error) => error.is_transient(),
            Self::Transaction { stage, source } => {
                source.is_transient() || is_stale(*stage, source) || self.is_lost_table()
            }
            Self::Store(error) => error.is_transient(),
            Self::Plan(error) => error.is_transient(),
            Self::Changeset(error) => error.is_transient(),
            Self::Missing(_)
            | Self::Compile(_)
            | Self::Sign(_)
            | Self::Task(_)
            | Self::StoreInUse { .. }
            | Self::Lock { .. }
            | Self::ShuttingDown => false,
        }
    }
}

impl EngineError {
    /// What the user can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing(_) => Some("call the builder's method of that name before `start`"),
            Self::Changeset(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Plan(error) => error.hint(),
            Self::Transaction { .. } if self.is_out_of_compute() => Some(
                "give it more compute units (`--compute`), or those that simulation finds (`--compute simulate`)",
            ),
            Self::Chain(error) | Self::Transaction { source: error, .. } => hint_of_chain(error),
            Self::Table(error) => error.hint(),
            Self::Compile(_) => Some("split the bundle, or leave out its actions"),
            Self::Sign(_) => Some("check the keypairs (`--keypair`, `--fee-payer`)"),
            Self::Task(_) => Some("start again; what is in the store goes on"),
            Self::StoreInUse { .. } => {
                Some("`committor status` can read it meanwhile; `--store FILE` names another one")
            }
            Self::Lock { .. } => {
                Some("check the folder and who may write to it; `--store FILE` names another one")
            }
            Self::ShuttingDown => {
                Some("what was accepted goes on at the next start, or with `committor resume`")
            }
        }
    }

    /// Whether a transaction used up its compute units: its limit was too low, or a program never ends.
    pub(super) fn is_out_of_compute(&self) -> bool {
        use InstructionError::{ComputationalBudgetExceeded, ProgramFailedToComplete};
        let failure = match self {
            Self::Transaction {
                source: ChainError::Failed { failure, .. } | ChainError::Refused { failure, .. },
                ..
            } => failure,
            _ => return false,
        };
        matches!(
            &failure.error,
            TransactionError::InstructionError(_, ComputationalBudgetExceeded | ProgramFailedToComplete)
        )
    }

    /// Whether a lookup table is not what it was when the transaction was planned.
    pub(super) fn is_lost_table(&self) -> bool {
        use TransactionError::{
            AddressLookupTableNotFound, InvalidAddressLookupTableData, InvalidAddressLookupTableIndex,
            InvalidAddressLookupTableOwner,
        };
        let failure = match self {
            Self::Transaction {
                source: ChainError::Failed { failure, .. } | ChainError::Refused { failure, .. },
                ..
            } => failure,
            _ => return false,
        };
        matches!(
            failure.error,
            AddressLookupTableNotFound
                | InvalidAddressLookupTableData
                | InvalidAddressLookupTableIndex
                | InvalidAddressLookupTableOwner
        )
    }

    /// Whether the accounts are not what the bundle was made for any more.
    pub(super) const fn is_obsolete(&self) -> bool {
        matches!(
            self,
            Self::Plan(
                PlanError::NotStaged { .. }
                    | PlanError::NoAccount(_)
                    | PlanError::NotDelegated { .. }
                    | PlanError::WrongAuthority { .. }
            )
        )
    }

    /// The transaction that the error is about.
    pub const fn signature(&self) -> Option<Signature> {
        match self {
            Self::Chain(error) | Self::Transaction { source: error, .. } => error.signature(),
            Self::Table(error) => error.signature(),
            Self::Missing(_)
            | Self::Changeset(_)
            | Self::Store(_)
            | Self::Plan(_)
            | Self::Compile(_)
            | Self::Sign(_)
            | Self::Task(_)
            | Self::StoreInUse { .. }
            | Self::Lock { .. }
            | Self::ShuttingDown => None,
        }
    }

    /// Whether the node, or the way to it, is the trouble: that lasts as long as it lasts.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Chain(error) | Self::Transaction { source: error, .. } => error.is_outage(),
            Self::Table(error) => error.is_outage(),
            _ => false,
        }
    }
}

/// What the user can do about the cluster, or the money there.
fn hint_of_chain(error: &ChainError) -> Option<&'static str> {
    if error.is_outage() {
        return Some("check the cluster (`--url`); `committor resume` goes on with what is in the store");
    }
    let (ChainError::Failed { failure, .. } | ChainError::Refused { failure, .. }) = error else {
        return None;
    };
    match failure.error {
        TransactionError::AccountNotFound
        | TransactionError::InsufficientFundsForFee
        | TransactionError::InsufficientFundsForRent { .. } => Some("give the fee payer more lamports"),
        _ => Some(error.hint()),
    }
}

/// Whether a transaction failed because the chain has moved on since it was planned, so that a new plan can work: an
/// earlier attempt's transaction landed in between, or another committor's.
fn is_stale(stage: Stage, error: &ChainError) -> bool {
    let (ChainError::Failed { failure, .. } | ChainError::Refused { failure, .. }) = error else {
        return false;
    };
    match &failure.program_error {
        // The buffer is there already, or sealed, or closed, or not yet written.
        Some(ProgramError::ChunkBuffer(_)) => true,
        Some(ProgramError::Delegation(error)) => matches!(
            error,
            DelegationError::WrongNonce
                | DelegationError::WrongSession
                | DelegationError::AlreadyApplied
                | DelegationError::NotABuffer
                | DelegationError::BufferNotSealed
                // Rent has changed since it was asked for.
                | DelegationError::NotRentExempt
                // A slot later it can be undelegated.
                | DelegationError::SameSlot
        ),
        // The system program: the buffer's address is in use.
        None => {
            let in_use = InstructionError::Custom(0);
            stage == Stage::Prepare
                && matches!(&failure.error, TransactionError::InstructionError(_, error) if *error == in_use)
        }
    }
}

/// What is kept of an error that ended the work on a bundle: the error, its causes, and what the user can do.
pub(super) fn reason(error: &EngineError) -> String {
    let text = chain_of(error);
    match error.hint() {
        Some(hint) => format!("{text}; {hint}"),
        None => text,
    }
}

/// An error and its causes, in one line; a cause that the text before it quotes already is left out.
pub(crate) fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use solana_address::Address;

    use super::*;
    use crate::types::BundleId;

    #[test]
    fn what_is_kept_of_an_error_has_its_causes_and_what_can_be_done() {
        let account = Address::new_from_array([1; 32]);
        let error = EngineError::from(PlanError::Staged(account));
        assert_eq!(
            reason(&error),
            format!(
                "the bundle can't be planned: account {account} has a staged commit that is not finalized; \
                 `committor finalize` applies what is staged"
            )
        );
        assert_eq!((error.is_transient(), error.signature()), (false, None));
        let error = EngineError::from(ChangesetError::EmptyBundle(BundleId(7)));
        assert_eq!(error.hint(), ChangesetError::EmptyBundle(BundleId(7)).hint());
    }
}
