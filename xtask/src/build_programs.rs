//! `cargo xtask build-programs`: the `.so` files.
//!
//! The built programs are checked in, so that tests and tools need no SBF toolchain. CI builds them again with the
//! upstream toolchain ([`crate::sbf`]), whose bytes depend on the source alone, and compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use sha2::{Digest, Sha256};

use crate::outputs::{Mode, Outputs, write};
use crate::process::{run as run_process, rustup_cargo};
use crate::programs::{self, Program};
use crate::repository;
use crate::sbf::Toolchain;

/// The command that repairs a failing check.
pub(crate) const REPAIR: &str = "cargo xtask build-programs --toolchain upstream";

/// Which toolchain compiles the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ToolchainChoice {
    /// platform-tools where `cargo build-sbf` is installed, otherwise upstream
    Auto,
    /// Solana's `cargo build-sbf`
    PlatformTools,
    /// The stable Rust toolchain, whose bytes are the checked-in ones
    Upstream,
}

#[derive(Args)]
pub(crate) struct Options {
    /// Build with the upstream toolchain and compare with the checked-in programs instead of writing them
    #[arg(long, conflicts_with = "toolchain")]
    check: bool,

    /// The toolchain to build with
    #[arg(long, value_enum, default_value = "auto")]
    toolchain: ToolchainChoice,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let build_one = builder(options)?;
    let mut outputs = Outputs::new(Mode::from_check_flag(options.check));
    let mut sums = String::new();
    for program in &programs::ALL {
        let built = build_one(program)?;
        let contents = fs::read(&built).with_context(|| format!("could not read {}", built.display()))?;
        let name = format!("{}.so", program.library);
        outputs.put(&repository::root().join("programs/artifacts").join(&name), &contents)?;
        let sum: String = Sha256::digest(&contents).iter().map(|byte| format!("{byte:02x}")).collect();
        sums.push_str(&format!("{sum}  programs/artifacts/{name}\n"));
        // Where `anchor test --skip-build` and `anchor deploy` look for programs.
        write(&repository::target().join("deploy").join(&name), &contents)?;
    }
    let readme = repository::root().join("README.md");
    outputs.put(&readme, with_sums(&readme, &sums)?.as_bytes())?;
    outputs.finish(REPAIR)
}

/// The README with the programs' hashes, as `sha256sum` prints them, in their place.
fn with_sums(readme: &Path, sums: &str) -> Result<String> {
    const START: &str = "<!-- `cargo xtask build-programs` writes the hashes -->\n```\n";
    const END: &str = "```\n";
    let text = fs::read_to_string(readme).with_context(|| format!("could not read {}", readme.display()))?;
    let (before, after) =
        text.split_once(START).context("README.md has no place for the programs' hashes")?;
    let (_, after) = after.split_once(END).context("the hashes in README.md have no end")?;
    Ok(format!("{before}{START}{sums}{END}{after}"))
}

/// What builds one program and returns the path of its `.so` file.
type Builder = Box<dyn Fn(&Program) -> Result<PathBuf>>;

fn builder(options: &Options) -> Result<Builder> {
    if !options.check && uses_platform_tools(options.toolchain) {
        eprintln!("building with platform-tools; before you commit the programs, run `{REPAIR}`");
        return Ok(Box::new(build_with_platform_tools));
    }
    let toolchain = Toolchain::prepare()?;
    let target_folder = repository::target().join("sbf");
    Ok(Box::new(move |program| toolchain.build(program, &target_folder)))
}

fn uses_platform_tools(choice: ToolchainChoice) -> bool {
    match choice {
        ToolchainChoice::Auto => build_sbf_is_installed(),
        ToolchainChoice::PlatformTools => true,
        ToolchainChoice::Upstream => false,
    }
}

fn build_sbf_is_installed() -> bool {
    let mut probe = Command::new("cargo-build-sbf");
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn build_with_platform_tools(program: &Program) -> Result<PathBuf> {
    let out = repository::target().join("platform-tools");
    let mut build_sbf = rustup_cargo();
    build_sbf.arg("build-sbf").arg("--sbf-out-dir").arg(&out);
    build_sbf.arg("--manifest-path").arg(repository::root().join(program.folder).join("Cargo.toml"));
    run_process(build_sbf.args(["--", "--locked"]))?;
    Ok(out.join(format!("{}.so", program.library)))
}
