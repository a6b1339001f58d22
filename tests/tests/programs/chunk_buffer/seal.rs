use committor_sdk::{
    chunk_buffer::{self, ChunkBufferError},
    digest::{SEGMENT_LEN, payload_digest},
};
use committor_tests::{
    BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, Format, Limits, OPEN, SEALED, World, every_flag_is_required,
    landed, pattern, refused,
};
use sha2::{Digest, Sha256};
use solana_instruction_error::InstructionError;

const SEED: &str = "a buffer";
const CHUNK_SIZE: u32 = 3_856;

/// A buffer that lacks only the seal.
fn full(world: &mut World, payload: Vec<u8>) -> solana_address::Address {
    world.forge_buffer(SEED, &BufferBytes::full(world.authority, payload, CHUNK_SIZE))
}

#[test]
fn sealing_stores_the_plain_hash_and_changes_no_other_byte_than_the_headers() {
    for payload_len in [0, 1, 9, 10, 11, 99, 100, 101] {
        let mut world = World::new();
        let payload = pattern(payload_len, 1);
        let buffer = world.create_buffer(SEED, payload_len, 10);
        world.fill(buffer, &payload);
        let digest: [u8; 32] = Sha256::digest(&payload).into();
        let seal = world.seal(buffer, digest);
        landed(world.send(&[seal]));
        let expected = BufferBytes {
            digest,
            hashed_segments: 1,
            state: SEALED,
            ..BufferBytes::full(world.authority, payload, 10)
        };
        assert_eq!(world.data(&buffer), expected.data());
    }
}

#[test]
fn a_forged_sealed_buffer_is_what_the_program_makes() {
    let mut world = World::new();
    let payload = pattern(10_240, 1);
    let buffer = world.sealed_buffer(SEED, &payload, 3_000);
    let made = world.account(&buffer);
    assert_eq!(world.forge_buffer(SEED, &BufferBytes::sealed(world.authority, payload, 3_000)), buffer);
    assert_eq!(world.account(&buffer), made);
}

#[test]
fn a_buffer_that_lacks_a_chunk_is_not_sealed() {
    let payload = pattern(95, 1);
    for missing in [0, 5, 9] {
        let mut world = World::new();
        let buffer = world.create_buffer(SEED, payload.len(), 10);
        for (index, chunk) in payload.chunks(10).enumerate() {
            if index != missing {
                let write = world.write(buffer, index as u32 * 10, chunk);
                landed(world.send(&[write]));
            }
        }
        let seal = world.seal(buffer, payload_digest(&payload));
        refused(world.send(&[seal]), 0, ChunkBufferError::Incomplete);
    }
}

#[test]
fn chunks_of_zeroes_need_not_be_written() {
    // All of it, a chunk in the middle, the short one at the end.
    for zeroes in [0..95, 30..40, 90..95] {
        let mut world = World::new();
        let mut payload = pattern(95, 1);
        payload[zeroes].fill(0);
        let buffer = world.create_buffer(SEED, payload.len(), 10);
        for (index, chunk) in
            payload.chunks(10).enumerate().filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0))
        {
            let write = world.write(buffer, index as u32 * 10, chunk);
            landed(world.send(&[write]));
        }
        let seal = world.seal(buffer, payload_digest(&payload));
        landed(world.send(&[seal]));
        let header = world.buffer(&buffer);
        assert_eq!((header.state, header.digest), (SEALED, payload_digest(&payload)));
    }
}

#[test]
fn a_wrong_digest_does_not_seal_and_the_right_one_still_can() {
    let mut world = World::new();
    let payload = pattern(95, 1);
    let buffer = world.create_buffer(SEED, payload.len(), 10);
    world.fill(buffer, &payload);
    let before = world.data(&buffer);
    let right = payload_digest(&payload);
    let mut almost = right;
    almost[31] ^= 1;
    for digest in [[0; 32], almost, payload_digest(&payload[..94])] {
        let seal = world.seal(buffer, digest);
        refused(world.send(&[seal]), 0, ChunkBufferError::DigestMismatch);
        assert_eq!(world.data(&buffer), before);
    }
    let seal = world.seal(buffer, right);
    landed(world.send(&[seal]));
    assert_eq!(world.buffer(&buffer).state, SEALED);
}

#[test]
fn a_wrong_write_is_found_by_the_digest_and_repaired_by_a_second_write() {
    let mut world = World::new();
    let payload = pattern(25, 1);
    let buffer = world.create_buffer(SEED, payload.len(), 10);
    world.fill(buffer, &payload);
    let wrong = world.write(buffer, 10, &pattern(10, 9));
    landed(world.send(&[wrong]));
    let seal = world.seal(buffer, payload_digest(&payload));
    refused(world.send(std::slice::from_ref(&seal)), 0, ChunkBufferError::DigestMismatch);
    let right = world.write(buffer, 10, &payload[10..20]);
    landed(world.send(&[right, seal]));
}

#[test]
fn a_sealed_buffer_is_not_sealed_again() {
    let mut world = World::new();
    let payload = pattern(25, 1);
    let buffer = world.sealed_buffer(SEED, &payload, 10);
    for digest in [payload_digest(&payload), [0; 32]] {
        let seal = world.seal(buffer, digest);
        refused(world.send(&[seal]), 0, ChunkBufferError::Sealed);
    }
}

#[test]
fn writing_and_sealing_share_a_transaction() {
    let mut world = World::new();
    let payload = pattern(10, 1);
    let buffer = world.create_buffer(SEED, payload.len(), 10);
    let instructions = [world.write(buffer, 0, &payload), world.seal(buffer, payload_digest(&payload))];
    landed(world.send_as(Format::V0, Limits::MAX, &instructions));
    assert_eq!(world.data(&buffer), BufferBytes::sealed(world.authority, payload, 10).data());
}

