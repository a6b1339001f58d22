use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    chunk_buffer::{self, ChunkBufferError},
    digest::{SEGMENT_LEN, payload_digest},
};
use committor_tests::{
    BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, Format, Limits, World, every_flag_is_required, landed, pattern,
    refused,
};
use solana_instruction_error::InstructionError;

const SEED: &str = "a buffer";

#[test]
fn every_chunk_lands_in_its_place_in_any_order() {
    for (payload_len, chunk_size) in
        [(1, 1), (1, 10), (9, 10), (10, 10), (11, 10), (90, 10), (100, 10), (101, 10)]
    {
        let payload = pattern(payload_len, 1);
        let chunks = payload_len.div_ceil(chunk_size);
        let forwards: Vec<usize> = (0..chunks).collect();
        let backwards = forwards.iter().rev().copied().collect();
        // No count is a multiple of 7: each chunk comes up once.
        let scattered = forwards.iter().map(|index| index * 7 % chunks).collect();
        for order in [forwards, backwards, scattered] {
            let mut world = World::new();
            let buffer = world.create_buffer(SEED, payload_len, chunk_size as u32);
            let mut expected = BufferBytes::empty(world.authority, payload_len, chunk_size as u32);
            for index in order {
                let start = index * chunk_size;
                let chunk = &payload[start..payload_len.min(start + chunk_size)];
                let write = world.write(buffer, start as u32, chunk);
                landed(world.send(&[write]));
                expected.write(start, chunk);
                assert_eq!(world.data(&buffer), expected.data());
            }
            assert_eq!(
                world.data(&buffer),
                BufferBytes::full(world.authority, payload.clone(), chunk_size as u32).data()
            );
        }
    }
}

#[test]
fn a_chunk_written_twice_counts_once_and_the_last_bytes_stay() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let mut expected = BufferBytes::empty(world.authority, 25, 10);
    for salt in [1, 1, 2] {
        let chunk = pattern(10, salt);
        let write = world.write(buffer, 10, &chunk);
        landed(world.send(&[write]));
        expected.write(10, &chunk);
        assert_eq!(world.data(&buffer), expected.data());
    }
    assert_eq!(world.buffer(&buffer).written_chunks, 1);
}

#[test]
fn several_writes_share_a_transaction() {
    let mut world = World::new();
    let payload = pattern(25, 1);
    let buffer = world.create_buffer(SEED, 25, 10);
    let writes = [
        world.write(buffer, 20, &payload[20..]),
        world.write(buffer, 0, &payload[..10]),
        world.write(buffer, 10, &payload[10..20]),
    ];
    landed(world.send(&writes));
    assert_eq!(world.data(&buffer), BufferBytes::full(world.authority, payload, 10).data());
}

#[test]
fn creating_and_writing_share_a_transaction() {
    let mut world = World::new();
    let payload = pattern(700, 1);
    let mut instructions = world.create_buffer_instructions(SEED, 700, 700);
    let buffer = world.buffer_address(SEED);
    instructions.push(world.write(buffer, 0, &payload));
    landed(world.send_as(Format::V0, Limits::MAX, &instructions));
    assert_eq!(world.data(&buffer), BufferBytes::full(world.authority, payload, 700).data());
}

#[test]
fn both_ends_of_a_buffer_of_ten_mebibytes_can_be_written() {
    let mut world = World::new();
    let len = 10 * 1024 * 1024 - 96 - 340;
    let buffer = world.create_buffer(SEED, len, 3_856);
    // One signature less leaves room for so large a chunk.
    world.payer = world.authority;
    let last = len / 3_856 * 3_856;
    let mut expected = BufferBytes::empty(world.authority, len, 3_856);
    for start in [last, 0] {
        let chunk = pattern((len - start).min(3_856), 1);
        let write = world.write(buffer, start as u32, &chunk);
        landed(world.send(&[write]));
        expected.write(start, &chunk);
    }
    assert!(world.data(&buffer) == expected.data());
}

#[test]
fn a_transaction_carries_a_chunk_of_969_bytes_in_v0_and_3_871_in_v1() {
    for (format, chunk_size) in [(Format::V0, 969), (Format::V1, 3_871)] {
        let mut world = World::new();
        let payload = pattern(chunk_size, 1);
        let buffer = world.create_buffer(SEED, chunk_size, chunk_size as u32);
        // The authority pays, so that one signature is enough. In v0, the two limits are instructions and take room.
        let write = world.write(buffer, 0, &payload);
        world.payer = world.authority;
        landed(world.send_as(format, Limits::MAX, &[write]));
        assert_eq!(world.data(&buffer)[96..96 + chunk_size], payload);
    }
}

#[test]
fn a_chunk_of_another_length_is_refused_and_only_the_last_may_be_short() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    // Offset, length.
    let cases = [
        (0, 0),
        (0, 1),
        (0, 9),
        (0, 11),
        (0, 20),
        (0, 25),
        (10, 5),
        (10, 9),
        (10, 15),
        (20, 0),
        (20, 4),
        (20, 6),
        (20, 10),
    ];
    for (offset, len) in cases {
        let write = world.write(buffer, offset, &pattern(len, 1));
        refused(world.send(&[write]), 0, ChunkBufferError::WrongChunkLength);
    }
    assert_eq!(world.data(&buffer), BufferBytes::empty(world.authority, 25, 10).data());
}

#[test]
fn a_whole_last_chunk_may_not_be_short() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 30, 10);
    for len in [0, 9, 11] {
        let write = world.write(buffer, 20, &pattern(len, 1));
        refused(world.send(&[write]), 0, ChunkBufferError::WrongChunkLength);
    }
}

