use anchor_lang::{address_eq, prelude::*};

use crate::{Delegation, DelegationError, apply};

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
    record.check(&account, ctx.accounts.authority.address())?;
    require!(record.is_staged(), DelegationError::NothingStaged);
    require!(address_eq(&record.staged_buffer, buffer.address()), DelegationError::WrongBuffer);
    // Checked again: the buffer may have been closed, and another one made at its address.
    let payload = apply::sealed_payload(&buffer, ctx.accounts.authority.address())?;
    apply::replace_state(&mut account, payload)?;
    record.nonce = record.staged_nonce;
    record.commit_id = record.staged_commit_id;
    record.staged_buffer = Address::default();
    record.staged_nonce = 0;
    record.staged_commit_id = 0;
    Ok(())
}
