//! Buffers to begin with, and what is in them.

use committor_sdk::{
    address,
    chunk_buffer::{self, Buffer},
    chunks::{ChunkLayout, PAYLOAD_OFFSET},
    digest::{payload_digest, seal_calls},
    instructions::CreateBuffer,
};
use solana_address::Address;
use solana_instruction::Instruction;

use crate::{World, landed};

/// State of a buffer whose chunks may be written.
pub const OPEN: u8 = 1;
/// State of a buffer whose payload is final.
pub const SEALED: u8 = 2;

/// All that a buffer account holds. Compared byte by byte with what the program leaves.
#[derive(Clone, Debug)]
pub struct BufferBytes {
    /// Who may write, seal and close.
    pub authority: Address,
    /// The digest, or that of the segments so far.
    pub digest: [u8; 32],
    /// Length of a chunk in bytes.
    pub chunk_size: u32,
    /// How many chunks have been written.
    pub written_chunks: u32,
    /// How many segments have been hashed.
    pub hashed_segments: u32,
    /// [`OPEN`] or [`SEALED`].
    pub state: u8,
    /// Version of the layout.
    pub version: u8,
    /// The payload.
    pub payload: Vec<u8>,
    /// One bit per chunk.
    pub bitmap: Vec<u8>,
}

impl BufferBytes {
    /// An open buffer without any chunk.
    pub fn empty(authority: Address, payload_len: usize, chunk_size: u32) -> Self {
        let chunks = payload_len.div_ceil(chunk_size as usize);
        Self {
            authority,
            digest: [0; 32],
            chunk_size,
            written_chunks: 0,
            hashed_segments: 0,
            state: OPEN,
            version: 1,
            payload: vec![0; payload_len],
            bitmap: vec![0; chunks.div_ceil(8)],
        }
    }

    /// An open buffer with all chunks.
    pub fn full(authority: Address, payload: Vec<u8>, chunk_size: u32) -> Self {
        let mut buffer = Self::empty(authority, payload.len(), chunk_size);
        for chunk in 0..payload.len().div_ceil(chunk_size as usize) {
            buffer.mark(chunk);
        }
        buffer.payload = payload;
        buffer
    }

    /// A sealed buffer.
    pub fn sealed(authority: Address, payload: Vec<u8>, chunk_size: u32) -> Self {
        let mut buffer = Self::full(authority, payload, chunk_size);
        buffer.digest = payload_digest(&buffer.payload);
        buffer.hashed_segments = seal_calls(buffer.payload.len() as u64) as u32;
        buffer.state = SEALED;
        buffer
    }

    /// Writes a chunk as the program would.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        let place = &mut self.payload[offset..offset + data.len()];
        if place != data {
            place.copy_from_slice(data);
            self.hashed_segments = 0;
        }
        self.mark(offset / self.chunk_size as usize);
    }

    /// Makes the payload longer or shorter as the program would.
    pub fn resize(&mut self, payload_len: usize) {
        let chunk_size = self.chunk_size as usize;
        let end_of = |len: usize, chunk: usize| len.min((chunk + 1) * chunk_size);
        let old_len = self.payload.len();
        let old: Vec<usize> =
            (0..old_len.div_ceil(chunk_size)).filter(|chunk| self.is_marked(*chunk)).collect();
        // A chunk stays as it is if no byte of it is missing now.
        let chunks = payload_len.div_ceil(chunk_size);
        let kept = |chunk: &usize| *chunk < chunks && end_of(payload_len, *chunk) <= end_of(old_len, *chunk);
        self.payload.resize(payload_len, 0);
        self.bitmap = vec![0; chunks.div_ceil(8)];
        self.written_chunks = 0;
        self.hashed_segments = 0;
        for chunk in old.into_iter().filter(kept) {
            self.mark(chunk);
        }
    }

    fn is_marked(&self, chunk: usize) -> bool {
        self.bitmap[chunk / 8] & 1 << (chunk % 8) != 0
    }

    fn mark(&mut self, chunk: usize) {
        let bit = 1 << (chunk % 8);
        self.written_chunks += u32::from(self.bitmap[chunk / 8] & bit == 0);
        self.bitmap[chunk / 8] |= bit;
    }

    /// The account's data. Spelt out instead of taken from the SDK, so that a mistake there is no mistake here.
    pub fn data(&self) -> Vec<u8> {
        let mut data = vec![115, 5, 212, 192, 85, 30, 46, 41];
        data.extend_from_slice(self.authority.as_ref());
        data.extend_from_slice(&self.digest);
        data.extend_from_slice(&(self.payload.len() as u32).to_le_bytes());
        data.extend_from_slice(&self.chunk_size.to_le_bytes());
        data.extend_from_slice(&self.written_chunks.to_le_bytes());
        data.extend_from_slice(&self.hashed_segments.to_le_bytes());
        data.extend_from_slice(&[self.state, self.version, 0, 0, 0, 0, 0, 0]);
        assert_eq!(data.len(), PAYLOAD_OFFSET);
        data.extend_from_slice(&self.payload);
        data.extend_from_slice(&self.bitmap);
        data
    }
}

