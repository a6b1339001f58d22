//! Address lookup tables: what is in them, for whom, and every transaction that was signed for them.

use solana_address::Address;
use solana_signature::Signature;

use super::{
    Store, StoreError, TransactionOutcome,
    sql::{Durability, Row, Sql, params},
    write::{now_ms, outcome_columns},
};
use crate::types::{BundleKey, Lamports, TableHolder, TableOrigin, TableStatus, TableStep, UnknownStatus};

/// A lookup table as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTable {
    /// Its address.
    pub address: Address,
    /// Where it came from.
    pub origin: TableOrigin,
    /// Where it stands, as far as was seen.
    pub status: TableStatus,
    /// Whether it is to be deactivated and closed as soon as that can be done.
    pub closing: bool,
    /// Since when it is on its way out.
    pub deactivation_slot: Option<u64>,
    /// What it held when it was seen last.
    pub lamports: Lamports,
    /// A slot at which it was not on chain; it may have been there before, or may still come.
    pub absent_since_slot: Option<u64>,
    /// Since when nobody needs an address in it, in milliseconds since 1970.
    pub unused_since_ms: Option<i64>,
    /// The addresses in it.
    pub entries: Vec<Address>,
    /// How many reservations of addresses in it there are.
    pub references: u64,
}

/// What was seen of a lookup table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTable {
    /// Its address.
    pub address: Address,
    /// Where it stands.
    pub status: TableStatus,
    /// Since when it is on its way out.
    pub deactivation_slot: Option<u64>,
    /// What it holds.
    pub lamports: Lamports,
    /// At which slot it was first not there, if it was not.
    pub absent_since_slot: Option<u64>,
    /// The addresses in it; the store keeps those it knows already.
    pub entries: Vec<Address>,
}

/// A transaction of a lookup table that is about to be sent, or whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableTransaction {
    /// The table.
    pub table: Address,
    /// What it does to it.
    pub step: TableStep,
    /// Its first signature.
    pub signature: Signature,
    /// When it expires.
    pub last_valid_block_height: u64,
    /// The whole transaction on the wire.
    pub wire: Vec<u8>,
}

