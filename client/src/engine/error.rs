//! Why the engine could not do what was asked.

use thiserror::Error;

use crate::{
    chain::ChainError,
    plan::{CompileError, PlanError},
    store::StoreError,
    types::ChangesetError,
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
