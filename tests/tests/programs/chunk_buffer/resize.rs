use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    chunk_buffer::{self, ChunkBufferError},
    digest::{SEGMENT_LEN, payload_digest},
};
use committor_tests::{
    BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, LAMPORTS, Reason, World, every_flag_is_required, landed, pattern,
    refused,
};
use solana_address::Address;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;
use solana_transaction_error::TransactionError;

const SEED: &str = "a buffer";
const MAX_ACCOUNT_LEN: usize = 10 * 1024 * 1024;
/// The longest payload in chunks of 3,856 bytes.
const MAX_PAYLOAD_LEN: usize = MAX_ACCOUNT_LEN - 96 - 340;

/// An open buffer of which the chunks that `is_written` names have been written.
fn partly(
    authority: Address,
    payload_len: usize,
    chunk_size: usize,
    is_written: impl Fn(usize) -> bool,
) -> BufferBytes {
    let payload = pattern(payload_len, 1);
    let mut buffer = BufferBytes::empty(authority, payload_len, chunk_size as u32);
    for (chunk, bytes) in payload.chunks(chunk_size).enumerate().filter(|(chunk, _)| is_written(*chunk)) {
        buffer.write(chunk * chunk_size, bytes);
    }
    buffer
}

fn account_len(payload_len: usize, chunk_size: usize) -> usize {
    96 + payload_len + payload_len.div_ceil(chunk_size).div_ceil(8)
}

#[test]
fn from_any_length_to_any_length_all_bytes_and_marks_are_where_they_belong() {
    const LENS: [usize; 16] = [0, 1, 6, 7, 8, 9, 14, 49, 55, 56, 57, 63, 64, 65, 112, 130];
    let mut world = World::new();
    let receiver = world.signer("receiver");
    for chunk_size in [1, 7, 200] {
        for (from, to) in LENS.iter().flat_map(|from| LENS.map(|to| (*from, to))) {
            let written: [fn(usize) -> bool; 4] =
                [|_| false, |_| true, |chunk| chunk.is_multiple_of(2), |chunk| chunk % 3 == 1];
            for is_written in written {
                let mut expected = partly(world.authority, from, chunk_size, is_written);
                let buffer = world.forge_buffer(SEED, &expected);
                let (old_rent, rent) = (world.lamports(&buffer), world.rent(account_len(to, chunk_size)));
                world.give(buffer, rent.saturating_sub(old_rent));
                let before = world.lamports(&receiver);
                let resize = world.resize(buffer, to as u32, receiver);
                landed(world.send(&[resize]));
                expected.resize(to);
                assert_eq!(world.data(&buffer), expected.data(), "{from} to {to}, chunks of {chunk_size}");
                assert_eq!(world.lamports(&buffer), rent);
                assert_eq!(world.lamports(&receiver), before + old_rent.saturating_sub(rent));
            }
        }
    }
}

#[test]
fn a_bitmap_moves_by_less_than_its_length_and_by_more() {
    let mut world = World::new();
    let receiver = world.signer("receiver");
    // 5,001 chunks: a bitmap of 626 bytes.
    let from = 5_001;
    for by in [1, 2, 7, 8, 9, 100, 624, 625, 626, 627, 628, 2_000, 5_000] {
        for to in [from - by, from + by] {
            let mut expected = partly(world.authority, from, 1, |chunk| chunk % 7 != 3);
            let buffer = world.forge_buffer(SEED, &expected);
            world.give(buffer, world.rent(20_000));
            let resize = world.resize(buffer, to as u32, receiver);
            landed(world.send(&[resize]));
            expected.resize(to);
            assert!(world.data(&buffer) == expected.data(), "{from} to {to}");
        }
    }
}

#[test]
fn a_short_last_chunk_that_becomes_longer_is_no_longer_written() {
    for (to, written) in [(25, 3), (26, 2), (29, 2), (30, 2), (31, 2), (200, 2)] {
        let mut world = World::new();
        let buffer = world.create_buffer(SEED, 25, 10);
        world.fill(buffer, &pattern(25, 1));
        world.give(buffer, world.rent(400));
        let resize = world.resize(buffer, to, world.payer);
        landed(world.send(&[resize]));
        assert_eq!(world.buffer(&buffer).written_chunks, written, "{to}");
        // Its bytes are still there, and behind them are zeroes where the bitmap was.
        let data = world.data(&buffer);
        assert_eq!(data[96..96 + 25], pattern(25, 1));
        assert!(data[96 + 25..96 + to as usize].iter().all(|byte| *byte == 0));
    }
    // A whole last chunk stays.
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 30, 10);
    world.fill(buffer, &pattern(30, 1));
    world.give(buffer, world.rent(400));
    let resize = world.resize(buffer, 35, world.payer);
    landed(world.send(&[resize]));
    assert_eq!(world.buffer(&buffer).written_chunks, 3);
}

