//! What goes wrong with a store.

use std::path::PathBuf;

use solana_address::Address;
use thiserror::Error;

use crate::types::{BundleKey, ChangesetId, IllegalTransition};

/// What goes wrong with a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The file can't be opened.
    #[error("could not open the store {}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// A database of another application.
    #[error("{} is a database of another application", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A store that a newer version made.
    #[error("the store {} has schema version {found}, this program knows up to {known}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// A migration failed; the store is as it was before it.
    #[error("could not migrate the store {} to schema version {version}", .path.display())]
    Migrate {
        /// The file.
        path: PathBuf,
        /// The version that could not be reached.
        version: i64,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The writer thread could not be started.
    #[error("could not start the store's thread")]
    Thread(#[source] std::io::Error),
    /// A read or a write failed; nothing of it was done.
    #[error("could not {doing}")]
    Sqlite {
        /// What was to be done.
        doing: &'static str,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The writer thread is gone.
    #[error("could not {doing}: the store is closed")]
    Closed {
        /// What was to be done.
        doing: &'static str,
    },
    /// The group that this change was in could not be committed.
    #[error("could not {doing}: {reason}")]
    Commit {
        /// What was to be done.
        doing: &'static str,
        /// SQLite's words, shared by all changes of the group.
        reason: String,
    },
    /// A bundle can't move that way.
    #[error(transparent)]
    Transition(#[from] IllegalTransition),
    /// The account was given back and delegated anew after the bundle was first planned.
    #[error(
        "account {0} was delegated anew since the bundle was planned: its state belongs to an earlier delegation"
    )]
    OtherSession(Address),
    /// A row holds what no version of this program wrote.
    #[error("the store holds {what} that this program can't read: {found}")]
    Corrupt {
        /// Which field.
        what: &'static str,
        /// What is there.
        found: String,
    },
    /// There is no such changeset.
    #[error("the store has no changeset {0}")]
    NoChangeset(ChangesetId),
    /// There is no changeset at all.
    #[error("the store has no changesets yet")]
    Empty,
    /// There is no such bundle.
    #[error("the store has no bundle with the key {0}")]
    NoBundle(BundleKey),
}

impl StoreError {
    /// Whether trying again can help: the file was in use, or the disk full.
    pub fn is_transient(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull};
        match self {
            Self::Open { source, .. } | Self::Migrate { source, .. } | Self::Sqlite { source, .. } => {
                matches!(source.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | DiskFull))
            }
            Self::Foreign { .. }
            | Self::Newer { .. }
            | Self::Thread(_)
            | Self::Closed { .. }
            | Self::Commit { .. }
            | Self::Transition(_)
            | Self::OtherSession(_)
            | Self::Corrupt { .. }
            | Self::NoChangeset(_)
            | Self::Empty
            | Self::NoBundle(_) => false,
        }
    }

    /// What the user can do.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open { .. } => {
                Some("check the folder and who may write to it; `--store FILE` names another one")
            }
            Self::Foreign { .. } => Some("`--store FILE` names another one; this one was left untouched"),
            Self::Newer { .. } => Some("use a newer program, or another store (`--store FILE`)"),
            Self::Migrate { .. } => Some("the store is as it was; check the disk's free space and try again"),
            Self::Sqlite { .. } | Self::Commit { .. } => {
                Some("check the disk's free space; `committor resume` goes on with what is in the store")
            }
            Self::Thread(_) => Some("let the process have more threads"),
            Self::Closed { .. } => Some("start again; what is in the store goes on"),
            Self::Transition(_) => Some("`committor status` shows where the bundle stands"),
            Self::OtherSession(_) => Some("submit the state again, for the new delegation"),
            Self::Corrupt { .. } => Some("use a copy of the store, or a new one (`--store FILE`)"),
            Self::NoChangeset(_) | Self::NoBundle(_) => Some("`committor status --all` lists what there is"),
            Self::Empty => Some("`committor commit` submits one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_busy_store_or_a_full_disk_may_pass_and_a_broken_store_does_not() {
        for (code, transient) in [
            (ffi::SQLITE_BUSY, true),
            (ffi::SQLITE_LOCKED, true),
            (ffi::SQLITE_FULL, true),
            (ffi::SQLITE_CORRUPT, false),
            (ffi::SQLITE_CONSTRAINT, false),
        ] {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = StoreError::Sqlite { doing: "record a plan", source };
            assert_eq!(error.is_transient(), transient, "{code}");
            assert!(error.hint().is_some());
        }
    }
}
