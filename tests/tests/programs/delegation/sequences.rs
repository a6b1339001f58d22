//! Random sequences of instructions on one delegated account, against a model of it.

use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address,
    delegation::{self, DelegationError},
    digest::payload_digest,
};
use committor_tests::{
    BufferBytes, MAX_STATE_LEN, PATCH, Reason, RecordBytes, STATE, World, landed, patch, pattern,
    proptest_config,
};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any},
    prop_assert_eq, prop_oneof, proptest,
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_system_interface::instruction as system;

/// Length of the account at the start.
const LEN: usize = 100;
/// Most bytes that an account grows by in one instruction.
const MAX_GROWTH: usize = 10_240;

/// What a commit says about itself.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// How far the nonce is from the right one.
    nonce: i64,
    /// One of few, so that some are those of the last commit.
    commit_id: u64,
    /// Whether the session is the right one.
    session: bool,
}

/// What a sequence consists of.
#[derive(Clone, Debug)]
enum Step {
    Commit {
        named: Named,
        len: usize,
        salt: u8,
    },
    CommitPatch {
        named: Named,
        patch: Vec<u8>,
    },
    CommitBuffer {
        named: Named,
        buffer: usize,
        kind: u8,
    },
    Stage {
        named: Named,
        buffer: usize,
        kind: u8,
    },
    Finalize {
        buffer: usize,
    },
    /// Finalize the buffer that is staged.
    FinalizeStaged,
    Unstage,
    Grow {
        len: u32,
    },
    Withdraw {
        lamports: u64,
    },
    /// Withdraw all that can be.
    WithdrawAll,
    /// A transfer by somebody.
    Deposit {
        lamports: u64,
    },
    /// To one of the two, or to nobody.
    SetAuthority {
        to: Option<usize>,
    },
    /// The other one of the two authorities sends the next instruction.
    ByTheOther,
}

fn named() -> impl Strategy<Value = Named> {
    let nonce = prop_oneof![8 => Just(0i64), 1 => Just(-1i64), 1 => -3..3i64];
    let session = prop_oneof![15 => Just(true), 1 => Just(false)];
    (nonce, 0..3u64, session).prop_map(|(nonce, commit_id, session)| Named { nonce, commit_id, session })
}

fn ranges() -> impl Strategy<Value = Vec<u8>> {
    let range = (0..160u32, vec(any::<u8>(), 0..20));
    let new_len = prop_oneof![10 => 90..130usize, 4 => 0..200usize, 1 => 10_000..21_000usize, 1 => Just(u32::MAX as usize)];
    // Most of them in order, some cut short.
    (new_len, vec(range, 0..5), any::<u8>(), 0..12usize).prop_map(|(new_len, mut ranges, order, cut)| {
        if order > 30 {
            ranges.sort_by_key(|(offset, _)| *offset);
        }
        let ranges: Vec<(u32, &[u8])> =
            ranges.iter().map(|(offset, bytes)| (*offset, bytes.as_slice())).collect();
        let mut patch = patch(new_len, &ranges);
        if order.is_multiple_of(8) {
            patch.truncate(patch.len().saturating_sub(cut));
        }
        patch
    })
}

