use anchor_lang::prelude::*;
use solana_sha256_hasher::hashv;

use crate::{Buffer, ChunkBufferError, SEGMENT_LEN, STATE_OPEN, STATE_SEALED, chunk_count};

#[derive(Accounts)]
pub struct Seal {
    /// The buffer's authority.
    pub authority: Signer,
    /// The open buffer. Chunks that were never written hold zeroes.
    #[account(mut)]
    pub buffer: UncheckedAccount,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<Seal>, digest: [u8; 32]) -> Result<()> {
    let mut view = *ctx.accounts.buffer.account();
    let (header, rest) = Buffer::load(&mut view)?;
    header.check(ctx.accounts.authority.address())?;
    require!(header.state == STATE_OPEN, ChunkBufferError::Sealed);
    let payload_len = header.payload_len as usize;

    let start = header.hashed_segments as usize * SEGMENT_LEN;
    let end = payload_len.min(start + SEGMENT_LEN);
    let segment = &rest[start..end];
    let so_far = if start == 0 { hashv(&[segment]) } else { hashv(&[&header.digest, segment]) };
    header.digest = so_far.to_bytes();
    header.hashed_segments += 1;
    if end == payload_len {
        if header.digest != digest {
            let chunks = chunk_count(header.payload_len, header.chunk_size);
            require!(header.written_chunks == chunks, ChunkBufferError::Incomplete);
            return Err(ChunkBufferError::DigestMismatch.into());
        }
        header.state = STATE_SEALED;
    }
    Ok(())
}
