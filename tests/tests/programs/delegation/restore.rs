//! What the delegation program calls in the owner program, called by others: the checks of `delegation-cpi`.

use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address, chunk_buffer,
    delegation::{self, DelegationError},
};
use committor_tests::{RECORD_LEN, RecordBytes, World, landed, pattern, refused};
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};
use solana_instruction_error::InstructionError;

fn restore(account: Address, record: Address, record_signs: bool, source: Address) -> Instruction {
    restore_at(account, record, record_signs, source, RECORD_LEN as u32, 100)
}

fn restore_at(
    account: Address,
    record: Address,
    record_signs: bool,
    source: Address,
    offset: u32,
    len: u32,
) -> Instruction {
    let accounts = vec![
        AccountMeta::new(account, false),
        AccountMeta::new_readonly(record, record_signs),
        AccountMeta::new_readonly(source, false),
    ];
    let mut data = vec![165, 46, 84, 24, 33, 139, 162, 205];
    data.extend_from_slice(&offset.to_le_bytes());
    data.extend_from_slice(&len.to_le_bytes());
    Instruction { program_id: OWNER_PROGRAM_ID, accounts, data }
}

#[test]
fn a_stranger_restores_nothing() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let record = address::record(&account);
    let stranger = world.signer("stranger");
    world.forge(stranger, OWNER_PROGRAM_ID, pattern(500, 9));
    let other = world.delegated(2, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));

    for source in [record, stranger, other, buffer] {
        let instructions = [
            // The account's record does not sign for strangers, whether it is there or not.
            restore(account, record, false, source),
            // One that signs is not the account's record.
            restore(account, stranger, true, source),
            restore(account, world.authority, true, source),
            // Not even a record of another account is.
            restore(account, address::record(&other), false, source),
        ];
        for instruction in instructions {
            refused(world.send(&[instruction]), 0, InstructionError::MissingRequiredSignature);
        }
    }
    assert_eq!(world.data(&account), pattern(100, 1));
    // The same for an account that is delegated.
    let record = address::record(&other);
    for signs in [restore(other, record, false, record), restore(other, stranger, true, record)] {
        refused(world.send(&[signs]), 0, InstructionError::MissingRequiredSignature);
    }
}

/// A record that signs, as only the delegation program can make it: here, as nobody verifies signatures.
fn signing() -> (World, Address, Address) {
    let mut world = World::new();
    world.without_verification();
    let account = world.own(1, &[0; 100]);
    let record = address::record(&account);
    let bytes = RecordBytes { owner_program: OWNER_PROGRAM_ID, ..RecordBytes::pending(account, world.payer) };
    world.forge(record, delegation::ID, [bytes.data(), pattern(100, 1)].concat());
    (world, account, record)
}

#[test]
fn the_named_bytes_of_the_source_become_the_state() {
    let (mut world, account, record) = signing();
    let instruction = restore(account, record, true, record);
    landed(world.send(&[instruction]));
    assert_eq!(world.data(&account), pattern(100, 1));
    let source = world.forge_sealed("next", pattern(500, 2));
    world.own(1, &[0; 100]);
    let instruction = restore_at(account, record, true, source, 96 + 300, 100);
    landed(world.send(&[instruction]));
    assert_eq!(world.data(&account), pattern(500, 2)[300..400]);
}

#[test]
fn another_record_that_signs_is_refused() {
    let (mut world, account, record) = signing();
    let other = world.delegated(2, &pattern(100, 1));
    let instruction = restore(account, address::record(&other), true, record);
    refused(world.send(&[instruction]), 0, InstructionError::MissingRequiredSignature);
}

/// An owner program could pass the record's signature on to another one.
#[test]
fn an_account_of_another_program_than_the_records_is_refused() {
    let (mut world, account, record) = signing();
    for program in [chunk_buffer::ID, delegation::ID, Address::default()] {
        world.edit_record(&account, |record| record.owner_program = program);
        let instruction = restore(account, record, true, record);
        refused(world.send(&[instruction]), 0, InstructionError::IncorrectProgramId);
    }
    // Nor is one whose record is too short to say, or gone.
    for len in [0, 71, 72, 103] {
        world.edit(record, |data| data.truncate(len));
        let source = world.forge_sealed("next", pattern(500, 2));
        let instruction = restore(account, record, true, source);
        refused(world.send(&[instruction]), 0, InstructionError::IncorrectProgramId);
        world.edit(record, |data| data.resize(RECORD_LEN, 0));
    }
    assert_eq!(world.data(&account), [0; 100]);
}

#[test]
fn bytes_that_the_source_does_not_have_are_refused() {
    let (mut world, account, record) = signing();
    for offset in [RECORD_LEN as u32 + 1, 1 << 31, u32::MAX] {
        let instruction = restore_at(account, record, true, record, offset, 100);
        refused(world.send(&[instruction]), 0, InstructionError::AccountDataTooSmall);
    }
    for len in [101, 1 << 31, u32::MAX] {
        let instruction = restore_at(account, record, true, record, RECORD_LEN as u32, len);
        refused(world.send(&[instruction]), 0, InstructionError::AccountDataTooSmall);
    }
}

#[test]
fn a_state_of_another_length_than_the_account_is_refused() {
    let (mut world, account, record) = signing();
    for len in [0, 1, 99] {
        let instruction = restore_at(account, record, true, record, RECORD_LEN as u32, len);
        refused(world.send(&[instruction]), 0, InstructionError::InvalidAccountData);
    }
}

#[test]
fn an_account_that_is_not_zeroed_was_not_handed_back_and_is_refused() {
    let (mut world, account, record) = signing();
    for position in 0..100 {
        let mut state = [0; 100];
        state[position] = 1;
        world.own(1, &state);
        let instruction = restore(account, record, true, record);
        refused(world.send(&[instruction]), 0, InstructionError::InvalidAccountData);
    }
    world.own(1, &[7; 100]);
    let instruction = restore(account, record, true, record);
    refused(world.send(&[instruction]), 0, InstructionError::InvalidAccountData);
}

/// Whoever delegates for a stranger's good gets no further than their own accounts.
#[test]
fn only_the_payer_of_an_account_delegates_it() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let stranger = world.signer("stranger");
    let mut instruction = committor_localnet::owner_program::delegate(&stranger, 1, &stranger);
    instruction.accounts[1].pubkey = account;
    instruction.accounts[2].pubkey = address::record(&account);
    refused(world.send(&[instruction]), 0, InstructionError::InvalidSeeds);
    // And a reservation gives nobody anything.
    let reserve = delegation::Reserve { payer: stranger, account, record: address::record(&account) };
    landed(world.send(&[reserve.instruction(delegation::ReserveArgs { len: 100 })]));
    world.authority = stranger;
    let instructions = [world.commit(account, 1, 7, &[1; 100]), world.undelegate(account)];
    for instruction in instructions {
        refused(world.send(&[instruction]), 0, DelegationError::NotDelegated);
    }
}
