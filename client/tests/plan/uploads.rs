//! How states get into buffers, and what can't.

use std::sync::Arc;

use bytemuck::Zeroable;
use committor_client::{
    plan::{AccountFacts, BufferFacts, BundlePlan, Limit, PlanError, PlannedTransaction, plan_bundle},
    types::{Stage, TransactionVersion},
};
use committor_sdk::{address, chunk_buffer, delegation, digest::payload_digest};
use solana_instruction::Instruction;

use crate::{
    facts::{MAX_GROWTH, bundle, context, facts, key, state},
    follower::{Follower, check},
};

fn plan_one(len: usize, version: TransactionVersion, own_payer: bool) -> BundlePlan {
    let context = context(version, own_payer);
    let accounts = vec![facts(1, state(len, 1), len, 0, &context)];
    plan_bundle(&bundle(accounts), &context).unwrap()
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
