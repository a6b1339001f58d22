//! Files that a task makes and the repository carries.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail};

/// What to do with a file that a task has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write it.
    Write,
    /// Compare it with the one that is there, and write nothing.
    Check,
}

impl Mode {
    /// The mode that a `--check` flag asks for.
    pub(crate) fn from_check_flag(check: bool) -> Self {
        if check { Self::Check } else { Self::Write }
    }
}

/// The files of one task: written, or compared with those that are checked in.
pub(crate) struct Outputs {
    mode: Mode,
    made: BTreeSet<PathBuf>,
    stale: BTreeSet<PathBuf>,
}

impl Outputs {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, made: BTreeSet::new(), stale: BTreeSet::new() }
    }

    /// Writes `contents` to `path`, or notes that the file there differs.
    pub(crate) fn put(&mut self, path: &Path, contents: &[u8]) -> Result<()> {
        self.made.insert(path.to_owned());
        if read_if_present(path)?.as_deref() == Some(contents) {
            return Ok(());
        }
        match self.mode {
            Mode::Check => {
                self.stale.insert(path.to_owned());
                Ok(())
            }
            Mode::Write => write(path, contents),
        }
    }

    /// Treats every file below `folder` that the task did not make as left over from an earlier run of it.
    pub(crate) fn sweep(&mut self, folder: &Path) -> Result<()> {
        for path in files_below(folder)? {
            if self.made.contains(&path) {
                continue;
            }
            match self.mode {
                Mode::Check => {
                    self.stale.insert(path);
                }
                Mode::Write => {
                    fs::remove_file(&path).with_context(|| format!("could not remove {}", path.display()))?;
                }
            }
        }
        Ok(())
    }

    /// Fails with the names of the files that differ and the command that writes them.
    pub(crate) fn finish(self, repair: &str) -> Result<()> {
        if self.stale.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = self.stale.iter().map(|path| crate::repository::display(path)).collect();
        bail!("not up to date: {}\nhint: run `{repair}` and commit the result", names.join(", "));
    }
}

fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
    }
}

/// Writes `contents` to `path`, making the folders on the way.
pub(crate) fn write(path: &Path, contents: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    }
    fs::write(path, contents).with_context(|| format!("could not write {}", path.display()))
}

/// Every file below `folder`, which need not exist.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("could not list {}", folder.display())),
        };
        for entry in entries {
            let path = entry.with_context(|| format!("could not list {}", folder.display()))?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}
