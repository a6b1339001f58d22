//! Reading and writing files that the user names.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use crate::exit::{CommandError, Kind};

/// A file's content.
pub fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let about = || format!("could not read file {}", path.display());
    fs::read(path).map_err(|error| CommandError::new(Kind::Usage, error).about(about()))
}

/// Writes a file, whole or not at all. One that exists is replaced only if that is asked for.
pub fn write(path: &Path, content: &[u8], replace: bool) -> Result<(), CommandError> {
    let about = || format!("could not write file {}", path.display());
    let fail = |error: io::Error| CommandError::new(Kind::Usage, error).about(about());
    if !replace && path.exists() {
        let message = format!("file {} exists", path.display());
        return Err(CommandError::new(Kind::Usage, message).hint("`--force` replaces it"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    temporary.write_all(content).map_err(fail)?;
    temporary.persist(path).map(drop).map_err(|error| fail(error.error))
}
