use committor_localnet::{OWNER_PROGRAM_ID, owner_program};
use committor_sdk::{
    address, chunk_buffer,
    delegation::{self, DelegationError},
};
use committor_tests::{RECORD_LEN, RecordBytes, World, landed, pattern, refused};
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};
use solana_instruction_error::InstructionError;

/// What the delegation program calls in the owner program.
fn restore(account: Address, record: Address, record_signs: bool) -> Instruction {
    let accounts = vec![AccountMeta::new(account, false), AccountMeta::new_readonly(record, record_signs)];
    let mut data = vec![165, 46, 84, 24, 33, 139, 162, 205];
    data.extend_from_slice(&(RECORD_LEN as u32).to_le_bytes());
    data.extend_from_slice(&100u32.to_le_bytes());
    Instruction { program_id: OWNER_PROGRAM_ID, accounts, data }
}

#[test]
fn the_owner_program_gets_the_account_back_with_the_state_of_the_last_commit() {
    for len in [0, 1, 100, 1_024, 10_024, 10_025, 10_240] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(len));
        let buffer = world.forge_sealed("next", pattern(len, 2));
        let commit = world.commit_buffer(account, 1, 7, buffer);
        landed(world.send(&[commit]));
        let before = world.account(&account).unwrap();
        let payer = world.lamports(&world.payer);

        let undelegate = world.undelegate(account);
        let fee = landed(world.send(&[undelegate])).fee;
        let after = world.account(&account).unwrap();
        assert_eq!(after.owner, OWNER_PROGRAM_ID);
        assert_eq!((&after.data, after.lamports), (&before.data, before.lamports));
        assert_eq!(after.data, pattern(len, 2));
        assert_eq!(world.account(&address::record(&account)), None);
        assert_eq!(world.lamports(&world.payer), payer - fee + world.rent(RECORD_LEN));
    }
}

#[test]
fn an_account_that_was_never_committed_to_comes_back_as_it_was() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let before = world.account(&account);
    let payer = world.lamports(&world.payer);
    let instructions =
        [owner_program::delegate(&world.payer, 1, &world.authority), world.undelegate(account)];
    let fee = landed(world.send(&instructions)).fee;
    assert_eq!(world.account(&account), before);
    assert_eq!(world.lamports(&world.payer), payer - fee);
}

#[test]
fn an_account_of_more_than_10_240_bytes_comes_back_after_reservations_by_its_authority() {
    // Length, calls of `reserve` beyond which one more instruction's growth is enough.
    for (len, calls) in [(10_241, 1), (20_480, 1), (20_481, 2), (30_000, 2)] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(len, 1));
        let undelegate = world.undelegate(account);
        let outcome = world.send(std::slice::from_ref(&undelegate));
        refused(outcome, 0, DelegationError::RecordTooSmall);

        let accounts =
            delegation::Reserve { payer: world.authority, account, record: address::record(&account) };
        let reserve = accounts.instruction(delegation::ReserveArgs { len: len as u32 });
        let mut instructions = vec![reserve; calls];
        instructions.push(undelegate);
        let payer = world.lamports(&world.payer);
        // The record is gone at the end of the transaction: it takes no rent to make it longer.
        let fee = landed(world.send(&instructions)).fee;
        assert!(world.data(&account) == pattern(len, 1));
        assert_eq!(world.account(&account).unwrap().owner, OWNER_PROGRAM_ID);
        assert_eq!(world.lamports(&world.payer), payer - fee + world.rent(RECORD_LEN));
    }
}

#[test]
fn an_account_that_no_record_can_hold_comes_back_once_it_is_shorter() {
    const LONGEST: usize = 10 * 1024 * 1024 - RECORD_LEN;
    for len in [LONGEST, LONGEST + 1] {
        let mut world = World::new();
        let account = world.delegated(1, &[]);
        world.edit(account, |data| *data = pattern(len, 1));
        world.give(account, world.rent(len));
        let record = address::record(&account);
        world.edit(record, |data| data.resize(RECORD_LEN + LONGEST, 0));
        world.give(record, world.rent(RECORD_LEN + LONGEST));
        let undelegate = world.undelegate(account);
        if len > LONGEST {
            let outcome = world.send(std::slice::from_ref(&undelegate));
            refused(outcome, 0, InstructionError::InvalidRealloc);
            let commit = world.commit(account, 1, 7, &pattern(100, 2));
            landed(world.send(&[commit, undelegate]));
            assert_eq!(world.data(&account), pattern(100, 2));
        } else {
            landed(world.send(&[undelegate]));
            assert!(world.data(&account) == pattern(LONGEST, 1));
        }
    }
}

#[test]
fn committing_and_undelegating_share_a_transaction() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let instructions = [world.commit(account, 1, 7, &pattern(100, 2)), world.undelegate(account)];
    landed(world.send(&instructions));
    assert_eq!(world.data(&account), pattern(100, 2));
}

#[test]
fn an_account_for_which_a_state_is_staged_is_kept() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let stage = world.stage(account, 1, 7, buffer);
    landed(world.send(&[stage]));
    let undelegate = world.undelegate(account);
    refused(world.send(std::slice::from_ref(&undelegate)), 0, DelegationError::AlreadyStaged);
    let finalize = world.finalize(account, buffer);
    landed(world.send(&[finalize, undelegate]));
    assert_eq!(world.data(&account), pattern(100, 2));
}

#[test]
fn another_owner_program_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let mut undelegate = world.undelegate(account);
    for program in [chunk_buffer::ID, delegation::ID, Address::new_from_array([9; 32])] {
        undelegate.accounts[3].pubkey = program;
        let outcome = world.send(std::slice::from_ref(&undelegate));
        refused(outcome, 0, DelegationError::WrongOwnerProgram);
    }
}

