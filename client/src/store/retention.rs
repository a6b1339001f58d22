//! What is forgotten, and when.

use std::time::Duration;

use serde::Serialize;

use super::{
    Store, StoreError,
    sql::{Durability, Sql, params},
    tables,
    write::now_ms,
};
use crate::types::{BundleKey, TableHolder};

/// What one step of pruning removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Changesets of which nothing is left.
    pub changesets: u64,
    /// Bundles.
    pub bundles: u64,
    /// Rows of all tables together.
    pub rows: u64,
    /// Whether there is more to prune.
    pub more: bool,
}

/// Changesets that have ended, and did so long enough ago, the oldest first. One to whose bundles those of another changeset
/// gave way is kept as long as that one.
pub(super) const PRUNABLE: &str = "SELECT id FROM changesets
     WHERE created_at_ms <= ?1
       AND NOT EXISTS (
           SELECT 1 FROM changeset_counts WHERE changeset = changesets.id AND bundles > 0
           AND status NOT IN ('landed', 'failed', 'superseded', 'abandoned'))
       AND NOT EXISTS (SELECT 1 FROM bundles WHERE changeset = changesets.id AND updated_at_ms > ?1)
       AND NOT EXISTS (
           SELECT 1 FROM bundles AS newer JOIN bundles AS older ON older.superseded_by = newer.id
           WHERE newer.changeset = changesets.id AND older.changeset <> changesets.id)
     ORDER BY created_at_ms, id LIMIT ?2";

/// The bundles of such a changeset. One that failed can have been taken up again since the changeset was found.
pub(super) const ENDED: &str = "SELECT id FROM bundles
     WHERE changeset = ?1 AND status IN ('landed', 'failed', 'superseded', 'abandoned') AND updated_at_ms <= ?2
     ORDER BY id LIMIT ?3";

/// What goes with a bundle, in this order: no row outlives one that it refers to.
pub(super) const OF_BUNDLE: [&str; 6] = [
    "DELETE FROM buffers WHERE commit_row IN (SELECT id FROM commits WHERE bundle = ?1)",
    "DELETE FROM commit_values WHERE commit_row IN (SELECT id FROM commits WHERE bundle = ?1)",
    "DELETE FROM transaction_commits WHERE commit_row IN (SELECT id FROM commits WHERE bundle = ?1)",
    "DELETE FROM commits WHERE bundle = ?1",
    "DELETE FROM bundle_signatures WHERE bundle = ?1",
    "DELETE FROM bundles WHERE id = ?1",
];

impl Store {
    /// Removes changesets that ended at least `older_than` ago, with their states, transactions and outcomes: the oldest
    /// first, and about `max_rows` rows of all tables at most, so that nobody waits for it for long. Call it again as long
    /// as [`Pruned::more`] says so. A changeset that has more rows goes bundle by bundle.
    ///
    /// A SQLite file does not become shorter by that: what is freed is used for what comes next.
    ///
    /// # Errors
    /// [`StoreError`] if something could not be read or removed; nothing is removed then.
    pub async fn prune(&self, older_than: Duration, max_rows: u32) -> Result<Pruned, StoreError> {
        const PRUNE: &str = "prune";
        let age = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
        let until = now_ms().saturating_sub(age);
        let max_rows = u64::from(max_rows.max(1));
        // As many as a step is likely to get through: a bundle alone has four rows, and most have more.
        let limit = max_rows / 16 + 1;
        // Looking for them takes longer than removing them, and holds up no other change.
        let candidates = move |sql: &dyn Sql| -> Result<Vec<i64>, StoreError> {
            sql.query(PRUNABLE, params![until, limit])?.iter().map(|row| row.int(0)).collect()
        };
        let changesets = self.readers.run(PRUNE, candidates).await?;
        if changesets.is_empty() {
            return Ok(Pruned::default());
        }
        let remove = move |sql: &dyn Sql| {
            let pruned = prune(sql, &changesets, until, max_rows)?;
            Ok(Pruned { more: pruned.more || changesets.len() as u64 >= limit, ..pruned })
        };
        self.writer.run(PRUNE, Durability::Process, remove).await
    }
}

fn prune(sql: &dyn Sql, changesets: &[i64], until: i64, max_rows: u64) -> Result<Pruned, StoreError> {
    let mut pruned = Pruned { more: true, ..Pruned::default() };
    for changeset in changesets {
        // The oldest first: those give way to the newer ones.
        let bundles = sql.query(ENDED, params![*changeset, until, max_rows])?;
        for bundle in bundles {
            if pruned.rows >= max_rows {
                return Ok(pruned);
            }
            pruned.rows += remove_bundle(sql, bundle.number(0)?)?;
            pruned.bundles += 1;
        }
        let gone = sql.execute(
            "DELETE FROM changesets WHERE id = ?1
             AND NOT EXISTS (SELECT 1 FROM bundles WHERE changeset = ?1)",
            params![*changeset],
        )?;
        pruned.changesets += gone;
        pruned.rows += gone;
    }
    pruned.more = pruned.rows >= max_rows;
    Ok(pruned)
}

fn remove_bundle(sql: &dyn Sql, bundle: u64) -> Result<u64, StoreError> {
    let transactions = sql.query(
        "SELECT DISTINCT transaction_row FROM transaction_commits JOIN commits ON commits.id = commit_row
         WHERE bundle = ?1",
        params![bundle],
    )?;
    // A process that died may not have come to it.
    let mut rows = tables::release(sql, &TableHolder::Bundle(BundleKey(bundle)))?;
    for statement in OF_BUNDLE {
        rows += sql.execute(statement, params![bundle])?;
    }
    for transaction in transactions {
        // One that serves other bundles too goes with the last of them.
        rows += sql.execute(
            "DELETE FROM transactions WHERE id = ?1
             AND NOT EXISTS (SELECT 1 FROM transaction_commits WHERE transaction_row = ?1)",
            params![transaction.int(0)?],
        )?;
    }
    Ok(rows)
}
