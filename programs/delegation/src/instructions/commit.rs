use anchor_lang::prelude::*;

use crate::{Delegation, apply};

#[derive(Accounts)]
pub struct Commit {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
}

#[inline(always)]
pub(crate) fn handler(ctx: &mut Context<Commit>, nonce: u64, commit_id: u64, data: &[u8]) -> Result<()> {
    let mut account = *ctx.accounts.account.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, ctx.accounts.authority.address())?;
    record.check_next(nonce, commit_id)?;
    apply::replace_state(&mut account, data)?;
    record.nonce = nonce;
    record.commit_id = commit_id;
    Ok(())
}
