//! What is forgotten and what is kept, and that the log of changes stays short.

use std::{sync::Arc, time::Duration};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, CommitMode, Store,
    store::{BundleEnd, Pruned, StoreError},
    types::{BundleKey, BundleStatus, ChangesetId, Stage},
};
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
        store.settled(signature(1), landed(10)).await.unwrap();
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

fn large(id: u64, len: usize) -> Changeset {
    let commit = |byte: u8| AccountCommit {
        account: Address::new_from_array([byte; 32]),
        state: Arc::from(vec![byte; len]),
    };
    Changeset { bundles: vec![CommitBundle::new(BundleId(id), vec![commit(1)])] }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_stays_short_though_readers_never_pause_and_freed_pages_are_used_again() {
    const MIB: usize = 1024 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let key = store.accept(large(0, 8 * MIB), vec![]).await.unwrap().1[0].key;
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                loop {
                    store.bundle(key).await.unwrap();
                }
            })
        })
        .collect();
    let len = |suffix: &str| std::fs::metadata(folder.path().join(format!("s.db{suffix}"))).unwrap().len();
    let (mut longest, mut largest) = (0, 0);
    for id in 1..=60 {
        let (_, bundles) = store.accept(large(id, 4 * MIB), vec![]).await.unwrap();
        store.end(bundles[0].key, BundleEnd::Landed(None)).await.unwrap();
        store.prune(Duration::ZERO, 1_000).await.unwrap();
        longest = longest.max(len("-wal"));
        largest = largest.max(len(""));
    }
    for reader in readers {
        reader.abort();
    }
    assert!(longest <= 48 * MIB as u64, "the log grew to {longest} bytes");
    assert!(largest <= 48 * MIB as u64, "the file grew to {largest} bytes, though 240 MiB were pruned");
}
