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
pub const RECORD_LEN: usize = 216;
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
    /// Slot of the delegation.
    pub delegated_slot: u64,
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
            delegated_slot: 0,
            nonce: 0,
            commit_id: 0,
            staged_nonce: 0,
            staged_commit_id: 0,
            state: PENDING,
            version: 1,
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
        let numbers =
            [self.delegated_slot, self.nonce, self.commit_id, self.staged_nonce, self.staged_commit_id];
        for number in numbers {
            data.extend_from_slice(&number.to_le_bytes());
        }
        data.extend_from_slice(&[self.state, self.version, bump, 0, 0, 0, 0, 0]);
        assert_eq!(data.len(), RECORD_LEN);
        data
    }
}

impl World {
    /// Puts an account of the owner program, number `number`, with this state.
    pub fn own(&mut self, number: u64, state: &[u8]) -> Address {
        let account = owner_program::account(number);
        self.forge(account, OWNER_PROGRAM_ID, state.to_vec());
        account
    }

    /// Puts an account of the owner program and delegates it to the authority, with as many reservations as it takes.
    #[track_caller]
    pub fn delegated(&mut self, number: u64, state: &[u8]) -> Address {
        let account = self.own(number, state);
        let mut instructions = Vec::new();
        if RECORD_LEN + state.len() > MAX_GROWTH {
            instructions = self.reserve_instructions(account, RECORD_LEN + state.len());
        }
        instructions.push(owner_program::delegate(&self.payer, number, &self.authority));
        landed(self.send(&instructions));
        account
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

    /// Commits a state.
    pub fn commit(&self, account: Address, nonce: u64, commit_id: u64, data: &[u8]) -> Instruction {
        let record = address::record(&account);
        let accounts = delegation::Commit { authority: self.authority, account, record };
        accounts.instruction(delegation::CommitArgs { nonce, commit_id, data })
    }

    /// Commits the payload of a buffer.
    pub fn commit_buffer(
        &self,
        account: Address,
        nonce: u64,
        commit_id: u64,
        buffer: Address,
    ) -> Instruction {
        let record = address::record(&account);
        let accounts = delegation::CommitBuffer { authority: self.authority, account, record, buffer };
        accounts.instruction(delegation::CommitBufferArgs { nonce, commit_id })
    }

    /// Stages a buffer.
    pub fn stage(&self, account: Address, nonce: u64, commit_id: u64, buffer: Address) -> Instruction {
        let record = address::record(&account);
        let accounts = delegation::Stage { authority: self.authority, account, record, buffer };
        accounts.instruction(delegation::StageArgs { nonce, commit_id })
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
            delegated_slot: self.record(&account).delegated_slot,
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
