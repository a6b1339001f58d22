//! What planning must know.

use std::sync::Arc;

use committor_sdk::{chunk_buffer, delegation};
use solana_address::Address;

use crate::types::{Action, CommitId, CommitMode, Lamports, LookupTable, Nonce, Stage, TransactionVersion};

use super::PlanError;

/// `state` of a record whose account is delegated.
pub(super) const STATE_DELEGATED: u8 = 2;

/// What an account must hold in order to be kept: linear in its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RentSchedule {
    /// The minimum of an account without data.
    pub empty_account: Lamports,
    /// What each byte adds.
    pub per_byte: Lamports,
}

impl RentSchedule {
    /// The rent-exempt minimum of an account of `len` bytes.
    pub const fn minimum(&self, len: u64) -> Lamports {
        Lamports(self.empty_account.0.saturating_add(self.per_byte.0.saturating_mul(len)))
    }
}

/// What the transactions of one stage pay and may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagePrice {
    /// Price of the priority fee, in micro-lamports per compute unit.
    pub micro_lamports_per_unit: u64,
    /// The compute-unit limit to ask for instead of the one from the table.
    pub fixed_limit: Option<u32>,
}

/// [`StagePrice`] by stage, and what lookup tables' transactions pay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    stages: [StagePrice; Stage::ALL.len()],
    tables: u64,
}

impl Prices {
    /// The prices that `price` gives for each stage.
    pub fn new(price: impl FnMut(Stage) -> StagePrice) -> Self {
        Self { stages: Stage::ALL.map(price), tables: 0 }
    }

    /// With the priority fee of transactions that make and fill lookup tables, in micro-lamports per compute unit.
    pub const fn with_tables(self, micro_lamports_per_unit: u64) -> Self {
        Self { tables: micro_lamports_per_unit, ..self }
    }

    pub(super) const fn of_tables(&self) -> u64 {
        self.tables
    }

    pub(super) const fn of(&self, stage: Stage) -> StagePrice {
        self.stages[stage as usize]
    }
}

/// What is the same for all bundles.
#[derive(Clone, Debug)]
pub struct PlanContext {
    /// Pays fees and rent. Signs.
    pub payer: Address,
    /// The authority that the accounts are delegated to. Signs.
    pub authority: Address,
    /// The transaction format to use.
    pub version: TransactionVersion,
    /// Rent on this cluster.
    pub rent: RentSchedule,
    /// What transactions pay and may use.
    pub prices: Prices,
    /// Lookup tables that can be used now. Only v0 transactions use them.
    pub tables: Vec<LookupTable>,
}

/// A buffer of a commit that exists already.
#[derive(Clone, Debug)]
pub struct BufferFacts {
    /// Its address.
    pub address: Address,
    /// Length of the account in bytes.
    pub account_len: u64,
    /// Its header.
    pub header: chunk_buffer::Buffer,
    /// Chunks that have not been written.
    pub missing: Vec<u32>,
    /// Whether it is sealed.
    pub sealed: bool,
}

/// One commit, and what the chain says about its account.
#[derive(Clone, Debug)]
pub struct AccountFacts {
    /// The delegated account.
    pub account: Address,
    /// The state to commit.
    pub state: Arc<[u8]>,
    /// The commit's id.
    pub commit_id: CommitId,
    /// The account's owner; `None` if it does not exist.
    pub owner: Option<Address>,
    /// The account's length in bytes.
    pub len: usize,
    /// The account's lamports.
    pub lamports: Lamports,
    /// The account's record; `None` if there is none.
    pub record: Option<delegation::Delegation>,
    /// What the account holds now, if that is known: patches are made from it. [`needs_bases`](super::needs_bases) tells
    /// whether it is of any use.
    pub base: Option<Arc<[u8]>>,
    /// The buffers of this commit that exist.
    pub buffers: Vec<BufferFacts>,
}

/// A bundle, and what the chain says about it.
#[derive(Clone, Debug)]
pub struct BundleFacts {
    /// How far the bundle goes.
    pub mode: CommitMode,
    /// The commits, in the bundle's order.
    pub accounts: Vec<AccountFacts>,
    /// Instructions that ride along, after the commits.
    pub actions: Vec<Action>,
    /// Bytes of the accounts that actions and owner programs load, programs included.
    pub extra_loaded: u64,
}

impl BundleFacts {
    /// Refuses accounts that cannot take a commit.
    pub(super) fn check(&self, context: &PlanContext) -> Result<(), PlanError> {
        self.accounts.iter().try_for_each(|facts| facts.check(context))
    }
}

impl AccountFacts {
    /// Whether this very commit is the last one that landed.
    pub fn has_landed(&self) -> bool {
        self.record.is_some_and(|record| record.nonce != 0 && record.commit_id == self.commit_id.0)
    }

    /// Whether this very commit is staged.
    pub fn is_staged(&self) -> bool {
        self.record
            .is_some_and(|record| record.staged_nonce != 0 && record.staged_commit_id == self.commit_id.0)
    }

    /// The nonce that the commit takes.
    pub(super) fn nonce(&self) -> Result<Nonce, PlanError> {
        let last = self.record.map_or(0, |record| record.nonce);
        Nonce(last).next().map_err(|source| PlanError::Nonce { account: self.account, source })
    }

    /// The delegation that the commit is made for.
    pub(super) fn session(&self) -> u64 {
        self.record.map_or(0, |record| record.session)
    }

    /// By how much the account gets longer, in bytes.
    pub(super) fn growth(&self) -> usize {
        self.state.len().saturating_sub(self.len)
    }

    /// What must be moved to the account so that it is rent exempt at its new length.
    pub(super) fn rent_due(&self, context: &PlanContext) -> Lamports {
        if self.growth() == 0 {
            return Lamports(0);
        }
        context.rent.minimum(self.state.len() as u64).saturating_sub(self.lamports)
    }

    /// The record, if the account is delegated to the authority.
    pub(super) fn delegation(&self, context: &PlanContext) -> Result<delegation::Delegation, PlanError> {
        let account = self.account;
        let owner = self.owner.ok_or(PlanError::NoAccount(account))?;
        let record = self.record.filter(|record| record.state == STATE_DELEGATED && owner == delegation::ID);
        let record = record.ok_or(PlanError::NotDelegated { account, owner })?;
        if record.authority != context.authority {
            let (authority, ours) = (record.authority, context.authority);
            return Err(PlanError::WrongAuthority { account, authority, ours });
        }
        Ok(record)
    }

    fn check(&self, context: &PlanContext) -> Result<(), PlanError> {
        if self.delegation(context)?.staged_nonce != 0 {
            return Err(PlanError::Staged(self.account));
        }
        self.nonce().map(drop)
    }
}
