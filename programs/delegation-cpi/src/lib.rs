//! What an owner program needs in order to delegate an account and to get it back.
//!
//! Delegating, inside an instruction of the owner program (`account` is a PDA of it):
//! ```ignore
//! delegation_cpi::delegate(&Delegate { payer, account, record, system_program }, &authority, &[SEED, &[bump]])?;
//! ```
//! Taking back: an instruction named `restore_delegated` with the accounts `account` (writable), `record` (signer) and
//! `source`, and the arguments `offset: u32, len: u32`, that calls [`restore`].
#![no_std]

use anchor_lang::pinocchio::account::AccountView;
use anchor_lang::pinocchio::address::Address;
use anchor_lang::pinocchio::cpi::{CpiAccount, Seed, Signer, invoke_signed_unchecked};
use anchor_lang::pinocchio::error::ProgramError;
use anchor_lang::pinocchio::instruction::{InstructionAccount, InstructionView};

/// The delegation program: that of `COMMITTOR_DELEGATION_ID` in the build's environment, or else the project's own.
pub const DELEGATION_ID: Address = match option_env!("COMMITTOR_DELEGATION_ID") {
    Some(id) => Address::from_str_const(id),
    None => Address::from_str_const("Deg5W1RRKKWy2mZhGLGSzS6YYvTetHwGJYVxKsbJKFmi"),
};
/// First seed of a record's address; the second is the delegated account's.
pub const RECORD_SEED: &[u8] = b"delegation";

const BEGIN_DELEGATE: u8 = 2;
const DELEGATE: u8 = 3;
/// The runtime's limits for the seeds of an address.
const MAX_SEEDS: usize = 16;
const MAX_SEED_LEN: usize = 32;
/// Where a record holds the owner program.
const OWNER_PROGRAM: core::ops::Range<usize> = 72..104;

/// The accounts that delegating takes. The delegation program must be among the instruction's accounts too.
pub struct Delegate<'a> {
    /// Pays the record's rent. Signs the transaction.
    pub payer: &'a AccountView,
    /// The account to delegate, writable, owned by the calling program and a PDA of it.
    pub account: &'a AccountView,
    /// The PDA of the delegation program from `["delegation", account]`, writable.
    pub record: &'a AccountView,
    /// The system program.
    pub system_program: &'a AccountView,
}

