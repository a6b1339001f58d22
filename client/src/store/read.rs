//! Reads that the engine makes.

use std::sync::Arc;

use solana_address::Address;
use solana_signature::Signature;

use super::{
    LandedState, OpenTransaction, QueuedBundle, StoreError, StoredBundle, StoredCommit, action,
    sql::{Row, Sql, params},
};
use crate::types::{
    BundleId, BundleKey, BundleStatus, ChangesetId, CommitId, CommitMode, Nonce, Stage, UnknownMode,
    UnknownStatus,
};

/// Bundles that are to be worked on; the words are those of the index `unfinished_bundles`.
pub(super) const UNFINISHED: &str = "SELECT id FROM bundles
     WHERE status IN ('accepted', 'preparing', 'committing', 'finalizing') ORDER BY id";
pub(super) const STAGED: &str = "SELECT id FROM bundles WHERE status = 'staged' ORDER BY id";
pub(super) const LAST_LANDED: &str = "SELECT session, nonce, commit_id, state
     FROM commits JOIN bundles ON bundles.id = bundle JOIN commit_values ON commit_row = commits.id
     WHERE account = ?1 AND status = 'landed' AND nonce IS NOT NULL
     ORDER BY commits.id DESC LIMIT 1";

pub(super) fn unfinished(sql: &dyn Sql) -> Result<Vec<QueuedBundle>, StoreError> {
    queued_all(sql, UNFINISHED)
}

pub(super) fn staged(sql: &dyn Sql) -> Result<Vec<QueuedBundle>, StoreError> {
    queued_all(sql, STAGED)
}

fn queued_all(sql: &dyn Sql, keys: &str) -> Result<Vec<QueuedBundle>, StoreError> {
    let keys = sql.query(keys, &[])?;
    keys.iter().map(|row| queued(sql, BundleKey(row.number(0)?))).collect()
}

/// What stands in a bundle's own row.
struct BundleRow {
    changeset: ChangesetId,
    id: BundleId,
    mode: CommitMode,
    status: BundleStatus,
    actions: Option<Vec<u8>>,
    asked_at_ms: i64,
}

fn bundle_row(sql: &dyn Sql, key: BundleKey) -> Result<BundleRow, StoreError> {
    let row = sql.first(
        "SELECT changeset, bundle_id, mode, status, actions, asked_at_ms FROM bundles WHERE id = ?1",
        params![key.0],
    )?;
    let mut row = row.ok_or(StoreError::NoBundle(key))?;
    Ok(BundleRow {
        changeset: ChangesetId(row.number(0)?),
        id: BundleId(row.number(1)?),
        mode: parse_mode(&row.text(2)?)?,
        status: parse_status(&row.text(3)?)?,
        actions: row.take_bytes(4)?,
        asked_at_ms: row.int(5)?,
    })
}

pub(super) fn queued(sql: &dyn Sql, key: BundleKey) -> Result<QueuedBundle, StoreError> {
    let BundleRow { changeset, id, mode, status, actions, .. } = bundle_row(sql, key)?;
    let rows = sql.query(
        "SELECT account, state_len FROM commits WHERE bundle = ?1 ORDER BY position",
        params![key.0],
    )?;
    let (mut accounts, mut state_bytes) = (Vec::with_capacity(rows.len()), 0);
    for row in rows {
        accounts.push(row.address(0)?);
        state_bytes += row.number(1)?;
    }
    let is_plain = mode == CommitMode::Finalize && actions.is_none();
    Ok(QueuedBundle { key, changeset, id, status, accounts, state_bytes, is_plain })
}

pub(super) fn bundle(sql: &dyn Sql, key: BundleKey) -> Result<StoredBundle, StoreError> {
    let BundleRow { changeset, id, mode, status, actions, asked_at_ms } = bundle_row(sql, key)?;
    let rows = sql.query(
        "SELECT account, commit_id, state FROM commits JOIN commit_values ON commit_row = commits.id
         WHERE bundle = ?1 ORDER BY position",
        params![key.0],
    )?;
    let commits = rows.into_iter().map(|mut row| {
        let (account, commit_id) = (row.address(0)?, CommitId(row.number(1)?));
        Ok(StoredCommit { account, commit_id, state: state(&mut row, 2)? })
    });
    let commits = commits.collect::<Result<_, StoreError>>()?;
    let actions = action::decode(actions)?;
    Ok(StoredBundle { key, changeset, id, mode, status, asked_at_ms, commits, actions })
}

