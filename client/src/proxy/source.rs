//! Where accounts come from.

use std::future::Future;

use solana_account::Account;
use solana_address::Address;

use crate::chain::ChainError;

/// Addresses in one [`Source::batch`].
pub const MAX_BATCH: usize = 100;

/// Accounts of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The slot.
    pub slot: u64,
    /// One for each address, in the order asked; `None` for one that does not exist.
    pub accounts: Vec<Option<Account>>,
}

/// Where accounts come from: a node.
pub trait Source: Send + Sync + 'static {
    /// At most [`MAX_BATCH`] accounts in the order asked; of their data, the first `len` bytes or all.
    fn batch(
        &self,
        addresses: &[Address],
        len: Option<usize>,
    ) -> impl Future<Output = Result<Batch, ChainError>> + Send;

    /// All accounts of the feature-gate program.
    fn features(&self) -> impl Future<Output = Result<Vec<(Address, Account)>, ChainError>> + Send;

    /// The slot that a view has to have seen: somebody knows of something that landed in it.
    fn floor(&self) -> u64;
}
