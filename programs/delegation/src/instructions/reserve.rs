use anchor_lang::pinocchio::Resize;
use anchor_lang::pinocchio::cpi::{Seed, Signer as CpiSigner};
use anchor_lang::{address_eq, prelude::*};
use pinocchio_system::create_account_with_minimum_balance_signed;

use crate::{
    Delegation, DelegationError, ID, MAX_GROWTH, MAX_STATE_LEN, RECORD_SEED, STATE_DELEGATED, STATE_OFFSET,
    STATE_PENDING, VERSION,
};

#[derive(Accounts)]
pub struct Reserve {
    /// Pays for the record where there is none yet. Of a delegated account's record: its authority.
    #[account(mut)]
    pub payer: Signer,
    /// The account whose state is to change hands.
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: UncheckedAccount,
    pub system_program: Program<System>,
}

pub(crate) fn handler(ctx: &mut Context<Reserve>, len: u32) -> Result<()> {
    require!(len as usize <= MAX_STATE_LEN, DelegationError::TooLarge);
    let wanted = STATE_OFFSET + len as usize;
    let payer = *ctx.accounts.payer.account();
    let account = *ctx.accounts.account.account();
    let mut record = *ctx.accounts.record.account();
    if !record.owned_by(&ID) {
        return create_record(&payer, &account, &record, wanted.min(MAX_GROWTH));
    }

    let header = load_record(&mut record, &account)?;
    if header.state == STATE_DELEGATED {
        require!(address_eq(&header.authority, payer.address()), DelegationError::WrongAuthority);
    }
    let old_len = record.data_len();
    if wanted > old_len {
        // SAFETY: `header` is not used again.
        unsafe { record.resize_unchecked(wanted.min(old_len + MAX_GROWTH))? };
    }
    Ok(())
}

/// Creates the record of `account` with `len` bytes, at the expense of `payer`.
pub(crate) fn create_record(
    payer: &AccountView,
    account: &AccountView,
    record: &AccountView,
    len: usize,
) -> Result<()> {
    let (address, bump) = find_program_address(&[RECORD_SEED, account.address().as_array()], &ID);
    require!(address_eq(&address, record.address()), DelegationError::RecordMismatch);
    let bump_seed = [bump];
    let seeds = [
        Seed::from(RECORD_SEED),
        Seed::from(account.address().as_array().as_slice()),
        Seed::from(&bump_seed),
    ];
    let mut record = *record;
    // Not Anchor's own helper, nor its `init`: that function takes more arguments than upstream's BPF back end can pass.
    create_account_with_minimum_balance_signed(
        &mut record,
        len,
        &ID,
        payer,
        None,
        &[CpiSigner::from(&seeds)],
    )?;

    // SAFETY: the account was created just now; nobody holds a reference to its data.
    let data = unsafe { record.borrow_unchecked_mut() };
    data[..8].copy_from_slice(Delegation::DISCRIMINATOR);
    let header: &mut Delegation = bytemuck::from_bytes_mut(&mut data[8..STATE_OFFSET]);
    header.account = *account.address();
    header.rent_payer = *payer.address();
    header.state = STATE_PENDING;
    header.version = VERSION;
    header.bump = bump;
    Ok(())
}

/// The header of `account`'s record.
///
/// The caller must not reach the record's first [`STATE_OFFSET`] bytes by another way while it holds the header.
pub(crate) fn load_record<'a>(
    record: &'a mut AccountView,
    account: &AccountView,
) -> Result<&'a mut Delegation> {
    require!(record.owned_by(&ID), DelegationError::RecordMismatch);
    let address = *record.address();
    // SAFETY: the exclusive borrow of `record` is passed on to the result.
    let data = unsafe { record.borrow_unchecked_mut() };
    require!(
        data.len() >= STATE_OFFSET && &data[..8] == Delegation::DISCRIMINATOR,
        DelegationError::RecordMismatch
    );
    let header: &mut Delegation = bytemuck::from_bytes_mut(&mut data[8..STATE_OFFSET]);
    header.check_record(account, &address)?;
    Ok(header)
}
