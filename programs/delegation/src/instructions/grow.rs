use anchor_lang::prelude::*;

use crate::{Delegation, DelegationError, MAX_ACCOUNT_LEN, MAX_GROWTH, apply};

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
    ctx.accounts.record.check(&account, ctx.accounts.authority.address())?;
    require!(len as usize <= MAX_ACCOUNT_LEN, DelegationError::TooLarge);
    let old_len = account.data_len();
    apply::resize(&mut account, (len as usize).min(old_len + MAX_GROWTH).max(old_len))
}
