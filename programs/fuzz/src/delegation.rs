//! The delegation program: one instruction on accounts, records and buffers as the programs can have left them behind, or
//! on forgeries.

use std::cell::RefCell;
use std::collections::HashMap;

use anchor_lang::Discriminator as _;
use chunk_buffer::{Buffer, PAYLOAD_OFFSET, STATE_OPEN, STATE_SEALED};
use delegation::{
    Delegation, ID, KIND_STATE, PDA_MARKER, RECORD_SEED, STATE_DELEGATED, STATE_OFFSET, STATE_PENDING,
    VERSION,
};

use crate::chunk_buffer::{digest, lamports};
use crate::input::Input;
use crate::runtime::{Account, Instruction, Key, Outcome, Restore, SYSTEM, key, rent, run, sha256};

mod promises;

/// Who signs first: the authority, or the payer.
const SIGNER: Key = key(0xb1);
const OWNER_PROGRAM: Key = key(0xb4);
const BUFFER: Key = key(0xb5);
const OTHER: Key = key(0xb6);
/// Indices into the accounts of a world; the first three come first in every instruction.
const ACCOUNT: usize = 1;
const RECORD: usize = 2;
const SYSTEM_PROGRAM: usize = 3;
const OWNER: usize = 4;
const STAGED: usize = 5;
const RECEIVER: usize = 6;

/// What an input says before the payload and the instruction data. Every field is as many bytes as its type.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Zero: the declared accounts of the instruction. Otherwise another instruction's.
    pub layout: u8,
    /// Zero: all of them. Otherwise one less than this, or so many beyond them from 128 on.
    pub accounts: u8,
    /// Flipped bits of who signs: of the accounts in the order of their indices.
    pub flip_signer: u8,
    /// Flipped bits of what is writable.
    pub flip_writable: u8,
    /// Zero: every account once. Otherwise the low four bits' slot repeats the account of the high four bits' slot.
    pub again: u8,
    /// Who owns the account: this program (zero), its owner program, the system program, or another one.
    pub account_owner: u8,
    /// Of the account, the record and the signer.
    pub lamports: [u8; 3],
    pub account_len: u16,
    /// Every byte of the account.
    pub fill: u8,
    /// The record: the account's own (0), none yet (1), a forgery at another address (2), another account's (3), or a
    /// delegated account whose bytes are its authority's choice (4).
    pub record: u8,
    /// How long the state in the record is.
    pub record_len: u16,
    /// Zero: delegated. Otherwise pending.
    pub pending: u8,
    /// Zero: the header names the signer.
    pub authority: u8,
    /// Zero: the header names the owner program. One: nobody.
    pub owner_program: u8,
    /// Zero: the signer paid the rent.
    pub rent_payer: u8,
    pub version: u8,
    pub session: u8,
    pub nonce: u64,
    pub commit_id: u8,
    /// Zero: nothing is staged. One: the buffer. Two: with another digest. Three: of another length. Otherwise another one.
    pub staged: u8,
    pub staged_kind: u8,
    /// The bump seed of a forged record.
    pub bump: u8,
    /// The buffer: sealed (0), open (1), another authority's (2), another program's (3), too short for a header (4), or
    /// of another layout (5).
    pub buffer: u8,
    /// How many zeroes follow the payload in the buffer.
    pub padding: u16,
    pub slot: u8,
    /// What the owner program does when it is called.
    pub restore: u8,
    /// How many of the bytes before the instruction data are the buffer's payload.
    pub payload_len: u8,
}

impl Plan {
    fn read(input: &mut Input) -> Self {
        Self {
            layout: input.u8(),
            accounts: input.u8(),
            flip_signer: input.u8(),
            flip_writable: input.u8(),
            again: input.u8(),
            account_owner: input.u8(),
            lamports: input.array(),
            account_len: input.u16(),
            fill: input.u8(),
            record: input.u8(),
            record_len: input.u16(),
            pending: input.u8(),
            authority: input.u8(),
            owner_program: input.u8(),
            rent_payer: input.u8(),
            version: input.u8(),
            session: input.u8(),
            nonce: input.u64(),
            commit_id: input.u8(),
            staged: input.u8(),
            staged_kind: input.u8(),
            bump: input.u8(),
            buffer: input.u8(),
            padding: input.u16(),
            slot: input.u8(),
            restore: input.u8(),
            payload_len: input.u8(),
        }
    }

