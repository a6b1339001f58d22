//! What is forgotten and what is kept, and that the log of changes stays short.

use std::{path::PathBuf, sync::Arc, time::Duration};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, CommitMode, Lamports, Store,
    store::{BundleEnd, Pruned, SeenTable, StoreError},
    types::{BundleKey, BundleStatus, ChangesetId, Stage, TableHolder, TableStatus},
};
use rusqlite::Connection;
use solana_address::Address;

use crate::place::{Place, bundle, changeset, decision, landed, on_each, signature, transaction};

/// Accepts changesets of one bundle each.
async fn accept(store: &Store, bundles: &[CommitBundle]) -> Vec<BundleKey> {
    let mut keys = Vec::new();
    for bundle in bundles {
        keys.push(store.accept(changeset(std::slice::from_ref(bundle)), vec![]).await.unwrap().1[0].key);
    }
    keys
}

async fn prune(store: &Store, older_than: Duration, max_rows: u32) -> Pruned {
    let mut all = Pruned::default();
    loop {
        let step = store.prune(older_than, max_rows).await.unwrap();
        all.changesets += step.changesets;
        all.bundles += step.bundles;
        all.rows += step.rows;
        if !step.more {
            return all;
        }
    }
}

#[tokio::test]
async fn what_has_ended_is_pruned_with_all_that_belongs_to_it_and_the_rest_stays() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let staged = bundle(3, &[3]).mode(CommitMode::Stage);
        let keys = accept(&store, &[bundle(1, &[1, 2]), bundle(2, &[2]), staged, bundle(4, &[4])]).await;
        store.decide(keys[0], vec![decision(), decision()]).await.unwrap();
        let mut shared = transaction(keys[0], Stage::Commit, 1, &[0, 1]);
        shared.serves.push((keys[1], 0));
        store.signed(vec![shared]).await.unwrap();
        landed(&store, signature(1), 10).await;
        store.end(keys[0], BundleEnd::Landed(Some(signature(1)))).await.unwrap();
        store.end(keys[2], BundleEnd::Staged(None)).await.unwrap();

        let young = prune(&store, Duration::from_secs(3_600), 100).await;
        assert_eq!(young, Pruned::default(), "it has only just ended");
        let pruned = prune(&store, Duration::ZERO, 1).await;
        assert_eq!((pruned.changesets, pruned.bundles), (1, 1));
        assert!(matches!(store.report(Some(ChangesetId(1))).await, Err(StoreError::NoChangeset(_))));
        assert!(matches!(store.bundle(keys[0]).await, Err(StoreError::NoBundle(_))));
        let statuses = [BundleStatus::Committing, BundleStatus::Staged, BundleStatus::Accepted];
        for (key, status) in keys[1..].iter().zip(statuses) {
            assert_eq!(store.bundle(*key).await.unwrap().status, status);
        }
        // The transaction that it shared is still there for the other one, and goes with it.
        assert_eq!(store.bundle_report(keys[1]).await.unwrap().transactions, 1);
        store.end(keys[1], BundleEnd::Failed("over".into())).await.unwrap();
        prune(&store, Duration::ZERO, 100).await;
        let totals = store.totals().await.unwrap();
        assert_eq!((totals.changesets, totals.commits, totals.transactions), (2, 2, 0));
    })
    .await;
}

#[tokio::test]
async fn a_changeset_is_kept_as_long_as_others_name_it_and_goes_with_them() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let first = changeset(&[bundle(1, &[1]), bundle(2, &[2])]);
        let (_, older) = store.accept(first, vec![]).await.unwrap();
        let newer = accept(&store, &[bundle(1, &[1])]).await[0];
        store.supersede(older[0].key, newer).await.unwrap();
        store.end(newer, BundleEnd::Landed(None)).await.unwrap();
        // The first changeset has not ended, and says which bundle took the place of one of its own.
        assert_eq!(prune(&store, Duration::ZERO, 100).await, Pruned::default());
        store.end(older[1].key, BundleEnd::Landed(None)).await.unwrap();
        let mut pruned = prune(&store, Duration::ZERO, 100).await;
        pruned.changesets += prune(&store, Duration::ZERO, 100).await.changesets;
        assert_eq!(pruned.changesets, 2);
    })
    .await;
}

