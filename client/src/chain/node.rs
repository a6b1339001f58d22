//! The RPC methods that the chain layer calls, with what it keeps of their answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use solana_account_decoder_client_types::{UiAccount, UiAccountEncoding, UiDataSliceConfig};
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;
use solana_rpc_client::{nonblocking::rpc_client::RpcClient, rpc_client::RpcClientConfig};
use solana_rpc_client_api::{
    config::{RpcAccountInfoConfig, RpcContextConfig, RpcTransactionConfig},
    response::{Response, RpcBlockhash},
};
use solana_signature::Signature;
use solana_transaction_status_client_types::{
    EncodedConfirmedTransactionWithStatusMeta, TransactionStatus, UiTransactionEncoding,
};
use tokio::{sync::Mutex, time::Instant};

use super::{
    ChainError, RecentBlockhash, RpcSettings,
    endpoints::{Endpoints, Needs, Sender},
};

/// Addresses that one `getMultipleAccounts` takes.
const MAX_ACCOUNTS_PER_CALL: usize = 100;
/// Signatures that one `getSignatureStatuses` takes.
pub(super) const MAX_STATUSES_PER_CALL: usize = 256;
/// How long a node has to tell statuses that it keeps in memory.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Calls that one question for many accounts makes at a time.
const CHUNKS_IN_FLIGHT: usize = 4;

/// Where the chain is, at the commitment asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) slot: u64,
    /// Of the block of that slot, or less.
    pub(super) block_height: u64,
}

/// A value and when it was asked for: it is at least as new.
struct Kept<T>(Mutex<Option<(Instant, T)>>);

impl<T: Copy> Kept<T> {
    /// The value if it is young enough and good enough, else a new one. Those who ask meanwhile wait for the same.
    async fn get(
        &self,
        max_age: Duration,
        good: impl Fn(&T) -> bool,
        ask: impl Future<Output = Result<T, ChainError>>,
    ) -> Result<T, ChainError> {
        let mut kept = self.0.lock().await;
        if let Some((asked_at, value)) = &*kept
            && asked_at.elapsed() <= max_age
            && good(value)
        {
            return Ok(*value);
        }
        let asked_at = Instant::now();
        let value = ask.await?;
        *kept = Some((asked_at, value));
        Ok(value)
    }
}

/// The part of `getEpochInfo` that is needed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EpochInfo {
    absolute_slot: u64,
    block_height: u64,
}

/// A cluster, by its RPC methods.
pub(super) struct Node {
    pub(super) endpoints: Arc<Endpoints>,
    pub(super) commitment: CommitmentConfig,
    request_timeout: Duration,
    /// The highest slot that any answer has seen: what reads must have seen, so that they never go back in time.
    seen: AtomicU64,
    blockhash: Kept<RecentBlockhash>,
    blockhash_max_age: Duration,
    position: Kept<Position>,
    position_max_age: Duration,
}