/// Delegates an account to `authority`, which may commit new states to it from here on.
///
/// `signer_seeds` are those of the account's address, bump included. No reference to the account's data may be alive.
///
/// # Errors
/// [`ProgramError::MaxSeedLengthExceeded`] for more than 16 seeds, or one of more than 32 bytes. Errors of the delegation program end the whole
/// transaction, as those of any call do.
pub fn delegate(
    accounts: &Delegate,
    authority: &Address,
    signer_seeds: &[&[u8]],
) -> Result<(), ProgramError> {
    if signer_seeds.len() > MAX_SEEDS || signer_seeds.iter().any(|seed| seed.len() > MAX_SEED_LEN) {
        return Err(ProgramError::MaxSeedLengthExceeded);
    }
    // `[discriminator][length: u32][seeds, one after the other]`
    let mut begin_data = [0; 5 + MAX_SEEDS * MAX_SEED_LEN];
    let mut end = 5;
    let mut seeds: [Seed; MAX_SEEDS] = core::array::from_fn(|_| Seed::from(b"".as_slice()));
    for (seed, bytes) in seeds.iter_mut().zip(signer_seeds) {
        *seed = Seed::from(*bytes);
        begin_data[end..end + bytes.len()].copy_from_slice(bytes);
        end += bytes.len();
    }
    begin_data[0] = BEGIN_DELEGATE;
    begin_data[1..5].copy_from_slice(&(end as u32 - 5).to_le_bytes());
    let signer = [Signer::from(&seeds[..signer_seeds.len()])];

    // 1. The delegation program copies the state into the record.
    let metas = [
        InstructionAccount::writable_signer(accounts.payer.address()),
        InstructionAccount::readonly_signer(accounts.account.address()),
        InstructionAccount::writable(accounts.record.address()),
        InstructionAccount::readonly(accounts.system_program.address()),
    ];
    let infos = [
        CpiAccount::from(accounts.payer),
        CpiAccount::from(accounts.account),
        CpiAccount::from(accounts.record),
        CpiAccount::from(accounts.system_program),
    ];
    let begin = InstructionView { program_id: &DELEGATION_ID, accounts: &metas, data: &begin_data[..end] };
    // SAFETY: no reference to the data of these accounts is alive, by this function's contract.
    unsafe { invoke_signed_unchecked(&begin, &infos, &signer) };

    // 2. Only the owner may give an account away, and only a zeroed one.
    let mut account = *accounts.account;
    // SAFETY: as above.
    unsafe {
        account.borrow_unchecked_mut().fill(0);
        account.assign(&DELEGATION_ID);
    }

    // 3. The delegation program takes over and copies the state back.
    let metas = [
        InstructionAccount::writable_signer(accounts.payer.address()),
        InstructionAccount::writable_signer(accounts.account.address()),
        InstructionAccount::writable(accounts.record.address()),
    ];
    let infos = [
        CpiAccount::from(accounts.payer),
        CpiAccount::from(accounts.account),
        CpiAccount::from(accounts.record),
    ];
    let mut data = [0; 33];
    data[0] = DELEGATE;
    data[1..].copy_from_slice(authority.as_array());
    let delegate = InstructionView { program_id: &DELEGATION_ID, accounts: &metas, data: &data };
    // SAFETY: as above.
    unsafe { invoke_signed_unchecked(&delegate, &infos, &signer) };
    Ok(())
}

/// Puts the last committed state back into an account that the delegation program has just handed back.
///
/// # Errors
/// [`ProgramError::MissingRequiredSignature`] if the caller is not the delegation program with the account's own record,
/// [`ProgramError::IncorrectProgramId`] if the account's owner is not the program that delegated it,
/// [`ProgramError::AccountDataTooSmall`] if the source does not hold that many bytes, and
/// [`ProgramError::InvalidAccountData`] if the account has another length or is not zeroed.
pub fn restore(
    account: &AccountView,
    record: &AccountView,
    source: &AccountView,
    offset: u32,
    len: u32,
) -> Result<(), ProgramError> {
    // Only the delegation program can sign for a record, and only for this account's record at this address.
    let expected =
        Address::find_program_address(&[RECORD_SEED, account.address().as_array()], &DELEGATION_ID).0;
    if !record.is_signer() || *record.address() != expected {
        return Err(ProgramError::MissingRequiredSignature);
    }
    // SAFETY: only read, and the caller holds no reference to it.
    let owner_program = unsafe { record.borrow_unchecked() }.get(OWNER_PROGRAM);
    // The signature is for the program that delegated the account: one that passes it on must not get far with it.
    if owner_program != Some(account.owner().as_array().as_slice()) {
        return Err(ProgramError::IncorrectProgramId);
    }
    let (offset, len) = (offset as usize, len as usize);
    let mut account = *account;
    // SAFETY: two different accounts, and the caller holds no reference to their data.
    let (state, source) = unsafe { (account.borrow_unchecked_mut(), source.borrow_unchecked()) };
    let saved = source.get(offset..offset + len).ok_or(ProgramError::AccountDataTooSmall)?;
    // An account that changed hands is zeroed: anything else was not handed back just now. (All bytes equal their
    // neighbours, and the first is zero: one comparison instead of a loop.)
    let zeroed = state.is_empty() || (state[0] == 0 && state[1..] == state[..state.len() - 1]);
    if state.len() != len || !zeroed {
        return Err(ProgramError::InvalidAccountData);
    }
    state.copy_from_slice(saved);
    Ok(())
}
