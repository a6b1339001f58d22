//! Formatting what was generated, so that the repository's format check covers it like everything else.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process::cargo_path;
use crate::repository;

/// Formats `source` by the repository's own settings, which rustfmt finds from the folder it runs in.
pub(super) fn format(source: &str) -> Result<String> {
    let beside = cargo_path().with_file_name("rustfmt");
    let mut rustfmt = Command::new(if beside.is_file() { beside } else { "rustfmt".into() })
        .args(["--edition", "2024"])
        .current_dir(repository::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start rustfmt")?;
    // rustfmt reads everything before it writes anything, so one thread may do both.
    rustfmt.stdin.take().context("rustfmt has no input")?.write_all(source.as_bytes())?;
    let output = rustfmt.wait_with_output().context("could not read from rustfmt")?;
    ensure!(output.status.success(), "rustfmt refused the generated source:\n{source}");
    String::from_utf8(output.stdout).context("rustfmt wrote something that is not UTF-8")
}
