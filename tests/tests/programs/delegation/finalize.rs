use committor_sdk::{
    address,
    delegation::DelegationError,
    digest::{SEGMENT_LEN, payload_digest},
};
use committor_tests::{RecordBytes, World, landed, pattern, refused};
use solana_address::Address;
use solana_system_interface::instruction as system;

/// An account of `old` bytes for which `new` bytes are staged as its first commit, with the rent they take.
fn staged(old: usize, new: usize) -> (World, Address, Address) {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(old, 1));
    world.give(account, world.rent(new));
    let buffer = world.forge_sealed("next", pattern(new, 2));
    let stage = world.stage(account, 1, 7, buffer);
    landed(world.send(&[stage]));
    (world, account, buffer)
}

#[test]
fn the_staged_payload_becomes_the_accounts_state_and_nothing_is_staged_any_more() {
    for len in [0, 1, 100, 10_240, 10_340] {
        let (mut world, account, buffer) = staged(100, len);
        let before = (world.account(&buffer), world.lamports(&account));
        let expected = RecordBytes { nonce: 1, commit_id: 7, ..world.record_bytes(account) };
        let finalize = world.finalize(account, buffer);
        landed(world.send(&[finalize]));
        assert_eq!(world.data(&account), pattern(len, 2));
        assert_eq!(world.data(&address::record(&account)), expected.data());
        assert_eq!((world.account(&buffer), world.lamports(&account)), before);
    }
}

#[test]
fn nothing_staged_is_an_error() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let finalize = world.finalize(account, buffer);
    refused(world.send(&[finalize]), 0, DelegationError::NothingStaged);
}

#[test]
fn finalizing_twice_is_an_error() {
    let (mut world, account, buffer) = staged(100, 100);
    let finalize = world.finalize(account, buffer);
    let outcome = world.send(&[finalize.clone(), finalize.clone()]);
    refused(outcome, 1, DelegationError::NothingStaged);
    landed(world.send(std::slice::from_ref(&finalize)));
    refused(world.send(&[finalize]), 0, DelegationError::NothingStaged);
}

#[test]
fn what_was_finalized_is_known_as_applied() {
    let (mut world, account, buffer) = staged(100, 100);
    let finalize = world.finalize(account, buffer);
    landed(world.send(&[finalize]));
    let stage = world.stage(account, 1, 7, buffer);
    refused(world.send(&[stage]), 0, DelegationError::AlreadyApplied);
    let next = [world.stage(account, 2, 8, buffer), world.finalize(account, buffer)];
    landed(world.send(&next));
    assert_eq!((world.record(&account).nonce, world.record(&account).commit_id), (2, 8));
}

#[test]
fn a_buffer_other_than_the_staged_one_is_refused() {
    let (mut world, account, buffer) = staged(100, 100);
    let same_payload = world.forge_sealed("other", pattern(100, 2));
    for other in [same_payload, address::record(&buffer), committor_sdk::chunk_buffer::ID] {
        let finalize = world.finalize(account, other);
        refused(world.send(&[finalize]), 0, DelegationError::WrongBuffer);
    }
}

#[test]
fn a_staged_buffer_that_was_closed_is_refused_and_can_be_made_again() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.sealed_buffer("next", &pattern(100, 2), 100);
    let stage = world.stage(account, 1, 7, buffer);
    let close = world.close(buffer, world.payer);
    landed(world.send(&[stage, close]));
    let finalize = world.finalize(account, buffer);
    refused(world.send(std::slice::from_ref(&finalize)), 0, DelegationError::NotABuffer);

    world.create_buffer("next", 100, 100);
    refused(world.send(std::slice::from_ref(&finalize)), 0, DelegationError::BufferNotSealed);

    world.fill(buffer, &pattern(100, 2));
    let seal = world.seal(buffer, payload_digest(&pattern(100, 2)));
    landed(world.send(&[seal, finalize]));
    assert_eq!(world.data(&account), pattern(100, 2));
}

/// Whoever has seen what is staged can rely on it.
#[test]
fn a_staged_buffer_with_other_content_is_refused_and_with_the_same_it_is_not() {
    for (len, salt) in [(100, 3), (99, 2), (101, 2), (0, 2), (100, 2)] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(200));
        let buffer = world.sealed_buffer("next", &pattern(100, 2), 100);
        let stage = world.stage(account, 1, 7, buffer);
        let close = world.close(buffer, world.payer);
        landed(world.send(&[stage, close]));
        let before = (world.account(&account), world.account(&address::record(&account)));
        // In other chunks, which makes no difference.
        world.sealed_buffer("next", &pattern(len, salt), 30);
        let finalize = world.finalize(account, buffer);
        let outcome = world.send(&[finalize]);
        if (len, salt) == (100, 2) {
            landed(outcome);
            assert_eq!(world.data(&account), pattern(100, 2));
        } else {
            refused(outcome, 0, DelegationError::StagedContentChanged);
            assert_eq!((world.account(&account), world.account(&address::record(&account))), before);
        }
    }
}

/// The digest of a payload of two segments is the hash of 32 bytes and the second segment, which is a payload too.
#[test]
fn a_shorter_payload_with_the_digest_of_a_longer_one_is_other_content() {
    let staged = pattern(SEGMENT_LEN + 68, 2);
    let other = [payload_digest(&staged[..SEGMENT_LEN]).as_slice(), &staged[SEGMENT_LEN..]].concat();
    assert_eq!(payload_digest(&staged), payload_digest(&other));
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", staged);
    let instructions = [world.stage(account, 1, 7, buffer), world.close(buffer, world.payer)];
    landed(world.send(&instructions));
    assert_eq!(world.sealed_buffer("next", &other, 100), buffer);
    let finalize = world.finalize(account, buffer);
    refused(world.send(&[finalize]), 0, DelegationError::StagedContentChanged);
}

#[test]
fn a_staged_buffer_that_was_handed_to_another_authority_is_refused() {
    let (mut world, account, buffer) = staged(100, 100);
    let heir = world.signer("heir");
    let hand_on = world.set_buffer_authority(buffer, heir);
    landed(world.send(&[hand_on]));
    let finalize = world.finalize(account, buffer);
    refused(world.send(&[finalize]), 0, DelegationError::ForeignBuffer);
}

#[test]
fn an_account_grows_by_10_240_bytes_at_once_and_by_more_after_grow() {
    for old in [0, 100] {
        let (mut world, account, buffer) = staged(old, old + 10_240);
        let finalize = world.finalize(account, buffer);
        landed(world.send(&[finalize]));

        let (mut world, account, buffer) = staged(old, old + 10_241);
        let finalize = world.finalize(account, buffer);
        let outcome = world.send(std::slice::from_ref(&finalize));
        refused(outcome, 0, DelegationError::TooMuchGrowth);
        let grow = world.grow(account, old as u32 + 10_241);
        landed(world.send(&[grow, finalize]));
        assert_eq!(world.data(&account), pattern(old + 10_241, 2));
    }
}

#[test]
fn growing_takes_the_rent_of_the_new_length() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(200, 2));
    let instructions = [world.stage(account, 1, 7, buffer), world.finalize(account, buffer)];
    refused(world.send(&instructions), 1, DelegationError::NotRentExempt);
    let rent = system::transfer(&world.payer, &account, world.rent(200) - world.rent(100));
    let [stage, finalize] = instructions;
    landed(world.send(&[rent, stage, finalize]));
    assert_eq!(world.data(&account), pattern(200, 2));
}
