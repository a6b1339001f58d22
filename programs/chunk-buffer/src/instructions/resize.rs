use anchor_lang::cpi::rent_exempt_lamports;
use anchor_lang::pinocchio::Resize as _;
use anchor_lang::prelude::*;

use crate::{
    Buffer, ChunkBufferError, MAX_ACCOUNT_LEN, MAX_GROWTH, PAYLOAD_OFFSET, STATE_OPEN, account_len,
    chunk_count,
};

#[derive(Accounts)]
pub struct Resize {
    /// The buffer's authority.
    pub authority: Signer,
    /// The open buffer.
    #[account(mut)]
    pub buffer: UncheckedAccount,
    /// Gets the rent that a shorter account needs less. May be the authority.
    #[account(mut, unsafe(dup))]
    pub receiver: UncheckedAccount,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<Resize>, payload_len: u32) -> Result<()> {
    let mut view = *ctx.accounts.buffer.account();
    let mut receiver = *ctx.accounts.receiver.account();
    // A copy: no reference to the header may be alive while the data is moved.
    let header: Buffer = *Buffer::load(&mut view)?.0;
    header.check(ctx.accounts.authority.address())?;
    require!(header.state == STATE_OPEN, ChunkBufferError::Sealed);
    let new_len = account_len(payload_len, header.chunk_size);
    require!(new_len <= MAX_ACCOUNT_LEN, ChunkBufferError::TooLarge);
    require!(new_len <= view.data_len() as u64 + MAX_GROWTH, ChunkBufferError::TooMuchGrowth);

    let shrinks = payload_len < header.payload_len;
    let dropped = if !shrinks {
        grow(&mut view, &header, payload_len, new_len as usize)?
    } else {
        shrink(&mut view, &header, payload_len, new_len as usize)?
    };
    let (header, _) = Buffer::load(&mut view)?;
    header.written_chunks -= dropped;
    header.payload_len = payload_len;
    header.hashed_segments = 0;

    let minimum = rent_exempt_lamports(new_len as usize)?;
    let excess = view.lamports().checked_sub(minimum).ok_or(ChunkBufferError::NotRentExempt)?;
    if shrinks {
        refund(&mut view, &mut receiver, excess)?;
    }
    Ok(())
}

/// Moves the bitmap up. Returns how many written chunks no longer are: one, if the last was short.
fn grow(view: &mut AccountView, header: &Buffer, payload_len: u32, new_len: usize) -> Result<u32> {
    let chunks = chunk_count(header.payload_len, header.chunk_size) as usize;
    let bitmap_len = chunks.div_ceil(8);
    let old = PAYLOAD_OFFSET + header.payload_len as usize;
    let new = PAYLOAD_OFFSET + payload_len as usize;
    let last_is_short = !header.payload_len.is_multiple_of(header.chunk_size) && new != old;
    // SAFETY: no reference to the account's data is alive.
    unsafe { view.resize_unchecked(new_len)? };
    // SAFETY: as above; `header` is a copy.
    let data = unsafe { view.borrow_unchecked_mut() };
    data.copy_within(old..old + bitmap_len, new);
    data[old..new.min(old + bitmap_len)].fill(0);
    if !last_is_short {
        return Ok(0);
    }
    let last = chunks - 1;
    let byte = &mut data[new + last / 8];
    let bit = 1 << (last % 8);
    let was_written = *byte & bit != 0;
    *byte &= !bit;
    Ok(u32::from(was_written))
}

/// Moves the bitmap down. Returns how many written chunks are cut off.
fn shrink(view: &mut AccountView, header: &Buffer, payload_len: u32, new_len: usize) -> Result<u32> {
    let old_chunks = chunk_count(header.payload_len, header.chunk_size) as usize;
    let chunks = chunk_count(payload_len, header.chunk_size) as usize;
    let old = PAYLOAD_OFFSET + header.payload_len as usize;
    let new = PAYLOAD_OFFSET + payload_len as usize;
    // SAFETY: no reference to the account's data is alive; `header` is a copy.
    let data = unsafe { view.borrow_unchecked_mut() };
    let bitmap = &mut data[old..old + old_chunks.div_ceil(8)];
    let mut dropped = 0;
    if !chunks.is_multiple_of(8) {
        let kept = (1u8 << (chunks % 8)) - 1;
        dropped += (bitmap[chunks / 8] & !kept).count_ones();
        bitmap[chunks / 8] &= kept;
    }
    for byte in &bitmap[chunks.div_ceil(8)..] {
        dropped += byte.count_ones();
    }
    data.copy_within(old..old + chunks.div_ceil(8), new);
    // SAFETY: no reference to the data is used again.
    unsafe { view.resize_unchecked(new_len)? };
    Ok(dropped)
}

fn refund(view: &mut AccountView, receiver: &mut AccountView, lamports: u64) -> Result<()> {
    view.set_lamports(view.lamports() - lamports);
    let total = receiver.lamports().checked_add(lamports).ok_or(ProgramError::ArithmeticOverflow)?;
    receiver.set_lamports(total);
    Ok(())
}
