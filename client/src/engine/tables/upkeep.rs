//! Bringing the book in line with the chain, and tables that nobody needs to their end.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::{StreamExt, stream};
use solana_address::Address;
use solana_address_lookup_table_interface::instruction::{close_lookup_table, deactivate_lookup_table};
use solana_instruction::Instruction;
use solana_signer::Signer;

use super::{
    TableError, Tables, Work,
    onchain::{self, COOL_DOWN_SLOTS},
};
use crate::{
    chain::{Chain, Landed},
    engine::EngineError,
    store::{SeenTable, StoredTable, TableTransaction},
    types::{TableOrigin, TableStatus, TableStep},
};

/// Tables that are worked on at a time.
const TABLES_IN_FLIGHT: usize = 16;

/// What one round of upkeep did.
#[derive(Debug, Default)]
pub struct Upkeep {
    /// Tables that were deactivated. They can be closed after their cool-down.
    pub deactivated: Vec<Address>,
    /// Tables that were closed. Their rent is the payer's again.
    pub closed: Vec<Address>,
    /// Tables for which that failed, and why; the next round tries again.
    pub failed: Vec<(Address, EngineError)>,
}

impl<C: Chain> Tables<C> {
    /// Reads the chain anew: whether tables were extended, deactivated or closed by someone else. Sends what an earlier
    /// life of this process had signed and not seen landing. The first use of the manager does it by itself; call it when
    /// a transaction fails because of a table.
    ///
    /// # Errors
    /// [`EngineError`] if the store or the chain failed.
    pub async fn reconcile(&self) -> Result<(), EngineError> {
        self.reconcile_with(&mut *self.inner.work.lock().await).await
    }

    /// One round of upkeep: deactivates the tables that nobody needed for [`super::TableSettings::idle_time`], and closes
    /// those that have cooled down.
    ///
    /// # Errors
    /// [`EngineError`] if the store or the chain failed; what failed for single tables is in the answer.
    pub async fn maintain(&self) -> Result<Upkeep, EngineError> {
        self.upkeep(self.inner.settings.idle_time).await
    }

    /// As [`Self::maintain`], for all tables that nobody needs now.
    ///
    /// # Errors
    /// As [`Self::maintain`].
    pub async fn close_unused(&self) -> Result<Upkeep, EngineError> {
        self.upkeep(Duration::ZERO).await
    }

    /// Deactivates these tables, needed or not, and closes those that have cooled down. Addresses that are needed go into
    /// other tables at their next reservation.
    ///
    /// # Errors
    /// [`TableError::Unknown`] if one is no table that this manager knows, also after [`Self::discover`]; nothing is done
    /// then. Else as [`Self::maintain`].
    pub async fn close(&self, tables: &[Address]) -> Result<Upkeep, EngineError> {
        let mut work = self.inner.work.lock().await;
        self.reconcile_with(&mut work).await?;
        if let Some(unknown) = tables.iter().find(|table| !self.book().knows(table)) {
            return Err(TableError::Unknown(*unknown).into());
        }
        work.in_doubt = true;
        for table in tables {
            self.inner.store.table_closing(*table, false).await?;
            self.book().set_closing(table, true);
        }
        self.sweep(&mut work).await
    }

    /// Waits until every table that is to be closed is closed: that takes a cool-down of some 512 slots.
    ///
    /// # Errors
    /// [`EngineError`] if the store or the chain failed, or a table can't be closed.
    pub async fn closed(&self) -> Result<Vec<Address>, EngineError> {
        let mut closed = Vec::new();
        loop {
            let upkeep = {
                let mut work = self.inner.work.lock().await;
                if work.in_doubt {
                    self.reconcile_with(&mut work).await?;
                }
                self.sweep(&mut work).await?
            };
            closed.extend(upkeep.closed);
            let failed = upkeep.failed.into_iter().map(|(_, error)| error);
            if let Some(error) = failed.into_iter().find(|error| !error.is_transient() || error.is_outage()) {
                return Err(error);
            }
            let tables = self.stored().await?;
            let slots = tables.iter().filter(|table| is_leaving(table));
            let Some(slot) = slots.map(|table| table.deactivation_slot.unwrap_or(0)).min() else {
                return Ok(closed);
            };
            let now = self.inner.chain.slot().await?;
            self.wait_past(now.max(slot.saturating_add(COOL_DOWN_SLOTS))).await?;
        }
    }

    async fn upkeep(&self, idle_time: Duration) -> Result<Upkeep, EngineError> {
        let mut work = self.inner.work.lock().await;
        self.reconcile_with(&mut work).await?;
        work.in_doubt = true;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let idle = |since: i64| {
            let since = Duration::from_millis(u64::try_from(since).unwrap_or(0));
            // A clock that was set back makes no table idle.
            now.checked_sub(since).is_some_and(|idle| idle >= idle_time)
        };
        for table in self.stored().await? {
            let ours = table.origin == TableOrigin::Created && table.status == TableStatus::Active;
            if ours && !table.closing && table.unused_since_ms.is_some_and(idle) {
                // First no new reservation may count on it; then those that came before are looked for.
                self.book().set_closing(&table.address, true);
                if !self.inner.store.table_closing(table.address, true).await? {
                    self.book().set_closing(&table.address, false);
                }
            }
        }
        self.sweep(&mut work).await
    }

