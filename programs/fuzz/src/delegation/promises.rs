//! What must be so after an instruction that the program has accepted.

use anchor_lang::Discriminator as _;
use chunk_buffer::{Buffer, PAYLOAD_OFFSET, STATE_SEALED};
use delegation::{
    Delegation, ID, KIND_STATE, MAX_GROWTH, PDA_MARKER, STATE_DELEGATED, STATE_OFFSET, STATE_PENDING, VERSION,
};

use super::{ACCOUNT, Plan, RECORD, SIGNER, record_address};
use crate::input::Input;
use crate::patch;
use crate::runtime::{Account, Key, Outcome, SYSTEM, rent, sha256};

/// The header of a record that the program has made for `account`; all else about it must be valid.
fn header(record: &Account, account: &Account) -> Delegation {
    assert_eq!(
        record.address,
        record_address(&account.address).0,
        "a record at another address was accepted"
    );
    assert_eq!(record.owner, *ID.as_array());
    assert_eq!(&record.data[..8], Delegation::DISCRIMINATOR);
    let header: Delegation = bytemuck::pod_read_unaligned(&record.data[8..STATE_OFFSET]);
    assert_eq!(header.account.to_bytes(), account.address);
    assert_eq!((header.version, header.bump), (VERSION, record_address(&account.address).1));
    if header.is_staged() {
        assert_eq!(Some(header.staged_nonce), header.nonce.checked_add(1));
        assert_eq!(header.state, STATE_DELEGATED);
        assert!(header.staged_kind <= delegation::KIND_PATCH);
    } else {
        assert_same(&header, &forget_staged(header));
    }
    header
}

fn assert_same(header: &Delegation, expected: &Delegation) {
    assert_eq!(bytemuck::bytes_of(header), bytemuck::bytes_of(expected), "{header:?}\nis not\n{expected:?}");
}

/// What a commit names, in instruction data.
struct Commit {
    session: u64,
    nonce: u64,
    commit_id: u64,
}

impl Commit {
    fn read(args: &mut Input) -> Self {
        Self { session: args.u64(), nonce: args.u64(), commit_id: args.u64() }
    }

    /// The header after this commit, which must be the next one.
    fn applied_to(&self, header: Delegation) -> Delegation {
        assert_eq!(self.session, header.session);
        assert_eq!(Some(self.nonce), header.nonce.checked_add(1));
        assert!(!header.is_staged());
        Delegation { nonce: self.nonce, commit_id: self.commit_id, ..header }
    }
}

/// The payload of a buffer that must be sealed and the signer's.
fn sealed(buffer: &Account) -> (&[u8], [u8; 32]) {
    assert_eq!(buffer.owner, *chunk_buffer::ID.as_array());
    let header: Buffer = bytemuck::pod_read_unaligned(&buffer.data[8..PAYLOAD_OFFSET]);
    assert_eq!((header.state, header.authority.to_bytes()), (STATE_SEALED, SIGNER));
    (&buffer.data[PAYLOAD_OFFSET..PAYLOAD_OFFSET + header.payload_len as usize], header.digest)
}