    /// The plan as the beginning of an input.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![
            self.layout,
            self.accounts,
            self.flip_signer,
            self.flip_writable,
            self.again,
            self.account_owner,
        ];
        bytes.extend(self.lamports);
        bytes.extend(self.account_len.to_le_bytes());
        bytes.extend([self.fill, self.record]);
        bytes.extend(self.record_len.to_le_bytes());
        bytes.extend([
            self.pending,
            self.authority,
            self.owner_program,
            self.rent_payer,
            self.version,
            self.session,
        ]);
        bytes.extend(self.nonce.to_le_bytes());
        bytes.extend([self.commit_id, self.staged, self.staged_kind, self.bump, self.buffer]);
        bytes.extend(self.padding.to_le_bytes());
        bytes.extend([self.slot, self.restore, self.payload_len]);
        bytes
    }

    /// The account that `record` describes.
    fn record(&self, account: &Key, payload: &[u8]) -> Account {
        let (address, bump) = record_address(account);
        let mut record = Account { address, owner: *ID.as_array(), writable: true, ..Account::default() };
        let mut header = self.header(account, payload, bump);
        match self.record % 5 {
            1 => {
                record.owner = SYSTEM;
                record.lamports = if self.lamports[1] == 0 { 0 } else { lamports(self.lamports[1], 0) };
                return record;
            }
            2 | 4 => {
                record.address = OTHER;
                header.bump = self.bump;
            }
            3 => {
                (record.address, header.bump) = record_address(&OTHER);
                header.account = OTHER.into();
            }
            _ => {}
        }
        record.data = Delegation::DISCRIMINATOR.to_vec();
        record.data.extend_from_slice(bytemuck::bytes_of(&header));
        record.data.resize(STATE_OFFSET + usize::from(self.record_len), self.fill);
        if self.record % 5 == 4 {
            record.data.truncate(self.record_len.into());
        }
        record.lamports = lamports(self.lamports[1], record.data.len());
        record
    }

    fn header(&self, account: &Key, payload: &[u8], bump: u8) -> Delegation {
        let someone = |choice: u8, usual: Key| if choice == 0 { usual } else { key(choice) }.into();
        let staged = self.staged != 0 && self.pending == 0 && self.nonce != u64::MAX;
        let mut header = Delegation {
            account: (*account).into(),
            authority: someone(self.authority, SIGNER),
            owner_program: match self.owner_program {
                // Only what has not begun names nobody.
                1 if self.pending != 0 => [0; 32].into(),
                1 => OWNER_PROGRAM.into(),
                other => someone(other, OWNER_PROGRAM),
            },
            rent_payer: someone(self.rent_payer, SIGNER),
            staged_buffer: [0; 32].into(),
            staged_digest: [0; 32],
            session: self.session.into(),
            nonce: self.nonce,
            commit_id: self.commit_id.into(),
            staged_nonce: 0,
            staged_commit_id: 0,
            state: if self.pending == 0 { STATE_DELEGATED } else { STATE_PENDING },
            version: VERSION.wrapping_add(self.version),
            bump,
            staged_kind: KIND_STATE,
            staged_len: 0,
        };
        if staged {
            header.staged_buffer = if self.staged < 4 { BUFFER } else { key(self.staged) }.into();
            header.staged_digest = if self.staged == 2 { [self.staged; 32] } else { digest(payload, 1) };
            header.staged_len = payload.len() as u32 + u32::from(self.staged == 3);
            header.staged_nonce = self.nonce + 1;
            header.staged_commit_id = u64::from(self.commit_id) + 1;
            header.staged_kind = self.staged_kind & 1;
        }
        header
    }

    /// The account that `buffer` describes.
    fn buffer(&self, payload: &[u8]) -> Account {
        let mut account =
            Account { address: BUFFER, owner: *chunk_buffer::ID.as_array(), ..Account::default() };
        let len = payload.len() as u32;
        let header = Buffer {
            authority: if self.buffer == 2 { OTHER } else { SIGNER }.into(),
            digest: digest(payload, 1),
            payload_len: len,
            chunk_size: len.max(1),
            written_chunks: 1.min(len),
            hashed_segments: 1,
            state: if self.buffer == 1 { STATE_OPEN } else { STATE_SEALED },
            version: chunk_buffer::VERSION + u8::from(self.buffer == 5),
            reserved: [0; 6],
        };
        account.data = Buffer::DISCRIMINATOR.to_vec();
        account.data.extend_from_slice(bytemuck::bytes_of(&header));
        account.data.extend_from_slice(payload);
        if len != 0 {
            account.data.push(1);
        }
        match self.buffer {
            3 => account.owner = OTHER,
            4 => account.data.truncate(usize::from(self.padding) % PAYLOAD_OFFSET),
            _ => {}
        }
        // What another program owns can be anything.
        if self.buffer == 3 && self.padding != 0 {
            account.data.truncate(self.padding.into());
        }
        account.lamports = rent(account.data.len());
        account
    }
}

