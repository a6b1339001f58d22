//! What people look for is found, by an index, however much else there is.

use std::time::{Duration, Instant};

use committor_client::{
    BundleId, CommitMode, Store,
    store::{BundleEnd, BundleFilter, ChangesetSummary, StoreError},
    types::{BundleKey, BundleStatus, ChangesetId, Stage},
};
use rusqlite::Connection;
use solana_address::Address;

use crate::place::{LANDED, Place, bundle, changeset, landed, on_each, signature, transaction};

const EVERYTHING: BundleFilter =
    BundleFilter { account: None, bundle: None, status: None, older_than: None, limit: 100 };

fn account(byte: u8) -> Address {
    Address::new_from_array([byte; 32])
}

#[tokio::test]
async fn bundles_are_found_by_account_id_status_and_age_alone_and_together() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let mut keys = Vec::new();
        for _ in 0..2 {
            let submitted = changeset(&[bundle(7, &[1, 2]), bundle(8, &[2, 3]), bundle(9, &[3])]);
            let (_, bundles) = store.accept(submitted, vec![]).await.unwrap();
            keys.extend(bundles.into_iter().map(|bundle| bundle.key));
        }
        store.end(keys[0], BundleEnd::Failed("no".into())).await.unwrap();
        store.end(keys[4], BundleEnd::Failed("no".into())).await.unwrap();
        store.end(keys[5], BundleEnd::Landed(None)).await.unwrap();
        let found = async |filter: BundleFilter| -> Vec<BundleKey> {
            store.find(filter).await.unwrap().into_iter().map(|bundle| bundle.key).collect()
        };
        let sorted = async |filter| {
            let mut keys = found(filter).await;
            keys.sort();
            keys
        };
        let of = |positions: &[usize]| positions.iter().map(|at| keys[*at]).collect::<Vec<_>>();
        let by_account = BundleFilter { account: Some(account(2)), ..EVERYTHING };
        assert_eq!(found(by_account).await, of(&[4, 3, 1, 0]));
        assert_eq!(found(BundleFilter { limit: 2, ..by_account }).await, of(&[4, 3]));
        let failed = BundleFilter { status: Some(BundleStatus::Failed), ..EVERYTHING };
        assert_eq!(sorted(failed).await, of(&[0, 4]));
        assert_eq!(found(BundleFilter { account: Some(account(1)), ..failed }).await, of(&[0]));
        assert_eq!(found(BundleFilter { bundle: Some(BundleId(8)), ..EVERYTHING }).await, of(&[4, 1]));
        assert_eq!(found(BundleFilter { bundle: Some(BundleId(8)), ..failed }).await, of(&[4]));
        assert_eq!(sorted(EVERYTHING).await, keys);
        let none = BundleFilter { older_than: Some(Duration::from_secs(3_600)), ..EVERYTHING };
        assert_eq!(found(none).await, []);
        assert_eq!(found(BundleFilter { account: Some(account(1)), ..none }).await, []);
        let all = BundleFilter { older_than: Some(Duration::ZERO), ..EVERYTHING };
        assert_eq!(sorted(all).await, keys);
        let all = BundleFilter { bundle: Some(BundleId(9)), status: Some(BundleStatus::Landed), ..all };
        assert_eq!(found(all).await, of(&[5]));
        let report = &store.find(failed).await.unwrap()[0];
        assert_eq!(report.changeset, store.report(Some(report.changeset)).await.unwrap().changeset);
    })
    .await;
}

#[tokio::test]
async fn totals_and_summaries_follow_every_change() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let staged = bundle(5, &[5]).mode(CommitMode::Stage);
        let submitted =
            changeset(&[bundle(1, &[1, 2]), bundle(2, &[3]), bundle(3, &[4]), bundle(4, &[4]), staged]);
        let (_, bundles) = store.accept(submitted, vec![]).await.unwrap();
        let keys: Vec<BundleKey> = bundles.iter().map(|bundle| bundle.key).collect();
        let totals = store.totals().await.unwrap();
        assert_eq!((totals.changesets, totals.commits, totals.state_bytes), (1, 6, 19));
        assert_eq!(totals.bundles["accepted"], 5);
        store.signed(vec![transaction(keys[0], Stage::Commit, 1, &[0, 1])]).await.unwrap();
        assert_eq!(store.totals().await.unwrap().transactions, 0);
        store.settled(signature(1), LANDED).await.unwrap();
        let totals = store.totals().await.unwrap();
        assert_eq!((totals.transactions, totals.compute_units, totals.fee_lamports.0), (1, 0, 0));
        assert_eq!(store.without_cost(keys[0]).await.unwrap(), [signature(1)]);
        // Told again with another cost, it counts once.
        landed(&store, signature(1), 70).await;
        landed(&store, signature(1), 50).await;
        assert_eq!(store.without_cost(keys[0]).await.unwrap(), []);
        store.end(keys[0], BundleEnd::Landed(Some(signature(1)))).await.unwrap();
        store.end(keys[1], BundleEnd::Failed("no".into())).await.unwrap();
        store.supersede(keys[2], keys[3]).await.unwrap();
        store.end(keys[4], BundleEnd::Staged(None)).await.unwrap();
        let totals = store.totals().await.unwrap();
        let of = |status: BundleStatus| totals.bundles[status.as_str()];
        assert_eq!(BundleStatus::ALL.map(of), [1, 0, 0, 1, 0, 1, 1, 1, 0]);
        assert_eq!((totals.transactions, totals.compute_units, totals.fee_lamports.0), (1, 50, 5_000));
        store.accept(changeset(&[bundle(1, &[1])]), vec![]).await.unwrap();
        let summaries = store.changesets(10).await.unwrap();
        let counts: Vec<_> = (summaries.iter())
            .map(|summary| {
                let ChangesetSummary { changeset, bundles, landed, staged, failed, superseded, .. } = summary;
                [changeset.0, *bundles, *landed, *staged, *failed, *superseded]
            })
            .collect();
        assert_eq!(counts, [[2, 1, 0, 0, 0, 0], [1, 5, 1, 1, 1, 1]]);
    })
    .await;
}

