//! A file in a buffer of its own.

use std::sync::Arc;

use committor_sdk::{BufferView, address};
use solana_account::Account;
use solana_address::Address;
use solana_signer::Signer;

use super::{DeployError, Deployer, Progress, Quote, Watch, batch::data_len, buffers::view};
use crate::{
    chain::Chain,
    plan::{BufferFacts, FileFacts, FilePlan, PlanContext, PlanError, file_seed, plan_file},
    types::Lamports,
};

/// A file that is on chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// The sealed buffer that holds it.
    pub buffer: Address,
    /// The digest that sealed it, as [`payload_digest`](committor_sdk::digest::payload_digest) makes it.
    pub digest: [u8; 32],
    /// Transactions that landed; 0 if all was there already.
    pub transactions: u64,
}

impl Deployer {
    /// Where a file goes.
    ///
    /// # Errors
    /// None but for a seed of the wrong length, which this one is not.
    pub fn file_address(&self, file: &[u8]) -> Result<Address, DeployError> {
        let authority = self.signers.authority.pubkey();
        address::buffer(&authority, &file_seed(file))
            .map_err(|source| PlanError::Seed { account: authority, source }.into())
    }

    /// What it takes to upload a file, or what is left of it.
    ///
    /// # Errors
    /// As [`Deployer::upload`], but for the balance: [`Quote::check`] looks at that.
    pub async fn quote_upload(&self, file: &Arc<[u8]>) -> Result<Quote, DeployError> {
        let (plan, context) = self.plan_upload(file).await?;
        self.quote(plan.price(&context), &context).await
    }

    /// Uploads a file into a sealed buffer, or what is left of it, and reads it back.
    ///
    /// # Errors
    /// [`DeployError`]; what has landed until then is found again by the next call with the same file.
    pub async fn upload(&self, file: &Arc<[u8]>, watch: &Watch) -> Result<Uploaded, DeployError> {
        let mut left = self.settings.attempts.max(1);
        let mut landed = 0;
        loop {
            let (plan, context) = self.plan_upload(file).await?;
            if plan.rounds.is_empty() {
                let digest = committor_sdk::digest::payload_digest(file);
                return Ok(Uploaded { buffer: plan.buffer, digest, transactions: landed });
            }
            let error = match self.upload_planned(file, plan, &context, watch).await {
                // Looks again, so that nothing counts as uploaded that was not read back.
                Ok(transactions) => {
                    landed += transactions;
                    DeployError::NotEqual
                }
                Err(error) if error.is_surprise() => {
                    watch.tell(Progress::Again { reason: crate::engine::chain_of(&error) });
                    error
                }
                Err(error) => return Err(error),
            };
            if left == 0 {
                return Err(DeployError::Restless {
                    attempts: self.settings.attempts,
                    source: Box::new(error),
                });
            }
            left -= 1;
        }
    }

    async fn upload_planned(
        &self,
        file: &[u8],
        plan: FilePlan,
        context: &PlanContext,
        watch: &Watch,
    ) -> Result<u64, DeployError> {
        self.quote(plan.price(context), context).await?.check()?;
        let transactions = plan.rounds.iter().flatten().count() as u64;
        watch.tell(Progress::Planned {
            transactions,
            bytes: plan.rounds.iter().flatten().map(data_len).sum(),
            skipped: file.len() as u64 - plan.bytes(),
        });
        let batch = self.batch(context, watch);
        for round in plan.rounds {
            batch.land(round).await?;
        }
        Ok(transactions)
    }

    async fn plan_upload(&self, file: &Arc<[u8]>) -> Result<(FilePlan, PlanContext), DeployError> {
        let buffer = self.file_address(file)?;
        let writable = [buffer];
        let (context, account) = tokio::try_join!(self.context(&writable), self.account(buffer))?;
        let facts = self.file_facts(file, buffer, account)?;
        let plan = plan_file(&facts, &context).map_err(|error| match error {
            PlanError::Layout { source, .. } => DeployError::TooLong { len: file.len(), source },
            error => error.into(),
        })?;
        Ok((plan, context))
    }

    fn file_facts(
        &self,
        file: &Arc<[u8]>,
        buffer: Address,
        account: Option<Account>,
    ) -> Result<FileFacts, DeployError> {
        let lamports = Lamports(account.as_ref().map_or(0, |account| account.lamports));
        let existing = match account.filter(|account| !account.data.is_empty()) {
            None => None,
            Some(account) => {
                let view = view(buffer, &account)?;
                self.require_own(buffer, &view)?;
                let facts = BufferFacts {
                    address: buffer,
                    account_len: account.data.len() as u64,
                    header: *view.header(),
                    missing: view.missing().collect(),
                    sealed: view.is_sealed(),
                };
                Some((facts, view.payload().to_vec()))
            }
        };
        Ok(FileFacts { payload: file.clone(), lamports, existing })
    }

    pub(super) async fn account(&self, address: Address) -> Result<Option<Account>, DeployError> {
        Ok(self.chain.accounts(&[address]).await?.pop().flatten())
    }

    pub(super) fn require_own(&self, buffer: Address, view: &BufferView<'_>) -> Result<(), DeployError> {
        let (authority, ours) = (view.header().authority, self.signers.authority.pubkey());
        if authority == ours {
            return Ok(());
        }
        Err(DeployError::WrongAuthority { buffer, authority, ours })
    }
}
