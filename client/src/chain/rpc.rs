//! A cluster over JSON-RPC.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::json;
use solana_account::Account;
use solana_account_decoder_client_types::{UiAccount, UiAccountEncoding, UiDataSliceConfig};
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::{
    config::{RpcAccountInfoConfig, RpcProgramAccountsConfig, RpcSimulateTransactionConfig},
    filter::{Memcmp, RpcFilterType},
    response::{
        RpcConfirmedTransactionStatusWithSignature, RpcKeyedAccount, RpcPrioritizationFee,
        RpcSimulateTransactionResult,
    },
};
use solana_sdk_ids::address_lookup_table;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_status_client_types::{UiTransactionEncoding, option_serializer::OptionSerializer};
use tokio::{sync::OnceCell, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[cfg(feature = "proxy")]
use super::source::{self, NodeSource};
#[cfg(feature = "proxy")]
use crate::proxy::Proxy;

use super::{
    AccountHeader, AnsweredBy, Chain, ChainError, ChainStats, Endpoint, FaultKind, Landed, ProgramAccount,
    RecentBlockhash, Rent, RetrySettings, RpcSettings, SignedTransaction, Simulation, TransactionCost,
    TransactionFailure, confirm::Confirmer, decode, endpoints::Needs, fault::Fault, node::Node,
    nonce::stored_nonce,
};

/// Addresses that one `getRecentPrioritizationFees` takes.
const MAX_FEE_ACCOUNTS: usize = 128;
/// The feature gate of v1 transactions.
const V1_FEATURE: Address = Address::from_str_const("txv1aq4pp281K9um3tnPgkfX8UqtFT6wcVW3hNezGLL");
/// Where a lookup table names its authority: after its kind (4 bytes), its deactivation slot and the slot of its last
/// extension (8 each), where that began (1), and that there is an authority (1).
const TABLE_AUTHORITY_OFFSET: usize = 22;
/// How long an endpoint may take to say which cluster it serves.
const MAX_INTRODUCTION: Duration = Duration::from_secs(5);
/// Owner of feature-gate accounts.
const FEATURE_PROGRAM: Address = Address::from_str_const("Feature111111111111111111111111111111111111");

/// A cluster over JSON-RPC. Dropping it ends its background tasks.
pub struct RpcChain {
    node: Arc<Node>,
    confirmer: Confirmer,
    v1: OnceCell<bool>,
    poll_interval: Duration,
    #[cfg(feature = "proxy")]
    proxy: Option<Proxy<NodeSource>>,
    tasks: TaskTracker,
    cancelled: CancellationToken,
}

impl RpcChain {
    /// Prepares to talk to the service; sends nothing yet.
    ///
    /// Must be called within a tokio runtime.
    pub fn new(settings: RpcSettings) -> Self {
        let node = Arc::new(Node::new(&settings));
        let (tasks, cancelled) = (TaskTracker::new(), CancellationToken::new());
        let poll_interval = settings.poll_interval;
        #[cfg(feature = "proxy")]
        let proxy = settings.proxy.map(|settings| Proxy::new(NodeSource(node.clone()), settings));
        let confirmer = Confirmer::new(node.clone(), settings, &tasks, &cancelled);
        Self {
            node,
            confirmer,
            v1: OnceCell::new(),
            poll_interval,
            #[cfg(feature = "proxy")]
            proxy,
            tasks,
            cancelled,
        }
    }

    /// Which cluster each endpoint serves, by the hash of its genesis: asked one by one, and at most twice each. Those of one
    /// chain must all serve the same, since whatever one of them says is believed.
    pub async fn genesis_hashes(settings: &RpcSettings) -> Vec<(Endpoint, Result<Hash, ChainError>)> {
        let ask = async |endpoint: Endpoint| {
            let retry = RetrySettings { attempts: 2, ..settings.retry };
            let request_timeout = settings.request_timeout.min(MAX_INTRODUCTION);
            let only = RpcSettings::of(endpoint.clone(), Vec::new());
            let chain = Self::new(RpcSettings { retry, request_timeout, ..only });
            let hash = chain.genesis_hash().await;
            chain.shutdown().await;
            (endpoint, hash)
        };
        join_all(settings.endpoints().into_iter().map(ask)).await
    }

    /// Ends the background tasks and waits until they have ended. Whoever waits for a transaction gets
    /// [`ChainError::Stopped`].
    pub async fn shutdown(&self) {
        self.cancelled.cancel();
        self.confirmer.stop().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// What simulates transactions in this process, if the settings ask for it.
    #[cfg(feature = "proxy")]
    pub const fn proxy(&self) -> Option<&Proxy<NodeSource>> {
        self.proxy.as_ref()
    }

    /// What this value did since it was made.
    pub fn stats(&self) -> ChainStats {
        self.node.endpoints.counters.snapshot()
    }

    /// A client for whatever else is to be asked, with the same endpoints, limits and retries, and counted with the rest.
    pub fn client(&self) -> RpcClient {
        self.node.client()
    }

    /// The nonce that a nonce account holds: what a transaction that advances it is signed with, in a blockhash's place.
    /// `None` if there is no such account, or no nonce in it.
    ///
    /// # Errors
    /// [`ChainError`] if the account could not be read.
    pub async fn nonce(&self, account: Address) -> Result<Option<Hash>, ChainError> {
        Ok(self.accounts(&[account]).await?.pop().flatten().as_ref().and_then(stored_nonce))
    }

    /// All accounts of a program that hold these bytes at these offsets, with their first `len` bytes of data, or all of it.
    ///
    /// # Errors
    /// [`ChainError`] if the node could not be asked, or does not answer such questions.
    pub async fn program_accounts(
        &self,
        program: &Address,
        holding: &[(usize, Vec<u8>)],
        len: Option<usize>,
    ) -> Result<Vec<ProgramAccount>, ChainError> {
        program_accounts(&self.node, program, holding, len).await
    }

    /// When a transaction named an account last, in seconds since 1970; `None` if the node knows of none.
    ///
    /// # Errors
    /// [`ChainError`] if the node could not be asked.
    pub async fn last_used(&self, address: &Address) -> Result<Option<i64>, ChainError> {
        let params = json!([address.to_string(), { "limit": 1, "commitment": self.node.commitment }]);
        let found: Vec<RpcConfirmedTransactionStatusWithSignature> =
            self.node.call("getSignaturesForAddress", params, Needs::default()).await?;
        Ok(found.first().and_then(|found| found.block_time))
    }

    /// Waits until a slot has been reached, and returns the slot that has.
    ///
    /// # Errors
    /// [`ChainError::Nonsense`] if that takes longer than `limit`, any other if the node can't be asked.
    pub async fn wait_for_slot(&self, slot: u64, limit: Duration) -> Result<u64, ChainError> {
        let deadline = Instant::now() + limit;
        loop {
            let found = self.slot().await?;
            if found >= slot {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                let found = format!("slot {found} after {} s", limit.as_secs());
                return Err(ChainError::Nonsense {
                    method: "getSlot",
                    found,
                    expected: "the slot waited for",
                });
            }
            tokio::time::sleep(self.poll_interval).await;
        }
    }
}

#[cfg(feature = "proxy")]
impl RpcChain {
    /// Simulates in this process; if that is not done, why, unless nobody asked for it.
    async fn simulate_here(&self, transaction: &VersionedTransaction) -> Result<Simulation, Option<String>> {
        let proxy = self.proxy.as_ref().ok_or(None)?;
        source::simulate(proxy, transaction).await.map_err(|because| {
            tracing::debug!(%because, "simulated by the node");
            Some(because.to_string())
        })
    }
}

#[cfg(not(feature = "proxy"))]
impl RpcChain {
    /// Nothing is simulated in this process.
    async fn simulate_here(&self, _: &VersionedTransaction) -> Result<Simulation, Option<String>> {
        Err(None)
    }
}

impl Drop for RpcChain {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

impl Chain for RpcChain {
    fn saw(&self, slot: u64) {
        self.node.saw(slot);
    }

    async fn recent_blockhash(&self) -> Result<RecentBlockhash, ChainError> {
        self.node.recent_blockhash().await
    }

    async fn block_height(&self) -> Result<u64, ChainError> {
        Ok(self.node.position().await?.block_height)
    }

    async fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, ChainError> {
        decoded(self.node.accounts(addresses, true).await?)
    }

    async fn headers(&self, addresses: &[Address]) -> Result<Vec<Option<AccountHeader>>, ChainError> {
        let decode = |account: UiAccount| {
            let owner = account.owner.parse();
            let owner = owner.map_err(|_| nonsense(format!("the owner {}", account.owner), "an address"))?;
            let len = account.space.ok_or_else(|| nonsense("no space".to_owned(), "the data's length"))?;
            Ok(AccountHeader { owner, lamports: account.lamports, len })
        };
        let accounts = self.node.accounts(addresses, false).await?;
        accounts.into_iter().map(|account| account.map(decode).transpose()).collect()
    }

    async fn tables_of(&self, authority: &Address) -> Result<Vec<(Address, Account)>, ChainError> {
        // The byte before the authority says that there is one: a frozen table has none, and may have any bytes there.
        let names = [&[1], authority.as_ref()].concat();
        let holding = [(TABLE_AUTHORITY_OFFSET - 1, names)];
        let found = self.program_accounts(&address_lookup_table::ID, &holding, None).await?;
        Ok(found.into_iter().map(|found| (found.address, found.account)).collect())
    }

    async fn rent(&self) -> Result<Rent, ChainError> {
        const METHOD: &str = "getMinimumBalanceForRentExemption";
        let minimum = async |len: usize| {
            let params = json!([len, self.node.commitment]);
            self.node.call::<u64>(METHOD, params, Needs::default()).await
        };
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

    async fn genesis_hash(&self) -> Result<Hash, ChainError> {
        self.node.genesis_hash().await
    }

    async fn slot(&self) -> Result<u64, ChainError> {
        let slot = self.node.position().await?.slot;
        // An answer may have come in the meantime that has seen a later one.
        Ok(self.node.seen().map_or(slot, |seen| seen.max(slot)))
    }

    async fn finalized_slot(&self) -> Result<u64, ChainError> {
        self.node.call("getSlot", json!([CommitmentConfig::finalized()]), Needs::default()).await
    }

    async fn priority_fees(&self, writable: &[Address]) -> Result<Vec<u64>, ChainError> {
        // The node takes no more addresses than a transaction locks accounts.
        let writable = writable.iter().take(MAX_FEE_ACCOUNTS).map(Address::to_string);
        let params = json!([writable.collect::<Vec<String>>()]);
        let fees: Vec<RpcPrioritizationFee> =
            self.node.call("getRecentPrioritizationFees", params, Needs::default()).await?;
        Ok(fees.into_iter().map(|fee| fee.prioritization_fee).collect())
    }

    async fn simulate(&self, transaction: &VersionedTransaction) -> Result<Simulation, ChainError> {
        const METHOD: &str = "simulateTransaction";
        let because = match self.simulate_here(transaction).await {
            Ok(simulation) => return Ok(simulation),
            Err(because) => because,
        };
        let config = RpcSimulateTransactionConfig {
            sig_verify: false,
            replace_recent_blockhash: true,
            commitment: Some(self.node.commitment),
            encoding: Some(UiTransactionEncoding::Base64),
            min_context_slot: self.node.seen(),
            ..RpcSimulateTransactionConfig::default()
        };
        let unsendable = |error| ChainError::rpc(METHOD)(Fault::of(FaultKind::Rejected, 0, error));
        let params = json!([decode::base64(transaction).map_err(unsendable)?, config]);
        let found: RpcSimulateTransactionResult = self.node.read(METHOD, params).await?;
        let outcome = match found.err {
            None => Ok(()),
            Some(error) => {
                let logs = found.logs.unwrap_or_default();
                Err(decode::failure(error.into(), Some(&transaction.message), logs))
            }
        };
        let compute_units = found.units_consumed.unwrap_or_default();
        let answered_by = AnsweredBy::Node { because };
        Ok(Simulation { compute_units, loaded_data: found.loaded_accounts_data_size, outcome, answered_by })
    }

    #[cfg(feature = "proxy")]
    async fn rehearse(&self, transactions: &[VersionedTransaction]) -> Option<Vec<Simulation>> {
        match source::rehearse(self.proxy.as_ref()?, transactions).await {
            Ok(simulations) => Some(simulations),
            Err(because) => {
                tracing::debug!(%because, transactions = transactions.len(), "not rehearsed");
                None
            }
        }
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
        let found = self.node.transaction(signature).await?;
        Ok(found.and_then(|found| found.transaction.meta).map(|meta| {
            let compute_units = match meta.compute_units_consumed {
                OptionSerializer::Some(units) => units,
                _ => 0,
            };
            TransactionCost { compute_units, fee_lamports: meta.fee }
        }))
    }
}

/// All accounts of a program that hold these bytes at these offsets, with their first `len` bytes of data, or all of it.
pub(super) async fn program_accounts(
    node: &Node,
    program: &Address,
    holding: &[(usize, Vec<u8>)],
    len: Option<usize>,
) -> Result<Vec<ProgramAccount>, ChainError> {
    const METHOD: &str = "getProgramAccounts";
    let filter = |(offset, bytes): &(usize, Vec<u8>)| {
        RpcFilterType::Memcmp(Memcmp::new_raw_bytes(*offset, bytes.clone()))
    };
    let config = RpcProgramAccountsConfig {
        filters: Some(holding.iter().map(filter).collect()),
        account_config: RpcAccountInfoConfig {
            encoding: Some(UiAccountEncoding::Base64Zstd),
            data_slice: len.map(|length| UiDataSliceConfig { offset: 0, length }),
            commitment: Some(node.commitment),
            min_context_slot: node.seen(),
        },
        ..RpcProgramAccountsConfig::default()
    };
    let params = json!([program.to_string(), config]);
    let found: Vec<RpcKeyedAccount> = node.call(METHOD, params, Needs::default()).await?;
    let decode = |found: RpcKeyedAccount| {
        let unreadable = |found| ChainError::Nonsense { method: METHOD, found, expected: "accounts" };
        let address = found.pubkey.parse().map_err(|_| unreadable(found.pubkey.clone()))?;
        let space = found.account.space;
        let account = found.account.to_account();
        let account = account.ok_or_else(|| unreadable("an account that can't be decoded".to_owned()))?;
        let len = space.unwrap_or(account.data.len() as u64);
        Ok(ProgramAccount { address, len, account })
    };
    found.into_iter().map(decode).collect()
}

pub(super) fn decoded(accounts: Vec<Option<UiAccount>>) -> Result<Vec<Option<Account>>, ChainError> {
    let decode = |account: UiAccount| {
        let unreadable = || nonsense("an account that can't be decoded".to_owned(), "base64+zstd");
        account.to_account().ok_or_else(unreadable)
    };
    accounts.into_iter().map(|account| account.map(decode).transpose()).collect()
}

fn nonsense(found: String, expected: &'static str) -> ChainError {
    ChainError::Nonsense { method: "getMultipleAccounts", found, expected }
}
