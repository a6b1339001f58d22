use anchor_lang::cpi::rent_exempt_lamports;
use anchor_lang::prelude::*;

use crate::{Delegation, DelegationError, ID};

#[derive(Accounts)]
pub struct Withdraw {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    pub record: Account<Delegation>,
    /// Gets the lamports. May be the authority.
    #[account(mut, unsafe(dup))]
    pub receiver: UncheckedAccount,
}

pub(crate) fn handler(ctx: &mut Context<Withdraw>, lamports: u64) -> Result<()> {
    let mut account = *ctx.accounts.account.account();
    let mut receiver = *ctx.accounts.receiver.account();
    let record = &ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    require!(account.owned_by(&ID), DelegationError::NotOwned);
    let left = account.lamports().checked_sub(lamports).ok_or(DelegationError::NotRentExempt)?;
    require!(left >= rent_exempt_lamports(account.data_len())?, DelegationError::NotRentExempt);
    account.set_lamports(left);
    let total = receiver.lamports().checked_add(lamports).ok_or(ProgramError::ArithmeticOverflow)?;
    receiver.set_lamports(total);
    Ok(())
}
