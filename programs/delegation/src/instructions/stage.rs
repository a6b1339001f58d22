use anchor_lang::prelude::*;

use crate::{Delegation, apply};

#[derive(Accounts)]
pub struct Stage {
    pub authority: Signer,
    /// The delegated account.
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
    /// The sealed buffer that holds the next state.
    pub buffer: UncheckedAccount,
}

pub(crate) fn handler(ctx: &mut Context<Stage>, nonce: u64, commit_id: u64) -> Result<()> {
    let account = *ctx.accounts.account.account();
    let buffer = *ctx.accounts.buffer.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, ctx.accounts.authority.address())?;
    record.check_next(nonce, commit_id)?;
    apply::sealed_payload(&buffer, ctx.accounts.authority.address())?;
    record.staged_buffer = *buffer.address();
    record.staged_nonce = nonce;
    record.staged_commit_id = commit_id;
    Ok(())
}
