use anchor_lang::prelude::*;

use super::reserve::{create_record, load_record};
use crate::{DelegationError, ID, STATE_OFFSET, STATE_PENDING};

#[derive(Accounts)]
pub struct BeginDelegate {
    /// Pays the record's rent.
    #[account(mut)]
    pub payer: Signer,
    /// The account, still its owner program's, which signs for it.
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: UncheckedAccount,
    pub system_program: Program<System>,
}

pub(crate) fn handler(ctx: &mut Context<BeginDelegate>) -> Result<()> {
    let payer = *ctx.accounts.payer.account();
    let account = *ctx.accounts.account.account();
    let mut record = *ctx.accounts.record.account();
    require!(account.is_signer(), DelegationError::AccountNotSigner);
    // The runtime's word for who may give the account away, and better than seeds: it can't be claimed by another.
    require!(!account.owned_by(&System::id()), DelegationError::NoOwnerProgram);
    require!(!account.owned_by(&ID), DelegationError::AlreadyDelegated);

    let len = account.data_len();
    if !record.owned_by(&ID) {
        // Only what one instruction can allocate; `reserve` makes room for more.
        require!(STATE_OFFSET + len <= crate::MAX_GROWTH, DelegationError::RecordTooSmall);
        create_record(&payer, &account, &record, STATE_OFFSET + len)?;
    }
    let header = load_record(&mut record, &account)?;
    require!(header.state == STATE_PENDING, DelegationError::AlreadyDelegated);
    header.owner_program = *account.owner();

    // SAFETY: `header` is not used again.
    let data = unsafe { record.borrow_unchecked_mut() };
    require!(data.len() >= STATE_OFFSET + len, DelegationError::RecordTooSmall);
    // SAFETY: another account than the record: it has another owner.
    data[STATE_OFFSET..STATE_OFFSET + len].copy_from_slice(unsafe { account.borrow_unchecked() });
    Ok(())
}