impl Store {
    /// The lookup tables of an authority, in the order in which the store came to know them.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn tables(&self, authority: Address) -> Result<Vec<StoredTable>, StoreError> {
        self.readers.run("read lookup tables", move |sql| tables(sql, &authority)).await
    }

    /// Records a lookup table together with the transaction that is going to make it.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written, or there is one at that address.
    pub async fn table_planned(
        &self,
        authority: Address,
        create: TableTransaction,
    ) -> Result<(), StoreError> {
        let work = move |sql: &dyn Sql| {
            insert(sql, &create.table, &authority, TableOrigin::Created)?;
            record(sql, &[create])
        };
        self.writer.run("record a lookup table", Durability::Power, work).await
    }

    /// Records a lookup table that was found on chain; one that the store knows stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn table_discovered(&self, authority: Address, table: Address) -> Result<(), StoreError> {
        let work = move |sql: &dyn Sql| insert(sql, &table, &authority, TableOrigin::Discovered);
        self.writer.run("record a lookup table", Durability::Process, work).await
    }

    /// Records transactions of lookup tables before they are sent.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be written.
    pub async fn table_signed(&self, transactions: Vec<TableTransaction>) -> Result<(), StoreError> {
        let work = move |sql: &dyn Sql| record(sql, &transactions);
        self.writer.run("record transactions of lookup tables", Durability::Power, work).await
    }

    /// Records what became of a lookup table's transaction.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn table_settled(
        &self,
        signature: Signature,
        outcome: TransactionOutcome,
    ) -> Result<(), StoreError> {
        let work = move |sql: &dyn Sql| settled(sql, signature, &outcome);
        self.writer.run("record an outcome", Durability::Process, work).await
    }

    /// The transactions of an authority's lookup tables whose outcome is unknown, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn open_table_transactions(
        &self,
        authority: Address,
    ) -> Result<Vec<TableTransaction>, StoreError> {
        self.readers.run("read transactions", move |sql| open_transactions(sql, &authority)).await
    }

    /// Records what was seen of lookup tables.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn tables_seen(&self, seen: Vec<SeenTable>) -> Result<(), StoreError> {
        let work = move |sql: &dyn Sql| {
            seen.iter().try_for_each(|table| seen_one(sql, table))?;
            note_use(sql)
        };
        self.writer.run("record what lookup tables hold", Durability::Process, work).await
    }

    /// Marks a lookup table as one to be closed, with `unless_used` only if no address in it is reserved. Tells whether
    /// it is marked.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn table_closing(&self, table: Address, unless_used: bool) -> Result<bool, StoreError> {
        // What upkeep marks it finds again; what was asked for it does not.
        let durability = if unless_used { Durability::Process } else { Durability::Power };
        let work = move |sql: &dyn Sql| closing(sql, &table, unless_used);
        self.writer.run("mark a lookup table", durability, work).await
    }

    /// Reserves addresses for a holder, beside those it has. What it has already counts once.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written, or the holder is a bundle that the store does not know.
    pub async fn reserve_keys(&self, holder: TableHolder, keys: Vec<Address>) -> Result<(), StoreError> {
        let (durability, work) = (durability(&holder), move |sql: &dyn Sql| reserve(sql, &holder, &keys));
        self.writer.run("reserve addresses in lookup tables", durability, work).await
    }

    /// Gives up all that a holder has reserved.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn release_keys(&self, holder: TableHolder) -> Result<(), StoreError> {
        let (durability, work) = (durability(&holder), move |sql: &dyn Sql| release(sql, &holder).map(drop));
        self.writer.run("release addresses in lookup tables", durability, work).await
    }

    /// Gives up what bundles have reserved that nothing is to be done for: a process that died may not have come to it.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn release_ended(&self) -> Result<(), StoreError> {
        let work = |sql: &dyn Sql| {
            sql.execute(RELEASE_ENDED, &[])?;
            note_use(sql)
        };
        self.writer.run("release addresses in lookup tables", Durability::Process, work).await
    }
}

/// What a bundle reserves it reserves again when it goes on; who reserves ahead of time has been told that it is done.
const fn durability(holder: &TableHolder) -> Durability {
    match holder {
        TableHolder::Bundle(_) => Durability::Process,
        TableHolder::Named(_) => Durability::Power,
    }
}

fn corrupt(what: &'static str) -> impl Fn(UnknownStatus) -> StoreError {
    move |unknown| StoreError::Corrupt { what, found: unknown.0 }
}

/// Whose a reservation is, in its row: one of the two.
fn columns(holder: &TableHolder) -> (Option<u64>, Option<&str>) {
    match holder {
        TableHolder::Bundle(BundleKey(key)) => (Some(*key), None),
        TableHolder::Named(name) => (None, Some(name)),
    }
}

pub(super) const TABLES: &str = "SELECT id, address, origin, status, closing, deactivation_slot, lamports,
            absent_since_slot, unused_since_ms,
            (SELECT count(*) FROM lookup_reservation_keys AS keys
             WHERE keys.address IN
                 (SELECT address FROM lookup_table_entries WHERE lookup_table = lookup_tables.id))
     FROM lookup_tables WHERE authority = ?1 ORDER BY id";
pub(super) const ENTRIES: &str =
    "SELECT address FROM lookup_table_entries WHERE lookup_table = ?1 ORDER BY position";
pub(super) const OPEN_TRANSACTIONS: &str = "SELECT address, step, signature, last_valid_block_height, wire
     FROM lookup_table_transactions AS transactions JOIN lookup_tables ON lookup_table = lookup_tables.id
     WHERE transactions.status = 'signed' AND authority = ?1 ORDER BY transactions.id";
