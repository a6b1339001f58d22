//! Starting other programs.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// A cargo of the toolchain that runs this process, without the settings that `cargo run` made for this process.
///
/// `cargo run` describes *this* package in the environment. Build scripts that watch those variables would otherwise be
/// run again each time a task and a plain `cargo build` take turns.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(cargo_path());
    for (name, _) in env::vars_os() {
        if describes_this_package(&name) {
            command.env_remove(name);
        }
    }
    command.current_dir(crate::repository::root());
    command
}

/// A [`cargo`] whose output depends on its arguments only: flags, profiles and wrappers from the environment are dropped.
pub(crate) fn hermetic_cargo() -> Command {
    let mut command = cargo();
    for (name, _) in env::vars_os() {
        if changes_what_cargo_builds(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// The `cargo` on the `PATH`, for tools that choose a toolchain of their own with rustup's `+TOOLCHAIN`, which only
/// rustup's proxy understands and `RUSTUP_TOOLCHAIN` overrides.
pub(crate) fn rustup_cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in env::vars_os() {
        if describes_this_package(&name) || changes_what_cargo_builds(&name) {
            command.env_remove(name);
        }
    }
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command.current_dir(crate::repository::root());
    command
}

/// The cargo that started this process, or the one on the `PATH` when something else did.
pub(crate) fn cargo_path() -> PathBuf {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
}

/// Where cargo keeps the sources of dependencies.
pub(crate) fn cargo_home() -> PathBuf {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home).unwrap_or_else(|| ".cargo".into())
}

fn describes_this_package(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"].contains(&&*name)
}

fn changes_what_cargo_builds(name: &OsString) -> bool {
    const PREFIXES: [&str; 4] = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_UNSTABLE_"];
    const NAMES: [&str; 5] = [
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_INCREMENTAL",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTFLAGS",
    ];
    let name = name.to_string_lossy();
    let named = NAMES.contains(&&*name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    named && name != "CARGO_BUILD_JOBS"
}

/// Runs `command` with this process's own output, and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = describe(command);
    let status = command.status().with_context(|| format!("could not start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs `command` and returns what it wrote to standard output; its errors stay visible.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let shown = describe(command);
    let Output { status, stdout, .. } = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("could not start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    String::from_utf8(stdout).with_context(|| format!("`{shown}` wrote something that is not UTF-8"))
}

/// The command as a person would type it, shortened to what tells it from others.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = command.get_args().take(6).map(|word| word.to_string_lossy());
    std::iter::once(program.to_string_lossy()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Makes the environment of this process one in which [`anchor_lang_idl::build::IdlBuilder`] works and uses the cargo
/// that started this process.
///
/// It starts `cargo` by name and, if `RUSTUP_TOOLCHAIN` is set, as it is below `cargo run`, passes a `+` argument that no
/// cargo understands.
pub(crate) fn prepare_environment_for_idl_builder() {
    let cargo = cargo_path();
    let toolchain = cargo.parent().map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = toolchain.into_iter().chain(env::split_paths(&path));
    let path = env::join_paths(folders).unwrap_or(path.clone());
    // SAFETY: this process has one thread, so nothing reads the environment meanwhile.
    unsafe {
        env::remove_var("RUSTUP_TOOLCHAIN");
        env::set_var("PATH", path);
    }
}
