use committor_sdk::{chunk_buffer::ChunkBufferError, digest::payload_digest};
use committor_tests::{
    BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, LAMPORTS, World, every_flag_is_required, landed, pattern, refused,
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;

const SEED: &str = "a buffer";

/// All that an authority can do with a buffer of 25 bytes.
fn instructions(world: &World, buffer: Address) -> Vec<Instruction> {
    vec![
        world.write(buffer, 0, &pattern(10, 1)),
        world.seal(buffer, payload_digest(&pattern(25, 1))),
        world.resize(buffer, 5, world.payer),
        world.set_buffer_authority(buffer, world.authority),
        world.close(buffer, world.payer),
    ]
}

#[test]
fn the_authority_changes_and_nothing_else() {
    let heir = World::new().signer("heir");
    let authority = World::new().authority;
    let payload = pattern(25, 1);
    let buffers = [
        BufferBytes::empty(authority, 25, 10),
        BufferBytes::full(authority, payload.clone(), 10),
        BufferBytes::sealed(authority, payload, 10),
        BufferBytes { hashed_segments: 3, digest: [7; 32], ..BufferBytes::empty(authority, 25, 10) },
    ];
    for before in buffers {
        let mut world = World::new();
        let buffer = world.forge_buffer(SEED, &before);
        let lamports = world.lamports(&buffer);
        let set_authority = world.set_buffer_authority(buffer, heir);
        landed(world.send(&[set_authority]));
        assert_eq!(world.data(&buffer), BufferBytes { authority: heir, ..before }.data());
        assert_eq!((world.lamports(&buffer), world.lamports(&world.authority)), (lamports, LAMPORTS));
    }
}

#[test]
fn the_new_authority_does_everything_and_the_old_one_nothing() {
    let mut world = World::new();
    let (old, new) = (world.authority, world.signer("heir"));
    let buffer = world.create_buffer(SEED, 25, 10);
    let set_authority = world.set_buffer_authority(buffer, new);
    landed(world.send(&[set_authority]));
    for instruction in instructions(&world, buffer) {
        refused(world.send(&[instruction]), 0, ChunkBufferError::WrongAuthority);
    }
    // The address, which comes from the old one, can't be initialized a second time.
    let init = world.create_buffer_instructions(SEED, 25, 10).pop().unwrap();
    refused(world.send(&[init]), 0, ChunkBufferError::AlreadyInitialized);

    world.authority = new;
    world.fill(buffer, &pattern(25, 1));
    let seal = world.seal(buffer, payload_digest(&pattern(25, 1)));
    landed(world.send(&[seal]));
    assert_eq!(world.data(&buffer), BufferBytes::sealed(new, pattern(25, 1), 10).data());
    let close = world.close(buffer, new);
    landed(world.send(&[close]));
    // Then the address is the old one's again.
    world.authority = old;
    world.create_buffer(SEED, 25, 10);
}

#[test]
fn it_takes_effect_within_the_transaction() {
    let mut world = World::new();
    let (old, new) = (world.authority, world.signer("heir"));
    let buffer = world.create_buffer(SEED, 25, 10);
    let there = world.set_buffer_authority(buffer, new);
    let write = world.write(buffer, 0, &pattern(10, 1));
    refused(world.send(&[there.clone(), write.clone()]), 1, ChunkBufferError::WrongAuthority);
    world.authority = new;
    let back = world.set_buffer_authority(buffer, old);
    landed(world.send(&[there, back, write]));
    assert_eq!(world.buffer(&buffer).authority, old);
}

#[test]
fn the_authority_can_stay_who_it_is() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let before = world.account(&buffer);
    let set_authority = world.set_buffer_authority(buffer, world.authority);
    landed(world.send(&[set_authority]));
    assert_eq!(world.account(&buffer), before);
}

#[test]
fn nobody_can_be_the_authority_of_address_zero() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let set_authority = world.set_buffer_authority(buffer, Address::default());
    refused(world.send(&[set_authority]), 0, ChunkBufferError::ZeroAuthority);
    assert_eq!(world.buffer(&buffer).authority, world.authority);
}

#[test]
fn nobody_but_the_authority_hands_a_buffer_on() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    world.authority = world.signer("stranger");
    for heir in [world.authority, world.payer, Address::default()] {
        let set_authority = world.set_buffer_authority(buffer, heir);
        refused(world.send(&[set_authority]), 0, ChunkBufferError::WrongAuthority);
    }
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let set_authority = world.set_buffer_authority(buffer, world.payer);
    every_flag_is_required(&mut world, &set_authority);
}

#[test]
fn an_account_that_is_no_buffer_is_refused() {
    let mut world = World::new();
    let data = BufferBytes::full(world.authority, pattern(25, 1), 10).data();
    let address = world.buffer_address(SEED);
    let set_authority = world.set_buffer_authority(address, world.payer);
    world.forge(address, committor_sdk::delegation::ID, data.clone());
    refused(world.send(std::slice::from_ref(&set_authority)), 0, InstructionError::IllegalOwner);
    world.forge(address, committor_sdk::chunk_buffer::ID, vec![0; data.len()]);
    refused(world.send(&[set_authority]), 0, InstructionError::InvalidAccountData);
    let own = world.set_buffer_authority(world.authority, world.payer);
    refused(world.send(&[own]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn a_layout_of_another_version_is_refused() {
    let mut world = World::new();
    let unknown = BufferBytes { version: 2, ..BufferBytes::empty(world.authority, 25, 10) };
    let buffer = world.forge_buffer(SEED, &unknown);
    let set_authority = world.set_buffer_authority(buffer, world.payer);
    refused(world.send(&[set_authority]), 0, ChunkBufferError::UnknownVersion);
}

#[test]
fn malformed_instruction_data_is_refused() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let whole = world.set_buffer_authority(buffer, world.payer);
    for len in 0..whole.data.len() {
        let mut cut = whole.clone();
        cut.data.truncate(len);
        refused(world.send(&[cut]), 0, InstructionError::InvalidInstructionData);
    }
    landed(world.send(&[whole]));
}
