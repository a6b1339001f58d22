//! Talking to a cluster. The only module that names an RPC client.
//!
//! [`Chain`] is what the engine needs; [`RpcChain`] is the real thing, over JSON-RPC and websocket. It can be used on its
//! own: it needs no store and no engine.
//!
//! ```no_run
//! # async fn run(sign: impl Fn(solana_hash::Hash) -> solana_transaction::versioned::VersionedTransaction)
//! # -> Result<(), committor_client::chain::ChainError> {
//! use committor_client::chain::{Chain, Endpoint, RpcChain, RpcSettings, SignedTransaction};
//!
//! let chain = RpcChain::new(RpcSettings {
//!     fallbacks: vec![Endpoint::new("https://spare.example")],
//!     ..RpcSettings::new("http://localhost:8899")
//! });
//! let recent = chain.recent_blockhash().await?;
//! let transaction = sign(recent.blockhash);
//! let last_valid_block_height = recent.last_valid_block_height;
//! let landed = chain.land(SignedTransaction { transaction, last_valid_block_height, preflight: true }).await?;
//! println!("in slot {}; {:?}", landed.slot, chain.stats());
//! # Ok(()) }
//! ```
//!
//! - `endpoints` brings every request to one of the services, limited, tried again and counted; `exchange` is one request
//!   and its answer, `fault` says what can go wrong with it and what follows.
//! - `node` has the methods that are called, and keeps what may be kept for a moment.
//! - `confirm` lands a transaction. `pending` is what is on its way, `resend` sends it, by the node or by `tpu`, `poll` asks what became of it at a
//!   `pace`, `websocket` is told.

mod backoff;
mod confirm;
mod decode;
mod endpoints;
mod error;
mod exchange;
mod fault;
mod limiter;
mod node;
mod nonce;
mod pace;
mod pending;
mod poll;
mod resend;
mod rpc;
mod settings;
#[cfg(feature = "proxy")]
mod source;
mod stats;
#[cfg(feature = "tpu")]
mod tpu;
mod websocket;

use std::future::Future;

use solana_account::Account;
use solana_address::Address;
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

pub use error::{ChainError, TransactionFailure};
pub use fault::FaultKind;
pub use nonce::{Lifetime, stored_nonce};
pub use pace::STATUS_CALLS_PER_SECOND;
pub use rpc::RpcChain;
pub use settings::{Endpoint, RateLimit, RetrySettings, RpcSettings};
#[cfg(feature = "proxy")]
pub use source::NodeSource;
pub use stats::ChainStats;
#[cfg(feature = "tpu")]
pub use tpu::TpuSettings;

/// A blockhash to sign with, and how long it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentBlockhash {
    /// The blockhash.
    pub blockhash: Hash,
    /// The last block height at which a transaction signed with it can land.
    pub last_valid_block_height: u64,
}

/// A signed transaction on its way.
#[derive(Clone, Debug)]
pub struct SignedTransaction {
    /// The transaction. Its first signature is its name.
    pub transaction: VersionedTransaction,
    /// When its blockhash expires. Has no meaning for a transaction that uses a durable nonce: see [`Self::lifetime`].
    pub last_valid_block_height: u64,
    /// Whether the node should simulate it before it forwards it.
    pub preflight: bool,
}

impl SignedTransaction {
    /// The transaction's name.
    pub fn signature(&self) -> Signature {
        self.transaction.signatures.first().copied().unwrap_or_default()
    }

    /// How long it can land: by its block height, or, if its first instruction advances a nonce, as long as the nonce account
    /// holds that nonce.
    pub fn lifetime(&self) -> Lifetime {
        Lifetime::of(&self.transaction.message, self.last_valid_block_height)
    }
}

/// A transaction that is in a block, at the commitment asked for, without error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// A slot that has seen it: its block's, or a later one.
    pub slot: u64,
}

/// What a landed transaction cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCost {
    /// Compute units used.
    pub compute_units: u64,
    /// Fee paid, in lamports.
    pub fee_lamports: u64,
}

/// What a simulation found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// Compute units used, up to the failure if it failed.
    pub compute_units: u64,
    /// Bytes of accounts that it loaded, as the chain counts them; `None` if the node does not tell.
    pub loaded_data: Option<u32>,
    /// Why it would fail, if it would.
    pub outcome: Result<(), TransactionFailure>,
    /// Who tells that.
    pub answered_by: AnsweredBy,
}

/// Who answered a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    /// This process, from accounts of one slot: see the module `proxy`.
    Proxy {
        /// The slot.
        slot: u64,
    },
    /// The node.
    Node {
        /// Why not this process; `None` where it is not asked.
        because: Option<String>,
    },
}

