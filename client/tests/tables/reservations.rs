//! Addresses come into tables, once.

use std::{collections::BTreeSet, sync::atomic::Ordering};

use committor_client::{
    chain::Chain,
    engine::tables::TableSettings,
    plan::TABLE_COMPUTE_UNIT_LIMIT,
    types::{PriorityFee, TransactionVersion},
};
use committor_localnet::{Validator, on_each_validator};
use futures::future::join_all;
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;

use crate::{
    chain::Fault,
    world::{BALANCE, World, assert_distinct, keys, named},
};

async fn a_v0_transaction_reaches_more_accounts_through_tables_than_it_could_name(validator: Validator) {
    let world = World::new(validator).await;
    let (tables, chain) = world.tables();
    let receivers = keys(0..60);
    let instructions: Vec<_> =
        receivers.iter().map(|key| transfer(&world.authority.pubkey(), key, 1_000_000)).collect();
    let named_all = world.sign(&chain.inner, &instructions[..40], &[]).await.transaction;
    let max = TransactionVersion::V0.max_len() as u64;
    assert!(wincode::serialized_size(&named_all).unwrap() > max);

    assert_eq!(tables.tables_for(&receivers), []);
    let serving = tables.reserve(named("test"), &receivers).await.unwrap();
    assert_eq!((serving.len(), &tables.tables_for(&receivers)), (1, &serving));
    let transaction = world.sign(&chain.inner, &instructions[..40], &serving).await;
    assert!(wincode::serialized_size(&transaction.transaction).unwrap() <= max);
    chain.inner.land(transaction).await.unwrap();
    for account in chain.inner.accounts(&receivers[..40]).await.unwrap() {
        assert_eq!(account.unwrap().lamports, 1_000_000);
    }
    assert_eq!(world.entries(serving[0].address).await, serving[0].addresses);
}

async fn reservations_of_the_same_new_addresses_at_once_give_one_entry_each(validator: Validator) {
    let world = World::new(validator).await;
    let (tables, chain) = world.tables();
    let reserve = async |number: u16| {
        // Overlapping, so that no two ask for the same, and all for some of the same.
        let keys = keys(number..number + 20);
        let serving = tables.reserve(named(&number.to_string()), &keys).await.unwrap();
        let served: BTreeSet<_> = serving.iter().flat_map(|table| &table.addresses).copied().collect();
        assert!(keys.iter().all(|key| served.contains(key)));
    };
    join_all((0..20).map(reserve)).await;
    let list = tables.list().await.unwrap();
    assert_eq!((list.len(), list[0].entries, list[0].references), (1, 39, 400));
    assert_distinct(&world.entries(list[0].address).await);
    let transactions = chain.landed.load(Ordering::SeqCst);
    assert!(transactions <= 4, "who waits for a turn goes with those before: {transactions} transactions");
    // Again, by the same holder: it counts once, and costs nothing.
    tables.reserve(named("0"), &keys(0..20)).await.unwrap();
    assert_eq!(tables.list().await.unwrap(), list);
    assert_eq!(chain.landed.load(Ordering::SeqCst), transactions);
}

async fn more_addresses_than_a_table_holds_take_two(validator: Validator) {
    let world = World::new(validator).await;
    let (tables, _) = world.tables();
    let serving = tables.reserve(named("test"), &keys(0..300)).await.unwrap();
    let mut lens: Vec<_> = serving.iter().map(|table| table.addresses.len()).collect();
    lens.sort_unstable();
    assert_eq!(lens, [44, 256]);
    // The rest of the second one is used before a third is made.
    let serving = tables.reserve(named("test"), &keys(300..512)).await.unwrap();
    assert_eq!((serving.len(), serving[0].addresses.len()), (1, 256));
    let mut all = Vec::new();
    for table in tables.list().await.unwrap() {
        all.extend(world.entries(table.address).await);
    }
    assert_eq!(all.len(), 512);
    assert_distinct(&all);
}

async fn tables_are_paid_for_with_priority_if_that_is_wanted(validator: Validator) {
    let world = World::new(validator).await;
    let settings = TableSettings { priority_fee: PriorityFee::Fixed(1_000_000), ..World::settings() };
    let (tables, chain) = world.faulty(Fault::None, usize::MAX, settings);
    let serving = tables.reserve(named("test"), &keys(0..60)).await.unwrap();
    let (table, transactions) = (serving[0].address, chain.landed.load(Ordering::SeqCst) as u64);
    assert_eq!((serving.len(), transactions), (1, 3));
    let rent = tables.list().await.unwrap()[0].lamports.0;
    let limit = u64::from(TABLE_COMPUTE_UNIT_LIMIT);
    assert_eq!(BALANCE - world.balance().await, rent + transactions * (5_000 + limit));
    let signatures = chain.inner.client().get_signatures_for_address(&table).await.unwrap();
    assert_eq!(signatures.len() as u64, transactions);
    for found in signatures {
        let cost = chain.inner.cost(found.signature.parse().unwrap()).await.unwrap().unwrap();
        assert!(cost.compute_units <= limit / 2, "{cost:?}");
    }
}

on_each_validator!(
    a_v0_transaction_reaches_more_accounts_through_tables_than_it_could_name,
    reservations_of_the_same_new_addresses_at_once_give_one_entry_each,
    more_addresses_than_a_table_holds_take_two,
    tables_are_paid_for_with_priority_if_that_is_wanted,
);
