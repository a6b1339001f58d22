//! Patches, by all the ways on which they come: with the instruction, in a buffer, and in a staged buffer.

use committor_sdk::{address, delegation::DelegationError, digest::payload_digest};
use committor_tests::{
    Format, Limits, MAX_STATE_LEN, Outcome, PATCH, RecordBytes, STATE, World, landed, patch, pattern, refused,
};
use solana_address::Address;
use solana_system_interface::instruction as system;

/// Ranges with their offsets.
type Ranges<'a> = &'a [(u32, &'a [u8])];

/// How a patch comes.
#[derive(Clone, Copy, Debug)]
enum Way {
    Instruction,
    Buffer,
    StagedBuffer,
}

const WAYS: [Way; 3] = [Way::Instruction, Way::Buffer, Way::StagedBuffer];

/// Sends a patch as the first commit, which has the id 7. Returns the index of the instruction that applies it.
fn send(world: &mut World, way: Way, account: Address, patch: &[u8]) -> (Outcome, u8) {
    match way {
        Way::Instruction => {
            let commit = world.commit_patch(account, 1, 7, patch);
            (world.send(&[commit]), 0)
        }
        Way::Buffer => {
            let buffer = world.forge_sealed("patch", patch.to_vec());
            let commit = world.commit_buffer_as(PATCH, account, 1, 7, buffer);
            (world.send(&[commit]), 0)
        }
        Way::StagedBuffer => {
            let buffer = world.forge_sealed("patch", patch.to_vec());
            let stage = world.stage_as(PATCH, account, 1, 7, buffer);
            let finalize = world.finalize(account, buffer);
            (world.send(&[stage, finalize]), 1)
        }
    }
}

/// Demands that an account of 100 bytes becomes `expected` by the patch.
#[track_caller]
fn becomes(patch: &[u8], expected: &[u8]) {
    for way in WAYS {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(20_000));
        let lamports = world.lamports(&account);
        let record = RecordBytes { nonce: 1, commit_id: 7, ..world.record_bytes(account) };
        landed(send(&mut world, way, account, patch).0);
        assert!(world.data(&account) == expected, "{way:?} {:?}", world.data(&account));
        assert_eq!(world.data(&address::record(&account)), record.data());
        assert_eq!(world.lamports(&account), lamports);
    }
}

/// Demands that an account of 100 bytes is not changed by the patch.
#[track_caller]
fn is_refused(patch: &[u8], error: DelegationError) {
    for way in WAYS {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(20_000));
        let before = (world.account(&account), world.account(&address::record(&account)));
        let (outcome, instruction) = send(&mut world, way, account, patch);
        refused(outcome, instruction, error);
        assert_eq!((world.account(&account), world.account(&address::record(&account))), before);
    }
}

/// The state of 100 bytes with the ranges written over it.
fn with(ranges: Ranges) -> Vec<u8> {
    let mut state = pattern(100, 1);
    for (offset, bytes) in ranges {
        let offset = *offset as usize;
        state.splice(offset..offset + bytes.len(), bytes.iter().copied());
    }
    state
}

#[test]
fn the_ranges_change_and_no_other_byte_does() {
    let (long, whole) = (pattern(60, 2), pattern(100, 2));
    let cases: [Ranges; 14] = [
        &[],
        &[(0, &[200])],
        &[(99, &[200])],
        &[(50, &[201, 202, 203])],
        &[(0, &whole)],
        &[(10, &long)],
        &[(40, &long)],
        // Several, next to each other or apart.
        &[(0, &[200]), (99, &[201])],
        &[(3, &[200, 201]), (10, &[202]), (50, &[203, 204, 205]), (98, &[206, 207])],
        &[(0, &[200]), (1, &[201]), (2, &[202, 203]), (4, &[204])],
        // Empty ones, up to the very end.
        &[(0, &[])],
        &[(100, &[])],
        &[(0, &[]), (0, &[]), (5, &[]), (5, &[200]), (6, &[]), (6, &[201]), (100, &[]), (100, &[])],
        // All zeroes is a change like any other.
        &[(20, &[0; 10])],
    ];
    for ranges in cases {
        becomes(&patch(100, ranges), &with(ranges));
    }
}

