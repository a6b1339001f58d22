use anchor_lang::pinocchio::Resize;
use anchor_lang::prelude::*;

use crate::{DelegationError, MAX_GROWTH, STATE_OFFSET, hand_back};

#[derive(Accounts)]
pub struct Undelegate {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: UncheckedAccount,
    /// The program that gets the account back.
    pub owner_program: UncheckedAccount,
    /// Who paid the record's rent. May be the authority.
    #[account(mut, unsafe(dup))]
    pub rent_payer: UncheckedAccount,
}

pub(crate) fn handler(ctx: &mut Context<Undelegate>) -> Result<()> {
    let parties = hand_back::Parties {
        authority: *ctx.accounts.authority.account(),
        account: *ctx.accounts.account.account(),
        record: *ctx.accounts.record.account(),
        owner_program: *ctx.accounts.owner_program.account(),
        rent_payer: *ctx.accounts.rent_payer.account(),
    };
    let bump = parties.check()?.bump;
    let mut record = parties.record;
    let len = parties.account.data_len();
    let room = record.data_len();
    if room < STATE_OFFSET + len {
        require!(STATE_OFFSET + len - room <= MAX_GROWTH, DelegationError::RecordTooSmall);
        // SAFETY: nothing refers to the record's data. Its rent needs no care: it is closed in the end.
        unsafe { record.resize_unchecked(STATE_OFFSET + len)? };
    }
    // SAFETY: two different accounts: one is at the address derived from the other's.
    let (state, data) = unsafe { (parties.account.borrow_unchecked(), record.borrow_unchecked_mut()) };
    data[STATE_OFFSET..STATE_OFFSET + len].copy_from_slice(state);

    let remaining = ctx.remaining_accounts()?;
    let source = hand_back::Source { account: record, offset: STATE_OFFSET, len, bump };
    hand_back::run(&parties, &source, &remaining)
}
