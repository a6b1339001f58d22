//! Asking the chain what planning must know.

use std::collections::HashMap;

use committor_sdk::{BufferView, address, chunk_buffer, delegation};
use solana_address::Address;

use super::EngineError;
use crate::{
    chain::{AccountHeader, Chain},
    plan::{AccountFacts, BufferFacts, BundleFacts, PlanContext, RentSchedule, buffer_seed},
    store::StoredBundle,
    types::{Lamports, TransactionVersion},
};

use super::bundle::Runner;
use solana_signer::Signer;

impl<C: Chain> Runner<C> {
    /// What is the same for all bundles.
    pub(super) async fn context(&self) -> Result<PlanContext, EngineError> {
        let rent = self.chain.rent().await?;
        let version = match self.settings.version {
            Some(version) => version,
            None if self.chain.supports_v1().await? => TransactionVersion::V1,
            None => TransactionVersion::V0,
        };
        Ok(PlanContext {
            payer: self.signers.payer.pubkey(),
            authority: self.signers.authority.pubkey(),
            version,
            rent: RentSchedule {
                empty_account: Lamports(rent.empty_account_lamports),
                per_byte: Lamports(rent.lamports_per_byte),
            },
        })
    }

    /// What the chain says about a bundle's accounts.
    pub(super) async fn facts(&self, bundle: &StoredBundle) -> Result<BundleFacts, EngineError> {
        let authority = self.signers.authority.pubkey();
        let accounts: Vec<Address> = bundle.commits.iter().map(|commit| commit.account).collect();
        let records: Vec<Address> = accounts.iter().map(address::record).collect();
        let buffers: Vec<Address> = bundle
            .commits
            .iter()
            .map(|commit| {
                let seed = buffer_seed(&commit.account, commit.commit_id, &commit.state);
                // Seeds are hexadecimal of a fixed length, which is not too long.
                address::buffer(&authority, &seed).unwrap_or_default()
            })
            .collect();
        let with_len: Vec<Address> = accounts.iter().chain(&buffers).copied().collect();
        let (headers, records) =
            tokio::try_join!(self.chain.headers(&with_len), self.chain.accounts(&records))?;
        let (account_headers, buffer_headers) = headers.split_at(accounts.len());
        let existing = self.existing_buffers(&buffers, buffer_headers).await?;

        let mut facts = Vec::with_capacity(accounts.len());
        for (index, commit) in bundle.commits.iter().enumerate() {
            let header = account_headers[index];
            let record = records[index].as_ref().filter(|record| record.owner == delegation::ID);
            facts.push(AccountFacts {
                account: commit.account,
                state: commit.state.clone(),
                commit_id: commit.commit_id,
                owner: header.map(|header| header.owner),
                len: header.map_or(0, |header| header.len as usize),
                lamports: Lamports(header.map_or(0, |header| header.lamports)),
                record: record.and_then(|record| delegation::Delegation::read(&record.data).ok()),
                buffer_lamports: Lamports(buffer_headers[index].map_or(0, |header| header.lamports)),
                buffer: existing.get(&buffers[index]).cloned(),
            });
        }
        Ok(BundleFacts { accounts: facts })
    }

    /// The buffers that an earlier attempt left.
    async fn existing_buffers(
        &self,
        buffers: &[Address],
        headers: &[Option<AccountHeader>],
    ) -> Result<HashMap<Address, BufferFacts>, EngineError> {
        let owned =
            |header: &Option<AccountHeader>| header.is_some_and(|header| header.owner == chunk_buffer::ID);
        let addresses: Vec<Address> = buffers
            .iter()
            .zip(headers)
            .filter(|(_, header)| owned(header))
            .map(|(address, _)| *address)
            .collect();
        if addresses.is_empty() {
            return Ok(HashMap::new());
        }
        let accounts = self.chain.accounts(&addresses).await?;
        let mut found = HashMap::new();
        for (address, account) in addresses.into_iter().zip(accounts) {
            let Some(account) = account else { continue };
            let Ok(view) = BufferView::parse(&account.data) else { continue };
            let missing = view.missing().collect();
            found.insert(address, BufferFacts { header: *view.header(), missing, sealed: view.is_sealed() });
        }
        Ok(found)
    }
}
