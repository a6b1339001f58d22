//! Somebody else who works on the same tables.

use std::sync::atomic::Ordering;

use committor_client::{
    EngineError,
    chain::{Chain, RpcChain},
    engine::tables::{TableError, TableState},
    types::TableOrigin,
};
use committor_localnet::{Validator, on_each_validator};
use solana_address_lookup_table_interface::instruction;
use solana_signer::Signer;

use crate::world::{World, assert_distinct, keys, named};

async fn a_table_that_somebody_else_extended_is_read_back_before_it_is_extended(validator: Validator) {
    let world = World::new(validator).await;
    let (tables, chain) = world.tables();
    let table = tables.reserve(named("test"), &keys(0..5)).await.unwrap()[0].address;
    let authority = world.authority.pubkey();
    let extend = instruction::extend_lookup_table(table, authority, Some(authority), keys(5..15));
    chain.inner.land(world.sign(&chain.inner, &[extend], &[]).await).await.unwrap();
    let serving = tables.reserve(named("test"), &keys(0..20)).await.unwrap();
    assert_eq!((serving.len(), serving[0].addresses.len()), (1, 20));
    assert_distinct(&world.entries(table).await);

    // After a restart, without any reason to extend it.
    let extend = instruction::extend_lookup_table(table, authority, Some(authority), keys(20..25));
    chain.inner.land(world.sign(&chain.inner, &[extend], &[]).await).await.unwrap();
    let (tables, chain) = world.tables();
    let serving = tables.reserve(named("test"), &keys(0..25)).await.unwrap();
    assert_eq!((serving[0].addresses.len(), chain.landed.load(Ordering::SeqCst)), (25, 0));
}

async fn a_table_that_somebody_else_deactivated_is_replaced_and_closed(validator: Validator) {
    let world = World::new(validator).await;
    let authority = world.authority.pubkey();
    let deactivate = async |chain: &RpcChain, table| {
        world.sign(chain, &[instruction::deactivate_lookup_table(table, authority)], &[]).await
    };
    // Found out when it is to be extended.
    let (tables, chain) = world.tables();
    let first = tables.reserve(named("test"), &keys(0..5)).await.unwrap()[0].address;
    chain.inner.land(deactivate(&chain.inner, first).await).await.unwrap();
    tables.reserve(named("test"), &keys(5..6)).await.unwrap();
    let serving = tables.reserve(named("test"), &keys(0..6)).await.unwrap();
    let second = serving[0].address;
    assert!(serving.len() == 1 && second != first);
    // Only while it is being extended: it refuses.
    *chain.ambush.lock().unwrap() = Some(deactivate(&chain.inner, second).await);
    let serving = tables.reserve(named("test"), &keys(0..7)).await.unwrap();
    let third = serving[0].address;
    assert!(serving.len() == 1 && third != first && third != second);
    // Found out at the next start.
    chain.inner.land(deactivate(&chain.inner, third).await).await.unwrap();
    let (tables, _) = world.tables();
    let serving = tables.reserve(named("test"), &keys(0..7)).await.unwrap();
    assert!(serving.len() == 1 && ![first, second, third].contains(&serving[0].address));

    tables.release(named("test")).await.unwrap();
    tables.close_unused().await.unwrap();
    assert_eq!(tables.closed().await.unwrap().len(), 4);
    world.check_all_closed("in the end").await;
}

async fn a_table_that_no_store_knows_is_found_and_closed_only_if_asked_for(validator: Validator) {
    let world = World::new(validator).await;
    let (tables, _) = world.tables();
    let table = tables.reserve(named("test"), &keys(0..5)).await.unwrap()[0].address;
    drop(tables);
    std::fs::remove_file(world.store_path()).unwrap();

    let (tables, _) = world.tables();
    let unknown = tables.close(&[table]).await.unwrap_err();
    assert!(matches!(unknown, EngineError::Table(TableError::Unknown(unknown)) if unknown == table));
    assert_eq!(tables.discover().await.unwrap(), [table]);
    assert_eq!(tables.discover().await.unwrap(), [], "it is known now");
    let list = tables.list().await.unwrap();
    assert_eq!((list[0].origin, list[0].state), (TableOrigin::Discovered, TableState::Active));
    assert_eq!(tables.tables_for(&keys(0..5)), []);
    assert_eq!(tables.close_unused().await.unwrap().deactivated, [], "another process may need it");
    assert_eq!(tables.close(&[table]).await.unwrap().deactivated, [table]);
    assert_eq!(tables.closed().await.unwrap(), [table]);
    world.check_all_closed("in the end").await;
}

on_each_validator!(
    a_table_that_somebody_else_extended_is_read_back_before_it_is_extended,
    a_table_that_somebody_else_deactivated_is_replaced_and_closed,
    a_table_that_no_store_knows_is_found_and_closed_only_if_asked_for
);
