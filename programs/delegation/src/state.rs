//! The record of a delegated account: `[discriminator: 8][Delegation: 208][state]`.
//!
//! The trailing state is there only while an account changes hands.

use anchor_lang::{address_eq, prelude::*};

use crate::DelegationError;

/// First seed of a record's address; the second is the delegated account's address.
pub const RECORD_SEED: &[u8] = b"delegation";
/// Layout version that this program writes.
pub const VERSION: u8 = 1;
/// [`Delegation::state`]: room is reserved or `begin_delegate` was called, the account is still its owner's.
pub const STATE_PENDING: u8 = 1;
/// [`Delegation::state`]: the account is delegated.
pub const STATE_DELEGATED: u8 = 2;
/// Where the state in transit starts in the record's data.
pub const STATE_OFFSET: usize = 216;
/// How much an account can grow in one top-level instruction, a rule of the runtime.
pub const MAX_GROWTH: usize = 10_240;
/// The longest account of the chain.
pub const MAX_ACCOUNT_LEN: usize = 10 * 1024 * 1024;
/// What an undelegation calls in the owner program: Anchor's discriminator of `restore_delegated`, followed by the
/// offset and the length of the state in the record, both `u32`.
pub const RESTORE_DISCRIMINATOR: [u8; 8] = [165, 46, 84, 24, 33, 139, 162, 205];

/// The record of a delegated account.
#[account]
#[derive(Debug)]
pub struct Delegation {
    /// The delegated account.
    pub account: Address,
    /// Who may commit.
    pub authority: Address,
    /// The program that gets the account back.
    pub owner_program: Address,
    /// Who paid this record's rent and gets it back.
    pub rent_payer: Address,
    /// The buffer that is staged; all zeroes if none is.
    pub staged_buffer: Address,
    /// Slot of the delegation. Tells one delegation of the account from the next.
    pub delegated_slot: u64,
    /// Nonce of the last commit; 0 before the first.
    pub nonce: u64,
    /// The caller's id of the last commit.
    pub commit_id: u64,
    /// Nonce of the staged commit; 0 if none is staged.
    pub staged_nonce: u64,
    /// The caller's id of the staged commit.
    pub staged_commit_id: u64,
    /// 1 = pending, 2 = delegated.
    pub state: u8,
    /// Version of this layout.
    pub version: u8,
    /// Bump seed of this record's address.
    pub bump: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

const _: () = assert!(STATE_OFFSET == 8 + core::mem::size_of::<Delegation>());

impl Delegation {
    /// Whether a commit is staged.
    pub const fn is_staged(&self) -> bool {
        self.staged_nonce != 0
    }

    /// Refuses a record that is not the delegated `account`'s, a signer that is not its authority, and an unknown layout.
    ///
    /// The record's address needs no check: this program owns it, and creates records only where they belong.
    pub fn check(&self, account: &AccountView, authority: &Address) -> Result<()> {
        require!(self.version == VERSION, DelegationError::UnknownVersion);
        require!(address_eq(&self.account, account.address()), DelegationError::RecordMismatch);
        require!(self.state == STATE_DELEGATED, DelegationError::NotDelegated);
        require!(address_eq(&self.authority, authority), DelegationError::WrongAuthority);
        Ok(())
    }

    /// Refuses any nonce but the next, and tells a commit that was applied already from a wrong one.
    pub fn check_next(&self, nonce: u64, commit_id: u64) -> Result<()> {
        require!(!self.is_staged(), DelegationError::AlreadyStaged);
        if nonce == self.nonce && commit_id == self.commit_id && nonce != 0 {
            return Err(DelegationError::AlreadyApplied.into());
        }
        require!(Some(nonce) == self.nonce.checked_add(1), DelegationError::WrongNonce);
        Ok(())
    }
}