#[test]
fn a_written_chunk_that_becomes_shorter_stays_written() {
    for (to, written) in [(30, 3), (29, 3), (21, 3), (20, 2), (19, 2), (1, 1), (0, 0)] {
        let mut world = World::new();
        let buffer = world.create_buffer(SEED, 30, 10);
        world.fill(buffer, &pattern(30, 1));
        let payload = pattern(30, 1)[..to].to_vec();
        let instructions =
            [world.resize(buffer, to as u32, world.payer), world.seal(buffer, payload_digest(&payload))];
        landed(world.send(&instructions));
        assert_eq!(world.buffer(&buffer).written_chunks, written);
        assert_eq!(world.data(&buffer), BufferBytes::sealed(world.authority, payload, 10).data());
    }
}

#[test]
fn an_account_grows_by_10_240_bytes_a_call_and_no_more() {
    // Old payload, the longest new one. The bitmap grows too: by a byte, or from none.
    for (from, to) in [(0, 10_239), (1_000, 11_240), (30_800, 41_039)] {
        let chunk_size = 3_856;
        for one_more in [0, 1] {
            let mut world = World::new();
            let mut expected = partly(world.authority, from, chunk_size, |_| true);
            let buffer = world.forge_buffer(SEED, &expected);
            world.give(buffer, world.rent(50_000));
            let resize = world.resize(buffer, to as u32 + one_more, world.payer);
            let outcome = world.send(&[resize]);
            if one_more == 0 {
                landed(outcome);
                expected.resize(to);
                assert_eq!(expected.data().len(), account_len(from, chunk_size) + 10_240);
            } else {
                refused(outcome, 0, ChunkBufferError::TooMuchGrowth);
            }
            assert!(world.data(&buffer) == expected.data());
        }
    }
}

#[test]
fn several_steps_share_a_transaction_with_their_rent_and_a_write() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 1_000, 1_000);
    world.fill(buffer, &pattern(1_000, 1));
    let missing = world.rent(account_len(50_500, 1_000)) - world.lamports(&buffer);
    let mut instructions = vec![system::transfer(&world.payer, &buffer, missing)];
    let steps = [11_000, 21_000, 31_000, 41_000, 50_500];
    instructions.extend(steps.map(|len| world.resize(buffer, len, world.payer)));
    instructions.push(world.write(buffer, 50_000, &pattern(500, 2)));
    landed(world.send(&instructions));
    let mut expected = BufferBytes::full(world.authority, pattern(1_000, 1), 1_000);
    expected.resize(50_500);
    expected.write(50_000, &pattern(500, 2));
    assert!(world.data(&buffer) == expected.data());
    assert_eq!(world.lamports(&buffer), world.rent(account_len(50_500, 1_000)));
}

#[test]
fn what_was_cut_off_does_not_come_back() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 5_000, 10);
    let full = BufferBytes::full(world.authority, pattern(5_000, 1), 10);
    world.forge_buffer(SEED, &full);
    let rent = world.rent(account_len(5_000, 10));
    let to_nothing = world.resize(buffer, 0, world.payer);
    let transfer = system::transfer(&world.payer, &buffer, rent - world.rent(96));
    let back = world.resize(buffer, 5_000, world.payer);
    landed(world.send(&[to_nothing, transfer, back]));
    assert!(world.data(&buffer) == BufferBytes::empty(world.authority, 5_000, 10).data());
    assert_eq!(world.lamports(&buffer), rent);
}

#[test]
fn an_empty_buffer_grows_and_a_buffer_shrinks_to_nothing() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 0, 10);
    world.give(buffer, world.rent(25) - world.rent(0) + world.rent(1) - world.rent(0));
    let resize = world.resize(buffer, 25, world.payer);
    landed(world.send(&[resize]));
    assert_eq!(world.data(&buffer), BufferBytes::empty(world.authority, 25, 10).data());
    world.fill(buffer, &pattern(25, 1));
    let instructions = [world.resize(buffer, 0, world.payer), world.seal(buffer, payload_digest(&[]))];
    landed(world.send(&instructions));
    assert_eq!(world.data(&buffer), BufferBytes::sealed(world.authority, Vec::new(), 10).data());
    assert_eq!(world.lamports(&buffer), world.rent(96));
}

