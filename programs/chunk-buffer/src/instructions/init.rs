use anchor_lang::prelude::*;
use solana_sha256_hasher::hashv;

use crate::{Buffer, ChunkBufferError, ID, MAX_SEED_LEN, STATE_OPEN, VERSION, account_len};

#[derive(Accounts)]
pub struct Init {
    /// The buffer's authority, and the base of its address.
    pub authority: Signer,
    /// The zeroed account, allocated and assigned to this program earlier in the transaction.
    #[account(mut)]
    pub buffer: UncheckedAccount,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<Init>, seed: &[u8], payload_len: u32, chunk_size: u32) -> Result<()> {
    let authority = *ctx.accounts.authority.address();
    let mut buffer = *ctx.accounts.buffer.account();

    require!(buffer.owned_by(&ID), ChunkBufferError::WrongOwner);
    require!(chunk_size != 0, ChunkBufferError::ZeroChunkSize);
    require!(
        buffer.data_len() as u64 == account_len(payload_len, chunk_size),
        ChunkBufferError::LengthMismatch
    );
    require!(seed.len() <= MAX_SEED_LEN, ChunkBufferError::SeedTooLong);
    let derived = hashv(&[authority.as_array(), seed, ID.as_array()]).to_bytes();
    require!(buffer.address().as_array() == &derived, ChunkBufferError::AddressMismatch);

    // SAFETY: no other reference to the account's data exists; accounts passed twice as writable were refused.
    let data = unsafe { buffer.borrow_unchecked_mut() };
    let (discriminator, rest) = data.split_at_mut(8);
    // An allocated account is all zeroes, and this program never leaves a zero discriminator behind.
    require!(discriminator == [0; 8], ChunkBufferError::AlreadyInitialized);
    discriminator.copy_from_slice(Buffer::DISCRIMINATOR);
    let header: &mut Buffer = bytemuck::from_bytes_mut(&mut rest[..core::mem::size_of::<Buffer>()]);
    header.authority = authority;
    header.payload_len = payload_len;
    header.chunk_size = chunk_size;
    header.state = STATE_OPEN;
    header.version = VERSION;
    Ok(())
}
