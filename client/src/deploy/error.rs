//! Why something did not get on chain.

use committor_sdk::{AccountError, chunks::LayoutError};
use solana_address::Address;
use solana_signature::Signature;
use thiserror::Error;

use crate::{
    chain::ChainError,
    crypto::CryptoError,
    plan::{CompileError, PlanError},
    types::Lamports,
};

/// Why something did not get on chain.
#[derive(Debug, Error)]
pub enum DeployError {
    /// The cluster.
    #[error("the cluster did not take part")]
    Chain(#[from] ChainError),
    /// The payer has too little. Nothing was spent.
    #[error("the fee payer {payer} has {balance} lamports, {needed} are needed: {missing} too few")]
    Balance {
        /// Who pays.
        payer: Address,
        /// What it has.
        balance: Lamports,
        /// What it takes.
        needed: Lamports,
        /// The difference.
        missing: Lamports,
    },
    /// The file is too long for a buffer. Nothing was spent.
    #[error("{len} bytes do not fit a buffer")]
    TooLong {
        /// Length of the file in bytes.
        len: usize,
        /// The limit.
        #[source]
        source: LayoutError,
    },
    /// There is no such account.
    #[error("there is no account {0} on this cluster")]
    NoAccount(Address),
    /// Another program owns the account.
    #[error("account {address} is no buffer: its owner is {owner}")]
    NotABuffer {
        /// The account.
        address: Address,
        /// Who owns it.
        owner: Address,
    },
    /// The account is of the program, but not readable as a buffer.
    #[error("account {address} is no buffer that this version can read")]
    Unreadable {
        /// The account.
        address: Address,
        /// Why.
        #[source]
        source: AccountError,
    },
    /// Somebody else's buffer.
    #[error("the authority of buffer {buffer} is {authority}, not {ours}")]
    WrongAuthority {
        /// The buffer.
        buffer: Address,
        /// Whose it is.
        authority: Address,
        /// Who wanted to change it.
        ours: Address,
    },
    /// It was stopped. What has landed stays and is gone on with.
    #[error("stopped with {left} transactions to go")]
    Stopped {
        /// Transactions that were not sent.
        left: usize,
    },
    /// Something else happened to it every time.
    #[error("what is on chain changed {attempts} times while it was worked on")]
    Restless {
        /// How often it was tried.
        attempts: u32,
        /// The last reason.
        #[source]
        source: Box<DeployError>,
    },
    /// After everything had landed, something was still missing.
    #[error("what was read back is not what was sent")]
    NotEqual,
    /// There is no plan.
    #[error("there is no way to do it")]
    Plan(#[from] PlanError),
    /// A transaction can't be compiled.
    #[error("could not compile a transaction")]
    Compile(#[from] CompileError),
    /// A transaction can't be signed.
    #[error("could not sign a transaction")]
    Sign(#[from] CryptoError),
}

impl DeployError {
    /// Whether something was not on chain as it was expected to be, so that looking again can help.
    pub(super) const fn is_surprise(&self) -> bool {
        matches!(
            self,
            Self::NotEqual
                | Self::Chain(
                    ChainError::Failed { .. } | ChainError::Refused { .. } | ChainError::Expired { .. }
                )
        )
    }

    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Chain(error) => error.is_transient(),
            Self::Stopped { .. } | Self::Restless { .. } | Self::NotEqual => true,
            Self::Balance { .. }
            | Self::TooLong { .. }
            | Self::NoAccount(_)
            | Self::NotABuffer { .. }
            | Self::Unreadable { .. }
            | Self::WrongAuthority { .. }
            | Self::Plan(_)
            | Self::Compile(_)
            | Self::Sign(_) => false,
        }
    }

    /// The transaction at fault, if it is one.
    pub fn signature(&self) -> Option<Signature> {
        match self {
            Self::Chain(error) => error.signature(),
            Self::Restless { source, .. } => source.signature(),
            _ => None,
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Chain(error) => error.hint(),
            Self::Balance { .. } => {
                "send it the lamports, or name another one with `--fee-payer`; nothing was spent"
            }
            Self::TooLong { .. } => "cut the file; nothing was spent",
            Self::NoAccount(_) => {
                "check the address and the cluster (`--url`); `committor list` shows your buffers"
            }
            Self::NotABuffer { .. } | Self::Unreadable { .. } => {
                "check the address; `committor list` shows your buffers"
            }
            Self::WrongAuthority { .. } => "use the keypair of that authority (`--keypair`)",
            Self::Stopped { .. } | Self::Restless { .. } | Self::NotEqual => {
                "run the same command again: it goes on where this one ended"
            }
            Self::Plan(error) => return error.hint(),
            Self::Compile(_) | Self::Sign(_) => return None,
        })
    }
}
