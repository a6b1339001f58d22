use committor_sdk::{
    chunk_buffer::{self, ChunkBufferError},
    digest::payload_digest,
};
use committor_tests::{
    BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, LAMPORTS, World, every_flag_is_required, landed, pattern, refused,
};
use solana_address::Address;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;

const SEED: &str = "a buffer";

fn nobody() -> Address {
    Address::new_from_array([9; 32])
}

#[test]
fn an_open_and_a_sealed_buffer_give_all_their_lamports_to_the_receiver_and_are_gone() {
    let payload = pattern(25, 1);
    for sealed in [false, true] {
        for extra in [0, 12_345] {
            let mut world = World::new();
            let buffer = match sealed {
                true => world.sealed_buffer(SEED, &payload, 10),
                false => world.create_buffer(SEED, 25, 10),
            };
            world.give(buffer, extra);
            let rent = world.lamports(&buffer);
            assert_eq!(rent, world.rent(96 + 25 + 1) + extra);
            let before = world.lamports(&world.payer);
            let close = world.close(buffer, nobody());
            let fee = landed(world.send(&[close])).fee;
            assert_eq!(world.account(&buffer), None);
            assert_eq!(world.lamports(&nobody()), rent);
            assert_eq!(world.lamports(&world.payer), before - fee);
            assert_eq!(world.lamports(&world.authority), LAMPORTS);
        }
    }
}

#[test]
fn the_authority_and_the_payer_can_be_the_receiver() {
    let mut world = World::new();
    let rent = world.rent(96 + 25 + 1);
    for receiver in [world.authority, world.payer] {
        let buffer = world.create_buffer(SEED, 25, 10);
        let before = world.lamports(&receiver);
        let close = world.close(buffer, receiver);
        let fee = landed(world.send(&[close])).fee;
        let paid = if receiver == world.payer { fee } else { 0 };
        assert_eq!(world.lamports(&receiver), before + rent - paid);
    }
}

#[test]
fn a_buffer_of_ten_mebibytes_is_closed_by_one_transaction() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 10 * 1024 * 1024 - 96 - 340, 3_856);
    let close = world.close(buffer, nobody());
    landed(world.send(&[close]));
    assert_eq!(world.lamports(&nobody()), world.rent(10 * 1024 * 1024));
}

#[test]
fn a_buffer_can_not_be_its_own_receiver() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let close = world.close(buffer, buffer);
    refused(world.send(&[close]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn a_closed_buffer_that_is_given_lamports_in_the_same_transaction_is_no_buffer() {
    let payload = pattern(10, 1);
    let mut world = World::new();
    let buffer = world.sealed_buffer(SEED, &payload, 10);
    let close = world.close(buffer, nobody());
    let revive = system::transfer(&world.payer, &buffer, world.rent(96 + 10 + 1));
    let uses = [
        world.write(buffer, 0, &payload),
        world.seal(buffer, payload_digest(&payload)),
        world.close(buffer, nobody()),
    ];
    for instruction in uses {
        let outcome = world.send(&[close.clone(), revive.clone(), instruction]);
        refused(outcome, 2, InstructionError::IllegalOwner);
    }
    let args = chunk_buffer::InitArgs { seed: SEED.as_bytes(), payload_len: 10, chunk_size: 10 };
    let init = chunk_buffer::Init { authority: world.authority, buffer }.instruction(args);
    refused(world.send(&[close, revive, init]), 2, ChunkBufferError::WrongOwner);
}

#[test]
fn a_buffer_closed_and_created_again_in_one_transaction_is_a_new_one() {
    let mut world = World::new();
    let buffer = world.sealed_buffer(SEED, &pattern(25, 1), 10);
    let mut instructions = vec![
        world.close(buffer, nobody()),
        // The account is gone, so all the rent is due again.
        system::transfer(&world.payer, &buffer, world.rent(96 + 25 + 1)),
    ];
    instructions.extend(world.create_buffer_instructions(SEED, 25, 10));
    landed(world.send(&instructions));
    assert_eq!(world.data(&buffer), BufferBytes::empty(world.authority, 25, 10).data());
}

#[test]
fn a_closed_buffers_address_can_be_used_for_one_of_another_size() {
    let mut world = World::new();
    let buffer = world.sealed_buffer(SEED, &pattern(25, 1), 10);
    let close = world.close(buffer, nobody());
    landed(world.send(&[close]));
    world.create_buffer(SEED, 5, 2);
    assert_eq!(world.data(&buffer), BufferBytes::empty(world.authority, 5, 2).data());
}

#[test]
fn a_closed_buffer_is_not_closed_again() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let close = world.close(buffer, nobody());
    let outcome = world.send(&[close.clone(), close.clone()]);
    refused(outcome, 1, InstructionError::IllegalOwner);
    landed(world.send(std::slice::from_ref(&close)));
    refused(world.send(&[close]), 0, InstructionError::IllegalOwner);
}

#[test]
fn nobody_but_the_authority_closes() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let authority = world.signer("stranger");
    let close = chunk_buffer::Close { authority, buffer, receiver: authority }.instruction();
    refused(world.send(&[close]), 0, ChunkBufferError::WrongAuthority);
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let buffer = world.create_buffer(SEED, 25, 10);
    let close = world.close(buffer, nobody());
    every_flag_is_required(&mut world, &close);
}

#[test]
fn an_account_that_is_no_buffer_is_refused() {
    let mut world = World::new();
    let data = BufferBytes::full(world.authority, pattern(25, 1), 10).data();
    let address = world.buffer_address(SEED);
    let close = world.close(address, nobody());
    world.forge(address, committor_sdk::delegation::ID, data.clone());
    refused(world.send(std::slice::from_ref(&close)), 0, InstructionError::IllegalOwner);
    world.forge(address, chunk_buffer::ID, vec![0; data.len()]);
    refused(world.send(&[close]), 0, InstructionError::InvalidAccountData);
}

#[test]
fn a_layout_of_another_version_is_refused() {
    let mut world = World::new();
    let unknown = BufferBytes { version: 2, ..BufferBytes::empty(world.authority, 25, 10) };
    let buffer = world.forge_buffer(SEED, &unknown);
    let close = world.close(buffer, nobody());
    refused(world.send(&[close]), 0, ChunkBufferError::UnknownVersion);
}
