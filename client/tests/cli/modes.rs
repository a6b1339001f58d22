//! How far bundles go, what rides along, and what is refused.

use std::time::Duration;

use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{address, delegation};
use insta::assert_snapshot;
use serde_json::json;

use crate::world::{Cluster, World, account, bundle, changeset, data, filtered, json};

const SLOT: Duration = Duration::from_millis(50);

#[test]
fn bundles_land_where_they_are_rehearsed_and_another_place_than_that_is_refused() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=2);
    world.write("settings.toml", "simulation = \"proxy\"");
    world.write("changeset.json", &changeset(&[bundle(1, &[(account(1), &[7; 9_000])])]));
    let args = ["commit", "changeset.json", "--settings", "settings.toml", "--output", "json"];
    let output = world.run(&cluster.args(&args));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![7; 9_000]);
    let wrong = world.show(&cluster.args(&["commit", "changeset.json", "--simulation", "here"]));
    assert!(wrong.starts_with("exit code: 2") && wrong.contains("node, proxy"), "{wrong}");
    world.write("settings.toml", "simulation = \"here\"");
    let wrong = world.show(&cluster.args(&args));
    assert!(wrong.starts_with("exit code: 2") && wrong.contains("unknown variant `here`"), "{wrong}");
}

#[test]
fn what_is_staged_changes_nothing_until_it_is_finalized() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=2);
    world.write(
        "changeset.json",
        &changeset(&[bundle(1, &[(account(1), &[1; 50])]), bundle(2, &[(account(2), &[2; 60])])]),
    );
    let output = world.run(&cluster.args(&["commit", "changeset.json", "--mode", "stage"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&world.run(&["status", "--output", "json"]));
    for index in 0..2 {
        let bundle = &report["bundles"][index];
        assert_eq!((&bundle["status"], &bundle["mode"]), (&json!("staged"), &json!("stage")));
        assert_eq!(bundle["steps"].as_array().unwrap().len(), 1);
        assert_eq!(bundle["steps"][0]["step"], "commit");
        assert_eq!(report["accounts"][index]["strategy"], "buffer-v1");
    }
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![0; 100], "nobody sees it yet");
    let summary = &json(&world.run(&["status", "--all", "--output", "json"]))["changesets"][0];
    assert_eq!((&summary["bundles"], &summary["staged"]), (&json!(2), &json!(2)));

    let output = world.run(&cluster.args(&["finalize", "--bundle", "2", "--output", "json"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    let changeset = &report["changesets"][0];
    assert_eq!(
        [&changeset["bundles"][0]["status"], &changeset["bundles"][1]["status"]],
        ["staged", "landed"]
    );
    let steps = changeset["bundles"][1]["steps"].as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(names, ["commit", "finalize"]);
    assert_ne!(steps[0]["signature"], steps[1]["signature"], "each step has its own proof");
    assert_eq!(changeset["accounts"][1]["verified"], true);
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![0; 100]);
    assert_eq!(cluster.find(account(2)).unwrap().data, vec![2; 60]);

    // Another commit has to wait for what is staged.
    filtered(|| {
        world.write("next.json", &self::changeset(&[bundle(3, &[(account(1), &[3])])]));
        assert_snapshot!("staged_before", world.show(&cluster.args(&["commit", "next.json"])));
        assert_snapshot!("finalize", world.show(&cluster.args(&["finalize", "--changeset", "1"])));
        assert_snapshot!("nothing_staged", world.show(&cluster.args(&["finalize"])));
    });
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![1; 50]);
}

#[test]
fn a_bundle_that_waits_gives_way_to_a_newer_one_if_it_may() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=1);
    let bundles = [bundle(1, &[(account(1), &[1; 50])]), bundle(2, &[(account(1), &[2; 60])])];
    world.write("changeset.json", &changeset(&bundles));
    filtered(|| {
        let shown = world.show(&cluster.args(&["commit", "changeset.json", "--coalesce"]));
        assert_snapshot!("superseded", shown);
        assert_snapshot!("superseded_all", world.show(&["status", "--all"]));
    });
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![2; 60]);
}

