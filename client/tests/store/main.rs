//! The store on a real database: what was accepted is there, what failed left nothing, what is not a store is left alone.
//!
//! What any database must do takes a place of any kind.

mod faults;
mod find;
mod place;
mod retention;
mod retries;

use std::path::Path;

use committor_client::{
    CommitMode, Lamports, Store,
    store::{BundleEnd, CommitDecision, StoreError},
    types::{BundleKey, BundleStatus, ChangesetId, IllegalTransition, Nonce, Stage},
};
use place::{Place, bundle, changeset, decision, landed, on_each, signature, transaction};
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};

#[tokio::test]
async fn what_was_accepted_is_there_after_reopening_byte_for_byte_and_in_order() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let meta =
            AccountMeta { pubkey: Address::new_from_array([9; 32]), is_signer: true, is_writable: false };
        let action =
            Instruction { program_id: Address::new_from_array([8; 32]), accounts: vec![meta], data: vec![7] };
        let submitted = [
            bundle(u64::MAX, &[3, 1]).mode(CommitMode::Undelegate).action(action),
            bundle(0, &[1, 200]).mode(CommitMode::Stage),
        ];
        let (id, accepted) = store.accept(changeset(&submitted), vec![]).await.unwrap();
        drop(store);
        let store = place.open().await;
        let unfinished = store.unfinished().await.unwrap();
        assert_eq!(unfinished.len(), 2);
        for ((found, accepted), submitted) in unfinished.iter().zip(&accepted).zip(&submitted) {
            assert_eq!(found, accepted);
            assert_eq!((found.id, found.changeset), (submitted.id, id));
            let stored = store.bundle(found.key).await.unwrap();
            assert_eq!((stored.mode, &stored.actions), (submitted.mode, &submitted.actions));
            let states = stored.commits.iter().map(|commit| (commit.account, &commit.state));
            assert!(states.eq(submitted.commits.iter().map(|commit| (commit.account, &commit.state))));
        }
    })
    .await;
}

#[tokio::test]
async fn a_change_that_fails_halfway_leaves_nothing_and_its_neighbours_stay() {
    on_each(async |place: Place| {
        let store = place.open().await;
        // The store's own constraint refuses the second commit of one account, after rows were written.
        let (good, bad) = (changeset(&[bundle(1, &[1])]), changeset(&[bundle(1, &[4]), bundle(2, &[5, 5])]));
        let (first, refused, second) = tokio::join!(
            store.accept(good.clone(), vec![]),
            store.accept(bad, vec![]),
            store.accept(good, vec![])
        );
        assert!(matches!(refused, Err(StoreError::Database { doing: "accept a changeset", .. })));
        let keys = [first.unwrap().1[0].key, second.unwrap().1[0].key];
        let unfinished: Vec<_> =
            store.unfinished().await.unwrap().into_iter().map(|bundle| bundle.key).collect();
        assert_eq!(unfinished, keys);
        assert_eq!(store.changesets(10).await.unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_bundle_moves_by_the_state_machine_and_its_end_is_final() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let (id, bundles) = store.accept(changeset(&[bundle(5, &[1, 2])]), vec![]).await.unwrap();
        let key = bundles[0].key;
        let status = async || store.report(Some(id)).await.unwrap().bundles[0].status;
        assert_eq!(status().await, BundleStatus::Accepted);
        store.decide(key, vec![decision(), decision()]).await.unwrap();
        assert_eq!(status().await, BundleStatus::Preparing);
        store.signed(vec![transaction(key, Stage::Prepare, 1, &[0])]).await.unwrap();
        assert_eq!(status().await, BundleStatus::Preparing);
        store.signed(vec![transaction(key, Stage::Commit, 2, &[0, 1])]).await.unwrap();
        assert_eq!(status().await, BundleStatus::Committing);
        let open = store.open_transactions(key, Stage::Commit).await.unwrap();
        assert_eq!((open.len(), open[0].signature, open[0].unknown), (1, signature(2), true));
        landed(&store, signature(1), 100).await;
        landed(&store, signature(2), 50).await;
        store.end(key, BundleEnd::Landed(Some(signature(2)))).await.unwrap();
        assert_eq!(store.unfinished().await.unwrap().len(), 0);

        let report = store.report(None).await.unwrap();
        let found = &report.bundles[0];
        assert_eq!((found.transactions, found.compute_units, found.fee_lamports), (2, 150, Lamports(10_000)));
        let steps: Vec<&str> = found.steps.iter().map(|step| step.step.as_str()).collect();
        assert_eq!(steps, ["commit", "finalize"]);
        let [first, second] = &found.accounts[..] else { panic!("two accounts") };
        assert_eq!((first.transactions, first.compute_units), (2, 150));
        assert_eq!((second.transactions, second.compute_units), (1, 50));
        assert_eq!(first.nonce, Some(Nonce(u64::MAX)));
        assert_eq!(first.strategy.as_deref(), Some("buffer-v1"));
        assert_eq!(first.signatures, [signature(1).to_string(), signature(2).to_string()]);

        let late = store.end(key, BundleEnd::Failed("late".into())).await;
        let Err(StoreError::Transition(IllegalTransition { from, .. })) = late else { panic!("{late:?}") };
        assert_eq!(from, BundleStatus::Landed);
        assert!(store.decide(key, vec![decision(), decision()]).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn a_bundle_that_was_planned_for_one_delegation_is_not_planned_for_the_next() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let (_, bundles) = store.accept(changeset(&[bundle(1, &[1, 2])]), vec![]).await.unwrap();
        let key = bundles[0].key;
        let planned = |session| CommitDecision { session, ..decision() };
        store.decide(key, vec![planned(7), planned(8)]).await.unwrap();
        store.decide(key, vec![planned(7), planned(8)]).await.unwrap();
        let refused = store.decide(key, vec![planned(7), planned(9)]).await;
        let second = bundles[0].accounts[1];
        assert!(matches!(refused, Err(StoreError::OtherSession(account)) if account == second));
    })
    .await;
}

#[tokio::test]
async fn signing_the_same_transaction_again_is_no_error_and_changes_nothing() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let (_, bundles) = store.accept(changeset(&[bundle(1, &[1])]), vec![]).await.unwrap();
        let key = bundles[0].key;
        store.signed(vec![transaction(key, Stage::Commit, 1, &[0])]).await.unwrap();
        landed(&store, signature(1), 3).await;
        store.signed(vec![transaction(key, Stage::Commit, 1, &[0])]).await.unwrap();
        let report = store.report(None).await.unwrap();
        assert_eq!((report.bundles[0].transactions, report.bundles[0].compute_units), (1, 3));
    })
    .await;
}

