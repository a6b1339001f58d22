//! The feature gates that decide which transactions a cluster accepts.
//!
//! A gate is open on a cluster when the account at its address is owned by
//! `Feature111111111111111111111111111111111111` and holds `[1, activation slot as u64 LE]`. A localnet has such
//! accounts for every gate that is open on it, so that clients can ask here as they would elsewhere.

use solana_address::Address;

/// Opens v1 transactions: 4,096 bytes instead of 1,232 (SIMD-0385).
pub const ENABLE_TX_V1: Address = Address::from_str_const("txv1aq4pp281K9um3tnPgkfX8UqtFT6wcVW3hNezGLL");

/// Raises the accounts that one transaction may lock from 64 to 128. Mainnet has it closed.
pub const INCREASE_TX_ACCOUNT_LOCK_LIMIT: Address =
    Address::from_str_const("9LZdXeKGeBV6hRLdxS1rHbHoEUsKqesCC2ZAPTPKJAbK");
