use std::{fmt, io, path::PathBuf, time::Duration};

use solana_address::Address;
use surfpool_core::{error::SurfpoolError, litesvm::error::LiteSVMError};

/// One of the two servers of a localnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// JSON-RPC over HTTP.
    Rpc,
    /// Subscriptions over websocket.
    WebSocket,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rpc => "RPC",
            Self::WebSocket => "websocket",
        })
    }
}

/// Why a localnet could not start, do as asked, or stop.
#[derive(Debug, thiserror::Error)]
pub enum LocalnetError {
    /// Another socket listens on the port that was asked for.
    #[error("{server} port {port} is already in use")]
    PortInUse {
        /// The server that was to listen there.
        server: Server,
        /// The port.
        port: u16,
        /// What the operating system said.
        source: io::Error,
    },
    /// The port that was asked for cannot be bound for another reason, such as missing privileges.
    #[error("could not bind {server} port {port}")]
    BindPort {
        /// The server that was to listen there.
        server: Server,
        /// The port.
        port: u16,
        /// What the operating system said.
        source: io::Error,
    },
    /// The operating system has no free port.
    #[error("could not find a free {server} port")]
    FindPort {
        /// The server that was to listen there.
        server: Server,
        /// What the operating system said.
        source: io::Error,
    },
    /// Both servers were to listen on one port.
    #[error("port {port} cannot serve both RPC and websocket")]
    SamePort {
        /// The port.
        port: u16,
    },
    /// The virtual machine could not be set up.
    #[error("could not create the virtual machine")]
    CreateVm(#[source] SurfpoolError),
    /// The bytes given for a program are not a program that the virtual machine accepts.
    #[error("could not load program {program}")]
    LoadProgram {
        /// The address it was to have.
        program: Address,
        /// Why it was refused.
        source: LiteSVMError,
    },
    /// A balance could not be credited.
    #[error("could not credit {address}")]
    Airdrop {
        /// The account.
        address: Address,
        /// Why not.
        source: SurfpoolError,
    },
    /// An account could not be set.
    #[error("could not set account {address}")]
    SetAccount {
        /// The account.
        address: Address,
        /// Why not.
        source: SurfpoolError,
    },
    /// The account would hold more lamports than a balance can express.
    #[error("balance of {address} would overflow")]
    BalanceOverflow {
        /// The account.
        address: Address,
    },
    /// A thread of the localnet could not be started.
    #[error("could not start a thread")]
    Thread(#[source] io::Error),
    /// The block producer gave up. Surfpool reports a text and nothing else, so there is no source to keep.
    #[error("block producer ended: {reason}")]
    Ended {
        /// Its last words.
        reason: String,
    },
    /// Agave's validator could not be started.
    #[error("could not run {}", .program.display())]
    Process {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The localnet did not become ready, or did not free its ports, in time.
    #[error("localnet did not {what} within {limit:?}")]
    TimedOut {
        /// What it was to do.
        what: &'static str,
        /// How long it had.
        limit: Duration,
    },
}
