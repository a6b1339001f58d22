//! Why a bundle has no plan.

use std::fmt;

use committor_sdk::{address::SeedTooLong, chunks::LayoutError};
use solana_address::Address;
use thiserror::Error;

use crate::types::NonceOverflow;

use super::transaction::CompileError;

/// A limit of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Bytes of a transaction on the wire.
    TransactionLen,
    /// Accounts that a transaction may lock.
    AccountLocks,
    /// Compute units of a transaction.
    ComputeUnits,
    /// Instructions in a transaction's trace.
    Instructions,
    /// Bytes of accounts that a transaction loads.
    LoadedData,
    /// Commits in a bundle: none.
    Commits,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TransactionLen => "bytes of a transaction",
            Self::AccountLocks => "accounts locked by a transaction",
            Self::ComputeUnits => "compute units of a transaction",
            Self::Instructions => "instructions of a transaction",
            Self::LoadedData => "bytes of accounts loaded by a transaction",
            Self::Commits => "commits in a bundle",
        })
    }
}

impl PlanError {
    /// No form was tried: there is nothing to commit.
    pub(super) const fn no_commits() -> Self {
        Self::DoesNotFit { limit: Limit::Commits, value: 0, max: 0 }
    }

    /// Whether planning again can help. Never: only the chain or the caller can change what is in the way.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::DoesNotFit { .. }
            | Self::NoAccount(_)
            | Self::NotDelegated { .. }
            | Self::WrongAuthority { .. }
            | Self::Staged(_)
            | Self::NotStaged { .. }
            | Self::Nonce { .. }
            | Self::Layout { .. }
            | Self::Seed { .. }
            | Self::Compile(_) => false,
        }
    }

    /// What the user can do.
    pub const fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::DoesNotFit { .. } => "split the bundle; nothing was spent",
            Self::NoAccount(_) => "check the account and the cluster (`--url`)",
            Self::NotDelegated { .. } => "have its owner program delegate it to the authority",
            Self::WrongAuthority { .. } => "commit with the keypair of that authority (`--keypair`)",
            Self::Staged(_) => "`committor finalize` applies what is staged",
            Self::NotStaged { .. } => "submit the state again",
            Self::Nonce { .. } => "undelegate the account and delegate it anew",
            Self::Layout { .. } | Self::Seed { .. } => "split the state over several accounts",
            Self::Compile(_) => "split the bundle, or leave out its actions; nothing was spent",
        })
    }
}

/// Why a bundle has no plan. Nothing has been spent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The bundle can't be applied atomically.
    #[error("the bundle does not fit one transaction: {value} {limit}, at most {max} are allowed")]
    DoesNotFit {
        /// The limit.
        limit: Limit,
        /// The bundle's value.
        value: u64,
        /// The largest allowed.
        max: u64,
    },
    /// The account does not exist on this cluster.
    #[error("account {0} does not exist on this cluster")]
    NoAccount(Address),
    /// The account exists, but is not delegated.
    #[error("account {account} is not delegated: its owner is {owner}")]
    NotDelegated {
        /// The account.
        account: Address,
        /// Who owns it.
        owner: Address,
    },
    /// The account is delegated to another authority.
    #[error("account {account} is delegated to {authority}, not to {ours}")]
    WrongAuthority {
        /// The account.
        account: Address,
        /// Whom it is delegated to.
        authority: Address,
        /// Who wanted to commit.
        ours: Address,
    },
    /// A commit is staged and waits to be finalized.
    #[error("account {0} has a staged commit that is not finalized")]
    Staged(Address),
    /// What was staged is not there any more.
    #[error("account {account} has another commit staged than this one, or none: {found}")]
    NotStaged {
        /// The account.
        account: Address,
        /// What is there.
        found: &'static str,
    },
    /// There is no next nonce.
    #[error("account {account}")]
    Nonce {
        /// The account.
        account: Address,
        /// Why.
        #[source]
        source: NonceOverflow,
    },
    /// The state is too long for a buffer.
    #[error("the state of account {account} does not fit a buffer")]
    Layout {
        /// The account.
        account: Address,
        /// Why.
        #[source]
        source: LayoutError,
    },
    /// The buffer's seed is too long.
    #[error("the buffer of account {account} has no address")]
    Seed {
        /// The account.
        account: Address,
        /// Why.
        #[source]
        source: SeedTooLong,
    },
    /// A transaction can't be compiled.
    #[error("could not compile a transaction")]
    Compile(#[from] CompileError),
}
