//! Tables that nobody needs.

use std::sync::Arc;

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, EngineError, Signers,
    chain::Chain,
    engine::tables::{TableState, Tables, Upkeep},
    store::BundleEnd,
    types::TableHolder,
};
use committor_localnet::{Validator, on_each_validator};
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::world::{World, keys, named, states};

async fn a_table_that_nobody_needs_is_closed_after_its_cool_down_and_its_rent_comes_back(
    validator: Validator,
) {
    let world = World::new(validator).await;
    let (tables, _) = world.tables();
    tables.reserve(named("one"), &keys(0..5)).await.unwrap();
    tables.reserve(named("two"), &keys(3..8)).await.unwrap();
    assert_eq!(tables.close_unused().await.unwrap().deactivated, []);
    tables.release(named("one")).await.unwrap();
    let done = tables.close_unused().await.unwrap();
    assert_eq!((done.deactivated, done.closed), (vec![], vec![]), "another one needs addresses in it");
    tables.release(named("two")).await.unwrap();
    assert_eq!(tables.maintain().await.unwrap().deactivated, [], "it has not been idle for an hour");

    let table = tables.list().await.unwrap()[0].address;
    let Upkeep { deactivated, closed, failed } = tables.close_unused().await.unwrap();
    assert_eq!((deactivated, closed, failed.len()), (vec![table], vec![], 0));
    assert_eq!(tables.tables_for(&keys(0..8)), [], "no new transaction counts on it");
    let list = tables.list().await.unwrap();
    assert!(matches!(list[0].state, TableState::Deactivating { .. }), "{list:?}");
    let done = tables.close_unused().await.unwrap();
    assert_eq!(
        (done.deactivated, done.closed, done.failed.len()),
        (vec![], vec![], 0),
        "not before its time"
    );

    // What is needed again meanwhile goes into another one.
    let serving = tables.reserve(named("three"), &keys(0..1)).await.unwrap();
    assert_ne!(serving[0].address, table);
    assert_eq!(tables.closed().await.unwrap(), [table]);
    let list = tables.list().await.unwrap();
    assert_eq!(states(&list), [TableState::Closed, TableState::Active]);
    tables.release(named("three")).await.unwrap();
    tables.close_unused().await.unwrap();
    tables.closed().await.unwrap();
    world.check_all_closed("in the end").await;
}

async fn what_a_bundle_reserved_is_released_once_it_has_ended_also_after_a_crash(validator: Validator) {
    let world = World::new(validator).await;
    let (tables, _) = world.tables();
    let commit = AccountCommit { account: keys(0..1)[0], state: Arc::from([]) };
    let changeset = Changeset { bundles: vec![CommitBundle::new(BundleId(1), vec![commit])] };
    let (_, bundles) = world.store().accept(changeset, vec![]).await.unwrap();
    let holder = TableHolder::Bundle(bundles[0].key);
    let table = tables.reserve(holder, &keys(0..5)).await.unwrap()[0].address;
    assert_eq!(tables.list().await.unwrap()[0].references, 5);
    world.store().end(bundles[0].key, BundleEnd::Failed("no matter".to_owned())).await.unwrap();
    drop(tables);
    let (tables, _) = world.tables();
    assert_eq!(tables.close_unused().await.unwrap().deactivated, [table]);
    let nobody = TableHolder::Bundle(committor_client::types::BundleKey(99));
    assert!(matches!(tables.reserve(nobody, &keys(0..1)).await, Err(EngineError::Store(_))));
}

async fn the_payer_pays_and_gets_the_rent_back_and_the_authority_needs_no_lamports(validator: Validator) {
    let world = World::new(validator).await;
    let authority = Arc::new(Keypair::new());
    let signers = Signers { payer: world.authority.clone(), authority: authority.clone() };
    let chain = Arc::new(world.rpc());
    let tables = Tables::new(chain.clone(), world.store(), signers, World::settings());
    // More than one transaction's worth, so that it is made and extended.
    let table = tables.reserve(named("a"), &keys(0..60)).await.unwrap()[0].address;
    let found = chain.tables_of(&authority.pubkey()).await.unwrap();
    assert_eq!(found.into_iter().map(|(address, _)| address).collect::<Vec<_>>(), [table]);
    assert_eq!(chain.tables_of(&world.authority.pubkey()).await.unwrap(), []);
    tables.release(named("a")).await.unwrap();
    tables.close_unused().await.unwrap();
    assert_eq!(tables.closed().await.unwrap(), [table]);
    world.check_all_closed("in the end").await;
    assert_eq!(chain.accounts(&[authority.pubkey()]).await.unwrap(), [None]);
}

on_each_validator!(
    a_table_that_nobody_needs_is_closed_after_its_cool_down_and_its_rent_comes_back,
    what_a_bundle_reserved_is_released_once_it_has_ended_also_after_a_crash,
    the_payer_pays_and_gets_the_rent_back_and_the_authority_needs_no_lamports,
);