#[test]
fn an_offset_at_or_past_the_end_is_refused() {
    for payload_len in [0, 1, 25, 30] {
        let mut world = World::new();
        let buffer = world.create_buffer(SEED, payload_len, 10);
        let end = payload_len as u32;
        let first_past = end.next_multiple_of(10);
        let offsets =
            [end, end + 1, first_past, first_past + 10, u32::MAX - 5, u32::MAX - 1, u32::MAX, 1 << 31];
        for offset in offsets {
            let write = world.write(buffer, offset, &pattern(10, 1));
            refused(world.send(&[write]), 0, ChunkBufferError::OffsetOutOfBounds);
        }
        assert_eq!(world.data(&buffer), BufferBytes::empty(world.authority, payload_len, 10).data());
    }
}

#[test]
fn an_offset_between_two_chunks_is_refused() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    for offset in [1, 5, 9, 11, 19, 21, 24] {
        let write = world.write(buffer, offset, &pattern(10, 1));
        refused(world.send(&[write]), 0, ChunkBufferError::UnalignedOffset);
    }
}

#[test]
fn a_sealed_buffer_takes_no_writes() {
    let mut world = World::new();
    let payload = pattern(25, 1);
    let buffer = world.sealed_buffer(SEED, &payload, 10);
    let before = world.data(&buffer);
    for (offset, len) in [(0, 10), (20, 5), (25, 10), (3, 1)] {
        let write = world.write(buffer, offset, &pattern(len, 2));
        refused(world.send(&[write]), 0, ChunkBufferError::Sealed);
    }
    assert_eq!(world.data(&buffer), before);
}

/// A late resend must not undo the hashing of megabytes.
#[test]
fn the_same_bytes_once_more_do_not_start_the_hashing_over() {
    let mut world = World::new();
    let payload = pattern(SEGMENT_LEN + 10, 1);
    let mut expected = BufferBytes::full(world.authority, payload.clone(), 1_024);
    let buffer = world.forge_buffer(SEED, &expected);
    let seal = world.seal(buffer, payload_digest(&payload));
    landed(world.send(std::slice::from_ref(&seal)));
    expected.digest = payload_digest(&payload[..SEGMENT_LEN]);
    expected.hashed_segments = 1;
    for offset in [0, SEGMENT_LEN - 1_024, SEGMENT_LEN] {
        let chunk = &payload[offset..payload.len().min(offset + 1_024)];
        let write = world.write(buffer, offset as u32, chunk);
        landed(world.send(&[write]));
        assert!(world.data(&buffer) == expected.data());
    }
    // One that differs in the last bit does, even of a segment that is not hashed yet.
    let mut chunk = payload[SEGMENT_LEN..].to_vec();
    *chunk.last_mut().unwrap() ^= 1;
    let write = world.write(buffer, SEGMENT_LEN as u32, &chunk);
    landed(world.send(&[write]));
    expected.write(SEGMENT_LEN, &chunk);
    assert_eq!(expected.hashed_segments, 0);
    assert!(world.data(&buffer) == expected.data());
}

#[test]
fn nobody_but_the_authority_writes() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let authority = world.signer("stranger");
    let args = chunk_buffer::WriteArgs { offset: 0, data: &pattern(10, 1) };
    let write = chunk_buffer::Write { authority, buffer }.instruction(args);
    refused(world.send(&[write]), 0, ChunkBufferError::WrongAuthority);
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let write = world.write(buffer, 0, &pattern(10, 1));
    every_flag_is_required(&mut world, &write);
}

#[test]
fn an_account_that_is_no_buffer_is_refused() {
    let mut world = World::new();
    let full = BufferBytes::full(world.authority, pattern(25, 1), 10).data();
    let of_another_kind = [vec![1; 8], full[8..].to_vec()].concat();
    let cases = [
        // A buffer in all but its owner.
        (OWNER_PROGRAM_ID, full.clone(), InstructionError::IllegalOwner),
        (committor_sdk::delegation::ID, full.clone(), InstructionError::IllegalOwner),
        (solana_address::Address::default(), full.clone(), InstructionError::IllegalOwner),
        // Allocated, and never initialized.
        (chunk_buffer::ID, vec![0; full.len()], InstructionError::InvalidAccountData),
        (chunk_buffer::ID, of_another_kind, InstructionError::InvalidAccountData),
        (chunk_buffer::ID, full[..95].to_vec(), InstructionError::AccountDataTooSmall),
        (chunk_buffer::ID, Vec::new(), InstructionError::AccountDataTooSmall),
    ];
    let buffer = world.buffer_address(SEED);
    for (owner, data, error) in cases {
        world.forge(buffer, owner, data);
        let write = world.write(buffer, 0, &pattern(10, 1));
        refused(world.send(&[write]), 0, error);
    }
}

#[test]
fn an_authority_that_is_its_own_buffer_is_refused() {
    let mut world = World::new();
    let write = world.write(world.authority, 0, &pattern(10, 1));
    refused(world.send(&[write]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn a_layout_of_another_version_is_refused() {
    for version in [0, 2, 0xff] {
        let mut world = World::new();
        let unknown = BufferBytes { version, ..BufferBytes::empty(world.authority, 25, 10) };
        let buffer = world.forge_buffer(SEED, &unknown);
        let write = world.write(buffer, 0, &pattern(10, 1));
        refused(world.send(&[write]), 0, ChunkBufferError::UnknownVersion);
    }
}

#[test]
fn malformed_instruction_data_is_refused() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let whole = world.write(buffer, 0, &pattern(10, 1));
    for len in 0..whole.data.len() {
        let mut cut = whole.clone();
        cut.data.truncate(len);
        refused(world.send(&[cut]), 0, InstructionError::InvalidInstructionData);
    }
    landed(world.send(&[whole]));
}
