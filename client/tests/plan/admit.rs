//! Admission says of a bundle what planning will say, before the chain is asked.

use committor_client::{
    AccountCommit, BundleId, CommitBundle, CommitMode,
    plan::{Admission, BundleFacts, Limit, PlanContext, PlanError, admit, plan_bundle},
    types::TransactionVersion,
};
use proptest::prelude::*;

use crate::facts::{
    account_of, action, any_account, any_context, any_len, any_mode, bundle, context, facts, key, state,
};

fn commit_bundle(facts: &BundleFacts) -> CommitBundle {
    let commit = |account: &committor_client::plan::AccountFacts| AccountCommit {
        account: account.account,
        state: account.state.clone(),
    };
    let commits = facts.accounts.iter().map(commit).collect();
    CommitBundle { id: BundleId(1), mode: facts.mode, commits, actions: facts.actions.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_admitted_has_a_plan_and_what_is_refused_has_none_whatever_the_accounts_hold(
        len in any_len(),
        mut accounts in prop::collection::vec((any_account(), any::<bool>()), 1..33),
        uniform: bool,
        context in any_context(),
        mode in any_mode(),
        actions in 0u8..3,
        owners in 1u8..4,
    ) {
        if uniform {
            // Bundles at the edge are mostly of one kind of account.
            accounts.iter_mut().for_each(|((new_len, ..), _)| *new_len = len);
        }
        let accounts = accounts.into_iter().zip(1u8..).map(|((account, own_rent_payer), index)| {
            let mut facts = account_of(index, account, &context);
            let record = facts.record.as_mut().unwrap();
            record.owner_program = key(210 + index % owners);
            if own_rent_payer {
                record.rent_payer = key(100 + index);
            }
            facts
        });
        let accounts = accounts.collect();
        let actions = (0..actions).map(|index| action(240 + index, 2 * index)).collect();
        let facts = BundleFacts { mode, accounts, actions, extra_loaded: 0 };
        let plan = plan_bundle(&facts, &context);
        match admit(&commit_bundle(&facts), &context) {
            Admission::Fits => prop_assert!(plan.is_ok(), "{:?}", plan.unwrap_err()),
            Admission::Refused(error) => {
                let refused = matches!(error, PlanError::DoesNotFit { .. });
                prop_assert!(refused && plan.is_err(), "{error}");
            }
            Admission::Depends => (),
        }
    }
}

#[test]
fn an_owner_program_counts_among_the_accounts_that_an_undelegation_locks() {
    // 20 accounts that need rent: payer, authority, delegation program, system program and 3 · 20 are 64.
    let context = context(TransactionVersion::V1, true);
    let admit = |mode, count, len| {
        let accounts = (1..=count).map(|index| facts(index, state(len, index), 0, 0, &context)).collect();
        admit(&commit_bundle(&BundleFacts { mode, ..bundle(accounts) }), &context)
    };
    assert_eq!(admit(CommitMode::Finalize, 20, 3_857), Admission::Fits);
    assert_eq!(admit(CommitMode::Undelegate, 20, 3_857), Admission::Depends);
    let refused = PlanError::DoesNotFit { limit: Limit::AccountLocks, value: 67, max: 64 };
    assert_eq!(admit(CommitMode::Undelegate, 21, 10_241), Admission::Refused(refused));
}

#[test]
fn a_bundle_that_fits_only_accounts_which_hold_it_already_depends_on_them() {
    let context: PlanContext = context(TransactionVersion::V1, false);
    // 21 patches fit, 21 buffers don't.
    let accounts = (1..=21).map(|index| facts(index, state(10_000, index), 10_000, 0, &context)).collect();
    assert_eq!(admit(&commit_bundle(&bundle(accounts)), &context), Admission::Depends);
}
