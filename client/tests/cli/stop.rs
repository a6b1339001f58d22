//! A command that is told to end: what is on its way gets some time, and the rest waits for `resume`.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::Duration,
};

use insta::assert_snapshot;
use serde_json::json;

use crate::world::{Cluster, World, account, bundle, changeset, filtered, json, noise};

/// Runs a command until it says `line`, sends it `signal`, and returns its exit code, stdout and stderr.
fn stopped(world: &World, args: &[&str], line: &str, signal: &str) -> (i32, String, String) {
    let mut command = world.command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(line) {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    stderr.read_to_string(&mut said).unwrap();
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    (child.wait().unwrap().code().unwrap(), stdout, said)
}

#[test]
fn what_is_on_its_way_ends_what_waits_is_resumed() {
    let world = World::new();
    let cluster = Cluster::start(&world, Duration::from_secs(1), 1..=1);
    let bundles = [
        bundle(1, &[(account(1), &[1; 50])]),
        // Waits for the first one.
        bundle(2, &[(account(1), &noise(5_000))]),
    ];
    world.write("changeset.json", &changeset(&bundles));
    let args = cluster.args(&["commit", "changeset.json", "--shutdown-timeout", "60"]);
    let (code, stdout, stderr) = stopped(&world, &args, "bundle 1: 1 transaction planned", "-TERM");
    assert_eq!((code, stdout.as_str()), (8, ""), "{stderr}");
    assert_snapshot!("stopped", stderr);
    let report = json(&world.run(&["status", "--output", "json"]));
    assert_eq!([&report["bundles"][0]["status"], &report["bundles"][1]["status"]], ["landed", "accepted"]);

    let output = world.run(&cluster.args(&["resume", "--output", "json"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = &json(&output)["changesets"][0];
    assert_eq!(report["bundles"][1]["status"], "landed");
    assert_eq!(report["accounts"][1]["verified"], true);
    assert_eq!([&report["accounts"][0]["nonce"], &report["accounts"][1]["nonce"]], [&json!(1), &json!(2)]);
    filtered(|| assert_snapshot!("nothing_to_resume", world.show(&cluster.args(&["resume"]))));
}

#[test]
fn without_time_to_end_what_is_on_its_way_is_resumed() {
    let world = World::new();
    let cluster = Cluster::start(&world, Duration::from_secs(1), 1..=1);
    world.write("changeset.json", &changeset(&[bundle(1, &[(account(1), &noise(20_000))])]));
    let args = cluster.args(&["commit", "changeset.json", "--shutdown-timeout", "0"]);
    let (code, stdout, stderr) = stopped(&world, &args, "transactions planned", "-INT");
    assert_eq!((code, stdout.as_str()), (8, ""), "{stderr}");
    assert!(stderr.contains("1 bundle has not ended; `committor resume` goes on"), "{stderr}");
    let output = world.run(&cluster.args(&["resume", "--output", "json"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let account = &json(&output)["changesets"][0]["accounts"][0];
    assert_eq!((&account["verified"], &account["nonce"]), (&json!(true), &json!(1)));
}

#[test]
fn a_command_whose_work_ends_in_time_is_as_good_as_undisturbed() {
    let world = World::new();
    let cluster = Cluster::start(&world, Duration::from_secs(1), 1..=1);
    world.write("changeset.json", &changeset(&[bundle(1, &[(account(1), &[1; 50])])]));
    let args =
        cluster.args(&["commit", "changeset.json", "--shutdown-timeout", "60", "--output", "json-compact"]);
    let (code, stdout, stderr) = stopped(&world, &args, "1 transaction planned", "-TERM");
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("\"verified\":true"), "{stdout}");
}