fn step() -> impl Strategy<Value = Step> {
    let kind = || prop_oneof![6 => Just(STATE), 6 => Just(PATCH), 1 => 2..=255u8];
    let buffer = || 0..BUFFERS;
    let lamports = || prop_oneof![4 => 0..3_000_000u64, 2 => 0..100_000_000u64, 1 => any::<u64>()];
    prop_oneof![
        6 => (named(), 0..400usize, any::<u8>()).prop_map(|(named, len, salt)| Step::Commit { named, len, salt }),
        10 => (named(), ranges()).prop_map(|(named, patch)| Step::CommitPatch { named, patch }),
        6 => (named(), buffer(), kind()).prop_map(|(named, buffer, kind)| Step::CommitBuffer { named, buffer, kind }),
        6 => (named(), buffer(), kind()).prop_map(|(named, buffer, kind)| Step::Stage { named, buffer, kind }),
        1 => buffer().prop_map(|buffer| Step::Finalize { buffer }),
        5 => Just(Step::FinalizeStaged),
        4 => Just(Step::Unstage),
        3 => prop_oneof![0..500u32, 0..30_000u32, any::<u32>()].prop_map(|len| Step::Grow { len }),
        3 => lamports().prop_map(|lamports| Step::Withdraw { lamports }),
        1 => Just(Step::WithdrawAll),
        4 => (0..200_000_000u64).prop_map(|lamports| Step::Deposit { lamports }),
        3 => prop_oneof![4 => (0..2usize).prop_map(Some), 1 => Just(None)].prop_map(|to| Step::SetAuthority { to }),
        2 => Just(Step::ByTheOther),
    ]
}

/// Number of [`buffers`].
const BUFFERS: usize = 10;

/// Sealed buffers of both authorities: states of several lengths, and patches of which some do not fit.
fn buffers(authorities: [Address; 2]) -> Vec<(usize, Vec<u8>)> {
    let payloads = [
        Vec::new(),
        pattern(130, 3),
        pattern(10_300, 4),
        patch(110, &[(0, &[1, 2, 3]), (50, &[4]), (109, &[5])]),
        patch(10, &[(5, &[6, 6]), (9, &[7, 7])]),
    ];
    let all: Vec<_> = (0..authorities.len())
        .flat_map(|authority| payloads.iter().map(move |payload| (authority, payload.clone())))
        .collect();
    assert_eq!(all.len(), BUFFERS);
    all
}

/// What is staged.
#[derive(Clone, Debug)]
struct Staged {
    buffer: usize,
    kind: u8,
    nonce: u64,
    commit_id: u64,
}

/// A delegated account and its record, in plain words.
#[derive(Clone, Debug)]
struct Model {
    state: Vec<u8>,
    lamports: u64,
    /// Which one of the two.
    authority: usize,
    nonce: u64,
    commit_id: u64,
    staged: Option<Staged>,
}

type Checked = Result<(), Reason>;

fn demand(condition: bool, error: DelegationError) -> Checked {
    if condition { Ok(()) } else { Err(error.into()) }
}

impl Model {
    fn nonce(&self, named: Named) -> u64 {
        (self.nonce + 1).saturating_add_signed(named.nonce)
    }

    fn check(&self, signer: usize) -> Checked {
        demand(signer == self.authority, DelegationError::WrongAuthority)
    }

    fn check_next(&self, named: Named) -> Checked {
        let nonce = self.nonce(named);
        demand(named.session, DelegationError::WrongSession)?;
        demand(self.staged.is_none(), DelegationError::AlreadyStaged)?;
        let last = nonce > 0 && (nonce, named.commit_id) == (self.nonce, self.commit_id);
        demand(!last, DelegationError::AlreadyApplied)?;
        demand(nonce == self.nonce + 1, DelegationError::WrongNonce)
    }

    fn resize(&mut self, len: usize, rent: &dyn Fn(usize) -> u64) -> Checked {
        let old = self.state.len();
        if len > old {
            demand(len <= MAX_STATE_LEN, DelegationError::TooLarge)?;
            demand(len - old <= MAX_GROWTH, DelegationError::TooMuchGrowth)?;
            demand(self.lamports >= rent(len), DelegationError::NotRentExempt)?;
        }
        self.state.resize(len, 0);
        Ok(())
    }

