//! What the chain says about a table.

use solana_account::Account;
use solana_address::Address;
use solana_address_lookup_table_interface::{program, state::AddressLookupTable};

use super::book::Table;
use crate::{
    store::StoredTable,
    types::{Lamports, TableStatus},
};

/// Slots after which nothing of the past comes back: no fork and no node lags behind for longer, and a table's address,
/// derived from a slot, can't be made once that has left the list of recent ones. A deactivated table can be used for as
/// long, and can't be closed before. It counts slots that have a block, so it can take longer.
pub(super) const COOL_DOWN_SLOTS: u64 = 512;

/// A table as it is known, brought up to date with its account at `slot`. `closed`: that a transaction which closed it
/// landed.
pub(super) fn update(known: StoredTable, account: Option<&Account>, slot: u64, closed: bool) -> Table {
    let table = account.filter(|account| account.owner == program::ID);
    // What is no table can never have been one, or will not be one again.
    let parsed = table
        .and_then(|account| Some((account.lamports, AddressLookupTable::deserialize(&account.data).ok()?)));
    let Some((lamports, found)) = parsed else { return absent(known, slot, closed) };
    let meta = &found.meta;
    let deactivation_slot = Some(meta.deactivation_slot).filter(|slot| *slot != u64::MAX);
    let status = match (deactivation_slot, meta.authority) {
        (Some(_), _) => TableStatus::Deactivating,
        (None, Some(_)) => TableStatus::Active,
        (None, None) => TableStatus::Frozen,
    };
    let entries: Vec<Address> = found.addresses.to_vec();
    let usable = match slot > meta.last_extended_slot {
        true => entries.len(),
        false => usize::from(meta.last_extended_slot_start_index),
    };
    let extended_slot = meta.last_extended_slot;
    let lamports = Lamports(lamports);
    let stored =
        StoredTable { status, deactivation_slot, lamports, absent_since_slot: None, entries, ..known };
    Table { stored, usable, extended_slot, refused: false }
}

/// One look is not enough to call a table closed: a node may lag, and what was sent may still land.
fn absent(known: StoredTable, slot: u64, closed: bool) -> Table {
    let since = known.absent_since_slot.unwrap_or(slot);
    let gone = closed || slot > since.saturating_add(COOL_DOWN_SLOTS);
    let status = if gone { TableStatus::Closed } else { known.status };
    let stored = StoredTable {
        status,
        deactivation_slot: known.deactivation_slot.filter(|_| !gone),
        lamports: Lamports(0),
        absent_since_slot: Some(since),
        ..known
    };
    Table { stored, usable: 0, extended_slot: u64::MAX, refused: false }
}
