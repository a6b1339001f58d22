//! How a state reaches the chain.

use std::fmt;

use serde::Serialize;

/// The format of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransactionVersion {
    /// At most 1,232 bytes.
    V0,
    /// At most 4,096 bytes and 64 addresses, where the cluster has it.
    V1,
}

impl TransactionVersion {
    /// The longest transaction on the wire, in bytes.
    pub const fn max_len(self) -> usize {
        match self {
            Self::V0 => 1_232,
            Self::V1 => 4_096,
        }
    }
}

impl fmt::Display for TransactionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0 => "v0",
            Self::V1 => "v1",
        })
    }
}

/// Where a commit's bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// In the committing instruction itself.
    Inline,
    /// Through a buffer that is written first.
    Buffer,
}

/// How one account's state reaches the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Strategy {
    /// Where the bytes travel.
    pub method: Method,
    /// In transactions of which format.
    pub version: TransactionVersion,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.method {
            Method::Inline => "inline",
            Method::Buffer => "buffer",
        };
        write!(f, "{method}-{}", self.version)
    }
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Creates, writes or seals buffers, or makes an account longer ahead of its commit.
    Prepare,
    /// Applies the whole bundle.
    Commit,
    /// Closes buffers that the commit's transaction had no room to close.
    Cleanup,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 3] = [Self::Prepare, Self::Commit, Self::Cleanup];

    /// The name that the store uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Commit => "commit",
            Self::Cleanup => "cleanup",
        }
    }
}