/// The address of an account's record, and its bump seed.
fn record_address(account: &Key) -> (Key, u8) {
    thread_local! {
        static KNOWN: RefCell<HashMap<Key, (Key, u8)>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if known.len() > 1000 {
            known.clear();
        }
        *known.entry(*account).or_insert_with(|| {
            let (address, bump) = anchor_lang::find_program_address(&[RECORD_SEED, account], &ID);
            (address.to_bytes(), bump)
        })
    })
}

/// The accounts that an instruction declares after the first three.
fn declared(instruction: u8) -> &'static [usize] {
    match instruction {
        1 | 2 => &[SYSTEM_PROGRAM],
        6..=8 => &[STAGED],
        9 => &[OWNER, RECEIVER],
        10 => &[OWNER, RECEIVER, STAGED],
        14 => &[RECEIVER],
        _ => &[],
    }
}

/// Runs an input and checks what came of it.
///
/// # Panics
/// If the program does not hold what it promises.
pub fn check(bytes: &[u8]) -> Outcome {
    let mut input = Input(bytes);
    let plan = Plan::read(&mut input);
    let mut payload = input.bytes(plan.payload_len.into()).to_vec();
    payload.resize(payload.len() + usize::from(plan.padding), 0);
    let data = input.rest();
    let instruction = data.first().copied().unwrap_or_default();

    let owner = match plan.account_owner {
        0 if instruction != 2 => *ID.as_array(),
        0 | 1 => OWNER_PROGRAM,
        2 => SYSTEM,
        3 => *ID.as_array(),
        other => key(other),
    };
    let mut seeds = Input(data.get(1..).unwrap_or_default());
    let address = match (instruction, seeds.slice()) {
        (2, Some(seeds)) => sha256(&[seeds, &owner, PDA_MARKER]),
        _ => key(0xb2),
    };
    let account = Account {
        address,
        owner,
        lamports: lamports(plan.lamports[0], plan.account_len.into()),
        data: vec![plan.fill; plan.account_len.into()],
        signer: matches!(instruction, 2 | 3),
        writable: true,
        executable: false,
    };
    let buffer = plan.buffer(&payload);
    let record = plan.record(&address, &payload);
    let rent_payer = if plan.rent_payer == 0 { key(0xb3) } else { key(plan.rent_payer) };
    let mut accounts = vec![
        Account {
            address: SIGNER,
            lamports: lamports(plan.lamports[2], 0),
            signer: true,
            writable: matches!(instruction, 1..=3 | 9 | 10),
            ..Account::default()
        },
        account,
        record,
        Account { address: SYSTEM, lamports: 1, executable: true, ..Account::default() },
        Account {
            address: OWNER_PROGRAM,
            owner: key(0xfe),
            lamports: 1,
            executable: true,
            ..Account::default()
        },
        buffer,
        Account {
            address: rent_payer,
            lamports: lamports(plan.lamports[2], 0),
            writable: true,
            ..Account::default()
        },
        Account { address: key(0xb7), lamports: 1, ..Account::default() },
    ];
    for (bit, account) in accounts.iter_mut().enumerate() {
        account.signer ^= plan.flip_signer >> bit & 1 == 1;
        account.writable ^= plan.flip_writable >> bit & 1 == 1;
    }
    // Addresses are unique on the chain.
    let same = accounts.iter().filter(|account| account.address == rent_payer).count();
    let receiver = if same > 1 { 0 } else { RECEIVER };

    let layout = if plan.layout == 0 { instruction } else { plan.layout };
    let mut choice = vec![0, ACCOUNT, RECORD];
    choice.extend(declared(layout).iter().map(|index| if *index == RECEIVER { receiver } else { *index }));
    // In the undelegations the one that paid gets the rent back, which is the signer unless the header says otherwise.
    if matches!(layout, 9 | 10) && plan.rent_payer == 0 {
        choice[4] = 0;
    }
    match plan.accounts {
        0 => {}
        few @ 1..128 => choice.truncate(usize::from(few) - 1),
        many => choice
            .extend([7, STAGED, 0, ACCOUNT, SYSTEM_PROGRAM].iter().cycle().take(usize::from(many - 128) % 6)),
    }
    if plan.again != 0 && !choice.is_empty() {
        let slots = choice.len();
        choice[usize::from(plan.again & 15) % slots] = choice[usize::from(plan.again >> 4) % slots];
    }
    pinocchio::host::set_slot(plan.slot.into());
    let mut run_this =
        Instruction::new(delegation::__anchor_dispatch, *ID.as_array(), accounts, &choice, data);
    run_this.restore = match plan.restore % 3 {
        0 => Restore::Copy,
        1 => Restore::Nothing,
        _ => Restore::GiveAway,
    };
    let outcome = run(run_this);
    if outcome.accepted() {
        promises::accepted(&outcome, data, &plan);
    }
    outcome
}
