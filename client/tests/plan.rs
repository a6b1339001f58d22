//! Properties of plans: every byte is written once, every transaction can land, nothing happens before what it needs.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use bytemuck::Zeroable;
use committor_client::{
    plan::{
        AccountFacts, BufferFacts, BundleFacts, BundlePlan, Limit, PlanContext, PlanError,
        PlannedTransaction, Prices, RentSchedule, plan_bundle,
    },
    types::{CommitId, CommitMode, Lamports, Method, Stage, TransactionVersion},
};
use committor_sdk::{
    address, chunk_buffer, delegation,
    digest::{payload_digest, seal_calls},
};
use proptest::prelude::*;
use solana_address::Address;
use solana_hash::Hash;
use solana_instruction::Instruction;

const MAX_GROWTH: usize = 10_240;
const RENT: RentSchedule = RentSchedule { empty_account: Lamports(890_880), per_byte: Lamports(6_960) };

fn key(byte: u8) -> Address {
    Address::new_from_array([byte; 32])
}

fn context(version: TransactionVersion, own_payer: bool) -> PlanContext {
    let authority = key(200);
    PlanContext {
        payer: if own_payer { key(201) } else { authority },
        authority,
        version,
        rent: RENT,
        prices: Prices::default(),
        tables: vec![],
    }
}

fn facts(index: u8, state: Vec<u8>, len: usize, nonce: u64, context: &PlanContext) -> AccountFacts {
    let account = key(index);
    let record = delegation::Delegation {
        account,
        authority: context.authority,
        nonce,
        state: 2,
        version: 1,
        ..delegation::Delegation::zeroed()
    };
    AccountFacts {
        account,
        state: state.into(),
        commit_id: CommitId(7),
        owner: Some(delegation::ID),
        len,
        lamports: RENT.minimum(len as u64),
        record: Some(record),
        base: None,
        buffers: vec![],
    }
}