    /// Takes each table that is to be closed one step further.
    async fn sweep(&self, work: &mut Work) -> Result<Upkeep, EngineError> {
        work.in_doubt = true;
        let slot = self.inner.chain.slot().await?;
        let (authority, payer) = (self.inner.signers.authority.pubkey(), self.inner.signers.payer.pubkey());
        let step = |table: &StoredTable| match (table.status, table.deactivation_slot) {
            (TableStatus::Active, _) if table.closing => Some(TableStep::Deactivate),
            (TableStatus::Deactivating, Some(since)) if slot > since.saturating_add(COOL_DOWN_SLOTS) => {
                Some(TableStep::Close)
            }
            _ => None,
        };
        let tables = self.stored().await?;
        let steps = tables.iter().filter(|table| is_leaving(table));
        let steps: Vec<_> = steps
            .filter_map(|table| Some((table.address, step(table)?)))
            .map(|(table, step)| {
                let instruction = match step {
                    TableStep::Deactivate => deactivate_lookup_table(table, authority),
                    _ => close_lookup_table(table, authority, payer),
                };
                self.take(table, step, instruction)
            })
            .collect();
        let results: Vec<_> = stream::iter(steps).buffer_unordered(TABLES_IN_FLIGHT).collect().await;
        let mut upkeep = Upkeep::default();
        let touched: BTreeSet<Address> = results.iter().map(|(table, ..)| *table).collect();
        for (table, step, result) in results {
            match result {
                Ok(_) if step == TableStep::Deactivate => upkeep.deactivated.push(table),
                Ok(_) => upkeep.closed.push(table),
                Err(error) => upkeep.failed.push((table, error)),
            }
        }
        self.observe(|table| touched.contains(&table.address), &upkeep.closed).await?;
        // What became of a transaction that the chain did not tell about, the next use asks.
        work.in_doubt = upkeep.failed.iter().any(|(_, error)| error.is_outage());
        Ok(upkeep)
    }

    async fn take(
        &self,
        table: Address,
        step: TableStep,
        instruction: Instruction,
    ) -> (Address, TableStep, Result<Landed, EngineError>) {
        (table, step, self.transact(table, step, vec![instruction]).await)
    }

    async fn land_recorded(
        &self,
        recorded: TableTransaction,
    ) -> (TableTransaction, Result<Landed, EngineError>) {
        let landed = self.land_again(&recorded).await;
        (recorded, landed)
    }

    pub(super) async fn reconcile_with(&self, work: &mut Work) -> Result<(), EngineError> {
        work.in_doubt = true;
        let store = &self.inner.store;
        store.release_ended().await?;
        let open = store.open_table_transactions(self.inner.signers.authority.pubkey()).await?;
        let landings: Vec<_> = open.into_iter().map(|recorded| self.land_recorded(recorded)).collect();
        let results: Vec<_> = stream::iter(landings).buffer_unordered(TABLES_IN_FLIGHT).collect().await;
        let mut closed = Vec::new();
        for (recorded, result) in results {
            match result {
                Ok(_) if recorded.step == TableStep::Close => closed.push(recorded.table),
                Ok(_) => (),
                // Whoever wants what it was for, does it anew.
                Err(EngineError::Table(error)) if !error.is_outage() => {
                    tracing::info!(table = %recorded.table, %error, "a transaction of an earlier run did not land");
                }
                Err(error) => return Err(error),
            }
        }
        self.observe(|table| table.status != TableStatus::Closed, &closed).await?;
        self.book().loaded = true;
        work.in_doubt = false;
        Ok(())
    }

    /// Reads tables back from the chain, and puts them into the store and the book. `closed` are those that a transaction
    /// which landed has closed.
    pub(super) async fn observe(
        &self,
        which: impl Fn(&StoredTable) -> bool,
        closed: &[Address],
    ) -> Result<(), EngineError> {
        let (look, keep): (Vec<_>, Vec<_>) = self.stored().await?.into_iter().partition(|table| which(table));
        // A table that is closed stays in the book for its address alone.
        for table in keep.into_iter().filter(|table| table.status == TableStatus::Closed) {
            if !self.book().knows(&table.address) {
                self.book().put(onchain::update(table, None, 0, true));
            }
        }
        if look.is_empty() {
            return Ok(());
        }
        // The slot first: what is seen below is not older.
        let slot = self.inner.chain.slot().await?;
        let addresses: Vec<Address> = look.iter().map(|table| table.address).collect();
        let accounts = self.inner.chain.accounts(&addresses).await?;
        let tables: Vec<_> = look
            .into_iter()
            .zip(&accounts)
            .map(|(known, account)| {
                let closed = closed.contains(&known.address);
                onchain::update(known, account.as_ref(), slot, closed)
            })
            .collect();
        let seen = tables.iter().map(|table| SeenTable {
            address: table.stored.address,
            status: table.stored.status,
            deactivation_slot: table.stored.deactivation_slot,
            lamports: table.stored.lamports,
            absent_since_slot: table.stored.absent_since_slot,
            entries: table.stored.entries.clone(),
        });
        self.inner.store.tables_seen(seen.collect()).await?;
        let mut book = self.book();
        tables.into_iter().for_each(|table| book.put(table));
        Ok(())
    }
}

/// Whether a table is to be closed. One of this store's that is being deactivated is, whoever did that; one that was only
/// found on chain is somebody else's to close, unless it was asked for.
fn is_leaving(table: &StoredTable) -> bool {
    let deactivating = table.status == TableStatus::Deactivating && table.origin == TableOrigin::Created;
    let on_chain = table.absent_since_slot.is_none()
        && !matches!(table.status, TableStatus::Closed | TableStatus::Frozen | TableStatus::Creating);
    on_chain && (table.closing || deactivating)
}
