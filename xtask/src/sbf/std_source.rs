//! The source of the standard library, patched to build for Solana.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{RUST_VERSION, debian, rustc};
use crate::outputs::files_below;
use crate::process::{read, run};

/// Part of the folder's name in the cache. Raise it with every change to [`patch`] or to the wrapper of rustc, of which
/// cargo knows nothing: another folder makes it build everything again.
const REVISION: u32 = 2;

/// Returns the folder of the patched source in `cache`, making it on first use.
pub(super) fn provide(cache: &Path) -> Result<PathBuf> {
    let ready = cache.join(format!("std-{RUST_VERSION}-{REVISION}"));
    if !ready.is_dir() {
        // Made aside and moved into place, so that an interrupted run leaves nothing that looks finished.
        let aside = tempfile::tempdir_in(cache).context("could not create a folder in the cache")?;
        let source = aside.path().join("std");
        fs::create_dir(&source).with_context(|| format!("could not create {}", source.display()))?;
        copy_source(cache, &source.join("library"))?;
        patch(&source.join("library"))?;
        fs::rename(&source, &ready).with_context(|| format!("could not create {}", ready.display()))?;
    }
    Ok(ready.join("library"))
}

/// Copies the unpatched source from the toolchain, or else from Debian, where rustup cannot fetch components.
fn copy_source(cache: &Path, to: &Path) -> Result<()> {
    let sysroot = read(rustc().args(["--print", "sysroot"]))?;
    let component = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    if component.is_dir() {
        return run(Command::new("cp").args([OsStr::new("-r"), component.as_os_str(), to.as_os_str()]));
    }
    debian::extract_rust_source(cache, to).with_context(|| {
        format!(
            "no source of the standard library for Rust {RUST_VERSION}\n\
             hint: run `rustup component add rust-src`"
        )
    })
}

/// Ports the standard library to `target_os = "solana"`.
///
/// Nearly all of it is dropped again at link time: std is built because dependencies of the programs name it.
fn patch(library: &Path) -> Result<()> {
    // A virtual machine without an operating system: that is what Solana is to std, which has a port to another, zkvm.
    let sources = files_below(&library.join("std/src"))?;
    for file in sources.iter().filter(|file| file.extension() == Some(OsStr::new("rs"))) {
        let ported = r#"any(target_os = "zkvm", target_os = "solana")"#;
        replace(file, r#"target_os = "zkvm""#, ported, usize::MAX)?;
    }
    // The allocator has to know BPF's alignment.
    let x86_64 = r#"target_arch = "x86_64","#;
    let with_bpf = format!("{x86_64}\n    target_arch = \"bpf\",");
    must_replace(&library.join("std/src/sys/alloc/mod.rs"), x86_64, &with_bpf)?;
    // The multiplication that notices an overflow of 64 bits is a wide one, which upstream's BPF back end turns into a
    // call that returns a pair. No allocation of 4 GiB succeeds anyway, so 32 bits a factor are enough.
    must_replace(
        &library.join("core/src/alloc/layout.rs"),
        "if let Some(size) = self.size.checked_mul(n) {",
        "if (self.size | n) >> 32 == 0 {\n            let size = self.size.wrapping_mul(n);",
    )
}

/// Replaces the one place in `file` that a port hangs on.
fn must_replace(file: &Path, from: &str, to: &str) -> Result<()> {
    ensure!(replace(file, from, to, 1)?, "{} does not look as expected: no `{from}`", file.display());
    Ok(())
}

/// Replaces the first `limit` occurrences of `from` in `file`, and returns whether there was one.
fn replace(file: &Path, from: &str, to: &str, limit: usize) -> Result<bool> {
    let text = fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
    let replaced = text.replacen(from, to, limit);
    if replaced == text {
        return Ok(false);
    }
    fs::write(file, replaced).with_context(|| format!("could not write {}", file.display()))?;
    Ok(true)
}