#[test]
fn undelegated_accounts_are_their_owner_programs_again_with_the_last_states() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    let (short, long) = (cluster.owned(1), cluster.owned(2));
    let state = vec![5; 3_000];
    world.write("changeset.json", &changeset(&[bundle(1, &[(short, &[4; 10]), (long, &state)])]));
    let output =
        world.run(&cluster.args(&["commit", "changeset.json", "--mode", "undelegate", "--output", "json"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    assert_eq!(report["bundles"][0]["status"], "landed");
    let steps = report["bundles"][0]["steps"].as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(names, ["commit", "finalize", "undelegate"]);
    for (address, state) in [(short, vec![4; 10]), (long, state)] {
        let found = cluster.find(address).unwrap();
        assert_eq!((found.owner, found.data), (OWNER_PROGRAM_ID, state));
        assert_eq!(cluster.find(address::record(&address)), None);
    }
    filtered(|| {
        let shown = world.show(&cluster.args(&["commit", "changeset.json"]));
        let shown = shown.replace(&short.to_string(), "ACCOUNT");
        assert_eq!(shown.lines().next(), Some("exit code: 3"));
        assert!(shown.contains("account ACCOUNT is not delegated"), "{shown}");
    });
}

#[test]
fn a_bundle_has_a_mode_and_actions_of_its_own() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=2);
    let transfer = |lamports: u64| {
        json!({
            "program": "11111111111111111111111111111111",
            "accounts": [
                { "pubkey": cluster.authority().to_string(), "signer": true, "writable": true },
                { "pubkey": account(200).to_string(), "writable": true },
            ],
            "data": data(&[[2, 0, 0, 0].as_slice(), &lamports.to_le_bytes()].concat()),
            "compute_units": 1_000,
        })
    };
    let mut paid = bundle(1, &[(account(1), &[1; 50])]);
    paid["mode"] = "finalize".into();
    paid["actions"] = json!([transfer(1_000_000), transfer(234_567)]);
    // More than anybody has: the action fails, and the commit with it.
    let mut poor = bundle(2, &[(account(2), &[2; 50])]);
    poor["mode"] = "finalize".into();
    poor["actions"] = json!([transfer(u64::MAX)]);
    world.write("changeset.json", &changeset(&[paid, poor]));
    // The bundles say themselves how far they go.
    let output =
        world.run(&cluster.args(&["commit", "changeset.json", "--mode", "stage", "--output", "json"]));
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    assert_eq!([&report["bundles"][0]["status"], &report["bundles"][1]["status"]], ["landed", "failed"]);
    assert_eq!(report["bundles"][0]["transactions"], 1, "the actions ride along");
    assert_eq!(cluster.lamports(account(200)), 1_234_567);
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![1; 50]);
    assert_eq!(cluster.find(account(2)).unwrap().data, vec![0; 100]);
}

#[test]
fn a_bundle_that_can_not_be_atomic_is_refused_and_the_others_land() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, 1..=41);
    let crowd: Vec<_> = (2..42).map(|byte| (account(byte), [7].as_slice())).collect();
    world.write("changeset.json", &changeset(&[bundle(1, &[(account(1), &[1; 50])]), bundle(2, &crowd)]));
    let output = world.run(&cluster.args(&["commit", "changeset.json"]));
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert_snapshot!("refused", stderr);
    let report = json(&world.run(&["status", "--output", "json"]));
    assert_eq!([&report["bundles"][0]["status"], &report["bundles"][1]["status"]], ["landed", "failed"]);
    assert_eq!(report["bundles"][1]["transactions"], 0, "nothing was spent on it");
    let record = cluster.find(address::record(&account(2))).unwrap();
    assert_eq!(delegation::Delegation::read(&record.data).unwrap().nonce, 0);
}
