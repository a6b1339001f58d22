use anchor_lang::prelude::*;

use crate::{Delegation, apply, state};

#[derive(Accounts)]
pub struct CommitBuffer {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
    /// The sealed buffer that holds the new state, or a patch.
    pub buffer: UncheckedAccount,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<CommitBuffer>, commit: state::Commit, kind: u8) -> Result<()> {
    let mut account = *ctx.accounts.account.account();
    let buffer = *ctx.accounts.buffer.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    record.check_next(commit)?;
    let sealed = apply::sealed(&buffer, ctx.accounts.authority.address())?;
    apply::payload(&mut account, sealed.payload, kind)?;
    record.applied(commit);
    Ok(())
}
