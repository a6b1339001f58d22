use committor_localnet::owner_program;
use committor_sdk::{address, delegation::DelegationError};
use committor_tests::{Format, Limits, RecordBytes, World, landed, pattern, refused};
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;

#[test]
fn the_data_becomes_the_accounts_state_and_the_record_says_so() {
    for len in [0, 1, 82, 99, 100, 101, 1_024, 3_000] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(3_000));
        let before = world.account(&account).unwrap();
        let expected = RecordBytes { nonce: 1, commit_id: 7, ..world.record_bytes(account) };
        let commit = world.commit(account, 1, 7, &pattern(len, 2));
        landed(world.send(&[commit]));
        let after = world.account(&account).unwrap();
        assert_eq!(after.data, pattern(len, 2));
        assert_eq!((after.lamports, after.owner), (before.lamports, before.owner));
        assert_eq!(world.data(&address::record(&account)), expected.data());
    }
}

#[test]
fn an_empty_account_takes_a_state_and_gives_it_up_again() {
    let mut world = World::new();
    let account = world.delegated(1, &[]);
    let rent = world.rent(50) - world.rent(0);
    let instructions =
        [system::transfer(&world.payer, &account, rent), world.commit(account, 1, 1, &pattern(50, 1))];
    landed(world.send(&instructions));
    assert_eq!(world.data(&account), pattern(50, 1));
    let empty = world.commit(account, 2, 2, &[]);
    landed(world.send(&[empty]));
    assert_eq!(world.data(&account), Vec::<u8>::new());
    assert_eq!(world.lamports(&account), world.rent(50), "the lamports stay with the account");
}

#[test]
fn growing_takes_the_rent_of_the_new_length_to_the_lamport() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let commit = world.commit(account, 1, 7, &pattern(101, 2));
    let missing = world.rent(101) - world.rent(100);
    refused(world.send(std::slice::from_ref(&commit)), 0, DelegationError::NotRentExempt);
    let short = system::transfer(&world.payer, &account, missing - 1);
    refused(world.send(&[short, commit.clone()]), 1, DelegationError::NotRentExempt);
    let enough = system::transfer(&world.payer, &account, missing);
    landed(world.send(&[enough, commit]));
}

#[test]
fn only_the_next_nonce_is_accepted() {
    for last in [0, 1, 5, u64::MAX - 2, u64::MAX - 1] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.edit_record(&account, |record| (record.nonce, record.commit_id) = (last, 1_000));
        for nonce in [0, last.saturating_sub(1), last, last.saturating_add(2), u64::MAX] {
            if nonce != last + 1 {
                let commit = world.commit(account, nonce, 7, &pattern(100, 2));
                refused(world.send(&[commit]), 0, DelegationError::WrongNonce);
            }
        }
        let next = world.commit(account, last + 1, 7, &pattern(100, 2));
        landed(world.send(&[next]));
        assert_eq!(world.record(&account).nonce, last + 1);
    }
}

#[test]
fn nothing_follows_the_last_nonce_there_is() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    world.edit_record(&account, |record| record.nonce = u64::MAX);
    for nonce in [0, 1, u64::MAX] {
        let commit = world.commit(account, nonce, 7, &pattern(100, 2));
        refused(world.send(&[commit]), 0, DelegationError::WrongNonce);
    }
}

#[test]
fn a_commit_that_landed_is_told_apart_from_one_with_a_wrong_nonce() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    for (nonce, commit_id) in [(1, 0), (2, 42), (3, u64::MAX)] {
        let commit = world.commit(account, nonce, commit_id, &pattern(100, nonce as u8));
        landed(world.send(std::slice::from_ref(&commit)));
        refused(world.send(&[commit]), 0, DelegationError::AlreadyApplied);
        assert_eq!(world.record(&account).commit_id, commit_id);
        // Somebody else's with that nonce.
        let other = world.commit(account, nonce, 77, &pattern(100, 9));
        refused(world.send(&[other]), 0, DelegationError::WrongNonce);
    }
    // Only the last one is remembered.
    let old = world.commit(account, 2, 42, &pattern(100, 2));
    refused(world.send(&[old]), 0, DelegationError::WrongNonce);
    assert_eq!(world.data(&account), pattern(100, 3));
}

#[test]
fn a_commit_with_nonce_zero_is_never_one_that_landed() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let commit = world.commit(account, 0, 0, &pattern(100, 2));
    refused(world.send(&[commit]), 0, DelegationError::WrongNonce);
}

#[test]
fn consecutive_commits_share_a_transaction_and_land_together_or_not_at_all() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let [first, second, fourth] =
        [1, 2, 4].map(|nonce| world.commit(account, nonce, nonce, &pattern(100, nonce as u8 + 1)));
    let outcome = world.send(&[first.clone(), second.clone(), fourth]);
    refused(outcome, 2, DelegationError::WrongNonce);
    assert_eq!(world.data(&account), pattern(100, 1));
    landed(world.send_as(Format::V0, Limits::MAX, &[first, second]));
    assert_eq!(world.data(&account), pattern(100, 3));
}

#[test]
fn commits_to_twenty_accounts_share_a_transaction() {
    let mut world = World::new();
    let accounts: Vec<_> = (0..20).map(|number| world.delegated(number, &pattern(80, 1))).collect();
    let commits: Vec<_> =
        accounts.iter().map(|account| world.commit(*account, 1, 7, &pattern(80, 2))).collect();
    landed(world.send(&commits));
    for account in &accounts {
        assert_eq!(world.data(account), pattern(80, 2));
    }
}

#[test]
fn nothing_is_committed_while_a_state_is_staged() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let stage = world.stage(account, 1, 7, buffer);
    landed(world.send(&[stage]));
    for (nonce, commit_id) in [(1, 7), (1, 8), (2, 8)] {
        let commit = world.commit(account, nonce, commit_id, &pattern(100, 3));
        refused(world.send(&[commit]), 0, DelegationError::AlreadyStaged);
    }
}

#[test]
fn nothing_is_committed_after_the_account_was_handed_back() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let undelegate = world.undelegate(account);
    let commit = world.commit(account, 1, 7, &pattern(100, 2));
    let outcome = world.send(&[undelegate.clone(), commit.clone()]);
    refused(outcome, 1, InstructionError::AccountDataTooSmall);
    landed(world.send(&[undelegate]));
    refused(world.send(&[commit]), 0, InstructionError::AccountDataTooSmall);
    assert_eq!(world.data(&account), pattern(100, 1));
}

#[test]
fn an_account_that_was_never_delegated_is_refused() {
    let mut world = World::new();
    world.own(1, &pattern(100, 1));
    let commit = world.commit(owner_program::account(&world.payer, 1), 1, 7, &pattern(100, 2));
    refused(world.send(&[commit]), 0, InstructionError::AccountDataTooSmall);
}
