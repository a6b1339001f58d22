//! The linker that turns upstream BPF objects into an SBF executable.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::process::{hermetic_cargo, run};

/// The last release that reads the bitcode of LLVM 21 and 22; from 0.2 on it wants a compiler with LLVM 23.
pub(super) const VERSION: &str = "0.1.9";

/// Returns the linker in `cache`, building it on first use.
pub(super) fn provide(cache: &Path) -> Result<PathBuf> {
    let root = cache.join(format!("sbpf-linker-{VERSION}"));
    let linker = root.join("bin/sbpf-linker");
    if !linker.is_file() {
        eprintln!("building sbpf-linker {VERSION} (once, into {})", root.display());
        let mut install = hermetic_cargo();
        install.args(["install", "sbpf-linker", "--locked", "--version", VERSION, "--root"]).arg(&root);
        run(&mut install)?;
    }
    Ok(linker)
}