impl World {
    /// The address of the authority's buffer with this seed.
    ///
    /// # Panics
    /// If the seed is too long.
    pub fn buffer_address(&self, seed: &str) -> Address {
        address::buffer(&self.authority, seed).expect("a short seed")
    }

    /// What creates a buffer of the authority: transfer (unless the rent is there), allocate, init.
    ///
    /// # Panics
    /// If there is no such buffer.
    pub fn create_buffer_instructions(
        &self,
        seed: &str,
        payload_len: usize,
        chunk_size: u32,
    ) -> Vec<Instruction> {
        let layout = ChunkLayout::new(payload_len as u64, chunk_size).expect("a possible layout");
        let rent = self.rent(layout.account_len() as usize);
        let rent_lamports = rent.saturating_sub(self.lamports(&self.buffer_address(seed)));
        let create =
            CreateBuffer { payer: self.payer, authority: self.authority, seed, layout, rent_lamports };
        create.instructions().expect("a short seed")
    }

    /// Creates a buffer of the authority.
    #[track_caller]
    pub fn create_buffer(&mut self, seed: &str, payload_len: usize, chunk_size: u32) -> Address {
        let instructions = self.create_buffer_instructions(seed, payload_len, chunk_size);
        landed(self.send(&instructions));
        self.buffer_address(seed)
    }

    /// Writes `data` at `offset`.
    pub fn write(&self, buffer: Address, offset: u32, data: &[u8]) -> Instruction {
        let accounts = chunk_buffer::Write { authority: self.authority, buffer };
        accounts.instruction(chunk_buffer::WriteArgs { offset, data })
    }

    /// Seals with this digest, or hashes the next segment.
    pub fn seal(&self, buffer: Address, digest: [u8; 32]) -> Instruction {
        chunk_buffer::Seal { authority: self.authority, buffer }
            .instruction(chunk_buffer::SealArgs { digest })
    }

    /// Closes a buffer for the good of `receiver`.
    pub fn close(&self, buffer: Address, receiver: Address) -> Instruction {
        chunk_buffer::Close { authority: self.authority, buffer, receiver }.instruction()
    }

    /// Makes the payload of a buffer longer or shorter, for the good of `receiver`.
    pub fn resize(&self, buffer: Address, payload_len: u32, receiver: Address) -> Instruction {
        chunk_buffer::Resize { authority: self.authority, buffer, receiver }
            .instruction(chunk_buffer::ResizeArgs { payload_len })
    }

    /// Hands a buffer to another authority.
    pub fn set_buffer_authority(&self, buffer: Address, authority: Address) -> Instruction {
        chunk_buffer::SetAuthority { authority: self.authority, buffer }
            .instruction(chunk_buffer::SetAuthorityArgs { authority })
    }

    /// Writes all chunks, one transaction each.
    #[track_caller]
    pub fn fill(&mut self, buffer: Address, payload: &[u8]) {
        let chunk_size = self.buffer(&buffer).chunk_size as usize;
        for (index, chunk) in payload.chunks(chunk_size).enumerate() {
            let write = self.write(buffer, (index * chunk_size) as u32, chunk);
            landed(self.send(&[write]));
        }
    }

    /// Creates, fills and seals a buffer.
    #[track_caller]
    pub fn sealed_buffer(&mut self, seed: &str, payload: &[u8], chunk_size: u32) -> Address {
        let buffer = self.create_buffer(seed, payload.len(), chunk_size);
        self.fill(buffer, payload);
        for _ in 0..seal_calls(payload.len() as u64) {
            let seal = self.seal(buffer, payload_digest(payload));
            landed(self.send(&[seal]));
        }
        buffer
    }

    /// Puts a buffer of the authority where the program would have made it: filling a large one takes thousands of
    /// transactions.
    pub fn forge_buffer(&mut self, seed: &str, buffer: &BufferBytes) -> Address {
        let address = self.buffer_address(seed);
        self.forge(address, chunk_buffer::ID, buffer.data());
        address
    }

    /// [`Self::forge_buffer`] of a sealed one.
    pub fn forge_sealed(&mut self, seed: &str, payload: Vec<u8>) -> Address {
        self.forge_buffer(seed, &BufferBytes::sealed(self.authority, payload, 3_856))
    }

    /// The header of a buffer.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn buffer(&self, address: &Address) -> Buffer {
        Buffer::read(&self.data(address)).expect("a buffer")
    }
}
