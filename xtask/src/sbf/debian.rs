//! The source of the standard library from Debian's backports, which carry it per compiler version.
//!
//! Everything happens in the cache folder with an apt configuration of its own: the machine's package lists and sources
//! stay as they are, and no root is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::RUST_VERSION;
use crate::outputs::write;
use crate::process::{read, run};

/// The backports that carry [`RUST_VERSION`]. The package is only source text and is installed nowhere, so it need not
/// be for the release that the machine runs.
const SUITE: &str = "trixie-backports";

/// Downloads the `rust-src` package of [`RUST_VERSION`] and moves its `library` folder to `to`.
pub(super) fn extract_rust_source(cache: &Path, to: &Path) -> Result<()> {
    let work = tempfile::tempdir_in(cache).context("could not create a folder in the cache")?;
    let apt = Apt::new(work.path())?;
    run(apt.command("apt-get").args(["update", "--quiet"]))?;
    let known = read(apt.command("apt-cache").args(["madison", "rust-src"]))?;
    let version = newest_build(&known)?;
    run(apt.command("apt-get").arg("download").arg(format!("rust-src={version}")))?;
    let package = downloaded_package(work.path())?;
    run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(work.path().join("package")))?;
    let library = work.path().join(format!("package/usr/src/rustc-{RUST_VERSION}/library"));
    fs::rename(&library, to).with_context(|| format!("could not move {}", library.display()))
}

/// apt with its state in one folder.
struct Apt<'a> {
    folder: &'a Path,
}

impl<'a> Apt<'a> {
    fn new(folder: &'a Path) -> Result<Self> {
        write(&folder.join("sources/backports.sources"), backports()?.as_bytes())?;
        fs::create_dir_all(folder.join("lists/partial")).context("could not create apt's lists folder")?;
        fs::create_dir_all(folder.join("cache/archives/partial")).context("could not create apt's cache")?;
        Ok(Self { folder })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder);
        for (option, folder) in
            [("Dir::Etc::SourceParts", "sources"), ("Dir::State::Lists", "lists"), ("Dir::Cache", "cache")]
        {
            command.arg("-o").arg(format!("{option}={}", self.folder.join(folder).display()));
        }
        // The main list is left out, and apt's own user could not write to the cache.
        command.args(["-o", "Dir::Etc::SourceList=/dev/null", "-o", "APT::Sandbox::User=root"]);
        command
    }
}

/// The machine's own Debian mirror, pointed at [`SUITE`].
fn backports() -> Result<String> {
    const SOURCES: &str = "/etc/apt/sources.list.d/debian.sources";
    let sources = fs::read_to_string(SOURCES).with_context(|| format!("could not read {SOURCES}"))?;
    let main = sources.split("\n\n").next().unwrap_or_default();
    let lines = main.lines().map(|line| match line.starts_with("Suites:") {
        true => format!("Suites: {SUITE}\n"),
        false => format!("{line}\n"),
    });
    Ok(lines.collect())
}

/// The first version in the output of `apt-cache madison` that packages [`RUST_VERSION`].
fn newest_build(madison: &str) -> Result<&str> {
    let versions = madison.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let mut matching = versions.filter(|version| version.starts_with(RUST_VERSION));
    matching.next().with_context(|| format!("{SUITE} has no rust-src {RUST_VERSION}"))
}

fn downloaded_package(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("could not list {}", folder.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt downloaded nothing")
}
