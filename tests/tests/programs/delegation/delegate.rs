//! The whole of delegating, through the owner program, and its second half alone, for which signatures that nobody verifies
//! stand for the owner program's.

use committor_localnet::{OWNER_PROGRAM_ID, owner_program};
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

fn delegate(payer: Address, account: Address) -> Instruction {
    let accounts = delegation::Delegate { payer, account, record: address::record(&account) };
    let args = delegation::DelegateArgs { authority: Address::new_from_array([5; 32]) };
    signed(&accounts.instruction(args), 1)
}

/// An account that seems to sign for itself, given to the delegation program after `begin_delegate`.
fn begun(world: &mut World, state: &[u8]) -> Address {
    world.without_verification();
    let account = world.own(1, state);
    let accounts =
        delegation::BeginDelegate { payer: world.payer, account, record: address::record(&account) };
    let args = delegation::BeginDelegateArgs { seeds: &world.seeds(1) };
    landed(world.send(&[signed(&accounts.instruction(args), 1)]));
    world.forge(account, delegation::ID, vec![0; state.len()]);
    account
}

#[test]
fn a_delegated_account_changes_its_owner_and_nothing_else() {
    for len in [0, 1, 100, 1_024, 9_991, 9_992] {
        let mut world = World::new();
        let account = world.own(1, &pattern(len, 1));
        let before = world.account(&account).unwrap();
        let payer = world.lamports(&world.payer);
        let instruction = world.delegate(1);
        let fee = landed(world.send(&[instruction])).fee;

        let after = world.account(&account).unwrap();
        assert_eq!(after.owner, delegation::ID);
        assert_eq!((after.data, after.lamports), (before.data, before.lamports));
        let record = world.account(&address::record(&account)).unwrap();
        assert_eq!(record.data, world.record_bytes(account).data());
        assert_eq!(record.owner, delegation::ID);
        // What the state in transit took is back.
        assert_eq!(record.lamports, world.rent(RECORD_LEN));
        assert_eq!(world.lamports(&world.payer), payer - fee - record.lamports);
    }
}

#[test]
fn an_account_of_more_than_9_992_bytes_is_delegated_after_reservations() {
    // Length, calls of `reserve`.
    for (len, calls) in [(9_993, 2), (10_240, 2), (20_232, 2), (20_233, 3), (30_000, 3)] {
        let mut world = World::new();
        let account = world.own(1, &pattern(len, 1));
        let instruction = world.delegate(1);
        let outcome = world.send(std::slice::from_ref(&instruction));
        refused(outcome, 0, DelegationError::RecordTooSmall);

        let payer = world.lamports(&world.payer);
        let mut instructions = world.reserve_instructions(account, RECORD_LEN + len);
        assert_eq!(instructions.len(), 1 + calls);
        instructions.push(instruction);
        let fee = landed(world.send(&instructions)).fee;
        assert!(world.data(&account) == pattern(len, 1));
        let record = address::record(&account);
        assert_eq!(world.data(&record), world.record_bytes(account).data());
        assert_eq!(world.lamports(&record), world.rent(RECORD_LEN));
        assert_eq!(world.lamports(&world.payer), payer - fee - world.rent(RECORD_LEN));
    }
}

#[test]
fn the_owner_program_creates_and_delegates_in_one_transaction() {
    let mut world = World::new();
    let instructions = [owner_program::create(&world.payer, 1, 500), world.delegate(1)];
    landed(world.send(&instructions));
    let account = owner_program::account(&world.payer, 1);
    assert_eq!(world.data(&account), vec![0; 500]);
    assert_eq!(world.record(&account).state, DELEGATED);
}

#[test]
fn lamports_that_a_stranger_sent_to_the_record_are_the_payers() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let record = address::record(&account);
    let (stranger, sent) = (world.signer("stranger"), 10 * world.rent(RECORD_LEN));
    landed(world.send(&[system::transfer(&stranger, &record, sent)]));
    let payer = world.lamports(&world.payer);
    let fee = landed(world.send(&[world.delegate(1)])).fee;
    assert_eq!(world.lamports(&record), world.rent(RECORD_LEN));
    assert_eq!(world.lamports(&world.payer), payer - fee + sent - world.rent(RECORD_LEN));
}

