//! Random faults, by seed, through the command that measures them: no commit is lost, and none lands twice.

use std::process::Command;

use serde_json::Value;

#[test]
fn fifty_seeds_of_faults_lose_nothing_and_land_nothing_twice() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_committor"));
    let home = tempfile::tempdir().unwrap();
    // Among these are some where the node is out of reach when an engine is started.
    command.args([
        "bench",
        "faults",
        "--seeds",
        "50",
        "--first-seed",
        "26",
        "--in-flight",
        "32",
        "--output",
        "json",
    ]);
    let output = command.env_clear().env("HOME", home.path()).current_dir(home.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| figures[name].as_u64().unwrap_or_else(|| panic!("{name}: {figures}"));
    assert_eq!((of("seeds"), of("landed_twice"), of("lost")), (50, 0, 0), "{told}");
    assert_eq!(of("submitted"), of("landed_once") + of("refused"));
    // There was something to survive.
    assert!(of("faults") > 1_000 && of("retries") > 1_000 && of("resumed") > 10, "{figures}");
    assert_eq!(figures["failed_seeds"], Value::Array(vec![]));
}
