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
    /// All of it is staged on chain, and waits to be finalized.
    Staged,
    /// What is staged is being applied.
    Finalizing,
    /// Applied, all of it.
    Landed,
    /// Not applied, none of it, and not tried again unless somebody asks.
    Failed,
    /// Never sent: a newer bundle of the same accounts took its place.
    Superseded,
    /// It failed, and somebody decided that it is never tried again.
    Abandoned,
}

/// What happens to a commit bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleEvent {
    /// A plan was made whose first round prepares.
    Prepare,
    /// The committing transaction was signed.
    Commit,
    /// The bundle was found staged.
    Stage,
    /// Somebody asked for what is staged to be applied.
    Finalize,
    /// What is staged could not be applied for now.
    Postpone,
    /// The bundle was found applied.
    Land,
    /// An error that trying again does not cure.
    Fail,
    /// A newer bundle takes its place.
    Supersede,
    /// Somebody asked for it to be tried again from the start.
    Retry,
    /// Somebody asked for what it had staged to be applied after all.
    RetryFinalize,
    /// Somebody gave it up.
    Abandon,
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
    pub const ALL: [Self; 9] = [
        Self::Accepted,
        Self::Preparing,
        Self::Committing,
        Self::Staged,
        Self::Finalizing,
        Self::Landed,
        Self::Failed,
        Self::Superseded,
        Self::Abandoned,
    ];

    /// Where the bundle stands after `event`.
    ///
    /// A bundle may prepare again after it was about to commit: an expired attempt is planned anew.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the bundle has ended, or the event belongs to another part of its life.
    pub fn next(self, event: BundleEvent) -> Result<Self, IllegalTransition> {
        use BundleEvent as Event;
        match (self, event) {
            (Self::Accepted | Self::Preparing | Self::Committing, Event::Prepare) => Ok(Self::Preparing),
            (Self::Accepted | Self::Preparing | Self::Committing, Event::Commit) => Ok(Self::Committing),
            (Self::Accepted | Self::Preparing | Self::Committing, Event::Stage) => Ok(Self::Staged),
            (Self::Staged | Self::Finalizing, Event::Finalize) => Ok(Self::Finalizing),
            (Self::Finalizing, Event::Postpone) => Ok(Self::Staged),
            (Self::Accepted, Event::Supersede) => Ok(Self::Superseded),
            (Self::Failed, Event::Retry) => Ok(Self::Accepted),
            (Self::Failed, Event::RetryFinalize) => Ok(Self::Finalizing),
            (Self::Failed, Event::Abandon) => Ok(Self::Abandoned),
            (from, Event::Land) if !from.is_terminal() => Ok(Self::Landed),
            (from, Event::Fail) if !from.is_terminal() => Ok(Self::Failed),
            (from, event) => Err(IllegalTransition { from, event }),
        }
    }

    /// Whether the bundle has ended, one way or the other. Of these, only one that failed can be taken up again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Landed | Self::Failed | Self::Superseded | Self::Abandoned)
    }

    /// Whether nothing is to be done for the bundle unless somebody asks: it has ended, or it is staged.
    pub const fn is_settled(self) -> bool {
        self.is_terminal() || matches!(self, Self::Staged)
    }

    /// The name that the store and the JSON output use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Preparing => "preparing",
            Self::Committing => "committing",
            Self::Staged => "staged",
            Self::Finalizing => "finalizing",
            Self::Landed => "landed",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
            Self::Abandoned => "abandoned",
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
        use BundleEvent as Event;
        use BundleStatus as Status;
        let open = [Status::Accepted, Status::Preparing, Status::Committing];
        let alive = [open.as_slice(), &[Status::Staged, Status::Finalizing]].concat();
        let table: [(Event, &[Status], Status); 11] = [
            (Event::Prepare, &open, Status::Preparing),
            (Event::Commit, &open, Status::Committing),
            (Event::Stage, &open, Status::Staged),
            (Event::Finalize, &[Status::Staged, Status::Finalizing], Status::Finalizing),
            (Event::Postpone, &[Status::Finalizing], Status::Staged),
            (Event::Land, &alive, Status::Landed),
            (Event::Fail, &alive, Status::Failed),
            (Event::Supersede, &[Status::Accepted], Status::Superseded),
            (Event::Retry, &[Status::Failed], Status::Accepted),
            (Event::RetryFinalize, &[Status::Failed], Status::Finalizing),
            (Event::Abandon, &[Status::Failed], Status::Abandoned),
        ];
        for from in Status::ALL {
            for (event, allowed, to) in table {
                let expected =
                    if allowed.contains(&from) { Ok(to) } else { Err(IllegalTransition { from, event }) };
                assert_eq!(from.next(event), expected);
            }
        }
    }

    #[test]
    fn status_texts_are_pinned_and_read_back() {
        let texts = BundleStatus::ALL.map(BundleStatus::as_str);
        let expected = [
            "accepted",
            "preparing",
            "committing",
            "staged",
            "finalizing",
            "landed",
            "failed",
            "superseded",
            "abandoned",
        ];
        assert_eq!(texts, expected);
        for status in BundleStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("Landed".parse::<BundleStatus>(), Err(UnknownStatus("Landed".into())));
    }
}
