//! Why the engine could not do what was asked.

use committor_sdk::{ProgramError, delegation::DelegationError};
use thiserror::Error;

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
    /// The committor is shutting down.
    #[error("the committor is shutting down; the changeset is taken up at the next start")]
    ShuttingDown,
}

impl EngineError {
    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Chain(error) => error.is_transient(),
            Self::Transaction { stage, source } => source.is_transient() || is_stale(*stage, source),
            Self::Missing(_)
            | Self::Changeset(_)
            | Self::Store(_)
            | Self::Plan(_)
            | Self::Compile(_)
            | Self::Sign(_)
            | Self::Task(_)
            | Self::ShuttingDown => false,
        }
    }
}

/// Whether a transaction failed because the chain has moved on since it was planned, so that a new plan can work: an
/// earlier attempt's transaction landed in between, or another committor's.
fn is_stale(stage: Stage, error: &ChainError) -> bool {
    let (ChainError::Failed { failure, .. } | ChainError::Refused { failure, .. }) = error else {
        return false;
    };
    match stage {
        // The buffer is there already, or sealed already, or written already.
        Stage::Prepare | Stage::Cleanup => true,
        Stage::Commit => matches!(
            failure.program_error,
            Some(ProgramError::Delegation(
                DelegationError::WrongNonce | DelegationError::AlreadyApplied | DelegationError::NotABuffer
            ))
        ),
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
