//! Random sequences of instructions on one buffer, against a model of it.

use committor_sdk::{
    chunk_buffer::{self, ChunkBufferError},
    digest::payload_digest,
};
use committor_tests::{BufferBytes, LAMPORTS, OPEN, Reason, SEALED, World, landed, pattern, proptest_config};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any},
    prop_assert_eq, prop_oneof, proptest,
};
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;

const SEED: &str = "a buffer";

/// What a sequence consists of.
#[derive(Clone, Debug)]
enum Step {
    /// Create the buffer, if there is none.
    Create { payload_len: usize, chunk_size: u32 },
    /// Initialize it again with other sizes.
    Init { payload_len: u32, chunk_size: u32 },
    /// Write whatever belongs at some chunk of the payload.
    WriteChunk { chunk: usize, salt: u8 },
    /// Write anything anywhere.
    Write { offset: u32, len: usize, salt: u8 },
    /// Name the payload's digest, or another one.
    Seal { right: bool },
    /// Make the payload longer or shorter, with what rent it lacks or without.
    Resize { payload_len: u32, funded: bool },
    /// Give up the buffer.
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let offset = prop_oneof![0..70u32, any::<u32>()];
    let resized = prop_oneof![20 => 0..80u32, 2 => 10_250..10_400u32, 1 => any::<u32>()];
    prop_oneof![
        2 => (0..60usize, 1..25u32).prop_map(|(payload_len, chunk_size)| Step::Create { payload_len, chunk_size }),
        1 => (0..60u32, 0..25u32).prop_map(|(payload_len, chunk_size)| Step::Init { payload_len, chunk_size }),
        20 => (0..12usize, any::<u8>()).prop_map(|(chunk, salt)| Step::WriteChunk { chunk, salt }),
        5 => (offset, 0..30usize, any::<u8>()).prop_map(|(offset, len, salt)| Step::Write { offset, len, salt }),
        5 => any::<bool>().prop_map(|right| Step::Seal { right }),
        8 => (resized, any::<bool>()).prop_map(|(payload_len, funded)| Step::Resize { payload_len, funded }),
        1 => Just(Step::Close),
    ]
}

/// What the program should do with a write, in the order of its checks.
fn write(buffer: &mut BufferBytes, offset: u32, data: &[u8]) -> Result<(), Reason> {
    let (start, len, chunk_size) = (offset as usize, buffer.payload.len(), buffer.chunk_size as usize);
    if buffer.state != OPEN {
        return Err(ChunkBufferError::Sealed.into());
    }
    if start >= len {
        return Err(ChunkBufferError::OffsetOutOfBounds.into());
    }
    if !start.is_multiple_of(chunk_size) {
        return Err(ChunkBufferError::UnalignedOffset.into());
    }
    if data.len() != chunk_size.min(len - start) {
        return Err(ChunkBufferError::WrongChunkLength.into());
    }
    buffer.write(start, data);
    Ok(())
}

fn seal(buffer: &mut BufferBytes, digest: [u8; 32]) -> Result<(), Reason> {
    let full = BufferBytes::full(buffer.authority, buffer.payload.clone(), buffer.chunk_size);
    if buffer.state != OPEN {
        return Err(ChunkBufferError::Sealed.into());
    }
    if digest != payload_digest(&buffer.payload) {
        let complete = buffer.bitmap == full.bitmap;
        let error = if complete { ChunkBufferError::DigestMismatch } else { ChunkBufferError::Incomplete };
        return Err(error.into());
    }
    buffer.digest = digest;
    buffer.hashed_segments = 1;
    buffer.state = SEALED;
    Ok(())
}

/// What the program should do with a resize of an account that has so many lamports.
fn resize(
    buffer: &mut BufferBytes,
    payload_len: u32,
    lamports: u64,
    rent: impl Fn(usize) -> u64,
) -> Result<(), Reason> {
    if buffer.state != OPEN {
        return Err(ChunkBufferError::Sealed.into());
    }
    let account_len =
        |payload_len: usize| 96 + payload_len + payload_len.div_ceil(buffer.chunk_size as usize).div_ceil(8);
    let (old, new) = (account_len(buffer.payload.len()), account_len(payload_len as usize));
    if new > 10 * 1024 * 1024 {
        return Err(ChunkBufferError::TooLarge.into());
    }
    if new > old + 10_240 {
        return Err(ChunkBufferError::TooMuchGrowth.into());
    }
    if lamports < rent(new) {
        return Err(ChunkBufferError::NotRentExempt.into());
    }
    buffer.resize(payload_len as usize);
    Ok(())
}

