//! A cluster over JSON-RPC.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use solana_account::Account;
use solana_account_decoder_client_types::{UiAccount, UiAccountEncoding, UiDataSliceConfig};
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::{
    config::{
        RpcAccountInfoConfig, RpcProgramAccountsConfig, RpcSimulateTransactionConfig, RpcTransactionConfig,
    },
    filter::{Memcmp, RpcFilterType},
};
use solana_sdk_ids::address_lookup_table;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_status_client_types::{UiTransactionEncoding, option_serializer::OptionSerializer};
use tokio::sync::OnceCell;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    AccountHeader, Chain, ChainError, Landed, RecentBlockhash, Rent, SignedTransaction, Simulation,
    TransactionCost, TransactionFailure, confirm::Confirmer, decode,
};

/// Addresses that one `getMultipleAccounts` takes.
const MAX_ACCOUNTS_PER_CALL: usize = 100;
/// Addresses that one `getRecentPrioritizationFees` takes.
const MAX_FEE_ACCOUNTS: usize = 128;
/// The feature gate of v1 transactions.
const V1_FEATURE: Address = Address::from_str_const("txv1aq4pp281K9um3tnPgkfX8UqtFT6wcVW3hNezGLL");
/// Owner of feature-gate accounts.
const FEATURE_PROGRAM: Address = Address::from_str_const("Feature111111111111111111111111111111111111");

/// Where a lookup table names its authority: after its kind (4 bytes), its deactivation slot and the slot of its last
/// extension (8 each), where that began (1), and that there is an authority (1).
const TABLE_AUTHORITY_OFFSET: usize = 22;

/// How to talk to a cluster.
#[derive(Clone, Debug)]
pub struct RpcSettings {
    /// URL of the JSON-RPC service.
    pub url: String,
    /// URL of the websocket service; `None` to poll only.
    pub websocket_url: Option<String>,
    /// When a transaction counts as landed, and what reads see.
    pub commitment: CommitmentConfig,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How often a status is asked for that the websocket did not tell in time.
    pub poll_interval: Duration,
    /// How often an unconfirmed transaction is sent again.
    pub resend_interval: Duration,
    /// How long a node may go on failing before what waits for it is told.
    pub patience: Duration,
}

impl RpcSettings {
    /// Settings for the service at `url`: `confirmed`, and intervals that suit slots of 200 to 400 ms.
    pub fn new(url: impl Into<String>) -> Self {
        let url = url.into();
        let websocket_url = websocket_url(&url);
        Self {
            url,
            websocket_url,
            commitment: CommitmentConfig::confirmed(),
            request_timeout: Duration::from_secs(30),
            poll_interval: Duration::from_millis(400),
            resend_interval: Duration::from_secs(2),
            patience: Duration::from_secs(60),
        }
    }
}

/// A cluster over JSON-RPC. Dropping it ends its background tasks.
pub struct RpcChain {
    client: Arc<RpcClient>,
    confirmer: Confirmer,
    /// The highest slot in which something landed: what reads must have seen.
    landed_slot: Arc<AtomicU64>,
    v1: OnceCell<bool>,
    tasks: TaskTracker,
    cancelled: CancellationToken,
}

impl RpcChain {
    /// Prepares to talk to the service; sends nothing yet.
    ///
    /// Must be called within a tokio runtime.
    pub fn new(settings: RpcSettings) -> Self {
        let client = Arc::new(RpcClient::new_with_timeout_and_commitment(
            settings.url.clone(),
            settings.request_timeout,
            settings.commitment,
        ));
        let landed_slot = Arc::new(AtomicU64::new(0));
        let (tasks, cancelled) = (TaskTracker::new(), CancellationToken::new());
        let (confirmer, poller) =
            Confirmer::new(client.clone(), &settings, landed_slot.clone(), tasks.clone());
        let stop = cancelled.clone();
        tasks.spawn(async move { stop.run_until_cancelled(poller).await });
        Self { client, confirmer, landed_slot, v1: OnceCell::new(), tasks, cancelled }
    }

