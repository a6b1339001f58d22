//! Why a program was not deployed.

use solana_address::Address;
use solana_signature::Signature;
use thiserror::Error;

use crate::{
    deploy::{DeployError, ProgramFileError},
    plan::MAX_PROGRAM_LEN,
};

/// Why a program was not deployed. All but the first and the last have cost nothing.
#[derive(Debug, Error)]
pub enum ProgramDeployError {
    /// As with any other file.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// The file is no program that the cluster would run.
    #[error(transparent)]
    File(#[from] ProgramFileError),
    /// A first deploy takes the program's signature.
    #[error("there is no program {0} on this cluster, and a first deploy needs its keypair")]
    NoKeypair(Address),
    /// The address is in use otherwise.
    #[error("account {address} is no program of the upgradeable loader: its owner is {owner}")]
    NotAProgram {
        /// The account.
        address: Address,
        /// Who owns it.
        owner: Address,
    },
    /// The program was closed, and its address can't be used again.
    #[error("program {0} was closed, and there can be no other at its address")]
    Closed(Address),
    /// Somebody sent lamports to where the program's bytes would be. The loader can't create the account then.
    #[error("program {program} can't be deployed: the account {data} for its bytes exists already")]
    DataExists {
        /// The program.
        program: Address,
        /// Where its bytes would be.
        data: Address,
    },
    /// Nobody can upgrade it.
    #[error("program {0} is immutable: it has no upgrade authority")]
    Immutable(Address),
    /// Somebody else can upgrade it.
    #[error("the upgrade authority of program {program} is {authority}, not {ours}")]
    WrongAuthority {
        /// The program.
        program: Address,
        /// Who can upgrade it.
        authority: Address,
        /// Who was to.
        ours: Address,
    },
    /// Room for too few bytes or too many was asked for.
    #[error(
        "room for {max_len} bytes was asked for, expected {len}, which the program has, to {MAX_PROGRAM_LEN}"
    )]
    MaxLen {
        /// What was asked for.
        max_len: usize,
        /// Length of the program in bytes.
        len: usize,
    },
    /// After it was deployed, the program holds something else.
    #[error(
        "program {program} was deployed, but holds other bytes now: somebody upgraded it in the meantime"
    )]
    Overtaken {
        /// The program.
        program: Address,
    },
}

impl ProgramDeployError {
    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Deploy(error) => error.is_transient(),
            Self::File(_)
            | Self::NoKeypair(_)
            | Self::NotAProgram { .. }
            | Self::Closed(_)
            | Self::DataExists { .. }
            | Self::Immutable(_)
            | Self::WrongAuthority { .. }
            | Self::MaxLen { .. }
            | Self::Overtaken { .. } => false,
        }
    }

    /// The transaction at fault, if it is one.
    pub fn signature(&self) -> Option<Signature> {
        match self {
            Self::Deploy(error) => error.signature(),
            _ => None,
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Deploy(error) => return error.hint(),
            Self::File(error) => error.hint(),
            Self::NoKeypair(_) => {
                "`--program-id FILE` names it; with `--bundled` it is `--program-keypair FILE`, and CONTRIBUTING.md says how to build \
                 with addresses of your own; `solana-keygen new -o FILE` makes one for a new program; nothing was spent"
            }
            Self::NotAProgram { .. } => "check `--program-id` and the cluster (`--url`); nothing was spent",
            Self::Closed(_) | Self::DataExists { .. } => {
                "deploy it under another address (`--program-id FILE`); nothing was spent"
            }
            Self::Immutable(_) => "deploy it under another address (`--program-id FILE`); nothing was spent",
            Self::WrongAuthority { .. } => {
                "use that authority's keypair (`--keypair`), or write a buffer for it with \
                 `--buffer-only --buffer-authority PUBKEY`; nothing was spent"
            }
            Self::MaxLen { .. } => "change `--max-len`; nothing was spent",
            Self::Overtaken { .. } => {
                "`committor verify FILE PROGRAM` compares; run the same command to deploy it again"
            }
        })
    }
}
