//! Brings account state that an off-chain engine changed back to Solana: several accounts at once or not at all, in order,
//! and with nothing lost.
//!
//! - [`Committor`] is the engine; start with [`Committor::builder`].
//!   `examples/engine` in the repository is a whole program that uses it.
//! - [`Changeset`] is what it takes, [`ChangesetReport`] what it gives back.
//! - Every error says whether it may pass (`is_transient`) and what can be done (`hint`).
//! - [`plan`] decides how a bundle reaches the chain, [`chain`] talks to a cluster, [`store`] is what is durable. They do
//!   not know each other; [`engine`] knows them all.
#![warn(missing_docs)]

pub mod chain;
pub mod config;
pub mod crypto;
pub mod deploy;
pub mod engine;
pub mod plan;
#[cfg(feature = "proxy")]
pub mod proxy;
pub mod store;
pub mod types;

pub use engine::{
    Builder, Committor, EngineError, EngineSettings, Event, Preview, SharedSigner, Signers, Ticket,
    Verification,
};
pub use store::{ChangesetReport, Store};
pub use types::{AccountCommit, BundleId, Changeset, ChangesetId, CommitBundle, CommitMode, Lamports};

/// The programs in the guides are compiled too.
#[cfg(doctest)]
#[doc = include_str!("../../docs/engine.md")]
pub struct EngineGuide;
