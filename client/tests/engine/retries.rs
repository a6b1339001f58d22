//! What failed for good waits until somebody asks for it; what may pass is tried by a policy.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, CommitMode, Committor, EngineError, EngineSettings,
    Event, Signers,
    chain::Chain,
    store::{BundleReport, Identity, StoreError},
    types::{Budgets, BundleKey, BundleStatus, ComputeLimit, StageBudget},
};
use committor_localnet::{Validator, on_each_validator};
use committor_sdk::{address, delegation::Delegation};
use solana_hash::Hash;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::world::{World, settings, state};

async fn commit<C: Chain>(committor: &Committor<C>, bundle: CommitBundle) -> (BundleKey, BundleReport) {
    let ticket = committor.commit(Changeset { bundles: vec![bundle] }).await.unwrap();
    let key = ticket.bundles()[0].1;
    (key, ticket.finished().await.unwrap().bundles.remove(0))
}

/// Settings with which whatever commits runs out of compute units, for good.
fn starving() -> EngineSettings {
    let budget = StageBudget { compute: ComputeLimit::Fixed(100), ..StageBudget::default() };
    EngineSettings { budgets: Budgets::all(budget), ..settings() }
}

async fn what_failed_lands_once_when_it_is_retried_under_better_circumstances(validator: Validator) {
    let world = World::new(validator).await;
    for len in [40, 9_000] {
        let committor = world.sound(starving()).await;
        let (key, report) = commit(&committor, world.bundle(1, 1, len)).await;
        assert_eq!(report.status, BundleStatus::Failed);
        // Nothing has changed: it fails again, and can be retried as often as anybody likes.
        let again = committor.retry(key).await.unwrap().finished().await.unwrap();
        assert_eq!(again.bundles[0].status, BundleStatus::Failed);
        committor.shutdown(Duration::ZERO).await.unwrap();

        let committor = world.sound(settings()).await;
        committor.idle().await;
        assert_eq!(committor.bundle(key).await.unwrap().status, BundleStatus::Failed, "no start takes it up");
        let report = committor.retry(key).await.unwrap().finished().await.unwrap();
        assert_eq!(report.bundles[0].status, BundleStatus::Landed, "{:?}", report.bundles[0].error);
        let verification = committor.verify(report.changeset).await.unwrap();
        assert_eq!(verification.mismatches.len(), 0);
        let late = committor.retry(key).await.unwrap_err();
        assert!(matches!(late, EngineError::Store(StoreError::Transition(_))), "{late}");
        committor.shutdown(Duration::ZERO).await.unwrap();
    }
    let record =
        world.rpc().accounts(&[address::record(&world.account(1))]).await.unwrap().remove(0).unwrap();
    assert_eq!(Delegation::read(&record.data).unwrap().nonce, 2, "once for each bundle");
}

