//! Address lookup tables: what is in them, for whom, and every transaction that was signed for them.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};
use solana_address::Address;
use solana_signature::Signature;

use super::{
    Store, StoreError, TransactionOutcome,
    read::{address, signature},
};
use crate::types::{
    Lamports, TableHolder, TableOrigin, TableStatus, TableStep, TransactionStatus, UnknownStatus,
};

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
        let work = move |sql: &Connection| {
            insert(sql, &create.table, &authority, TableOrigin::Created)?;
            record(sql, &create)
        };
        self.writer.run("record a lookup table", work).await
    }

    /// Records a lookup table that was found on chain; one that the store knows stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn table_discovered(&self, authority: Address, table: Address) -> Result<(), StoreError> {
        let work = move |sql: &Connection| insert(sql, &table, &authority, TableOrigin::Discovered);
        self.writer.run("record a lookup table", work).await
    }

    /// Records transactions of lookup tables before they are sent.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be written.
    pub async fn table_signed(&self, transactions: Vec<TableTransaction>) -> Result<(), StoreError> {
        let work =
            move |sql: &Connection| transactions.iter().try_for_each(|transaction| record(sql, transaction));
        self.writer.run("record transactions of lookup tables", work).await
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
        self.writer.run("record an outcome", move |sql| settled(sql, signature, &outcome)).await
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
        let work = move |sql: &Connection| {
            seen.iter().try_for_each(|table| seen_one(sql, table))?;
            note_use(sql)
        };
        self.writer.run("record what lookup tables hold", work).await
    }

    /// Marks a lookup table as one to be closed, with `unless_used` only if no address in it is reserved. Tells whether
    /// it is marked.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn table_closing(&self, table: Address, unless_used: bool) -> Result<bool, StoreError> {
        self.writer.run("mark a lookup table", move |sql| closing(sql, &table, unless_used)).await
    }

    /// Reserves addresses for a holder, beside those it has. What it has already counts once.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written, or the holder is a bundle that the store does not know.
    pub async fn reserve_keys(&self, holder: TableHolder, keys: Vec<Address>) -> Result<(), StoreError> {
        self.writer.run("reserve addresses in lookup tables", move |sql| reserve(sql, &holder, &keys)).await
    }

    /// Gives up all that a holder has reserved.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn release_keys(&self, holder: TableHolder) -> Result<(), StoreError> {
        let work = move |sql: &Connection| {
            let (bundle, name) = columns(&holder);
            sql.execute(
                "DELETE FROM lookup_reservations WHERE bundle IS ?1 AND name IS ?2",
                params![bundle, name],
            )?;
            note_use(sql)
        };
        self.writer.run("release addresses in lookup tables", work).await
    }

    /// Gives up what bundles have reserved that nothing is to be done for: a process that died may not have come to it.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    pub async fn release_ended(&self) -> Result<(), StoreError> {
        let work = |sql: &Connection| {
            sql.execute(
                "DELETE FROM lookup_reservations WHERE bundle IN (
                     SELECT id FROM bundles
                     WHERE status NOT IN ('accepted', 'preparing', 'committing', 'finalizing'))",
                [],
            )?;
            note_use(sql)
        };
        self.writer.run("release addresses in lookup tables", work).await
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

fn corrupt(what: &'static str) -> impl Fn(UnknownStatus) -> StoreError {
    move |unknown| StoreError::Corrupt { what, found: unknown.0 }
}

fn columns(holder: &TableHolder) -> (Option<i64>, Option<&str>) {
    match holder {
        TableHolder::Bundle(key) => (Some(key.0 as i64), None),
        TableHolder::Named(name) => (None, Some(name)),
    }
}

fn tables(sql: &Connection, authority: &Address) -> Result<Vec<StoredTable>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT id, address, origin, status, closing, deactivation_slot, lamports, absent_since_slot, unused_since_ms,
                (SELECT count(*) FROM lookup_reservation_keys AS keys
                 WHERE keys.address IN
                     (SELECT address FROM lookup_table_entries WHERE lookup_table = lookup_tables.id))
         FROM lookup_tables WHERE authority = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query([authority.as_ref()])?;
    let mut tables = Vec::new();
    while let Some(row) = rows.next()? {
        let unsigned = |column| row.get::<_, Option<i64>>(column).map(|slot| slot.map(|slot| slot as u64));
        tables.push(StoredTable {
            address: address(row, 1)??,
            origin: row.get::<_, String>(2)?.parse().map_err(corrupt("a table's origin"))?,
            status: row.get::<_, String>(3)?.parse().map_err(corrupt("a table's status"))?,
            closing: row.get(4)?,
            deactivation_slot: unsigned(5)?,
            lamports: Lamports(row.get::<_, i64>(6)? as u64),
            absent_since_slot: unsigned(7)?,
            unused_since_ms: row.get(8)?,
            entries: entries(sql, row.get(0)?)?,
            references: row.get::<_, i64>(9)? as u64,
        });
    }
    Ok(tables)
}

fn entries(sql: &Connection, table: i64) -> Result<Vec<Address>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT address FROM lookup_table_entries WHERE lookup_table = ?1 ORDER BY position",
    )?;
    let rows = statement.query_map([table], |row| address(row, 0))?;
    rows.map(|row| row?).collect()
}

fn insert(
    sql: &Connection,
    table: &Address,
    authority: &Address,
    origin: TableOrigin,
) -> Result<(), StoreError> {
    // The same address twice is a table that is known, and for one of ours the caller's mistake.
    let conflict = if origin == TableOrigin::Discovered { "ON CONFLICT (address) DO NOTHING" } else { "" };
    let insert =
        "INSERT INTO lookup_tables (address, authority, origin, status) VALUES (?1, ?2, ?3, 'creating')";
    sql.prepare_cached(&format!("{insert} {conflict}"))?.execute(params![
        table.as_ref(),
        authority.as_ref(),
        origin.as_str()
    ])?;
    Ok(())
}

