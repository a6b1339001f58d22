//! What becomes of single bundles.

use std::time::Duration;

use committor_client::chain::Chain;
use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Event,
    plan::{Limit, PlanError},
    types::{Action, Budgets, BundleStatus, ComputeLimit, PriorityFee, StageBudget},
};
use committor_localnet::{Validator, on_each_validator, owner_program};
use solana_signer::Signer;

use crate::world::{Fault, World, settings, state};

async fn a_bundle_that_can_not_land_fails_alone_and_says_why(validator: Validator) {
    let world = World::new(validator).await;
    let (committor, ..) = world.committor(Fault::None, usize::MAX).await;
    let mut events = committor.events();
    let nobody = world.account(99);
    let commit = |account, len| AccountCommit { account, state: state(len, 1) };
    let changeset = Changeset {
        bundles: vec![
            CommitBundle::new(BundleId(1), vec![commit(world.account(1), 10), commit(nobody, 10)]),
            CommitBundle::new(BundleId(2), vec![commit(world.account(1), 20)]),
        ],
    };
    let ticket = committor.commit(changeset).await.unwrap();
    let keys = ticket.bundles().to_vec();
    let report = ticket.finished().await.unwrap();
    let statuses: Vec<BundleStatus> = report.bundles.iter().map(|bundle| bundle.status).collect();
    assert_eq!(statuses, [BundleStatus::Failed, BundleStatus::Landed]);
    let error = report.bundles[0].error.as_deref().unwrap();
    assert!(error.contains(&nobody.to_string()) && error.contains("does not exist"), "{error}");
    assert_eq!(report.bundles[0].transactions, 0, "nothing was sent for it");
    let mut ended = Vec::new();
    while ended.len() < 2 {
        if let Event::Ended { bundle, status } = events.recv().await.unwrap() {
            ended.push((bundle, status));
        }
    }
    assert_eq!(ended, [(keys[0].1, BundleStatus::Failed), (keys[1].1, BundleStatus::Landed)]);
    let verification = committor.verify(report.changeset).await.unwrap();
    assert_eq!(
        (verification.equal.as_slice(), verification.mismatches.len()),
        ([world.account(1)].as_slice(), 0)
    );
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn what_was_changed_since_is_found_when_it_is_read_back(validator: Validator) {
    let world = World::new(validator).await;
    let (committor, ..) = world.committor(Fault::None, usize::MAX).await;
    let commit = |len| {
        CommitBundle::new(
            BundleId(1),
            vec![AccountCommit { account: world.account(1), state: state(len, 1) }],
        )
    };
    let first =
        committor.commit(Changeset { bundles: vec![commit(10)] }).await.unwrap().finished().await.unwrap();
    committor.commit(Changeset { bundles: vec![commit(11)] }).await.unwrap().finished().await.unwrap();
    let verification = committor.verify(first.changeset).await.unwrap();
    assert_eq!(verification.equal, []);
    assert_eq!(verification.mismatches[0].reason, "it has 11 bytes, committed were 10");
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn what_can_not_be_atomic_is_refused_with_the_limit_and_the_others_go_on(validator: Validator) {
    let world = World::new(validator).await;
    let committor = world.sound(settings()).await;
    let commits = (1..=40).map(|byte| AccountCommit { account: world.account(byte), state: state(10, byte) });
    let too_many = CommitBundle::new(BundleId(1), commits.collect());
    let changeset = Changeset { bundles: vec![too_many, world.bundle(2, 1, 20)] };
    let ticket = committor.commit(changeset).await.unwrap();
    let refused = ticket.refused().to_vec();
    let expected = PlanError::DoesNotFit { limit: Limit::AccountLocks, value: 82, max: 64 };
    assert_eq!(refused, [(BundleId(1), expected)]);
    assert_eq!(ticket.bundles().len(), 1);
    let report = ticket.finished().await.unwrap();
    let statuses: Vec<_> = report.bundles.iter().map(|bundle| (bundle.status, bundle.transactions)).collect();
    assert_eq!(statuses, [(BundleStatus::Failed, 0), (BundleStatus::Landed, 1)]);
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn bundles_whose_shared_transaction_is_refused_land_each_alone(validator: Validator) {
    let world = World::new(validator).await;
    let committor = world.refusing(1).await;
    let bundles = (1..=3).map(|byte| world.bundle(byte.into(), byte, 40)).collect();
    let report = committor.commit(Changeset { bundles }).await.unwrap().finished().await.unwrap();
    let mut signatures: Vec<&String> =
        report.bundles.iter().flat_map(|bundle| &bundle.accounts[0].signatures).collect();
    signatures.dedup();
    assert_eq!(signatures.len(), 3, "each has a transaction of its own");
    assert!(report.bundles.iter().all(|bundle| bundle.status == BundleStatus::Landed));
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn an_action_takes_effect_with_its_bundle_or_not_at_all(validator: Validator) {
    let world = World::new(validator).await;
    let payer = world.authority.pubkey();
    // From the table, an action that says it needs next to nothing gets too little: the limit is then simulated. A limit that
    // somebody fixed is not touched.
    let fixed = StageBudget { compute: ComputeLimit::Fixed(1_000), ..StageBudget::default() };
    for (number, budgets, lands) in [(1, Budgets::default(), true), (2, Budgets::all(fixed), false)] {
        let committor =
            world.sound(committor_client::EngineSettings { budgets, attempts: 2, ..settings() }).await;
        let created = owner_program::account(&payer, number);
        let create =
            Action { instruction: owner_program::create(&payer, number, 100), compute_units: Some(1) };
        let mut bundle = world.bundle(1, 1, 30 + number as usize);
        bundle.actions.push(create);
        let report =
            committor.commit(Changeset { bundles: vec![bundle] }).await.unwrap().finished().await.unwrap();
        let status = if lands { BundleStatus::Landed } else { BundleStatus::Failed };
        assert_eq!(report.bundles[0].status, status, "{:?}", report.bundles[0].error);
        let found = world.rpc().accounts(&[created, world.account(1)]).await.unwrap();
        assert_eq!(found[0].is_some(), lands);
        assert_eq!(found[1].as_ref().unwrap().data.len(), 31, "the second commit had no effect");
        committor.shutdown(Duration::ZERO).await.unwrap();
    }
}

async fn an_action_that_somebody_else_has_to_sign_is_refused_before_anything_is_stored(validator: Validator) {
    let world = World::new(validator).await;
    let committor = world.sound(settings()).await;
    let stranger = world.account(77);
    let bundle = world.bundle(5, 1, 10).action(owner_program::create(&stranger, 1, 1));
    let refused = committor.commit(Changeset { bundles: vec![bundle] }).await.unwrap_err();
    let words = std::error::Error::source(&refused).unwrap().to_string();
    assert!(words.contains("bundle 5: action 0") && words.contains(&stranger.to_string()), "{words}");
    assert!(world.store().changesets(1).await.unwrap().is_empty());
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn limits_that_are_simulated_and_fees_that_follow_others_land_too(validator: Validator) {
    let world = World::new(validator).await;
    for priority_fee in [PriorityFee::Fixed(1_000_000), PriorityFee::Percentile { percentile: 50, cap: 10 }] {
        let budget = StageBudget { compute: ComputeLimit::Simulate, priority_fee };
        let budgets = Budgets::all(budget);
        let committor = world.sound(committor_client::EngineSettings { budgets, ..settings() }).await;
        let bundles = vec![world.bundle(1, 1, 9_000), world.bundle(2, 2, 40)];
        let report = committor.commit(Changeset { bundles }).await.unwrap().finished().await.unwrap();
        assert!(report.bundles.iter().all(|bundle| bundle.status == BundleStatus::Landed));
        let paid = report.bundles[0].fee_lamports.0 > 5_000 * report.bundles[0].transactions;
        assert_eq!(paid, priority_fee == PriorityFee::Fixed(1_000_000), "{report:?}");
        committor.shutdown(Duration::ZERO).await.unwrap();
    }
}

on_each_validator!(
    a_bundle_that_can_not_land_fails_alone_and_says_why,
    what_was_changed_since_is_found_when_it_is_read_back,
    what_can_not_be_atomic_is_refused_with_the_limit_and_the_others_go_on,
    bundles_whose_shared_transaction_is_refused_land_each_alone,
    an_action_takes_effect_with_its_bundle_or_not_at_all,
    an_action_that_somebody_else_has_to_sign_is_refused_before_anything_is_stored,
    limits_that_are_simulated_and_fees_that_follow_others_land_too
);