    fn apply(&mut self, kind: u8, payload: &[u8], rent: &dyn Fn(usize) -> u64) -> Checked {
        match kind {
            STATE => {
                self.resize(payload.len(), rent)?;
                self.state = payload.to_vec();
                Ok(())
            }
            PATCH => {
                let (new_len, mut rest) =
                    payload.split_first_chunk::<4>().ok_or(DelegationError::MalformedPatch)?;
                self.resize(u32::from_le_bytes(*new_len) as usize, rent)?;
                let mut next = 0;
                while !rest.is_empty() {
                    let (offset, tail) =
                        rest.split_first_chunk::<4>().ok_or(DelegationError::MalformedPatch)?;
                    let (len, tail) = tail.split_first_chunk::<4>().ok_or(DelegationError::MalformedPatch)?;
                    let [offset, len] = [*offset, *len].map(|bytes| u32::from_le_bytes(bytes) as usize);
                    demand(len <= tail.len(), DelegationError::MalformedPatch)?;
                    let (bytes, tail) = tail.split_at(len);
                    demand(offset >= next, DelegationError::PatchOutOfOrder)?;
                    demand(offset + len <= self.state.len(), DelegationError::PatchOutOfBounds)?;
                    self.state[offset..offset + len].copy_from_slice(bytes);
                    next = offset + len;
                    rest = tail;
                }
                Ok(())
            }
            _ => Err(DelegationError::UnknownKind.into()),
        }
    }
}

/// The virtual machine with what a sequence acts on.
struct Scene {
    world: World,
    account: Address,
    authorities: [Address; 2],
    buffers: Vec<(usize, Vec<u8>)>,
    addresses: Vec<Address>,
    receiver: Address,
    /// Which of the two authorities signs.
    signer: usize,
}