/// Fills a store with a bundle of one commit, one transaction and one step for each of `count` commits, in changesets of
/// 100. All of them landed, save one in a thousand that failed; one account in a hundred thousand has every tenth commit.
fn fill(path: &std::path::Path, count: u64) {
    drop(Store::open(path).unwrap());
    let sql = Connection::open(path).unwrap();
    sql.execute_batch("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -500000;")
        .unwrap();
    let numbers =
        format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})");
    let account = "CAST(printf('%032d', CASE WHEN i % 10 = 0 THEN 0 ELSE i % 100000 END) AS BLOB)";
    let signature = "CAST(printf('%064d', i) AS BLOB)";
    sql.execute_batch(&format!(
        "BEGIN;
         {numbers} INSERT INTO changesets SELECT i, i * 1000 FROM n WHERE i <= {count} / 100 + 1;
         {numbers} INSERT INTO bundles (id, changeset, bundle_id, mode, status, error, updated_at_ms, asked_at_ms)
             SELECT i, (i - 1) / 100 + 1, i % 100, 'finalize', iif(i % 1000 = 500, 'failed', 'landed'),
                    iif(i % 1000 = 500, 'no', NULL), i * 10, i * 10 FROM n;
         {numbers} INSERT INTO commits SELECT i, i, 0, {account}, i, 100, 1, i, 'inline-v1', 0, 1 FROM n;
         {numbers} INSERT INTO commit_values SELECT i, zeroblob(100) FROM n;
         {numbers} INSERT INTO transactions SELECT i, 'commit', {signature}, 1, 'landed', 1, 100, 5000, NULL FROM n;
         {numbers} INSERT INTO transaction_commits SELECT i, i FROM n;
         {numbers} INSERT INTO bundle_signatures SELECT i, 'commit', {signature} FROM n;
         COMMIT; PRAGMA wal_checkpoint(TRUNCATE);"
    ))
    .unwrap();
}

/// What a committor asks for, and what is found there.
async fn questions(store: &Store, count: u64) -> Vec<(&'static str, Duration)> {
    let busy = Address::new_from_array([b'0'; 32]);
    let mut rare = [b'0'; 32];
    rare[31] = b'7';
    let rare = Some(Address::new_from_array(rare));
    let failed = Some(BundleStatus::Failed);
    let filters = [
        ("account", BundleFilter { account: rare, ..EVERYTHING }),
        ("busy account", BundleFilter { account: Some(busy), ..EVERYTHING }),
        ("bundle", BundleFilter { bundle: Some(BundleId(7)), ..EVERYTHING }),
        ("status", BundleFilter { status: failed, ..EVERYTHING }),
        ("rare status", BundleFilter { status: Some(BundleStatus::Committing), ..EVERYTHING }),
        ("age", BundleFilter { older_than: Some(Duration::from_secs(60)), ..EVERYTHING }),
        (
            "status and age",
            BundleFilter { status: failed, older_than: Some(Duration::from_secs(1)), ..EVERYTHING },
        ),
        ("account and status", BundleFilter { account: rare, status: failed, ..EVERYTHING }),
    ];
    let mut times = Vec::new();
    for (name, filter) in filters {
        let start = Instant::now();
        store.find(filter).await.unwrap();
        times.push((name, start.elapsed()));
    }
    let start = Instant::now();
    assert_eq!(store.totals().await.unwrap().commits, count);
    times.push(("totals", start.elapsed()));
    let start = Instant::now();
    store.changesets(1_000).await.unwrap();
    times.push(("all", start.elapsed()));
    let start = Instant::now();
    assert_eq!(store.report(Some(ChangesetId(count / 200))).await.unwrap().bundles.len(), 100);
    times.push(("changeset", start.elapsed()));
    let start = Instant::now();
    assert_eq!(store.unfinished().await.unwrap().len() + store.staged().await.unwrap().len(), 0);
    times.push(("unfinished and staged", start.elapsed()));
    let start = Instant::now();
    store.last_landed(busy).await.unwrap().unwrap();
    times.push(("last landed state", start.elapsed()));
    let start = Instant::now();
    assert!(matches!(store.report(Some(ChangesetId(u64::MAX))).await, Err(StoreError::NoChangeset(_))));
    times.push(("no such changeset", start.elapsed()));
    times
}

#[tokio::test]
#[ignore = "makes a store of a million commits, which takes half a minute and 1 GB"]
async fn at_a_million_commits_every_question_is_answered_within_50_ms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    fill(&path, 1_000_000);
    let store = Store::open(&path).unwrap();
    for (name, time) in questions(&store, 1_000_000).await {
        println!("{name}: {time:?}");
        assert!(time < Duration::from_millis(50), "{name} took {time:?}");
    }
    let start = Instant::now();
    let pruned = store.prune(Duration::from_secs(3_600), 2_000).await.unwrap();
    println!("first step of pruning: {:?}, {pruned:?}", start.elapsed());
    let start = Instant::now();
    store.prune(Duration::from_secs(3_600), 2_000).await.unwrap();
    println!("second step of pruning: {:?}", start.elapsed());
}

#[tokio::test]
async fn a_store_that_was_filled_by_hand_answers_every_question() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    fill(&path, 2_000);
    questions(&Store::open(&path).unwrap(), 2_000).await;
}
