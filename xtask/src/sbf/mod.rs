//! Builds a program to SBF with the stable Rust toolchain alone.
//!
//! Solana's own toolchain (`cargo build-sbf`) downloads a fork of rustc. This one needs what every Rust developer has,
//! and it makes the same bytes everywhere, which is what lets CI rebuild the checked-in programs and compare. Five parts
//! make up for what the fork has of its own, or does better:
//!
//! - upstream LLVM's BPF back end, through a target description with Solana's names ([`compile`]);
//! - the standard library, built from source because no compiled one exists for that target, and patched because it has
//!   no port to it ([`std_source`]);
//! - `sbpf-linker`, which turns upstream BPF objects into an SBF executable ([`linker`]);
//! - a wrapper of rustc that keeps the folders of a build out of the bytes ([`wrapper`]);
//! - a few symbols that the program crates bring themselves: `memcpy` and its kin, and `__bpf_trap`.

mod compile;
mod debian;
mod linker;
mod std_source;
pub(crate) mod wrapper;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{cargo_path, read};
use crate::programs::Program;

/// The compiler that the checked-in programs are built with. Another one makes other bytes, and from LLVM 23 on another
/// linker is needed ([`linker::VERSION`]).
const RUST_VERSION: &str = "1.95.0";

/// The toolchain, ready to build programs.
pub(crate) struct Toolchain {
    std_source: PathBuf,
    linker: PathBuf,
    target: PathBuf,
}

impl Toolchain {
    /// Gets the parts that are not in the cache yet: minutes the first time, nothing later.
    pub(crate) fn prepare() -> Result<Self> {
        require_compiler()?;
        let cache = cache_folder()?;
        Ok(Self {
            std_source: std_source::provide(&cache)?,
            linker: linker::provide(&cache)?,
            target: compile::write_target(&cache)?,
        })
    }

    /// Builds `program` with its intermediate files below `target_folder`, and returns the path of its `.so` file.
    pub(crate) fn build(&self, program: &Program, target_folder: &Path) -> Result<PathBuf> {
        compile::build(self, program, target_folder)
    }
}

/// The `rustc` beside the cargo that runs.
fn rustc() -> Command {
    let beside = cargo_path().with_file_name("rustc");
    Command::new(if beside.is_file() { beside } else { "rustc".into() })
}

fn require_compiler() -> Result<()> {
    let description = read(rustc().arg("-vV"))?;
    let version = description.lines().find_map(|line| line.strip_prefix("release: ")).unwrap_or_default();
    if version != RUST_VERSION {
        bail!(
            "the checked-in programs are built with Rust {RUST_VERSION}, and this is Rust {version}\n\
             hint: run `cargo +{RUST_VERSION} xtask build-programs`"
        );
    }
    Ok(())
}

/// Where the parts live: outside the repository, so that `cargo clean` and other checkouts leave and find them.
fn cache_folder() -> Result<PathBuf> {
    let folder =
        match (env::var_os("COMMITTOR_SBF_TOOLS"), env::var_os("XDG_CACHE_HOME"), env::var_os("HOME")) {
            (Some(folder), ..) => folder.into(),
            (None, Some(caches), _) => Path::new(&caches).join("committor-sbf-tools"),
            (None, None, Some(home)) => Path::new(&home).join(".cache/committor-sbf-tools"),
            (None, None, None) => bail!("no cache folder: set COMMITTOR_SBF_TOOLS or HOME"),
        };
    std::fs::create_dir_all(&folder).with_context(|| format!("could not create {}", folder.display()))?;
    folder.canonicalize().with_context(|| format!("could not find {}", folder.display()))
}