async fn what_had_landed_after_all_is_not_applied_again(validator: Validator) {
    let world = World::new(validator).await;
    let committor = world.sound(settings()).await;
    let (key, report) = commit(&committor, world.bundle(1, 1, 40)).await;
    assert_eq!(report.status, BundleStatus::Landed);
    committor.shutdown(Duration::ZERO).await.unwrap();
    // As if the chain had hidden it from an earlier version, which then called it failed.
    let sql = rusqlite::Connection::open(world.path()).unwrap();
    sql.execute_batch("UPDATE bundles SET status = 'failed', error = 'lost'; DELETE FROM bundle_signatures;")
        .unwrap();
    drop(sql);
    let committor = world.sound(settings()).await;
    let report = committor.retry(key).await.unwrap().finished().await.unwrap();
    assert_eq!((report.bundles[0].status, report.bundles[0].transactions), (BundleStatus::Landed, 1));
    let record =
        world.rpc().accounts(&[address::record(&world.account(1))]).await.unwrap().remove(0).unwrap();
    assert_eq!(Delegation::read(&record.data).unwrap().nonce, 1);
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn a_retry_does_not_reach_a_later_delegation_of_the_account(validator: Validator) {
    let world = World::new(validator).await;
    let owned = world.account(7);
    let committor = world.sound(starving()).await;
    let state_of = |byte| vec![AccountCommit { account: owned, state: state(60, byte) }];
    let (key, report) = commit(&committor, CommitBundle::new(BundleId(1), state_of(1))).await;
    assert_eq!(report.status, BundleStatus::Failed);
    committor.shutdown(Duration::ZERO).await.unwrap();
    // The same bundle, as if it had been planned for another delegation.
    let sql = rusqlite::Connection::open(world.path()).unwrap();
    assert_eq!(
        sql.execute("UPDATE commits SET session = session - 1 WHERE session IS NOT NULL", []).unwrap(),
        1
    );
    drop(sql);
    let committor = world.sound(settings()).await;
    let report = committor.retry(key).await.unwrap().finished().await.unwrap();
    let error = report.bundles[0].error.as_deref().unwrap();
    assert!(error.contains("delegated anew") && error.contains(&owned.to_string()), "{error}");
    committor.abandon(key).await.unwrap();
    assert_eq!(committor.bundle(key).await.unwrap().status, BundleStatus::Abandoned);
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn a_finalization_that_failed_is_retried_as_one(validator: Validator) {
    let world = World::new(validator).await;
    let committor = world.sound(settings()).await;
    let (key, report) = commit(&committor, world.bundle(1, 1, 40).mode(CommitMode::Stage)).await;
    assert_eq!(report.status, BundleStatus::Staged);
    committor.shutdown(Duration::ZERO).await.unwrap();
    let sql = rusqlite::Connection::open(world.path()).unwrap();
    sql.execute_batch("UPDATE bundles SET status = 'failed', error = 'no luck'").unwrap();
    drop(sql);
    let committor = world.sound(settings()).await;
    let report = committor.retry(key).await.unwrap().finished().await.unwrap();
    assert_eq!(report.bundles[0].status, BundleStatus::Landed, "{:?}", report.bundles[0].error);
    let found = world.rpc().accounts(&[world.account(1)]).await.unwrap().remove(0).unwrap();
    assert_eq!(found.data, &state(40, 1)[..]);
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn errors_that_may_pass_are_tried_by_attempts_age_and_delay(validator: Validator) {
    let world = World::new(validator).await;
    let (ms, attempts) = (Duration::from_millis, 4);
    let base = EngineSettings { attempts, first_retry_delay: ms(1), ..settings() };
    let tries = async |settings: EngineSettings| {
        let committor = world.expiring(settings).await;
        let mut events = committor.events();
        let started = Instant::now();
        let (_, report) = commit(&committor, world.bundle(1, 1, 40)).await;
        let took = started.elapsed();
        assert_eq!(report.status, BundleStatus::Failed, "{report:?}");
        committor.shutdown(Duration::ZERO).await.unwrap();
        drop(committor);
        let mut retries = 0;
        while let Ok(event) = events.recv().await {
            retries += usize::from(matches!(event, Event::Retrying { .. }));
        }
        (retries, took)
    };
    assert_eq!(tries(base).await.0, 3, "as many attempts as were allowed, and a retry between each two");
    let (retries, took) =
        tries(EngineSettings { first_retry_delay: ms(40), max_retry_delay: ms(50), ..base }).await;
    assert!(retries == 3 && took >= ms(40 + 50 + 50), "{took:?}");
    let aged =
        EngineSettings { attempts: u32::MAX, retry_for: Some(ms(100)), max_retry_delay: ms(10), ..base };
    let (retries, took) = tries(aged).await;
    assert!(retries > 0 && took >= ms(100), "{retries} in {took:?}");
    assert_eq!(tries(EngineSettings { retry_for: Some(Duration::ZERO), ..base }).await.0, 0);
}

async fn a_store_is_not_worked_on_for_another_cluster_or_another_authority(validator: Validator) {
    let world = World::new(validator).await;
    let committor = world.sound(settings()).await;
    committor.shutdown(Duration::ZERO).await.unwrap();
    let start = async |authority: Arc<Keypair>| {
        let signers = Signers { payer: world.authority.clone(), authority };
        Committor::with_chain(world.rpc(), world.store(), signers, settings()).await.err()
    };
    assert!(start(world.authority.clone()).await.is_none());
    let other = start(Arc::new(Keypair::new())).await;
    assert!(matches!(other, Some(EngineError::Store(StoreError::OtherAuthority { .. }))), "{other:?}");
    // Another validator has another genesis.
    let elsewhere = World::new(Validator::Embedded).await;
    let signers = Signers { payer: world.authority.clone(), authority: world.authority.clone() };
    let other = Committor::with_chain(elsewhere.rpc(), world.store(), signers, settings()).await.err();
    let Some(EngineError::Store(StoreError::OtherCluster { given, .. })) = other else { panic!("{other:?}") };
    assert_eq!(given, elsewhere.rpc().genesis_hash().await.unwrap());
    let recorded = world.rpc().genesis_hash().await.unwrap();
    let expected = Identity { cluster: recorded, authority: world.authority.pubkey() };
    assert_eq!(world.store().identity().await.unwrap(), Some(expected));
    assert_ne!(recorded, Hash::default());
}

on_each_validator!(
    what_failed_lands_once_when_it_is_retried_under_better_circumstances,
    what_had_landed_after_all_is_not_applied_again,
    a_retry_does_not_reach_a_later_delegation_of_the_account,
    a_finalization_that_failed_is_retried_as_one,
    errors_that_may_pass_are_tried_by_attempts_age_and_delay,
    a_store_is_not_worked_on_for_another_cluster_or_another_authority
);
