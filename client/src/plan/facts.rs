//! What planning must know.

use std::sync::Arc;

use committor_sdk::{chunk_buffer, delegation};
use solana_address::Address;

use crate::types::{CommitId, Lamports, Nonce, TransactionVersion};

use super::PlanError;

/// `state` of a record whose account is delegated.
const STATE_DELEGATED: u8 = 2;

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

/// What is the same for all bundles.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext {
    /// Pays fees and rent. Signs.
    pub payer: Address,
    /// The authority that the accounts are delegated to. Signs.
    pub authority: Address,
    /// The transaction format to use.
    pub version: TransactionVersion,
    /// Rent on this cluster.
    pub rent: RentSchedule,
}

/// A buffer that an earlier attempt left.
#[derive(Clone, Debug)]
pub struct BufferFacts {
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
    /// Lamports at the buffer's address, whether there is a buffer or not.
    pub buffer_lamports: Lamports,
    /// The buffer of this commit, if there is one already.
    pub buffer: Option<BufferFacts>,
}

/// A bundle, and what the chain says about it.
#[derive(Clone, Debug)]
pub struct BundleFacts {
    /// The commits, in the bundle's order.
    pub accounts: Vec<AccountFacts>,
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

    fn check(&self, context: &PlanContext) -> Result<(), PlanError> {
        let account = self.account;
        let owner = self.owner.ok_or(PlanError::NoAccount(account))?;
        let record = self.record.filter(|record| record.state == STATE_DELEGATED && owner == delegation::ID);
        let record = record.ok_or(PlanError::NotDelegated { account, owner })?;
        if record.authority != context.authority {
            let (authority, ours) = (record.authority, context.authority);
            return Err(PlanError::WrongAuthority { account, authority, ours });
        }
        if record.staged_nonce != 0 {
            return Err(PlanError::Staged(account));
        }
        self.nonce().map(drop)
    }
}
