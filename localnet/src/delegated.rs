use bytemuck::Zeroable;
use committor_sdk::delegation::{self, Delegation};
use solana_account::Account;
use solana_address::Address;

use crate::programs::OWNER_PROGRAM_ID;

/// Rent-exempt minimum of an account of `len` bytes on this chain, in lamports.
const fn rent_exempt(len: usize) -> u64 {
    (128 + len as u64) * 6_960
}

/// A delegated account and its record, as the delegation program leaves them.
pub(crate) fn accounts(address: &Address, authority: &Address, state: Vec<u8>) -> (Account, Account) {
    let record_address = [committor_sdk::address::RECORD_SEED, address.as_ref()];
    let (_, bump) = Address::find_program_address(&record_address, &delegation::ID);
    let header = Delegation {
        account: *address,
        authority: *authority,
        owner_program: OWNER_PROGRAM_ID,
        rent_payer: *authority,
        state: 2,
        version: 1,
        bump,
        ..Delegation::zeroed()
    };
    let record = [Delegation::DISCRIMINATOR.as_slice(), bytemuck::bytes_of(&header)].concat();
    (owned(state), owned(record))
}

fn owned(data: Vec<u8>) -> Account {
    let lamports = rent_exempt(data.len());
    Account { lamports, data, owner: delegation::ID, executable: false, rent_epoch: u64::MAX }
}
