//! What can be wrong with an account's bytes, and what the programs' error codes mean.

use solana_address::Address;
use thiserror::Error;

use crate::{
    chunk_buffer::{self, ChunkBufferError},
    delegation::{self, DelegationError},
};

/// The bytes of an account are not those of the kind that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AccountError {
    /// The data ends before the fixed part does.
    #[error("{account} account of {actual} bytes, expected at least {expected}")]
    TooShort {
        /// The kind of account that was expected.
        account: &'static str,
        /// Bytes needed.
        expected: usize,
        /// Bytes found.
        actual: usize,
    },
    /// The data starts with another discriminator.
    #[error("not a {account} account: it starts with another discriminator")]
    WrongDiscriminator {
        /// The kind of account that was expected.
        account: &'static str,
    },
    /// The layout is of a version that this SDK does not know.
    #[error("{account} account of layout version {version}, which this SDK does not know")]
    UnknownVersion {
        /// The kind of account that was expected.
        account: &'static str,
        /// The version found.
        version: u8,
    },
}

/// An error of one of the two programs, decoded from its custom code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// Of the chunk-buffer program.
    #[error("chunk-buffer: {0}")]
    ChunkBuffer(#[source] ChunkBufferError),
    /// Of the delegation program.
    #[error("delegation: {0}")]
    Delegation(#[source] DelegationError),
}

impl ProgramError {
    /// Decodes the custom error `code` that `program` returned; `None` if it is another program's or unknown.
    pub fn decode(program: &Address, code: u32) -> Option<Self> {
        if *program == chunk_buffer::ID {
            ChunkBufferError::from_code(code).map(Self::ChunkBuffer)
        } else if *program == delegation::ID {
            DelegationError::from_code(code).map(Self::Delegation)
        } else {
            None
        }
    }

    /// The error's name in the program's IDL.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ChunkBuffer(error) => error.name(),
            Self::Delegation(error) => error.name(),
        }
    }
}