fn init(model: &Option<BufferBytes>, payload_len: u32, chunk_size: u32) -> Reason {
    let Some(buffer) = model else { return ChunkBufferError::WrongOwner.into() };
    if chunk_size == 0 {
        return ChunkBufferError::ZeroChunkSize.into();
    }
    let len = |payload_len: u32, chunk_size: u32| payload_len + payload_len.div_ceil(chunk_size).div_ceil(8);
    if len(payload_len, chunk_size) != len(buffer.payload.len() as u32, buffer.chunk_size) {
        return ChunkBufferError::LengthMismatch.into();
    }
    ChunkBufferError::AlreadyInitialized.into()
}

/// What an instruction does to an account that is not there.
fn absent() -> Reason {
    InstructionError::IllegalOwner.into()
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn any_sequence_of_instructions_does_what_the_model_does(steps in vec(step(), 1..60)) {
        let mut world = World::new();
        let address = world.buffer_address(SEED);
        let receiver = world.signer("receiver");
        let mut model: Option<BufferBytes> = None;
        // Most sequences should begin with a buffer.
        let first = Step::Create { payload_len: 50, chunk_size: 7 };
        for step in std::iter::once(first).chain(steps) {
            let (instruction, expected) = match step {
                Step::Create { payload_len, chunk_size } => {
                    if model.is_none() {
                        world.create_buffer(SEED, payload_len, chunk_size);
                        model = Some(BufferBytes::empty(world.authority, payload_len, chunk_size));
                    }
                    continue;
                }
                Step::Init { payload_len, chunk_size } => {
                    let args = chunk_buffer::InitArgs { seed: SEED.as_bytes(), payload_len, chunk_size };
                    let accounts = chunk_buffer::Init { authority: world.authority, buffer: address };
                    (accounts.instruction(args), Err(init(&model, payload_len, chunk_size)))
                }
                Step::WriteChunk { chunk, salt } => {
                    let sizes = model.as_ref().map(|buffer| (buffer.payload.len(), buffer.chunk_size as usize));
                    let (len, chunk_size) = sizes.unwrap_or((10, 10));
                    let offset = chunk * chunk_size;
                    let data = pattern(chunk_size.min(len.saturating_sub(offset)), salt);
                    let expected = model.as_mut().map_or(Err(absent()), |buffer| write(buffer, offset as u32, &data));
                    (world.write(address, offset as u32, &data), expected)
                }
                Step::Write { offset, len, salt } => {
                    let data = pattern(len, salt);
                    let expected = model.as_mut().map_or(Err(absent()), |buffer| write(buffer, offset, &data));
                    (world.write(address, offset, &data), expected)
                }
                Step::Seal { right } => {
                    let payload = model.as_ref().map_or(&[][..], |buffer| &buffer.payload);
                    let digest = if right { payload_digest(payload) } else { [7; 32] };
                    let expected = model.as_mut().map_or(Err(absent()), |buffer| seal(buffer, digest));
                    (world.seal(address, digest), expected)
                }
                Step::Resize { payload_len, funded } => {
                    if let Some(buffer) = model.as_ref().filter(|_| funded && payload_len < 20_000) {
                        let len = BufferBytes::empty(world.authority, payload_len as usize, buffer.chunk_size).data().len();
                        let missing = world.rent(len).saturating_sub(world.lamports(&address));
                        landed(world.send(&[system::transfer(&world.payer, &address, missing)]));
                    }
                    let (had, got) = (world.lamports(&address), world.lamports(&receiver));
                    let was = model.as_ref().map_or(0, |buffer| buffer.payload.len());
                    let expected = model.as_mut().map_or(Err(absent()), |buffer| {
                        resize(buffer, payload_len, had, |len| world.rent(len))
                    });
                    let resize = world.resize(address, payload_len, receiver);
                    let outcome = world.send(&[resize]).map(drop).map_err(|failure| failure.reason);
                    prop_assert_eq!(&outcome, &expected);
                    let refunded = match &model {
                        Some(buffer) if outcome.is_ok() && (payload_len as usize) < was => had - world.rent(buffer.data().len()),
                        _ => 0,
                    };
                    prop_assert_eq!(world.lamports(&address), had - refunded);
                    prop_assert_eq!(world.lamports(&receiver), got + refunded);
                    prop_assert_eq!(world.account(&address).map(|account| account.data), model.as_ref().map(BufferBytes::data));
                    continue;
                }
                Step::Close => {
                    let expected = model.take().map(drop).ok_or(absent());
                    (world.close(address, receiver), expected)
                }
            };
            let outcome = world.send(&[instruction]).map(drop).map_err(|failure| failure.reason);
            prop_assert_eq!(outcome, expected);
            let data = world.account(&address).map(|account| account.data);
            prop_assert_eq!(data, model.as_ref().map(BufferBytes::data));
        }
        // The authority neither pays for its buffers nor gets their rent.
        if model.is_some() {
            landed(world.send(&[world.close(address, receiver)]));
        }
        prop_assert_eq!(world.lamports(&world.authority), LAMPORTS);
    }
}
