use anchor_lang::prelude::*;

use crate::{Delegation, apply, state};

/// Of `commit` and `commit_patch`.
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

/// Applies a payload of a kind that comes with the instruction.
#[inline(always)]
pub(crate) fn handler(
    ctx: &mut Context<Commit>,
    commit: state::Commit,
    payload: &[u8],
    kind: u8,
) -> Result<()> {
    let mut account = *ctx.accounts.account.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    record.check_next(commit)?;
    apply::payload(&mut account, payload, kind)?;
    record.applied(commit);
    Ok(())
}