#[test]
fn growing_takes_the_rent_of_the_new_length_to_the_lamport() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let resize = world.resize(buffer, 1_000, world.payer);
    refused(world.send(std::slice::from_ref(&resize)), 0, ChunkBufferError::NotRentExempt);
    let missing = world.rent(account_len(1_000, 10)) - world.rent(account_len(25, 10));
    let short = system::transfer(&world.payer, &buffer, missing - 1);
    refused(world.send(&[short, resize.clone()]), 1, ChunkBufferError::NotRentExempt);
    let enough = system::transfer(&world.payer, &buffer, missing);
    // It can't follow, either.
    let outcome = world.send(&[resize.clone(), enough.clone()]);
    refused(outcome, 0, ChunkBufferError::NotRentExempt);
    landed(world.send(&[enough, resize]));
}

#[test]
fn all_that_a_shorter_account_needs_less_goes_to_the_receiver() {
    for extra in [0, 12_345] {
        let mut world = World::new();
        let other = world.signer("other");
        for receiver in [other, world.authority, world.payer] {
            let buffer = world.create_buffer(SEED, 1_000, 10);
            world.give(buffer, extra);
            let before = world.lamports(&receiver);
            let resize = world.resize(buffer, 100, receiver);
            let fee = landed(world.send(&[resize])).fee;
            let paid = if receiver == world.payer { fee } else { 0 };
            let (old, new) = (world.rent(account_len(1_000, 10)), world.rent(account_len(100, 10)));
            assert_eq!(world.lamports(&buffer), new);
            assert_eq!(world.lamports(&receiver), before - paid + extra + old - new);
            let close = world.close(buffer, world.payer);
            landed(world.send(&[close]));
        }
    }
}

#[test]
fn a_buffer_that_does_not_shrink_keeps_its_lamports() {
    for to in [25, 26, 30, 1_000] {
        let mut world = World::new();
        let buffer = world.create_buffer(SEED, 25, 10);
        world.give(buffer, world.rent(10_000));
        let (before, receiver) = (world.lamports(&buffer), world.signer("receiver"));
        let resize = world.resize(buffer, to, receiver);
        landed(world.send(&[resize]));
        assert_eq!((world.lamports(&buffer), world.lamports(&receiver)), (before, LAMPORTS));
    }
}

#[test]
fn a_refund_that_would_not_keep_a_new_receiver_alive_is_refused_by_the_chain() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let resize = world.resize(buffer, 20, Address::new_from_array([9; 32]));
    match world.send(&[resize]) {
        Err(failure) => assert!(
            matches!(failure.reason, Reason::Transaction(TransactionError::InsufficientFundsForRent { .. })),
            "{failure:?}"
        ),
        Ok(_) => panic!("it landed"),
    }
}

#[test]
fn a_buffer_grows_to_an_account_of_ten_mebibytes_and_no_further() {
    let mut world = World::new();
    let mut expected = BufferBytes::empty(world.authority, MAX_PAYLOAD_LEN - 1, 3_856);
    expected.payload = pattern(MAX_PAYLOAD_LEN - 1, 1);
    let buffer = world.forge_buffer(SEED, &expected);
    world.give(buffer, world.rent(MAX_ACCOUNT_LEN) - world.lamports(&buffer));
    for len in [MAX_PAYLOAD_LEN as u32 + 1, 1 << 31, u32::MAX] {
        let resize = world.resize(buffer, len, world.payer);
        refused(world.send(&[resize]), 0, ChunkBufferError::TooLarge);
    }
    let resize = world.resize(buffer, MAX_PAYLOAD_LEN as u32, world.payer);
    landed(world.send(&[resize]));
    expected.resize(MAX_PAYLOAD_LEN);
    assert!(world.data(&buffer) == expected.data());
    assert_eq!(world.data(&buffer).len(), MAX_ACCOUNT_LEN);
    // And back to nothing at once.
    let resize = world.resize(buffer, 0, world.payer);
    landed(world.send(&[resize]));
    assert_eq!(world.data(&buffer), BufferBytes::empty(world.authority, 0, 3_856).data());
    assert_eq!(world.lamports(&buffer), world.rent(96));
}

#[test]
fn chunks_of_any_size_there_is_are_fine() {
    for chunk_size in [1, u32::MAX - 1, u32::MAX] {
        let mut world = World::new();
        let mut expected = partly(world.authority, 100, chunk_size as usize, |_| true);
        let buffer = world.forge_buffer(SEED, &expected);
        world.give(buffer, world.rent(1_000));
        for to in [200, 50, 100] {
            let resize = world.resize(buffer, to, world.payer);
            landed(world.send(&[resize]));
            expected.resize(to as usize);
            assert_eq!(world.data(&buffer), expected.data());
            world.give(buffer, world.rent(1_000));
        }
        let resize = world.resize(buffer, u32::MAX, world.payer);
        refused(world.send(&[resize]), 0, ChunkBufferError::TooLarge);
    }
}

