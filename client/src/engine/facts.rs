//! Asking the chain what planning must know.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use committor_sdk::{BufferView, address, chunk_buffer, delegation};
use solana_account::Account;
use solana_address::Address;
use solana_signer::Signer;
use tokio::time::Instant;

use super::{EngineError, bundle::Runner};
use crate::{
    chain::{AccountHeader, Chain},
    plan::{
        AccountFacts, BufferFacts, BundleFacts, PlanContext, Prices, RentSchedule, StagePrice, needs_bases,
    },
    store::{StoredBundle, StoredCommit},
    types::{BundleStatus, ComputeLimit, Lamports, PriorityFee, Stage, TransactionVersion},
};

/// How long rent is believed: it changes a few times a year, and a bundle that is tried for longer sees the change.
const MAX_RENT_AGE: Duration = Duration::from_secs(5);
/// The loader whose programs keep their code in an account of its own.
const UPGRADEABLE_LOADER: Address = Address::from_str_const("BPFLoaderUpgradeab1e11111111111111111111111");
/// What the runtime adds to every loaded account's length, in bytes.
const LOADED_ACCOUNT_OVERHEAD: u64 = 64;

impl<C: Chain> Runner<C> {
    /// What is the same for all bundles, with the prices for transactions that write to `accounts`.
    pub(super) async fn context(&self, accounts: &[Address]) -> Result<PlanContext, EngineError> {
        let (rent, version, prices) =
            tokio::try_join!(self.rent(), self.transaction_version(), self.prices(accounts))?;
        Ok(PlanContext {
            payer: self.signers.payer.pubkey(),
            authority: self.signers.authority.pubkey(),
            version,
            rent,
            prices,
            tables: Vec::new(),
        })
    }

    /// The cluster's rent, at most [`MAX_RENT_AGE`] old. Whoever asks while it is asked for waits for the one answer.
    async fn rent(&self) -> Result<RentSchedule, EngineError> {
        let mut known = self.rent.lock().await;
        if let Some((since, rent)) = *known
            && since.elapsed() < MAX_RENT_AGE
        {
            return Ok(rent);
        }
        let found = self.chain.rent().await?;
        let rent = RentSchedule {
            empty_account: Lamports(found.empty_account_lamports),
            per_byte: Lamports(found.lamports_per_byte),
        };
        *known = Some((Instant::now(), rent));
        Ok(rent)
    }

    /// The transaction format to use.
    pub(super) async fn transaction_version(&self) -> Result<TransactionVersion, EngineError> {
        match self.settings.version {
            Some(version) => Ok(version),
            None if self.chain.supports_v1().await? => Ok(TransactionVersion::V1),
            None => Ok(TransactionVersion::V0),
        }
    }

    /// What each stage pays. Recent fees are asked for only where they matter.
    async fn prices(&self, accounts: &[Address]) -> Result<Prices, EngineError> {
        let mut recent = Vec::new();
        let tables = self.settings.tables.priority_fee;
        let fees = Stage::ALL.map(|stage| self.settings.budgets.of(stage).priority_fee);
        let follows = |fee: &PriorityFee| matches!(fee, PriorityFee::Percentile { .. });
        if fees.iter().chain([&tables]).any(follows) {
            recent = self.chain.priority_fees(accounts).await?;
        }
        let prices = Prices::new(|stage| {
            let budget = self.settings.budgets.of(stage);
            StagePrice {
                micro_lamports_per_unit: budget.priority_fee.price(&mut recent),
                fixed_limit: match budget.compute {
                    ComputeLimit::Fixed(units) => Some(units),
                    ComputeLimit::Table | ComputeLimit::Simulate => None,
                },
            }
        });
        Ok(prices.with_tables(tables.price(&mut recent)))
    }

    /// What the chain says about a bundle's accounts.
    pub(super) async fn facts(&self, bundle: &StoredBundle) -> Result<BundleFacts, EngineError> {
        let facts = self.facts_of(std::slice::from_ref(bundle)).await?.pop();
        // One bundle in, one out.
        Ok(facts.unwrap_or(BundleFacts {
            mode: bundle.mode,
            accounts: Vec::new(),
            actions: Vec::new(),
            extra_loaded: 0,
        }))
    }

    /// What the chain says about the accounts of several bundles, in as few requests as for one.
    pub(super) async fn facts_of(&self, bundles: &[StoredBundle]) -> Result<Vec<BundleFacts>, EngineError> {
        let commits = || bundles.iter().flat_map(|bundle| &bundle.commits);
        let accounts: Vec<Address> = commits().map(|commit| commit.account).collect();
        let records: Vec<Address> = accounts.iter().map(address::record).collect();
        let (headers, records) =
            tokio::try_join!(self.chain.headers(&accounts), self.chain.accounts(&records))?;
        let parts = commits().zip(headers).zip(records);
        let mut facts =
            parts.map(|((commit, header), record)| account_facts(commit, header, record)).collect::<Vec<_>>();
        let mut found = Vec::with_capacity(bundles.len());
        for bundle in bundles {
            let rest = facts.split_off(bundle.commits.len());
            let mut accounts = std::mem::replace(&mut facts, rest);
            for (position, buffer) in self.existing_buffers(bundle).await? {
                if let Some(account) = accounts.get_mut(position) {
                    account.buffers.push(buffer);
                }
            }
            let extra_loaded = self.extra_loaded(bundle, &accounts).await?;
            found.push(BundleFacts {
                mode: bundle.mode,
                accounts,
                actions: bundle.actions.clone(),
                extra_loaded,
            });
        }
        Ok(found)
    }