#[test]
fn a_delegated_account_is_not_delegated_again() {
    let mut world = World::new();
    world.delegated(1, &pattern(100, 1));
    let again = world.delegate(1);
    refused(world.send(&[again]), 0, DelegationError::AlreadyDelegated);
}

#[test]
fn an_account_is_delegated_by_its_own_number_only() {
    let mut world = World::new();
    let other = world.own(2, &pattern(100, 1));
    let mut instruction = world.delegate(1);
    instruction.accounts[1].pubkey = other;
    instruction.accounts[2].pubkey = address::record(&other);
    refused(world.send(&[instruction]), 0, InstructionError::InvalidSeeds);
}

#[test]
fn another_record_is_refused() {
    let mut world = World::new();
    let (_, other) = (world.own(1, &pattern(100, 1)), world.own(2, &pattern(100, 1)));
    let mut instruction = world.delegate(1);
    instruction.accounts[2].pubkey = address::record(&other);
    refused(world.send(&[instruction]), 0, DelegationError::RecordMismatch);
}

/// Its content is whatever its authority commits.
#[test]
fn a_delegated_account_with_the_content_of_a_record_is_no_record() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let pending = RecordBytes::pending(account, world.payer);
    let forgeries = [pending, RecordBytes { owner_program: OWNER_PROGRAM_ID, ..pending }];
    for (number, forged) in (2..).zip(forgeries) {
        let forgery = world.delegated(number, &[forged.data(), vec![9; 100]].concat());
        let mut instruction = world.delegate(1);
        instruction.accounts[2].pubkey = forgery;
        refused(world.send(&[instruction]), 0, DelegationError::RecordMismatch);
    }
    // Nor of the second half alone.
    let account = begun(&mut world, &pattern(100, 1));
    let forged = RecordBytes { owner_program: OWNER_PROGRAM_ID, ..pending };
    let forgery = world.delegated(4, &[forged.data(), vec![9; 100]].concat());
    let mut instruction = delegate(world.payer, account);
    instruction.accounts[2].pubkey = forgery;
    refused(world.send(&[instruction]), 0, DelegationError::RecordMismatch);
}

/// Making a reservation costs a stranger some rent, which the account's delegation must not depend on.
#[test]
fn a_reservation_by_a_stranger_does_not_stand_in_the_way() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let stranger = world.signer("stranger");
    let accounts = delegation::Reserve { payer: stranger, account, record: address::record(&account) };
    landed(world.send(&[accounts.instruction(delegation::ReserveArgs { len: 100 })]));
    let before = world.lamports(&world.payer);
    let fee = landed(world.send(&[world.delegate(1)])).fee;
    let record = address::record(&account);
    assert_eq!(world.data(&record), world.record_bytes(account).data());
    assert_eq!(world.lamports(&record), world.rent(RECORD_LEN));
    // What the stranger paid is the payer's gain.
    let gain = world.rent(RECORD_LEN + 100) - world.rent(RECORD_LEN);
    assert_eq!(world.lamports(&world.payer), before - fee + gain);
}

#[test]
fn the_second_half_alone_does_the_same() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(100, 1));
    landed(world.send(&[delegate(world.payer, account)]));
    assert_eq!(world.data(&account), pattern(100, 1));
    assert_eq!(world.record(&account).authority, Address::new_from_array([5; 32]));
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(100, 1));
    let funder = world.signer("funder");
    world.edit_record(&account, |record| record.rent_payer = funder);
    let whole = delegate(funder, account);
    // The framework checks both flags of a writable signer at once and calls it a missing signature.
    for weaker in [unsigned(&whole, 0), read_only(&whole, 0)] {
        refused(world.send(&[weaker]), 0, InstructionError::MissingRequiredSignature);
    }
    for index in [1, 2] {
        let outcome = world.send(&[read_only(&whole, index)]);
        refused(outcome, 0, InstructionError::Custom(CONSTRAINT_MUT));
    }
    refused(world.send(&[unsigned(&whole, 1)]), 0, DelegationError::AccountNotSigner);
    landed(world.send(&[whole]));
    assert_eq!(world.lamports(&funder), LAMPORTS + world.rent(RECORD_LEN + 100) - world.rent(RECORD_LEN));
}