/// Reservations are few, bundles are not.
pub(super) const RELEASE_ENDED: &str = "DELETE FROM lookup_reservations
     WHERE bundle IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM bundles WHERE bundles.id = lookup_reservations.bundle
         AND status IN ('accepted', 'preparing', 'committing', 'finalizing'))";

fn tables(sql: &dyn Sql, authority: &Address) -> Result<Vec<StoredTable>, StoreError> {
    let table = |row: &Row| {
        Ok(StoredTable {
            address: row.address(1)?,
            origin: row.text(2)?.parse().map_err(corrupt("a table's origin"))?,
            status: row.text(3)?.parse().map_err(corrupt("a table's status"))?,
            closing: row.flag(4)?,
            deactivation_slot: row.optional_number(5)?,
            lamports: Lamports(row.number(6)?),
            absent_since_slot: row.optional_number(7)?,
            unused_since_ms: row.optional_int(8)?,
            entries: entries(sql, row.int(0)?)?,
            references: row.number(9)?,
        })
    };
    sql.query(TABLES, params![authority])?.iter().map(table).collect()
}

fn entries(sql: &dyn Sql, table: i64) -> Result<Vec<Address>, StoreError> {
    sql.query(ENTRIES, params![table])?.iter().map(|row| row.address(0)).collect()
}

fn insert(
    sql: &dyn Sql,
    table: &Address,
    authority: &Address,
    origin: TableOrigin,
) -> Result<(), StoreError> {
    // The same address twice is a table that is known, and for one of ours the caller's mistake.
    let conflict = if origin == TableOrigin::Discovered { "ON CONFLICT (address) DO NOTHING" } else { "" };
    let insert =
        "INSERT INTO lookup_tables (address, authority, origin, status) VALUES (?1, ?2, ?3, 'creating')";
    sql.execute(&format!("{insert} {conflict}"), params![table, authority, origin.as_str()])?;
    Ok(())
}

fn record(sql: &dyn Sql, transactions: &[TableTransaction]) -> Result<(), StoreError> {
    let rows = transactions.iter().map(|transaction| {
        let TableTransaction { table, step, signature, last_valid_block_height, wire } = transaction;
        let (table, step, wire) = (table.into(), step.as_str().into(), wire.as_slice().into());
        vec![table, step, signature.into(), (*last_valid_block_height).into(), wire]
    });
    // The same step on the same blockhash is the same transaction: it is known already.
    sql.query_each(
        "INSERT INTO lookup_table_transactions
             (lookup_table, step, signature, last_valid_block_height, status, wire)
         SELECT id, ?2, ?3, ?4, 'signed', ?5 FROM lookup_tables WHERE address = ?1
         ON CONFLICT (signature) DO NOTHING",
        &rows.collect::<Vec<_>>(),
    )?;
    Ok(())
}

fn settled(sql: &dyn Sql, signature: Signature, outcome: &TransactionOutcome) -> Result<(), StoreError> {
    let (status, slot, error) = outcome_columns(outcome);
    sql.execute(
        "UPDATE lookup_table_transactions SET status = ?2, slot = ?3, error = ?4, wire = NULL
         WHERE signature = ?1",
        params![&signature, status.as_str(), slot, error],
    )?;
    Ok(())
}

fn open_transactions(sql: &dyn Sql, authority: &Address) -> Result<Vec<TableTransaction>, StoreError> {
    let nothing = || StoreError::Corrupt { what: "a transaction", found: "nothing".to_owned() };
    let transaction = |mut row: Row| {
        Ok(TableTransaction {
            table: row.address(0)?,
            step: row.text(1)?.parse().map_err(corrupt("a table's step"))?,
            signature: row.signature(2)?,
            last_valid_block_height: row.number(3)?,
            wire: row.take_bytes(4)?.ok_or_else(nothing)?,
        })
    };
    sql.query(OPEN_TRANSACTIONS, params![authority])?.into_iter().map(transaction).collect()
}

