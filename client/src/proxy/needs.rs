//! Which accounts a transaction needs.

use std::collections::BTreeSet;

use solana_account::{Account, ReadableAccount};
use solana_address::Address;
use solana_address_lookup_table_interface::state::AddressLookupTable;
use solana_sdk_ids::{address_lookup_table, bpf_loader_upgradeable, sysvar};
use solana_transaction::versioned::VersionedTransaction;

/// Sysvars that programs can read without naming them. Others are fetched like any account.
pub(super) const SYSVARS: [Address; 8] = [
    sysvar::rent::ID,
    sysvar::epoch_schedule::ID,
    sysvar::epoch_rewards::ID,
    sysvar::last_restart_slot::ID,
    sysvar::slot_hashes::ID,
    sysvar::stake_history::ID,
    sysvar::recent_blockhashes::ID,
    sysvar::fees::ID,
];

/// The kind of a loader-v3 account that names a program's code, and where it names it.
const PROGRAM_KIND: [u8; 4] = 2_u32.to_le_bytes();

/// What transactions name themselves.
pub(super) fn named(transactions: &[VersionedTransaction]) -> BTreeSet<Address> {
    let keys = transactions.iter().flat_map(|transaction| {
        let tables = transaction.message.address_table_lookups().unwrap_or_default();
        let tables = tables.iter().map(|lookup| lookup.account_key);
        transaction.message.static_account_keys().iter().copied().chain(tables)
    });
    // Of the Clock there is one in every batch, and the instructions sysvar is in no account.
    keys.filter(|key| *key != sysvar::clock::ID && *key != sysvar::instructions::ID).collect()
}

/// The addresses that a transaction takes from lookup tables, as far as the tables hold them.
pub(super) fn from_tables(
    transaction: &VersionedTransaction,
    account: impl Fn(&Address) -> Option<Account>,
) -> Vec<Address> {
    let mut found = Vec::new();
    for lookup in transaction.message.address_table_lookups().unwrap_or_default() {
        let Some(table) =
            account(&lookup.account_key).filter(|table| table.owner == address_lookup_table::ID)
        else {
            continue;
        };
        let Ok(table) = AddressLookupTable::deserialize(&table.data) else { continue };
        let indexes = lookup.writable_indexes.iter().chain(&lookup.readonly_indexes);
        found.extend(indexes.filter_map(|index| table.addresses.get(usize::from(*index)).copied()));
    }
    found.retain(|key| *key != sysvar::clock::ID && *key != sysvar::instructions::ID);
    found
}

/// Where the code of a loader-v3 program is.
pub(super) fn code_of(account: &impl ReadableAccount) -> Option<Address> {
    if *account.owner() != bpf_loader_upgradeable::ID {
        return None;
    }
    let address: [u8; 32] = account.data().strip_prefix(&PROGRAM_KIND)?.get(..32)?.try_into().ok()?;
    Some(Address::new_from_array(address))
}
