//! Reads that the engine makes.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use solana_address::Address;
use solana_signature::Signature;

use super::{OpenTransaction, StoreError, StoredBundle, StoredCommit};
use crate::types::{BundleId, BundleKey, BundleStatus, ChangesetId, CommitId};

pub(super) fn unfinished(sql: &Connection) -> Result<Vec<StoredBundle>, StoreError> {
    let mut statement =
        sql.prepare_cached("SELECT id FROM bundles WHERE status NOT IN ('landed', 'failed') ORDER BY id")?;
    let keys = statement.query_map([], |row| row.get::<_, i64>(0))?;
    keys.map(|key| bundle(sql, BundleKey(key? as u64))).collect()
}

pub(super) fn bundle(sql: &Connection, key: BundleKey) -> Result<StoredBundle, StoreError> {
    let row = sql
        .prepare_cached("SELECT changeset, bundle_id, status FROM bundles WHERE id = ?1")?
        .query_row([key.0 as i64], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
        })
        .optional()?;
    let (changeset, id, status) = row.ok_or(StoreError::NoBundle(key))?;
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
    Ok(StoredBundle {
        key,
        changeset: ChangesetId(changeset as u64),
        id: BundleId(id as u64),
        status: parse_status(&status)?,
        commits: commits.collect::<Result<_, StoreError>>()?,
    })
}

pub(super) fn open_commits(sql: &Connection, key: BundleKey) -> Result<Vec<OpenTransaction>, StoreError> {
    let mut statement = sql.prepare_cached(
        "SELECT signature, last_valid_block_height, status = 'signed' FROM transactions
         WHERE bundle = ?1 AND stage = 'commit' AND status <> 'failed' ORDER BY id DESC",
    )?;
    let rows = statement
        .query_map([key.0 as i64], |row| Ok((signature(row, 0)?, row.get::<_, i64>(1)?, row.get(2)?)))?;
    let open = rows.map(|row| {
        let (signature, last_valid_block_height, unknown) = row?;
        let last_valid_block_height = last_valid_block_height as u64;
        Ok(OpenTransaction { signature: signature?, last_valid_block_height, unknown })
    });
    open.collect()
}

pub(super) fn parse_status(text: &str) -> Result<BundleStatus, StoreError> {
    text.parse().map_err(|unknown: crate::types::UnknownStatus| StoreError::Corrupt {
        what: "a status",
        found: unknown.0,
    })
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
