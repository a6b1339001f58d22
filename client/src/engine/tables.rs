//! Address lookup tables for v0 transactions: makes them, fills them, tells which of them serve, and closes them.
//!
//! Addresses are reserved by a holder ([`TableHolder`]); what is reserved by anyone stays in tables. One task at a time
//! changes tables (`extend`, `upkeep`); whoever waits for its turn finds that its addresses went in with those of another
//! one. What is known is in memory (`book`), in the store, and on chain, and the chain is right: tables are read back
//! before and after every change. Each transaction is recorded before it is sent, and each table before its first one, so
//! that no rent is lost to a crash.

mod book;
mod error;
mod extend;
mod list;
mod onchain;
mod transactions;
mod upkeep;

use std::{
    collections::BTreeSet,
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use solana_address::Address;
use solana_address_lookup_table_interface::state::LOOKUP_TABLE_MAX_ADDRESSES;
use solana_signer::Signer;
use tokio::time::Instant;

pub use error::TableError;
pub use list::{TableReport, TableState};
pub use upkeep::Upkeep;

use super::{EngineError, Signers};
use crate::{
    chain::{Chain, ChainError},
    store::{Store, StoredTable},
    types::{LookupTable, PriorityFee, TableHolder},
};
use book::Book;

/// How lookup tables are managed.
#[derive(Clone, Copy, Debug)]
pub struct TableSettings {
    /// For how long nobody must have needed a table before [`Tables::maintain`] deactivates it.
    pub idle_time: Duration,
    /// How often the slot is asked for while one is waited for.
    pub slot_poll_interval: Duration,
    /// For how long the cluster may make no slot before whoever waits for one is told.
    pub slot_patience: Duration,
    /// How often a reservation tries to get its addresses into tables. A node that is out of reach ends it at once: the
    /// caller knows how long to wait.
    pub attempts: u32,
    /// Time between two rounds of upkeep in [`Tables::run`].
    pub upkeep_interval: Duration,
    /// What transactions that make, fill and close tables pay on top of the base fee. A percentile is of what transactions
    /// that wrote to the same table paid, or for a plan, to the bundle's accounts.
    pub priority_fee: PriorityFee,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self {
            idle_time: Duration::from_secs(3_600),
            slot_poll_interval: Duration::from_millis(100),
            slot_patience: Duration::from_secs(60),
            attempts: 5,
            upkeep_interval: Duration::from_secs(60),
            priority_fee: PriorityFee::default(),
        }
    }
}

/// The lookup tables of one authority. Cheap to clone.
///
/// Needs no start: it reads the store and the chain when it is used first.
pub struct Tables<C> {
    inner: Arc<Inner<C>>,
}

impl<C> Clone for Tables<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<C> {
    chain: Arc<C>,
    store: Store,
    signers: Signers,
    settings: TableSettings,
    /// Never held across a wait.
    book: Mutex<Book>,
    /// Held by whoever changes tables.
    work: tokio::sync::Mutex<Work>,
    /// Held by whoever asks for the slot until it has come, so that not everyone does.
    slots: tokio::sync::Mutex<()>,
    /// Addresses whose reservations wait for their turn: who has it takes them along.
    wanted: Mutex<BTreeSet<Address>>,
    /// Likewise, sets of addresses that are each to be in one table.
    wanted_together: Mutex<Vec<BTreeSet<Address>>>,
    /// Held as long as this process works on the store, if nothing else sees to that.
    _lock: Option<File>,
}

/// What the one who changes tables has to know.
struct Work {
    /// Whether a change may have been interrupted, so that neither book nor store can be relied on.
    in_doubt: bool,
}

impl<C: Chain> Tables<C> {
    /// A manager of the tables of the signers' authority; the payer pays for them, and gets their rent back.
    pub fn new(chain: Arc<C>, store: Store, signers: Signers, settings: TableSettings) -> Self {
        Self::with_lock(chain, store, signers, settings, None)
    }

