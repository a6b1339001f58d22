//! Reads that people make.

use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use solana_address::Address;

use super::{
    StoreError,
    read::{address, parse_status, signature},
};
use crate::types::{BundleId, BundleKey, BundleStatus, ChangesetId, Lamports, Nonce};

/// One line about a changeset.
#[derive(Clone, Debug, Serialize)]
pub struct ChangesetSummary {
    /// The changeset.
    pub changeset: ChangesetId,
    /// When it was accepted, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// How many bundles it has.
    pub bundles: u64,
    /// How many of them have landed.
    pub landed: u64,
    /// How many of them have failed.
    pub failed: u64,
}

/// Everything about a changeset.
#[derive(Clone, Debug, Serialize)]
pub struct ChangesetReport {
    /// The changeset.
    pub changeset: ChangesetId,
    /// When it was accepted, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// Its bundles, in order.
    pub bundles: Vec<BundleReport>,
}

/// Everything about a bundle.
#[derive(Clone, Debug, Serialize)]
pub struct BundleReport {
    /// Its key in the store.
    #[serde(skip)]
    pub key: BundleKey,
    /// The caller's id.
    pub bundle: BundleId,
    /// How far it goes: `finalize`, `stage` or `undelegate`.
    pub mode: String,
    /// Where it stands.
    pub status: BundleStatus,
    /// The bundle that took its place, if one did.
    #[serde(skip)]
    pub superseded_by: Option<BundleKey>,
    /// Why it failed, or could not be finalized, if so.
    pub error: Option<String>,
    /// The on-chain proof of its steps.
    pub steps: Vec<StepReport>,
    /// Transactions that landed for it.
    pub transactions: u64,
    /// Compute units that they used.
    pub compute_units: u64,
    /// Fees that they paid, in lamports.
    pub fee_lamports: Lamports,
    /// Its commits, in order.
    pub accounts: Vec<CommitReport>,
}

/// The transaction that took a step.
#[derive(Clone, Debug, Serialize)]
pub struct StepReport {
    /// `commit`, `finalize` or `undelegate`.
    pub step: String,
    /// The transaction.
    pub signature: String,
}

/// Everything about one account of a bundle.
///
/// A transaction that serves several accounts counts for each of them.
#[derive(Clone, Debug, Serialize)]
pub struct CommitReport {
    /// The account.
    pub pubkey: String,
    /// Length of the state in bytes.
    pub bytes: u64,
    /// The nonce, once one was taken.
    pub nonce: Option<Nonce>,
    /// The strategy, once one was chosen.
    pub strategy: Option<String>,
    /// Transactions that landed for it.
    pub transactions: u64,
    /// Compute units that they used.
    pub compute_units: u64,
    /// Fees that they paid, in lamports.
    pub fee_lamports: Lamports,
    /// Lamports moved to the account and its buffer for rent; the buffer's come back.
    pub rent_lamports: Lamports,
    /// The transactions, in the order in which they were signed.
    pub signatures: Vec<String>,
    /// Whether the account was read back and is, byte for byte, what was committed.
    pub verified: bool,
}

