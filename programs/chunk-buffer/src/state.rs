//! The buffer account: `[discriminator: 8][Buffer: 88][payload][bitmap]`.
//!
//! The payload starts at a fixed offset, so readers need no arithmetic; the bitmap is last, so a change of size moves
//! nothing else. Chunk `n` is written when bit `n % 8` of the bitmap's byte `n / 8` is set.

use anchor_lang::{address_eq, prelude::*};

use crate::ChunkBufferError;

/// Layout version that [`crate::chunk_buffer::init`] writes.
pub const VERSION: u8 = 1;
/// [`Buffer::state`]: chunks may be written.
pub const STATE_OPEN: u8 = 1;
/// [`Buffer::state`]: the payload is final and `digest` is its digest.
pub const STATE_SEALED: u8 = 2;
/// Where the payload starts in the account's data.
pub const PAYLOAD_OFFSET: usize = 96;
/// Longest seed of `create_with_seed`, a rule of the system program.
pub const MAX_SEED_LEN: usize = 32;
/// Bytes hashed per call of `seal`: about 1,050,000 compute units, so one call always fits a transaction.
pub const SEGMENT_LEN: usize = 2 * 1024 * 1024;

/// The header of a buffer.
#[account]
#[derive(Debug)]
pub struct Buffer {
    /// Who may write, seal and close.
    pub authority: Address,
    /// The payload's digest once sealed; while sealing goes on, the digest of the segments hashed so far.
    pub digest: [u8; 32],
    /// Length of the payload in bytes.
    pub payload_len: u32,
    /// Length in bytes of every chunk but the last.
    pub chunk_size: u32,
    /// How many chunks have been written.
    pub written_chunks: u32,
    /// How many segments `seal` has hashed since the last write.
    pub hashed_segments: u32,
    /// 1 = open, 2 = sealed.
    pub state: u8,
    /// Version of this layout.
    pub version: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

const _: () = assert!(PAYLOAD_OFFSET == 8 + core::mem::size_of::<Buffer>());

/// How many chunks a payload has. `chunk_size` must not be zero.
pub const fn chunk_count(payload_len: u32, chunk_size: u32) -> u32 {
    payload_len.div_ceil(chunk_size)
}

/// The length of a whole buffer account.
pub const fn account_len(payload_len: u32, chunk_size: u32) -> u64 {
    PAYLOAD_OFFSET as u64 + payload_len as u64 + chunk_count(payload_len, chunk_size).div_ceil(8) as u64
}

impl Buffer {
    /// Refuses a signer who is not the authority, and a layout this program does not know.
    pub fn check(&self, authority: &Address) -> Result<()> {
        require!(self.version == VERSION, ChunkBufferError::UnknownVersion);
        require!(address_eq(&self.authority, authority), ChunkBufferError::WrongAuthority);
        Ok(())
    }
}
