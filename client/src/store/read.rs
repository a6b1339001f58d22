//! Reads that the engine makes.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use solana_address::Address;
use solana_signature::Signature;

use super::{LandedState, OpenTransaction, QueuedBundle, StoreError, StoredBundle, StoredCommit, action};
use crate::types::{
    BundleId, BundleKey, BundleStatus, ChangesetId, CommitId, CommitMode, Nonce, Stage, UnknownMode,
    UnknownStatus,
};

pub(super) fn unfinished(sql: &Connection) -> Result<Vec<QueuedBundle>, StoreError> {
    let keys = "SELECT id FROM bundles
                WHERE status IN ('accepted', 'preparing', 'committing', 'finalizing') ORDER BY id";
    queued_all(sql, keys)
}

pub(super) fn staged(sql: &Connection) -> Result<Vec<QueuedBundle>, StoreError> {
    queued_all(sql, "SELECT id FROM bundles WHERE status = 'staged' ORDER BY id")
}

fn queued_all(sql: &Connection, keys: &str) -> Result<Vec<QueuedBundle>, StoreError> {
    let mut statement = sql.prepare_cached(keys)?;
    let keys = statement.query_map([], |row| row.get::<_, i64>(0))?;
    keys.map(|key| queued(sql, BundleKey(key? as u64))).collect()
}

/// What stands in a bundle's own row.
struct BundleRow {
    changeset: ChangesetId,
    id: BundleId,
    mode: CommitMode,
    status: BundleStatus,
    actions: Option<Vec<u8>>,
}

fn bundle_row(sql: &Connection, key: BundleKey) -> Result<BundleRow, StoreError> {
    let row = sql
        .prepare_cached("SELECT changeset, bundle_id, mode, status, actions FROM bundles WHERE id = ?1")?
        .query_row([key.0 as i64], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, String>(3)?,
                row.get(4)?,
            ))
        })
        .optional()?;
    let (changeset, id, mode, status, actions) = row.ok_or(StoreError::NoBundle(key))?;
    Ok(BundleRow {
        changeset: ChangesetId(changeset as u64),
        id: BundleId(id as u64),
        mode: parse_mode(&mode)?,
        status: parse_status(&status)?,
        actions,
    })
}

pub(super) fn queued(sql: &Connection, key: BundleKey) -> Result<QueuedBundle, StoreError> {
    let BundleRow { changeset, id, mode, status, actions } = bundle_row(sql, key)?;
    let mut statement =
        sql.prepare_cached("SELECT account, state_len FROM commits WHERE bundle = ?1 ORDER BY position")?;
    let rows =
        statement.query_map([key.0 as i64], |row| Ok((address(row, 0)?, row.get::<_, i64>(1)? as u64)))?;
    let (mut accounts, mut state_bytes) = (Vec::new(), 0);
    for row in rows {
        let (account, len) = row?;
        accounts.push(account?);
        state_bytes += len;
    }
    let is_plain = mode == CommitMode::Finalize && actions.is_none();
    Ok(QueuedBundle { key, changeset, id, status, accounts, state_bytes, is_plain })
}