    /// Ends the background tasks and waits until they have ended. Whoever waits for a transaction gets
    /// [`ChainError::Stopped`].
    pub async fn shutdown(&self) {
        self.cancelled.cancel();
        self.confirmer.stop();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Accounts in the order asked; with `data` or only with their length.
    async fn ui_accounts(
        &self,
        addresses: &[Address],
        data: bool,
    ) -> Result<Vec<Option<UiAccount>>, ChainError> {
        let min_context_slot = Some(self.landed_slot.load(Ordering::Acquire)).filter(|slot| *slot > 0);
        let config = RpcAccountInfoConfig {
            encoding: Some(if data { UiAccountEncoding::Base64Zstd } else { UiAccountEncoding::Base64 }),
            data_slice: (!data).then_some(UiDataSliceConfig { offset: 0, length: 0 }),
            commitment: Some(self.client.commitment()),
            min_context_slot,
        };
        let mut accounts = Vec::with_capacity(addresses.len());
        for chunk in addresses.chunks(MAX_ACCOUNTS_PER_CALL) {
            let found = self.client.get_multiple_ui_accounts_with_config(chunk, config.clone()).await;
            let found = found.map_err(rpc("getMultipleAccounts"))?.value;
            if found.len() != chunk.len() {
                return Err(nonsense(format!("{} accounts", found.len()), "one per address"));
            }
            accounts.extend(found);
        }
        Ok(accounts)
    }
}

impl Drop for RpcChain {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

impl Chain for RpcChain {
    async fn recent_blockhash(&self) -> Result<RecentBlockhash, ChainError> {
        let commitment = self.client.commitment();
        let found = self.client.get_latest_blockhash_with_commitment(commitment).await;
        let (blockhash, last_valid_block_height) = found.map_err(rpc("getLatestBlockhash"))?;
        Ok(RecentBlockhash { blockhash, last_valid_block_height })
    }

    async fn block_height(&self) -> Result<u64, ChainError> {
        self.client.get_block_height().await.map_err(rpc("getBlockHeight"))
    }

    async fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, ChainError> {
        let accounts = self.ui_accounts(addresses, true).await?;
        let decode = |account| decoded(account, "getMultipleAccounts");
        accounts.into_iter().map(|account| account.map(decode).transpose()).collect()
    }

    async fn headers(&self, addresses: &[Address]) -> Result<Vec<Option<AccountHeader>>, ChainError> {
        let decode = |account: UiAccount| {
            let owner = account.owner.parse();
            let owner = owner.map_err(|_| nonsense(format!("the owner {}", account.owner), "an address"))?;
            let len = account.space.ok_or_else(|| nonsense("no space".to_owned(), "the data's length"))?;
            Ok(AccountHeader { owner, lamports: account.lamports, len })
        };
        let accounts = self.ui_accounts(addresses, false).await?;
        accounts.into_iter().map(|account| account.map(decode).transpose()).collect()
    }

    async fn tables_of(&self, authority: &Address) -> Result<Vec<(Address, Account)>, ChainError> {
        const METHOD: &str = "getProgramAccounts";
        // The byte before the authority says that there is one: a frozen table has none, and may have any bytes there.
        let names = [&[1], authority.as_ref()].concat();
        let filter = RpcFilterType::Memcmp(Memcmp::new_raw_bytes(TABLE_AUTHORITY_OFFSET - 1, names));
        let config = RpcProgramAccountsConfig {
            filters: Some(vec![filter]),
            account_config: RpcAccountInfoConfig {
                encoding: Some(UiAccountEncoding::Base64Zstd),
                commitment: Some(self.client.commitment()),
                min_context_slot: Some(self.landed_slot.load(Ordering::Acquire)).filter(|slot| *slot > 0),
                ..RpcAccountInfoConfig::default()
            },
            ..RpcProgramAccountsConfig::default()
        };
        let found = self.client.get_program_ui_accounts_with_config(&address_lookup_table::ID, config).await;
        let found = found.map_err(rpc(METHOD))?;
        found.into_iter().map(|(address, account)| Ok((address, decoded(account, METHOD)?))).collect()
    }

    async fn rent(&self) -> Result<Rent, ChainError> {
        const METHOD: &str = "getMinimumBalanceForRentExemption";
        let minimum =
            async |len| self.client.get_minimum_balance_for_rent_exemption(len).await.map_err(rpc(METHOD));
        let empty_account_lamports = minimum(0).await?;
        let one_byte = minimum(1).await?;
        Ok(Rent {
            empty_account_lamports,
            lamports_per_byte: one_byte.saturating_sub(empty_account_lamports),
        })
    }

    async fn supports_v1(&self) -> Result<bool, ChainError> {
        let ask = || async {
            let gate = self.accounts(&[V1_FEATURE]).await?.pop().flatten();
            // `Feature { activated_at: Option<u64> }`: the first byte tells.
            Ok(gate.is_some_and(|gate| gate.owner == FEATURE_PROGRAM && gate.data.first() == Some(&1)))
        };
        self.v1.get_or_try_init(ask).await.copied()
    }

