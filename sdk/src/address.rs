//! Where buffers and records live.

use solana_address::Address;
use thiserror::Error;

use crate::{chunk_buffer, delegation};

/// First seed of a record's address; the second is the delegated account's address.
pub const RECORD_SEED: &[u8] = b"delegation";
/// Longest seed of a buffer's address, in bytes: a rule of the system program.
pub const MAX_SEED_LEN: usize = 32;

/// The seed of a buffer's address is too long.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("seed of {actual} bytes, at most {MAX_SEED_LEN} are allowed")]
pub struct SeedTooLong {
    /// Length of the seed in bytes.
    pub actual: usize,
}

/// The address of the buffer that `authority` creates with `seed`.
///
/// # Errors
/// [`SeedTooLong`] if `seed` has more than [`MAX_SEED_LEN`] bytes.
pub fn buffer(authority: &Address, seed: &str) -> Result<Address, SeedTooLong> {
    Address::create_with_seed(authority, seed, &chunk_buffer::ID)
        .map_err(|_| SeedTooLong { actual: seed.len() })
}

/// The address of the record of a delegated `account`.
pub fn record(account: &Address) -> Address {
    Address::find_program_address(&[RECORD_SEED, account.as_ref()], &delegation::ID).0
}