fn state(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

fn bundle(accounts: Vec<AccountFacts>) -> BundleFacts {
    BundleFacts { mode: CommitMode::Finalize, accounts, actions: vec![], extra_loaded: 0 }
}

fn plan_one(len: usize, version: TransactionVersion, own_payer: bool) -> BundlePlan {
    let context = context(version, own_payer);
    let accounts = vec![facts(1, state(len, 1), len, 0, &context)];
    plan_bundle(&bundle(accounts), &context).unwrap()
}

/// What a plan does to one buffer.
#[derive(Default)]
struct Upload {
    created_in: Option<usize>,
    chunks: BTreeMap<usize, Vec<u8>>,
    seals: Vec<usize>,
    used_in: Option<usize>,
    closed_in: Option<usize>,
}

/// Follows a plan round by round, as the programs would.
#[derive(Default)]
struct Follower {
    uploads: BTreeMap<Address, Upload>,
    grown: BTreeMap<Address, usize>,
    funded: BTreeMap<Address, u64>,
    committed: BTreeMap<Address, Committed>,
}

/// What a plan commits to one account: the state if inline, the buffer if not.
struct Committed {
    inline: Option<Vec<u8>>,
    buffer: Option<Address>,
    nonce: u64,
}

impl Follower {
    fn follow(plan: &BundlePlan) -> Self {
        let mut follower = Self::default();
        for (round, transactions) in plan.rounds.iter().enumerate() {
            for transaction in transactions {
                for instruction in &transaction.instructions {
                    follower.instruction(round, instruction, transaction);
                }
            }
        }
        follower
    }

    fn instruction(&mut self, round: usize, instruction: &Instruction, transaction: &PlannedTransaction) {
        let account = |index: usize| instruction.accounts[index].pubkey;
        let number =
            |at: usize| u32::from_le_bytes(instruction.data[at..at + 4].try_into().unwrap()) as usize;
        if instruction.program_id == chunk_buffer::ID {
            let upload = self.uploads.entry(account(1)).or_default();
            match instruction.data[0] {
                1 => assert_eq!(upload.created_in.replace(round), None, "a buffer is created once"),
                2 => {
                    let before = upload.chunks.insert(number(1), instruction.data[9..].to_vec());
                    assert_eq!(before, None, "a chunk is written once");
                    let created = upload.created_in.expect("a buffer is created before it is written");
                    let same = transaction.instructions.iter().any(|other| other.data[..1] == [1]);
                    assert!(created < round || same, "and not in another transaction of the same round");
                }
                3 => upload.seals.push(round),
                4 => assert_eq!(upload.closed_in.replace(round), None, "a buffer is closed once"),
                other => panic!("instruction {other}"),
            }
        } else if instruction.program_id == delegation::ID {
            match instruction.data[0] {
                4 => *self.grown.entry(account(1)).or_default() += MAX_GROWTH,
                5 | 6 => {
                    assert_eq!(transaction.stage, Stage::Commit);
                    let nonce = u64::from_le_bytes(instruction.data[9..17].try_into().unwrap());
                    let inline = (instruction.data[0] == 5).then(|| instruction.data[29..].to_vec());
                    let buffer = (instruction.data[0] == 6).then(|| account(3));
                    if let Some(buffer) = buffer {
                        let upload = self.uploads.get_mut(&buffer).unwrap();
                        upload.used_in = Some(round);
                        assert!(upload.chunks.is_empty() || upload.created_in < Some(round));
                    }
                    let before = self.committed.insert(account(1), Committed { inline, buffer, nonce });
                    assert!(before.is_none(), "an account is committed once");
                }
                other => panic!("instruction {other}"),
            }
        } else if instruction.data[..4] == [2, 0, 0, 0] {
            let lamports = u64::from_le_bytes(instruction.data[4..12].try_into().unwrap());
            *self.funded.entry(account(1)).or_default() += lamports;
        }
    }
}

fn check(plan: &BundlePlan, bundle: &BundleFacts, context: &PlanContext) {
    let commits = plan.transactions().filter(|transaction| transaction.stage == Stage::Commit);
    assert_eq!(commits.count(), 1, "one transaction applies the bundle");
    let mut messages = HashSet::new();
    for transaction in plan.transactions() {
        transaction.check(&context.payer).unwrap();
        assert!(transaction.wire_len(&context.payer).unwrap() <= context.version.max_len());
        let message = transaction.message(&context.payer, Hash::default()).unwrap();
        assert!(messages.insert(message.serialize()), "no two transactions share a signature");
    }
    let follower = Follower::follow(plan);
    assert_eq!(follower.committed.len(), bundle.accounts.len());
    for (facts, commit) in bundle.accounts.iter().zip(&plan.commits) {
        let Committed { inline, buffer, nonce } = &follower.committed[&facts.account];
        assert_eq!(*nonce, facts.record.unwrap().nonce + 1);
        assert_eq!(*buffer, commit.buffer);
        let growth = facts.state.len().saturating_sub(facts.len);
        let steps = follower.grown.get(&facts.account).copied().unwrap_or_default();
        assert!(steps + MAX_GROWTH >= growth, "the account can take its new length");
        let funded = follower.funded.get(&facts.account).copied().unwrap_or_default();
        assert!(growth == 0 || facts.lamports.0 + funded >= RENT.minimum(facts.state.len() as u64).0);
        let Some(buffer) = buffer else {
            assert_eq!(inline.as_deref(), Some(&facts.state[..]));
            assert_eq!(commit.strategy.method, Method::Inline);
            continue;
        };
        assert_eq!(commit.strategy.method, Method::Buffer);
        let upload = &follower.uploads[buffer];
        let mut payload = Vec::new();
        for (offset, chunk) in &upload.chunks {
            assert_eq!(*offset, payload.len(), "chunks leave no gap and do not overlap");
            payload.extend_from_slice(chunk);
        }
        assert_eq!(payload, &facts.state[..]);
        assert_eq!(upload.seals.len() as u64, seal_calls(facts.state.len() as u64));
        assert!(upload.seals.iter().all(|seal| Some(*seal) <= upload.used_in));
        assert!(upload.closed_in >= upload.used_in, "a buffer is closed after it was used");
        assert!(follower.funded[buffer] >= RENT.minimum(96 + facts.state.len() as u64).0);
    }
}

fn any_len() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 0usize..1_200,
        2 => prop::sample::select(vec![0, 1, 82, 800, 1_011, 1_012, 1_013, 3_855, 3_856, 3_857]),
        2 => prop::sample::select(vec![10_239, 10_240, 10_241, 20_480, 65_536]),
        1 => 1usize..30_000,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_bundle_has_a_plan_that_works_or_is_refused_by_a_limit(
        lens in prop::collection::vec((any_len(), any_len(), 0u64..1_000), 1..12),
        v1: bool,
        own_payer: bool,
    ) {
        let version = if v1 { TransactionVersion::V1 } else { TransactionVersion::V0 };
        let context = context(version, own_payer);
        let accounts = lens.iter().zip(1..).map(|((len, old_len, nonce), index)| {
            facts(index, state(*len, index), *old_len, *nonce, &context)
        });
        let bundle = bundle(accounts.collect());
        match plan_bundle(&bundle, &context) {
            Ok(plan) => check(&plan, &bundle, &context),
            Err(PlanError::DoesNotFit { value, max, .. }) => prop_assert!(value > max),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

#[test]
fn a_small_account_takes_one_transaction_and_one_of_10_240_bytes_at_most_four_or_fourteen() {
    for own_payer in [false, true] {
        for version in [TransactionVersion::V0, TransactionVersion::V1] {
            assert_eq!(plan_one(82, version, own_payer).transactions().count(), 1);
        }
        assert!(plan_one(10_240, TransactionVersion::V1, own_payer).transactions().count() <= 4);
        assert!(plan_one(10_240, TransactionVersion::V0, own_payer).transactions().count() <= 14);
    }
}

#[test]
fn states_of_up_to_10_mib_have_plans_and_their_seals_are_spread() {
    for (len, seal_transactions) in [(1 << 20, 0), (2 << 20, 0), ((2 << 20) + 1, 2), (10_484_000, 5)] {
        let context = context(TransactionVersion::V1, false);
        let accounts = vec![facts(1, state(len, 3), len, 0, &context)];
        let bundle = bundle(accounts);
        let plan = plan_bundle(&bundle, &context).unwrap();
        check(&plan, &bundle, &context);
        let alone = |transaction: &&PlannedTransaction| {
            transaction.stage == Stage::Prepare && transaction.instructions.iter().all(|i| i.data[0] == 3)
        };
        assert_eq!(plan.transactions().filter(alone).count(), seal_transactions);
    }
    let context = context(TransactionVersion::V1, false);
    let accounts = vec![facts(1, vec![0; 10_485_760], 0, 0, &context)];
    let refused = plan_bundle(&bundle(accounts), &context);
    assert!(matches!(refused, Err(PlanError::Layout { .. })), "a buffer has no room for its header as well");
}

#[test]
fn growth_stays_in_the_committing_transaction_as_long_as_it_fits() {
    let context = context(TransactionVersion::V1, false);
    let grown_before = |len| {
        let accounts = vec![facts(1, state(len, 1), 0, 0, &context)];
        let plan = plan_bundle(&bundle(accounts), &context).unwrap();
        plan.transactions()
            .filter(|transaction| transaction.stage == Stage::Prepare)
            .flat_map(|transaction| &transaction.instructions)
            .filter(|instruction| instruction.program_id == delegation::ID)
            .count()
    };
    assert_eq!(grown_before(60 * MAX_GROWTH), 0);
    assert_eq!(grown_before(80 * MAX_GROWTH), 79);
}

#[test]
fn what_can_not_be_atomic_is_refused_with_the_limit_and_its_value() {
    let context = context(TransactionVersion::V1, false);
    let accounts: Vec<_> = (1..=40).map(|index| facts(index, vec![index], 1, 0, &context)).collect();
    let refused = plan_bundle(&bundle(accounts), &context);
    assert!(
        matches!(refused, Err(PlanError::DoesNotFit { limit: Limit::AccountLocks, value: 82.., max: 64 })),
        "{refused:?}"
    );
}

#[test]
fn accounts_that_can_not_take_a_commit_are_named() {
    let context = context(TransactionVersion::V1, false);
    let refuse = |change: fn(&mut AccountFacts)| {
        let mut facts = facts(1, vec![1], 1, 4, &context);
        change(&mut facts);
        plan_bundle(&bundle(vec![facts]), &context).unwrap_err()
    };
    assert_eq!(refuse(|facts| facts.owner = None), PlanError::NoAccount(key(1)));
    let not_delegated = PlanError::NotDelegated { account: key(1), owner: key(9) };
    assert_eq!(refuse(|facts| facts.owner = Some(key(9))), not_delegated);
    assert!(matches!(refuse(|facts| facts.record = None), PlanError::NotDelegated { .. }));
    let foreign = refuse(|facts| facts.record.as_mut().unwrap().authority = key(9));
    assert!(matches!(foreign, PlanError::WrongAuthority { authority, .. } if authority == key(9)));
    assert_eq!(refuse(|facts| facts.record.as_mut().unwrap().staged_nonce = 5), PlanError::Staged(key(1)));
    let last = refuse(|facts| facts.record.as_mut().unwrap().nonce = u64::MAX);
    assert!(matches!(last, PlanError::Nonce { .. }));
}

#[test]
fn an_interrupted_upload_goes_on_with_what_is_missing() {
    let context = context(TransactionVersion::V1, false);
    let mut account = facts(1, state(10_240, 1), 10_240, 0, &context);
    let fresh = plan_bundle(&bundle(vec![account.clone()]), &context).unwrap();
    assert_eq!(fresh.transactions().count(), 4);
    let header = chunk_buffer::Buffer {
        payload_len: 10_240,
        chunk_size: 3_414,
        written_chunks: 2,
        ..chunk_buffer::Buffer::zeroed()
    };
    let address = fresh.commits[0].buffer.unwrap();
    let buffer = |missing: Vec<u32>, sealed| {
        vec![BufferFacts { address, account_len: 10_337, header, missing, sealed }]
    };
    for (missing, sealed, transactions, seals) in
        [(vec![1], false, 2, 1), (vec![], false, 1, 1), (vec![], true, 1, 0)]
    {
        account.buffers = buffer(missing.clone(), sealed);
        let plan = plan_bundle(&bundle(vec![account.clone()]), &context).unwrap();
        assert_eq!(plan.transactions().count(), transactions);
        let follower = Follower::follow_resumed(&plan);
        let upload = &follower.uploads[&plan.commits[0].buffer.unwrap()];
        let offsets: Vec<usize> = upload.chunks.keys().copied().collect();
        assert_eq!(offsets, missing.iter().map(|chunk| *chunk as usize * 3_414).collect::<Vec<_>>());
        assert_eq!((upload.created_in, upload.seals.len()), (Some(0), seals));
    }
}

impl Follower {
    /// As [`Self::follow`], for buffers that were created before.
    fn follow_resumed(plan: &BundlePlan) -> Self {
        let mut follower = Self::default();
        for buffer in plan.commits.iter().filter_map(|commit| commit.buffer) {
            follower.uploads.insert(buffer, Upload { created_in: Some(0), ..Upload::default() });
        }
        for (round, transactions) in plan.rounds.iter().enumerate() {
            for transaction in transactions {
                for instruction in &transaction.instructions {
                    follower.instruction(round + 1, instruction, transaction);
                }
            }
        }
        follower
    }
}

#[test]
fn the_digest_that_seals_is_that_of_the_state() {
    let plan = plan_one(10_240, TransactionVersion::V1, false);
    let seals: Vec<&Instruction> = plan
        .transactions()
        .flat_map(|transaction| &transaction.instructions)
        .filter(|instruction| instruction.program_id == chunk_buffer::ID && instruction.data[0] == 3)
        .collect();
    let state: Arc<[u8]> = state(10_240, 1).into();
    assert_eq!(seals.len(), 1);
    assert_eq!(seals[0].data[1..], payload_digest(&state));
    let record = address::record(&key(1));
    assert!(
        plan.transactions()
            .last()
            .unwrap()
            .instructions
            .iter()
            .any(|i| i.accounts.iter().any(|a| a.pubkey == record))
    );
}
