//! Identifiers. Each is its own type, so that none is taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A changeset, numbered by the store in the order of submission.
    ChangesetId
);
id!(
    /// A commit bundle within its changeset. The caller's choice; any value.
    BundleId
);
id!(
    /// A commit bundle within the store, in the order of submission.
    BundleKey
);
id!(
    /// A commit. Kept on chain with the account's last commit, so that a committor can tell its own from another's.
    CommitId
);
id!(
    /// The number of a commit within a delegation; the first is 1.
    Nonce
);

/// There is no nonce after [`u64::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the account's nonce has reached its maximum: undelegate it")]
pub struct NonceOverflow;

impl Nonce {
    /// The nonce of the next commit.
    ///
    /// # Errors
    /// [`NonceOverflow`] after [`u64::MAX`].
    pub fn next(self) -> Result<Self, NonceOverflow> {
        self.0.checked_add(1).map(Self).ok_or(NonceOverflow)
    }
}
