//! How a state reaches the chain.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The format of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// Where a commit's bytes travel, and whether they are the whole state or what changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The state, in the committing instruction itself.
    Inline,
    /// The ranges that change, in the committing instruction itself.
    InlinePatch,
    /// The state, through a buffer that is written first.
    Buffer,
    /// The ranges that change, through a buffer that is written first.
    BufferPatch,
}

impl Method {
    /// Whether the bytes travel through a buffer.
    pub const fn is_buffered(self) -> bool {
        matches!(self, Self::Buffer | Self::BufferPatch)
    }
}

/// How one account's state reaches the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Strategy {
    /// Where the bytes travel.
    pub method: Method,
    /// In transactions of which format.
    pub version: TransactionVersion,
    /// Whether the committing transaction uses lookup tables.
    pub tables: bool,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.method {
            Method::Inline => "inline",
            Method::InlinePatch => "inline-patch",
            Method::Buffer => "buffer",
            Method::BufferPatch => "buffer-patch",
        };
        let tables = if self.tables { "-tables" } else { "" };
        write!(f, "{method}-{}{tables}", self.version)
    }
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Creates, writes or seals buffers, or makes an account longer ahead of its commit.
    Prepare,
    /// Applies the whole bundle, or stages it.
    Commit,
    /// Applies what is staged.
    Finalize,
    /// Closes buffers that the transaction which used them had no room to close.
    Cleanup,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 4] = [Self::Prepare, Self::Commit, Self::Finalize, Self::Cleanup];

    /// The name that the store uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Commit => "commit",
            Self::Finalize => "finalize",
            Self::Cleanup => "cleanup",
        }
    }
}