pub(super) fn changesets(sql: &Connection, limit: u32) -> Result<Vec<ChangesetSummary>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT changesets.id, created_at_ms, count(bundles.id),
                count(*) FILTER (WHERE status = 'landed'), count(*) FILTER (WHERE status = 'failed')
         FROM (SELECT * FROM changesets ORDER BY id DESC LIMIT ?1) AS changesets
         LEFT JOIN bundles ON changeset = changesets.id
         GROUP BY changesets.id ORDER BY changesets.id DESC",
    )?;
    let rows = statement.query_map([limit], |row| {
        Ok(ChangesetSummary {
            changeset: ChangesetId(row.get::<_, i64>(0)? as u64),
            created_at_ms: row.get(1)?,
            bundles: row.get::<_, i64>(2)? as u64,
            landed: row.get::<_, i64>(3)? as u64,
            failed: row.get::<_, i64>(4)? as u64,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn changeset(sql: &Connection, id: Option<ChangesetId>) -> Result<ChangesetReport, StoreError> {
    let found = sql
        .prepare_cached(
            "SELECT id, created_at_ms FROM changesets WHERE ?1 IS NULL OR id = ?1 ORDER BY id DESC LIMIT 1",
        )?
        .query_row([id.map(|id| id.0 as i64)], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))
        .optional()?;
    let Some((row, created_at_ms)) = found else {
        return Err(id.map_or(StoreError::Empty, StoreError::NoChangeset));
    };
    let mut statement = sql.prepare_cached("SELECT id FROM bundles WHERE changeset = ?1 ORDER BY id")?;
    let keys = statement.query_map([row], |row| row.get::<_, i64>(0))?;
    let bundles = keys.map(|key| bundle(sql, BundleKey(key? as u64))).collect::<Result<_, _>>()?;
    Ok(ChangesetReport { changeset: ChangesetId(row as u64), created_at_ms, bundles })
}

pub(super) fn history(
    sql: &Connection,
    account: &Address,
    limit: u32,
) -> Result<Vec<BundleReport>, StoreError> {
    let mut statement =
        sql.prepare_cached("SELECT bundle FROM commits WHERE account = ?1 ORDER BY id DESC LIMIT ?2")?;
    let keys = statement.query_map(params![account.as_ref(), limit], |row| row.get::<_, i64>(0))?;
    keys.map(|key| bundle(sql, BundleKey(key? as u64))).collect()
}

pub(super) fn bundle(sql: &Connection, key: BundleKey) -> Result<BundleReport, StoreError> {
    let row = key.0 as i64;
    let found = sql
        .prepare_cached("SELECT bundle_id, mode, status, error, superseded_by FROM bundles WHERE id = ?1")?
        .query_row([row], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get(1)?,
                row.get::<_, String>(2)?,
                row.get(3)?,
                row.get::<_, Option<i64>>(4)?,
            ))
        })
        .optional()?;
    let (id, mode, status, error, superseded_by) = found.ok_or(StoreError::NoBundle(key))?;
    let (transactions, compute_units, fee_lamports) = sql
        .prepare_cached(
            "SELECT count(*), coalesce(sum(compute_units), 0), coalesce(sum(fee_lamports), 0)
             FROM transactions WHERE status = 'landed' AND id IN (
                 SELECT transaction_row FROM transaction_commits JOIN commits ON commits.id = commit_row
                 WHERE bundle = ?1)",
        )?
        .query_row([row], totals)?;
    let mut statement =
        sql.prepare_cached("SELECT step, signature FROM bundle_signatures WHERE bundle = ?1 ORDER BY step")?;
    let steps = statement.query_map([row], |row| Ok((row.get::<_, String>(0)?, signature(row, 1)?)))?;
    let steps = steps.map(|row| {
        let (step, signature) = row?;
        Ok(StepReport { step, signature: signature?.to_string() })
    });
    let steps = steps.collect::<Result<_, StoreError>>()?;
    Ok(BundleReport {
        key,
        bundle: BundleId(id as u64),
        mode,
        status: parse_status(&status)?,
        superseded_by: superseded_by.map(|key| BundleKey(key as u64)),
        error,
        steps,
        transactions,
        compute_units,
        fee_lamports,
        accounts: commits(sql, row)?,
    })
}

fn totals(row: &rusqlite::Row) -> rusqlite::Result<(u64, u64, Lamports)> {
    let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
    Ok((number(0)?, number(1)?, Lamports(number(2)?)))
}

fn commits(sql: &Connection, bundle: i64) -> Result<Vec<CommitReport>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT id, account, state_len, nonce, strategy, coalesce(rent_lamports, 0), verified
         FROM commits WHERE bundle = ?1 ORDER BY position",
    )?;
    let mut rows = statement.query([bundle])?;
    let mut reports = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let (transactions, compute_units, fee_lamports) = sql
            .prepare_cached(
                "SELECT count(*), coalesce(sum(compute_units), 0), coalesce(sum(fee_lamports), 0)
                 FROM transaction_commits JOIN transactions ON id = transaction_row
                 WHERE commit_row = ?1 AND status = 'landed'",
            )?
            .query_row([id], totals)?;
        reports.push(CommitReport {
            pubkey: address(row, 1)??.to_string(),
            bytes: row.get::<_, i64>(2)? as u64,
            nonce: row.get::<_, Option<i64>>(3)?.map(|nonce| Nonce(nonce as u64)),
            strategy: row.get(4)?,
            transactions,
            compute_units,
            fee_lamports,
            rent_lamports: Lamports(row.get::<_, i64>(5)? as u64),
            signatures: signatures(sql, id)?,
            verified: row.get(6)?,
        });
    }
    Ok(reports)
}

fn signatures(sql: &Connection, commit: i64) -> Result<Vec<String>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT signature FROM transaction_commits JOIN transactions ON id = transaction_row
         WHERE commit_row = ?1 AND status = 'landed' ORDER BY id",
    )?;
    let rows = statement.query_map(params![commit], |row| signature(row, 0))?;
    rows.map(|row| Ok(row??.to_string())).collect()
}
