//! Programs from the command line.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use committor_localnet::programs;
use insta::assert_snapshot;
use rand::{Rng, SeedableRng, rngs::StdRng};
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::world::{Cluster, World, json};

const SLOT: Duration = Duration::from_millis(20);
/// Somebody who never signs.
const VAULT: &str = "11111111111111111111111111111112";

/// A keypair file, and its address.
fn keypair(world: &World, name: &str, seed: u8) -> String {
    let keypair = Keypair::new_from_array([seed; 32]);
    world.write(name, &format!("{:?}", keypair.to_bytes().to_vec()));
    keypair.pubkey().to_string()
}

fn shown(world: &World, cluster: &Cluster, steps: &[&[&str]]) -> String {
    let step =
        |args: &&[&str]| format!("$ committor {}\n{}\n", args.join(" "), world.show(&cluster.args(args)));
    steps.iter().map(step).collect()
}

/// A snapshot without what differs from run to run.
fn snapshot(name: &str, shown: &str) {
    insta::with_settings!({ filters => vec![
        (r"127.0.0.1:\d+", "HOST"),
        (r"[^\n]* transactions landed, [^\n]*\n", ""),
    ] }, { assert_snapshot!(name, shown) });
}

#[test]
fn a_program_is_deployed_upgraded_and_given_away() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    std::fs::write(world.path("short.so"), programs::OWNER_PROGRAM).unwrap();
    std::fs::write(world.path("long.so"), programs::DELEGATION).unwrap();
    let program = keypair(&world, "short-keypair.json", 5);
    let buffer_of = |file: &str| {
        let args = ["deploy", file, "--program-id", &program, "--dry-run", "--output", "json"];
        json(&world.run(&cluster.args(&args)))["buffer"].as_str().unwrap().to_owned()
    };
    let mut text = shown(
        &world,
        &cluster,
        &[
            &["deploy", "short.so", "--dry-run"],
            &["deploy", "short.so", "--dry-run", "--output", "json"],
            &["deploy", "short.so"],
            &["deploy", "short.so", "--yes", "--max-lamports", "1000"],
            &["deploy", "short.so", "--yes"],
            &["deploy", "short.so", "--yes"],
            &["verify", "short.so", &program],
            &["deploy", "long.so", "--program-id", &program, "--yes", "--output", "json"],
            &["verify", "long.so", &program],
            &["verify", "short.so", &program],
            &["deploy", "short.so", "--buffer-only", "--yes"],
        ],
    );
    let buffer = buffer_of("short.so");
    text += &shown(
        &world,
        &cluster,
        &[
            &["list"],
            &["list", "--output", "json"],
            &["verify", "short.so", &buffer],
            &["download", &buffer, "copy.so"],
            &["deploy", "short.so", "--buffer-only", "--dry-run"],
            &["close", &buffer],
            &["deploy", "short.so", "--buffer-only", "--yes", "--output", "json"],
            // From the buffer that is there.
            &["deploy", "short.so", "--new-authority", VAULT, "--yes"],
            &["deploy", "long.so", "--program-id", &program, "--yes"],
            &[
                "deploy",
                "long.so",
                "--program-id",
                &program,
                "--buffer-only",
                "--buffer-authority",
                VAULT,
                "--yes",
            ],
            &["list"],
            &["list", "--authority", VAULT],
        ],
    );
    snapshot("deploy", &text);
    assert_eq!(std::fs::read(world.path("copy.so")).unwrap(), programs::OWNER_PROGRAM);
}

#[test]
fn a_program_becomes_immutable_and_one_waits_in_its_buffer() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    std::fs::write(world.path("final.so"), programs::OWNER_PROGRAM).unwrap();
    std::fs::write(world.path("waits.so"), programs::OWNER_PROGRAM).unwrap();
    keypair(&world, "final-keypair.json", 6);
    keypair(&world, "waits-keypair.json", 7);
    snapshot(
        "deploy_final",
        &shown(
            &world,
            &cluster,
            &[
                &["deploy", "final.so", "--final", "--yes"],
                &["deploy", "final.so", "--yes"],
                &["deploy", "final.so", "--new-authority", VAULT, "--yes"],
                &["deploy", "waits.so", "--buffer-only", "--yes"],
                &["deploy", "waits.so", "--max-len", "30000", "--yes"],
                &["list"],
                // The local validator has them.
                &["deploy", "--bundled", "--yes"],
                &["deploy", "--bundled", "--dry-run", "--output", "json"],
            ],
        ),
    );
}

