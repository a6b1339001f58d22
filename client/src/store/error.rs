//! What goes wrong with a store.

use std::sync::Arc;

use rusqlite::ErrorCode as Code;
use solana_address::Address;
use solana_hash::Hash;
use thiserror::Error;

use crate::types::{BundleId, BundleKey, ChangesetId, IllegalTransition};

/// What can be done about a read or a write that failed, if the database does not tell.
const GO_ON: &str = "check the disk's free space; `committor resume` goes on with what is in the store";

/// What a database says.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// SQLite's words.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// What goes wrong with a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It can't be opened.
    #[error("could not open the store {store}")]
    Open {
        /// The store's file or URL.
        store: String,
        /// Why.
        #[source]
        source: DatabaseError,
    },
    /// The file is empty, but the log of its last changes is not: somebody emptied it.
    #[error(
        "the store {store} is empty, but the log beside it ({store}-wal) is not: something emptied the file"
    )]
    Emptied {
        /// The store's file.
        store: String,
    },
    /// The file is shorter than it was when it was written last.
    #[error("the store {store} was cut off: it has {len} bytes, {expected} were written")]
    Cut {
        /// The store's file.
        store: String,
        /// How long it is, in bytes.
        len: u64,
        /// How long it was, in bytes.
        expected: u64,
    },
    /// A database of another application.
    #[error("{store} is a database of another application")]
    Foreign {
        /// The store's file or URL.
        store: String,
    },
    /// A store that a newer version made.
    #[error("the store {store} has schema version {found}, this program knows up to {known}")]
    Newer {
        /// The store's file or URL.
        store: String,
        /// The store's version.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// A migration failed; the store is as it was before it.
    #[error("could not migrate the store {store} to schema version {version}")]
    Migrate {
        /// The store's file or URL.
        store: String,
        /// The version that could not be reached.
        version: i64,
        /// Why.
        #[source]
        source: DatabaseError,
    },
    /// One of the store's threads could not be started.
    #[error("could not start the store's thread")]
    Thread(#[source] std::io::Error),
    /// A read or a write failed; nothing of it was done.
    #[error("could not {doing} in the store {store}")]
    Database {
        /// What was to be done.
        doing: &'static str,
        /// The store's file or URL.
        store: String,
        /// Why.
        #[source]
        source: DatabaseError,
    },
    /// The writer thread is gone.
    #[error("could not {doing}: the store is closed")]
    Closed {
        /// What was to be done.
        doing: &'static str,
    },
    /// The group that this change was in could not be committed.
    #[error("could not {doing} in the store {store}")]
    Commit {
        /// What was to be done.
        doing: &'static str,
        /// The store's file or URL.
        store: String,
        /// Why: all changes of the group share it.
        #[source]
        source: Arc<DatabaseError>,
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
    /// The store is for another cluster.
    #[error(
        "the store {store} is for the cluster with the genesis hash {recorded}, but this one has {given}"
    )]
    OtherCluster {
        /// The store's file or URL.
        store: String,
        /// The cluster that it is for.
        recorded: Hash,
        /// The one that was given.
        given: Hash,
    },
    /// The store is for another authority.
    #[error("the store {store} is for the authority {recorded}, but the keypair is that of {given}")]
    OtherAuthority {
        /// The store's file or URL.
        store: String,
        /// The authority that it is for.
        recorded: Address,
        /// The one that was given.
        given: Address,
    },
    /// A bundle that failed can't be tried again any more.
    #[error("bundle {bundle} of changeset {changeset} is newer and commits to account {account} too")]
    NewerBundle {
        /// The account that both commit to.
        account: Address,
        /// The newer bundle's changeset.
        changeset: ChangesetId,
        /// The newer bundle, by its caller's id.
        bundle: BundleId,
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

impl From<DatabaseError> for StoreError {
    /// The thread that does the work puts the right words in.
    fn from(source: DatabaseError) -> Self {
        Self::Database { doing: "use", store: String::new(), source }
    }
}

impl StoreError {
    /// Says what was to be done, and where, if only the database's error is known.
    pub(super) fn doing(self, doing: &'static str, store: &str) -> Self {
        match self {
            Self::Database { source, .. } => Self::Database { doing, store: store.to_owned(), source },
            other => other,
        }
    }

    /// Whether trying again can help: the store was in use, or the disk full.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Open { source, .. } | Self::Migrate { source, .. } | Self::Database { source, .. } => {
                source.is_transient()
            }
            Self::Commit { source, .. } => source.is_transient(),
            Self::Emptied { .. }
            | Self::Cut { .. }
            | Self::Foreign { .. }
            | Self::Newer { .. }
            | Self::Thread(_)
            | Self::Closed { .. }
            | Self::Transition(_)
            | Self::OtherSession(_)
            | Self::OtherCluster { .. }
            | Self::OtherAuthority { .. }
            | Self::NewerBundle { .. }
            | Self::Corrupt { .. }
            | Self::NoChangeset(_)
            | Self::Empty
            | Self::NoBundle(_) => false,
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            // What the database says is closer to the cause than what was to be done.
            Self::Open { source, .. } => source
                .hint()
                .or(Some("check the folder and who may write to it; `--store FILE` names another one")),
            Self::Emptied { .. } => Some(
                "put the file back from a copy, with the log beside it, or move both away to begin with a new store",
            ),
            Self::Cut { .. } => Some("put the file back from a copy; `--store FILE` names another one"),
            Self::Foreign { .. } => Some("`--store FILE` names another one; this one was left untouched"),
            Self::Newer { .. } => Some("use a newer program, or another store (`--store FILE`)"),
            Self::Migrate { source, .. } => {
                source.hint().or(Some("the store is as it was; check the disk's free space and try again"))
            }
            Self::Database { source, .. } => source.hint().or(Some(GO_ON)),
            Self::Commit { source, .. } => source.hint().or(Some(GO_ON)),
            Self::Thread(_) => Some("let the process have more threads"),
            Self::Closed { .. } => Some("start again; what is in the store goes on"),
            Self::Transition(_) => Some("`committor status` shows where the bundle stands"),
            Self::OtherSession(_) => Some("submit the state again, for the new delegation"),
            Self::OtherCluster { .. } => Some(
                "`--url` names the store's cluster, `--store FILE` another store; one for a new cluster is made where there is none",
            ),
            Self::OtherAuthority { .. } => Some(
                "`--keypair` names the authority's keypair, `--store FILE` another store; one for a new authority is made where there is none",
            ),
            Self::NewerBundle { .. } => Some(
                "the newer state would be lost: `committor abandon` gives the older bundle up, `committor commit` submits its state as the newest",
            ),
            Self::Corrupt { .. } => Some("use a copy of the store, or a new one (`--store FILE`)"),
            Self::NoChangeset(_) | Self::NoBundle(_) => Some("`committor status --all` lists what there is"),
            Self::Empty => Some("`committor commit` submits one"),
        }
    }
}

