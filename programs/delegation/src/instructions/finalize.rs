use anchor_lang::{address_eq, prelude::*};

use crate::{Delegation, DelegationError, apply, state};

#[derive(Accounts)]
pub struct Finalize {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
    /// The buffer that is staged.
    pub buffer: UncheckedAccount,
}

pub(crate) fn handler(ctx: &mut Context<Finalize>) -> Result<()> {
    let mut account = *ctx.accounts.account.account();
    let buffer = *ctx.accounts.buffer.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    require!(record.is_staged(), DelegationError::NothingStaged);
    require!(address_eq(&record.staged_buffer, buffer.address()), DelegationError::WrongBuffer);
    // The buffer may have been closed since, and another one made at its address.
    let sealed = apply::sealed(&buffer, ctx.accounts.authority.address())?;
    let same = *sealed.digest == record.staged_digest && sealed.payload.len() == record.staged_len as usize;
    require!(same, DelegationError::StagedContentChanged);
    apply::payload(&mut account, sealed.payload, record.staged_kind)?;
    let (session, nonce, commit_id) = (record.session, record.staged_nonce, record.staged_commit_id);
    record.applied(state::Commit { session, nonce, commit_id });
    record.unstage();
    Ok(())
}
