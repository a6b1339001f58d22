//! Address lookup tables.

use solana_address::Address;

/// An address lookup table: a v0 transaction that names it can name the addresses in it by one byte each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupTable {
    /// The table's own address.
    pub address: Address,
    /// The addresses in it, in order.
    pub addresses: Vec<Address>,
}