/// Rent on a cluster: linear in an account's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rent {
    /// Rent-exempt minimum of an account without data, in lamports.
    pub empty_account_lamports: u64,
    /// What each byte adds, in lamports.
    pub lamports_per_byte: u64,
}

/// An account without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountHeader {
    /// The owner.
    pub owner: Address,
    /// The balance, in lamports.
    pub lamports: u64,
    /// Length of the data in bytes.
    pub len: u64,
}

/// An account that belongs to a program.
#[derive(Clone, Debug)]
pub struct ProgramAccount {
    /// Its address.
    pub address: Address,
    /// Length of its data in bytes, all of it.
    pub len: u64,
    /// The account, with as much of its data as was asked for.
    pub account: Account,
}

/// What the engine needs of a cluster.
///
/// All reads see at least what any transaction changed that this value reported as landed, or that [`Self::saw`] told it of.
pub trait Chain: Send + Sync + 'static {
    /// From here on, reads see at least this slot: something landed in it, as whoever calls knows from an earlier life of the
    /// process.
    fn saw(&self, slot: u64);

    /// A blockhash to sign with.
    fn recent_blockhash(&self) -> impl Future<Output = Result<RecentBlockhash, ChainError>> + Send;

    /// The block height at the commitment asked for: what was to land at a lower one has landed or never will.
    fn block_height(&self) -> impl Future<Output = Result<u64, ChainError>> + Send;

    /// Accounts in the order asked; `None` for one that does not exist.
    fn accounts(
        &self,
        addresses: &[Address],
    ) -> impl Future<Output = Result<Vec<Option<Account>>, ChainError>> + Send;

    /// As [`Self::accounts`], without the data.
    fn headers(
        &self,
        addresses: &[Address],
    ) -> impl Future<Output = Result<Vec<Option<AccountHeader>>, ChainError>> + Send;

    /// All address lookup tables of an authority, with their accounts.
    fn tables_of(
        &self,
        authority: &Address,
    ) -> impl Future<Output = Result<Vec<(Address, Account)>, ChainError>> + Send;

    /// What accounts must hold.
    fn rent(&self) -> impl Future<Output = Result<Rent, ChainError>> + Send;

    /// Whether the cluster takes transactions of the v1 format.
    fn supports_v1(&self) -> impl Future<Output = Result<bool, ChainError>> + Send;

    /// The hash of the cluster's genesis: what tells one cluster from another.
    fn genesis_hash(&self) -> impl Future<Output = Result<Hash, ChainError>> + Send;

    /// The slot at the commitment asked for.
    fn slot(&self) -> impl Future<Output = Result<u64, ChainError>> + Send;

    /// A slot that can't be undone any more, with all before it: leaders take what lookup tables hold from there.
    fn finalized_slot(&self) -> impl Future<Output = Result<u64, ChainError>> + Send;

    /// The priority fees that transactions which wrote to these accounts paid lately, one per slot, in micro-lamports per
    /// compute unit. Empty if the node knows none.
    fn priority_fees(
        &self,
        writable: &[Address],
    ) -> impl Future<Output = Result<Vec<u64>, ChainError>> + Send;

    /// Runs a transaction on the node without sending it on. Its signatures and its blockhash are not looked at.
    fn simulate(
        &self,
        transaction: &VersionedTransaction,
    ) -> impl Future<Output = Result<Simulation, ChainError>> + Send;

    /// Runs transactions one after the other, each on what those before it did, without sending them. Ends with the first that
    /// would fail. `None` if that can't be done: a node runs each transaction alone.
    fn rehearse(
        &self,
        transactions: &[VersionedTransaction],
    ) -> impl Future<Output = Option<Vec<Simulation>>> + Send {
        let _ = transactions;
        async { None }
    }

    /// Sends a transaction until it lands, fails or expires.
    ///
    /// # Errors
    /// [`ChainError::Failed`] and [`ChainError::Refused`] if it failed, [`ChainError::Expired`] if it can't land any more.
    /// [`ChainError::GaveUp`] if the node failed for too long to tell.
    fn land(&self, transaction: SignedTransaction)
    -> impl Future<Output = Result<Landed, ChainError>> + Send;

    /// What became of a transaction that may have landed in an earlier life of this process; `None` if the chain does not
    /// know it.
    fn find(
        &self,
        signature: Signature,
    ) -> impl Future<Output = Result<Option<Result<Landed, TransactionFailure>>, ChainError>> + Send;

    /// What a landed transaction cost; `None` if the node does not keep it.
    fn cost(
        &self,
        signature: Signature,
    ) -> impl Future<Output = Result<Option<TransactionCost>, ChainError>> + Send;
}