pub(super) fn state(row: &mut Row, column: usize) -> Result<Arc<[u8]>, StoreError> {
    let bytes = row.take_bytes(column)?;
    bytes.map(Arc::from).ok_or_else(|| StoreError::Corrupt { what: "a state", found: "nothing".to_owned() })
}

pub(super) fn last_landed(sql: &dyn Sql, account: &Address) -> Result<Option<LandedState>, StoreError> {
    let Some(mut row) = sql.first(LAST_LANDED, params![account])? else { return Ok(None) };
    Ok(Some(LandedState {
        session: row.number(0)?,
        nonce: Nonce(row.number(1)?),
        commit_id: CommitId(row.number(2)?),
        state: state(&mut row, 3)?,
    }))
}

/// Commits of each account that are looked at: an account may have any number.
pub(super) const LAST_SLOT: &str = "SELECT max(slot) FROM transactions WHERE id IN (
         SELECT transaction_row FROM transaction_commits WHERE commit_row IN (
             SELECT id FROM commits WHERE account = ?1 AND id <= ?2 ORDER BY id DESC LIMIT 16))";

pub(super) fn last_slot(sql: &dyn Sql, key: BundleKey) -> Result<Option<u64>, StoreError> {
    let mut last = None;
    for commit in sql.query("SELECT account, id FROM commits WHERE bundle = ?1", params![key.0])? {
        let slot = sql.first(LAST_SLOT, params![&commit.address(0)?, commit.int(1)?])?;
        last = last.max(slot.map(|slot| slot.optional_number(0)).transpose()?.flatten());
    }
    Ok(last)
}

pub(super) fn buffers(sql: &dyn Sql, key: BundleKey) -> Result<Vec<(usize, Address)>, StoreError> {
    let rows = sql.query(
        "SELECT position, address FROM buffers JOIN commits ON commits.id = commit_row
         WHERE bundle = ?1 ORDER BY position, address",
        params![key.0],
    )?;
    rows.iter().map(|row| Ok((row.int(0)? as usize, row.address(1)?))).collect()
}

pub(super) const OPEN_TRANSACTIONS: &str =
    "SELECT signature, last_valid_block_height, status FROM transactions
     WHERE stage = ?2 AND status <> 'failed' AND id IN (
         SELECT transaction_row FROM transaction_commits JOIN commits ON commits.id = commit_row
         WHERE bundle = ?1)
     ORDER BY id DESC";

pub(super) fn open_transactions(
    sql: &dyn Sql,
    key: BundleKey,
    stage: Stage,
) -> Result<Vec<OpenTransaction>, StoreError> {
    let rows = sql.query(OPEN_TRANSACTIONS, params![key.0, stage.as_str()])?;
    let open = rows.iter().map(|row| {
        let (signature, last_valid_block_height) = (row.signature(0)?, row.number(1)?);
        Ok(OpenTransaction { signature, last_valid_block_height, unknown: row.text(2)? == "signed" })
    });
    open.collect()
}

pub(super) const WITHOUT_COST: &str = "SELECT signature FROM transactions
     WHERE status = 'landed' AND compute_units IS NULL AND id IN (
         SELECT transaction_row FROM transaction_commits JOIN commits ON commits.id = commit_row
         WHERE bundle = ?1)
     ORDER BY id";

pub(super) fn without_cost(sql: &dyn Sql, key: BundleKey) -> Result<Vec<Signature>, StoreError> {
    sql.query(WITHOUT_COST, params![key.0])?.iter().map(|row| row.signature(0)).collect()
}

pub(super) fn mode(sql: &dyn Sql, key: BundleKey) -> Result<CommitMode, StoreError> {
    bundle_row(sql, key).map(|row| row.mode)
}

pub(super) fn parse_mode(text: &str) -> Result<CommitMode, StoreError> {
    text.parse().map_err(|UnknownMode(found)| StoreError::Corrupt { what: "a mode", found })
}

pub(super) fn parse_status(text: &str) -> Result<BundleStatus, StoreError> {
    text.parse().map_err(|UnknownStatus(found)| StoreError::Corrupt { what: "a status", found })
}
