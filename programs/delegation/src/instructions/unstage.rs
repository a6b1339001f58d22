use anchor_lang::prelude::*;

use crate::{Delegation, DelegationError};

#[derive(Accounts)]
pub struct Unstage {
    pub authority: Signer,
    /// The delegated account.
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
}

pub(crate) fn handler(ctx: &mut Context<Unstage>) -> Result<()> {
    let account = *ctx.accounts.account.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    require!(record.is_staged(), DelegationError::NothingStaged);
    record.unstage();
    Ok(())
}
