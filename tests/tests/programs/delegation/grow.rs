use committor_sdk::{address, delegation::DelegationError};
use committor_tests::{MAX_STATE_LEN, World, landed, pattern, refused};
use solana_system_interface::instruction as system;

#[test]
fn an_account_grows_by_up_to_10_240_zeroes_a_call() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let record = world.data(&address::record(&account));
    world.give(account, world.rent(40_000));
    // Length asked for, length reached.
    let calls = [
        (100, 100),
        (101, 101),
        (10_341, 10_341),
        (20_582, 20_581),
        (20_582, 20_582),
        (u32::try_from(MAX_STATE_LEN).unwrap(), 30_822),
    ];
    for (asked, reached) in calls {
        let grow = world.grow(account, asked);
        landed(world.send(&[grow]));
        let mut expected = pattern(100, 1);
        expected.resize(reached, 0);
        assert!(world.data(&account) == expected, "asked for {asked} bytes");
    }
    assert_eq!(world.data(&address::record(&account)), record);
}

#[test]
fn an_account_never_shrinks() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    for len in [0, 1, 99, 100] {
        let grow = world.grow(account, len);
        landed(world.send(&[grow]));
        assert_eq!(world.data(&account), pattern(100, 1));
    }
}

#[test]
fn several_calls_share_a_transaction_with_their_rent_and_the_commit() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let payload = pattern(50_000, 2);
    let buffer = world.forge_sealed("next", payload.clone());
    let rent = world.rent(50_000) - world.rent(100);
    let mut instructions = vec![system::transfer(&world.payer, &account, rent)];
    instructions.extend(std::iter::repeat_n(world.grow(account, 50_000), 4));
    instructions.push(world.commit_buffer(account, 1, 7, buffer));
    landed(world.send(&instructions));
    assert!(world.data(&account) == payload);
    assert_eq!(world.lamports(&account), world.rent(50_000));
}

#[test]
fn growing_takes_the_rent_of_the_new_length_to_the_lamport() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let grow = world.grow(account, 1_000);
    let missing = world.rent(1_000) - world.rent(100);
    refused(world.send(std::slice::from_ref(&grow)), 0, DelegationError::NotRentExempt);
    let short = system::transfer(&world.payer, &account, missing - 1);
    refused(world.send(&[short, grow.clone()]), 1, DelegationError::NotRentExempt);
    let enough = system::transfer(&world.payer, &account, missing);
    landed(world.send(&[enough, grow]));
}

#[test]
fn an_account_grows_to_what_a_record_can_hold_and_no_further() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    for len in [MAX_STATE_LEN as u32 + 1, u32::MAX] {
        let grow = world.grow(account, len);
        refused(world.send(&[grow]), 0, DelegationError::TooLarge);
    }
    world.edit(account, |data| data.resize(MAX_STATE_LEN - 1, 3));
    world.give(account, world.rent(MAX_STATE_LEN));
    let grow = world.grow(account, MAX_STATE_LEN as u32);
    landed(world.send(&[grow.clone(), grow]));
    assert_eq!(world.data(&account).len(), MAX_STATE_LEN);
}

#[test]
fn an_account_that_is_staged_for_can_grow() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(200, 2));
    world.give(account, world.rent(200));
    let instructions = [world.stage(account, 1, 7, buffer), world.grow(account, 200)];
    landed(world.send(&instructions));
    assert_eq!(world.data(&account).len(), 200);
}