/// Checks the promises of an accepted instruction.
pub(super) fn accepted(outcome: &Outcome, data: &[u8], plan: &Plan) {
    let mut args = Input(&data[1..]);
    let args = &mut args;
    let (signer, account, record) = (outcome.before(0), outcome.before(ACCOUNT), outcome.before(RECORD));
    let (new_account, new_record) = (outcome.after(ACCOUNT), outcome.after(RECORD));
    assert!(signer.signer);
    if data[0] <= 3 {
        return changes_hands(outcome, data[0], args, plan);
    }
    let before = header(record, account);
    assert_eq!((before.state, before.authority.to_bytes()), (STATE_DELEGATED, SIGNER), "not the authority's");
    if data[0] == 9 || data[0] == 10 {
        return undelegated(outcome, &before, data[0], args, plan);
    }
    let after = header(new_record, account);
    assert_eq!((new_record.lamports, new_record.data.len()), (record.lamports, record.data.len()));
    let mut state = account.data.clone();
    let mut lamports = account.lamports;
    let expected = match data[0] {
        4 => {
            let len = (args.u32() as usize).min(state.len() + MAX_GROWTH).max(state.len());
            state.resize(len, 0);
            before
        }
        5 => {
            let commit = Commit::read(args);
            state = args.slice().expect("a whole state").to_vec();
            commit.applied_to(before)
        }
        6 => {
            let commit = Commit::read(args);
            apply(&mut state, sealed(outcome.before(3)).0, args.u8());
            commit.applied_to(before)
        }
        7 => {
            let commit = Commit::read(args);
            let next = commit.applied_to(before);
            Delegation {
                staged_buffer: outcome.before(3).address.into(),
                staged_digest: sealed(outcome.before(3)).1,
                staged_len: sealed(outcome.before(3)).0.len() as u32,
                staged_nonce: next.nonce,
                staged_commit_id: next.commit_id,
                staged_kind: args.u8(),
                ..before
            }
        }
        8 => {
            let (payload, digest) = sealed(outcome.before(3));
            assert_eq!((before.staged_digest, before.staged_len), (digest, payload.len() as u32));
            assert_eq!(before.staged_buffer.to_bytes(), outcome.before(3).address);
            apply(&mut state, payload, before.staged_kind);
            unstaged(Delegation { nonce: before.staged_nonce, commit_id: before.staged_commit_id, ..before })
        }
        11 => {
            let commit = Commit::read(args);
            apply(&mut state, args.slice().expect("a whole patch"), delegation::KIND_PATCH);
            commit.applied_to(before)
        }
        12 => unstaged(before),
        13 => {
            assert!(!before.is_staged());
            let authority = args.array();
            assert_ne!(authority, [0; 32]);
            Delegation { authority: authority.into(), ..before }
        }
        14 => {
            let amount = args.u64();
            assert_eq!(account.owner, *ID.as_array());
            if outcome.before(3).address != account.address {
                assert_eq!(outcome.after(3).lamports, outcome.before(3).lamports + amount);
            }
            lamports -= amount;
            assert!(lamports >= rent(state.len()), "not rent exempt");
            before
        }
        other => panic!("instruction {other} does not exist"),
    };
    assert_same(&after, &expected);
    assert!(new_account.data == state, "the account's state is another one");
    assert_eq!((new_account.lamports, new_account.owner), (lamports, account.owner));
    if state.len() > account.data.len() {
        assert!(lamports >= rent(state.len()), "not rent exempt");
    }
    let touched: &[usize] = if data[0] == 14 { &[ACCOUNT, RECORD, 3] } else { &[ACCOUNT, RECORD] };
    assert!(!outcome.others_changed(touched));
}

/// The state after a payload of either kind.
fn apply(state: &mut Vec<u8>, payload: &[u8], kind: u8) {
    match kind {
        KIND_STATE => *state = payload.to_vec(),
        _ => *state = patch::apply(state, payload).expect("a valid patch"),
    }
}

fn unstaged(header: Delegation) -> Delegation {
    assert!(header.is_staged());
    forget_staged(header)
}

fn forget_staged(header: Delegation) -> Delegation {
    Delegation {
        staged_buffer: [0; 32].into(),
        staged_digest: [0; 32],
        staged_len: 0,
        staged_nonce: 0,
        staged_commit_id: 0,
        staged_kind: KIND_STATE,
        ..header
    }
}

