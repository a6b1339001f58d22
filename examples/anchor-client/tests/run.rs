//! The example on the local validator of this repository.
//!
//! The validator runs as a process of its own: its crates and Anchor's can't share a lock file.

use std::{
    env::{self, consts::EXE_SUFFIX},
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{self, Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value;

/// The validator takes about a second to start, and longer where other tests keep the machine busy.
const START_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn a_buffer_is_created_filled_sealed_read_and_closed() {
    let validator = Validator::start();
    let url = validator.value("rpc_url");
    let example = run(&[
        "--url",
        url,
        "--ws",
        validator.value("websocket_url"),
        "--keypair",
        validator.value("keypair"),
    ]);
    let stdout = String::from_utf8(example.stdout).unwrap();
    let stderr = String::from_utf8(example.stderr).unwrap();
    assert!(example.status.success(), "{}\n{stdout}{stderr}", example.status);

    // "created buffer ADDRESS for …"
    let buffer = stdout.split(' ').nth(2).unwrap();
    let expected = format!(
        "created buffer {buffer} for 3300 bytes in 4 chunks
wrote chunk 2: bytes 2000..3000
wrote chunk 0: bytes 0..1000
wrote chunk 3: bytes 3000..3300
wrote chunk 1: bytes 1000..2000
read 4 of 4 chunks, state 1
sealed with SHA-256 bcf2fe36c2b07360eb91daee02a2993ca8af4c6aca7843a5840a72adfa8f10b3
read 4 of 4 chunks, state 2
closed buffer {buffer}
"
    );
    assert_eq!(stdout, expected);
}

#[test]
fn an_error_names_the_step_and_the_cause() {
    let keypair = keypair_path("unreachable");
    fs::write(&keypair, format!("{:?}", solana_keypair::Keypair::new().to_bytes())).unwrap();
    // Nothing listens on port 1.
    let example = run(&["--url", "http://127.0.0.1:1", "--keypair", keypair.to_str().unwrap()]);
    fs::remove_file(&keypair).unwrap();
    let stderr = String::from_utf8(example.stderr).unwrap();
    assert_eq!(example.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("Error: could not create the buffer\n\nCaused by:"), "{stderr}");
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anchor-client-example")).args(arguments).output().unwrap()
}

/// A path that no other process uses.
fn keypair_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", process::id()))
}

/// A local validator, which stops when this value is dropped.
struct Validator {
    process: Child,
    keypair: PathBuf,
    /// What it printed about itself.
    description: Value,
}

impl Validator {
    fn start() -> Self {
        let binary = env::var_os("COMMITTOR_BIN").map_or_else(
            || {
                let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug");
                target.join(format!("committor{EXE_SUFFIX}"))
            },
            PathBuf::from,
        );
        assert!(
            binary.exists(),
            "{} does not exist: run `cargo build --workspace --bin committor` at the root of the repository first, \
             or name the binary in COMMITTOR_BIN",
            binary.display()
        );
        // The validator makes and funds the keypair.
        let keypair = keypair_path("funded");
        let mut process = Command::new(&binary)
            .args(["localnet", "--rpc-port", "0", "--ws-port", "0", "--output", "json-compact", "--keypair"])
            .arg(&keypair)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("could not run {}: {error}", binary.display()));
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let mut validator = Self { process, keypair, description: Value::Null };
        let (sender, lines) = mpsc::channel();
        // Reads to the end, not just one line: a closed or a full pipe would stop the validator. Ends with it.
        thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let line =
            lines.recv_timeout(START_TIMEOUT).expect("the validator did not start; its output is above");
        validator.description = serde_json::from_str(&line).unwrap();
        validator
    }

    fn value(&self, name: &str) -> &str {
        self.description[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.description))
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        // An error means that it has stopped by itself, and there may be no keypair yet.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.keypair);
    }
}
