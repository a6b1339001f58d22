//! What failed waits for `retry` or `abandon`, and a store for its own cluster and keypair.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use solana_keypair::Keypair;

use crate::world::{Cluster, World, account, bundle, changeset, filtered, json};

const SLOT: Duration = Duration::from_millis(50);

/// A world in which bundles 1 and 2 of changeset 1, and bundle 2 of changeset 2, have failed for want of compute units.
fn with_failures() -> (World, Cluster) {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=3);
    let both = [bundle(1, &[(account(1), &[1; 50])]), bundle(2, &[(account(2), &[2; 50])])];
    world.write("both.json", &changeset(&both));
    world.write("last.json", &changeset(&[bundle(2, &[(account(3), &[3; 50])])]));
    for file in ["both.json", "last.json"] {
        let output = world.run(&cluster.args(&["commit", file, "--compute", "100"]));
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    }
    (world, cluster)
}

#[test]
fn a_bundle_that_failed_is_retried_or_abandoned_after_it_was_said_what_that_does() {
    let (world, cluster) = with_failures();
    filtered(|| {
        let mut shown = String::new();
        let mut show = |args: &[&str], all: &[&str]| {
            shown.push_str(&format!("$ committor {}\n{}\n", args.join(" "), world.show(all)));
        };
        let retries: [&[&str]; 6] = [
            &["retry", "1"],
            &["retry", "1"],
            &["retry", "2"],
            &["retry", "9"],
            &["retry", "2", "--changeset", "7"],
            &["retry", "2", "--changeset", "2", "--compute", "100"],
        ];
        for args in retries {
            show(args, &cluster.args(args));
        }
        show(&["abandon", "2", "--changeset", "2"], &["abandon", "2", "--changeset", "2"]);
        show(&["abandon", "2", "--changeset", "2"], &["abandon", "2", "--changeset", "2"]);
        show(&["status", "--all"], &["status", "--all"]);
        assert_snapshot!("retries", shown);
    });
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![1; 50]);
    assert_eq!(cluster.find(account(3)).unwrap().data, vec![0; 100]);
    // A newer state of the account has landed since: it is not overwritten with the older one.
    world.write("newer.json", &changeset(&[bundle(5, &[(account(2), &[9; 50])])]));
    assert_eq!(world.run(&cluster.args(&["commit", "newer.json"])).status.code(), Some(0));
    filtered(|| assert_snapshot!("newer", world.show(&cluster.args(&["retry", "2"]))));
    assert_eq!(cluster.find(account(2)).unwrap().data, vec![9; 50]);
    let abandoned = json(&world.run(&["abandon", "2", "--output", "json"]));
    assert_eq!(abandoned["bundles"][0]["status"], json!("abandoned"));
    assert!(abandoned["bundles"][0]["error"].as_str().unwrap().contains("compute"));
}

#[test]
fn a_store_of_another_cluster_or_keypair_is_refused_by_name() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=1);
    world.write("changeset.json", &changeset(&[bundle(1, &[(account(1), &[1; 50])])]));
    assert_eq!(world.run(&cluster.args(&["commit", "changeset.json"])).status.code(), Some(0));
    let mut other: Vec<&str> = cluster.args(&["commit", "changeset.json"]);
    world.write("other.json", &format!("{:?}", Keypair::new_from_array([4; 32]).to_bytes().to_vec()));
    *other.last_mut().unwrap() = "other.json";
    let elsewhere = Cluster::start(&world, SLOT, 1..=1);
    insta::with_settings!({ filters => vec![(r"genesis hash \w+, but this one has \w+", "genesis hash ONE, but this one has ANOTHER")] }, {
        assert_snapshot!("other_authority", world.show(&other));
        assert_snapshot!("other_cluster", world.show(&elsewhere.args(&["commit", "changeset.json"])));
    });
    let status = json(&world.run(&["status", "--all", "--output", "json"]));
    assert_eq!(status["changesets"].as_array().unwrap().len(), 1, "nothing was stored");
    assert_eq!(elsewhere.find(account(1)).unwrap().data, vec![0; 100]);
}
