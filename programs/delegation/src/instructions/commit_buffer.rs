use anchor_lang::prelude::*;

use crate::{Delegation, apply};

#[derive(Accounts)]
pub struct CommitBuffer {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
    /// The sealed buffer that holds the new state.
    pub buffer: UncheckedAccount,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<CommitBuffer>, nonce: u64, commit_id: u64) -> Result<()> {
    let mut account = *ctx.accounts.account.account();
    let buffer = *ctx.accounts.buffer.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, ctx.accounts.authority.address())?;
    record.check_next(nonce, commit_id)?;
    let payload = apply::sealed_payload(&buffer, ctx.accounts.authority.address())?;
    apply::replace_state(&mut account, payload)?;
    record.nonce = nonce;
    record.commit_id = commit_id;
    Ok(())
}
