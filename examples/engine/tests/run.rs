//! The example does what it says, and stops when it is told to.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

const EXAMPLE: &str = env!("CARGO_BIN_EXE_engine-example");

#[test]
fn it_plays_stages_finalizes_and_hands_the_accounts_back() {
    let output = Command::new(EXAMPLE).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    // Five ticks, of which the game waits for the last, then the staged bundle and the last states.
    let expected = [
        "tick 5 is changeset 5\n",
        "changeset 5 landed\n",
        "changeset 6 is staged\n",
        "changeset 6 landed\n",
        "changeset 7 landed\n",
        "4 accounts are back with their last states\n",
        "stopped, 0 bundles left\n",
    ];
    let mut rest = stdout.as_str();
    for line in expected {
        let Some((_, after)) = rest.split_once(line) else { panic!("no {line:?} in {stdout}") };
        rest = after;
    }
}

#[test]
fn it_stops_in_good_order_when_it_is_told_to() {
    for signal in ["-TERM", "-INT"] {
        let mut child = Command::new(EXAMPLE).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("tick 1 ") {
            assert_ne!(stdout.read_line(&mut lines).unwrap(), 0, "{lines}");
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        stdout.read_to_string(&mut lines).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{lines}");
        assert!(lines.contains("bundles left\n"), "{lines}");
    }
}
