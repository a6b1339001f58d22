//! `cargo xtask cu`: the table of compute units.

use anyhow::Result;
use clap::Args;

use crate::process::{self, cargo};

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
}

/// Starts the tool that measures. It lives with the tests because it needs the virtual machine and the SDK, which this
/// crate must do without.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut measure = cargo();
    measure.args(["run", "--quiet", "--package", "committor-tests", "--bin", "cu", "--"]);
    measure.args(options.check.then_some("--check")).args(options.json.then_some("--json"));
    process::run(&mut measure)
}
