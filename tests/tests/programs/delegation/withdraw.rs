use committor_sdk::{address, delegation::DelegationError};
use committor_tests::{DUPLICATE_MUTABLE_ACCOUNT, LAMPORTS, Reason, World, landed, pattern, refused};
use solana_address::Address;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;
use solana_transaction_error::TransactionError;

/// An account of 100 bytes with so many lamports more than it needs.
fn with_extra(extra: u64) -> (World, Address) {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    world.give(account, extra);
    (world, account)
}

#[test]
fn the_lamports_move_from_the_account_to_the_receiver_and_nothing_else_changes() {
    for lamports in [0, 1, 999, 1_000] {
        let (mut world, account) = with_extra(1_000);
        let other = world.signer("other");
        let receivers = [other, world.authority, world.payer];
        for receiver in receivers {
            let had = world.lamports(&account);
            world.give(account, 1_000 - (had - world.rent(100)));
            let (before, record) = (world.lamports(&receiver), world.account(&address::record(&account)));
            let withdraw = world.withdraw(account, receiver, lamports);
            let fee = landed(world.send(&[withdraw])).fee;
            let paid = if receiver == world.payer { fee } else { 0 };
            assert_eq!(world.lamports(&account), world.rent(100) + 1_000 - lamports);
            assert_eq!(world.lamports(&receiver), before - paid + lamports);
            assert_eq!(world.data(&account), pattern(100, 1));
            assert_eq!(world.account(&address::record(&account)), record);
        }
    }
}

#[test]
fn the_rent_exempt_minimum_stays_to_the_lamport() {
    let (mut world, account) = with_extra(1_000);
    let all = world.lamports(&account);
    for lamports in [1_001, all - 1, all, all + 1, u64::MAX] {
        let withdraw = world.withdraw(account, world.payer, lamports);
        refused(world.send(&[withdraw]), 0, DelegationError::NotRentExempt);
    }
    let withdraw = world.withdraw(account, world.payer, 1_000);
    landed(world.send(&[withdraw]));
    let withdraw = world.withdraw(account, world.payer, 1);
    refused(world.send(&[withdraw]), 0, DelegationError::NotRentExempt);
    assert_eq!(world.lamports(&account), world.rent(100));
}

#[test]
fn two_withdrawals_in_one_transaction_share_what_there_is() {
    let (mut world, account) = with_extra(1_000);
    let withdraw = [600, 400, 401].map(|lamports| world.withdraw(account, world.payer, lamports));
    let outcome = world.send(&[withdraw[0].clone(), withdraw[2].clone()]);
    refused(outcome, 1, DelegationError::NotRentExempt);
    landed(world.send(&withdraw[..2]));
    assert_eq!(world.lamports(&account), world.rent(100));
}

#[test]
fn the_minimum_is_that_of_the_length_at_that_moment() {
    // A commit before it makes the account shorter: what that needs less can be taken out.
    let (mut world, account) = with_extra(0);
    let freed = world.rent(100) - world.rent(40);
    let commit = world.commit(account, 1, 7, &pattern(40, 2));
    let withdraw = [freed + 1, freed].map(|lamports| world.withdraw(account, world.authority, lamports));
    let outcome = world.send(&[commit.clone(), withdraw[0].clone()]);
    refused(outcome, 1, DelegationError::NotRentExempt);
    refused(world.send(&[withdraw[1].clone(), commit.clone()]), 0, DelegationError::NotRentExempt);
    landed(world.send(&[commit, withdraw[1].clone()]));
    assert_eq!(world.lamports(&account), world.rent(40));
    assert_eq!(world.lamports(&world.authority), LAMPORTS + freed);

    // What the next commit needs must not be taken out before.
    let (mut world, account) = with_extra(1_000_000);
    let withdraw = world.withdraw(account, world.payer, 1_000_000);
    let commit = world.commit(account, 1, 7, &pattern(200, 2));
    refused(world.send(&[withdraw, commit]), 1, DelegationError::NotRentExempt);
}

/// The pattern of a client that pays rent for a commit and takes back what another made superfluous.
#[test]
fn a_deposit_a_commit_and_a_withdrawal_share_a_transaction() {
    let (mut world, account) = with_extra(0);
    let funder = world.signer("funder");
    let deposit = world.rent(1_000);
    let instructions = [
        system::transfer(&funder, &account, deposit),
        world.commit(account, 1, 7, &pattern(1_000, 2)),
        world.withdraw(account, funder, deposit - (world.rent(1_000) - world.rent(100))),
    ];
    landed(world.send(&instructions));
    assert_eq!(world.data(&account), pattern(1_000, 2));
    assert_eq!(world.lamports(&account), world.rent(1_000));
    assert_eq!(world.lamports(&funder), LAMPORTS - (world.rent(1_000) - world.rent(100)));
}

#[test]
fn lamports_can_be_taken_out_while_something_is_staged() {
    let (mut world, account) = with_extra(1_000);
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let instructions = [
        world.stage(account, 1, 7, buffer),
        world.withdraw(account, world.payer, 1_000),
        world.finalize(account, buffer),
    ];
    landed(world.send(&instructions));
    assert_eq!(world.lamports(&account), world.rent(100));
}

#[test]
fn an_empty_account_keeps_the_minimum_of_an_empty_account() {
    let mut world = World::new();
    let account = world.delegated(1, &[]);
    world.give(account, 5);
    let withdraw = [6, 5].map(|lamports| world.withdraw(account, world.payer, lamports));
    refused(world.send(&withdraw[..1]), 0, DelegationError::NotRentExempt);
    landed(world.send(&withdraw[1..]));
    assert_eq!(world.lamports(&account), world.rent(0));
}

#[test]
fn a_withdrawal_that_would_not_keep_a_new_receiver_alive_is_refused_by_the_chain() {
    let (mut world, account) = with_extra(1_000_000_000);
    let nobody = Address::new_from_array([9; 32]);
    let too_little = world.withdraw(account, nobody, world.rent(0) - 1);
    match world.send(&[too_little]) {
        Err(failure) => assert!(
            matches!(failure.reason, Reason::Transaction(TransactionError::InsufficientFundsForRent { .. })),
            "{failure:?}"
        ),
        Ok(_) => panic!("it landed"),
    }
    let enough = world.withdraw(account, nobody, world.rent(0));
    landed(world.send(&[enough]));
    assert_eq!(world.lamports(&nobody), world.rent(0));
}

#[test]
fn an_account_can_not_be_its_own_receiver() {
    let (mut world, account) = with_extra(1_000);
    let withdraw = world.withdraw(account, account, 1_000);
    refused(world.send(&[withdraw]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
    assert_eq!(world.lamports(&account), world.rent(100) + 1_000);
}

/// They come back with the record's rent, to who paid that.
#[test]
fn lamports_sent_to_the_record_are_not_lost() {
    let (mut world, account) = with_extra(1_000);
    let record = address::record(&account);
    let rent = world.lamports(&record);
    let withdraw = world.withdraw(account, record, 1_000);
    landed(world.send(&[withdraw]));
    assert_eq!(world.lamports(&record), rent + 1_000);
    let (undelegate, before) = (world.undelegate(account), world.lamports(&world.payer));
    let fee = landed(world.send(&[undelegate])).fee;
    assert_eq!(world.lamports(&world.payer), before - fee + rent + 1_000);
}