    pub(super) fn with_lock(
        chain: Arc<C>,
        store: Store,
        signers: Signers,
        settings: TableSettings,
        lock: Option<File>,
    ) -> Self {
        let work = tokio::sync::Mutex::new(Work { in_doubt: true });
        let (book, wanted, wanted_together) = (Mutex::default(), Mutex::default(), Mutex::default());
        let slots = tokio::sync::Mutex::new(());
        Self {
            inner: Arc::new(Inner {
                chain,
                store,
                signers,
                settings,
                book,
                work,
                slots,
                wanted,
                wanted_together,
                _lock: lock,
            }),
        }
    }

    /// Reserves addresses for a holder, beside those that it has, and returns once transactions can use all of them:
    /// the tables that serve them. Those that are in tables already cost nothing, not even a wait.
    ///
    /// The reservation is durable, and counts once however often it is made. If this fails or is dropped, it stays, and can
    /// be made again or released.
    ///
    /// # Errors
    /// [`EngineError`] if the store or the chain failed; [`TableError`] if the addresses can't be brought into tables.
    pub async fn reserve(
        &self,
        holder: TableHolder,
        keys: &[Address],
    ) -> Result<Vec<LookupTable>, EngineError> {
        let keys: BTreeSet<Address> = keys.iter().copied().collect();
        self.load().await?;
        // Before anything is looked up: from here on no table that has them is closed for lack of use.
        self.inner.store.reserve_keys(holder, keys.iter().copied().collect()).await?;
        let attempts = self.inner.settings.attempts.max(1);
        for attempt in 1.. {
            let missing = self.book().missing(&keys);
            if missing.is_empty() {
                match self.until_usable(&keys).await? {
                    true => break,
                    // A table was lost meanwhile.
                    false => continue,
                }
            }
            if attempt > attempts {
                return Err(TableError::NoRoom { left: missing.len(), attempts }.into());
            }
            match self.bring_in(missing).await {
                Err(error) if error.is_transient() && !error.is_outage() && attempt < attempts => {
                    tracing::debug!(error = super::error::chain_of(&error), "trying lookup tables again");
                }
                result => result?,
            }
        }
        Ok(self.book().cover(&keys))
    }

    /// As [`Self::reserve`], in a single table: a transaction that is full to the last byte has no room to name another one.
    /// Addresses that lie scattered over several tables are put into one once more. More than one table can hold are
    /// reserved as by [`Self::reserve`].
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub async fn reserve_together(
        &self,
        holder: TableHolder,
        keys: &[Address],
    ) -> Result<Vec<LookupTable>, EngineError> {
        let wanted: BTreeSet<Address> = keys.iter().copied().collect();
        if wanted.len() > LOOKUP_TABLE_MAX_ADDRESSES {
            return self.reserve(holder, keys).await;
        }
        self.load().await?;
        self.inner.store.reserve_keys(holder, wanted.iter().copied().collect()).await?;
        let attempts = self.inner.settings.attempts.max(1);
        let mut attempt = 0;
        loop {
            let usable_after = self.book().together(&wanted);
            match usable_after {
                Some(None) => return Ok(self.book().cover(&wanted)),
                Some(Some(slot)) => {
                    let _turn = self.inner.slots.lock().await;
                    let now = self.wait_finalized_past(slot).await?;
                    self.book().reached(now);
                    continue;
                }
                None if attempt == attempts => {
                    return Err(TableError::NoRoom { left: wanted.len(), attempts }.into());
                }
                None => attempt += 1,
            }
            match self.bring_together(wanted.clone()).await {
                Err(error) if error.is_transient() && !error.is_outage() && attempt < attempts => {
                    tracing::debug!(error = super::error::chain_of(&error), "trying lookup tables again");
                }
                result => result?,
            }
        }
    }

    /// Reads store and chain, if that has not been done yet.
    async fn load(&self) -> Result<(), EngineError> {
        if !self.book().loaded {
            let mut work = self.inner.work.lock().await;
            if !self.book().loaded {
                self.reconcile_with(&mut work).await?;
            }
        }
        Ok(())
    }

    /// The tables that serve a set of addresses now, as few as a greedy choice finds, the most useful first. Addresses that
    /// are in none are simply not served. To rely on an address, reserve it. Before anything else was asked of this manager,
    /// it knows no tables: [`Self::reconcile`] first.
    pub fn tables_for(&self, keys: &[Address]) -> Vec<LookupTable> {
        self.book().cover(&keys.iter().copied().collect())
    }