#[test]
fn hashing_starts_over() {
    for to in [SEGMENT_LEN + 2, SEGMENT_LEN + 1, SEGMENT_LEN] {
        let mut world = World::new();
        let mut payload = pattern(SEGMENT_LEN + 1, 1);
        let mut expected = BufferBytes::full(world.authority, payload.clone(), 3_856);
        let buffer = world.forge_buffer(SEED, &expected);
        world.give(buffer, world.rent(1_000));
        let seal = world.seal(buffer, [0; 32]);
        landed(world.send(&[seal]));
        let resize = world.resize(buffer, to as u32, world.payer);
        landed(world.send(&[resize]));
        expected.resize(to);
        // What was hashed so far lies about, and is not used again.
        expected.digest = payload_digest(&payload[..SEGMENT_LEN]);
        assert!(world.data(&buffer) == expected.data());

        payload.resize(to, 0);
        if to > SEGMENT_LEN + 1 {
            let last = to / 3_856 * 3_856;
            let write = world.write(buffer, last as u32, &payload[last..]);
            landed(world.send(&[write]));
        }
        for _ in 0..to.div_ceil(SEGMENT_LEN) {
            let seal = world.seal(buffer, payload_digest(&payload));
            landed(world.send(&[seal]));
        }
        assert!(world.data(&buffer) == BufferBytes::sealed(world.authority, payload, 3_856).data());
    }
}

#[test]
fn a_sealed_buffer_keeps_its_length() {
    let mut world = World::new();
    let buffer = world.sealed_buffer(SEED, &pattern(25, 1), 10);
    let before = world.account(&buffer);
    for len in [0, 24, 25, 26, u32::MAX] {
        let resize = world.resize(buffer, len, world.payer);
        refused(world.send(&[resize]), 0, ChunkBufferError::Sealed);
    }
    assert_eq!(world.account(&buffer), before);
}

#[test]
fn nobody_but_the_authority_resizes() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    world.authority = world.signer("stranger");
    for len in [0, 25, u32::MAX] {
        let resize = world.resize(buffer, len, world.authority);
        refused(world.send(&[resize]), 0, ChunkBufferError::WrongAuthority);
    }
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let receiver = world.signer("receiver");
    let resize = world.resize(buffer, 5, receiver);
    every_flag_is_required(&mut world, &resize);
}

#[test]
fn a_buffer_can_not_be_its_own_receiver_or_authority() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let own = [world.resize(buffer, 5, buffer), world.resize(world.authority, 5, world.payer)];
    for resize in own {
        refused(world.send(&[resize]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
    }
}

#[test]
fn an_account_that_is_no_buffer_is_refused() {
    let mut world = World::new();
    let full = BufferBytes::full(world.authority, pattern(25, 1), 10).data();
    let of_another_kind = [vec![1; 8], full[8..].to_vec()].concat();
    let cases = [
        (OWNER_PROGRAM_ID, full.clone(), InstructionError::IllegalOwner),
        (committor_sdk::delegation::ID, full.clone(), InstructionError::IllegalOwner),
        (Address::default(), full.clone(), InstructionError::IllegalOwner),
        (chunk_buffer::ID, vec![0; full.len()], InstructionError::InvalidAccountData),
        (chunk_buffer::ID, of_another_kind, InstructionError::InvalidAccountData),
        (chunk_buffer::ID, full[..95].to_vec(), InstructionError::AccountDataTooSmall),
        (chunk_buffer::ID, Vec::new(), InstructionError::AccountDataTooSmall),
    ];
    let buffer = world.buffer_address(SEED);
    for (owner, data, error) in cases {
        world.forge(buffer, owner, data);
        let resize = world.resize(buffer, 5, world.payer);
        refused(world.send(&[resize]), 0, error);
    }
}

#[test]
fn a_layout_of_another_version_is_refused() {
    for version in [0, 2, 0xff] {
        let mut world = World::new();
        let unknown = BufferBytes { version, ..BufferBytes::empty(world.authority, 25, 10) };
        let buffer = world.forge_buffer(SEED, &unknown);
        let resize = world.resize(buffer, 5, world.payer);
        refused(world.send(&[resize]), 0, ChunkBufferError::UnknownVersion);
    }
}

#[test]
fn malformed_instruction_data_is_refused() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let whole = world.resize(buffer, 5, world.payer);
    for len in 0..whole.data.len() {
        let mut cut = whole.clone();
        cut.data.truncate(len);
        refused(world.send(&[cut]), 0, InstructionError::InvalidInstructionData);
    }
    landed(world.send(&[whole]));
}
