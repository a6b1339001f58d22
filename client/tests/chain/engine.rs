//! The engine behind the same proxy: a changeset ends as if nothing had gone wrong.

use std::{sync::Arc, time::Duration};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, CommitMode, Committor, chain::RpcSettings,
    types::BundleStatus,
};
use committor_faults::{Fault, Rule};
use committor_localnet::{Validator, on_each_validator};

use crate::{storm::rules, world::World};

async fn a_changeset_lands_whole_and_once_whatever_goes_wrong(validator: Validator) {
    let world = World::seeded(validator, 4).await;
    rules(&world.proxy);
    let folder = tempfile::tempdir().unwrap();
    let request_timeout = Duration::from_secs(2);
    let committor = Committor::builder()
        .rpc(RpcSettings { request_timeout, ..world.settings() })
        .authority(Arc::new(world.payer().insecure_clone()))
        .store(folder.path().join("committor.db"))
        .start()
        .await
        .unwrap();
    // Each account three times, once through a buffer.
    let commit = |byte: u8, len, seed: u8| AccountCommit {
        account: world.delegated(byte),
        state: (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect(),
    };
    let bundles = (0..3u8).flat_map(|round| (1..=4u8).map(move |pair| (round, pair)));
    let bundles = bundles.map(|(round, pair)| {
        let len = if round == 1 { 12_000usize } else { 200 };
        CommitBundle::new(
            BundleId(u64::from(round) * 10 + u64::from(pair)),
            vec![commit(pair, len, round), commit(pair + 4, 150, round)],
        )
    });
    let changeset = Changeset { bundles: bundles.collect() };
    let report = committor.commit(changeset).await.unwrap().finished().await.unwrap();
    for bundle in &report.bundles {
        assert_eq!(bundle.status, BundleStatus::Landed, "{:?}", bundle.error);
    }
    let faults = world.proxy.counts().all_faults();
    world.proxy.clear();
    let verification = committor.verify(report.changeset).await.unwrap();
    assert_eq!((verification.equal.len(), verification.mismatches), (8, vec![]));
    assert!(faults > 0);
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn an_engine_that_was_started_again_does_not_take_a_lagging_nodes_word_for_what_it_saw_itself(
    validator: Validator,
) {
    let world = World::seeded(validator, 4).await;
    let authority = Arc::new(world.payer().insecure_clone());
    let folder = tempfile::tempdir().unwrap();
    let start = async || {
        let builder = Committor::builder().rpc(world.settings()).authority(authority.clone());
        builder.store(folder.path().join("committor.db")).start().await.unwrap()
    };
    let engine = start().await;
    let commits = vec![AccountCommit { account: world.delegated(1), state: vec![7; 50].into() }];
    let bundle = CommitBundle::new(BundleId(1), commits).mode(CommitMode::Stage);
    let report = engine.commit(Changeset { bundles: vec![bundle] }).await.unwrap().finished().await.unwrap();
    assert_eq!(report.bundles[0].status, BundleStatus::Staged, "{:?}", report.bundles[0].error);
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop(engine);
    // The next one reaches a node that has not seen that yet, and knows no `minContextSlot`.
    let stale = Fault::Stale { slots: u64::MAX, checks_min_context_slot: false };
    world.proxy.add(Rule::new(stale).on("getMultipleAccounts").times(6));
    let engine = start().await;
    let report = engine.finalize(report.bundles[0].key).await.unwrap().finished().await.unwrap();
    assert_eq!(report.bundles[0].status, BundleStatus::Landed, "{:?}", report.bundles[0].error);
    assert_eq!(world.proxy.counts().faults_of("getMultipleAccounts"), 6);
    engine.shutdown(Duration::ZERO).await.unwrap();
}

on_each_validator!(
    a_changeset_lands_whole_and_once_whatever_goes_wrong,
    an_engine_that_was_started_again_does_not_take_a_lagging_nodes_word_for_what_it_saw_itself,
);
