//! Compiling a program for the BPF target.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Toolchain, wrapper};
use crate::outputs::write;
use crate::process::{self, hermetic_cargo, run};
use crate::programs::Program;
use crate::repository;

/// The target's name, which is also that of its description file.
const TARGET: &str = "sbf-solana-solana";

/// Upstream's `bpfel` with Solana's names and with atomics, which [`FLAGS`] lowers to plain loads and stores.
const TARGET_DESCRIPTION: &str = include_str!("sbf-solana-solana.json");

/// How the programs are optimised, here and not in their manifest because the bytes depend on every line of it.
const PROFILE: [&str; 7] = [
    r#"profile.release.panic="immediate-abort""#,
    r#"profile.release.lto="fat""#,
    "profile.release.codegen-units=1",
    "profile.release.opt-level=3",
    "profile.release.overflow-checks=true",
    "profile.release.strip=false",
    "profile.release.debug=false",
];

/// What makes upstream BPF into something the SBF virtual machine accepts.
const FLAGS: [&str; 9] = [
    "-Zunstable-options",
    // The panic machinery returns pairs, which BPF functions cannot.
    "-Cpanic=immediate-abort",
    // SBF has no atomic instructions, and one thread.
    "-Cpasses=lower-atomic",
    "-Crelocation-model=static",
    "-Clink-arg=--llvm-args=-bpf-stack-size=4096",
    // LLVM calls this where code cannot be reached; unless exported, the linker drops it before that.
    "-Clink-arg=--export=__bpf_trap",
    // The linker makes undefined symbols internal, and LLVM then drops the arguments of the calls to them: system calls
    // have to be calls to fixed addresses.
    "--cfg",
    r#"target_feature="static-syscalls""#,
    "-Aexplicit_builtin_cfgs_in_flags",
];

/// Writes the target description into `cache` and returns its path.
pub(super) fn write_target(cache: &Path) -> Result<PathBuf> {
    let path = cache.join(format!("{TARGET}.json"));
    write(&path, TARGET_DESCRIPTION.as_bytes())?;
    Ok(path)
}

/// Builds `program` and returns the path of its `.so` file.
pub(super) fn build(toolchain: &Toolchain, program: &Program, target_folder: &Path) -> Result<PathBuf> {
    let mut cargo = hermetic_cargo();
    // Programs are built one by one: in one build, the features that one asks of another would be unified, and a
    // dependency's `no-entrypoint` would remove the entry point from its own `.so`.
    cargo.args(["build", "--locked", "--release", "--lib", "--package", program.package]);
    cargo.arg("--manifest-path").arg(repository::programs_manifest());
    cargo.arg("--target-dir").arg(target_folder).arg("--target").arg(&toolchain.target);
    cargo.args(["-Zjson-target-spec", "-Zbuild-std=core,alloc,std,panic_abort", "-Zpanic-immediate-abort"]);
    for setting in PROFILE {
        cargo.args(["--config", setting]);
    }
    cargo.arg("--config").arg(rustflags(toolchain)?);
    // The unstable flags above on a stable compiler; std as a whole, not as `restricted_std`; and its source.
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTC_BOOTSTRAP_SYNTHETIC_TARGET", "1");
    cargo.env("__CARGO_TESTS_ONLY_SRC_ROOT", &toolchain.std_source);
    wrapper::wrap(&mut cargo, &env::current_exe().context("could not find this program")?);
    run(&mut cargo)?;
    Ok(target_folder.join(TARGET).join("release").join(format!("lib{}.so", program.library)))
}

/// The compiler flags as one line of cargo configuration. A JSON array of strings is a TOML one, too.
fn rustflags(toolchain: &Toolchain) -> Result<String> {
    let mut flags: Vec<String> = FLAGS.map(str::to_owned).to_vec();
    flags.push(format!("-Clinker={}", toolchain.linker.display()));
    // Where something keeps the place of a panic, its file's name must not say where the file was.
    for (folder, name) in
        [(repository::root(), "."), (process::cargo_home(), "/cargo"), (toolchain.std_source.clone(), "/std")]
    {
        flags.push(format!("--remap-path-prefix={}={name}", folder.display()));
    }
    Ok(format!("target.{TARGET}.rustflags={}", serde_json::to_string(&flags)?))
}
