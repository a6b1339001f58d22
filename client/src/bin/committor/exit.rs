//! Exit codes and the one way to print an error. Codes are append-only.

use std::{error::Error, fmt, process::ExitCode};

/// How the command ended, and so its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0: everything landed.
    Success,
    /// 1: something that fits none of the others.
    Other,
    /// 2: the command line, a file or a setting is wrong; nothing was done.
    Usage,
    /// 3: nothing of the changeset landed.
    Failed,
    /// 4: some of the changeset's bundles landed, others did not.
    PartlyLanded,
    /// 5: landed, but an account read back is not what was committed.
    NotVerified,
    /// 6: the cluster can't be reached or does not answer.
    Cluster,
    /// 7: the store can't be used.
    Store,
    /// 8: interrupted; what had not ended goes on with `resume`.
    Interrupted,
}

impl Kind {
    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Other => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::PartlyLanded => 4,
            Self::NotVerified => 5,
            Self::Cluster => 6,
            Self::Store => 7,
            Self::Interrupted => 8,
        }
    }
}

impl From<Kind> for ExitCode {
    fn from(kind: Kind) -> Self {
        Self::from(kind.code())
    }
}

/// An error, its exit code, and what to do about it.
#[derive(Debug)]
pub struct CommandError {
    kind: Kind,
    /// What it is about, where the error itself does not say it.
    subject: Option<String>,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl CommandError {
    /// An error of a kind.
    pub fn new(kind: Kind, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, subject: None, error: error.into(), hints: Vec::new() }
    }

    /// How the command ended.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Says what the error is about.
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds what the library says that the user can do, if it has something to say.
    pub fn hints(mut self, hint: Option<&'static str>) -> Self {
        self.hints.extend(hint.map(str::to_owned));
        self
    }

    /// Adds what the user can do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) => writeln!(f, "error: {subject}: {}", self.error)?,
            None => writeln!(f, "error: {}", self.error)?,
        }
        let mut said = self.error.to_string();
        let mut cause = self.error.source();
        let mut header = "\nCaused by:\n";
        while let Some(error) = cause {
            let words = error.to_string();
            // Some libraries quote their cause in their own words.
            if !said.ends_with(&words) {
                writeln!(f, "{header}  {words}")?;
                header = "";
            }
            said = words;
            cause = error.source();
        }
        for hint in &self.hints {
            writeln!(f, "hint: {hint}")?;
        }
        Ok(())
    }
}

impl From<committor_client::EngineError> for CommandError {
    fn from(error: committor_client::EngineError) -> Self {
        use committor_client::{EngineError, engine::tables::TableError};
        let kind = match &error {
            EngineError::Changeset(_) | EngineError::Missing(_) => Kind::Usage,
            EngineError::Table(TableError::Unknown(_)) => Kind::Usage,
            error if error.is_outage() => Kind::Cluster,
            EngineError::Chain(_) => Kind::Cluster,
            EngineError::ShuttingDown => Kind::Interrupted,
            EngineError::Store(_) | EngineError::StoreInUse { .. } | EngineError::Lock { .. } => Kind::Store,
            EngineError::Table(_)
            | EngineError::Transaction { .. }
            | EngineError::Plan(_)
            | EngineError::Compile(_)
            | EngineError::Sign(_)
            | EngineError::Task(_) => Kind::Other,
        };
        let hint = error.hint();
        Self::new(kind, error).hints(hint)
    }
}

impl From<committor_client::store::StoreError> for CommandError {
    fn from(error: committor_client::store::StoreError) -> Self {
        let hint = error.hint();
        Self::new(Kind::Store, error).hints(hint)
    }
}

impl From<committor_client::config::ConfigError> for CommandError {
    fn from(error: committor_client::config::ConfigError) -> Self {
        let hint = error.hint();
        Self::new(Kind::Usage, error).hints(hint)
    }
}

/// Prints an error where errors go.
pub fn report(error: &CommandError) -> ExitCode {
    eprint!("{error}");
    error.kind.into()
}
