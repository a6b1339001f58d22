//! Instructions of the example program ([`crate::OWNER_PROGRAM_ID`]): it makes accounts, delegates them, and takes them
//! back.

use committor_sdk::{address, delegation};
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};

use crate::OWNER_PROGRAM_ID;

/// First eight bytes of the SHA-256 of `global:create`.
const CREATE: [u8; 8] = [24, 30, 200, 40, 5, 28, 7, 119];
/// First eight bytes of the SHA-256 of `global:delegate`.
const DELEGATE: [u8; 8] = [90, 147, 75, 178, 85, 88, 4, 137];
/// The system program.
const SYSTEM_PROGRAM_ID: Address = Address::new_from_array([0; 32]);

/// Address of the account that `payer` created with the given number.
pub fn account(payer: &Address, number: u64) -> Address {
    let seeds = [b"state".as_slice(), payer.as_ref(), &number.to_le_bytes()];
    Address::find_program_address(&seeds, &OWNER_PROGRAM_ID).0
}

/// Creates the account with `len` zeroed bytes, or grows it towards `len`, by at most 10,240 bytes an instruction.
pub fn create(payer: &Address, number: u64, len: u32) -> Instruction {
    let accounts = vec![
        AccountMeta::new(*payer, true),
        AccountMeta::new(account(payer, number), false),
        AccountMeta::new_readonly(SYSTEM_PROGRAM_ID, false),
    ];
    let data = [CREATE.as_slice(), &number.to_le_bytes(), &len.to_le_bytes()].concat();
    Instruction { program_id: OWNER_PROGRAM_ID, accounts, data }
}

/// Delegates the account to `authority`.
pub fn delegate(payer: &Address, number: u64, authority: &Address) -> Instruction {
    let state = account(payer, number);
    let accounts = vec![
        AccountMeta::new(*payer, true),
        AccountMeta::new(state, false),
        AccountMeta::new(address::record(&state), false),
        AccountMeta::new_readonly(SYSTEM_PROGRAM_ID, false),
        AccountMeta::new_readonly(delegation::ID, false),
    ];
    let data = [DELEGATE.as_slice(), &number.to_le_bytes(), authority.as_ref()].concat();
    Instruction { program_id: OWNER_PROGRAM_ID, accounts, data }
}