impl Scene {
    fn new() -> (Self, Model) {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(LEN, 1));
        let authorities = [world.authority, world.signer("other authority")];
        let receiver = world.signer("receiver");
        let buffers = buffers(authorities);
        let addresses = buffers
            .iter()
            .enumerate()
            .map(|(index, (authority, payload))| {
                let sealed = BufferBytes::sealed(authorities[*authority], payload.clone(), 1_000);
                world.forge_buffer(&index.to_string(), &sealed)
            })
            .collect();
        let lamports = world.lamports(&account);
        let model =
            Model { state: pattern(LEN, 1), lamports, authority: 0, nonce: 0, commit_id: 0, staged: None };
        (Self { world, account, authorities, buffers, addresses, receiver, signer: 0 }, model)
    }

    /// The record that the model describes.
    fn record(&self, model: &Model) -> Vec<u8> {
        let mut record = RecordBytes {
            authority: self.authorities[model.authority],
            nonce: model.nonce,
            commit_id: model.commit_id,
            ..self.world.record_bytes(self.account)
        };
        if let Some(staged) = &model.staged {
            record.staged_buffer = self.addresses[staged.buffer];
            record.staged_digest = payload_digest(&self.buffers[staged.buffer].1);
            record.staged_len = self.buffers[staged.buffer].1.len() as u32;
            record.staged_nonce = staged.nonce;
            record.staged_commit_id = staged.commit_id;
            record.staged_kind = staged.kind;
        }
        record.data()
    }

    /// Why a buffer is not one of the account's authority, if it is not.
    fn own(&self, model: &Model, buffer: usize) -> Checked {
        demand(self.buffers[buffer].0 == model.authority, DelegationError::ForeignBuffer)
    }

    /// The instruction of a step, and what it does to the model.
    fn run(&self, step: &Step, model: &mut Model) -> (Instruction, Checked) {
        let (world, account, authority) = (&self.world, self.account, self.authorities[self.signer]);
        let record = address::record(&account);
        let rent = |len| world.rent(len);
        let right = world.session(account);
        let session = |named: Named| if named.session { right } else { right + 1 };
        let was = model.clone();
        let commit_id = |named: Named| named.commit_id;
        let mut commit = |named: Named, kind: u8, payload: &[u8], fit: Checked| {
            was.check(self.signer)?;
            was.check_next(named)?;
            fit?;
            model.apply(kind, payload, &rent)?;
            (model.nonce, model.commit_id) = (was.nonce + 1, named.commit_id);
            Ok(())
        };
        match step {
            Step::Commit { named, len, salt } => {
                let data = pattern(*len, *salt);
                let accounts = delegation::Commit { authority, account, record };
                let args = delegation::CommitArgs {
                    session: session(*named),
                    nonce: was.nonce(*named),
                    commit_id: commit_id(*named),
                    data: &data,
                };
                (accounts.instruction(args), commit(*named, STATE, &data, Ok(())))
            }
            Step::CommitPatch { named, patch } => {
                let accounts = delegation::CommitPatch { authority, account, record };
                let args = delegation::CommitPatchArgs {
                    session: session(*named),
                    nonce: was.nonce(*named),
                    commit_id: commit_id(*named),
                    patch,
                };
                (accounts.instruction(args), commit(*named, PATCH, patch, Ok(())))
            }
            Step::CommitBuffer { named, buffer, kind } => {
                let accounts =
                    delegation::CommitBuffer { authority, account, record, buffer: self.addresses[*buffer] };
                let args = delegation::CommitBufferArgs {
                    session: session(*named),
                    nonce: was.nonce(*named),
                    commit_id: commit_id(*named),
                    kind: *kind,
                };
                let fit = self.own(&was, *buffer);
                (accounts.instruction(args), commit(*named, *kind, &self.buffers[*buffer].1, fit))
            }
            Step::Stage { named, buffer, kind } => {
                let accounts =
                    delegation::Stage { authority, account, record, buffer: self.addresses[*buffer] };
                let args = delegation::StageArgs {
                    session: session(*named),
                    nonce: was.nonce(*named),
                    commit_id: commit_id(*named),
                    kind: *kind,
                };
                let checked = was
                    .check(self.signer)
                    .and_then(|()| was.check_next(*named))
                    .and_then(|()| demand(*kind <= PATCH, DelegationError::UnknownKind))
                    .and_then(|()| self.own(&was, *buffer));
                let (buffer, kind, nonce, commit_id) = (*buffer, *kind, was.nonce(*named), named.commit_id);
                model.staged = Some(Staged { buffer, kind, nonce, commit_id });
                (accounts.instruction(args), checked)
            }
            Step::Finalize { .. } | Step::FinalizeStaged => {
                let buffer = match step {
                    Step::Finalize { buffer } => *buffer,
                    _ => was.staged.as_ref().map_or(0, |staged| staged.buffer),
                };
                let accounts =
                    delegation::Finalize { authority, account, record, buffer: self.addresses[buffer] };
                (accounts.instruction(), self.finalize(model, buffer))
            }
            Step::Unstage => {
                let checked = was
                    .check(self.signer)
                    .and_then(|()| demand(was.staged.is_some(), DelegationError::NothingStaged));
                model.staged = None;
                (delegation::Unstage { authority, account, record }.instruction(), checked)
            }
            Step::Grow { len } => {
                let accounts = delegation::Grow { authority, account, record };
                let (old, wanted) = (was.state.len(), *len as usize);
                let checked = was
                    .check(self.signer)
                    .and_then(|()| demand(wanted <= MAX_STATE_LEN, DelegationError::TooLarge))
                    .and_then(|()| model.resize(wanted.min(old + MAX_GROWTH).max(old), &rent));
                (accounts.instruction(delegation::GrowArgs { len: *len }), checked)
            }
            Step::Withdraw { .. } | Step::WithdrawAll => {
                let spare = was.lamports - world.rent(was.state.len());
                let lamports = if let Step::Withdraw { lamports } = step { *lamports } else { spare };
                let accounts = delegation::Withdraw { authority, account, record, receiver: self.receiver };
                let checked = was
                    .check(self.signer)
                    .and_then(|()| demand(lamports <= spare, DelegationError::NotRentExempt));
                model.lamports = was.lamports.saturating_sub(lamports);
                (accounts.instruction(delegation::WithdrawArgs { lamports }), checked)
            }
            Step::SetAuthority { to } => {
                let heir = to.map_or(Address::default(), |to| self.authorities[to]);
                let accounts = delegation::SetAuthority { authority, account, record };
                let checked = was
                    .check(self.signer)
                    .and_then(|()| demand(to.is_some(), DelegationError::ZeroAuthority))
                    .and_then(|()| demand(was.staged.is_none(), DelegationError::AlreadyStaged));
                model.authority = to.unwrap_or_default();
                (accounts.instruction(delegation::SetAuthorityArgs { authority: heir }), checked)
            }
            Step::Deposit { lamports } => {
                model.lamports += lamports;
                (system::transfer(&world.payer, &account, *lamports), Ok(()))
            }
            Step::ByTheOther => unreachable!("no instruction"),
        }
    }

    fn finalize(&self, model: &mut Model, buffer: usize) -> Checked {
        model.check(self.signer)?;
        let staged = model.staged.take().ok_or(DelegationError::NothingStaged)?;
        demand(staged.buffer == buffer, DelegationError::WrongBuffer)?;
        self.own(model, buffer)?;
        model.apply(staged.kind, &self.buffers[buffer].1, &|len| self.world.rent(len))?;
        (model.nonce, model.commit_id) = (staged.nonce, staged.commit_id);
        Ok(())
    }
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn any_sequence_of_instructions_does_what_the_model_does(steps in vec(step(), 1..60)) {
        let (mut scene, mut model) = Scene::new();
        let record = address::record(&scene.account);
        let record_lamports = scene.world.lamports(&record);
        for step in steps {
            if matches!(step, Step::ByTheOther) {
                scene.signer = 1 - model.authority;
                continue;
            }
            let received = scene.world.lamports(&scene.receiver);
            let mut next = model.clone();
            let (instruction, expected) = scene.run(&step, &mut next);
            let outcome = scene.world.send(&[instruction]).map(drop).map_err(|failure| failure.reason);
            prop_assert_eq!(&outcome, &expected, "{:?}", step);
            let old_lamports = model.lamports;
            if expected.is_ok() {
                model = next;
            }
            let account = scene.world.account(&scene.account).unwrap();
            prop_assert_eq!((account.owner, account.lamports), (delegation::ID, model.lamports));
            prop_assert_eq!(&account.data, &model.state);
            prop_assert_eq!(scene.world.data(&record), scene.record(&model));
            prop_assert_eq!(scene.world.lamports(&record), record_lamports);
            let withdrawn = old_lamports.saturating_sub(model.lamports);
            prop_assert_eq!(scene.world.lamports(&scene.receiver), received + withdrawn);
            scene.signer = model.authority;
        }
        // Whatever happened, the account comes back.
        scene.world.authority = scene.authorities[model.authority];
        if model.staged.is_some() {
            landed(scene.world.send(&[scene.world.unstage(scene.account)]));
        }
        if model.state.len() > MAX_GROWTH {
            let reserve = delegation::Reserve { payer: scene.world.authority, account: scene.account, record };
            let reserve = reserve.instruction(delegation::ReserveArgs { len: model.state.len() as u32 });
            let calls = (model.state.len() - 1) / MAX_GROWTH;
            let instructions: Vec<_> = std::iter::repeat_n(reserve, calls).chain([scene.world.undelegate(scene.account)]).collect();
            landed(scene.world.send(&instructions));
        } else {
            landed(scene.world.send(&[scene.world.undelegate(scene.account)]));
        }
        let account = scene.world.account(&scene.account).unwrap();
        prop_assert_eq!((account.owner, account.lamports), (OWNER_PROGRAM_ID, model.lamports));
        prop_assert_eq!(&account.data, &model.state);
        prop_assert_eq!(scene.world.account(&record), None);
    }
}
