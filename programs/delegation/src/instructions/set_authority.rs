use anchor_lang::prelude::*;

use crate::{Delegation, DelegationError};

#[derive(Accounts)]
pub struct SetAuthority {
    pub authority: Signer,
    /// The delegated account.
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
}

pub(crate) fn handler(ctx: &mut Context<SetAuthority>, authority: Address) -> Result<()> {
    let account = *ctx.accounts.account.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    // Nobody could ever commit or give the account back.
    require!(authority != Address::default(), DelegationError::ZeroAuthority);
    // What the old authority staged lies in a buffer of its own.
    require!(!record.is_staged(), DelegationError::AlreadyStaged);
    record.authority = authority;
    Ok(())
}