fn refused(path: &Path) -> StoreError {
    let before = std::fs::read(path).unwrap();
    let error = Store::open(path).unwrap_err();
    assert_eq!(std::fs::read(path).unwrap(), before, "the file is left untouched");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

#[tokio::test]
async fn files_that_are_no_store_of_ours_are_refused_by_name_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);

    std::fs::write(path("text"), "a text that is long enough not to pass for an empty file").unwrap();
    assert!(matches!(refused(&path("text")), StoreError::Open { .. }));

    let sql = rusqlite::Connection::open(path("foreign")).unwrap();
    sql.execute_batch("CREATE TABLE notes (text)").unwrap();
    drop(sql);
    assert!(matches!(refused(&path("foreign")), StoreError::Foreign { .. }));

    drop(Store::open(&path("newer")).unwrap());
    let sql = rusqlite::Connection::open(path("newer")).unwrap();
    sql.execute_batch("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    drop(sql);
    assert!(matches!(refused(&path("newer")), StoreError::Newer { found: 99, known: 5, .. }));

    let missing = Store::open(&path("no/such/folder/s.db")).unwrap_err();
    assert!(matches!(missing, StoreError::Open { .. }));
}

#[tokio::test]
async fn a_store_of_version_1_goes_on_with_every_row_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let sql = rusqlite::Connection::open(&path).unwrap();
    sql.execute_batch(include_str!("../fixtures/store-v1.sql")).unwrap();
    // As a process leaves it that was killed before anything was planned.
    sql.execute_batch("UPDATE bundles SET status = 'accepted', error = NULL WHERE id = 2").unwrap();
    drop(sql);
    let store = Store::open(&path).unwrap();
    let first = store.report(Some(ChangesetId(1))).await.unwrap();
    let [landed] = &first.bundles[..] else { panic!("one bundle") };
    assert_eq!(
        (landed.status, landed.mode.as_str(), landed.transactions),
        (BundleStatus::Landed, "finalize", 1)
    );
    assert_eq!(landed.compute_units, 1_792);
    let accounts: Vec<(u64, usize, bool)> = (landed.accounts.iter())
        .map(|account| (account.bytes, account.signatures.len(), account.verified))
        .collect();
    assert_eq!(accounts, [(82, 1, true), (165, 1, true)]);
    assert_eq!(landed.steps.len(), 2);
    let unfinished = store.unfinished().await.unwrap();
    assert_eq!(unfinished.iter().map(|bundle| bundle.key).collect::<Vec<_>>(), [BundleKey(2)]);
    assert_eq!(store.bundle(BundleKey(2)).await.unwrap().commits[0].state.len(), 248);
    let since = store.report(Some(ChangesetId(2))).await.unwrap().created_at_ms;
    assert_eq!(store.bundle(BundleKey(2)).await.unwrap().asked_at_ms, since);
    // What came with later versions works on its rows, and the counts go along.
    store.end(BundleKey(2), BundleEnd::Failed("no".into())).await.unwrap();
    assert_eq!(store.retry(BundleKey(2), |bundle| bundle).await.unwrap(), unfinished[0]);
    let counted = store.changesets(10).await.unwrap();
    assert_eq!(
        counted.iter().map(|counts| [counts.bundles, counts.landed]).collect::<Vec<_>>(),
        [[2, 1], [1, 1]]
    );
    // Keys are never given again.
    let (id, bundles) = store.accept(changeset(&[bundle(1, &[1])]), vec![]).await.unwrap();
    assert_eq!((id, bundles[0].key), (ChangesetId(3), BundleKey(4)));
}

#[test]
fn the_schema_is_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    drop(Store::open(&path).unwrap());
    let sql = rusqlite::Connection::open(path).unwrap();
    let mut statement =
        sql.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name").unwrap();
    let rows: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    insta::assert_snapshot!(rows.join(";\n\n"));
}