#[test]
fn the_account_gets_the_new_length_and_new_bytes_are_zero() {
    for len in [0, 1, 50, 99, 100, 101, 200, 5_000, 10_339, 10_340] {
        let mut expected = pattern(100, 1);
        expected.resize(len, 0);
        becomes(&patch(len, &[]), &expected);
        if len > 0 {
            expected[0] = 200;
            expected[len - 1] = 201;
            let ranges: Ranges =
                if len == 1 { &[(0, &[201])] } else { &[(0, &[200]), (len as u32 - 1, &[201])] };
            becomes(&patch(len, ranges), &expected);
        }
    }
}

#[test]
fn what_was_cut_off_does_not_come_back() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let patches = [
        world.commit_patch(account, 1, 1, &patch(10, &[])),
        world.commit_patch(account, 2, 2, &patch(100, &[])),
    ];
    landed(world.send(&patches));
    assert_eq!(world.data(&account), [pattern(10, 1), vec![0; 90]].concat());
}

#[test]
fn a_range_past_the_new_length_is_refused() {
    let cases: [(usize, Ranges); 12] = [
        (100, &[(100, &[1])]),
        (100, &[(99, &[1, 2])]),
        (100, &[(101, &[])]),
        (100, &[(0, &[1]), (100, &[1])]),
        (100, &[(u32::MAX, &[])]),
        (100, &[(u32::MAX, &[1])]),
        (100, &[(u32::MAX - 1, &[1, 2])]),
        // Within the old length, but not the new one.
        (99, &[(99, &[1])]),
        (50, &[(49, &[1, 2])]),
        (0, &[(0, &[1])]),
        (0, &[(1, &[])]),
        (101, &[(100, &[1, 2])]),
    ];
    for (len, ranges) in cases {
        is_refused(&patch(len, ranges), DelegationError::PatchOutOfBounds);
    }
}

#[test]
fn ranges_that_are_not_sorted_or_overlap_are_refused() {
    let cases: [Ranges; 9] = [
        &[(1, &[1]), (0, &[1])],
        &[(50, &[1, 2, 3]), (10, &[1])],
        &[(0, &[1, 2]), (1, &[1])],
        &[(0, &[1, 2, 3]), (2, &[1, 2])],
        &[(10, &[1, 2]), (10, &[1, 2])],
        &[(10, &[1, 2]), (9, &[1, 2, 3, 4])],
        &[(0, &[1]), (5, &[1]), (4, &[1])],
        // An empty one is a range too.
        &[(0, &[1, 2, 3]), (2, &[])],
        &[(100, &[]), (0, &[])],
    ];
    for ranges in cases {
        is_refused(&patch(100, ranges), DelegationError::PatchOutOfOrder);
    }
}

#[test]
fn a_patch_that_ends_anywhere_but_after_a_range_is_refused() {
    let whole = patch(100, &[(3, &[200, 201, 202]), (50, &[203])]);
    // The length alone; with the first range; all.
    let ends = [4, 4 + 8 + 3, whole.len()];
    for len in 0..whole.len() {
        if !ends.contains(&len) {
            is_refused(&whole[..len], DelegationError::MalformedPatch);
        }
    }
    becomes(&whole[..ends[0]], &with(&[]));
    becomes(&whole[..ends[1]], &with(&[(3, &[200, 201, 202])]));
    becomes(&whole, &with(&[(3, &[200, 201, 202]), (50, &[203])]));
}

#[test]
fn a_length_of_more_bytes_than_there_are_is_refused() {
    for len in [4, 5, 1 << 16, 1 << 31, u32::MAX - 8, u32::MAX - 1, u32::MAX] {
        for offset in [0, 10, u32::MAX] {
            let mut lying = patch(100, &[(offset, &[1, 2, 3])]);
            lying[8..12].copy_from_slice(&len.to_le_bytes());
            is_refused(&lying, DelegationError::MalformedPatch);
        }
    }
}

#[test]
fn a_new_length_that_no_state_can_have_is_refused() {
    for len in [MAX_STATE_LEN + 1, 1 << 31, u32::MAX as usize] {
        is_refused(&patch(len, &[]), DelegationError::TooLarge);
    }
}

