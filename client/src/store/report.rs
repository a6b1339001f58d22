//! Reads that people make.

use serde::Serialize;
use solana_address::Address;

use super::{
    StoreError,
    read::parse_status,
    sql::{Row, Sql, params},
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
    /// How many of them are staged, and wait to be finalized.
    pub staged: u64,
    /// How many of them gave way to a newer one.
    pub superseded: u64,
    /// How many of them failed and were given up for good.
    pub abandoned: u64,
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
    /// Its changeset.
    #[serde(skip)]
    pub changeset: ChangesetId,
    /// When it moved last, in milliseconds since 1970.
    #[serde(skip)]
    pub updated_at_ms: i64,
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

pub(super) const CHANGESETS: &str = "SELECT id, created_at_ms FROM changesets ORDER BY id DESC LIMIT ?1";
pub(super) const COUNTS: &str =
    "SELECT changeset, status, bundles FROM changeset_counts WHERE changeset = ?1";
pub(super) const HISTORY: &str = "SELECT bundle FROM commits WHERE account = ?1 ORDER BY id DESC LIMIT ?2";
pub(super) const BUNDLE_COSTS: &str = "SELECT count(*), CAST(coalesce(sum(compute_units), 0) AS BIGINT),
            CAST(coalesce(sum(fee_lamports), 0) AS BIGINT)
     FROM transactions WHERE status = 'landed' AND id IN (
         SELECT transaction_row FROM transaction_commits JOIN commits ON commits.id = commit_row
         WHERE bundle = ?1)";
pub(super) const COMMIT_COSTS: &str =
    "SELECT signature, coalesce(compute_units, 0), coalesce(fee_lamports, 0)
     FROM transaction_commits JOIN transactions ON id = transaction_row
     WHERE commit_row = ?1 AND status = 'landed' ORDER BY transaction_row";

pub(super) fn changesets(sql: &dyn Sql, limit: u32) -> Result<Vec<ChangesetSummary>, StoreError> {
    let rows = sql.query(CHANGESETS, params![i64::from(limit)])?;
    let ids: Vec<_> =
        rows.iter().map(|row| Ok(vec![row.int(0)?.into()])).collect::<Result<_, StoreError>>()?;
    let summary = |row: &Row| {
        let (changeset, created_at_ms) = (ChangesetId(row.number(0)?), row.int(1)?);
        Ok(ChangesetSummary {
            changeset,
            created_at_ms,
            bundles: 0,
            landed: 0,
            failed: 0,
            staged: 0,
            superseded: 0,
            abandoned: 0,
        })
    };
    let mut summaries: Vec<ChangesetSummary> = rows.iter().map(summary).collect::<Result<_, StoreError>>()?;
    // In the order of the changesets, several for each.
    let mut at = 0;
    for row in sql.query_each(COUNTS, &ids)? {
        let (changeset, count) = (ChangesetId(row.number(0)?), row.number(2)?);
        while summaries.get(at).is_some_and(|summary| summary.changeset != changeset) {
            at += 1;
        }
        let Some(summary) = summaries.get_mut(at) else { break };
        summary.bundles += count;
        match parse_status(&row.text(1)?)? {
            BundleStatus::Landed => summary.landed += count,
            BundleStatus::Failed => summary.failed += count,
            BundleStatus::Staged => summary.staged += count,
            BundleStatus::Superseded => summary.superseded += count,
            BundleStatus::Abandoned => summary.abandoned += count,
            BundleStatus::Accepted
            | BundleStatus::Preparing
            | BundleStatus::Committing
            | BundleStatus::Finalizing => (),
        }
    }
    Ok(summaries)
}

pub(super) fn changeset(sql: &dyn Sql, id: Option<ChangesetId>) -> Result<ChangesetReport, StoreError> {
    let found = match id {
        Some(id) => sql.first("SELECT id, created_at_ms FROM changesets WHERE id = ?1", params![id.0]),
        None => sql.first("SELECT id, created_at_ms FROM changesets ORDER BY id DESC LIMIT 1", &[]),
    };
    let Some(found) = found? else {
        return Err(id.map_or(StoreError::Empty, StoreError::NoChangeset));
    };
    let (changeset, created_at_ms) = (ChangesetId(found.number(0)?), found.int(1)?);
    let keys = sql.query("SELECT id FROM bundles WHERE changeset = ?1 ORDER BY id", params![changeset.0])?;
    let bundles = keys.iter().map(|row| bundle(sql, BundleKey(row.number(0)?)));
    Ok(ChangesetReport { changeset, created_at_ms, bundles: bundles.collect::<Result<_, _>>()? })
}

pub(super) fn history(sql: &dyn Sql, account: &Address, limit: u32) -> Result<Vec<BundleReport>, StoreError> {
    let keys = sql.query(HISTORY, params![account, i64::from(limit)])?;
    keys.iter().map(|row| bundle(sql, BundleKey(row.number(0)?))).collect()
}

pub(super) fn bundle(sql: &dyn Sql, key: BundleKey) -> Result<BundleReport, StoreError> {
    let found = sql.first(
        "SELECT bundle_id, mode, status, error, superseded_by, changeset, updated_at_ms
         FROM bundles WHERE id = ?1",
        params![key.0],
    )?;
    let found = found.ok_or(StoreError::NoBundle(key))?;
    let costs = sql.first(BUNDLE_COSTS, params![key.0])?.unwrap_or(Row(Vec::new()));
    let steps = sql.query(
        "SELECT step, signature FROM bundle_signatures WHERE bundle = ?1 ORDER BY step",
        params![key.0],
    )?;
    let step = |row: &Row| Ok(StepReport { step: row.text(0)?, signature: row.signature(1)?.to_string() });
    Ok(BundleReport {
        key,
        changeset: ChangesetId(found.number(5)?),
        updated_at_ms: found.int(6)?,
        bundle: BundleId(found.number(0)?),
        mode: found.text(1)?,
        status: parse_status(&found.text(2)?)?,
        error: found.optional_text(3)?,
        superseded_by: found.optional_number(4)?.map(BundleKey),
        steps: steps.iter().map(step).collect::<Result<_, StoreError>>()?,
        transactions: costs.number(0)?,
        compute_units: costs.number(1)?,
        fee_lamports: Lamports(costs.number(2)?),
        accounts: commits(sql, key)?,
    })
}

fn commits(sql: &dyn Sql, bundle: BundleKey) -> Result<Vec<CommitReport>, StoreError> {
    let rows = sql.query(
        "SELECT id, account, state_len, nonce, strategy, coalesce(rent_lamports, 0), verified
         FROM commits WHERE bundle = ?1 ORDER BY position",
        params![bundle.0],
    )?;
    let commit = |row: &Row| {
        let transactions = sql.query(COMMIT_COSTS, params![row.int(0)?])?;
        let (mut signatures, mut compute_units, mut fee_lamports) = (Vec::new(), 0, 0);
        for transaction in &transactions {
            signatures.push(transaction.signature(0)?.to_string());
            compute_units += transaction.number(1)?;
            fee_lamports += transaction.number(2)?;
        }
        Ok(CommitReport {
            pubkey: row.address(1)?.to_string(),
            bytes: row.number(2)?,
            nonce: row.optional_number(3)?.map(Nonce),
            strategy: row.optional_text(4)?,
            transactions: signatures.len() as u64,
            compute_units,
            fee_lamports: Lamports(fee_lamports),
            rent_lamports: Lamports(row.number(5)?),
            signatures,
            verified: row.flag(6)?,
        })
    };
    rows.iter().map(commit).collect()
}
