//! `cargo xtask idl`: the programs' IDLs.
//!
//! The IDL is what the SDK is generated from, and what other people's tools read. It is made by compiling the program
//! for the host with the feature `idl-build` and running a test that prints it.

use anchor_lang_idl::build::IdlBuilder;
use anchor_lang_idl::types::Idl;
use anyhow::{Context, Result};
use clap::Args;

use crate::outputs::{Mode, Outputs};
use crate::programs::{self, Program};
use crate::repository;

/// The command that repairs a failing check.
pub(crate) const REPAIR: &str = "cargo xtask idl";

#[derive(Args)]
pub(crate) struct Options {
    /// Compare with the checked-in IDLs instead of writing them
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    crate::process::prepare_environment_for_idl_builder();
    let mut outputs = Outputs::new(Mode::from_check_flag(options.check));
    for program in &programs::PUBLISHED {
        let idl = build(program)?;
        let json = serde_json::to_string_pretty(&idl).context("could not write the IDL as JSON")?;
        outputs.put(&repository::idl(program.library), format!("{json}\n").as_bytes())?;
    }
    outputs.finish(REPAIR)
}

fn build(program: &Program) -> Result<Idl> {
    IdlBuilder::new()
        .program_path(repository::root().join(program.folder))
        .cargo_args(vec![
            "--locked".to_owned(),
            "--lib".to_owned(),
            format!("--target-dir={}", repository::target().join("idl").display()),
        ])
        .build()
        .with_context(|| format!("could not build the IDL of {}", program.package))
}
