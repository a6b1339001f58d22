use committor_sdk::{address, delegation::DelegationError};
use committor_tests::{PATCH, RecordBytes, STATE, World, landed, patch, pattern, refused};
use solana_address::Address;

/// An account of 100 bytes for which a buffer of as many is staged as its sixth commit.
fn staged(kind: u8) -> (World, Address, Address) {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    world.edit_record(&account, |record| (record.nonce, record.commit_id) = (5, 50));
    let payload = if kind == PATCH { patch(100, &[(0, &[200])]) } else { pattern(100, 2) };
    let buffer = world.forge_sealed("next", payload);
    let stage = world.stage_as(kind, account, 6, 60, buffer);
    landed(world.send(&[stage]));
    (world, account, buffer)
}

#[test]
fn nothing_is_staged_any_more_and_nothing_else_changes() {
    for kind in [STATE, PATCH] {
        let (mut world, account, buffer) = staged(kind);
        let before = (world.account(&account), world.account(&buffer));
        let expected = RecordBytes { nonce: 5, commit_id: 50, ..world.record_bytes(account) };
        let unstage = world.unstage(account);
        landed(world.send(&[unstage]));
        assert_eq!(world.data(&address::record(&account)), expected.data());
        assert_eq!((world.account(&account), world.account(&buffer)), before);
    }
}

#[test]
fn nothing_staged_is_an_error() {
    let (mut world, account, buffer) = staged(STATE);
    let unstage = world.unstage(account);
    let outcome = world.send(&[unstage.clone(), unstage.clone()]);
    refused(outcome, 1, DelegationError::NothingStaged);
    let finalize = world.finalize(account, buffer);
    refused(world.send(&[unstage.clone(), finalize.clone()]), 1, DelegationError::NothingStaged);
    landed(world.send(&[finalize]));
    refused(world.send(&[unstage]), 0, DelegationError::NothingStaged);
}

#[test]
fn the_nonce_and_even_the_id_can_be_used_again() {
    let (mut world, account, buffer) = staged(STATE);
    let other = world.forge_sealed("other", pattern(100, 3));
    let instructions = [
        world.unstage(account),
        world.stage(account, 6, 60, other),
        world.unstage(account),
        world.stage(account, 6, 61, buffer),
        world.unstage(account),
        world.commit(account, 6, 60, &pattern(100, 4)),
    ];
    landed(world.send(&instructions));
    assert_eq!(world.data(&account), pattern(100, 4));
    assert_eq!((world.record(&account).nonce, world.record(&account).commit_id), (6, 60));
}

#[test]
fn the_account_is_free_for_all_that_staging_forbids() {
    let (mut world, account, buffer) = staged(STATE);
    let heir = world.signer("heir");
    let forbidden = [
        world.commit(account, 6, 60, &pattern(100, 3)),
        world.set_authority(account, heir),
        world.undelegate(account),
        world.undelegate_buffer(account, 6, 60, buffer),
    ];
    for instruction in forbidden {
        let outcome = world.send(std::slice::from_ref(&instruction));
        refused(outcome, 0, DelegationError::AlreadyStaged);
        let (mut world, account, _) = staged(STATE);
        world.signer("heir");
        let unstage = world.unstage(account);
        landed(world.send(&[unstage, instruction]));
    }
}

/// The buffer is not needed, so one that is gone does no harm.
#[test]
fn a_staged_buffer_that_was_closed_is_unstaged() {
    let (mut world, account, buffer) = staged(STATE);
    let close = world.close(buffer, world.payer);
    let unstage = world.unstage(account);
    landed(world.send(&[close, unstage]));
    assert_eq!(world.record(&account).staged_nonce, 0);
}
