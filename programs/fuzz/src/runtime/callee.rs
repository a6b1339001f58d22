//! The programs that are called: the system program, and an owner program.

use pinocchio::cpi::Signer;
use pinocchio::instruction::InstructionView;

use super::{HEADER_LEN, Key, Running, SYSTEM, key, sha256};

/// What the owner program does with an account that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    /// Takes the state from where it is told to.
    Copy,
    /// Nothing.
    Nothing,
    /// Gives the empty account away at once.
    GiveAway,
}

/// An account of a call: its index in the instruction and what the call asks for.
struct Meta {
    index: usize,
    signer: bool,
    writable: bool,
}

/// Makes the changes of the called program. What the chain would refuse is noted and done all the same, because a
/// refusal never returns to the caller: the rest of its run counts for nothing.
pub(super) fn call(running: &mut Running, instruction: &InstructionView, infos: usize, signers: &[Signer]) {
    let derived: Vec<Key> = signers.iter().map(|signer| signer_address(signer, &running.program)).collect();
    let mut metas = Vec::new();
    for meta in instruction.accounts {
        let address = meta.address.as_array();
        let index = running.baseline.iter().position(|account| account.address == *address);
        let index = index.expect("a call can name only the instruction's own accounts");
        let account = &running.baseline[index];
        let may_sign = account.signer || derived.contains(address);
        assert!(may_sign || !meta.is_signer, "a call has an account sign that did not");
        assert!(account.writable || !meta.is_writable, "a call has a read-only account written to");
        metas.push(Meta { index, signer: meta.is_signer, writable: meta.is_writable });
    }
    assert!(infos >= metas.len(), "a call names accounts that it does not pass");
    if instruction.program_id.as_array() == &SYSTEM {
        system(running, &metas, instruction.data);
    } else {
        restore(running, &metas, instruction.data);
    }
}

fn signer_address(signer: &Signer, program: &Key) -> Key {
    // SAFETY: `Signer` is `repr(C)`: a pointer to seeds and their number, as the system call takes them.
    let seeds = unsafe {
        let (seeds, len) = *std::ptr::from_ref(signer).cast::<(*const pinocchio::cpi::Seed, u64)>();
        std::slice::from_raw_parts(seeds, len as usize)
    };
    let mut parts: Vec<&[u8]> = seeds.iter().map(|seed| &**seed).collect();
    parts.extend([program.as_slice(), b"ProgramDerivedAddress"]);
    sha256(&parts)
}

impl Running {
    fn refuse_unless(&mut self, condition: bool) {
        self.refused |= !condition;
    }

    fn set_owner(&mut self, index: usize, owner: Key) {
        // SAFETY: the header is in the buffer, and no reference to it is alive.
        unsafe { (*self.headers[index]).owner = owner.into() };
    }

    /// Gives the account `len` zeroes, as far as there is room for them.
    fn allocate(&mut self, index: usize, len: usize) {
        let room = self.lens[index] + super::MAX_PERMITTED_DATA_INCREASE;
        self.refuse_unless(len <= room);
        let len = len.min(room);
        // SAFETY: as in `set_owner`; the account has this much room.
        unsafe {
            (*self.headers[index]).data_len = len as u64;
            self.headers[index].cast::<u8>().add(HEADER_LEN).write_bytes(0, len);
        }
    }

    fn transfer(&mut self, from: usize, to: usize, lamports: u64) {
        let (payer, receiver) = (&self.baseline[from], &self.baseline[to]);
        let left = payer.lamports.checked_sub(lamports);
        let total = receiver.lamports.checked_add(lamports);
        let allowed =
            payer.owner == SYSTEM && payer.data.is_empty() && left.is_some() && total.is_some() && from != to;
        self.refuse_unless(allowed);
        // SAFETY: as in `set_owner`.
        unsafe {
            (*self.headers[from]).lamports = left.unwrap_or(0);
            (*self.headers[to]).lamports = total.unwrap_or(u64::MAX);
        }
    }
}

/// The four instructions of the system program that pinocchio calls to create an account.
fn system(running: &mut Running, metas: &[Meta], data: &[u8]) {
    let number = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"));
    let address = |at: usize| -> Key { data[at..at + 32].try_into().expect("an address") };
    let known = running.baseline.iter().any(|account| account.address == SYSTEM);
    running.refuse_unless(known && metas[0].signer && metas[0].writable);
    let is_new = |running: &Running, index: usize| {
        running.baseline[index].owner == SYSTEM && running.baseline[index].data.is_empty()
    };
    match data[0] {
        0 => {
            let (from, to) = (metas[0].index, metas[1].index);
            let allowed = is_new(running, to) && running.baseline[to].lamports == 0;
            running.refuse_unless(allowed && metas[1].signer && metas[1].writable);
            running.transfer(from, to, number(4));
            running.allocate(to, number(12) as usize);
            running.set_owner(to, address(20));
        }
        1 => {
            running.refuse_unless(running.baseline[metas[0].index].owner == SYSTEM);
            running.set_owner(metas[0].index, address(4));
        }
        2 => {
            running.refuse_unless(metas[1].writable);
            running.transfer(metas[0].index, metas[1].index, number(4));
        }
        8 => {
            running.refuse_unless(is_new(running, metas[0].index));
            running.allocate(metas[0].index, number(4) as usize);
        }
        other => panic!("instruction {other} of the system program"),
    }
}

/// `restore_delegated` of an owner program, as the crate `delegation-cpi` writes it.
fn restore(running: &mut Running, metas: &[Meta], data: &[u8]) {
    let [account, record, source] = [metas[0].index, metas[1].index, metas[2].index];
    assert_eq!(data[..8], [165, 46, 84, 24, 33, 139, 162, 205], "not the discriminator of restore_delegated");
    assert!(metas[0].writable && !metas[0].signer && metas[1].signer && !metas[2].signer);
    // Index 0 is the authority, whatever else it is.
    assert!(
        metas[3..].iter().all(|meta| meta.index != 0 || !meta.signer),
        "the authority signs for the owner program"
    );
    let before = &running.baseline[account];
    assert_ne!(running.baseline[record].address, before.address);
    assert!(before.data.iter().all(|byte| *byte == 0), "the account comes back with data in it");
    let number = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes")) as usize;
    let (offset, len) = (number(8), number(12));
    let state = running.baseline[source].data[offset..offset + len].to_vec();
    match running.restore {
        Restore::Copy => {
            running.allocate(account, len);
            // SAFETY: as in `allocate`, which has made the account this long.
            unsafe {
                let to = running.headers[account].cast::<u8>().add(HEADER_LEN);
                to.copy_from_nonoverlapping(state.as_ptr(), len.min(state.len()));
            }
        }
        Restore::Nothing => {}
        Restore::GiveAway => running.set_owner(account, key(0xee)),
    }
}
