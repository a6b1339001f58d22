//! `cargo xtask cu`: the table of compute units.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::process::{self, cargo};
use crate::repository;

/// The command that repairs a failing check.
pub(crate) const REPAIR: &str = "cargo xtask cu";

#[derive(Args)]
pub(crate) struct Options {
    /// Compare with the checked-in table instead of writing it
    #[arg(long)]
    check: bool,

    /// Print the measurements as JSON
    #[arg(long)]
    json: bool,

    /// Write the table although a figure has grown by more than 2 %
    #[arg(long)]
    accept_growth: bool,
}

/// Starts the tool that measures. It lives with the tests because it needs the virtual machine and the SDK, which this
/// crate must do without.
///
/// Built with the whole workspace's features and then started, rather than by `cargo run --package`: that would choose
/// other features, and compile hundreds of dependencies once more.
pub(crate) fn run(options: &Options) -> Result<()> {
    process::run(cargo().args(["build", "--quiet", "--locked", "--workspace", "--bin", "cu"]))?;
    let mut measure = Command::new(repository::target().join("debug/cu"));
    measure.args(options.check.then_some("--check")).args(options.json.then_some("--json"));
    measure.args(options.accept_growth.then_some("--accept-growth"));
    process::run(&mut measure)
}
