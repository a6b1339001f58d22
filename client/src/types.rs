//! What the other modules talk about. No I/O.

mod changeset;
mod ids;
mod lamports;
mod lookup_table;
mod status;
mod strategy;

pub use changeset::{AccountCommit, Changeset, ChangesetError, CommitBundle, MAX_STATE_LEN};
pub use ids::{BundleId, BundleKey, ChangesetId, CommitId, Nonce, NonceOverflow};
pub use lamports::Lamports;
pub use lookup_table::{LookupTable, TableHolder, TableOrigin, TableStatus, TableStep};
pub use status::{BundleEvent, BundleStatus, IllegalTransition, TransactionStatus, UnknownStatus};
pub use strategy::{Method, Stage, Strategy, TransactionVersion};
