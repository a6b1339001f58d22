//! Many signatures, made and checked in order on threads of their own.
//!
//! [`CryptoPool::sign_stream`] and [`CryptoPool::verify_stream`] turn a batch of transactions into a stream of outcomes with
//! their indices, in the order of the batch: as many as went in, the first of them at once. What is computed ahead is
//! bounded; dropping the stream ends it. Every signature is checked for itself and strictly, as validators do: checking a
//! batch by one equation accepts some that they refuse.
//!
//! ```
//! # use std::sync::{Arc, OnceLock};
//! use committor_client::crypto::{CryptoPool, CryptoSettings, Unsigned};
//! use futures::StreamExt;
//! # use solana_keypair::Keypair;
//! # use solana_message::{VersionedMessage, v0};
//! # use solana_signer::Signer;
//!
//! # let payer = Arc::new(Keypair::new());
//! # let message = |_| VersionedMessage::V0(v0::Message::try_compile(&payer.pubkey(), &[], &[], Default::default()).unwrap());
//! let pool = CryptoPool::new(CryptoSettings::default())?;
//! let unsigned = (0..100).map(|n| Unsigned { message: message(n), keypairs: vec![payer.clone()] }).collect();
//! # futures::executor::block_on(async {
//! let mut signed = Vec::new();
//! let mut stream = pool.sign_stream(unsigned);
//! while let Some((index, transaction)) = stream.next().await {
//!     assert_eq!(index, signed.len());
//!     signed.push(transaction?);
//! }
//! let mut checked = pool.verify_stream(signed);
//! while let Some((index, outcome)) = checked.next().await {
//!     outcome.unwrap_or_else(|error| panic!("transaction {index}: {error}"));
//! }
//! # Ok::<(), committor_client::crypto::CryptoError>(())
//! # })?;
//! # Ok::<(), committor_client::crypto::CryptoError>(())
//! ```

mod ordered;

