//! A stand-in for the chain's runtime: one instruction, natively.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use pinocchio::account::{MAX_PERMITTED_DATA_INCREASE, RuntimeAccount};
use pinocchio::cpi::{CpiAccount, Signer};
use pinocchio::instruction::InstructionView;
use solana_sha256_hasher::hashv;

mod callee;

pub use callee::Restore;

/// An address.
pub type Key = [u8; 32];

/// The system program.
pub const SYSTEM: Key = [0; 32];
/// What the runtime writes behind every account, and nobody may change.
const RENT_EPOCH: u64 = u64::MAX;
const HEADER_LEN: usize = size_of::<RuntimeAccount>();
/// The longest account of the chain.
const MAX_LEN: usize = 10 * 1024 * 1024;

/// A program's entrypoint.
pub type Entrypoint = unsafe extern "C" fn(*mut u8, *const u8) -> u64;

/// An account as an instruction is given it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub address: Key,
    pub owner: Key,
    pub lamports: u64,
    pub data: Vec<u8>,
    pub signer: bool,
    pub writable: bool,
    pub executable: bool,
}

/// The rent-exempt minimum for `len` bytes, in lamports.
pub fn rent(len: usize) -> u64 {
    (128 + len as u64) * 6960
}

/// An address that nothing is derived to.
pub const fn key(tag: u8) -> Key {
    [tag; 32]
}

/// SHA-256 of everything one after the other.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    hashv(parts).to_bytes()
}

/// One instruction.
pub struct Instruction<'a> {
    pub entrypoint: Entrypoint,
    pub program: Key,
    /// Every account once, in the order in which they first appear.
    accounts: Vec<Account>,
    /// For each account the instruction is given, its index in `accounts`: an account may come twice.
    slots: Vec<usize>,
    pub data: &'a [u8],
    /// What the owner program does when it is called.
    pub restore: Restore,
}

impl<'a> Instruction<'a> {
    /// An instruction that is given `all[i]` for each `i` of `choice`.
    pub fn new(
        entrypoint: Entrypoint,
        program: Key,
        mut all: Vec<Account>,
        choice: &[usize],
        data: &'a [u8],
    ) -> Self {
        let mut order = Vec::new();
        let mut slots = Vec::new();
        for index in choice {
            let slot = order.iter().position(|seen| seen == index).unwrap_or_else(|| {
                order.push(*index);
                order.len() - 1
            });
            slots.push(slot);
        }
        let accounts = order.iter().map(|index| mem::take(&mut all[*index])).collect();
        Self { entrypoint, program, accounts, slots, data, restore: Restore::Copy }
    }
}

/// What an instruction came to.
#[derive(Debug)]
pub struct Outcome {
    /// Zero if the program accepted.
    pub code: u64,
    /// Whether the runtime or a called program would have refused what it did, and the whole transaction with it.
    pub refused: bool,
    before: Rc<Vec<Account>>,
    after: Rc<Vec<Account>>,
    slots: Vec<usize>,
}

impl Outcome {
    /// The account in a slot before the instruction.
    pub fn before(&self, slot: usize) -> &Account {
        &self.before[self.slots[slot]]
    }

    /// The account in a slot after the instruction.
    pub fn after(&self, slot: usize) -> &Account {
        &self.after[self.slots[slot]]
    }

    /// Whether an account that is none of the given slots' was changed.
    pub fn others_changed(&self, slots: &[usize]) -> bool {
        let given: Vec<usize> = slots.iter().map(|slot| self.slots[*slot]).collect();
        (0..self.before.len()).any(|index| !given.contains(&index) && self.before[index] != self.after[index])
    }

    /// Whether the instruction's changes last.
    pub fn accepted(&self) -> bool {
        self.code == 0 && !self.refused
    }
}

