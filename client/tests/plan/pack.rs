//! Small bundles share transactions.

use committor_client::plan::{BundlePlan, PlanContext, pack, plan_bundle};
use committor_client::types::TransactionVersion;
use proptest::prelude::*;
use solana_instruction::Instruction;

use crate::facts::{action, any_context, bundle, context, facts, state};

fn plans(bundles: &[(Vec<usize>, bool)], context: &PlanContext) -> Vec<Option<BundlePlan>> {
    let mut index = 0;
    let mut plan = |(lens, acts): &(Vec<usize>, bool)| {
        let accounts = lens.iter().map(|len| {
            index += 1;
            facts(index, state(*len, index), *len, 0, context)
        });
        let mut facts = bundle(accounts.collect());
        if *acts {
            facts.actions.push(action(240, 1));
        }
        plan_bundle(&facts, context).ok()
    };
    bundles.iter().map(&mut plan).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn shared_transactions_hold_all_commits_of_their_bundles_keep_the_limits_and_are_cheaper(
        bundles in prop::collection::vec((prop::collection::vec(0usize..1_500, 1..4), prop::bool::weighted(0.1)), 1..40),
        context in any_context(),
    ) {
        let plans = plans(&bundles, &context);
        let mut seen = vec![false; plans.len()];
        for shared in pack(&plans, &context) {
            prop_assert!(shared.bundles.len() > 1);
            shared.transaction.check(&context.payer).unwrap();
            let mut instructions: Vec<&Instruction> = Vec::new();
            let mut alone = 0;
            for index in &shared.bundles {
                prop_assert!(!std::mem::replace(&mut seen[*index], true), "a bundle shares one transaction");
                let plan = plans[*index].as_ref().unwrap();
                prop_assert!(!plan.has_actions);
                prop_assert_eq!(plan.transactions().count(), 1);
                for transaction in plan.transactions() {
                    instructions.extend(&transaction.instructions);
                    alone += transaction.fee(&context.payer).0;
                }
            }
            let found: Vec<&Instruction> = shared.transaction.instructions.iter().collect();
            prop_assert_eq!(found, instructions);
            prop_assert!(shared.transaction.fee(&context.payer).0 < alone);
        }
    }
}

#[test]
fn as_many_small_bundles_share_a_transaction_as_it_locks_accounts_or_holds_bytes() {
    let share = |version, len, count| {
        let context = context(version, false);
        let shared = pack(&plans(&vec![(vec![len], false); count], &context), &context);
        shared.into_iter().map(|shared| shared.bundles.len()).collect::<Vec<_>>()
    };
    // Two accounts each, beside the authority and the program: 64 accounts.
    assert_eq!(share(TransactionVersion::V1, 0, 40), [31, 9]);
    // 42 + 64 + 2 · 32 + 8, and for each 2 · 32 + 4 + 3 + 29 + 82.
    assert_eq!(share(TransactionVersion::V1, 82, 40), [21, 19]);
    // 216, and for each 2 · 32 + 6 + 29 + 82.
    assert_eq!(share(TransactionVersion::V0, 82, 12), [5, 5, 2]);
}
