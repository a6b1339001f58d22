//! Whether store and chain agree.

use std::{collections::BTreeMap, sync::Arc};

use committor_sdk::{address, delegation};
use serde::Serialize;
use solana_account::Account;
use solana_address::Address;

use super::EngineError;
use crate::{
    chain::Chain,
    store::{Store, StoredLanding},
    types::{BundleKey, CommitMode},
};

/// What an audit says about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Record and bytes are those of the last commit that landed from this store.
    Equal,
    /// The last bundle handed the account back, and it is not delegated.
    HandedBack,
    /// The chain has a later commit, or a later delegation: another committor's, or one that this store is about to record.
    ChainAhead,
    /// The chain does not have what the store calls landed: it was rolled back, or it is another chain.
    StoreAhead,
    /// The record names this commit's place, but another commit or other bytes are there.
    ChangedByOthers,
    /// The account does not exist, or is not delegated, though nobody here handed it back.
    Gone,
}

impl Verdict {
    /// Whether store and chain agree.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Equal | Self::HandedBack)
    }
}

/// One account of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditedAccount {
    /// The account.
    #[serde(serialize_with = "as_text")]
    pub pubkey: Address,
    /// What is the matter with it.
    pub verdict: Verdict,
    /// The bundle whose commit was the last one to land from this store.
    #[serde(serialize_with = "as_number")]
    pub bundle: BundleKey,
    /// Whether the store has bundles of the account that have not ended: then they may be what is different.
    pub unfinished: bool,
    /// The difference, for people.
    pub detail: Option<String>,
}

fn as_text<S: serde::Serializer>(address: &Address, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

fn as_number<S: serde::Serializer>(key: &BundleKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(key.0)
}

/// A part of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditedBatch {
    /// Accounts that something landed for, in the order of their addresses' bytes.
    pub accounts: Vec<AuditedAccount>,
    /// Where the next batch begins; `None` if this was the last one.
    pub next: Option<Address>,
}

/// Compares a store's landed commits with the chain, batch by batch. Changes neither.
///
/// ```no_run
/// # async fn run(chain: std::sync::Arc<committor_client::chain::RpcChain>, store: committor_client::Store)
/// # -> Result<(), committor_client::EngineError> {
/// use committor_client::engine::Audit;
///
/// let audit = Audit::new(chain, store);
/// let mut after = None;
/// loop {
///     let batch = audit.batch(after, 1_000).await?;
///     for account in batch.accounts.iter().filter(|account| !account.verdict.is_good()) {
///         println!("{}: {:?}", account.pubkey, account.verdict);
///     }
///     after = batch.next; // what to go on with after an interruption
///     if after.is_none() {
///         break;
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Audit<C> {
    chain: Arc<C>,
    store: Store,
}

impl<C: Chain> Audit<C> {
    /// An audit of a store against a chain.
    pub const fn new(chain: Arc<C>, store: Store) -> Self {
        Self { chain, store }
    }

    /// Compares the accounts after `after`, `limit` at most.
    ///
    /// # Errors
    /// [`EngineError`] if store or chain can't be read.
    pub async fn batch(&self, after: Option<Address>, limit: u32) -> Result<AuditedBatch, EngineError> {
        let accounts = self.store.accounts_after(after, limit.max(1)).await?;
        let next = accounts.last().copied().filter(|_| accounts.len() as u64 >= u64::from(limit.max(1)));
        Ok(AuditedBatch { accounts: self.accounts(&accounts).await?, next })
    }

    /// Compares these accounts. Those that nothing landed for are left out.
    ///
    /// # Errors
    /// [`EngineError`] if store or chain can't be read.
    pub async fn accounts(&self, accounts: &[Address]) -> Result<Vec<AuditedAccount>, EngineError> {
        // The store first: what lands in between makes the chain ahead, which is not wrong.
        let landings = self.store.landings(accounts.to_vec()).await?;
        let addresses: Vec<Address> = landings.iter().map(|landing| landing.account).collect();
        let records: Vec<Address> = addresses.iter().map(address::record).collect();
        let found = self.chain.accounts(&[addresses, records].concat()).await?;
        let (found, records) = found.split_at(landings.len());
        let audited = landings.iter().zip(found).zip(records);
        Ok(audited
            .map(|((landing, found), record)| audit(landing, found.as_ref(), record.as_ref()))
            .collect())
    }

    /// How many accounts of each verdict there are in batches.
    pub fn totals<'a>(accounts: impl IntoIterator<Item = &'a AuditedAccount>) -> BTreeMap<Verdict, u64> {
        let mut totals = BTreeMap::new();
        for account in accounts {
            *totals.entry(account.verdict).or_default() += 1;
        }
        totals
    }
}

fn audit(landing: &StoredLanding, found: Option<&Account>, record: Option<&Account>) -> AuditedAccount {
    let record = record.filter(|record| record.owner == delegation::ID);
    let record = record.and_then(|record| delegation::Delegation::read(&record.data).ok());
    let (verdict, detail) = judge(landing, found, record.as_ref());
    let StoredLanding { account, bundle, unfinished, .. } = landing;
    AuditedAccount { pubkey: *account, verdict, bundle: *bundle, unfinished: *unfinished, detail }
}

fn judge(
    landing: &StoredLanding,
    found: Option<&Account>,
    record: Option<&delegation::Delegation>,
) -> (Verdict, Option<String>) {
    let handed_back = landing.mode == CommitMode::Undelegate;
    let delegated = found.zip(record).filter(|(found, _)| found.owner == delegation::ID);
    let Some((found, record)) = delegated else {
        let verdict = if handed_back { Verdict::HandedBack } else { Verdict::Gone };
        let owner = found
            .map_or_else(|| "it does not exist".to_owned(), |found| format!("its owner is {}", found.owner));
        return (verdict, Some(owner));
    };
    let ours = (landing.session, landing.nonce.0);
    let theirs = (record.session, record.nonce);
    let place = |(session, nonce)| format!("commit {nonce} of session {session}");
    let detail = |what: &str| Some(format!("{what} {}, the store's last is {}", place(theirs), place(ours)));
    match theirs.cmp(&ours) {
        std::cmp::Ordering::Greater => (Verdict::ChainAhead, detail("the chain has")),
        std::cmp::Ordering::Less => (Verdict::StoreAhead, detail("the chain has only")),
        std::cmp::Ordering::Equal if record.commit_id != landing.commit_id.0 => {
            (Verdict::ChangedByOthers, Some(format!("{} is another one", place(theirs))))
        }
        std::cmp::Ordering::Equal => match super::verify::difference(&landing.state, &found.data) {
            None => (Verdict::Equal, None),
            difference => (Verdict::ChangedByOthers, difference),
        },
    }
}
