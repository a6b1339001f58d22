use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address,
    chunk_buffer::{self, ChunkBufferError},
    instructions::CreateBuffer,
};
use committor_tests::{
    BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, Format, Limits, World, every_flag_is_required, landed, pattern,
    refused, unsigned,
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;
use solana_system_interface::{error::SystemError, instruction as system};

const SEED: &str = "a buffer";
const MAX_ACCOUNT_LEN: usize = 10 * 1024 * 1024;
/// The largest payload in chunks of 3,856 bytes: 340 bytes of bitmap.
const MAX_PAYLOAD_LEN: usize = MAX_ACCOUNT_LEN - 96 - 340;

fn init(authority: Address, buffer: Address, seed: &[u8], payload_len: u32, chunk_size: u32) -> Instruction {
    let args = chunk_buffer::InitArgs { seed, payload_len, chunk_size };
    chunk_buffer::Init { authority, buffer }.instruction(args)
}

/// A zeroed account that the program owns, at the address of the authority's buffer.
fn allocated(world: &mut World, len: usize) -> Address {
    let buffer = world.buffer_address(SEED);
    world.forge(buffer, chunk_buffer::ID, vec![0; len]);
    buffer
}

fn custom(error: SystemError) -> InstructionError {
    InstructionError::Custom(error as u32)
}

#[test]
fn a_new_buffer_is_a_header_a_zeroed_payload_and_an_empty_bitmap() {
    let sizes = [
        (0, 1),
        (0, 3_856),
        (1, 1),
        (1, 3_856),
        (9, 10),
        (10, 10),
        (11, 10),
        (80, 10),
        (81, 10),
        (99, 10),
        (100, 10),
        (101, 10),
        (5, u32::MAX),
        (10_144, 1_012),
        (10_240, 3_856),
        (10_241, 3_856),
    ];
    for (payload_len, chunk_size) in sizes {
        let mut world = World::new();
        let buffer = world.create_buffer(SEED, payload_len, chunk_size);
        let account = world.account(&buffer).unwrap();
        assert_eq!(account.owner, chunk_buffer::ID);
        assert_eq!(account.data, BufferBytes::empty(world.authority, payload_len, chunk_size).data());
    }
}

#[test]
fn creating_costs_the_rent_and_nothing_else() {
    let mut world = World::new();
    let before = world.lamports(&world.payer);
    let instructions = world.create_buffer_instructions(SEED, 5_000, 1_000);
    let fee = landed(world.send(&instructions)).fee;
    let rent = world.rent(96 + 5_000 + 1);
    assert_eq!(world.lamports(&world.buffer_address(SEED)), rent);
    assert_eq!(world.lamports(&world.payer), before - rent - fee);
}

#[test]
fn a_buffer_of_ten_mebibytes_takes_one_transaction() {
    for format in [Format::V0, Format::V1] {
        let mut world = World::new();
        let instructions = world.create_buffer_instructions(SEED, MAX_PAYLOAD_LEN, 3_856);
        landed(world.send_as(format, Limits::MAX, &instructions));
        let data = world.data(&world.buffer_address(SEED));
        assert_eq!(data.len(), MAX_ACCOUNT_LEN);
        assert_eq!(data, BufferBytes::empty(world.authority, MAX_PAYLOAD_LEN, 3_856).data());
    }
}

#[test]
fn an_account_of_one_byte_more_than_ten_mebibytes_can_not_be_allocated() {
    let mut world = World::new();
    let (buffer, authority) = (world.buffer_address(SEED), world.authority);
    let len = MAX_ACCOUNT_LEN + 1;
    let instructions = [
        system::transfer(&world.payer, &buffer, world.rent(len - 1) + 6_960),
        system::allocate_with_seed(&buffer, &authority, SEED, len as u64, &chunk_buffer::ID),
        init(authority, buffer, SEED.as_bytes(), MAX_PAYLOAD_LEN as u32 + 1, 3_856),
    ];
    refused(world.send(&instructions), 1, custom(SystemError::InvalidAccountDataLength));
}

#[test]
fn an_address_to_which_a_stranger_sent_lamports_can_be_used() {
    let rent = World::new().rent(96 + 100 + 2);
    for lamports in [rent, rent + 1, 3 * rent] {
        let mut world = World::new();
        let buffer = world.buffer_address(SEED);
        let stranger = world.signer("stranger");
        landed(world.send(&[system::transfer(&stranger, &buffer, lamports)]));
        let instructions = world.create_buffer_instructions(SEED, 100, 10);
        assert_eq!(instructions.len(), 2, "there is no rent left to transfer");
        landed(world.send(&instructions));
        assert_eq!(world.data(&buffer), BufferBytes::empty(world.authority, 100, 10).data());
        assert_eq!(world.lamports(&buffer), lamports);
    }
}

#[test]
fn what_an_address_already_holds_counts_towards_the_rent() {
    let mut world = World::new();
    let buffer = world.buffer_address(SEED);
    let stranger = world.signer("stranger");
    // The least that may lie at an address: the rent of an empty account.
    landed(world.send(&[system::transfer(&stranger, &buffer, world.rent(0))]));
    world.create_buffer(SEED, 100, 10);
    assert_eq!(world.lamports(&buffer), world.rent(96 + 100 + 2));
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let buffer = allocated(&mut world, 96 + 100 + 2);
    let instruction = init(world.authority, buffer, SEED.as_bytes(), 100, 10);
    every_flag_is_required(&mut world, &instruction);
}

#[test]
fn only_the_authority_can_allocate_its_buffers() {
    let mut world = World::new();
    let mut instructions = world.create_buffer_instructions(SEED, 100, 10);
    instructions[1] = unsigned(&instructions[1], 1);
    instructions.pop();
    refused(world.send(&instructions), 1, InstructionError::MissingRequiredSignature);
}

#[test]
fn a_stranger_can_not_take_over_an_allocated_buffer() {
    let mut world = World::new();
    let buffer = allocated(&mut world, 96 + 100 + 2);
    let stranger = world.signer("stranger");
    let instruction = init(stranger, buffer, SEED.as_bytes(), 100, 10);
    refused(world.send(&[instruction]), 0, ChunkBufferError::AddressMismatch);
}

#[test]
fn a_seed_that_is_not_the_addresss_is_refused() {
    let mut world = World::new();
    let buffer = allocated(&mut world, 96 + 100 + 2);
    for seed in [b"".as_slice(), b"a buffer ", b"another buffer", &[0xff; 32]] {
        let instruction = init(world.authority, buffer, seed, 100, 10);
        refused(world.send(&[instruction]), 0, ChunkBufferError::AddressMismatch);
    }
}

#[test]
fn seeds_have_up_to_32_bytes() {
    for seed in ["", "x", &"x".repeat(32)] {
        let mut world = World::new();
        world.create_buffer(seed, 100, 10);
    }
    let mut world = World::new();
    let buffer = allocated(&mut world, 96 + 100 + 2);
    let instruction = init(world.authority, buffer, &[b'x'; 33], 100, 10);
    refused(world.send(&[instruction]), 0, ChunkBufferError::SeedTooLong);
    assert!(address::buffer(&world.authority, &"x".repeat(33)).is_err());
}

#[test]
fn a_chunk_size_of_zero_is_refused_and_divides_nothing() {
    let mut world = World::new();
    for (account_len, payload_len) in [(96, 0), (96 + 100, 100), (96 + 100, u32::MAX)] {
        let buffer = allocated(&mut world, account_len);
        let instruction = init(world.authority, buffer, SEED.as_bytes(), payload_len, 0);
        refused(world.send(&[instruction]), 0, ChunkBufferError::ZeroChunkSize);
    }
}

#[test]
fn sizes_that_disagree_with_the_accounts_length_are_refused() {
    let mut world = World::new();
    // 100 bytes in chunks of 10 take 2 bytes of bitmap.
    let cases = [
        (0, 100, 10),
        (95, 0, 10),
        (97, 0, 10),
        (96 + 100 + 1, 100, 10),
        (96 + 100 + 3, 100, 10),
        (96 + 100 + 2, 99, 10),
        (96 + 100 + 2, 101, 10),
        (96 + 100 + 2, 100, 100),
        (96 + 100 + 2, u32::MAX, 1),
        (96 + 100 + 2, u32::MAX, u32::MAX),
        (96 + 100 + 2, 0, 1),
    ];
    for (account_len, payload_len, chunk_size) in cases {
        let buffer = allocated(&mut world, account_len);
        let instruction = init(world.authority, buffer, SEED.as_bytes(), payload_len, chunk_size);
        refused(world.send(&[instruction]), 0, ChunkBufferError::LengthMismatch);
    }
}

#[test]
fn an_account_of_another_program_is_refused() {
    let mut world = World::new();
    let buffer = world.buffer_address(SEED);
    let instruction = init(world.authority, buffer, SEED.as_bytes(), 100, 10);
    refused(world.send(std::slice::from_ref(&instruction)), 0, ChunkBufferError::WrongOwner);
    for owner in [OWNER_PROGRAM_ID, committor_sdk::delegation::ID, Address::default()] {
        world.forge(buffer, owner, vec![0; 96 + 100 + 2]);
        refused(world.send(std::slice::from_ref(&instruction)), 0, ChunkBufferError::WrongOwner);
    }
}

#[test]
fn a_buffer_open_or_sealed_is_not_initialized_again() {
    let mut world = World::new();
    let payload = pattern(25, 1);
    let buffer = world.create_buffer(SEED, payload.len(), 10);
    let again = init(world.authority, buffer, SEED.as_bytes(), 25, 10);
    refused(world.send(std::slice::from_ref(&again)), 0, ChunkBufferError::AlreadyInitialized);
    world.fill(buffer, &payload);
    let seal = world.seal(buffer, committor_sdk::digest::payload_digest(&payload));
    landed(world.send(&[seal]));
    refused(world.send(&[again]), 0, ChunkBufferError::AlreadyInitialized);
}

#[test]
fn creating_a_buffer_that_exists_is_refused_by_the_system_program() {
    let mut world = World::new();
    world.create_buffer(SEED, 100, 10);
    let (payer, authority, seed) = (world.payer, world.authority, SEED);
    let layout = committor_sdk::chunks::ChunkLayout::new(100, 10).unwrap();
    let create = CreateBuffer { payer, authority, seed, layout, rent_lamports: 1 };
    let outcome = world.send(&create.instructions().unwrap());
    refused(outcome, 1, custom(SystemError::AccountAlreadyInUse));
}

#[test]
fn an_authority_that_is_its_own_buffer_is_refused() {
    let mut world = World::new();
    let instruction = init(world.authority, world.authority, b"", 0, 1);
    refused(world.send(&[instruction]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn malformed_instruction_data_is_refused() {
    let mut world = World::new();
    let buffer = allocated(&mut world, 96 + 100 + 2);
    let whole = init(world.authority, buffer, SEED.as_bytes(), 100, 10);
    for len in 0..whole.data.len() {
        let mut cut = whole.clone();
        cut.data.truncate(len);
        refused(world.send(&[cut]), 0, InstructionError::InvalidInstructionData);
    }
    for discriminator in [0, 7, 0xff] {
        let mut unknown = whole.clone();
        unknown.data[0] = discriminator;
        refused(world.send(&[unknown]), 0, InstructionError::InvalidInstructionData);
    }
    // A seed that claims to be longer than the instruction.
    let mut overlong = whole.clone();
    overlong.data[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(world.send(&[overlong]), 0, InstructionError::InvalidInstructionData);
    landed(world.send(&[whole]));
}

#[test]
#[expect(deprecated, reason = "the virtual machine has not followed the renaming to `MissingAccount`")]
fn missing_accounts_are_refused() {
    let mut world = World::new();
    let buffer = allocated(&mut world, 96 + 100 + 2);
    let mut instruction = init(world.authority, buffer, SEED.as_bytes(), 100, 10);
    for _ in 0..2 {
        instruction.accounts.pop();
        let outcome = world.send(std::slice::from_ref(&instruction));
        refused(outcome, 0, InstructionError::NotEnoughAccountKeys);
    }
}
