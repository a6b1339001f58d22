//! The `committor` command as its users see it: what it prints where, and its exit codes.

#[path = "cli/audit.rs"]
mod audit;
#[path = "cli/deploy.rs"]
mod deploy;
#[path = "cli/dry_run.rs"]
mod dry_run;
#[path = "cli/habits.rs"]
mod habits;
#[path = "cli/modes.rs"]
mod modes;
#[path = "cli/retries.rs"]
mod retries;
#[path = "cli/settings.rs"]
mod settings;
#[path = "cli/stop.rs"]
mod stop;
#[path = "cli/upload.rs"]
mod upload;
#[path = "cli/world.rs"]
mod world;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

use insta::assert_snapshot;
use serde_json::Value;
use solana_keypair::Keypair;

use world::{ASSETS, Localnet, World, json};

#[test]
fn help_is_what_it_was() {
    let world = World::new();
    assert_snapshot!("help", world.show(&["--help"]));
    let commands = [
        "commit",
        "finalize",
        "status",
        "resume",
        "audit",
        "retry",
        "abandon",
        "upload",
        "deploy",
        "download",
        "verify",
        "list",
        "show",
        "close",
        "set-authority",
        "tables",
        "prune",
        "localnet",
        "demo",
        "bench",
        "completions",
        "man",
    ];
    for command in commands {
        assert_snapshot!(format!("help_{command}"), world.show(&[command, "--help"]));
    }
    assert_snapshot!("help_bench_commit", world.show(&["bench", "commit", "--help"]));
    assert_snapshot!("help_bench_confirm", world.show(&["bench", "confirm", "--help"]));
    assert_snapshot!("help_bench_crypto", world.show(&["bench", "crypto", "--help"]));
    assert_snapshot!("help_bench_faults", world.show(&["bench", "faults", "--help"]));
    assert_snapshot!("help_bench_in_flight", world.show(&["bench", "in-flight", "--help"]));
    assert_snapshot!("help_bench_plan", world.show(&["bench", "plan", "--help"]));
    assert_snapshot!("help_bench_proxy", world.show(&["bench", "proxy", "--help"]));
    assert_snapshot!("help_bench_send", world.show(&["bench", "send", "--help"]));
    assert_snapshot!("help_bench_upload", world.show(&["bench", "upload", "--help"]));
}

/// A changeset that commits an account twice in one bundle.
fn twice() -> String {
    let commit = (world::account(1), [1].as_slice());
    world::changeset(&[world::bundle(1, &[commit, commit])])
}

#[test]
fn what_is_wrong_with_the_command_line_or_a_file_is_said_before_anything_is_done() {
    let world = World::new();
    world
        .write("broken.json", "{\"bundles\": [")
        .write("other.json", "{\"a\": 1}")
        .write("words.json", "secret words");
    world.write("empty.json", "{\"bundles\": []}").write("twice.json", &twice());
    // A keypair where it is looked for, so that what comes after it is reached.
    let keypair = Keypair::new_from_array([1; 32]).to_bytes().to_vec();
    std::fs::create_dir_all(world.path(".config/solana")).unwrap();
    world.write(".config/solana/id.json", &format!("{keypair:?}"));
    let mut shown = String::new();
    let cases: [&[&str]; 18] = [
        &["comit"],
        &["commit"],
        &["commit", "none.json"],
        &["commit", "broken.json"],
        &["commit", "other.json"],
        &["commit", "empty.json"],
        &["commit", "twice.json"],
        &["commit", ASSETS, "--account", "11111111111111111111111111111111"],
        &["commit", ASSETS, "--url", "mainet"],
        &["commit", ASSETS, "--url", "http://localhost:1"],
        &["commit", ASSETS, "--keypair", "words.json"],
        &["commit", ASSETS, "--keypair", "none.json"],
        &["commit", ASSETS, "--config", "none.yml"],
        &["demo", "--url", "devnet"],
        &["demo", "--send-via", "tpu"],
        &["localnet", "--fee-payer", "id.json"],
        &["status", "--status", "lost"],
        &["prune", "--older-than", "a month"],
    ];
    for args in cases {
        let args: Vec<&str> = args.to_vec();
        let display: Vec<&str> = args.iter().map(|arg| if *arg == ASSETS { "ASSETS" } else { arg }).collect();
        shown.push_str(&format!("$ committor {}\n{}\n", display.join(" "), world.show(&args)));
    }
    assert_snapshot!("usage_errors", shown);
    assert!(!world.path("committor.db").exists());
}