    /// The buffers that an earlier attempt planned, as far as they exist.
    async fn existing_buffers(
        &self,
        bundle: &StoredBundle,
    ) -> Result<Vec<(usize, BufferFacts)>, EngineError> {
        let planned = self.store.buffers(bundle.key).await?;
        if planned.is_empty() {
            return Ok(Vec::new());
        }
        let addresses: Vec<Address> = planned.iter().map(|(_, address)| *address).collect();
        let headers = self.chain.headers(&addresses).await?;
        let existing: Vec<(usize, Address, u64)> = planned
            .into_iter()
            .zip(headers)
            .filter_map(|((position, address), header)| {
                let header = header.filter(|header| header.owner == chunk_buffer::ID)?;
                Some((position, address, header.len))
            })
            .collect();
        if bundle.status == BundleStatus::Finalizing {
            // What is staged is sealed: its content does not matter any more.
            let staged = |(position, address, account_len)| {
                let header = bytemuck::Zeroable::zeroed();
                (position, BufferFacts { address, account_len, header, missing: Vec::new(), sealed: true })
            };
            return Ok(existing.into_iter().map(staged).collect());
        }
        let addresses: Vec<Address> = existing.iter().map(|(_, address, _)| *address).collect();
        let accounts = self.chain.accounts(&addresses).await?;
        let facts =
            existing.into_iter().zip(accounts).filter_map(|((position, address, account_len), account)| {
                let account = account?;
                let view = BufferView::parse(&account.data).ok()?;
                let (missing, sealed) = (view.missing().collect(), view.is_sealed());
                Some((
                    position,
                    BufferFacts { address, account_len, header: *view.header(), missing, sealed },
                ))
            });
        Ok(facts.collect())
    }

    /// Bytes that actions and owner programs load, programs included.
    async fn extra_loaded(&self, bundle: &StoredBundle, facts: &[AccountFacts]) -> Result<u64, EngineError> {
        let mut accounts = BTreeSet::new();
        if bundle.mode == crate::types::CommitMode::Undelegate {
            accounts.extend(facts.iter().filter_map(|facts| facts.record).map(|record| record.owner_program));
        }
        for action in &bundle.actions {
            accounts.insert(action.instruction.program_id);
            accounts.extend(action.instruction.accounts.iter().map(|meta| meta.pubkey));
        }
        let accounts: Vec<Address> = accounts.into_iter().collect();
        let headers = self.chain.headers(&accounts).await?;
        let programs: Vec<Address> = accounts
            .iter()
            .zip(&headers)
            .filter(|(_, header)| header.is_some_and(|header| header.owner == UPGRADEABLE_LOADER))
            .map(|(program, _)| Address::find_program_address(&[program.as_ref()], &UPGRADEABLE_LOADER).0)
            .collect();
        let code = self.chain.headers(&programs).await?;
        let headers = headers.into_iter().chain(code).flatten();
        Ok(headers.map(|header| header.len + LOADED_ACCOUNT_OVERHEAD).sum())
    }

    /// Adds what the accounts hold now, if that can make the plan better.
    pub(super) async fn add_bases(
        &self,
        facts: &mut BundleFacts,
        context: &PlanContext,
    ) -> Result<(), EngineError> {
        if !needs_bases(facts, context)? {
            return Ok(());
        }
        let mut unknown = Vec::new();
        for (index, account) in facts.accounts.iter_mut().enumerate() {
            if account.base.is_none() {
                account.base = self.last_landed(account).await?;
            }
            if account.base.is_none() {
                unknown.push(index);
            }
        }
        let addresses: Vec<Address> = unknown.iter().map(|index| facts.accounts[*index].account).collect();
        let found = self.chain.accounts(&addresses).await?;
        for (index, found) in unknown.into_iter().zip(found) {
            facts.accounts[index].base = found.map(|found| Arc::from(found.data));
        }
        Ok(())
    }

    /// What an account holds, if its last commit came from this store.
    async fn last_landed(&self, account: &AccountFacts) -> Result<Option<Arc<[u8]>>, EngineError> {
        let Some(record) = account.record.filter(|record| record.nonce > 0) else { return Ok(None) };
        let last = self.store.last_landed(account.account).await?;
        let last = last.filter(|last| {
            let (session, nonce, commit_id) = (last.session, last.nonce.0, last.commit_id.0);
            (session, nonce, commit_id) == (record.session, record.nonce, record.commit_id)
                && last.state.len() == account.len
        });
        Ok(last.map(|last| last.state))
    }
}

fn account_facts(
    commit: &StoredCommit,
    header: Option<AccountHeader>,
    record: Option<Account>,
) -> AccountFacts {
    let record = record.filter(|record| record.owner == delegation::ID);
    let len = header.map_or(0, |header| header.len as usize);
    AccountFacts {
        account: commit.account,
        state: commit.state.clone(),
        commit_id: commit.commit_id,
        owner: header.map(|header| header.owner),
        len,
        lamports: Lamports(header.map_or(0, |header| header.lamports)),
        record: record.and_then(|record| delegation::Delegation::read(&record.data).ok()),
        // An empty account holds nothing, which needs no reading.
        base: (len == 0).then(|| Arc::from([])),
        buffers: Vec::new(),
    }
}
