//! A wrapper of rustc that keeps the folders of a build out of the built program.
//!
//! Cargo gives every crate a hash that tells it from others of its name (`-C metadata`). For a crate outside the
//! workspace's folder, such as the standard library's source and the tests' program, the hash covers the absolute path;
//! it becomes part of the names of the crate's symbols, those names decide the order in which LLVM looks at functions,
//! and so a program's bytes would depend on where its parts were unpacked. This process is the wrapper, too: cargo calls
//! it in place of rustc, and it replaces the hash by what tells the crates of one build apart and is the same everywhere.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Set for the processes of a build, so that this program knows when it is called as the wrapper.
const REQUEST: &str = "COMMITTOR_XTASK_WRAPS_RUSTC";

/// Makes `cargo` call this program in place of rustc.
pub(super) fn wrap(cargo: &mut Command, this_program: &Path) {
    cargo.env("RUSTC_WRAPPER", this_program).env(REQUEST, "1");
}

/// Whether this process was started in place of rustc.
pub(crate) fn is_requested() -> bool {
    env::var_os(REQUEST).is_some()
}

/// Runs the rustc that the arguments name, with the hash replaced.
pub(crate) fn run() -> ExitCode {
    let mut words = env::args_os().skip(1);
    let Some(rustc) = words.next() else {
        return ExitCode::FAILURE;
    };
    // Cargo and build scripts pass arguments that they made or that are names of crates and features: all are UTF-8,
    // but for paths, which are passed on as they are.
    let words: Vec<_> = words.collect();
    let metadata = metadata(&words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>());
    let words = words.into_iter().map(|word| match is_metadata(&word.to_string_lossy()) {
        true => metadata.clone().into(),
        false => word,
    });
    match Command::new(rustc).args(words).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn is_metadata(word: &str) -> bool {
    word.starts_with("metadata=")
}

/// What stands for a crate: the package, its version, the features, and whether it belongs to the standard library,
/// whose own dependencies can be the very ones that a program has.
fn metadata(words: &[impl AsRef<str>]) -> String {
    let words = || words.iter().map(AsRef::as_ref);
    let part_of_std = words().any(|word| word == "-Zforce-unstable-if-unmarked");
    let features = words().filter(|word| word.starts_with("feature="));
    let package = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(|name| env::var(name).unwrap_or_default());
    let parts = package.into_iter().chain([part_of_std.to_string()]).chain(features.map(str::to_owned));
    format!("metadata={}", parts.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_with_other_features_stay_apart() {
        let plain = metadata(&["--cfg", "feature=\"std\""]);
        assert_ne!(plain, metadata(&["--cfg", "feature=\"alloc\""]));
        assert_ne!(plain, metadata(&["--cfg", "feature=\"std\"", "-Zforce-unstable-if-unmarked"]));
    }

    #[test]
    fn paths_do_not_tell_crates_apart() {
        assert_eq!(
            metadata(&["/a/src/lib.rs", "--out-dir", "/a"]),
            metadata(&["/b/src/lib.rs", "--out-dir", "/b"])
        );
    }
}