    async fn slot(&self) -> Result<u64, ChainError> {
        self.client.get_slot().await.map_err(rpc("getSlot"))
    }

    async fn priority_fees(&self, writable: &[Address]) -> Result<Vec<u64>, ChainError> {
        // The node takes no more addresses than a transaction locks accounts.
        let writable = &writable[..writable.len().min(MAX_FEE_ACCOUNTS)];
        let fees = self.client.get_recent_prioritization_fees(writable).await;
        let fees = fees.map_err(rpc("getRecentPrioritizationFees"))?;
        Ok(fees.into_iter().map(|fee| fee.prioritization_fee).collect())
    }

    async fn simulate(&self, transaction: &VersionedTransaction) -> Result<Simulation, ChainError> {
        let config = RpcSimulateTransactionConfig {
            sig_verify: false,
            replace_recent_blockhash: true,
            commitment: Some(self.client.commitment()),
            min_context_slot: Some(self.landed_slot.load(Ordering::Acquire)).filter(|slot| *slot > 0),
            ..RpcSimulateTransactionConfig::default()
        };
        let found = self.client.simulate_transaction_with_config(transaction, config).await;
        let found = found.map_err(rpc("simulateTransaction"))?.value;
        let outcome = match found.err {
            None => Ok(()),
            Some(error) => {
                let logs = found.logs.unwrap_or_default();
                Err(decode::failure(error.into(), &transaction.message, logs))
            }
        };
        let compute_units = found.units_consumed.unwrap_or_default();
        Ok(Simulation { compute_units, loaded_data: found.loaded_accounts_data_size, outcome })
    }

    async fn land(&self, transaction: SignedTransaction) -> Result<Landed, ChainError> {
        self.confirmer.land(transaction).await
    }

    async fn find(
        &self,
        signature: Signature,
    ) -> Result<Option<Result<Landed, TransactionFailure>>, ChainError> {
        self.confirmer.find(signature).await
    }

    async fn cost(&self, signature: Signature) -> Result<Option<TransactionCost>, ChainError> {
        let config = RpcTransactionConfig {
            encoding: Some(UiTransactionEncoding::Base64),
            commitment: Some(self.client.commitment()),
            max_supported_transaction_version: Some(1),
        };
        let found = self.client.get_transaction_with_config(&signature, config).await;
        let meta = found.map_err(rpc("getTransaction"))?.transaction.meta;
        Ok(meta.map(|meta| {
            let compute_units = match meta.compute_units_consumed {
                OptionSerializer::Some(units) => units,
                _ => 0,
            };
            TransactionCost { compute_units, fee_lamports: meta.fee }
        }))
    }
}

/// By Solana's convention: the same host, and the next port if one is named. `None` if the URL is not of that kind.
fn websocket_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "http" => "ws",
        "https" => "wss",
        _ => return None,
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            format!("{name}:{}", port.parse::<u16>().ok()?.checked_add(1)?)
        }
        _ => host.to_owned(),
    };
    Some(format!("{scheme}://{host}/{path}"))
}

fn decoded(account: UiAccount, method: &'static str) -> Result<Account, ChainError> {
    let found = "an account that can't be decoded";
    let unreadable = || ChainError::Nonsense { method, found: found.to_owned(), expected: "base64+zstd" };
    account.to_account().ok_or_else(unreadable)
}

fn nonsense(found: String, expected: &'static str) -> ChainError {
    ChainError::Nonsense { method: "getMultipleAccounts", found, expected }
}

/// Names the method that failed.
pub(super) fn rpc(method: &'static str) -> impl Fn(solana_rpc_client_api::client_error::Error) -> ChainError {
    move |source| ChainError::Rpc { method, source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_websocket_is_beside_the_rpc_service() {
        let cases = [
            ("http://localhost:8899", Some("ws://localhost:8900/")),
            ("https://api.devnet.solana.com", Some("wss://api.devnet.solana.com/")),
            ("https://host.example/a/key?x=1", Some("wss://host.example/a/key?x=1")),
            ("http://[::1]:80/", Some("ws://[::1]:81/")),
            ("http://[::1]/", Some("ws://[::1]/")),
            ("http://host:65535", None),
            ("ftp://host", None),
        ];
        for (url, expected) in cases {
            assert_eq!(websocket_url(url).as_deref(), expected, "{url}");
        }
    }
}