    /// Gives up all that a holder has reserved. Costs no transaction: tables that nobody needs any more are closed in
    /// [`Self::maintain`].
    ///
    /// # Errors
    /// [`EngineError::Store`] if it could not be written.
    pub async fn release(&self, holder: TableHolder) -> Result<(), EngineError> {
        Ok(self.inner.store.release_keys(holder).await?)
    }

    /// Does the upkeep at once and then again and again, without end: for a task that ends when it is cancelled.
    pub async fn run(&self) {
        loop {
            match self.maintain().await {
                Ok(upkeep) => upkeep.failed.iter().for_each(|(table, error)| {
                    tracing::warn!(%table, error = super::error::chain_of(error), "a lookup table is tried again later");
                }),
                Err(error) => {
                    tracing::warn!(error = super::error::chain_of(&error), "lookup tables are looked after later");
                }
            }
            tokio::time::sleep(self.inner.settings.upkeep_interval).await;
        }
    }

    /// Has its turn at changing tables, with the addresses of all who wait for theirs.
    async fn bring_in(&self, missing: BTreeSet<Address>) -> Result<(), EngineError> {
        self.wanted().extend(&missing);
        let mut work = self.inner.work.lock().await;
        let mut batch = std::mem::take(&mut *self.wanted());
        batch.extend(missing);
        let missing = self.book().missing(&batch);
        if missing.is_empty() { Ok(()) } else { self.make_room(&mut work, &missing).await }
    }

    /// Has a set of addresses put into one table. Whose turn it is takes along the sets of all who wait for theirs.
    async fn bring_together(&self, keys: BTreeSet<Address>) -> Result<(), EngineError> {
        self.wanted_together().push(keys.clone());
        let mut work = self.inner.work.lock().await;
        let mut sets = std::mem::take(&mut *self.wanted_together());
        if !sets.contains(&keys) {
            sets.push(keys);
        }
        sets.retain(|keys| self.book().together(keys).is_none());
        if sets.is_empty() { Ok(()) } else { self.make_room_together(&mut work, &sets).await }
    }

    fn wanted_together(&self) -> MutexGuard<'_, Vec<BTreeSet<Address>>> {
        self.inner.wanted_together.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until transactions can use these addresses. `false` if one of them is in no table any more.
    async fn until_usable(&self, keys: &BTreeSet<Address>) -> Result<bool, EngineError> {
        if self.book().usable_after(keys).is_some() {
            let _turn = self.inner.slots.lock().await;
            loop {
                let Some(after) = self.book().usable_after(keys) else { break };
                let slot = self.wait_finalized_past(after).await?;
                self.book().reached(slot);
            }
        }
        Ok(self.book().missing(keys).is_empty())
    }

    /// Waits until the chain has got past a slot. Returns where it is.
    async fn wait_past(&self, slot: u64) -> Result<u64, EngineError> {
        self.wait_until_past(slot, || self.inner.chain.slot()).await
    }

    /// Waits until a slot after this one is finalized. Returns the last one that is.
    async fn wait_finalized_past(&self, slot: u64) -> Result<u64, EngineError> {
        self.wait_until_past(slot, || self.inner.chain.finalized_slot()).await
    }

    async fn wait_until_past<F>(&self, slot: u64, ask: impl Fn() -> F) -> Result<u64, EngineError>
    where
        F: Future<Output = Result<u64, ChainError>>,
    {
        let patience = self.inner.settings.slot_patience;
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let now = ask().await?;
            if now > slot {
                return Ok(now);
            }
            if now > last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > patience {
                return Err(TableError::Stalled { slot: last, after: patience }.into());
            }
            tokio::time::sleep(self.inner.settings.slot_poll_interval).await;
        }
    }

    /// The authority's tables as the store knows them.
    async fn stored(&self) -> Result<Vec<StoredTable>, EngineError> {
        Ok(self.inner.store.tables(self.inner.signers.authority.pubkey()).await?)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.inner.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeSet<Address>> {
        self.inner.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