impl Node {
    pub(super) fn new(settings: &RpcSettings) -> Self {
        Self {
            endpoints: Arc::new(Endpoints::new(settings)),
            commitment: settings.commitment,
            request_timeout: settings.request_timeout,
            seen: AtomicU64::new(0),
            blockhash: Kept(Mutex::new(None)),
            blockhash_max_age: settings.blockhash_max_age,
            position: Kept(Mutex::new(None)),
            position_max_age: settings.position_max_age,
        }
    }

    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
        needs: Needs,
    ) -> Result<T, ChainError> {
        self.endpoints.request(method, params, needs).await.map_err(ChainError::rpc(method))
    }

    /// A client for whatever else is to be asked, with the same endpoints, limits and retries, and counted with the rest.
    pub(super) fn client(&self) -> RpcClient {
        let config = RpcClientConfig::with_commitment(self.commitment);
        RpcClient::new_sender(Sender(self.endpoints.clone()), config)
    }

    /// A call whose answer tells the slot that it is of.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, ChainError> {
        let Response { context, value } = self.call(method, params, Needs::default()).await?;
        self.saw(context.slot);
        Ok(value)
    }

    /// The slot that reads must have seen.
    pub(super) fn seen(&self) -> Option<u64> {
        Some(self.seen.load(Ordering::Acquire)).filter(|slot| *slot > 0)
    }

    /// From here on, reads must have seen this slot.
    pub(super) fn saw(&self, slot: u64) {
        self.seen.fetch_max(slot, Ordering::AcqRel);
    }

    pub(super) fn context(&self) -> RpcContextConfig {
        RpcContextConfig { commitment: Some(self.commitment), min_context_slot: self.seen() }
    }

    /// Which cluster this is.
    pub(super) async fn genesis_hash(&self) -> Result<Hash, ChainError> {
        const METHOD: &str = "getGenesisHash";
        let found: String = self.call(METHOD, json!([]), Needs::default()).await?;
        found.parse().map_err(|_| ChainError::Nonsense {
            method: METHOD,
            found,
            expected: "a hash in base58",
        })
    }

    /// A blockhash that is no older than the settings allow.
    pub(super) async fn recent_blockhash(&self) -> Result<RecentBlockhash, ChainError> {
        let ask = async {
            let found: RpcBlockhash = self.read("getLatestBlockhash", json!([self.context()])).await?;
            let blockhash: Result<Hash, _> = found.blockhash.parse();
            let blockhash = blockhash.map_err(|_| ChainError::Nonsense {
                method: "getLatestBlockhash",
                found: found.blockhash,
                expected: "a hash in base58",
            })?;
            Ok(RecentBlockhash { blockhash, last_valid_block_height: found.last_valid_block_height })
        };
        self.blockhash.get(self.blockhash_max_age, |_| true, ask).await
    }

    /// Sees to it that a blockhash which was refused is not handed out again.
    pub(super) async fn forget_blockhash(&self, refused: &Hash) {
        let mut kept = self.blockhash.0.lock().await;
        if kept.as_ref().is_some_and(|(_, kept)| kept.blockhash == *refused) {
            *kept = None;
        }
    }

    /// Where the chain is, or was a moment ago, but not before what has been seen.
    pub(super) async fn position(&self) -> Result<Position, ChainError> {
        let seen = self.seen().unwrap_or_default();
        let ask = async {
            let slot: u64 = self.call("getSlot", json!([self.context()]), Needs::default()).await?;
            self.saw(slot);
            let info: EpochInfo =
                self.call("getEpochInfo", json!([self.context()]), Needs::default()).await?;
            // Some nodes tell where they are at `processed`, whatever is asked. A block is at most one higher than the one
            // before it, so at `slot` the height was this or more.
            let ahead = info.absolute_slot.saturating_sub(slot);
            Ok(Position {
                slot: slot.min(info.absolute_slot),
                block_height: info.block_height.saturating_sub(ahead),
            })
        };
        self.position.get(self.position_max_age, |position| position.slot >= seen, ask).await
    }

    /// Accounts in the order asked; with `data` or only with their length.
    pub(super) async fn accounts(
        &self,
        addresses: &[Address],
        data: bool,
    ) -> Result<Vec<Option<UiAccount>>, ChainError> {
        let chunks: Vec<Vec<Address>> =
            addresses.chunks(MAX_ACCOUNTS_PER_CALL).map(<[Address]>::to_vec).collect();
        let len = (!data).then_some(0);
        let ask = |chunk: Vec<Address>| async move { Ok(self.batch(&chunk, len).await?.value) };
        let found = stream::iter(chunks).map(ask).buffered(CHUNKS_IN_FLIGHT);
        let found: Vec<Vec<Option<UiAccount>>> = found.try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Accounts of one slot, in the order asked, no more than one call takes; of their data, the first `len` bytes or all.
    pub(super) async fn batch(
        &self,
        addresses: &[Address],
        len: Option<usize>,
    ) -> Result<Response<Vec<Option<UiAccount>>>, ChainError> {
        const METHOD: &str = "getMultipleAccounts";
        let config = RpcAccountInfoConfig {
            encoding: Some(len.map_or(UiAccountEncoding::Base64Zstd, |_| UiAccountEncoding::Base64)),
            data_slice: len.map(|length| UiDataSliceConfig { offset: 0, length }),
            commitment: Some(self.commitment),
            min_context_slot: self.seen(),
        };
        let names: Vec<String> = addresses.iter().map(Address::to_string).collect();
        let found: Response<Vec<Option<UiAccount>>> =
            self.call(METHOD, json!([names, config]), Needs::default()).await?;
        self.saw(found.context.slot);
        if found.value.len() != addresses.len() {
            let (found, expected) = (format!("{} accounts", found.value.len()), "one per address");
            return Err(ChainError::Nonsense { method: METHOD, found, expected });
        }
        Ok(found)
    }

    /// Statuses in the order asked, by a node that has seen `floor`; `history` looks beyond the node's cache of the latest
    /// ones.
    pub(super) async fn statuses(
        &self,
        signatures: &[Signature],
        history: bool,
        floor: Option<u64>,
    ) -> Result<Vec<Option<TransactionStatus>>, ChainError> {
        const METHOD: &str = "getSignatureStatuses";
        let mut statuses = Vec::with_capacity(signatures.len());
        for chunk in signatures.chunks(MAX_STATUSES_PER_CALL) {
            let names: Vec<String> = chunk.iter().map(Signature::to_string).collect();
            let params = json!([names, { "searchTransactionHistory": history }]);
            // Everybody waits for this answer; the history may take its time.
            let timeout = (!history).then(|| self.request_timeout.min(STATUS_TIMEOUT));
            let needs = Needs { floor, timeout, ..Needs::default() };
            // The slot of this answer is at `processed`, so it is no measure for reads.
            let found: Response<Vec<Option<TransactionStatus>>> = self.call(METHOD, params, needs).await?;
            if found.value.len() != chunk.len() {
                let (found, expected) = (format!("{} statuses", found.value.len()), "one per signature");
                return Err(ChainError::Nonsense { method: METHOD, found, expected });
            }
            statuses.extend(found.value);
        }
        Ok(statuses)
    }

    /// A transaction in a block; `None` if the node does not have it.
    pub(super) async fn transaction(
        &self,
        signature: Signature,
    ) -> Result<Option<EncodedConfirmedTransactionWithStatusMeta>, ChainError> {
        // It takes no `processed`: a block is not whole before it is confirmed.
        let commitment =
            if self.commitment.is_finalized() { self.commitment } else { CommitmentConfig::confirmed() };
        let config = RpcTransactionConfig {
            encoding: Some(UiTransactionEncoding::Base64),
            commitment: Some(commitment),
            max_supported_transaction_version: Some(1),
        };
        self.call("getTransaction", json!([signature.to_string(), config]), Needs::default()).await
    }
}