/// `reserve`, `begin_delegate` and `delegate`.
fn changes_hands(outcome: &Outcome, instruction: u8, args: &mut Input, plan: &Plan) {
    let (signer, account, record) = (outcome.before(0), outcome.before(ACCOUNT), outcome.before(RECORD));
    let (new_account, new_record) = (outcome.after(ACCOUNT), outcome.after(RECORD));
    let after = header(new_record, account);
    let existed = record.owner == *ID.as_array();
    let before = if existed {
        header(record, account)
    } else {
        assert!(new_record.lamports >= rent(new_record.data.len()), "not rent exempt");
        Delegation {
            account: account.address.into(),
            rent_payer: signer.address.into(),
            state: STATE_PENDING,
            version: VERSION,
            bump: record_address(&account.address).1,
            ..bytemuck::Zeroable::zeroed()
        }
    };
    match instruction {
        1 => {
            assert_same(&after, &before);
            assert_eq!(new_account, account);
            if before.state == STATE_DELEGATED {
                assert_eq!(before.authority.to_bytes(), SIGNER);
            }
            let (wanted, old_len) = (STATE_OFFSET + args.u32() as usize, record.data.len());
            assert_eq!(new_record.data.len(), wanted.min(old_len + MAX_GROWTH).max(old_len));
        }
        2 => {
            let seeds = args.slice().expect("whole seeds");
            assert_eq!(account.address, sha256(&[seeds, &account.owner, PDA_MARKER]));
            assert!(account.signer && account.owner != *ID.as_array());
            assert_eq!(before.state, STATE_PENDING);
            let expected =
                Delegation { owner_program: account.owner.into(), rent_payer: SIGNER.into(), ..before };
            assert_same(&after, &expected);
            assert_eq!(new_account, account);
            assert!(new_record.data[STATE_OFFSET..].starts_with(&account.data));
            assert!(new_record.lamports >= rent(new_record.data.len()), "not rent exempt");
        }
        3 => {
            assert!(account.signer && account.owner == *ID.as_array());
            assert_eq!((before.state, before.rent_payer.to_bytes()), (STATE_PENDING, SIGNER));
            assert_ne!(before.owner_program.to_bytes(), [0; 32]);
            let authority: Key = args.array();
            assert_ne!(authority, [0; 32]);
            let session = plan.slot.into();
            let expected =
                Delegation { authority: authority.into(), session, state: STATE_DELEGATED, ..before };
            assert_same(&after, &expected);
            assert_eq!(new_record.data.len(), STATE_OFFSET);
            assert!(new_account.data == record.data[STATE_OFFSET..STATE_OFFSET + account.data.len()]);
            assert_eq!(new_account.lamports, account.lamports);
        }
        other => panic!("instruction {other} does not exist"),
    }
    assert!(!outcome.others_changed(&[0, ACCOUNT, RECORD]));
}

/// `undelegate` and `undelegate_buffer`.
fn undelegated(outcome: &Outcome, before: &Delegation, instruction: u8, args: &mut Input, plan: &Plan) {
    let (account, record) = (outcome.before(ACCOUNT), outcome.before(RECORD));
    let (new_account, new_record) = (outcome.after(ACCOUNT), outcome.after(RECORD));
    assert!(!before.is_staged());
    assert_ne!(before.session, u64::from(plan.slot), "undelegated in the slot of the delegation");
    assert_eq!(before.owner_program.to_bytes(), outcome.before(3).address);
    assert_eq!(before.rent_payer.to_bytes(), outcome.before(4).address);
    let state = if instruction == 9 {
        &account.data[..]
    } else {
        Commit::read(args).applied_to(*before);
        sealed(outcome.before(5)).0
    };
    assert_eq!(account.owner, *ID.as_array());
    assert_eq!(
        (new_account.owner, new_account.lamports),
        (before.owner_program.to_bytes(), account.lamports)
    );
    match plan.restore % 3 {
        0 => assert!(new_account.data == state, "the state was lost"),
        1 => assert!(new_account.data.iter().all(|byte| *byte == 0) && new_account.data.len() == state.len()),
        _ => panic!("the owner program kept nothing of the account"),
    }
    assert_eq!((new_record.lamports, new_record.data.len(), new_record.owner), (0, 0, SYSTEM));
    assert_eq!(outcome.after(4).lamports, outcome.before(4).lamports + record.lamports);
    assert!(!outcome.others_changed(&[ACCOUNT, RECORD, 4]));
}