impl DatabaseError {
    /// Whether trying again can help: the database was in use, or the disk full.
    pub fn is_transient(&self) -> bool {
        let Self::Sqlite(error) = self;
        matches!(error.sqlite_error_code(), Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::DiskFull))
    }

    /// What the user can do, where the error alone tells.
    pub fn hint(&self) -> Option<&'static str> {
        let Self::Sqlite(error) = self;
        match error.sqlite_error_code()? {
            Code::DiskFull => {
                Some("free some space: nothing is lost, and what had not ended goes on at the next start")
            }
            // A file that may not grow is told as an error of the write itself.
            Code::SystemIoFailure => Some(
                "the disk did not do what it was told: look for a full disk, a quota, or errors in the system's log",
            ),
            Code::ReadOnly | Code::CannotOpen | Code::PermissionDenied => Some(
                "the store's folder has to exist and be writable: SQLite keeps two more files beside the store; `--store FILE` names another one",
            ),
            Code::DatabaseBusy | Code::DatabaseLocked => {
                Some("another process holds the store: end it, or wait until it is done")
            }
            Code::DatabaseCorrupt | Code::NotADatabase => Some(
                "the file is damaged or no store: put it back from a copy, or name another one (`--store FILE`)",
            ),
            _ => None,
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
            let source = || DatabaseError::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            let (doing, store) = ("record a plan", "s.db".to_owned());
            // A change fails by itself, or with all others of its group.
            let alone = StoreError::Database { doing, store: store.clone(), source: source() };
            let group = StoreError::Commit { doing, store, source: Arc::new(source()) };
            for error in [alone, group] {
                assert_eq!(error.is_transient(), transient, "{code}");
                assert!(error.hint().is_some());
            }
        }
    }
}
