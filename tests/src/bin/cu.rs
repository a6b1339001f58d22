//! Measures what every instruction costs: writes `docs/cu.md`, compares with it, or prints JSON.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use committor_tests::cu;

/// The command that writes the page.
const REPAIR: &str = "cargo xtask cu";

/// Measure the compute units of every instruction and write docs/cu.md
#[derive(Parser)]
struct Arguments {
    /// Compare with the checked-in page instead of writing it
    #[arg(long, conflicts_with = "json")]
    check: bool,

    /// Print the measurements as JSON and write nothing
    #[arg(long)]
    json: bool,

    /// Write the page although a figure has grown by more than 2 %
    #[arg(long)]
    accept_growth: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace that anyhow adds to its own report of an error.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let rows = cu::measure();
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cu.md");
    if !arguments.check {
        // There is nothing to grow from before the page was written once.
        let grown = fs::read_to_string(&path).map_or_else(|_| Vec::new(), |page| cu::growth(&page, &rows));
        ensure!(
            grown.is_empty() || arguments.accept_growth,
            "docs/cu.md was not written: figures have grown by more than 2 %\n{}\nhint: if that is meant, run \
             `{REPAIR} --accept-growth`",
            grown.join("\n")
        );
        let folder = path.parent().context("the page is in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
        return fs::write(&path, cu::render(&rows))
            .with_context(|| format!("could not write {}", path.display()));
    }
    let page = fs::read_to_string(&path)
        .with_context(|| format!("could not read {}\nhint: run `{REPAIR}`", path.display()))?;
    let complaints = cu::compare(&page, &rows);
    ensure!(
        complaints.is_empty(),
        "docs/cu.md is out of date\n{}\nhint: run `{REPAIR}`",
        complaints.join("\n")
    );
    Ok(())
}
