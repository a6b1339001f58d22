//! The record of a delegated account: `[discriminator: 8][Delegation: 240][state]`.
//!
//! The trailing state is there only while an account changes hands.

use anchor_lang::{address_eq, prelude::*};
use solana_sha256_hasher::hashv;

use crate::{DelegationError, ID};

/// First seed of a record's address; the second is the delegated account's address.
pub const RECORD_SEED: &[u8] = b"delegation";
/// What the runtime appends to the seeds and the program of a derived address before it hashes them.
pub const PDA_MARKER: &[u8] = b"ProgramDerivedAddress";
/// Layout version that this program writes.
pub const VERSION: u8 = 1;
/// [`Delegation::state`]: room is reserved or `begin_delegate` was called, the account is still its owner's.
pub const STATE_PENDING: u8 = 1;
/// [`Delegation::state`]: the account is delegated.
pub const STATE_DELEGATED: u8 = 2;
/// A buffer's payload is a whole state.
pub const KIND_STATE: u8 = 0;
/// A buffer's payload is a patch (`patch.rs`).
pub const KIND_PATCH: u8 = 1;
/// Where the state in transit starts in the record's data.
pub const STATE_OFFSET: usize = 248;
/// How much an account can grow in one instruction, a rule of the runtime.
pub const MAX_GROWTH: usize = 10_240;
/// The longest state: that of the longest account of the chain, less what a record needs to carry it.
pub const MAX_STATE_LEN: usize = 10 * 1024 * 1024 - STATE_OFFSET;
/// What an undelegation calls in the owner program: Anchor's discriminator of `restore_delegated`, followed by the
/// offset and the length of the state in the account that holds it, both `u32`.
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
    /// The digest of the staged buffer's payload.
    pub staged_digest: [u8; 32],
    /// Slot of the delegation: tells one delegation of the account from the next. Every commit names it.
    pub session: u64,
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
    /// Whether the staged payload is a state (0) or a patch (1).
    pub staged_kind: u8,
    /// Length of the staged buffer's payload in bytes: it belongs to the digest.
    pub staged_len: u32,
}

const _: () = assert!(STATE_OFFSET == 8 + core::mem::size_of::<Delegation>());
// `delegation-cpi` reads the owner program at its place.
const _: () = assert!(core::mem::offset_of!(Delegation, owner_program) == 64);

/// What a commit says about itself.
#[derive(Clone, Copy)]
pub(crate) struct Commit {
    pub(crate) session: u64,
    pub(crate) nonce: u64,
    pub(crate) commit_id: u64,
}

impl Delegation {
    /// Whether a commit is staged.
    pub const fn is_staged(&self) -> bool {
        self.staged_nonce != 0
    }

    /// Refuses a record that is not `account`'s, or of an unknown layout.
    ///
    /// The owner, the discriminator and the fields prove nothing by themselves: this program owns the delegated accounts
    /// too, and what is in them is their authorities' choice. Only the address can't be chosen. A forged bump leads to an
    /// address that nobody can create an account at.
    pub fn check_record(&self, account: &AccountView, record: &Address) -> Result<()> {
        require!(self.version == VERSION, DelegationError::UnknownVersion);
        require!(address_eq(&self.account, account.address()), DelegationError::RecordMismatch);
        let seeds: [&[u8]; 5] =
            [RECORD_SEED, account.address().as_array(), &[self.bump], ID.as_array(), PDA_MARKER];
        require!(record.as_array() == &hashv(&seeds).to_bytes(), DelegationError::RecordMismatch);
        Ok(())
    }

    /// Refuses a record that is not the delegated `account`'s, and a signer that is not its authority.
    pub fn check(&self, account: &AccountView, record: &Address, authority: &Address) -> Result<()> {
        self.check_record(account, record)?;
        self.check_authority(authority)
    }

    /// The half of [`Self::check`] that is left once the record has been checked.
    pub fn check_authority(&self, authority: &Address) -> Result<()> {
        require!(self.state == STATE_DELEGATED, DelegationError::NotDelegated);
        require!(address_eq(&self.authority, authority), DelegationError::WrongAuthority);
        Ok(())
    }

    /// Refuses any nonce but the next of this session, and tells a commit that was applied already from a wrong one.
    pub(crate) fn check_next(&self, commit: Commit) -> Result<()> {
        require!(commit.session == self.session, DelegationError::WrongSession);
        require!(!self.is_staged(), DelegationError::AlreadyStaged);
        if commit.nonce == self.nonce && commit.commit_id == self.commit_id && commit.nonce != 0 {
            return Err(DelegationError::AlreadyApplied.into());
        }
        require!(Some(commit.nonce) == self.nonce.checked_add(1), DelegationError::WrongNonce);
        Ok(())
    }

    /// Makes `commit` the last one.
    pub(crate) fn applied(&mut self, commit: Commit) {
        self.nonce = commit.nonce;
        self.commit_id = commit.commit_id;
    }

    /// Forgets what is staged.
    pub(crate) fn unstage(&mut self) {
        self.staged_buffer = Address::default();
        self.staged_digest = [0; 32];
        self.staged_len = 0;
        self.staged_nonce = 0;
        self.staged_commit_id = 0;
        self.staged_kind = KIND_STATE;
    }
}