#[test]
fn one_segment_takes_one_call_and_a_byte_more_takes_two() {
    for (payload_len, calls) in [(SEGMENT_LEN - 1, 1), (SEGMENT_LEN, 1), (SEGMENT_LEN + 1, 2)] {
        let mut world = World::new();
        let payload = pattern(payload_len, 1);
        let first = Sha256::digest(&payload[..payload_len.min(SEGMENT_LEN)]);
        let buffer = full(&mut world, payload.clone());
        for call in 1..=calls {
            let seal = world.seal(buffer, payload_digest(&payload));
            landed(world.send(&[seal]));
            let header = world.buffer(&buffer);
            assert_eq!(header.hashed_segments, call);
            assert_eq!(header.state, if call == calls { SEALED } else { OPEN });
            if call == 1 {
                assert_eq!(header.digest.as_slice(), first.as_slice());
            }
        }
        assert!(world.data(&buffer) == BufferBytes::sealed(world.authority, payload, CHUNK_SIZE).data());
    }
}

#[test]
fn the_largest_payload_is_sealed_by_five_calls() {
    let mut world = World::new();
    let payload = pattern(10 * 1024 * 1024 - 96 - 340, 1);
    let buffer = full(&mut world, payload.clone());
    for _ in 0..5 {
        let seal = world.seal(buffer, payload_digest(&payload));
        landed(world.send(&[seal]));
    }
    assert!(world.data(&buffer) == BufferBytes::sealed(world.authority, payload, CHUNK_SIZE).data());
}

#[test]
fn only_the_call_for_the_last_segment_looks_at_the_digest() {
    let mut world = World::new();
    let payload = pattern(SEGMENT_LEN + 1, 1);
    let buffer = full(&mut world, payload.clone());
    let wrong = world.seal(buffer, [0; 32]);
    landed(world.send(std::slice::from_ref(&wrong)));
    refused(world.send(&[wrong]), 0, ChunkBufferError::DigestMismatch);
    // What was hashed is kept.
    let right = world.seal(buffer, payload_digest(&payload));
    landed(world.send(&[right]));
    assert_eq!(world.buffer(&buffer).state, SEALED);
}

#[test]
fn two_segments_share_a_transaction_if_their_hashes_fit_its_compute_units() {
    let mut world = World::new();
    let payload = pattern(SEGMENT_LEN + 1_000, 1);
    let buffer = full(&mut world, payload.clone());
    let seal = world.seal(buffer, payload_digest(&payload));
    landed(world.send(&[seal.clone(), seal]));
    assert_eq!(world.buffer(&buffer).state, SEALED);
}

#[test]
fn a_write_between_two_segments_starts_the_hashing_over() {
    let mut world = World::new();
    let mut payload = pattern(SEGMENT_LEN + 1, 1);
    let buffer = full(&mut world, payload.clone());
    let stale = world.seal(buffer, payload_digest(&payload));
    landed(world.send(std::slice::from_ref(&stale)));

    // One signature less leaves room for so large a chunk.
    world.payer = world.authority;
    let chunk = pattern(CHUNK_SIZE as usize, 2);
    payload[..chunk.len()].copy_from_slice(&chunk);
    let write = world.write(buffer, 0, &chunk);
    landed(world.send(&[write]));
    assert_eq!(world.buffer(&buffer).hashed_segments, 0);

    landed(world.send(std::slice::from_ref(&stale)));
    refused(world.send(&[stale]), 0, ChunkBufferError::DigestMismatch);
    let seal = world.seal(buffer, payload_digest(&payload));
    landed(world.send(&[seal]));
    assert!(world.data(&buffer) == BufferBytes::sealed(world.authority, payload, CHUNK_SIZE).data());
}

#[test]
fn nobody_but_the_authority_seals() {
    let mut world = World::new();
    let payload = pattern(25, 1);
    let buffer = full(&mut world, payload.clone());
    let authority = world.signer("stranger");
    let args = chunk_buffer::SealArgs { digest: payload_digest(&payload) };
    let seal = chunk_buffer::Seal { authority, buffer }.instruction(args);
    refused(world.send(&[seal]), 0, ChunkBufferError::WrongAuthority);
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let payload = pattern(25, 1);
    let buffer = full(&mut world, payload.clone());
    let seal = world.seal(buffer, payload_digest(&payload));
    every_flag_is_required(&mut world, &seal);
}

#[test]
fn an_account_that_is_no_buffer_is_refused() {
    let mut world = World::new();
    let data = BufferBytes::full(world.authority, pattern(25, 1), 10).data();
    let address = world.buffer_address(SEED);
    let seal = world.seal(address, payload_digest(&pattern(25, 1)));
    world.forge(address, committor_sdk::delegation::ID, data.clone());
    refused(world.send(std::slice::from_ref(&seal)), 0, InstructionError::IllegalOwner);
    world.forge(address, chunk_buffer::ID, vec![0; data.len()]);
    refused(world.send(std::slice::from_ref(&seal)), 0, InstructionError::InvalidAccountData);
    let own = world.seal(world.authority, [0; 32]);
    refused(world.send(&[own]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn a_layout_of_another_version_is_refused() {
    let mut world = World::new();
    let unknown = BufferBytes { version: 2, ..BufferBytes::full(world.authority, pattern(25, 1), 10) };
    let buffer = world.forge_buffer(SEED, &unknown);
    let seal = world.seal(buffer, payload_digest(&pattern(25, 1)));
    refused(world.send(&[seal]), 0, ChunkBufferError::UnknownVersion);
}
