//! What tables there are.

use solana_address::Address;
use solana_signer::Signer;

use super::{
    Tables,
    onchain::{self, COOL_DOWN_SLOTS},
};
use crate::{
    chain::Chain,
    engine::EngineError,
    types::{Lamports, TableOrigin, TableStatus},
};

/// A lookup table, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// Its address.
    pub address: Address,
    /// Where it came from.
    pub origin: TableOrigin,
    /// Where it stands.
    pub state: TableState,
    /// How many addresses are in it.
    pub entries: u64,
    /// How many reservations of addresses in it there are.
    pub references: u64,
    /// What it holds: comes back when it is closed.
    pub lamports: Lamports,
}

/// Where a lookup table stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// Recorded, and not on chain yet.
    Creating,
    /// In use, or ready to be.
    Active,
    /// It can be used, and neither be extended nor closed, by anyone.
    Frozen,
    /// It is to be deactivated and closed.
    Closing,
    /// Deactivated; its cool-down is not over.
    Deactivating {
        /// Since this slot.
        since: u64,
    },
    /// Deactivated, and likely to have cooled down.
    Closeable {
        /// Deactivated in this slot.
        since: u64,
    },
    /// Not on chain any more.
    Closed,
}

impl TableState {
    /// The name that the output uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Active => "active",
            Self::Frozen => "frozen",
            Self::Closing => "closing",
            Self::Deactivating { .. } => "deactivating",
            Self::Closeable { .. } => "closeable",
            Self::Closed => "closed",
        }
    }

    /// When it was deactivated, if it is still there.
    pub const fn deactivated_since(self) -> Option<u64> {
        match self {
            Self::Deactivating { since } | Self::Closeable { since } => Some(since),
            _ => None,
        }
    }
}

impl<C: Chain> Tables<C> {
    /// All tables that the store knows, as they are on chain now, in the order in which it came to know them.
    ///
    /// # Errors
    /// [`EngineError`] if the store or the chain failed.
    pub async fn list(&self) -> Result<Vec<TableReport>, EngineError> {
        let tables = self.stored().await?;
        let slot = self.inner.chain.slot().await?;
        let addresses: Vec<Address> = tables.iter().map(|table| table.address).collect();
        let accounts = self.inner.chain.accounts(&addresses).await?;
        let report = tables.into_iter().zip(accounts).map(|(known, account)| {
            let table = onchain::update(known, account.as_ref(), slot, false).stored;
            let is_creating = table.status == TableStatus::Creating;
            let state = match (table.status, table.deactivation_slot) {
                _ if account.is_none() && !is_creating => TableState::Closed,
                (TableStatus::Deactivating, Some(since)) => {
                    let cool = slot > since.saturating_add(COOL_DOWN_SLOTS);
                    if cool { TableState::Closeable { since } } else { TableState::Deactivating { since } }
                }
                (TableStatus::Active, _) if table.closing => TableState::Closing,
                (TableStatus::Active, _) => TableState::Active,
                (TableStatus::Frozen, _) => TableState::Frozen,
                (TableStatus::Creating, _) => TableState::Creating,
                (TableStatus::Closed | TableStatus::Deactivating, _) => TableState::Closed,
            };
            let references = if state == TableState::Closed { 0 } else { table.references };
            TableReport {
                address: table.address,
                origin: table.origin,
                state,
                entries: table.entries.len() as u64,
                references,
                lamports: table.lamports,
            }
        });
        Ok(report.collect())
    }

    /// Looks on chain for tables of the authority that the store does not know: an earlier run may have left them, with a
    /// store that is lost. Returns those. They are listed and can be closed; no transaction uses them, and none is closed
    /// unless that is asked for, since another process may need it.
    ///
    /// # Errors
    /// [`EngineError`] if the store or the chain failed: not every node lets one look for accounts.
    pub async fn discover(&self) -> Result<Vec<Address>, EngineError> {
        let mut work = self.inner.work.lock().await;
        self.reconcile_with(&mut work).await?;
        let authority = self.inner.signers.authority.pubkey();
        let mut found: Vec<Address> = Vec::new();
        for (table, _) in self.inner.chain.tables_of(&authority).await? {
            if !self.book().knows(&table) {
                self.inner.store.table_discovered(authority, table).await?;
                found.push(table);
            }
        }
        self.observe(|table| found.contains(&table.address), &[]).await?;
        Ok(found)
    }
}
