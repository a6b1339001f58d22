//! Where things are in the repository.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the repository.
///
/// Cargo tells a program it runs where its package is. Asking at run time rather than at compile time keeps a binary
/// right that two checkouts share through one target folder.
pub(crate) fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).parent().expect("the xtask package is a folder of the repository").to_owned()
}

/// The target folder that both workspaces share.
pub(crate) fn target() -> PathBuf {
    // A relative CARGO_TARGET_DIR is relative to where cargo was started, which is where this process runs too.
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => std::path::absolute(&folder).unwrap_or_else(|_| folder.into()),
        None => root().join("target"),
    }
}

/// The manifest of the programs' workspace.
pub(crate) fn programs_manifest() -> PathBuf {
    root().join("programs/Cargo.toml")
}

/// The checked-in IDL of the program whose library is called `library`.
pub(crate) fn idl(library: &str) -> PathBuf {
    root().join("idl").join(format!("{library}.json"))
}

/// `path` as a reader of the repository would write it.
pub(crate) fn display(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