#[test]
fn stores_that_can_not_be_used_are_named() {
    let world = World::new();
    world.write("text.db", "this is no database, and long enough to be looked at");
    let foreign = rusqlite::Connection::open(world.path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE t (a)").unwrap();
    drop(foreign);
    let mut shown = String::new();
    for store in ["none.db", "text.db", "foreign.db"] {
        shown.push_str(&format!(
            "$ committor status --store {store}\n{}\n",
            world.show(&["status", "--store", store])
        ));
    }
    assert_snapshot!("store_errors", shown);
}

#[test]
fn the_demo_commits_real_states_and_status_shows_the_same() {
    let world = World::new();
    let output = world.run(&["demo", "--store", "committor.db", "--output", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    let accounts = report["accounts"].as_array().unwrap();
    let bytes: Vec<u64> = accounts.iter().map(|account| account["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [82, 165, 248, 800, 10_240, 871_520]);
    for account in accounts {
        assert_eq!(account["verified"], true);
        assert!(account["pubkey"].as_str().unwrap().len() >= 32);
        assert!(account["compute_units"].as_u64().unwrap() > 0);
        let signatures = account["signatures"].as_array().unwrap();
        assert_eq!(signatures.len() as u64, account["transactions"].as_u64().unwrap());
    }
    let of = |index: usize| {
        (accounts[index]["strategy"].as_str().unwrap(), accounts[index]["transactions"].as_u64().unwrap())
    };
    assert_eq!([of(0), of(1), of(2), of(3)], [("inline-v1", 1); 4]);
    // Most of both is zeroes, and so are the accounts at first: what differs fits the committing transaction. The second one
    // needs two more to grow.
    assert_eq!([of(4), of(5)], [("inline-patch-v1", 1), ("inline-patch-v1", 3)]);
    assert_eq!(accounts[0]["signatures"], accounts[1]["signatures"], "a bundle is one transaction");
    assert_eq!(json(&world.run(&["status", "--output", "json"])), report);
    assert_eq!(json(&world.run(&["status", "--changeset", "1", "--output", "json"])), report);

    // The same by other ways, and what is no part of it.
    let vault = accounts[1]["pubkey"].as_str().unwrap();
    let ask = |args: &[&str]| json(&world.run(&[&["status", "--output", "json"], args].concat()));
    let found = &ask(&["--account", vault])["bundles"][0];
    assert_eq!((&found["changeset"], &found["status"]), (&report["changeset"], &Value::from("landed")));
    assert_eq!(found["accounts"][1], {
        let mut account = accounts[1].clone();
        account.as_object_mut().unwrap().retain(|key, _| key != "bundle" && key != "status");
        account
    });
    assert_eq!(
        ask(&["--status", "landed"])["bundles"].as_array().unwrap().len(),
        report["bundles"].as_array().unwrap().len()
    );
    assert_eq!(ask(&["--status", "failed"])["bundles"], Value::Array(vec![]));
    assert_eq!(ask(&["--older-than", "1h"])["bundles"], Value::Array(vec![]));
    let totals = ask(&["--totals"]);
    assert_eq!((&totals["changesets"], &totals["commits"]), (&Value::from(1), &Value::from(6)));

    insta::with_settings!({filters => vec![
        (r"[1-9A-HJ-NP-Za-km-z]{80,90}", "SIGNATURE"),
        (r" [1-9A-HJ-NP-Za-km-z]{8}…", " SIGNATU…"),
        // An address has 43 or 44 characters, sometimes fewer, and the table leaves room for the longest.
        (r" +[1-9A-HJ-NP-Za-km-z]{40,44} +", " ACCOUNT "),
        (r"[─═]{20,}", "────"),
        (r"account +bytes", "account bytes"),
        // What the programs cost is pinned elsewhere.
        (r"(-v[01] +\d+ +)\d+", "${1}UNITS"),
        (r"signatures +\n", "signatures\n"),
    ]}, {
        assert_snapshot!("status", world.show(&["status"]));
        assert_snapshot!("status_all", world.show(&["status", "--all"]));
        assert_snapshot!("status_account", world.show(&["status", "--account", vault]));
    });
    let pruned = json(&world.run(&["prune", "--older-than", "0s", "--output", "json"]));
    assert_eq!(pruned["changesets"], 1);
    assert_eq!(ask(&["--totals"])["bundles"]["landed"], 0);
}

#[test]
fn the_demo_works_on_v0_transactions_within_their_figures() {
    let world = World::new();
    let output = world.run(&["demo", "--transaction-version", "v0", "--output", "json-compact"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    let accounts = report["accounts"].as_array().unwrap();
    assert!(accounts.iter().all(|account| account["verified"] == true));
    assert_eq!(accounts[0]["transactions"], 1);
    assert!(accounts[4]["transactions"].as_u64().unwrap() <= 14);
    assert_eq!(accounts[4]["strategy"], "buffer-patch-v0");
    assert_eq!(accounts[5]["strategy"], "inline-patch-v0");
}

#[test]
fn dumps_and_changesets_land_on_a_running_localnet() {
    let world = World::new();
    let localnet = Localnet::start(&world);
    let output = world.run(&localnet.args(&["commit", ASSETS, "--output", "json"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    assert_eq!(report["bundles"].as_array().unwrap().len(), 6);
    // The accounts are empty at first, and most of this state is zeroes: a patch of nothing.
    let market = report["accounts"].as_array().unwrap().iter().find(|account| account["bytes"] == 871_520);
    assert_eq!(market.unwrap()["strategy"], "inline-patch-v1");
    assert_eq!(market.unwrap()["transactions"], 3);
    assert!(report["accounts"].as_array().unwrap().iter().all(|account| account["verified"] == true));

    let vault = format!("{ASSETS}/token_vault_165.json");
    let mint = format!("{ASSETS}/usdc_mint_82.json");
    let output = world.run(&localnet.args(&["commit", &vault, &mint, "--atomic", "--output", "json"]));
    let report = json(&output);
    assert_eq!((output.status.code(), report["bundles"].as_array().unwrap().len()), (Some(0), 1));
    assert_eq!(report["accounts"][0]["nonce"], 2, "the second commit of the account");

    // One bundle that can land, one whose account nobody delegated.
    let pubkey = |dump: &str| {
        let dump: Value = serde_json::from_str(&std::fs::read_to_string(dump).unwrap()).unwrap();
        dump["pubkey"].as_str().unwrap().to_owned()
    };
    let bundle = |id: u64, account: &str| {
        format!(
            "{{\"id\": {id}, \"accounts\": [{{\"pubkey\": \"{account}\", \"data\": [\"AQID\", \"base64\"]}}]}}"
        )
    };
    let nobody = "Nobody1111111111111111111111111111111111111";
    let mixed = format!("{{\"bundles\": [{}, {}]}}", bundle(0, &pubkey(&vault)), bundle(u64::MAX, nobody));
    world.write("mixed.json", &mixed).write("bad.json", &format!("{{\"bundles\": [{}]}}", bundle(7, nobody)));
    let output = world.run(&localnet.args(&["commit", "mixed.json", "--output", "json"]));
    let report = json(&output);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(report["bundles"][0]["status"], "landed");
    assert_eq!(report["bundles"][1]["bundle"], u64::MAX);
    assert!(report["bundles"][1]["error"].as_str().unwrap().contains("does not exist"));
    insta::with_settings!({filters => vec![(r"127.0.0.1:\d+", "HOST")]}, {
        assert_snapshot!("nothing_landed", world.show(&localnet.args(&["commit", "bad.json"])));
    });
    assert_eq!(localnet.interrupt(), 0);
}

#[test]
fn a_commit_that_was_killed_is_finished_by_resume_and_a_store_has_one_worker() {
    let world = World::new();
    let localnet = Localnet::start(&world);
    let market = format!("{ASSETS}/phoenix_market_871520.json");
    let mut command = world.command(&localnet.args(&["commit", &market]));
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut planned = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut planned).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(planned.contains("transactions planned"), "{planned}");
    let status = json(&world.run(&["status", "--output", "json"]));
    assert_ne!(status["bundles"][0]["status"], "landed", "it was killed in time");

    let lock = std::fs::File::create(world.path("committor.db.lock")).unwrap();
    lock.try_lock().unwrap();
    let output = world.run(&localnet.args(&["resume"]));
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another process works on the store"));
    drop(lock);

    let output = world.run(&localnet.args(&["resume", "--output", "json"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let account = &json(&output)["changesets"][0]["accounts"][0];
    assert_eq!((&account["verified"], &account["nonce"]), (&Value::Bool(true), &Value::from(1)));
    let output = world.run(&localnet.args(&["resume"]));
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert_eq!(localnet.interrupt(), 0);
}

#[test]
fn a_new_keypair_is_for_its_owner_only() {
    let world = World::new();
    let localnet = Localnet::start(&world);
    let path: &Path = &world.path("id.json");
    let bytes: Vec<u8> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(bytes.len(), 64);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(localnet.interrupt(), 0);
}

#[test]
fn planning_is_measured_by_size_of_the_changeset() {
    let world = World::new();
    let output =
        world.run(&["bench", "plan", "--accounts", "100", "--repeats", "1", "--output", "json-compact"]);
    let figures = json(&output);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let sizes: Vec<&String> = figures["per_account_ns"].as_object().unwrap().keys().collect();
    assert_eq!(sizes, ["1", "10", "100"]);
    assert!(figures["ratio"].is_f64());
    // The mix is that of an engine: short states, changes in long ones, and new long ones.
    let mix = serde_json::json!({"buffer-v1": 25, "inline-patch-v1": 25, "inline-v1": 50});
    assert_eq!(figures["strategies"], mix);
    let shown = world.show(&["bench", "plan", "--accounts", "100", "--repeats", "1"]);
    assert!(shown.contains("An account of 100 costs 1.00 times one of 100."), "{shown}");
}

#[test]
fn commits_at_a_rate_and_bundles_in_flight_are_measured() {
    let world = World::new();
    let args =
        "bench commit --accounts 4 --accounts-per-bundle 1,4 --commits 8 --rate 200 --output json-compact";
    let output = world.run(&args.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = json(&output);
    for (run, bundles) in figures["runs"].as_array().unwrap().iter().zip([8, 2]) {
        assert_eq!(
            (&run["landed"], &run["failed"], &run["bundles"]),
            (&8.into(), &0.into(), &bundles.into())
        );
        assert_eq!(run["land"]["observations"], bundles);
        assert!(run["land"]["median"].as_f64() >= run["accept"]["min"].as_f64());
    }
    let wrong = world.show(&["bench", "commit", "--accounts", "4", "--accounts-per-bundle", "5"]);
    assert!(wrong.starts_with("exit code: 2") && wrong.contains("--accounts-per-bundle is 5"), "{wrong}");

    let args = "bench confirm --rounds 1 --repeats 2 --in-flight 20 --seconds 1 --transactions 20 --output json-compact";
    let figures = json(&world.run(&args.split(' ').collect::<Vec<_>>()));
    let arms: Vec<_> = figures["latency"].as_array().unwrap().iter().map(|row| &row["arm"]).collect();
    assert_eq!(arms, ["bare websocket", "bare websocket again", "this layer"]);
    assert!(figures["latency"].as_array().unwrap().iter().all(|row| row["observations"] == 2));
    assert_eq!(figures["status_calls"]["in_flight"], 20);
    let samples = figures["memory"]["samples"].as_array().unwrap();
    let landed: Vec<_> = samples.iter().map(|sample| &sample["transactions"]).collect();
    assert_eq!(landed, [0, 2, 20]);
    let refused = world.show(&["bench", "confirm", "--url", "d"]);
    assert!(refused.starts_with("exit code: 2") && refused.contains("--url has no effect"), "{refused}");

    let args = "bench crypto --repeats 1 --sizes 1,20 --output json-compact";
    let figures = json(&world.run(&args.split(' ').collect::<Vec<_>>()));
    // Two operations, idle and busy, two sizes, four arms.
    assert_eq!(figures["rows"].as_array().unwrap().len(), 2 * 2 * 2 * 4);
    assert!(figures["rows"].as_array().unwrap().iter().all(|row| row["median_ratio"].as_f64() > Some(0.0)));

    let args = "bench proxy --repeats 1 --simulations 1,3 --latency 0 --output json-compact";
    let figures = json(&world.run(&args.split(' ').collect::<Vec<_>>()));
    let rows = figures["rows"].as_array().unwrap();
    let calls: Vec<_> =
        rows.iter().map(|row| (row["arm"].as_str().unwrap(), row["calls"].as_u64().unwrap())).collect();
    let (node, proxy) = ("node", "proxy");
    // A call for each transaction against one for the accounts and one for the programs, however many transactions.
    for expected in [(node, 1), (node, 3), (proxy, 2)] {
        assert!(calls.contains(&expected), "{calls:?}");
    }

    let args = "bench send --repeats 1 --connections 1,2 --rtt 0,20 --loss 1 --transactions 40 --output json-compact";
    let figures = json(&world.run(&args.split(' ').collect::<Vec<_>>()));
    let rows = figures["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 2);
    assert!(rows.iter().all(|row| (&row["sent"], &row["landed"]) == (&40.into(), &40.into())), "{rows:?}");
    assert_eq!(rows.iter().filter(|row| row["recommended"] == true).count(), 2 * 2);
    let wrong = world.show(&["bench", "send", "--loss", "100"]);
    assert!(wrong.starts_with("exit code: 2") && wrong.contains("--loss"), "{wrong}");

    let args = "bench in-flight --bundles 4 --in-flight 1,4 --repeats 1 --output json-compact";
    let figures = json(&world.run(&args.split(' ').collect::<Vec<_>>()));
    let rows: Vec<_> = figures["rows"].as_array().unwrap().iter().map(|row| &row["in_flight"]).collect();
    assert_eq!(rows, [1, 4]);
}