#[test]
fn an_account_grows_by_10_240_bytes_at_once_and_by_more_after_grow() {
    for way in WAYS {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(40_000));
        let patch = patch(30_100, &[(0, &[200]), (30_099, &[201])]);
        let (outcome, instruction) = send(&mut world, way, account, &patch);
        refused(outcome, instruction, DelegationError::TooMuchGrowth);
        // After the first two calls it is 10,240 bytes short, after the first one 10,241.
        let grow = world.grow(account, 10_340);
        landed(world.send(&[grow]));
        let grow = world.grow(account, 19_859);
        landed(world.send(&[grow]));
        let (outcome, instruction) = send(&mut world, way, account, &patch);
        refused(outcome, instruction, DelegationError::TooMuchGrowth);
        let grow = world.grow(account, 19_860);
        landed(world.send(&[grow]));
        landed(send(&mut world, way, account, &patch).0);
        let mut expected = pattern(100, 1);
        expected.resize(30_100, 0);
        (expected[0], expected[30_099]) = (200, 201);
        assert!(world.data(&account) == expected);
    }
}

#[test]
fn growing_takes_the_rent_of_the_new_length_to_the_lamport() {
    for way in WAYS {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        let missing = world.rent(1_000) - world.rent(100);
        for short in [missing, 1] {
            let (outcome, instruction) = send(&mut world, way, account, &patch(1_000, &[]));
            refused(outcome, instruction, DelegationError::NotRentExempt);
            landed(world.send(&[system::transfer(&world.payer, &account, missing - short)]));
        }
        landed(world.send(&[system::transfer(&world.payer, &account, 1)]));
        landed(send(&mut world, way, account, &patch(1_000, &[])).0);
        assert_eq!(world.lamports(&account), world.rent(1_000));
    }
}

#[test]
fn a_range_anywhere_in_a_large_account_is_changed() {
    let len = MAX_STATE_LEN;
    let mut world = World::new();
    let account = world.delegated(1, &[]);
    let mut expected = pattern(len, 1);
    world.edit(account, |data| data.clone_from(&expected));
    world.give(account, world.rent(len));
    let ranges: [(u32, &[u8]); 3] = [(0, &[200, 201]), (5_000_000, &[202]), (len as u32 - 1, &[203])];
    let commit = world.commit_patch(account, 1, 7, &patch(len, &ranges));
    landed(world.send_as(Format::V0, Limits::MAX, &[commit]));
    expected[..2].copy_from_slice(&[200, 201]);
    expected[5_000_000] = 202;
    expected[len - 1] = 203;
    assert!(world.data(&account) == expected);
}

#[test]
fn a_patch_of_many_ranges_comes_in_a_buffer() {
    let mut world = World::new();
    let account = world.delegated(1, &[]);
    let mut expected = pattern(200_000, 1);
    world.edit(account, |data| data.clone_from(&expected));
    world.give(account, world.rent(200_000));
    let range = pattern(100, 2);
    let ranges: Vec<(u32, &[u8])> = (0..500).map(|index| (index * 400, range.as_slice())).collect();
    let buffer = world.forge_sealed("patch", patch(200_000, &ranges));
    let commit = world.commit_buffer_as(PATCH, account, 1, 7, buffer);
    landed(world.send(&[commit]));
    for (offset, bytes) in ranges {
        expected[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    assert!(world.data(&account) == expected);
}

#[test]
fn patches_and_states_follow_each_other_in_one_transaction() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let instructions = [
        world.commit_patch(account, 1, 1, &patch(100, &[(0, &[200])])),
        world.commit(account, 2, 2, &pattern(50, 2)),
        world.commit_patch(account, 3, 3, &patch(50, &[(1, &[201])])),
        world.commit_patch(account, 4, 4, &patch(50, &[(1, &[202]), (49, &[203])])),
    ];
    landed(world.send(&instructions));
    let mut expected = pattern(50, 2);
    (expected[1], expected[49]) = (202, 203);
    assert_eq!(world.data(&account), expected);
    assert_eq!((world.record(&account).nonce, world.record(&account).commit_id), (4, 4));
}

#[test]
fn only_the_next_nonce_is_accepted_and_a_commit_that_landed_is_known() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    world.edit_record(&account, |record| (record.nonce, record.commit_id) = (4, 40));
    let change = patch(100, &[(0, &[200])]);
    for nonce in [0, 3, 4, 6, u64::MAX] {
        let commit = world.commit_patch(account, nonce, 7, &change);
        refused(world.send(&[commit]), 0, DelegationError::WrongNonce);
    }
    let commit = world.commit_patch(account, 5, 7, &change);
    landed(world.send(std::slice::from_ref(&commit)));
    refused(world.send(&[commit]), 0, DelegationError::AlreadyApplied);
    let other = world.commit_patch(account, 5, 8, &change);
    refused(world.send(&[other]), 0, DelegationError::WrongNonce);
}

