//! Whether store and chain agree, from the command line.

use std::time::Duration;

use insta::assert_snapshot;

use crate::world::{Cluster, World, account, bundle, changeset, json};

const SLOT: Duration = Duration::from_millis(20);

/// Commits one byte to accounts, from a store.
fn commit(world: &World, cluster: &Cluster, store: &str, accounts: &[u8], content: u8) {
    let bundles: Vec<_> =
        accounts.iter().map(|byte| bundle((*byte).into(), &[(account(*byte), &[content; 40])])).collect();
    world.write("changeset.json", &changeset(&bundles));
    let output = world.run(&cluster.args(&["commit", "changeset.json", "--store", store]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_store_and_chain_do_not_agree_on_is_named_account_by_account() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=5);
    commit(&world, &cluster, "committor.db", &[1, 2, 3, 4, 5], 1);
    let audit = |cluster: &Cluster, more: &[&str]| {
        let args = [&["audit", "--output", "json"], more].concat();
        let output = world.run(&cluster.args(&args));
        (output.status.code().unwrap(), json(&output))
    };
    let (code, found) = audit(&cluster, &[]);
    assert_eq!((code, &found["totals"]["equal"]), (0, &5.into()), "{found}");
    assert!(found["accounts"].as_array().unwrap().is_empty(), "only what differs is listed");
    // Batch by batch it is the same.
    assert_eq!(audit(&cluster, &["--batch", "2"]).1, found);

    // Another committor goes on with one of them.
    commit(&world, &cluster, "other.db", &[2], 9);
    // And the same store looks at another chain: one account is not there, of two nothing landed, on one another commit did.
    let elsewhere = Cluster::start(&world, SLOT, 1..=4);
    commit(&world, &elsewhere, "elsewhere.db", &[3], 7);
    for (cluster, expected) in [
        (&cluster, ["equal", "chain-ahead", "equal", "equal", "equal"]),
        (&elsewhere, ["store-ahead", "store-ahead", "changed-by-others", "store-ahead", "gone"]),
    ] {
        let (code, found) = audit(cluster, &["--all"]);
        assert_eq!(code, 5);
        let verdicts: Vec<_> =
            found["accounts"].as_array().unwrap().iter().map(|audited| audited["verdict"].clone()).collect();
        assert_eq!(verdicts, expected);
    }
    // One account, the rest after one, and what nothing landed for.
    let (one, five) = (account(1).to_string(), account(5).to_string());
    assert_eq!(audit(&cluster, &[&one]).0, 0);
    let (code, rest) = audit(&elsewhere, &["--after", &account(4).to_string()]);
    assert_eq!((code, &rest["accounts"][0]["pubkey"]), (5, &five.into()));
    assert_eq!(audit(&cluster, &["11111111111111111111111111111112"]).1["totals"], serde_json::json!({}));
    insta::with_settings!({ filters => vec![(r"session \d+", "session N")] }, {
        assert_snapshot!("audit", world.show(&elsewhere.args(&["audit"])));
    });
    assert!(world.show(&elsewhere.args(&["audit", "--store", "none.db"])).starts_with("exit code: 7"));
}

#[test]
fn an_account_that_was_handed_back_is_as_it_should_be() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    let owned = cluster.owned(1);
    world.write("changeset.json", &changeset(&[bundle(1, &[(owned, &[5; 100])])]));
    let output = world.run(&cluster.args(&["commit", "changeset.json", "--mode", "undelegate"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let found = world.run(&cluster.args(&["audit", "--output", "json"]));
    assert_eq!(json(&found)["totals"], serde_json::json!({ "handed-back": 1 }));
    assert_eq!(found.status.code(), Some(0));
}
