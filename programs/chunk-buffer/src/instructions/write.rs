use anchor_lang::prelude::*;

use crate::{Buffer, ChunkBufferError, STATE_OPEN};

#[derive(Accounts)]
pub struct Write {
    /// The buffer's authority.
    pub authority: Signer,
    /// The open buffer.
    #[account(mut)]
    pub buffer: UncheckedAccount,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<Write>, offset: u32, data: &[u8]) -> Result<()> {
    let mut view = *ctx.accounts.buffer.account();
    let (header, rest) = Buffer::load(&mut view)?;
    header.check(ctx.accounts.authority.address())?;
    require!(header.state == STATE_OPEN, ChunkBufferError::Sealed);

    let payload_len = header.payload_len;
    let chunk_size = header.chunk_size;
    require!(offset < payload_len, ChunkBufferError::OffsetOutOfBounds);
    let index = offset / chunk_size;
    require!(index * chunk_size == offset, ChunkBufferError::UnalignedOffset);
    let expected = chunk_size.min(payload_len - offset) as usize;
    require!(data.len() == expected, ChunkBufferError::WrongChunkLength);

    let (payload, bitmap) = rest.split_at_mut(payload_len as usize);
    let chunk = &mut payload[offset as usize..offset as usize + expected];
    // A late resend of the same bytes must not undo hashing that has begun.
    if header.hashed_segments != 0 && chunk != data {
        header.hashed_segments = 0;
    }
    chunk.copy_from_slice(data);
    let byte = &mut bitmap[index as usize / 8];
    let bit = 1 << (index % 8);
    header.written_chunks += u32::from(*byte & bit == 0);
    *byte |= bit;
    Ok(())
}
