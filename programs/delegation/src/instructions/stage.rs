use anchor_lang::prelude::*;

use crate::{Delegation, DelegationError, KIND_PATCH, apply, state};

#[derive(Accounts)]
pub struct Stage {
    pub authority: Signer,
    /// The delegated account.
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: Account<Delegation>,
    /// The sealed buffer that holds the next state, or a patch.
    pub buffer: UncheckedAccount,
}

pub(crate) fn handler(ctx: &mut Context<Stage>, commit: state::Commit, kind: u8) -> Result<()> {
    let account = *ctx.accounts.account.account();
    let buffer = *ctx.accounts.buffer.account();
    let record = &mut ctx.accounts.record;
    record.check(&account, record.address(), ctx.accounts.authority.address())?;
    record.check_next(commit)?;
    require!(kind <= KIND_PATCH, DelegationError::UnknownKind);
    let sealed = apply::sealed(&buffer, ctx.accounts.authority.address())?;
    record.staged_buffer = *buffer.address();
    record.staged_digest = *sealed.digest;
    record.staged_len = sealed.payload.len() as u32;
    record.staged_nonce = commit.nonce;
    record.staged_commit_id = commit.commit_id;
    record.staged_kind = kind;
    Ok(())
}
