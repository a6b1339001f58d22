//! What makes a buffer unfit is tested for `commit_buffer` and `stage` together.

use committor_sdk::{address, delegation::DelegationError, digest::payload_digest};
use committor_tests::{RecordBytes, World, landed, pattern, refused};

#[test]
fn staging_is_noted_in_the_record_and_changes_nothing_else() {
    for (nonce, commit_id, len) in [(1, 7, 200), (1, 0, 0), (u64::MAX, u64::MAX, 100)] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        let buffer = world.forge_sealed("next", pattern(len, 2));
        world.edit_record(&account, |record| record.nonce = nonce - 1);
        let before = (world.account(&account), world.account(&buffer));
        let expected = RecordBytes {
            nonce: nonce - 1,
            staged_buffer: buffer,
            staged_nonce: nonce,
            staged_commit_id: commit_id,
            staged_digest: payload_digest(&pattern(len, 2)),
            staged_len: len as u32,
            ..world.record_bytes(account)
        };
        let stage = world.stage(account, nonce, commit_id, buffer);
        landed(world.send(&[stage]));
        assert_eq!(world.data(&address::record(&account)), expected.data());
        assert_eq!((world.account(&account), world.account(&buffer)), before);
    }
}

#[test]
fn staging_twice_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let (buffer, other) =
        (world.forge_sealed("next", pattern(100, 2)), world.forge_sealed("other", pattern(100, 3)));
    let stage = world.stage(account, 1, 7, buffer);
    landed(world.send(std::slice::from_ref(&stage)));
    let before = world.data(&address::record(&account));
    let again = [
        stage,
        world.stage(account, 1, 8, buffer),
        world.stage(account, 2, 8, buffer),
        world.stage(account, 2, 8, other),
        world.stage(account, 0, 0, other),
    ];
    for instruction in again {
        refused(world.send(&[instruction]), 0, DelegationError::AlreadyStaged);
    }
    assert_eq!(world.data(&address::record(&account)), before);
}

#[test]
fn only_the_next_nonce_is_accepted() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    world.edit_record(&account, |record| (record.nonce, record.commit_id) = (4, 40));
    for nonce in [0, 3, 4, 6, u64::MAX] {
        let stage = world.stage(account, nonce, 7, buffer);
        refused(world.send(&[stage]), 0, DelegationError::WrongNonce);
    }
    let applied = world.stage(account, 4, 40, buffer);
    refused(world.send(&[applied]), 0, DelegationError::AlreadyApplied);
    let next = world.stage(account, 5, 7, buffer);
    landed(world.send(&[next]));
}

#[test]
fn one_buffer_can_be_staged_for_several_accounts() {
    let mut world = World::new();
    let accounts = [1, 2].map(|number| world.delegated(number, &pattern(100, 1)));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let stages = accounts.map(|account| world.stage(account, 1, 7, buffer));
    landed(world.send(&stages));
    let finalizes = accounts.map(|account| world.finalize(account, buffer));
    landed(world.send(&finalizes));
    for account in &accounts {
        assert_eq!(world.data(account), pattern(100, 2));
    }
}
