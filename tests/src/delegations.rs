//! Delegated accounts to begin with, and what their records hold.

use committor_localnet::{OWNER_PROGRAM_ID, owner_program};
use committor_sdk::{
    address,
    delegation::{self, Delegation},
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_system_interface::instruction as system;

use crate::{World, landed};

/// State of a record whose account is still its owner's.
pub const PENDING: u8 = 1;
/// State of a record whose account is delegated.
pub const DELEGATED: u8 = 2;
/// Length of a record that holds no state in transit, in bytes.
pub const RECORD_LEN: usize = 248;
/// Length of the longest state, in bytes: that of the longest account, less [`RECORD_LEN`].
pub const MAX_STATE_LEN: usize = 10 * 1024 * 1024 - RECORD_LEN;
/// Kind of a payload that is a whole state.
pub const STATE: u8 = 0;
/// Kind of a payload that is a patch.
pub const PATCH: u8 = 1;
/// What is in a record where no address is.
pub const NO_ADDRESS: Address = Address::new_from_array([0; 32]);

/// Most bytes that an account grows by in one instruction.
const MAX_GROWTH: usize = 10_240;

/// All that a record holds. Compared byte by byte with what the program leaves.
#[derive(Clone, Copy, Debug)]
pub struct RecordBytes {
    /// The account whose record it is.
    pub account: Address,
    /// Who may commit.
    pub authority: Address,
    /// The program that gets the account back.
    pub owner_program: Address,
    /// Who paid for the record.
    pub rent_payer: Address,
    /// The staged buffer.
    pub staged_buffer: Address,
    /// Digest of the staged buffer.
    pub staged_digest: [u8; 32],
    /// Slot of the delegation.
    pub session: u64,
    /// Nonce of the last commit.
    pub nonce: u64,
    /// Id of the last commit.
    pub commit_id: u64,
    /// Nonce of the staged commit.
    pub staged_nonce: u64,
    /// Id of the staged commit.
    pub staged_commit_id: u64,
    /// [`PENDING`] or [`DELEGATED`].
    pub state: u8,
    /// Version of the layout.
    pub version: u8,
    /// [`STATE`] or [`PATCH`].
    pub staged_kind: u8,
    /// Length of the staged payload.
    pub staged_len: u32,
}

impl RecordBytes {
    /// A record as `reserve` leaves it.
    pub fn pending(account: Address, rent_payer: Address) -> Self {
        Self {
            account,
            authority: NO_ADDRESS,
            owner_program: NO_ADDRESS,
            rent_payer,
            staged_buffer: NO_ADDRESS,
            staged_digest: [0; 32],
            session: 0,
            nonce: 0,
            commit_id: 0,
            staged_nonce: 0,
            staged_commit_id: 0,
            state: PENDING,
            version: 1,
            staged_kind: STATE,
            staged_len: 0,
        }
    }

    /// The record's data. Spelt out instead of taken from the SDK, so that a mistake there is no mistake here.
    pub fn data(&self) -> Vec<u8> {
        let seeds: &[&[u8]] = &[b"delegation", self.account.as_ref()];
        let (_, bump) = Address::find_program_address(seeds, &delegation::ID);
        let mut data = vec![237, 90, 140, 159, 124, 255, 243, 80];
        let addresses =
            [self.account, self.authority, self.owner_program, self.rent_payer, self.staged_buffer];
        for address in addresses {
            data.extend_from_slice(address.as_ref());
        }
        data.extend_from_slice(&self.staged_digest);
        let numbers = [self.session, self.nonce, self.commit_id, self.staged_nonce, self.staged_commit_id];
        for number in numbers {
            data.extend_from_slice(&number.to_le_bytes());
        }
        data.extend_from_slice(&[self.state, self.version, bump, self.staged_kind]);
        data.extend_from_slice(&self.staged_len.to_le_bytes());
        assert_eq!(data.len(), RECORD_LEN);
        data
    }
}

/// A patch: the new length, then ranges with their offsets.
pub fn patch(new_len: usize, ranges: &[(u32, &[u8])]) -> Vec<u8> {
    let mut patch = (new_len as u32).to_le_bytes().to_vec();
    for (offset, bytes) in ranges {
        patch.extend_from_slice(&offset.to_le_bytes());
        patch.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        patch.extend_from_slice(bytes);
    }
    patch
}

impl World {
    /// Puts the payer's account of the owner program, number `number`, with this state.
    pub fn own(&mut self, number: u64, state: &[u8]) -> Address {
        self.own_by(self.payer, number, state)
    }

    /// [`Self::own`] with another payer.
    pub fn own_by(&mut self, payer: Address, number: u64, state: &[u8]) -> Address {
        let account = owner_program::account(&payer, number);
        self.forge(account, OWNER_PROGRAM_ID, state.to_vec());
        account
    }

    /// The seeds of [`Self::own`]'s address, one after the other.
    pub fn seeds(&self, number: u64) -> Vec<u8> {
        let (payer, number) = (self.payer.as_ref(), number.to_le_bytes());
        let seeds: [&[u8]; 3] = [b"state", payer, &number];
        let (_, bump) = Address::find_program_address(&seeds, &OWNER_PROGRAM_ID);
        [seeds.concat(), vec![bump]].concat()
    }

    /// Puts an account of the owner program and delegates it to the authority, with as many reservations as it takes.
    /// Goes on to the next slot, in which it can be undelegated.
    #[track_caller]
    pub fn delegated(&mut self, number: u64, state: &[u8]) -> Address {
        let account = self.own(number, state);
        let mut instructions = Vec::new();
        if RECORD_LEN + state.len() > MAX_GROWTH {
            instructions = self.reserve_instructions(account, RECORD_LEN + state.len());
        }
        instructions.push(self.delegate(number));
        landed(self.send(&instructions));
        self.next_slot();
        account
    }

    /// Delegates the payer's account of this number to the authority.
    pub fn delegate(&self, number: u64) -> Instruction {
        owner_program::delegate(&self.payer, number, &self.authority)
    }

    /// What makes the record of `account` `record_len` bytes long: rent, and as many reservations as it takes.
    pub fn reserve_instructions(&self, account: Address, record_len: usize) -> Vec<Instruction> {
        let record = address::record(&account);
        let there = self.account(&record).map_or(0, |record| record.data.len());
        let missing = self.rent(record_len).saturating_sub(self.lamports(&record));
        let mut instructions = vec![system::transfer(&self.payer, &record, missing)];
        let calls = (record_len - there).div_ceil(MAX_GROWTH);
        let reserve = self.reserve(account, (record_len - RECORD_LEN) as u32);
        instructions.extend(std::iter::repeat_n(reserve, calls));
        instructions
    }

    /// Makes room in a record, at the payer's expense.
    pub fn reserve(&self, account: Address, len: u32) -> Instruction {
        let accounts = delegation::Reserve { payer: self.payer, account, record: address::record(&account) };
        accounts.instruction(delegation::ReserveArgs { len })
    }

    /// Grows a delegated account.
    pub fn grow(&self, account: Address, len: u32) -> Instruction {
        let record = address::record(&account);
        delegation::Grow { authority: self.authority, account, record }
            .instruction(delegation::GrowArgs { len })
    }

    /// The session of an account's delegation; 0 if it is not delegated.
    pub fn session(&self, account: Address) -> u64 {
        let record = self.account(&address::record(&account));
        record.and_then(|record| Delegation::read(&record.data).ok()).map_or(0, |record| record.session)
    }

    /// Commits a state.
    pub fn commit(&self, account: Address, nonce: u64, commit_id: u64, data: &[u8]) -> Instruction {
        let record = address::record(&account);
        let accounts = delegation::Commit { authority: self.authority, account, record };
        let session = self.session(account);
        accounts.instruction(delegation::CommitArgs { session, nonce, commit_id, data })
    }

    /// Commits a patch.
    pub fn commit_patch(&self, account: Address, nonce: u64, commit_id: u64, patch: &[u8]) -> Instruction {
        let record = address::record(&account);
        let accounts = delegation::CommitPatch { authority: self.authority, account, record };
        let session = self.session(account);
        accounts.instruction(delegation::CommitPatchArgs { session, nonce, commit_id, patch })
    }

    /// Commits the payload of a buffer, which is a state.
    pub fn commit_buffer(
        &self,
        account: Address,
        nonce: u64,
        commit_id: u64,
        buffer: Address,
    ) -> Instruction {
        self.commit_buffer_as(STATE, account, nonce, commit_id, buffer)
    }

    /// Commits the payload of a buffer, which is of this kind.
    pub fn commit_buffer_as(
        &self,
        kind: u8,
        account: Address,
        nonce: u64,
        commit_id: u64,
        buffer: Address,
    ) -> Instruction {
        let record = address::record(&account);
        let accounts = delegation::CommitBuffer { authority: self.authority, account, record, buffer };
        let session = self.session(account);
        accounts.instruction(delegation::CommitBufferArgs { session, nonce, commit_id, kind })
    }

    /// Stages a buffer, which holds a state.
    pub fn stage(&self, account: Address, nonce: u64, commit_id: u64, buffer: Address) -> Instruction {
        self.stage_as(STATE, account, nonce, commit_id, buffer)
    }

    /// Stages a buffer, whose payload is of this kind.
    pub fn stage_as(
        &self,
        kind: u8,
        account: Address,
        nonce: u64,
        commit_id: u64,
        buffer: Address,
    ) -> Instruction {
        let record = address::record(&account);
        let accounts = delegation::Stage { authority: self.authority, account, record, buffer };
        let session = self.session(account);
        accounts.instruction(delegation::StageArgs { session, nonce, commit_id, kind })
    }

    /// Forgets what is staged.
    pub fn unstage(&self, account: Address) -> Instruction {
        let record = address::record(&account);
        delegation::Unstage { authority: self.authority, account, record }.instruction()
    }

    /// Hands a delegation to another authority.
    pub fn set_authority(&self, account: Address, authority: Address) -> Instruction {
        let record = address::record(&account);
        delegation::SetAuthority { authority: self.authority, account, record }
            .instruction(delegation::SetAuthorityArgs { authority })
    }

    /// Moves lamports out of a delegated account.
    pub fn withdraw(&self, account: Address, receiver: Address, lamports: u64) -> Instruction {
        let record = address::record(&account);
        delegation::Withdraw { authority: self.authority, account, record, receiver }
            .instruction(delegation::WithdrawArgs { lamports })
    }

    /// Finalizes a staged buffer.
    pub fn finalize(&self, account: Address, buffer: Address) -> Instruction {
        let record = address::record(&account);
        delegation::Finalize { authority: self.authority, account, record, buffer }.instruction()
    }

    /// Hands an account back to the owner program, and its record's rent to the payer.
    pub fn undelegate(&self, account: Address) -> Instruction {
        let accounts = delegation::Undelegate {
            authority: self.authority,
            account,
            record: address::record(&account),
            owner_program: OWNER_PROGRAM_ID,
            rent_payer: self.payer,
        };
        accounts.instruction()
    }

    /// Hands an account back to the owner program with the payload of a buffer, and its record's rent to the payer.
    pub fn undelegate_buffer(
        &self,
        account: Address,
        nonce: u64,
        commit_id: u64,
        buffer: Address,
    ) -> Instruction {
        let accounts = delegation::UndelegateBuffer {
            authority: self.authority,
            account,
            record: address::record(&account),
            owner_program: OWNER_PROGRAM_ID,
            rent_payer: self.payer,
            buffer,
        };
        let session = self.session(account);
        accounts.instruction(delegation::UndelegateBufferArgs { session, nonce, commit_id })
    }

    /// The record of an account.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn record(&self, account: &Address) -> Delegation {
        Delegation::read(&self.data(&address::record(account))).expect("a record")
    }

    /// What the record of an account holds once the payer has had it delegated to the authority.
    ///
    /// The slot is taken from the record itself.
    #[track_caller]
    pub fn record_bytes(&self, account: Address) -> RecordBytes {
        RecordBytes {
            authority: self.authority,
            owner_program: OWNER_PROGRAM_ID,
            session: self.record(&account).session,
            state: DELEGATED,
            ..RecordBytes::pending(account, self.payer)
        }
    }

    /// Changes the record of an account behind everybody's back.
    #[track_caller]
    pub fn edit_record(&mut self, account: &Address, change: impl FnOnce(&mut Delegation)) {
        let mut record = self.record(account);
        change(&mut record);
        self.edit(address::record(account), |data| {
            data[8..RECORD_LEN].copy_from_slice(bytemuck::bytes_of(&record));
        });
    }
}
