//! What failed can be taken up again or given up, and a store is one cluster's and one authority's.

use committor_client::{
    CommitMode, Store,
    store::{BundleEnd, Identity, StoreError},
    types::{BundleEvent, BundleKey, BundleStatus, IllegalTransition, Stage},
};
use solana_address::Address;
use solana_hash::Hash;

use crate::place::{Place, bundle, changeset, decision, on_each, transaction};

async fn status(store: &Store, key: BundleKey) -> BundleStatus {
    store.bundle_report(key).await.unwrap().status
}

async fn failed(store: &Store, key: BundleKey) {
    store.end(key, BundleEnd::Failed("no luck".to_owned())).await.unwrap();
}

#[tokio::test]
async fn what_failed_is_taken_up_where_it_failed_as_what_it_was() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let bundles = [bundle(1, &[1, 2]), bundle(2, &[3]).mode(CommitMode::Stage)];
        let (_, accepted) = store.accept(changeset(&bundles), vec![]).await.unwrap();
        let [plain, staged] = [accepted[0].key, accepted[1].key];
        store.decide(plain, vec![decision(), decision()]).await.unwrap();
        store.signed(vec![transaction(plain, Stage::Commit, 1, &[0, 1])]).await.unwrap();
        failed(&store, plain).await;
        assert_eq!(store.unfinished().await.unwrap().len(), 1);
        let asked = store.bundle(plain).await.unwrap().asked_at_ms;
        let again = store.retry(plain, |bundle| bundle).await.unwrap();
        assert_eq!(again, accepted[0]);
        assert_eq!(store.unfinished().await.unwrap(), accepted);
        let report = store.bundle_report(plain).await.unwrap();
        assert_eq!((report.status, report.error), (BundleStatus::Accepted, None));
        assert!(store.bundle(plain).await.unwrap().asked_at_ms >= asked);
        assert_eq!(
            store.open_transactions(plain, Stage::Commit).await.unwrap().len(),
            1,
            "nothing is forgotten"
        );

        store.end(staged, BundleEnd::Staged(None)).await.unwrap();
        store.finalize(staged, drop).await.unwrap();
        failed(&store, staged).await;
        let again = store.retry(staged, |bundle| bundle).await.unwrap();
        assert_eq!(again.status, BundleStatus::Finalizing, "it is not staged once more");

        // Only what failed can be retried or abandoned.
        for key in [plain, staged] {
            for result in [store.retry(key, drop).await, store.abandon(key).await] {
                assert!(
                    matches!(result, Err(StoreError::Transition(IllegalTransition { .. }))),
                    "{result:?}"
                );
            }
        }
        let nobody = BundleKey(99);
        assert!(matches!(store.retry(nobody, drop).await, Err(StoreError::NoBundle(key)) if key == nobody));
        assert!(matches!(store.abandon(nobody).await, Err(StoreError::NoBundle(key)) if key == nobody));
    })
    .await;
}

#[tokio::test]
async fn an_older_state_is_not_put_over_a_newer_one() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let bundles = [bundle(1, &[1, 2]), bundle(2, &[2, 3])];
        let (id, accepted) = store.accept(changeset(&bundles), vec![]).await.unwrap();
        let [older, newer] = [accepted[0].key, accepted[1].key];
        failed(&store, older).await;
        let refused = store.retry(older, drop).await;
        let Err(StoreError::NewerBundle { account, changeset, bundle }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((account, changeset, bundle.0), (accepted[0].accounts[1], id, 2));
        assert_eq!(status(&store, older).await, BundleStatus::Failed, "nothing was changed");
        // Once that one has failed too, nothing would be lost. From then on it is the newer one that has to wait.
        failed(&store, newer).await;
        store.retry(older, drop).await.unwrap();
        store.retry(newer, drop).await.unwrap();
        failed(&store, older).await;
        assert!(matches!(store.retry(older, drop).await, Err(StoreError::NewerBundle { .. })));
    })
    .await;
}

#[tokio::test]
async fn what_was_abandoned_stays_so_and_keeps_its_reason() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let (_, accepted) = store.accept(changeset(&[bundle(1, &[1])]), vec![]).await.unwrap();
        let key = accepted[0].key;
        failed(&store, key).await;
        store.abandon(key).await.unwrap();
        drop(store);
        let store = place.open().await;
        let report = store.bundle_report(key).await.unwrap();
        assert_eq!((report.status, report.error.as_deref()), (BundleStatus::Abandoned, Some("no luck")));
        let illegal = store.retry(key, drop).await;
        let Err(StoreError::Transition(illegal)) = illegal else { panic!("{illegal:?}") };
        assert_eq!((illegal.from, illegal.event), (BundleStatus::Abandoned, BundleEvent::Retry));
        assert_eq!(store.changesets(1).await.unwrap()[0].abandoned, 1);
        assert_eq!(store.totals().await.unwrap().bundles["abandoned"], 1);
        assert_eq!(store.unfinished().await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn what_was_taken_up_again_is_not_pruned() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let (_, accepted) =
            store.accept(changeset(&[bundle(1, &[1]), bundle(2, &[2])]), vec![]).await.unwrap();
        for bundle in &accepted {
            failed(&store, bundle.key).await;
        }
        // Both are on their way at once, in either order: what is retried is there, or the retry is told that it is gone.
        let nothing = std::time::Duration::ZERO;
        let (retried, pruned) = tokio::join!(store.retry(accepted[0].key, drop), store.prune(nothing, 100));
        pruned.unwrap();
        match retried {
            Ok(()) => assert_eq!(store.unfinished().await.unwrap(), accepted[..1]),
            Err(StoreError::NoBundle(_)) => assert_eq!(store.unfinished().await.unwrap(), []),
            Err(other) => panic!("{other:?}"),
        }
    })
    .await;
}

#[tokio::test]
async fn a_store_is_one_clusters_and_one_authoritys() {
    on_each(async |place: Place| {
        let store = place.open().await;
        let identity =
            Identity { cluster: Hash::new_from_array([1; 32]), authority: Address::new_from_array([2; 32]) };
        assert_eq!(store.identity().await.unwrap(), None);
        store.identify(identity).await.unwrap();
        store.identify(identity).await.unwrap();
        drop(store);
        let store = place.open().await;
        assert_eq!(store.identity().await.unwrap(), Some(identity));
        let cluster = Identity { cluster: Hash::new_from_array([9; 32]), ..identity };
        let authority = Identity { authority: Address::new_from_array([9; 32]), ..identity };
        let other = store.identify(cluster).await.unwrap_err();
        assert!(matches!(other, StoreError::OtherCluster { recorded, given, .. }
            if (recorded, given) == (identity.cluster, cluster.cluster)));
        let other = store.identify(authority).await.unwrap_err();
        assert!(matches!(other, StoreError::OtherAuthority { recorded, given, .. }
            if (recorded, given) == (identity.authority, authority.authority)));
        assert!(!other.is_transient() && other.hint().unwrap().contains("--store"));
        assert_eq!(store.identity().await.unwrap(), Some(identity), "the first one stays");
    })
    .await;
}