fn seen_one(sql: &dyn Sql, seen: &SeenTable) -> Result<(), StoreError> {
    let SeenTable { address, status, deactivation_slot, lamports, absent_since_slot, entries } = seen;
    let row = sql.first(
        "UPDATE lookup_tables
         SET status = ?2, deactivation_slot = ?3, lamports = ?4, absent_since_slot = ?5
         WHERE address = ?1 RETURNING id",
        params![address, status.as_str(), *deactivation_slot, lamports.0, *absent_since_slot],
    )?;
    let Some(row) = row else { return Ok(()) };
    let table = row.int(0)?;
    let count = "SELECT count(*) FROM lookup_table_entries WHERE lookup_table = ?1";
    let known = sql.first(count, params![table])?.map_or(Ok(0), |row| row.number(0))?;
    let new = entries.iter().zip(0i64..).skip(known as usize);
    let rows = new.map(|(entry, position)| vec![table.into(), position.into(), entry.into()]);
    sql.query_each(
        "INSERT INTO lookup_table_entries (lookup_table, position, address) VALUES (?1, ?2, ?3)",
        &rows.collect::<Vec<_>>(),
    )?;
    Ok(())
}

/// Whether an address in the table of the row at hand is reserved.
const IN_USE: &str = "EXISTS (
    SELECT 1 FROM lookup_table_entries AS entries JOIN lookup_reservation_keys AS keys USING (address)
    WHERE entries.lookup_table = lookup_tables.id)";

/// Notes since when tables are unused.
fn note_use(sql: &dyn Sql) -> Result<(), StoreError> {
    sql.execute(
        &format!(
            "UPDATE lookup_tables
             SET unused_since_ms = CASE WHEN {IN_USE} THEN NULL ELSE coalesce(unused_since_ms, ?1) END
             WHERE status <> 'closed'"
        ),
        params![now_ms()],
    )?;
    Ok(())
}

fn closing(sql: &dyn Sql, table: &Address, unless_used: bool) -> Result<bool, StoreError> {
    let marked = sql.execute(
        &format!(
            "UPDATE lookup_tables SET closing = 1
             WHERE address = ?1 AND (closing = 1 OR ?2 = 0 OR NOT {IN_USE})"
        ),
        params![table, i64::from(unless_used)],
    )?;
    Ok(marked > 0)
}

fn reserve(sql: &dyn Sql, holder: &TableHolder, keys: &[Address]) -> Result<(), StoreError> {
    let (bundle, name) = columns(holder);
    sql.execute(
        "INSERT INTO lookup_reservations (bundle, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        params![bundle, name],
    )?;
    let row = sql
        .first("SELECT id FROM lookup_reservations WHERE bundle = ?1 OR name = ?2", params![bundle, name])?;
    let nothing = || StoreError::Corrupt { what: "a reservation", found: "nothing".to_owned() };
    let reservation = row.ok_or_else(nothing)?.int(0)?;
    let rows = keys.iter().map(|key| vec![reservation.into(), key.into()]);
    sql.query_each(
        "INSERT INTO lookup_reservation_keys (reservation, address) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        &rows.collect::<Vec<_>>(),
    )?;
    note_use(sql)
}

/// The addresses first, so that they are counted. `NULL` is equal to nothing, so only one of the columns finds a row.
pub(super) const RELEASE: [&str; 2] = [
    "DELETE FROM lookup_reservation_keys WHERE reservation IN (
         SELECT id FROM lookup_reservations WHERE bundle = ?1 OR name = ?2)",
    "DELETE FROM lookup_reservations WHERE bundle = ?1 OR name = ?2",
];

/// Gives up what a holder has reserved. Returns how many rows that removes.
pub(super) fn release(sql: &dyn Sql, holder: &TableHolder) -> Result<u64, StoreError> {
    let (bundle, name) = columns(holder);
    let mut rows = 0;
    for statement in RELEASE {
        rows += sql.execute(statement, params![bundle, name])?;
    }
    if rows > 0 {
        note_use(sql)?;
    }
    Ok(rows)
}
