use anchor_lang::prelude::*;

use crate::{Buffer, ChunkBufferError, PAYLOAD_OFFSET, STATE_OPEN};

#[derive(Accounts)]
pub struct Write {
    /// The buffer's authority.
    pub authority: Signer,
    /// The open buffer.
    #[account(mut)]
    pub buffer: Account<Buffer>,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<Write>, offset: u32, data: &[u8]) -> Result<()> {
    let mut view = *ctx.accounts.buffer.account();
    let header = &mut ctx.accounts.buffer;
    header.check(ctx.accounts.authority.address())?;
    require!(header.state == STATE_OPEN, ChunkBufferError::Sealed);

    let payload_len = header.payload_len;
    let chunk_size = header.chunk_size;
    require!(offset < payload_len, ChunkBufferError::OffsetOutOfBounds);
    require!(offset.is_multiple_of(chunk_size), ChunkBufferError::UnalignedOffset);
    let expected = chunk_size.min(payload_len - offset) as usize;
    require!(data.len() == expected, ChunkBufferError::WrongChunkLength);

    let index = (offset / chunk_size) as usize;
    let bit = 1 << (index % 8);
    let start = PAYLOAD_OFFSET + offset as usize;
    let bitmap_byte = PAYLOAD_OFFSET + payload_len as usize + index / 8;
    // SAFETY: the slices lie behind the header, which is the only other thing borrowed of the account's data.
    let account = unsafe { view.borrow_unchecked_mut() };
    account[start..start + expected].copy_from_slice(data);
    let newly_written = account[bitmap_byte] & bit == 0;
    account[bitmap_byte] |= bit;

    header.written_chunks += u32::from(newly_written);
    // What was hashed so far may have changed.
    header.hashed_segments = 0;
    Ok(())
}
