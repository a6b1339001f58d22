//! The repository's own tasks, run as `cargo xtask NAME`.
//!
//! Everything that is checked in but made by a program is made here: the SBF programs, their IDLs, the generated part of
//! the SDK and the table of compute units. Each of those tasks has a `--check` that compares instead of writing, and
//! `cargo xtask ci` runs all the checks in the order that reports the earliest cause first.

mod build_programs;
mod ci;
mod cu;
mod idl;
mod outputs;
mod process;
mod programs;
mod repository;
mod sbf;
mod sdk;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Tasks of this repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Task {
    /// Build the SBF programs into programs/artifacts and target/deploy
    BuildPrograms(build_programs::Options),
    /// Write the programs' IDLs into idl
    Idl(idl::Options),
    /// Generate sdk/src/generated from the IDLs
    Sdk(sdk::Options),
    /// Measure the compute units of every instruction
    Cu(cu::Options),
    /// Run every check that a change must pass
    Ci,
}

fn main() -> ExitCode {
    if sbf::wrapper::is_requested() {
        return sbf::wrapper::run();
    }
    let Err(error) = run(Task::parse()) else {
        return ExitCode::SUCCESS;
    };
    // Not returned from `main`, which would add a backtrace of the task runner where one is asked of other programs.
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("caused by: {cause}");
    }
    ExitCode::FAILURE
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::BuildPrograms(options) => build_programs::run(&options),
        Task::Idl(options) => idl::run(&options),
        Task::Sdk(options) => sdk::run(&options),
        Task::Cu(options) => cu::run(&options),
        Task::Ci => ci::run(),
    }
}