pub(super) fn bundle(sql: &Connection, key: BundleKey) -> Result<StoredBundle, StoreError> {
    let BundleRow { changeset, id, mode, status, actions } = bundle_row(sql, key)?;
    let mut statement = sql.prepare_cached(
        "SELECT account, commit_id, state FROM commits JOIN commit_values ON commit_row = commits.id
         WHERE bundle = ?1 ORDER BY position",
    )?;
    let rows = statement.query_map([key.0 as i64], |row| {
        Ok((address(row, 0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
    })?;
    let commits = rows.map(|row| {
        let (account, commit_id, state) = row?;
        Ok(StoredCommit { account: account?, commit_id: CommitId(commit_id as u64), state: Arc::from(state) })
    });
    let commits = commits.collect::<Result<_, StoreError>>()?;
    Ok(StoredBundle { key, changeset, id, mode, status, commits, actions: action::decode(actions)? })
}

pub(super) fn last_landed(sql: &Connection, account: &Address) -> Result<Option<LandedState>, StoreError> {
    let row = sql
        .prepare_cached(
            "SELECT session, nonce, commit_id, state
             FROM commits JOIN bundles ON bundles.id = bundle JOIN commit_values ON commit_row = commits.id
             WHERE account = ?1 AND status = 'landed' AND nonce IS NOT NULL
             ORDER BY commits.id DESC LIMIT 1",
        )?
        .query_row([account.as_ref()], |row| {
            let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
            let (session, nonce, commit_id) = (number(0)?, Nonce(number(1)?), CommitId(number(2)?));
            Ok(LandedState { session, nonce, commit_id, state: Arc::from(row.get::<_, Vec<u8>>(3)?) })
        });
    Ok(row.optional()?)
}

pub(super) fn buffers(sql: &Connection, key: BundleKey) -> Result<Vec<(usize, Address)>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT position, address FROM buffers JOIN commits ON commits.id = commit_row
         WHERE bundle = ?1 ORDER BY position, address",
    )?;
    let rows =
        statement.query_map([key.0 as i64], |row| Ok((row.get::<_, i64>(0)? as usize, address(row, 1)?)))?;
    rows.map(|row| row.map_err(StoreError::from).and_then(|(position, address)| Ok((position, address?))))
        .collect()
}

pub(super) fn open_transactions(
    sql: &Connection,
    key: BundleKey,
    stage: Stage,
) -> Result<Vec<OpenTransaction>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT signature, last_valid_block_height, status = 'signed' FROM transactions
         WHERE stage = ?2 AND status <> 'failed' AND id IN (
             SELECT transaction_row FROM transaction_commits JOIN commits ON commits.id = commit_row
             WHERE bundle = ?1)
         ORDER BY id DESC",
    )?;
    let rows = statement.query_map(params![key.0 as i64, stage.as_str()], |row| {
        Ok((signature(row, 0)?, row.get::<_, i64>(1)?, row.get(2)?))
    })?;
    let open = rows.map(|row| {
        let (signature, last_valid_block_height, unknown) = row?;
        let last_valid_block_height = last_valid_block_height as u64;
        Ok(OpenTransaction { signature: signature?, last_valid_block_height, unknown })
    });
    open.collect()
}

pub(super) fn without_cost(sql: &Connection, key: BundleKey) -> Result<Vec<Signature>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT signature FROM transactions
         WHERE status = 'landed' AND compute_units IS NULL AND id IN (
             SELECT transaction_row FROM transaction_commits JOIN commits ON commits.id = commit_row
             WHERE bundle = ?1)
         ORDER BY id",
    )?;
    let rows = statement.query_map([key.0 as i64], |row| signature(row, 0))?;
    rows.map(|row| row?).collect()
}

pub(super) fn mode(sql: &Connection, key: BundleKey) -> Result<CommitMode, StoreError> {
    bundle_row(sql, key).map(|row| row.mode)
}

fn parse_mode(text: &str) -> Result<CommitMode, StoreError> {
    text.parse().map_err(|UnknownMode(found)| StoreError::Corrupt { what: "a mode", found })
}

pub(super) fn parse_status(text: &str) -> Result<BundleStatus, StoreError> {
    text.parse().map_err(|UnknownStatus(found)| StoreError::Corrupt { what: "a status", found })
}

pub(super) fn address(row: &Row, column: usize) -> rusqlite::Result<Result<Address, StoreError>> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(Address::try_from(bytes.as_slice())
        .map_err(|_| StoreError::Corrupt { what: "an address", found: format!("{} bytes", bytes.len()) }))
}

pub(super) fn signature(row: &Row, column: usize) -> rusqlite::Result<Result<Signature, StoreError>> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(Signature::try_from(bytes.as_slice())
        .map_err(|_| StoreError::Corrupt { what: "a signature", found: format!("{} bytes", bytes.len()) }))
}