#[test]
fn what_can_not_be_deployed_is_said_before_anything_is_spent() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    std::fs::write(world.path("program.so"), programs::OWNER_PROGRAM).unwrap();
    std::fs::write(world.path("lonely.so"), programs::OWNER_PROGRAM).unwrap();
    let mut x86 = programs::OWNER_PROGRAM.to_vec();
    x86[18] = 62;
    std::fs::write(world.path("x86.so"), x86).unwrap();
    world.write("empty.so", "").write("words.so", "words");
    keypair(&world, "program-keypair.json", 8);
    keypair(&world, "poor.json", 9);
    let id = ["--program-id", "program-keypair.json"];
    let before = cluster.lamports(cluster.authority());
    let text = shown(
        &world,
        &cluster,
        &[
            &["deploy"],
            &["deploy", "none.so"],
            &["deploy", "lonely.so"],
            &["deploy", "lonely.so", "--program-id", "none.json"],
            &["deploy", "lonely.so", "--program-id", VAULT],
            &["deploy", "empty.so", id[0], id[1]],
            &["deploy", "words.so", id[0], id[1]],
            &["deploy", "x86.so", id[0], id[1]],
            &["deploy", "program.so", "--max-len", "1000"],
            &["deploy", "program.so", "--final", "--new-authority", VAULT],
            &["deploy", "program.so", "--buffer-authority", VAULT],
            &["deploy", "program.so", "--yes", "--fee-payer", "poor.json"],
            &["deploy", "program.so", "--bundled"],
            &["deploy", "--bundled", "--program-keypair", "poor.json"],
            &["deploy", "program.so", "--program-keypair", "poor.json"],
        ],
    );
    snapshot("deploy_errors", &text);
    assert_eq!(cluster.lamports(cluster.authority()), before);
}

#[test]
fn a_deploy_that_is_killed_10_times_ends_as_if_nothing_had_been() {
    let world = World::new();
    let cluster = Cluster::start(&world, SLOT, []);
    std::fs::write(world.path("program.so"), programs::DELEGATION).unwrap();
    let program = keypair(&world, "program-keypair.json", 10);
    // The shorter format has more transactions, so that 10 kills do not reach the end.
    let sending = ["--transaction-version", "v0", "--transactions-in-flight", "2", "--output", "json"];
    let with =
        |args: &[&'static str]| cluster.args(&[&["deploy", "program.so"], args, &sending].concat()).join(" ");
    let (deploy, quote) = (with(&["--yes"]), with(&["--dry-run"]));
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    let run = |line: &str| {
        let words = words(line);
        json(&world.run(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let mut random = StdRng::seed_from_u64(1);
    let fresh = run(&quote);
    let before = cluster.lamports(cluster.authority());
    for _ in 0..10 {
        let words = words(&deploy);
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut child = world.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // It has begun to send.
        assert!(lines.any(|line| line.unwrap().contains("bytes need not be sent")));
        // At any time of it: this is what is tested.
        std::thread::sleep(Duration::from_millis(random.random_range(0..80)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (left, of) = (run(&quote)["transactions"].as_u64().unwrap(), fresh["transactions"].as_u64().unwrap());
    assert!((1..of).contains(&left), "{left} of {of} are left after 10 kills");
    let last = run(&deploy);
    assert_eq!(last["program_id"].as_str().unwrap(), program);
    // What the last one that was killed had on its way may have landed meanwhile.
    assert!(last["landed"].as_u64().unwrap() <= left);
    assert!(world.run(&cluster.args(&["verify", "program.so", &program])).status.success());
    let listed = json(&world.run(&cluster.args(&["list", "--output", "json"])));
    assert!(listed["program_buffers"].as_array().unwrap().is_empty());
    // The rent of one program, and fees: those of one deploy, and of what was on its way when it was killed.
    let lamports = |name: &str| fresh[name].as_u64().unwrap();
    let spent = before - cluster.lamports(cluster.authority());
    let least =
        lamports("rent_locked_lamports") - lamports("rent_returned_lamports") + lamports("fee_lamports");
    assert!((least..=least + 10 * 2 * 5_000).contains(&spent), "{spent} for {least}");
}
