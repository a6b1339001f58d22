//! The buffer account: `[discriminator: 8][Buffer: 88][payload][bitmap]`.
//!
//! The payload starts at a fixed offset, so readers need no arithmetic; the bitmap is last, so a change of size moves
//! nothing else. Chunk `n` is written when bit `n % 8` of the bitmap's byte `n / 8` is set.

use anchor_lang::{address_eq, prelude::*};

use crate::{ChunkBufferError, ID};

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
/// The longest account of the chain, in bytes.
pub const MAX_ACCOUNT_LEN: u64 = 10 * 1024 * 1024;
/// How much an account can grow in one instruction, in bytes; a rule of the runtime.
pub const MAX_GROWTH: u64 = 10_240;
/// Bytes hashed per call of `seal`: about 1,050,000 compute units, so one call always fits a transaction.
pub const SEGMENT_LEN: usize = 2 * 1024 * 1024;

/// The header of a buffer.
#[account]
#[derive(Debug)]
pub struct Buffer {
    /// Who may write, resize, seal, close, and hand the buffer on.
    pub authority: Address,
    /// The payload's digest once sealed; while sealing goes on, the digest of the segments hashed so far.
    pub digest: [u8; 32],
    /// Length of the payload in bytes.
    pub payload_len: u32,
    /// Length in bytes of every chunk but the last.
    pub chunk_size: u32,
    /// How many chunks have been written.
    pub written_chunks: u32,
    /// How many segments `seal` has hashed since the payload last changed.
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
    /// The header of a buffer account, and the payload and bitmap behind it.
    ///
    /// Not Anchor's `Account`: that keeps a pointer to the header, beside which the rest of the data can't be borrowed
    /// soundly, and compares the discriminator by a syscall.
    ///
    /// # Errors
    /// `IllegalOwner`, `AccountDataTooSmall` and `InvalidAccountData`, as Anchor's `Account` has them.
    #[inline(always)]
    pub fn load(view: &mut AccountView) -> Result<(&mut Self, &mut [u8])> {
        require!(address_eq(view.owner(), &ID), ProgramError::IllegalOwner);
        require!(view.data_len() >= PAYLOAD_OFFSET, ProgramError::AccountDataTooSmall);
        // SAFETY: the exclusive borrow of `view` is passed on to the result, and no instruction loads an account twice:
        // an account passed twice as writable was refused.
        let data = unsafe { view.borrow_unchecked_mut() };
        let (header, rest) = data.split_at_mut(PAYLOAD_OFFSET);
        let (discriminator, header) = header.split_at_mut(8);
        require!(u64_of(discriminator) == u64_of(Self::DISCRIMINATOR), ProgramError::InvalidAccountData);
        Ok((bytemuck::from_bytes_mut(header), rest))
    }

    /// Refuses a signer who is not the authority, and a layout this program does not know.
    #[inline(always)]
    pub fn check(&self, authority: &Address) -> Result<()> {
        require!(self.version == VERSION, ChunkBufferError::UnknownVersion);
        require!(address_eq(&self.authority, authority), ChunkBufferError::WrongAuthority);
        Ok(())
    }
}

#[inline(always)]
fn u64_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
