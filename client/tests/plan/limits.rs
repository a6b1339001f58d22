//! The chain's limits, to the byte, the account and the instruction.

use committor_client::{
    CommitMode,
    plan::{AccountFacts, BufferFacts, BundleFacts, Limit, PlanError, TableNeed, plan_bundle, plan_finalize},
    types::{Method, Stage, TransactionVersion},
};
use committor_sdk::chunk_buffer;

use crate::{
    facts::{action, bundle, changed, context, facts, key, sprinkled, state},
    follower::{Follower, check, check_finalize},
    properties::staged,
};

use TransactionVersion::{V0, V1};

fn refusal(bundle: &BundleFacts, context: &committor_client::plan::PlanContext) -> (Limit, u64) {
    match plan_bundle(bundle, context) {
        Err(PlanError::DoesNotFit { limit, value, .. }) => (limit, value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_transaction_may_have_every_byte_that_the_format_allows_and_no_more() {
    for (version, room, max) in [(V0, 916, 1_232), (V1, 3_818, 4_096)] {
        let context = context(version, false);
        let plan = |len| {
            let accounts = vec![facts(1, state(len, 1), len, 0, &context)];
            plan_bundle(&bundle(accounts), &context).unwrap()
        };
        for len in [room - 1, room] {
            let plan = plan(len);
            assert_eq!(plan.commits[0].strategy.method, Method::Inline);
            let wire_len = plan.rounds[0][0].wire_len(&context.payer).unwrap();
            assert_eq!(wire_len, max - (room - len));
        }
        assert_eq!(plan(room + 1).commits[0].strategy.method, Method::Buffer);
        // In base64, in which they are sent, 1,231, 1,232 and 1,233 bytes are equally long.
        let mut transaction = plan(room).rounds[0][0].clone();
        transaction.instructions[0].data.push(0);
        let value = max as u64 + 1;
        let expected = PlanError::DoesNotFit { limit: Limit::TransactionLen, value, max: max as u64 };
        assert_eq!(transaction.check(&context.payer), Err(expected));
    }
}

#[test]
fn a_transaction_locks_64_accounts_with_lookup_tables_or_without_and_not_65() {
    // Payer, program, account and record; the program of the action; in v0 that of the compute budget.
    for (version, others) in [(V1, 64 - 5), (V0, 64 - 6)] {
        let context = context(version, false);
        let with = |accounts| BundleFacts {
            actions: vec![action(240, accounts)],
            ..bundle(vec![facts(1, state(1, 1), 1, 0, &context)])
        };
        let plan = plan_bundle(&with(others), &context).unwrap();
        assert_eq!(
            matches!(plan.tables, TableNeed::Missing(_)),
            version == V0,
            "58 addresses fit no v0 message"
        );
        check(&plan, &with(others), &context);
        // With the buffer of the most spread-out form.
        assert_eq!(refusal(&with(others + 1), &context), (Limit::AccountLocks, 65 + 1));
    }
}

#[test]
fn a_transaction_holds_64_instructions_and_not_65_those_that_programs_call_included() {
    // In v0 two of them are the compute budget's. To undelegate takes a commit, an undelegation and the call in it; from a
    // buffer only two.
    for (version, mode, method, own) in [
        (V1, CommitMode::Finalize, Method::Inline, 1),
        (V0, CommitMode::Finalize, Method::Inline, 2 + 1),
        (V1, CommitMode::Undelegate, Method::Inline, 3),
        (V1, CommitMode::Undelegate, Method::Buffer, 2),
        (V0, CommitMode::Undelegate, Method::Inline, 2 + 3),
        (V0, CommitMode::Undelegate, Method::Buffer, 2 + 2),
    ] {
        let context = context(version, false);
        let with = |count| BundleFacts {
            mode,
            actions: vec![action(240, 0); count],
            ..bundle(vec![facts(1, state(1, 1), 1, 0, &context)])
        };
        let plan = plan_bundle(&with(64 - own), &context).unwrap();
        check(&plan, &with(64 - own), &context);
        assert_eq!(plan.commits[0].strategy.method, method);
        if method == Method::Buffer || mode == CommitMode::Finalize {
            assert_eq!(refusal(&with(64 - own + 1), &context), (Limit::Instructions, 65));
        }
    }
}

#[test]
fn undelegations_fill_the_trace_with_21_accounts_and_twelve_of_any_length_fit() {
    let context = context(V1, false);
    let with = |count, len| {
        let accounts = (1..=count).map(|index| facts(index, state(len, index), len, 0, &context)).collect();
        BundleFacts { mode: CommitMode::Undelegate, ..bundle(accounts) }
    };
    for (count, len) in [(21, 0), (21, 1), (11, 82), (12, 10_240), (12, 65_536), (20, 65_536)] {
        check(&plan_bundle(&with(count, len), &context).unwrap(), &with(count, len), &context);
    }
    assert_eq!(refusal(&with(21, 65_536), &context), (Limit::AccountLocks, 66));
}

#[test]
fn twenty_buffered_accounts_fit_one_transaction_and_21_do_not_whoever_pays() {
    for own_payer in [false, true] {
        let context = context(V1, own_payer);
        let with = |count| {
            let accounts = (1..=count).map(|index| facts(index, state(65_536, index), 65_536, 0, &context));
            bundle(accounts.collect())
        };
        let plan = plan_bundle(&with(20), &context).unwrap();
        assert!(plan.commits.iter().all(|commit| commit.strategy.method == Method::Buffer));
        check(&plan, &with(20), &context);
        assert_eq!(refusal(&with(21), &context), (Limit::AccountLocks, 65 + u64::from(own_payer)));
    }
}

#[test]
fn five_accounts_of_82_bytes_fit_one_v0_transaction_without_tables() {
    let context = context(V0, false);
    let accounts = (1..=5).map(|index| facts(index, state(82, index), 82, 0, &context)).collect();
    let plan = plan_bundle(&bundle(accounts), &context).unwrap();
    assert_eq!((plan.transactions().count(), plan.tables), (1, TableNeed::None));
}

#[test]
fn a_state_of_10_240_bytes_of_which_200_change_takes_one_transaction() {
    for version in [V0, V1] {
        let context = context(version, false);
        for mode in [CommitMode::Finalize, CommitMode::Undelegate] {
            let bundle = BundleFacts { mode, ..bundle(vec![changed(1, 10_240, 5_000, 200, &context)]) };
            let plan = plan_bundle(&bundle, &context).unwrap();
            assert_eq!(plan.commits[0].strategy.method, Method::InlinePatch);
            assert_eq!(plan.transactions().count(), 1);
            check(&plan, &bundle, &context);
        }
    }
}

#[test]
fn patches_that_take_too_many_compute_units_give_way_to_whole_states() {
    let context = context(V1, false);
    // 4,096 ranges take some 226,000 units: seven times that is more than a transaction may use.
    let accounts: Vec<AccountFacts> =
        (1..=7).map(|index| sprinkled(index, 90_000, 4_096, &context)).collect();
    for mode in [CommitMode::Finalize, CommitMode::Stage] {
        let bundle = BundleFacts { mode, ..bundle(accounts.clone()) };
        let plan = plan_bundle(&bundle, &context).unwrap();
        check(&plan, &bundle, &context);
        assert!(plan.commits.iter().all(|commit| commit.strategy.method == Method::Buffer));
    }
    // One of them is worth it.
    let bundle = bundle(accounts[..1].to_vec());
    let plan = plan_bundle(&bundle, &context).unwrap();
    assert_eq!(plan.commits[0].strategy.method, Method::BufferPatch);
}

#[test]
fn what_could_never_be_finalized_is_not_staged() {
    let context = context(V0, true);
    // To finalize them takes the system program for their rent, which to stage them does not.
    let with = |count| {
        let accounts = (1..=count).map(|index| facts(index, state(3_857, index), 0, 0, &context)).collect();
        BundleFacts { mode: CommitMode::Stage, ..bundle(accounts) }
    };
    check(&plan_bundle(&with(19), &context).unwrap(), &with(19), &context);
    assert_eq!(refusal(&with(20), &context), (Limit::AccountLocks, 65));
}

#[test]
fn long_patches_of_few_ranges_are_staged_and_finalized_together() {
    let context = context(V1, false);
    // What their lengths allow would be more ranges than there are compute units for.
    let accounts = (1..=8).map(|index| changed(index, 131_072, 5_000, 40_000, &context)).collect();
    let bundle = BundleFacts { mode: CommitMode::Stage, ..bundle(accounts) };
    let plan = plan_bundle(&bundle, &context).unwrap();
    assert!(plan.commits.iter().all(|commit| commit.strategy.method == Method::BufferPatch));
    let staged = staged(&bundle, &plan);
    check_finalize(&plan_finalize(&staged, &context).unwrap(), &staged, &context);
}

#[test]
fn a_state_that_is_longer_than_any_buffer_can_be_patched() {
    let context = context(V1, false);
    let len = committor_client::types::MAX_STATE_LEN as usize;
    let bundle = bundle(vec![changed(1, len, 5_000, 200, &context)]);
    let plan = plan_bundle(&bundle, &context).unwrap();
    assert_eq!(plan.commits[0].strategy.method, Method::InlinePatch);
    check(&plan, &bundle, &context);
}

#[test]
fn a_buffer_of_an_earlier_attempt_that_is_of_no_use_any_more_is_closed() {
    let context = context(V1, false);
    let header = chunk_buffer::Buffer { payload_len: 100, chunk_size: 100, ..bytemuck::Zeroable::zeroed() };
    let stale = BufferFacts { address: key(99), account_len: 197, header, missing: vec![0], sealed: false };
    for mode in CommitMode::ALL {
        for len in [82, 10_240] {
            let buffers = vec![stale.clone()];
            let accounts = vec![AccountFacts { buffers, ..facts(1, state(len, 1), len, 0, &context) }];
            let plan = plan_bundle(&BundleFacts { mode, ..bundle(accounts) }, &context).unwrap();
            assert!(Follower::follow(&plan).uploads[&stale.address].closed_in.is_some(), "{mode:?}");
            let last = plan.rounds.last().unwrap();
            assert!(
                last.iter().all(|transaction| transaction.stage == Stage::Cleanup),
                "and not before the end"
            );
        }
    }
}
