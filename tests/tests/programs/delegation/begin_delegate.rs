//! Only an owner program makes this call; here accounts with keypairs sign in its place.

use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address,
    delegation::{self, DelegationError},
};
use committor_tests::{
    CONSTRAINT_MUT, DELEGATED, DUPLICATE_MUTABLE_ACCOUNT, LAMPORTS, RECORD_LEN, RecordBytes, World, landed,
    pattern, read_only, refused, signed, unsigned,
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;

fn begin(payer: Address, account: Address) -> Instruction {
    let accounts = delegation::BeginDelegate { payer, account, record: address::record(&account) };
    signed(&accounts.instruction(), 1)
}

/// An account that the owner program owns and that can sign for itself.
fn owned(world: &mut World, state: &[u8]) -> Address {
    let account = world.signer("account");
    world.forge(account, OWNER_PROGRAM_ID, state.to_vec());
    account
}

#[test]
fn the_state_is_copied_into_the_record_and_the_account_stays_as_it_is() {
    for len in [0, 1, 100, 10_023, 10_024] {
        let mut world = World::new();
        let account = owned(&mut world, &pattern(len, 1));
        let before = world.account(&account);
        let funder = world.signer("funder");
        landed(world.send(&[begin(funder, account)]));
        let header = RecordBytes { owner_program: OWNER_PROGRAM_ID, ..RecordBytes::pending(account, funder) };
        let record = world.account(&address::record(&account)).unwrap();
        assert_eq!(record.data, [header.data(), pattern(len, 1)].concat());
        assert_eq!(record.owner, delegation::ID);
        assert_eq!(record.lamports, world.rent(RECORD_LEN + len));
        assert_eq!(world.lamports(&funder), LAMPORTS - record.lamports);
        assert_eq!(world.account(&account), before);
    }
}

#[test]
fn a_state_of_more_than_10_024_bytes_needs_a_reservation_of_its_length() {
    for len in [10_025, 10_240, 30_000] {
        let mut world = World::new();
        let account = owned(&mut world, &pattern(len, 1));
        let begin = begin(world.payer, account);
        refused(world.send(std::slice::from_ref(&begin)), 0, DelegationError::RecordTooSmall);

        let short = world.reserve_instructions(account, RECORD_LEN + len - 1);
        landed(world.send(&short));
        refused(world.send(std::slice::from_ref(&begin)), 0, DelegationError::RecordTooSmall);

        let mut enough = world.reserve_instructions(account, RECORD_LEN + len);
        enough.push(begin);
        landed(world.send(&enough));
        assert!(world.data(&address::record(&account))[RECORD_LEN..] == pattern(len, 1));
    }
}

#[test]
fn a_second_call_copies_the_state_again() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    landed(world.send(&[begin(world.payer, account)]));
    world.edit(account, |data| *data = pattern(90, 2));
    landed(world.send(&[begin(world.payer, account)]));
    assert_eq!(world.data(&address::record(&account))[RECORD_LEN..][..90], pattern(90, 2));
}

#[test]
fn a_record_to_whose_address_a_stranger_sent_lamports_is_made_all_the_same() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let record = address::record(&account);
    let stranger = world.signer("stranger");
    landed(world.send(&[system::transfer(&stranger, &record, world.rent(0))]));
    landed(world.send(&[begin(world.payer, account)]));
    assert_eq!(world.lamports(&record), world.rent(RECORD_LEN + 100));
}

#[test]
fn an_account_of_the_system_program_is_refused() {
    let mut world = World::new();
    let account = world.signer("account");
    let instruction = begin(world.payer, account);
    refused(world.send(&[instruction]), 0, DelegationError::NoOwnerProgram);
}

#[test]
fn a_delegated_account_is_refused() {
    let mut world = World::new();
    let account = world.signer("account");
    let instruction = begin(world.payer, account);
    world.forge(account, delegation::ID, pattern(100, 1));
    refused(world.send(std::slice::from_ref(&instruction)), 0, DelegationError::AlreadyDelegated);
    // By its record alone, too.
    world.forge(account, OWNER_PROGRAM_ID, pattern(100, 1));
    let record = RecordBytes { state: DELEGATED, ..RecordBytes::pending(account, world.payer) };
    world.forge(address::record(&account), delegation::ID, [record.data(), vec![0; 100]].concat());
    refused(world.send(&[instruction]), 0, DelegationError::AlreadyDelegated);
}

#[test]
fn an_address_that_is_not_the_records_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let other = world.own(2, &pattern(100, 1));
    let mut instruction = begin(world.payer, account);
    instruction.accounts[2].pubkey = address::record(&other);
    refused(world.send(std::slice::from_ref(&instruction)), 0, DelegationError::RecordMismatch);
    let reserve = world.reserve(other, 100);
    landed(world.send(&[reserve]));
    refused(world.send(&[instruction]), 0, DelegationError::RecordMismatch);
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let funder = world.signer("funder");
    let whole = begin(funder, account);
    // The framework checks both flags of a writable signer at once and calls it a missing signature.
    for weaker in [unsigned(&whole, 0), read_only(&whole, 0)] {
        refused(world.send(&[weaker]), 0, InstructionError::MissingRequiredSignature);
    }
    refused(world.send(&[read_only(&whole, 2)]), 0, InstructionError::Custom(CONSTRAINT_MUT));
    refused(world.send(&[unsigned(&whole, 1)]), 0, DelegationError::AccountNotSigner);
    landed(world.send(&[whole]));
}

#[test]
fn an_account_that_is_its_own_record_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(300, 1));
    let mut instruction = begin(world.payer, account);
    instruction.accounts[2].pubkey = account;
    refused(world.send(&[instruction]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn another_system_program_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let mut instruction = begin(world.payer, account);
    instruction.accounts[3].pubkey = OWNER_PROGRAM_ID;
    refused(world.send(&[instruction]), 0, InstructionError::IncorrectProgramId);
}

#[test]
fn a_layout_of_another_version_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let begin = begin(world.payer, account);
    landed(world.send(std::slice::from_ref(&begin)));
    world.edit_record(&account, |record| record.version = 0);
    refused(world.send(&[begin]), 0, DelegationError::UnknownVersion);
}
