use anchor_lang::prelude::*;

use crate::Buffer;

#[derive(Accounts)]
pub struct Close {
    /// The buffer's authority.
    pub authority: Signer,
    /// The buffer, open or sealed.
    #[account(mut)]
    pub buffer: UncheckedAccount,
    /// Gets all lamports of the buffer. May be the authority.
    #[account(mut, unsafe(dup))]
    pub receiver: UncheckedAccount,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<Close>) -> Result<()> {
    let mut buffer = *ctx.accounts.buffer.account();
    let (header, _) = Buffer::load(&mut buffer)?;
    header.check(ctx.accounts.authority.address())?;
    let mut receiver = *ctx.accounts.receiver.account();
    let lamports = receiver.lamports().checked_add(buffer.lamports());
    receiver.set_lamports(lamports.ok_or(ProgramError::ArithmeticOverflow)?);
    // SAFETY: the header is not used again. Emptied and handed back to the system program, so nothing later in the
    // transaction can take the account for a buffer.
    unsafe { buffer.close_unchecked() };
    Ok(())
}
