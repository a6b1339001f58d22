//! What the store keeps of tables.

use committor_client::{
    Lamports, Store,
    store::{SeenTable, TableTransaction, TransactionOutcome},
    types::{TableOrigin, TableStatus, TableStep},
};
use solana_signature::Signature;

use crate::world::{keys, named};

#[tokio::test]
async fn the_store_keeps_a_table_with_its_first_transaction_and_closes_none_that_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let [authority, other, table] = [0, 1, 2].map(|number| keys(number..number + 1)[0]);
    let create = |byte: u8| TableTransaction {
        table,
        step: TableStep::Create,
        signature: Signature::from([byte; 64]),
        last_valid_block_height: u64::MAX,
        wire: vec![byte; 1_232],
    };
    store.table_planned(authority, create(1)).await.unwrap();
    store.table_planned(authority, create(2)).await.unwrap_err();
    store.table_signed(vec![create(1)]).await.unwrap();
    store.table_discovered(authority, table).await.unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.open_table_transactions(authority).await.unwrap(), [create(1)]);
    assert_eq!(store.open_table_transactions(other).await.unwrap(), []);
    store.table_settled(create(1).signature, TransactionOutcome::Landed { slot: 9 }).await.unwrap();
    assert_eq!(store.open_table_transactions(authority).await.unwrap(), []);

    let seen = |entries| SeenTable {
        address: table,
        status: TableStatus::Active,
        deactivation_slot: None,
        lamports: Lamports(5),
        absent_since_slot: None,
        entries,
    };
    store.tables_seen(vec![seen(keys(10..12))]).await.unwrap();
    // Whatever a lagging node says, what was there stays.
    for entries in [keys(10..15), keys(10..11)] {
        store.tables_seen(vec![seen(entries)]).await.unwrap();
    }
    store.reserve_keys(named("a"), keys(14..20)).await.unwrap();
    store.reserve_keys(named("a"), keys(14..20)).await.unwrap();
    store.reserve_keys(named("b"), keys(14..15)).await.unwrap();
    let [stored] = &store.tables(authority).await.unwrap()[..] else { panic!("one table") };
    assert_eq!((&stored.entries, stored.references, stored.unused_since_ms), (&keys(10..15), 2, None));
    assert_eq!((stored.origin, stored.status), (TableOrigin::Created, TableStatus::Active));
    assert!(!store.table_closing(table, true).await.unwrap());
    store.release_keys(named("a")).await.unwrap();
    assert!(!store.table_closing(table, true).await.unwrap());
    store.release_keys(named("b")).await.unwrap();
    assert!(store.tables(authority).await.unwrap()[0].unused_since_ms.is_some());
    assert!(store.table_closing(table, true).await.unwrap());
    // A status and its columns agree.
    let closed = SeenTable { status: TableStatus::Deactivating, ..seen(vec![]) };
    store.tables_seen(vec![closed]).await.unwrap_err();
}
