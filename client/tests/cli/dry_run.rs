//! `commit --dry-run`: what a changeset would take, and nothing else.

use std::time::Duration;

use insta::assert_snapshot;

use crate::world::{Cluster, World, account, bundle, changeset, json, noise};

#[test]
fn a_dry_run_prices_every_bundle_names_what_is_refused_and_does_nothing() {
    let world = World::new();
    let cluster = Cluster::start(&world, Duration::from_millis(50), 1..=50);
    let long = noise(10_240);
    let mut staged = bundle(5, &[(account(5), &[1, 2, 3])]);
    staged["mode"] = "stage".into();
    let crowd: Vec<_> = (10..50).map(|byte| (account(byte), [7].as_slice())).collect();
    let bundles = [
        bundle(1, &[(account(1), &[1; 100]), (account(2), &[])]),
        bundle(2, &[(account(3), &[2; 100])]),
        bundle(3, &[(account(4), &long)]),
        // After bundle 3, and made from its state.
        bundle(4, &[(account(4), &[long.as_slice(), &[1]].concat())]),
        staged,
        bundle(6, &crowd),
        bundle(7, &[(account(99), &[1])]),
    ];
    world.write("changeset.json", &changeset(&bundles));
    let lamports = cluster.lamports(cluster.authority());
    assert_snapshot!("display", world.show(&cluster.args(&["commit", "changeset.json", "--dry-run"])));
    let args = ["commit", "changeset.json", "--dry-run", "--output", "json"];
    assert_snapshot!("json", world.show(&cluster.args(&args)));
    assert!(!world.path("committor.db").exists() && !world.path("committor.db.lock").exists());
    assert_eq!(cluster.lamports(cluster.authority()), lamports, "nothing was sent");
}

#[test]
fn a_dry_run_says_what_the_real_one_then_takes() {
    let world = World::new();
    let cluster = Cluster::start(&world, Duration::from_millis(50), 1..=3);
    let bundles = [
        bundle(1, &[(account(1), &[1; 100])]),
        bundle(2, &[(account(2), &[2; 100])]),
        bundle(3, &[(account(3), &noise(10_240))]),
    ];
    world.write("changeset.json", &changeset(&bundles));
    let args = ["commit", "changeset.json", "--output", "json", "--priority-fee", "prepare=1000"];
    let dry = world.run(&cluster.args(&[args.as_slice(), &["--dry-run"]].concat()));
    assert_eq!(dry.status.code(), Some(0), "{}", String::from_utf8_lossy(&dry.stderr));
    let wet = world.run(&cluster.args(&args));
    assert_eq!(wet.status.code(), Some(0), "{}", String::from_utf8_lossy(&wet.stderr));
    let (dry, wet) = (json(&dry), json(&wet));
    assert_eq!(dry["bundles"][1]["shares_with"], 1);
    for (dry, wet) in dry["bundles"].as_array().unwrap().iter().zip(wet["accounts"].as_array().unwrap()) {
        assert_eq!(dry["accounts"][0]["strategy"], wet["strategy"]);
        assert_eq!(dry["accounts"][0]["nonce"], wet["nonce"]);
        assert_eq!(dry["accounts"][0]["rent_lamports"], wet["rent_lamports"]);
        assert_eq!(dry["transactions"], wet["transactions"]);
    }
    assert_eq!(dry["bundles"][2]["fee_lamports"], wet["bundles"][2]["fee_lamports"]);
    // The first two share one transaction.
    let all = dry["bundles"][2]["transactions"].as_u64().unwrap() + 1;
    assert_eq!(dry["transactions"], all);
}

#[test]
fn a_dry_run_refuses_what_the_real_one_refuses() {
    let world = World::new();
    let cluster = Cluster::start(&world, Duration::from_millis(50), 1..=1);
    let mut foreign = bundle(1, &[(account(1), &[1])]);
    let meta = serde_json::json!({ "pubkey": account(77).to_string(), "signer": true });
    let data = serde_json::json!(["", "base64"]);
    foreign["actions"] =
        serde_json::json!([{ "program": account(88).to_string(), "accounts": [meta], "data": data }]);
    world.write("foreign.json", &changeset(&[foreign]));
    let authority = cluster.authority().to_string();
    let dry = world.show(&cluster.args(&["commit", "foreign.json", "--dry-run"]));
    assert_eq!(dry, world.show(&cluster.args(&["commit", "foreign.json"])));
    assert_snapshot!("foreign_signer", dry.replace(&authority, "AUTHORITY"));
    let status = world.run(&["status", "--all", "--output", "json"]);
    assert_eq!(json(&status)["changesets"].as_array().unwrap().len(), 0, "nothing was stored");
}
