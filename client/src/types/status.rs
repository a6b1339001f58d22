//! Where a bundle and a transaction stand, and how they may move on.

use std::{fmt, str::FromStr};

use serde::Serialize;
use thiserror::Error;

/// Where a commit bundle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleStatus {
    /// Durable, waiting for its turn.
    Accepted,
    /// Buffers are being written.
    Preparing,
    /// The transaction that applies it has been signed.
    Committing,
    /// Applied, all of it.
    Landed,
    /// Not applied, none of it, and not tried again.
    Failed,
}

/// What happens to a commit bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleEvent {
    /// A plan was made whose first round prepares.
    Prepare,
    /// The committing transaction was signed.
    Commit,
    /// The bundle was found applied.
    Land,
    /// An error that trying again does not cure.
    Fail,
}

/// A move that the state machine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a bundle that is {from} cannot take the event {event:?}")]
pub struct IllegalTransition {
    /// Where the bundle stood.
    pub from: BundleStatus,
    /// What was to happen.
    pub event: BundleEvent,
}

impl BundleStatus {
    /// All statuses, in the order of a bundle's life.
    pub const ALL: [Self; 5] =
        [Self::Accepted, Self::Preparing, Self::Committing, Self::Landed, Self::Failed];

    /// Where the bundle stands after `event`.
    ///
    /// A bundle may prepare again after it was about to commit: an expired attempt is planned anew.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the bundle has ended.
    pub fn next(self, event: BundleEvent) -> Result<Self, IllegalTransition> {
        match (self, event) {
            (Self::Landed | Self::Failed, _) => Err(IllegalTransition { from: self, event }),
            (_, BundleEvent::Prepare) => Ok(Self::Preparing),
            (_, BundleEvent::Commit) => Ok(Self::Committing),
            (_, BundleEvent::Land) => Ok(Self::Landed),
            (_, BundleEvent::Fail) => Ok(Self::Failed),
        }
    }

    /// Whether the bundle has ended, one way or the other.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Landed | Self::Failed)
    }

    /// The name that the store and the JSON output use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Preparing => "preparing",
            Self::Committing => "committing",
            Self::Landed => "landed",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for BundleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A status text that no version of this library wrote.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown status `{0}`")]
pub struct UnknownStatus(pub String);

impl FromStr for BundleStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found.ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransactionStatus {
    /// Recorded, and perhaps sent.
    Signed,
    /// In a confirmed block, without error.
    Landed,
    /// In a confirmed block, with an error, or refused by the node.
    Failed,
    /// Its blockhash expired, and the chain does not know it.
    Expired,
}

impl TransactionStatus {
    /// The name that the store uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Landed => "landed",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_transition_table() {
        use BundleEvent::{Commit, Fail, Land, Prepare};
        let events = [
            (Prepare, BundleStatus::Preparing),
            (Commit, BundleStatus::Committing),
            (Land, BundleStatus::Landed),
            (Fail, BundleStatus::Failed),
        ];
        for from in BundleStatus::ALL {
            for (event, to) in events {
                let expected =
                    if from.is_terminal() { Err(IllegalTransition { from, event }) } else { Ok(to) };
                assert_eq!(from.next(event), expected);
            }
        }
    }

    #[test]
    fn status_texts_are_pinned_and_read_back() {
        let texts = BundleStatus::ALL.map(BundleStatus::as_str);
        assert_eq!(texts, ["accepted", "preparing", "committing", "landed", "failed"]);
        for status in BundleStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("Landed".parse::<BundleStatus>(), Err(UnknownStatus("Landed".into())));
    }
}
