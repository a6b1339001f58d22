//! Budgets and settings: from flags, from a file, and what is wrong with them.

use std::time::Duration;

use insta::assert_snapshot;

use crate::world::{ASSETS, Cluster, World, account, bundle, changeset, filtered, json, noise};

#[test]
fn budgets_are_by_stage_and_flags_go_before_the_file() {
    let world = World::new();
    let cluster = Cluster::start(&world, Duration::from_millis(50), 1..=1);
    world.write("changeset.json", &changeset(&[bundle(1, &[(account(1), &noise(10_240))])]));
    world.write(
        "settings.toml",
        "[prepare]\ncompute = \"20000\"\npriority_fee = \"1000000\"\n[commit]\ncompute = \"simulate\"\npriority_fee = \"p50:7\"\n",
    );
    let dry_run = |options: &[&str]| {
        let args = ["commit", "changeset.json", "--dry-run", "--output", "json"];
        let output = world.run(&cluster.args(&[args.as_slice(), options].concat()));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let price = json(&output);
        let number = |name: &str| price[name].as_u64().unwrap();
        (number("transactions"), number("fee_lamports"))
    };
    let (transactions, base) = dry_run(&[]);
    assert_eq!(base, 5_000 * transactions);
    let prepare = transactions - 1;
    // A lamport per compute unit, for all but the committing transaction. Nobody paid lately.
    assert_eq!(dry_run(&["--settings", "settings.toml"]).1, base + 20_000 * prepare);
    let flags = ["--settings", "settings.toml", "--compute", "prepare=30000"];
    assert_eq!(dry_run(&flags).1, base + 30_000 * prepare);
    let flags = ["--settings", "settings.toml", "--priority-fee", "0"];
    assert_eq!(dry_run(&flags).1, base);

    // Who sets a limit gets it, also one that is too low.
    let low = ["commit", "changeset.json", "--compute", "commit=1", "--output", "json"];
    let output = world.run(&cluster.args(&low));
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let error = json(&output)["bundles"][0]["error"].as_str().unwrap().to_owned();
    filtered(|| assert_snapshot!("too_low", error));
    assert_eq!(cluster.find(account(1)).unwrap().data, vec![0; 100]);
    let simulated = ["commit", "changeset.json", "--compute", "simulate", "--output", "json"];
    let output = world.run(&cluster.args(&simulated));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json(&output)["accounts"][0]["verified"], true);
}

#[test]
fn of_several_endpoints_the_first_that_works_is_used_and_all_are_of_one_cluster() {
    let (world, elsewhere) = (World::new(), World::new());
    let cluster = Cluster::start(&world, Duration::from_millis(50), 1..=1);
    let (url, dead) = (cluster.url(), "http://127.0.0.1:1");
    world.write("changeset.json", &changeset(&[bundle(1, &[(account(1), &noise(10))])]));
    let show = |args: &[&str]| {
        let args = [&["commit", "changeset.json", "--keypair", "id.json", "--output", "json"], args].concat();
        let output = world.run(&args);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let warning = "warning: 127.0.0.1:1 does not answer; others are used until it does\n";
    let (code, told) = show(&["--url", &format!("{dead},{url}")]);
    assert!(code == 0 && told.contains(warning), "{code}: {told}");
    world.write("settings.toml", &format!("urls = [{dead:?}, {url:?}]\n"));
    let (code, told) = show(&["--settings", "settings.toml"]);
    assert!(code == 0 && told.contains(warning), "{code}: {told}");
    let (code, told) = show(&["--url", dead, "--url", "http://127.0.0.1:2"]);
    assert!(code == 6 && told.contains("no endpoint of the cluster answers"), "{code}: {told}");

    let other = Cluster::start(&elsewhere, Duration::from_millis(50), 1..=1);
    let (code, told) = show(&["--url", url, "--url", other.url(), "--url", dead]);
    let named = |cluster: &Cluster| cluster.url().trim_start_matches("http://").to_owned();
    assert!(code == 2 && told.contains(&named(&cluster)) && told.contains(&named(&other)), "{code}: {told}");
    assert!(told.contains("the endpoints are not of one cluster: "), "{told}");
    let (code, told) = show(&["--url", url, "--ws", "ws://127.0.0.1:1", "--ws", "ws://127.0.0.1:2"]);
    assert!(code == 2 && told.contains("2 websockets are given for 1 of the cluster's endpoints"), "{told}");
}

#[test]
fn what_is_wrong_with_options_and_settings_is_said_before_anything_is_done() {
    let world = World::new();
    world.write("id.json", "[1]");
    let files = [
        ("key.toml", "colaesce = true\n"),
        ("table.toml", "[comit]\ncompute = \"table\"\n"),
        ("compute.toml", "[commit]\ncompute = \"much\"\n"),
        ("fee.toml", "[cleanup]\npriority_fee = \"p101:1\"\n"),
        ("version.toml", "transaction_version = \"v2\"\n"),
        ("number.toml", "attempts = -1\n"),
        ("zero.toml", "bundles_in_flight = 0\n"),
        ("toml.toml", "this is no TOML\n"),
    ];
    for (name, content) in files {
        world.write(name, content);
    }
    let options: [&[&str]; 10] = [
        &["--compute", "much"],
        &["--compute", "commit=0"],
        &["--compute", "comit=table"],
        &["--compute", "commit=1400001"],
        &["--priority-fee", "p50"],
        &["--priority-fee", "commit=p101:1"],
        &["--priority-fee", "commit=-1"],
        &["--mode", "finalise"],
        &["--bundles-in-flight", "0"],
        &["--settings", "none.toml"],
    ];
    let mut shown = String::new();
    let settings: Vec<Vec<&str>> = files.iter().map(|(name, _)| vec!["--settings", *name]).collect();
    for options in options.into_iter().chain(settings.iter().map(Vec::as_slice)) {
        let args = [["commit", ASSETS].as_slice(), options].concat();
        shown.push_str(&format!("$ committor commit ASSETS {}\n{}\n", options.join(" "), world.show(&args)));
    }
    shown.push_str(&format!("$ committor finalize\n{}\n", world.show(&["finalize"])));
    shown.push_str(&format!("$ committor resume\n{}\n", world.show(&["resume"])));
    assert_snapshot!("settings_errors", shown);
    assert!(!world.path("committor.db").exists());
}
