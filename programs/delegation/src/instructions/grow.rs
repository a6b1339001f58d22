use anchor_lang::prelude::*;

use crate::{Delegation, DelegationError, MAX_GROWTH, MAX_STATE_LEN, apply};

#[derive(Accounts)]
pub struct Grow {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    pub record: Account<Delegation>,
}

pub(crate) fn handler(ctx: &mut Context<Grow>, len: u32) -> Result<()> {
    let mut account = *ctx.accounts.account.account();
    let record = &ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    require!(len as usize <= MAX_STATE_LEN, DelegationError::TooLarge);
    let old_len = account.data_len();
    apply::resize(&mut account, (len as usize).min(old_len + MAX_GROWTH).max(old_len))
}
