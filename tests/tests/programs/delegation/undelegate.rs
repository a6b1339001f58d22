use committor_localnet::{OWNER_PROGRAM_ID, owner_program};
use committor_sdk::{
    address, chunk_buffer,
    delegation::{self, DelegationError},
};
use committor_tests::{
    BufferBytes, MAX_STATE_LEN, RECORD_LEN, RecordBytes, World, landed, patch, pattern, refused,
};
use solana_address::Address;
use solana_instruction::AccountMeta;
use solana_instruction_error::InstructionError;

#[test]
fn the_owner_program_gets_the_account_back_with_the_state_of_the_last_commit() {
    for len in [0, 1, 100, 1_024, 9_992, 9_993, 10_240] {
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
    let mut fees = landed(world.send(&[world.delegate(1)])).fee;
    world.next_slot();
    let undelegate = world.undelegate(account);
    fees += landed(world.send(&[undelegate])).fee;
    assert_eq!(world.account(&account), before);
    assert_eq!(world.lamports(&world.payer), payer - fees);
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

/// So that no account is longer than what comes back.
#[test]
fn the_longest_state_comes_back_and_a_longer_one_is_never_committed() {
    let mut world = World::new();
    let account = world.delegated(1, &[]);
    world.edit(account, |data| *data = pattern(MAX_STATE_LEN, 1));
    world.give(account, world.rent(10 * 1024 * 1024));

    // In one chunk, or the bitmap would take the room of some of the payload.
    let longer = BufferBytes::sealed(world.authority, pattern(MAX_STATE_LEN + 1, 2), u32::MAX);
    let longer = world.forge_buffer("longer", &longer);
    let refusals = [
        world.grow(account, MAX_STATE_LEN as u32 + 1),
        world.commit_buffer(account, 1, 7, longer),
        world.commit_patch(account, 1, 7, &patch(MAX_STATE_LEN + 1, &[])),
        world.undelegate_buffer(account, 1, 7, longer),
    ];
    for instruction in refusals {
        refused(world.send(&[instruction]), 0, DelegationError::TooLarge);
    }

    let record = address::record(&account);
    world.edit(record, |data| data.resize(RECORD_LEN + MAX_STATE_LEN, 0));
    world.give(record, world.rent(RECORD_LEN + MAX_STATE_LEN));
    let undelegate = world.undelegate(account);
    landed(world.send(&[undelegate]));
    assert!(world.data(&account) == pattern(MAX_STATE_LEN, 1));
}

#[test]
fn an_account_is_not_undelegated_in_the_slot_of_its_delegation() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let delegate = world.delegate(1);
    let undelegate = world.undelegate(account);
    let outcome = world.send(&[delegate.clone(), undelegate.clone()]);
    refused(outcome, 1, DelegationError::SameSlot);
    landed(world.send(&[delegate]));
    refused(world.send(std::slice::from_ref(&undelegate)), 0, DelegationError::SameSlot);
    // Anything else can be done in it.
    let commit = world.commit(account, 1, 7, &pattern(100, 2));
    landed(world.send(&[commit]));
    world.next_slot();
    landed(world.send(&[undelegate]));
    assert_eq!(world.data(&account), pattern(100, 2));
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
    let sponsor = world.signer("sponsor");
    let account = world.own_by(sponsor, 1, &pattern(100, 1));
    landed(world.send(&[owner_program::delegate(&sponsor, 1, &world.authority)]));
    world.next_slot();
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
    let authority = world.authority;
    let account = world.own_by(authority, 1, &pattern(100, 1));
    landed(world.send(&[owner_program::delegate(&authority, 1, &authority)]));
    world.next_slot();
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
fn further_accounts_are_accepted_signers_among_them() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let mut undelegate = world.undelegate(account);
    undelegate.accounts.push(AccountMeta::new_readonly(chunk_buffer::ID, false));
    undelegate.accounts.push(AccountMeta::new(Address::new_from_array([9; 32]), false));
    undelegate.accounts.push(AccountMeta::new(world.authority, true));
    undelegate.accounts.push(AccountMeta::new(world.payer, true));
    landed(world.send(&[undelegate]));
    assert_eq!(world.data(&account), pattern(100, 1));
}

#[test]
fn an_account_that_came_back_can_be_delegated_anew() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let commits = [1, 2, 3].map(|nonce| world.commit(account, nonce, nonce, &pattern(100, 2)));
    landed(world.send(&commits));
    let first = world.record(&account).session;
    let undelegate = world.undelegate(account);
    landed(world.send(&[undelegate]));

    world.warp_to(first + 10);
    landed(world.send(&[world.delegate(1)]));
    let expected = RecordBytes { session: first + 10, ..world.record_bytes(account) };
    assert_eq!(world.data(&address::record(&account)), expected.data());
    assert_eq!(world.data(&account), pattern(100, 2));
    // Nonces begin again.
    let commit = world.commit(account, 1, 9, &pattern(100, 3));
    landed(world.send(&[commit]));
}

/// The first commit of a delegation would fit the next one too, by its nonce.
#[test]
fn nothing_made_for_one_delegation_is_accepted_in_the_next() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let stale = [
        world.commit(account, 1, 7, &pattern(100, 2)),
        world.commit_patch(account, 1, 7, &patch(100, &[(0, &[2])])),
        world.commit_buffer(account, 1, 7, buffer),
        world.stage(account, 1, 7, buffer),
        world.undelegate_buffer(account, 1, 7, buffer),
    ];
    let undelegate = world.undelegate(account);
    landed(world.send(&[stale[0].clone(), undelegate]));
    // In the slot of the undelegation: the first that a session can be of.
    landed(world.send(&[world.delegate(1)]));
    world.next_slot();
    let before = (world.account(&account), world.account(&address::record(&account)));
    for instruction in stale {
        refused(world.send(&[instruction]), 0, DelegationError::WrongSession);
    }
    // Before the nonce and before what is staged.
    let wrong = world.stage(account, 1, 7, buffer);
    world.edit_record(&account, |record| record.session += 1);
    refused(world.send(&[wrong]), 0, DelegationError::WrongSession);
    world.edit_record(&account, |record| record.session -= 1);
    assert_eq!((world.account(&account), world.account(&address::record(&account))), before);
}

/// So that no session is that of two delegations.
#[test]
fn one_slot_sees_no_more_than_one_delegation_of_an_account() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let first = world.session(account);
    let (undelegate, delegate) = (world.undelegate(account), world.delegate(1));
    let twice = [undelegate.clone(), delegate.clone(), undelegate.clone(), delegate.clone()];
    refused(world.send(&twice), 2, DelegationError::SameSlot);
    landed(world.send(&[undelegate.clone(), delegate.clone()]));
    assert_eq!(world.session(account), first + 1);
    refused(world.send(std::slice::from_ref(&undelegate)), 0, DelegationError::SameSlot);
    world.next_slot();
    landed(world.send(&[undelegate, delegate]));
    assert_eq!(world.session(account), first + 2);
}

#[test]
fn committing_undelegating_and_delegating_anew_share_a_transaction() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let next = delegation::Commit { authority: world.authority, account, record: address::record(&account) };
    let args =
        delegation::CommitArgs { session: world.slot(), nonce: 1, commit_id: 8, data: &pattern(100, 3) };
    let instructions = [
        world.commit(account, 1, 7, &pattern(100, 2)),
        world.undelegate(account),
        world.delegate(1),
        next.instruction(args),
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
