//! `cargo xtask ci`: every check that a change must pass.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process::{cargo, run as run_process};
use crate::{build_programs, cu, idl, repository, sdk};

/// One check and what makes it pass again.
struct Step {
    name: &'static str,
    /// From the root of the repository. The programs have a folder of their own because cargo's configuration there,
    /// which shares the target folder, is found from the folder that cargo runs in.
    folder: &'static str,
    cargo_args: &'static [&'static str],
    repair: &'static str,
}

const FORMAT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] = &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
/// With what the default build leaves out, so that it goes on compiling. Needs libudev and pkg-config.
const CLIPPY_ALL: &[&str] = &[
    "clippy",
    "--locked",
    "--workspace",
    "--all-targets",
    "--features",
    "committor-client/hardware-wallets",
    "--",
    "-D",
    "warnings",
];
/// With the whole workspace's features, as the tests have built it.
const BINARY: &[&str] = &["build", "--locked", "--workspace", "--bin", "committor"];
/// A workspace of its own: Anchor's released client needs older Agave crates.
const EXAMPLE: &str = "examples/anchor-client";
/// In a target folder of its own: other features for dependencies that the other steps share.
const NO_STD: &[&str] = &[
    "check",
    "--locked",
    "--package",
    "committor-sdk",
    "--no-default-features",
    "--target-dir",
    "target/no-std",
];
const DOCUMENTATION: &[&str] = &["doc", "--locked", "--workspace", "--no-deps"];

/// The cheap checks come first, and each generated thing after what it is generated from: the first failure is then the
/// cause and not a consequence.
const STEPS: [Step; 14] = [
    Step { name: "format", folder: "", cargo_args: FORMAT, repair: "cargo fmt --all" },
    Step {
        name: "format of the programs",
        folder: "programs",
        cargo_args: FORMAT,
        repair: "cd programs && cargo fmt --all",
    },
    Step {
        name: "clippy",
        folder: "",
        cargo_args: CLIPPY_ALL,
        repair: "cargo clippy --workspace --all-targets --fix",
    },
    Step {
        name: "clippy of the programs",
        folder: "programs",
        cargo_args: CLIPPY,
        repair: "cd programs && cargo clippy --workspace --all-targets --fix",
    },
    Step { name: "SDK without std", folder: "", cargo_args: NO_STD, repair: "make the SDK `no_std` again" },
    Step {
        name: "documentation",
        folder: "",
        cargo_args: DOCUMENTATION,
        repair: "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps",
    },
    Step {
        name: "programs",
        folder: "",
        cargo_args: &["xtask", "build-programs", "--check"],
        repair: build_programs::REPAIR,
    },
    Step { name: "IDLs", folder: "", cargo_args: &["xtask", "idl", "--check"], repair: idl::REPAIR },
    Step { name: "SDK", folder: "", cargo_args: &["xtask", "sdk", "--check"], repair: sdk::REPAIR },
    Step { name: "compute units", folder: "", cargo_args: &["xtask", "cu", "--check"], repair: cu::REPAIR },
    Step {
        name: "seeds of the fuzz targets",
        folder: "programs/fuzz",
        cargo_args: &["test", "--locked", "--features", "delegation"],
        repair: "cd programs/fuzz && cargo test --features delegation",
    },
    Step {
        name: "format of the example",
        folder: EXAMPLE,
        cargo_args: &["fmt", "--check"],
        repair: "cd examples/anchor-client && cargo fmt",
    },
    Step {
        name: "binary for the example",
        folder: "",
        cargo_args: BINARY,
        repair: "cargo build --workspace",
    },
    Step {
        name: "example with Anchor's client",
        folder: EXAMPLE,
        cargo_args: &["test", "--locked"],
        repair: "cd examples/anchor-client && cargo test",
    },
];

pub(crate) fn run() -> Result<()> {
    let mut times = Vec::new();
    let outcome = STEPS.iter().try_for_each(|step| {
        let started = Instant::now();
        let outcome = run_step(step);
        times.push((step.name, started.elapsed()));
        outcome
    });
    print_times(&times);
    outcome
}

fn run_step(step: &Step) -> Result<()> {
    eprintln!("==> {}: cargo {}", step.name, step.cargo_args.join(" "));
    run_process(&mut command(step))
        .with_context(|| format!("{} failed\nhint: run `{}`", step.name, step.repair))
}

fn command(step: &Step) -> Command {
    let mut command = cargo();
    command.current_dir(repository::root().join(step.folder));
    command.args(step.cargo_args).env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn print_times(times: &[(&str, Duration)]) {
    for (name, time) in times {
        eprintln!("{:>8.1} s  {name}", time.as_secs_f64());
    }
}