#[test]
fn nothing_is_committed_while_something_is_staged() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("patch", patch(100, &[]));
    let instructions =
        [world.stage_as(PATCH, account, 1, 7, buffer), world.commit_patch(account, 2, 8, &patch(100, &[]))];
    refused(world.send(&instructions), 1, DelegationError::AlreadyStaged);
}

#[test]
fn a_staged_patch_is_noted_as_one() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let change = patch(100, &[(0, &[200])]);
    let buffer = world.forge_sealed("patch", change.clone());
    let before = world.account(&account);
    let expected = RecordBytes {
        staged_buffer: buffer,
        staged_digest: payload_digest(&change),
        staged_len: change.len() as u32,
        staged_nonce: 1,
        staged_commit_id: 7,
        staged_kind: PATCH,
        ..world.record_bytes(account)
    };
    let stage = world.stage_as(PATCH, account, 1, 7, buffer);
    landed(world.send(&[stage]));
    assert_eq!(world.data(&address::record(&account)), expected.data());
    assert_eq!(world.account(&account), before);
    let finalize = world.finalize(account, buffer);
    landed(world.send(&[finalize]));
    // The next that is staged is none again.
    let state = world.stage_as(STATE, account, 2, 8, buffer);
    landed(world.send(&[state]));
    assert_eq!(world.record(&account).staged_kind, STATE);
}

/// What is staged is not looked at before it is finalized.
#[test]
fn a_staged_patch_that_does_not_fit_is_refused_in_the_end_and_can_be_unstaged() {
    for (change, error) in [
        (Vec::new(), DelegationError::MalformedPatch),
        (patch(100, &[(100, &[1])]), DelegationError::PatchOutOfBounds),
        (patch(100, &[(1, &[1]), (0, &[1])]), DelegationError::PatchOutOfOrder),
    ] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        let buffer = world.forge_sealed("patch", change);
        let stage = world.stage_as(PATCH, account, 1, 7, buffer);
        landed(world.send(&[stage]));
        let finalize = world.finalize(account, buffer);
        refused(world.send(&[finalize]), 0, error);
        let instructions = [world.unstage(account), world.commit(account, 1, 7, &pattern(100, 2))];
        landed(world.send(&instructions));
        assert_eq!(world.data(&account), pattern(100, 2));
    }
}

#[test]
fn a_payload_is_what_its_commit_says_it_is() {
    let payload = patch(100, &[(0, &[200])]);
    for kind in [STATE, PATCH] {
        for staged in [false, true] {
            let mut world = World::new();
            let account = world.delegated(1, &pattern(100, 1));
            let buffer = world.forge_sealed("next", payload.clone());
            let instructions = match staged {
                true => vec![world.stage_as(kind, account, 1, 7, buffer), world.finalize(account, buffer)],
                false => vec![world.commit_buffer_as(kind, account, 1, 7, buffer)],
            };
            landed(world.send(&instructions));
            let expected = if kind == PATCH { with(&[(0, &[200])]) } else { payload.clone() };
            assert_eq!(world.data(&account), expected);
        }
    }
}

#[test]
fn a_payload_of_an_unknown_kind_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", patch(100, &[]));
    for kind in [2, 3, 0x80, 0xff] {
        let instructions = [
            world.commit_buffer_as(kind, account, 1, 7, buffer),
            world.stage_as(kind, account, 1, 7, buffer),
        ];
        for instruction in instructions {
            refused(world.send(&[instruction]), 0, DelegationError::UnknownKind);
        }
    }
    assert_eq!(world.data(&address::record(&account)), world.record_bytes(account).data());
}
