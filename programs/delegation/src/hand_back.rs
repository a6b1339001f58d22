//! The end of a delegation, from wherever the state is: zero, assign, let the owner program restore, close the record.

use anchor_lang::__alloc::vec::Vec;
use anchor_lang::pinocchio::cpi::{CpiAccount, Seed, Signer as CpiSigner, invoke_signed_unchecked};
use anchor_lang::pinocchio::instruction::{InstructionAccount, InstructionView};
use anchor_lang::pinocchio::sysvars::{Sysvar, clock::Clock};
use anchor_lang::{address_eq, prelude::*};

use crate::instructions::reserve::load_record;
use crate::{Delegation, DelegationError, ID, RECORD_SEED, RESTORE_DISCRIMINATOR};

/// The accounts of an undelegation.
pub(crate) struct Parties {
    pub(crate) authority: AccountView,
    pub(crate) account: AccountView,
    pub(crate) record: AccountView,
    pub(crate) owner_program: AccountView,
    pub(crate) rent_payer: AccountView,
}

impl Parties {
    /// Refuses whatever does not belong together. Returns a copy of the record's header.
    pub(crate) fn check(&self) -> Result<Delegation> {
        let mut record = self.record;
        let header = *load_record(&mut record, &self.account)?;
        header.check_authority(self.authority.address())?;
        require!(!header.is_staged(), DelegationError::AlreadyStaged);
        require!(
            address_eq(&header.owner_program, self.owner_program.address()),
            DelegationError::WrongOwnerProgram
        );
        require!(
            address_eq(&header.rent_payer, self.rent_payer.address()),
            DelegationError::WrongRentReceiver
        );
        require!(self.account.owned_by(&ID), DelegationError::NotOwned);
        // Two delegations of one account must not have one session.
        require!(header.session != Clock::get()?.slot, DelegationError::SameSlot);
        Ok(header)
    }
}

/// Where the state is: in the record or in a buffer.
pub(crate) struct Source {
    pub(crate) account: AccountView,
    pub(crate) offset: usize,
    pub(crate) len: usize,
    /// Bump seed of the record's address, which signs.
    pub(crate) bump: u8,
}

/// Hands the account back with the state from `source`, then closes the record. `parties` have been checked.
pub(crate) fn run(parties: &Parties, source: &Source, remaining: &[AccountView]) -> Result<()> {
    let mut account = parties.account;
    let mut record = parties.record;
    let owner = parties.owner_program.address();
    // The runtime lets an account change hands only when it is zeroed.
    // SAFETY: nothing refers to the account's data or owner.
    unsafe {
        account.borrow_unchecked_mut().fill(0);
        account.assign(owner);
    }
    restore(parties, source, remaining);
    require!(account.owned_by(owner), DelegationError::WrongOwnerProgram);

    let mut rent_payer = parties.rent_payer;
    let lamports = rent_payer.lamports().checked_add(record.lamports());
    rent_payer.set_lamports(lamports.ok_or(ProgramError::ArithmeticOverflow)?);
    // SAFETY: nothing refers to the record's data any more.
    unsafe { record.close_unchecked() };
    Ok(())
}

/// Calls the owner program's `restore_delegated`; the record signs, which proves to it who calls.
fn restore(parties: &Parties, source: &Source, remaining: &[AccountView]) {
    let mut data = [0; 16];
    data[..8].copy_from_slice(&RESTORE_DISCRIMINATOR);
    data[8..12].copy_from_slice(&(source.offset as u32).to_le_bytes());
    data[12..].copy_from_slice(&(source.len as u32).to_le_bytes());

    let mut metas = Vec::with_capacity(3 + remaining.len());
    metas.push(InstructionAccount::writable(parties.account.address()));
    metas.push(InstructionAccount::readonly_signer(parties.record.address()));
    metas.push(InstructionAccount::readonly(source.account.address()));
    let mut infos = Vec::with_capacity(3 + remaining.len());
    infos.push(CpiAccount::from(&parties.account));
    infos.push(CpiAccount::from(&parties.record));
    infos.push(CpiAccount::from(&source.account));
    for view in remaining {
        // The authority signs for what this program does, not for what an owner program may make of it.
        let signs = view.is_signer() && !address_eq(view.address(), parties.authority.address());
        metas.push(InstructionAccount::new(view.address(), view.is_writable(), signs));
        infos.push(CpiAccount::from(view));
    }
    let instruction =
        InstructionView { program_id: parties.owner_program.address(), accounts: &metas, data: &data };
    let bump = [source.bump];
    let account = parties.account.address().as_array().as_slice();
    let seeds = [Seed::from(RECORD_SEED), Seed::from(account), Seed::from(&bump)];
    // SAFETY: no reference to the data of any of these accounts is alive across the call.
    unsafe { invoke_signed_unchecked(&instruction, &infos, &[CpiSigner::from(&seeds)]) };
}
