use anchor_lang::prelude::*;

use crate::{Buffer, ChunkBufferError};

#[derive(Accounts)]
pub struct SetAuthority {
    /// The buffer's authority.
    pub authority: Signer,
    // Typed, unlike in the other instructions: this is what puts the layout into the IDL.
    /// The buffer, open or sealed.
    #[account(mut)]
    pub buffer: Account<Buffer>,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<SetAuthority>, authority: Address) -> Result<()> {
    require!(ctx.accounts.buffer.account().is_writable(), ErrorCode::ConstraintMut);
    let header = &mut ctx.accounts.buffer;
    header.check(ctx.accounts.authority.address())?;
    // Nobody could ever close it again.
    require!(authority != Address::default(), ChunkBufferError::ZeroAuthority);
    header.authority = authority;
    Ok(())
}
