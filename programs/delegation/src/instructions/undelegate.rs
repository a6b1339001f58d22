use anchor_lang::__alloc::vec::Vec;
use anchor_lang::pinocchio::Resize;
use anchor_lang::pinocchio::cpi::{CpiAccount, Seed, Signer as CpiSigner, invoke_signed_unchecked};
use anchor_lang::pinocchio::instruction::{InstructionAccount, InstructionView};
use anchor_lang::{address_eq, prelude::*};

use super::reserve::load_record;
use crate::{DelegationError, ID, MAX_GROWTH, RECORD_SEED, RESTORE_DISCRIMINATOR, STATE_OFFSET};

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
    let mut account = *ctx.accounts.account.account();
    let mut record = *ctx.accounts.record.account();
    let owner_program = *ctx.accounts.owner_program.account();
    let rent_payer = *ctx.accounts.rent_payer.account();

    let header = *load_record(&mut record, &account)?;
    header.check(&account, ctx.accounts.authority.address())?;
    require!(!header.is_staged(), DelegationError::AlreadyStaged);
    require!(address_eq(&header.owner_program, owner_program.address()), DelegationError::WrongOwnerProgram);
    require!(address_eq(&header.rent_payer, rent_payer.address()), DelegationError::WrongRentReceiver);
    require!(account.owned_by(&ID), DelegationError::NotOwned);

    let len = account.data_len();
    let room = record.data_len();
    if room < STATE_OFFSET + len {
        require!(STATE_OFFSET + len - room <= MAX_GROWTH, DelegationError::RecordTooSmall);
        // SAFETY: `header` is a copy; nothing refers to the record's data. Its rent needs no care: it is closed below.
        unsafe { record.resize_unchecked(STATE_OFFSET + len)? };
    }
    // SAFETY: two different accounts (the record's address is derived from the other's), both only borrowed here.
    let (state, record_data) = unsafe { (account.borrow_unchecked_mut(), record.borrow_unchecked_mut()) };
    record_data[STATE_OFFSET..STATE_OFFSET + len].copy_from_slice(state);
    state.fill(0);
    // SAFETY: nothing holds a reference to the account's owner.
    unsafe { account.assign(owner_program.address()) };

    let remaining = ctx.remaining_accounts()?;
    restore(&owner_program, &account, &record, header.bump, len as u32, &remaining);
    require!(account.owned_by(owner_program.address()), DelegationError::WrongOwnerProgram);

    let mut rent_payer = rent_payer;
    let lamports = rent_payer.lamports().checked_add(record.lamports());
    rent_payer.set_lamports(lamports.ok_or(ProgramError::ArithmeticOverflow)?);
    // SAFETY: nothing refers to the record's data any more.
    unsafe { record.close_unchecked() };
    Ok(())
}

/// Calls the owner program's `restore_delegated`; the record signs, which proves to it who calls.
fn restore(
    program: &AccountView,
    account: &AccountView,
    record: &AccountView,
    bump: u8,
    len: u32,
    remaining: &[AccountView],
) {
    let mut data = [0; 16];
    data[..8].copy_from_slice(&RESTORE_DISCRIMINATOR);
    data[8..12].copy_from_slice(&(STATE_OFFSET as u32).to_le_bytes());
    data[12..].copy_from_slice(&len.to_le_bytes());

    let mut metas = Vec::with_capacity(2 + remaining.len());
    metas.push(InstructionAccount::writable(account.address()));
    metas.push(InstructionAccount::readonly_signer(record.address()));
    let mut infos = Vec::with_capacity(2 + remaining.len());
    infos.push(CpiAccount::from(account));
    infos.push(CpiAccount::from(record));
    for view in remaining {
        metas.push(InstructionAccount::new(view.address(), view.is_writable(), view.is_signer()));
        infos.push(CpiAccount::from(view));
    }
    let instruction = InstructionView { program_id: program.address(), accounts: &metas, data: &data };
    let bump = [bump];
    let seeds =
        [Seed::from(RECORD_SEED), Seed::from(account.address().as_array().as_slice()), Seed::from(&bump)];
    // SAFETY: no reference to the data of any of these accounts is alive across the call.
    unsafe { invoke_signed_unchecked(&instruction, &infos, &[CpiSigner::from(&seeds)]) };
}
