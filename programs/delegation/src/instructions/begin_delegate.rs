use anchor_lang::cpi::rent_exempt_lamports;
use anchor_lang::pinocchio::Resize;
use anchor_lang::prelude::*;
use pinocchio_system::instructions::Transfer;
use solana_sha256_hasher::hashv;

use super::reserve::{create_record, load_record};
use crate::{DelegationError, ID, MAX_GROWTH, MAX_STATE_LEN, PDA_MARKER, STATE_OFFSET, STATE_PENDING};

#[derive(Accounts)]
pub struct BeginDelegate {
    /// Pays the record's rent, and gets it back in the end.
    #[account(mut)]
    pub payer: Signer,
    /// The account, still its owner program's, which signs for it.
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: UncheckedAccount,
    pub system_program: Program<System>,
}

pub(crate) fn handler(ctx: &mut Context<BeginDelegate>, seeds: &[u8]) -> Result<()> {
    let payer = *ctx.accounts.payer.account();
    let account = *ctx.accounts.account.account();
    let mut record = *ctx.accounts.record.account();
    require!(account.is_signer(), DelegationError::AccountNotSigner);
    require!(!account.owned_by(&ID), DelegationError::AlreadyDelegated);
    // Only the owner program can sign for an address that is derived from it, so giving the account away is its own
    // doing. A keypair could sign for an account of any program.
    let derived = hashv(&[seeds, account.owner().as_array(), PDA_MARKER]).to_bytes();
    require!(account.address().as_array() == &derived, DelegationError::NotOwnersAddress);

    require!(account.data_len() <= MAX_STATE_LEN, DelegationError::TooLarge);
    let wanted = STATE_OFFSET + account.data_len();
    if record.owned_by(&ID) {
        make_room(&payer, &mut record, wanted)?;
    } else {
        // Only what one instruction can allocate; `reserve` makes room for more.
        require!(wanted <= MAX_GROWTH, DelegationError::RecordTooSmall);
        create_record(&payer, &account, &record, wanted)?;
    }
    let header = load_record(&mut record, &account)?;
    require!(header.state == STATE_PENDING, DelegationError::AlreadyDelegated);
    header.owner_program = *account.owner();
    // Whoever reserved first can't hold the account hostage.
    header.rent_payer = *payer.address();

    // SAFETY: `header` is not used again; the account is another one, since it has another owner.
    let (data, state) = unsafe { (record.borrow_unchecked_mut(), account.borrow_unchecked()) };
    data[STATE_OFFSET..wanted].copy_from_slice(state);
    Ok(())
}

/// Makes an existing record long enough, and rent exempt.
fn make_room(payer: &AccountView, record: &mut AccountView, wanted: usize) -> Result<()> {
    let len = record.data_len();
    if wanted > len {
        require!(wanted - len <= MAX_GROWTH, DelegationError::RecordTooSmall);
        // SAFETY: nothing refers to the record's data.
        unsafe { record.resize_unchecked(wanted)? };
    }
    let missing = rent_exempt_lamports(wanted.max(len))?.saturating_sub(record.lamports());
    if missing > 0 {
        Transfer { from: payer, to: record, lamports: missing }.invoke()?;
    }
    Ok(())
}