#[test]
fn the_records_rent_goes_to_who_paid_it() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let sponsor = world.signer("sponsor");
    landed(world.send(&[owner_program::delegate(&sponsor, 1, &world.authority)]));
    let mut undelegate = world.undelegate(account);
    for receiver in [world.payer, world.authority, Address::new_from_array([9; 32])] {
        undelegate.accounts[4].pubkey = receiver;
        let outcome = world.send(std::slice::from_ref(&undelegate));
        refused(outcome, 0, DelegationError::WrongRentReceiver);
    }
    let before = world.lamports(&sponsor);
    undelegate.accounts[4].pubkey = sponsor;
    landed(world.send(&[undelegate]));
    assert_eq!(world.lamports(&sponsor), before + world.rent(RECORD_LEN));
}

#[test]
fn the_authority_can_be_the_one_that_paid() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let authority = world.authority;
    landed(world.send(&[owner_program::delegate(&authority, 1, &authority)]));
    let before = world.lamports(&authority);
    let mut undelegate = world.undelegate(account);
    undelegate.accounts[4].pubkey = authority;
    landed(world.send(&[undelegate]));
    assert_eq!(world.lamports(&authority), before + world.rent(RECORD_LEN));
}

#[test]
fn an_owner_program_that_fails_loses_nothing() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let commit = world.commit(account, 1, 7, &pattern(100, 2));
    landed(world.send(&[commit]));
    // A program that knows no such instruction.
    world.edit_record(&account, |record| record.owner_program = chunk_buffer::ID);
    let before = (world.account(&account), world.account(&address::record(&account)));
    let mut undelegate = world.undelegate(account);
    undelegate.accounts[3].pubkey = chunk_buffer::ID;
    refused(world.send(&[undelegate]), 0, InstructionError::InvalidInstructionData);
    assert_eq!((world.account(&account), world.account(&address::record(&account))), before);
    // And the account can be committed to as before.
    let commit = world.commit(account, 2, 8, &pattern(100, 3));
    landed(world.send(&[commit]));
}

#[test]
fn an_owner_program_without_code_loses_nothing() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let nobody = Address::new_from_array([9; 32]);
    world.edit_record(&account, |record| record.owner_program = nobody);
    let mut undelegate = world.undelegate(account);
    undelegate.accounts[3].pubkey = nobody;
    refused(world.send(&[undelegate]), 0, InstructionError::UnsupportedProgramId);
}

#[test]
fn further_accounts_are_passed_on() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let mut undelegate = world.undelegate(account);
    undelegate.accounts.push(AccountMeta::new_readonly(chunk_buffer::ID, false));
    undelegate.accounts.push(AccountMeta::new(Address::new_from_array([9; 32]), false));
    landed(world.send(&[undelegate]));
    assert_eq!(world.data(&account), pattern(100, 1));
}

#[test]
fn nobody_but_the_delegation_program_restores_a_state() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let record = address::record(&account);
    let stranger = world.signer("stranger");

    // The account's record does not sign for strangers.
    let instruction = restore(account, record, false);
    refused(world.send(&[instruction]), 0, InstructionError::MissingRequiredSignature);
    // One that signs is not the account's record.
    world.forge(stranger, OWNER_PROGRAM_ID, pattern(500, 9));
    let instruction = restore(account, stranger, true);
    refused(world.send(&[instruction]), 0, InstructionError::MissingRequiredSignature);
    // Not even a record of another account.
    let other = world.delegated(2, &pattern(100, 1));
    let instruction = restore(account, address::record(&other), false);
    refused(world.send(&[instruction]), 0, InstructionError::MissingRequiredSignature);
    assert_eq!(world.data(&account), pattern(100, 1));
}

#[test]
fn an_account_that_came_back_can_be_delegated_anew() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let commits = [1, 2, 3].map(|nonce| world.commit(account, nonce, nonce, &pattern(100, 2)));
    landed(world.send(&commits));
    let first = world.record(&account).delegated_slot;
    let undelegate = world.undelegate(account);
    landed(world.send(&[undelegate]));

    world.warp_to(first + 10);
    landed(world.send(&[owner_program::delegate(&world.payer, 1, &world.authority)]));
    let expected = RecordBytes { delegated_slot: first + 10, ..world.record_bytes(account) };
    assert_eq!(world.data(&address::record(&account)), expected.data());
    assert_eq!(world.data(&account), pattern(100, 2));
    // Nonces begin again.
    let [_, _, stale] = commits;
    refused(world.send(&[stale]), 0, DelegationError::WrongNonce);
    let commit = world.commit(account, 1, 9, &pattern(100, 3));
    landed(world.send(&[commit]));
}

#[test]
fn committing_undelegating_and_delegating_anew_share_a_transaction() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let instructions = [
        world.commit(account, 1, 7, &pattern(100, 2)),
        world.undelegate(account),
        owner_program::delegate(&world.payer, 1, &world.authority),
        world.commit(account, 1, 8, &pattern(100, 3)),
    ];
    landed(world.send(&instructions));
    let expected = RecordBytes { nonce: 1, commit_id: 8, ..world.record_bytes(account) };
    assert_eq!(world.data(&address::record(&account)), expected.data());
    assert_eq!(world.data(&account), pattern(100, 3));
}

#[test]
fn an_account_that_came_back_is_not_undelegated_again() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let undelegate = world.undelegate(account);
    landed(world.send(std::slice::from_ref(&undelegate)));
    refused(world.send(&[undelegate]), 0, DelegationError::RecordMismatch);
}