fn record(sql: &Connection, transaction: &TableTransaction) -> Result<(), StoreError> {
    // The same step on the same blockhash is the same transaction: it is known already.
    sql.prepare_cached(
        "INSERT INTO lookup_table_transactions
             (lookup_table, step, signature, last_valid_block_height, status, wire)
         SELECT id, ?2, ?3, ?4, 'signed', ?5 FROM lookup_tables WHERE address = ?1
         ON CONFLICT (signature) DO NOTHING",
    )?
    .execute(params![
        transaction.table.as_ref(),
        transaction.step.as_str(),
        transaction.signature.as_ref(),
        transaction.last_valid_block_height as i64,
        transaction.wire
    ])?;
    Ok(())
}

fn settled(sql: &Connection, signature: Signature, outcome: &TransactionOutcome) -> Result<(), StoreError> {
    let (status, slot, error) = match outcome {
        TransactionOutcome::Landed { slot } => (TransactionStatus::Landed, Some(*slot as i64), None),
        TransactionOutcome::Failed(error) => (TransactionStatus::Failed, None, Some(error.as_str())),
        TransactionOutcome::Expired => (TransactionStatus::Expired, None, None),
    };
    sql.prepare_cached(
        "UPDATE lookup_table_transactions SET status = ?2, slot = ?3, error = ?4, wire = NULL WHERE signature = ?1",
    )?
    .execute(params![signature.as_ref(), status.as_str(), slot, error])?;
    Ok(())
}

fn open_transactions(sql: &Connection, authority: &Address) -> Result<Vec<TableTransaction>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT address, step, signature, last_valid_block_height, wire
         FROM lookup_table_transactions AS transactions JOIN lookup_tables ON lookup_table = lookup_tables.id
         WHERE transactions.status = 'signed' AND authority = ?1 ORDER BY transactions.id",
    )?;
    let mut rows = statement.query([authority.as_ref()])?;
    let mut transactions = Vec::new();
    while let Some(row) = rows.next()? {
        transactions.push(TableTransaction {
            table: address(row, 0)??,
            step: row.get::<_, String>(1)?.parse().map_err(corrupt("a table's step"))?,
            signature: signature(row, 2)??,
            last_valid_block_height: row.get::<_, i64>(3)? as u64,
            wire: row.get(4)?,
        });
    }
    Ok(transactions)
}

fn seen_one(sql: &Connection, seen: &SeenTable) -> Result<(), StoreError> {
    let row: Option<i64> = sql
        .prepare_cached(
            "UPDATE lookup_tables
             SET status = ?2, deactivation_slot = ?3, lamports = ?4, absent_since_slot = ?5
             WHERE address = ?1 RETURNING id",
        )?
        .query_row(
            params![
                seen.address.as_ref(),
                seen.status.as_str(),
                seen.deactivation_slot.map(|slot| slot as i64),
                seen.lamports.0 as i64,
                seen.absent_since_slot.map(|slot| slot as i64)
            ],
            |row| row.get(0),
        )
        .optional()?;
    let Some(row) = row else { return Ok(()) };
    let known: i64 = sql
        .prepare_cached("SELECT count(*) FROM lookup_table_entries WHERE lookup_table = ?1")?
        .query_row([row], |row| row.get(0))?;
    let mut insert = sql.prepare_cached(
        "INSERT INTO lookup_table_entries (lookup_table, position, address) VALUES (?1, ?2, ?3)",
    )?;
    for (entry, position) in seen.entries.iter().zip(0i64..).skip(known.max(0) as usize) {
        insert.execute(params![row, position, entry.as_ref()])?;
    }
    Ok(())
}

/// Whether an address in the table of the row at hand is reserved.
const IN_USE: &str = "EXISTS (
    SELECT 1 FROM lookup_table_entries AS entries JOIN lookup_reservation_keys AS keys USING (address)
    WHERE entries.lookup_table = lookup_tables.id)";

/// Notes since when tables are unused.
fn note_use(sql: &Connection) -> Result<(), StoreError> {
    sql.prepare_cached(&format!(
        "UPDATE lookup_tables
         SET unused_since_ms = CASE WHEN {IN_USE} THEN NULL ELSE coalesce(unused_since_ms, ?1) END
         WHERE status <> 'closed'"
    ))?
    .execute([now_ms()])?;
    Ok(())
}

fn closing(sql: &Connection, table: &Address, unless_used: bool) -> Result<bool, StoreError> {
    let marked = sql
        .prepare_cached(&format!(
            "UPDATE lookup_tables SET closing = 1 WHERE address = ?1 AND (closing OR NOT ?2 OR NOT {IN_USE})"
        ))?
        .execute(params![table.as_ref(), unless_used])?;
    Ok(marked > 0)
}

fn reserve(sql: &Connection, holder: &TableHolder, keys: &[Address]) -> Result<(), StoreError> {
    let (bundle, name) = columns(holder);
    sql.prepare_cached("INSERT OR IGNORE INTO lookup_reservations (bundle, name) VALUES (?1, ?2)")?
        .execute(params![bundle, name])?;
    let row: i64 = sql
        .prepare_cached("SELECT id FROM lookup_reservations WHERE bundle IS ?1 AND name IS ?2")?
        .query_row(params![bundle, name], |row| row.get(0))?;
    let mut insert = sql.prepare_cached(
        "INSERT OR IGNORE INTO lookup_reservation_keys (reservation, address) VALUES (?1, ?2)",
    )?;
    for key in keys {
        insert.execute(params![row, key.as_ref()])?;
    }
    note_use(sql)
}
