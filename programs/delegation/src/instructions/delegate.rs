use anchor_lang::pinocchio::Resize;
use anchor_lang::pinocchio::sysvars::{Sysvar, clock::Clock};
use anchor_lang::{address_eq, prelude::*};

use super::reserve::load_record;
use crate::{DelegationError, ID, STATE_DELEGATED, STATE_OFFSET, STATE_PENDING};

#[derive(Accounts)]
pub struct Delegate {
    /// Who paid the record's rent: gets what the state in transit took.
    #[account(mut)]
    pub payer: Signer,
    /// The account, zeroed and assigned to this program, which its owner program still signs for.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: UncheckedAccount,
}

pub(crate) fn handler(ctx: &mut Context<Delegate>, authority: Address) -> Result<()> {
    let mut payer = *ctx.accounts.payer.account();
    let mut account = *ctx.accounts.account.account();
    let mut record = *ctx.accounts.record.account();
    require!(account.is_signer(), DelegationError::AccountNotSigner);
    require!(account.owned_by(&ID), DelegationError::NotOwned);
    let session = Clock::get()?.slot;
    let header = load_record(&mut record, &account)?;
    require!(header.state == STATE_PENDING, DelegationError::AlreadyDelegated);
    require!(header.owner_program != Address::default(), DelegationError::NotBegun);
    require!(address_eq(&header.rent_payer, payer.address()), DelegationError::WrongRentReceiver);
    // Nobody could ever commit or give the account back.
    require!(authority != Address::default(), DelegationError::ZeroAuthority);
    header.authority = authority;
    header.session = session;
    header.state = STATE_DELEGATED;

    let len = account.data_len();
    // SAFETY: `header` is not used again, and the two accounts are not the same: their addresses differ by derivation.
    let (state, record_data) = unsafe { (account.borrow_unchecked_mut(), record.borrow_unchecked()) };
    require!(record_data.len() >= STATE_OFFSET + len, DelegationError::RecordTooSmall);
    state.copy_from_slice(&record_data[STATE_OFFSET..STATE_OFFSET + len]);

    // SAFETY: no reference to the record's data is used again.
    unsafe { record.resize_unchecked(STATE_OFFSET)? };
    let excess = record.lamports().saturating_sub(anchor_lang::cpi::rent_exempt_lamports(STATE_OFFSET)?);
    record.set_lamports(record.lamports() - excess);
    payer.set_lamports(payer.lamports().checked_add(excess).ok_or(ProgramError::ArithmeticOverflow)?);
    Ok(())
}