/// The instruction that runs on this thread: what a call to another program needs to know of it.
struct Running {
    program: Key,
    /// Where each account's header is, its length at the start, and the accounts as they were when last compared.
    headers: Vec<*mut RuntimeAccount>,
    lens: Vec<usize>,
    baseline: Rc<Vec<Account>>,
    restore: Restore,
    refused: bool,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// Runs an instruction.
///
/// # Panics
/// If the program panics, if it touches what lies between the accounts, or if it accepts although the runtime would not
/// let its changes pass.
pub fn run(instruction: Instruction) -> Outcome {
    pinocchio::host::set_call(call);
    let before = Rc::new(instruction.accounts);
    let (mut input, offsets) = serialize(&before, &instruction.slots);
    let start = input.as_mut_ptr().cast::<u8>();
    // SAFETY: the offsets lie in the buffer.
    let headers: Vec<*mut RuntimeAccount> =
        offsets.iter().map(|at| unsafe { start.add(*at).cast() }).collect();
    RUNNING.set(Some(Running {
        program: instruction.program,
        headers,
        lens: before.iter().map(|account| account.data.len()).collect(),
        baseline: Rc::clone(&before),
        restore: instruction.restore,
        refused: false,
    }));
    let data = instruction_data(instruction.data, &instruction.program);
    // SAFETY: both buffers are what the runtime passes, and live until after the call.
    let code = unsafe { (instruction.entrypoint)(start, data.as_ptr().cast::<u8>().add(8)) };
    let mut running = RUNNING.take().expect("set above");
    let after = running.read();
    if code == 0 {
        running.compare(&after);
    }
    Outcome { code, refused: running.refused, before, after, slots: instruction.slots }
}

/// Where the runtime writes behind an account, counted from its header.
fn end(account_len: usize) -> usize {
    (HEADER_LEN + account_len + MAX_PERMITTED_DATA_INCREASE).next_multiple_of(8)
}

/// The accounts as the runtime serializes them, 8-byte aligned, and where the headers are.
fn serialize(accounts: &[Account], slots: &[usize]) -> (Vec<u64>, Vec<usize>) {
    let len = 8 + 8 * slots.len() + accounts.iter().map(|account| end(account.data.len())).sum::<usize>();
    let mut words = vec![0u64; len / 8];
    words[0] = slots.len() as u64;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let mut offsets = Vec::new();
    let mut at = 8;
    for (slot, index) in slots.iter().enumerate() {
        if *index < offsets.len() {
            let first = slots.iter().position(|other| other == index).unwrap_or(slot);
            bytes[at] = first as u8;
            at += 8;
            continue;
        }
        let account = &accounts[*index];
        let record = &mut bytes[at..];
        record[0] = u8::MAX;
        record[1..4].copy_from_slice(&[account.signer, account.writable, account.executable].map(u8::from));
        record[8..40].copy_from_slice(&account.address);
        record[40..72].copy_from_slice(&account.owner);
        record[72..80].copy_from_slice(&account.lamports.to_le_bytes());
        record[80..88].copy_from_slice(&(account.data.len() as u64).to_le_bytes());
        record[88..88 + account.data.len()].copy_from_slice(&account.data);
        let end = end(account.data.len());
        record[end..end + 8].copy_from_slice(&RENT_EPOCH.to_le_bytes());
        offsets.push(at);
        at += end + 8;
    }
    (words, offsets)
}

/// `[length][data][program id]`, in an allocation of its own, whose end AddressSanitizer watches.
fn instruction_data(data: &[u8], program: &Key) -> Vec<u64> {
    let mut words = vec![0u64; (8 + data.len() + 32).div_ceil(8)];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    bytes[..8].copy_from_slice(&(data.len() as u64).to_le_bytes());
    bytes[8..8 + data.len()].copy_from_slice(data);
    bytes[8 + data.len()..8 + data.len() + 32].copy_from_slice(program);
    words
}

impl Running {
    /// The accounts as they are now.
    fn read(&self) -> Rc<Vec<Account>> {
        let read = |index: usize| {
            let header = self.headers[index];
            // SAFETY: the header and the account behind it are in the buffer, and no reference to them is alive.
            let (view, data, rent_epoch) = unsafe {
                let len = (*header).data_len as usize;
                let room = self.lens[index] + MAX_PERMITTED_DATA_INCREASE;
                assert!(len <= room, "account {index} has {len} bytes and room for {room}");
                let data = header.add(1).cast::<u8>();
                let rent_epoch = data.sub(HEADER_LEN).add(end(self.lens[index])).cast::<u64>();
                (&*header, std::slice::from_raw_parts(data, len), *rent_epoch)
            };
            assert_eq!(rent_epoch, RENT_EPOCH, "something was written behind account {index}");
            Account {
                address: view.address.to_bytes(),
                owner: view.owner.to_bytes(),
                lamports: view.lamports,
                data: data.to_vec(),
                signer: view.is_signer != 0,
                writable: view.is_writable != 0,
                executable: view.executable != 0,
            }
        };
        Rc::new((0..self.headers.len()).map(read).collect())
    }

    /// Applies the runtime's rules to what the program has changed since the last comparison.
    fn compare(&mut self, now: &Rc<Vec<Account>>) {
        if self.refused {
            return;
        }
        let total =
            |accounts: &[Account]| accounts.iter().map(|account| u128::from(account.lamports)).sum::<u128>();
        assert_eq!(total(&self.baseline), total(now), "lamports were made or lost");
        for (old, new) in self.baseline.iter().zip(now.iter()) {
            let fixed =
                |account: &Account| (account.address, account.signer, account.writable, account.executable);
            assert_eq!(fixed(old), fixed(new), "the head of an account was changed");
            let owned = old.owner == self.program;
            if old != new {
                assert!(!old.executable, "a program was changed");
                // The programs leave this check to the runtime.
                self.refused |= !old.writable;
            }
            assert!(
                old.lamports <= new.lamports || owned,
                "lamports were taken from another program's account"
            );
            assert!(old.data == new.data || owned, "another program's account was written to");
            assert!(new.data.len() <= MAX_LEN, "an account is too long");
            if old.owner != new.owner {
                assert!(owned, "another program's account was given away");
                assert!(new.data.iter().all(|byte| *byte == 0), "an account was given away with data in it");
            }
        }
        self.baseline = Rc::clone(now);
    }
}

/// Answers a call of the running program.
fn call(instruction: &InstructionView, accounts: &[CpiAccount], signers: &[Signer]) {
    RUNNING.with_borrow_mut(|running| {
        let running = running.as_mut().expect("an instruction is running");
        let now = running.read();
        running.compare(&now);
        callee::call(running, instruction, accounts.len(), signers);
        running.baseline = running.read();
    });
}