use std::sync::{Arc, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use solana_address::Address;
use solana_message::VersionedMessage;
use solana_signer::{Signer, SignerError};
use solana_transaction::versioned::VersionedTransaction;
use thiserror::Error;

pub use ordered::OrderedStream;

use crate::engine::SharedSigner;

/// How batches are cut up.
#[derive(Clone, Copy, Debug)]
pub struct CryptoSettings {
    /// Threads; 0 for as many as there are cores.
    pub threads: usize,
    /// Items that are computed by the caller before any thread is asked. A batch of no more needs no thread.
    pub head: usize,
    /// Items of the first chunk that a thread computes. Each chunk is twice as long as the one before.
    pub first_chunk: usize,
    /// The most items of a chunk.
    pub max_chunk: usize,
}

impl Default for CryptoSettings {
    /// As `docs/performance.md` says, with the measurements.
    fn default() -> Self {
        Self { threads: 0, head: 4, first_chunk: 8, max_chunk: 128 }
    }
}

/// Why a signature could not be made, or is none.
#[derive(Debug, Error)]
pub enum CryptoError {
    /// The threads could not be started.
    #[error("could not start threads for signatures")]
    Threads(#[from] ThreadPoolBuildError),
    /// A transaction can't be signed.
    #[error("could not sign a transaction")]
    Sign(#[from] SignerError),
    /// A key that has to sign is not among those given.
    #[error("{0} has to sign, and its keypair was not given")]
    MissingSigner(Address),
    /// A transaction has more or fewer signatures than its message asks for.
    #[error("{found} signatures, the message asks for {expected}")]
    SignatureCount {
        /// What it has.
        found: usize,
        /// What it is to have.
        expected: usize,
    },
    /// A signature is not the signer's for this message.
    #[error("signature {position} is not that of {signer}")]
    Invalid {
        /// Which signature, from 0.
        position: usize,
        /// Whose it should be.
        signer: Address,
    },
    /// Computing it panicked. The other items of the batch are not affected.
    #[error("computing a signature panicked")]
    Panicked,
}

impl CryptoError {
    /// Whether trying again can help.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Threads(_) => true,
            Self::Sign(_)
            | Self::MissingSigner(_)
            | Self::SignatureCount { .. }
            | Self::Invalid { .. }
            | Self::Panicked => false,
        }
    }
}

/// A message that is to be signed.
#[derive(Clone)]
pub struct Unsigned {
    /// The message.
    pub message: VersionedMessage,
    /// At least the keypairs that it asks for, in any order.
    pub keypairs: Vec<SharedSigner>,
}

impl Unsigned {
    /// Signs it, here and now.
    ///
    /// # Errors
    /// [`CryptoError::MissingSigner`] names a keypair that is missing.
    pub fn sign(self) -> Result<VersionedTransaction, CryptoError> {
        let count = usize::from(self.message.header().num_required_signatures);
        let find = |key: &Address| {
            let keypair = self.keypairs.iter().find(|keypair| keypair.pubkey() == *key);
            keypair.ok_or(CryptoError::MissingSigner(*key))
        };
        let signers = self.message.static_account_keys().iter().take(count);
        let keypairs: Vec<&SharedSigner> = signers.map(find).collect::<Result<_, _>>()?;
        Ok(VersionedTransaction::try_new(self.message, &keypairs)?)
    }
}

/// Checks all signatures of a transaction, here and now, each for itself and strictly.
///
/// # Errors
/// [`CryptoError::SignatureCount`], or [`CryptoError::Invalid`] with the first signature that is not the signer's.
pub fn verify(transaction: &VersionedTransaction) -> Result<(), CryptoError> {
    let expected = usize::from(transaction.message.header().num_required_signatures);
    let found = transaction.signatures.len();
    let keys = transaction.message.static_account_keys();
    if found != expected || keys.len() < expected {
        return Err(CryptoError::SignatureCount { found, expected });
    }
    match transaction.verify_with_results().iter().position(|valid| !valid) {
        None => Ok(()),
        Some(position) => {
            Err(CryptoError::Invalid { position, signer: keys.get(position).copied().unwrap_or_default() })
        }
    }
}

/// Threads that make and check signatures.
#[derive(Clone, Debug)]
pub struct CryptoPool {
    threads: Arc<ThreadPool>,
    settings: CryptoSettings,
}

impl CryptoPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`CryptoError::Threads`] if the system has none to give.
    pub fn new(settings: CryptoSettings) -> Result<Self, CryptoError> {
        let name = |index| format!("crypto-{index}");
        let threads = ThreadPoolBuilder::new().num_threads(settings.threads).thread_name(name).build()?;
        Ok(Self { threads: Arc::new(threads), settings })
    }

    /// The pool with default settings that all of this process share.
    ///
    /// # Errors
    /// [`CryptoError::Threads`] if the system has none to give.
    pub fn shared() -> Result<Self, CryptoError> {
        static SHARED: OnceLock<CryptoPool> = OnceLock::new();
        if let Some(pool) = SHARED.get() {
            return Ok(pool.clone());
        }
        // Of two that are made at once, one is dropped.
        let pool = Self::new(CryptoSettings::default())?;
        Ok(SHARED.get_or_init(|| pool).clone())
    }

    /// Signs a batch.
    pub fn sign_stream(
        &self,
        batch: Vec<Unsigned>,
    ) -> OrderedStream<Unsigned, Result<VersionedTransaction, CryptoError>> {
        self.ordered(batch, |unsigned| unsigned.sign())
    }

    /// Checks the signatures of a batch.
    pub fn verify_stream(
        &self,
        batch: Vec<VersionedTransaction>,
    ) -> OrderedStream<VersionedTransaction, Result<(), CryptoError>> {
        self.ordered(batch, |transaction| verify(&transaction))
    }

    fn ordered<I: Send + 'static, T: Send + 'static>(
        &self,
        batch: Vec<I>,
        compute: impl Fn(I) -> Result<T, CryptoError> + Send + Sync + 'static,
    ) -> OrderedStream<I, Result<T, CryptoError>> {
        OrderedStream::new(self.threads.clone(), self.settings, batch, compute, || Err(CryptoError::Panicked))
    }
}
