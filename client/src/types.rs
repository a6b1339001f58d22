//! What the other modules talk about. No I/O.

mod budget;
mod changeset;
mod ids;
mod lamports;
mod lookup_table;
mod status;
mod strategy;

pub use budget::{BudgetError, Budgets, ComputeLimit, PriorityFee, StageBudget};
pub use changeset::{
    AccountCommit, Action, Changeset, ChangesetError, CommitBundle, CommitMode, MAX_STATE_LEN, UnknownMode,
};
pub use ids::{BundleId, BundleKey, ChangesetId, CommitId, Nonce, NonceOverflow};
pub use lamports::Lamports;
pub use lookup_table::{LookupTable, TableHolder, TableOrigin, TableStatus, TableStep};
pub use status::{BundleEvent, BundleStatus, IllegalTransition, TransactionStatus, UnknownStatus};
pub use strategy::{Method, Stage, Strategy, TransactionVersion};
