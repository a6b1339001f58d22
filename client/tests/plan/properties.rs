//! What holds for any bundle.

use committor_client::{
    CommitMode,
    plan::{
        BufferFacts, BundleFacts, BundlePlan, PlanContext, PlanError, needs_bases, plan_bundle, plan_finalize,
    },
    types::{LookupTable, Method, TransactionVersion},
};
use committor_sdk::{address, digest::payload_digest};
use proptest::prelude::*;

use crate::{
    facts::{
        account_of, action, any_account, any_context, any_mode, bundle, context, facts, key, state, table,
    },
    follower::{Follower, check, check_finalize},
};

/// The facts after a plan has staged its bundle.
pub fn staged(bundle: &BundleFacts, plan: &BundlePlan) -> BundleFacts {
    let follower = Follower::follow(plan);
    let mut staged = bundle.clone();
    for (account, commit) in staged.accounts.iter_mut().zip(&plan.commits) {
        let record = account.record.as_mut().unwrap();
        record.staged_nonce = commit.nonce.0;
        record.staged_commit_id = account.commit_id.0;
        record.staged_buffer = commit.buffer.unwrap();
        record.staged_kind = u8::from(commit.strategy.method == Method::BufferPatch);
        let chunks = follower.uploads[&record.staged_buffer].chunks.values();
        let payload: Vec<u8> = chunks.flatten().copied().collect();
        (record.staged_len, record.staged_digest) = (payload.len() as u32, payload_digest(&payload));
        account.buffers = vec![BufferFacts {
            address: record.staged_buffer,
            account_len: 96 + payload.len() as u64,
            header: bytemuck::Zeroable::zeroed(),
            missing: vec![],
            sealed: true,
        }];
    }
    staged
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_bundle_has_a_plan_that_works_or_is_refused_by_a_limit(
        accounts in prop::collection::vec(any_account(), 1..12),
        context in any_context(),
        mode in any_mode(),
        actions in 0u8..4,
        has_table: bool,
    ) {
        let accounts = accounts.into_iter().zip(1..).map(|(account, index)| account_of(index, account, &context));
        let accounts = accounts.collect();
        let actions = (0..actions).map(|index| action(240 + index, index)).collect();
        let bundle = BundleFacts { mode, accounts, actions, extra_loaded: 1_000 };
        let tables = if has_table { vec![table(&bundle)] } else { vec![] };
        let context = PlanContext { tables, ..context };
        let plan = match plan_bundle(&bundle, &context) {
            Ok(plan) => plan,
            Err(PlanError::DoesNotFit { value, max, .. }) => {
                prop_assert!(value > max);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        check(&plan, &bundle, &context);
        if mode == CommitMode::Stage {
            let staged = staged(&bundle, &plan);
            let finalize = plan_finalize(&staged, &context).unwrap();
            check_finalize(&finalize, &staged, &context);
        }
    }

    #[test]
    fn bases_are_asked_for_only_where_they_can_help(
        accounts in prop::collection::vec(any_account(), 1..6),
        context in any_context(),
        mode in any_mode(),
    ) {
        let accounts: Vec<_> =
            accounts.into_iter().zip(1..).map(|(account, index)| account_of(index, account, &context)).collect();
        let with = BundleFacts { mode, accounts, actions: vec![], extra_loaded: 0 };
        let mut without = with.clone();
        without.accounts.iter_mut().for_each(|account| account.base = None);
        if !needs_bases(&without, &context).unwrap() {
            let transactions = |facts| plan_bundle(facts, &context).unwrap().transactions().count();
            prop_assert!(without.accounts.iter().all(|account| account.len == 0) || transactions(&without) == 1);
        }
    }

    #[test]
    fn a_table_that_is_ready_makes_no_plan_worse(
        lens in prop::collection::vec(0usize..2_000, 1..16),
        mode in any_mode(),
        own_payer: bool,
    ) {
        let context = context(TransactionVersion::V0, own_payer);
        let accounts = lens.iter().zip(1..).map(|(len, index)| {
            facts(index, state(*len, index), *len, 0, &context)
        });
        let bundle = BundleFacts { mode, ..bundle(accounts.collect()) };
        let Ok(without) = plan_bundle(&bundle, &context) else { return Ok(()) };
        let records = bundle.accounts.iter().map(|account| address::record(&account.account));
        let buffers = without.commits.iter().filter_map(|commit| commit.buffer);
        let addresses = bundle.accounts.iter().map(|account| account.account).chain(records).chain(buffers);
        let tables = vec![LookupTable { address: key(203), addresses: addresses.collect() }];
        let ready = PlanContext { tables, ..context.clone() };
        let with = plan_bundle(&bundle, &ready).unwrap();
        check(&with, &bundle, &ready);
        prop_assert!(with.price(&ready).rounds <= without.price(&context).rounds);
    }
}