#[test]
fn an_account_that_was_not_given_away_is_refused() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(100, 1));
    world.forge(account, OWNER_PROGRAM_ID, vec![0; 100]);
    refused(world.send(&[delegate(world.payer, account)]), 0, DelegationError::NotOwned);
}

#[test]
fn nobody_can_be_the_authority_of_address_zero() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let delegate = owner_program::delegate(&world.payer, 1, &Address::default());
    refused(world.send(&[delegate]), 0, DelegationError::ZeroAuthority);
    assert_eq!(world.data(&account), pattern(100, 1));
}

#[test]
fn an_account_whose_state_was_not_copied_is_refused() {
    let mut world = World::new();
    let account = world.signer("account");
    let reserve = world.reserve(account, 100);
    landed(world.send(&[reserve]));
    // Everybody can give an account of their own to the program; that does not make it a delegated one.
    let outcome = world.send(&[system::assign(&account, &delegation::ID), delegate(world.payer, account)]);
    refused(outcome, 1, DelegationError::NotBegun);
}

#[test]
fn an_account_without_a_record_is_refused() {
    let mut world = World::new();
    let account = world.signer("account");
    world.forge(account, delegation::ID, pattern(100, 1));
    refused(world.send(&[delegate(world.payer, account)]), 0, DelegationError::RecordMismatch);
    let mut other = delegate(world.payer, account);
    other.accounts[2].pubkey = address::record(&world.delegated(2, &pattern(100, 1)));
    refused(world.send(&[other]), 0, DelegationError::RecordMismatch);
}

#[test]
fn a_second_call_is_refused() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(100, 1));
    landed(world.send(&[delegate(world.payer, account)]));
    refused(world.send(&[delegate(world.payer, account)]), 0, DelegationError::AlreadyDelegated);
}

#[test]
fn nobody_but_who_paid_gets_the_rent_of_the_state_in_transit() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(100, 1));
    let stranger = world.signer("stranger");
    refused(world.send(&[delegate(stranger, account)]), 0, DelegationError::WrongRentReceiver);
}

#[test]
fn a_state_that_is_shorter_than_the_account_is_refused() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(100, 1));
    world.forge(account, delegation::ID, vec![0; 101]);
    refused(world.send(&[delegate(world.payer, account)]), 0, DelegationError::RecordTooSmall);
}

#[test]
fn an_account_that_is_its_own_record_or_payer_is_refused() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(300, 1));
    let whole = delegate(world.payer, account);
    for index in [0, 2] {
        let mut duplicate = whole.clone();
        duplicate.accounts[index].pubkey = account;
        let error = InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT);
        refused(world.send(&[duplicate]), 0, error);
    }
}

#[test]
fn a_layout_of_another_version_is_refused() {
    let mut world = World::new();
    let account = begun(&mut world, &pattern(100, 1));
    world.edit_record(&account, |record| record.version = 2);
    refused(world.send(&[delegate(world.payer, account)]), 0, DelegationError::UnknownVersion);
}

#[test]
fn the_record_knows_the_slot() {
    let mut world = World::new();
    let account = world.own(1, &[1]);
    world.warp_to(1_234_567_890);
    landed(world.send(&[world.delegate(1)]));
    let expected = RecordBytes { session: 1_234_567_890, ..world.record_bytes(account) };
    assert_eq!(world.data(&address::record(&account)), expected.data());
}
