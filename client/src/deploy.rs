//! Large data on chain: files in chunk buffers and programs, in many transactions that can be interrupted at any time.
//!
//! Where something goes follows from who sends it and what it is. So the same call after an interruption finds what is there,
//! and sends only what is missing, which is told by the bytes themselves. What it takes is known before anything is spent.
//!
//! ```no_run
//! # async fn run(chain: std::sync::Arc<committor_client::chain::RpcChain>, signers: committor_client::Signers)
//! # -> Result<(), committor_client::deploy::DeployError> {
//! use committor_client::deploy::{Deployer, DeploySettings, Watch};
//!
//! let deployer = Deployer::new(chain, signers, DeploySettings::default());
//! let file: std::sync::Arc<[u8]> = vec![1; 100_000].into();
//! println!("needs {} lamports", deployer.quote_upload(&file).await?.needed);
//! let uploaded = deployer.upload(&file, &Watch::default()).await?;
//! println!("{} holds the file", uploaded.buffer);
//! # Ok(()) }
//! ```
//!
//! - `file` brings a file into a sealed buffer; `buffers` finds buffers, and closes them or hands them on.
//! - `program` deploys and upgrades programs through the upgradeable loader (feature `programs`); `elf` checks them before,
//!   as the cluster would; `loader` reads the loader's accounts.
//! - `quote` is what it takes, and whether the payer has that.
//! - `batch` lands transactions: signed when they are about to be sent, and again if they expire.

mod batch;
mod buffers;
#[cfg(feature = "programs")]
mod elf;
mod error;
mod file;
mod loader;
#[cfg(feature = "programs")]
mod program;
mod quote;

use std::sync::Arc;

use solana_signer::Signer;
use tokio_util::sync::CancellationToken;

pub use buffers::{BufferReport, Buffers, Closed, ContentKind, Download, LoaderBufferReport};
pub use error::DeployError;
pub use file::Uploaded;
pub use quote::Quote;
#[cfg(feature = "programs")]
pub use {
    elf::ProgramFileError,
    program::{DeployedProgram, ProgramAction, ProgramDeploy, ProgramDeployError, ProgramQuote},
};

use crate::{
    Signers,
    chain::{Chain, RpcChain},
    plan::{PlanContext, Prices, RentSchedule, StagePrice},
    types::{Lamports, PriorityFee, TransactionVersion},
};

/// How files and programs are sent.
#[derive(Clone, Copy, Debug)]
pub struct DeploySettings {
    /// Transactions that are on their way at a time.
    pub transactions_in_flight: usize,
    /// What transactions pay for their place in a block.
    pub priority_fee: PriorityFee,
    /// The transaction format; by default v1 where the cluster has it.
    pub version: Option<TransactionVersion>,
    /// How often it is planned anew after something on chain was not as expected: another process does the same.
    pub attempts: u32,
}

impl Default for DeploySettings {
    fn default() -> Self {
        Self { transactions_in_flight: 128, priority_fee: PriorityFee::default(), version: None, attempts: 5 }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It was found out what is to be done.
    Planned {
        /// Transactions.
        transactions: u64,
        /// Bytes that they carry.
        bytes: u64,
        /// Bytes that are there already, or zeroes, and so are not sent.
        skipped: u64,
    },
    /// Transactions were signed and sent for the first time.
    Sent {
        /// How many.
        transactions: u64,
    },
    /// A transaction landed.
    Landed {
        /// Bytes that it carried.
        bytes: u64,
    },
    /// A transaction expired, and is signed again.
    Expired,
    /// What was on chain was not as expected: it is looked at again.
    Again {
        /// Why.
        reason: String,
    },
}

/// Who is told what happens, and who can stop it.
#[derive(Clone, Default)]
pub struct Watch {
    /// Called for everything that happens.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// When cancelled, nothing more is sent, and what is on its way is waited for.
    pub stop: CancellationToken,
}

impl Watch {
    fn tell(&self, progress: Progress) {
        if let Some(told) = &self.progress {
            told(progress);
        }
    }
}

/// Brings files and programs on chain.
pub struct Deployer {
    chain: Arc<RpcChain>,
    signers: Signers,
    settings: DeploySettings,
}

impl Deployer {
    /// A deployer that sends through `chain`. The authority of `signers` is that of all buffers and programs.
    pub const fn new(chain: Arc<RpcChain>, signers: Signers, settings: DeploySettings) -> Self {
        Self { chain, signers, settings }
    }

    /// What planning must know of the cluster, with the prices for transactions that write to `writable`.
    async fn context(&self, writable: &[solana_address::Address]) -> Result<PlanContext, DeployError> {
        let rent = self.chain.rent().await?;
        let version = match self.settings.version {
            Some(version) => version,
            None if self.chain.supports_v1().await? => TransactionVersion::V1,
            None => TransactionVersion::V0,
        };
        let mut recent = match self.settings.priority_fee {
            PriorityFee::Percentile { .. } => self.chain.priority_fees(writable).await?,
            PriorityFee::Fixed(_) => Vec::new(),
        };
        let price = StagePrice {
            micro_lamports_per_unit: self.settings.priority_fee.price(&mut recent),
            fixed_limit: None,
        };
        Ok(PlanContext {
            payer: self.signers.payer.pubkey(),
            authority: self.signers.authority.pubkey(),
            version,
            rent: RentSchedule {
                empty_account: Lamports(rent.empty_account_lamports),
                per_byte: Lamports(rent.lamports_per_byte),
            },
            prices: Prices::new(|_| price),
            tables: Vec::new(),
        })
    }
}