#[tokio::test]
async fn what_a_pruned_bundle_had_reserved_in_lookup_tables_is_given_up() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let [authority, table, entry] = [1, 2, 3].map(|byte| Address::new_from_array([byte; 32]));
        store.table_discovered(authority, table).await.unwrap();
        let seen = SeenTable {
            address: table,
            status: TableStatus::Active,
            deactivation_slot: None,
            lamports: Lamports(5),
            absent_since_slot: None,
            entries: vec![entry],
        };
        store.tables_seen(vec![seen]).await.unwrap();
        let key = accept(&store, &[bundle(1, &[1])]).await[0];
        store.reserve_keys(TableHolder::Bundle(key), vec![entry]).await.unwrap();
        store.end(key, BundleEnd::Landed(None)).await.unwrap();
        let used = async || {
            let table = &store.tables(authority).await.unwrap()[0];
            (table.references, table.unused_since_ms.is_none())
        };
        assert_eq!(used().await, (1, true));
        prune(&store, Duration::ZERO, 100).await;
        assert_eq!(used().await, (0, false));
    })
    .await;
}

#[tokio::test]
async fn a_step_is_bounded_and_a_long_changeset_goes_in_several() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let bundles: Vec<_> = (1..=100).map(|id| bundle(id, &[1, 2, 3])).collect();
        let (id, queued) = store.accept(changeset(&bundles), vec![]).await.unwrap();
        for bundle in queued {
            store.end(bundle.key, BundleEnd::Landed(None)).await.unwrap();
        }
        let (mut left, mut steps) = (100, 0);
        loop {
            let step = store.prune(Duration::ZERO, 70).await.unwrap();
            // Seven rows a bundle: one over the limit at most.
            assert!(step.rows <= 70 + 7, "{step:?}");
            left -= step.bundles;
            steps += 1;
            if !step.more {
                break;
            }
            if left > 0 {
                assert_eq!(store.report(Some(id)).await.unwrap().bundles.len() as u64, left);
            }
        }
        assert_eq!((left, steps), (0, 11));
    })
    .await;
}

const MIB: usize = 1024 * 1024;

fn large(id: u64, len: usize) -> Changeset {
    let commit = AccountCommit { account: Address::new_from_array([1; 32]), state: Arc::from(vec![1; len]) };
    Changeset { bundles: vec![CommitBundle::new(BundleId(id), vec![commit])] }
}

fn len(path: PathBuf) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[tokio::test]
async fn the_log_is_emptied_when_it_is_long_and_a_reader_in_the_way_only_puts_that_off() {
    const LONG: usize = 33 * MIB;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let log = || len(folder.path().join("s.db-wal"));
    store.accept(large(1, MIB), vec![]).await.unwrap();
    assert!(log() > MIB as u64);
    store.accept(large(2, LONG), vec![]).await.unwrap();
    assert_eq!(log(), 0);
    // It sees the store as it is now until it ends, so what comes after must stay in the log.
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM bundles;").unwrap();
    store.accept(large(3, LONG), vec![]).await.unwrap();
    assert!(log() > LONG as u64);
    reader.execute_batch("COMMIT").unwrap();
    store.accept(large(4, LONG), vec![]).await.unwrap();
    assert_eq!(log(), 0);
}

#[tokio::test]
async fn what_pruning_frees_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path).unwrap();
    for id in 1..=20 {
        let (_, bundles) = store.accept(large(id, 4 * MIB), vec![]).await.unwrap();
        store.end(bundles[0].key, BundleEnd::Landed(None)).await.unwrap();
        assert_eq!(store.prune(Duration::ZERO, 1_000).await.unwrap().changesets, 1);
    }
    drop(store);
    let len = len(path);
    assert!(len <= 16 * MIB as u64, "the file grew to {len} bytes");
}
