//! Files in buffers from the command line.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use insta::assert_snapshot;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::world::{Cluster, World, filtered, json, noise};

const SLOT: Duration = Duration::from_millis(20);

#[test]
fn a_file_goes_up_is_found_comes_down_and_goes_away() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    std::fs::write(world.path("file"), noise(20_000)).unwrap();
    std::fs::write(world.path("other"), noise(19_999)).unwrap();
    let buffer = json(&world.run(&cluster.args(&["upload", "file", "--dry-run", "--output", "json"])));
    let buffer = buffer["pubkey"].as_str().unwrap().to_owned();
    let steps: &[&[&str]] = &[
        &["upload", "file", "--dry-run"],
        &["upload", "file", "--dry-run", "--output", "json"],
        &["upload", "file"],
        &["upload", "file", "--yes", "--max-lamports", "1000"],
        &["list"],
        &["upload", "file", "--yes"],
        &["upload", "file", "--yes", "--output", "json-compact"],
        &["list"],
        &["list", "--output", "json"],
        &["show", &buffer],
        &["verify", "file", &buffer],
        &["verify", "other", &buffer],
        &["verify", "other", &buffer, "--output", "json"],
        &["download", &buffer, "copy"],
        &["download", &buffer, "copy"],
        &["download", &buffer, "copy", "--force"],
        &["close", &buffer, &buffer],
        &["list", "--unsealed"],
        &["close", "--all-unsealed", "--yes"],
    ];
    let mut shown = String::new();
    for args in steps {
        shown.push_str(&format!("$ committor {}\n{}\n", args.join(" "), world.show(&cluster.args(args))));
    }
    filtered(|| {
        insta::with_settings!({ filters => vec![
            (r"last used   .*", "last used   TIME"),
            (r"[^\n]* transactions landed, [^\n]*\n", ""),
        ] }, { assert_snapshot!("upload", shown) });
    });
    assert_eq!(std::fs::read(world.path("copy")).unwrap(), noise(20_000));
}

#[test]
fn what_can_not_be_uploaded_downloaded_or_closed_is_said_before_anything_is_spent() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, [1]);
    std::fs::write(world.path("long"), vec![0; 10 * 1024 * 1024]).unwrap();
    std::fs::write(world.path("file"), noise(5_000)).unwrap();
    let poor = solana_keypair::Keypair::new_from_array([7; 32]);
    world.write("poor.json", &format!("{:?}", poor.to_bytes().to_vec()));
    let delegated = crate::world::account(1).to_string();
    let steps: &[&[&str]] = &[
        &["upload"],
        &["upload", "none", "--yes"],
        &["upload", ".", "--yes"],
        &["upload", "long", "--yes"],
        &["upload", "file", "--yes", "--fee-payer", "poor.json"],
        &["upload", "file", "--yes", "--priority-fee", "much"],
        &["upload", "file", "--yes", "--transactions-in-flight", "0"],
        &["download", "file", "file"],
        &["download", "11111111111111111111111111111112", "copy"],
        &["download", &delegated, "copy"],
        &["verify", "none", &delegated],
        &["show", "11111111111111111111111111111112"],
        &["close"],
        &["close", "--all", "--older-than", "a month"],
        &["close", &delegated],
        &["set-authority", "11111111111111111111111111111112", "11111111111111111111111111111113", "--yes"],
    ];
    let before = cluster.lamports(cluster.authority());
    let mut shown = String::new();
    for args in steps {
        shown.push_str(&format!("$ committor {}\n{}\n", args.join(" "), world.show(&cluster.args(args))));
    }
    filtered(|| assert_snapshot!("upload_errors", shown));
    assert_eq!(cluster.lamports(cluster.authority()), before);
}

#[test]
fn an_upload_that_is_killed_50_times_ends_as_if_nothing_had_been() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    // Long enough that 50 kills do not reach the end, and two segments of the digest.
    let file: Vec<u8> =
        (0..3_000_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
    std::fs::write(world.path("file"), &file).unwrap();
    let args =
        cluster.args(&["upload", "file", "--yes", "--transactions-in-flight", "8", "--output", "json"]);
    let quote =
        |world: &World| json(&world.run(&cluster.args(&["upload", "file", "--dry-run", "--output", "json"])));
    let mut random = StdRng::seed_from_u64(1);
    let fresh = quote(&world)["transactions"].as_u64().unwrap();
    for _ in 0..50 {
        let mut child = world.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // It has begun to send.
        assert!(lines.any(|line| line.unwrap().contains("bytes need not be sent")));
        // At any time of it: this is what is tested.
        std::thread::sleep(Duration::from_millis(random.random_range(0..40)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let left = quote(&world)["transactions"].as_u64().unwrap();
    assert!((1..fresh).contains(&left), "{left} of {fresh} are left after 50 kills");
    let last = json(&world.run(&args));
    // What the last one that was killed had on its way may have landed meanwhile.
    assert!(last["landed"].as_u64().unwrap() <= left);
    let buffer = last["pubkey"].as_str().unwrap();
    assert!(world.run(&cluster.args(&["verify", "file", buffer])).status.success());
    let listed = json(&world.run(&cluster.args(&["list", "--output", "json"])));
    assert_eq!(listed["buffers"].as_array().unwrap().len(), 1);
    let locked = listed["buffers"][0]["lamports"].as_u64().unwrap();
    // Every lamport but the fees can be had back.
    let before = cluster.lamports(cluster.authority());
    assert!(world.run(&cluster.args(&["close", buffer])).status.success());
    assert_eq!(cluster.lamports(cluster.authority()), before + locked - 5_000);
}

#[test]
fn uploads_are_measured_against_one_write_per_transaction() {
    let world = World::new();
    std::fs::write(world.path("file"), noise(20_240)).unwrap();
    let output =
        world.run(&["bench", "upload", "file", "--repeats", "1", "--slot-ms", "20", "--output", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = json(&output);
    let of = |way: &str, name: &str| figures[way][name].as_u64().unwrap();
    // One that makes the buffer, which two sign, and 1,012 bytes in each other.
    assert_eq!((of("classic", "transactions"), of("classic", "fees_lamports")), (21, 22 * 5_000));
    assert!(of("v1", "transactions") < of("v0", "transactions"));
    assert!(of("v1", "fees_lamports") < of("v0", "fees_lamports"));
    assert_eq!(figures["classic"]["seconds_ratio"], 1.0);
    let shown = world.show(&["bench", "upload", "none", "--repeats", "1"]);
    assert!(shown.starts_with("exit code: 2") && shown.contains("could not read file none"), "{shown}");
}
