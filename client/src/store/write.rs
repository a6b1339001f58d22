//! Changes. Each function is one change that lands as a whole: the writer runs it inside a savepoint.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};
use solana_address::Address;
use solana_signature::Signature;

use super::read::address;
use super::{
    BundleEnd, CommitDecision, NewTransaction, StoreError, StoredBundle, StoredCommit, TransactionOutcome,
};
use crate::types::{
    BundleEvent, BundleKey, BundleStatus, Changeset, ChangesetId, CommitBundle, CommitId, Stage,
    TransactionStatus,
};

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn accept(
    sql: &Connection,
    changeset: &Changeset,
) -> Result<(ChangesetId, Vec<StoredBundle>), StoreError> {
    sql.execute("INSERT INTO changesets (created_at_ms) VALUES (?1)", [now_ms()])?;
    let id = sql.last_insert_rowid();
    let bundles = changeset.bundles.iter().map(|bundle| accept_bundle(sql, id, bundle));
    Ok((ChangesetId(id as u64), bundles.collect::<Result<_, _>>()?))
}

fn accept_bundle(
    sql: &Connection,
    changeset: i64,
    bundle: &CommitBundle,
) -> Result<StoredBundle, StoreError> {
    let status = BundleStatus::Accepted;
    sql.prepare_cached(
        "INSERT INTO bundles (changeset, bundle_id, status, updated_at_ms) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![changeset, bundle.id.0 as i64, status.as_str(), now_ms()])?;
    let key = sql.last_insert_rowid();
    let mut commits = Vec::with_capacity(bundle.commits.len());
    for (commit, position) in bundle.commits.iter().zip(0i64..) {
        // Random, so that no two committors of one authority take each other's commits for their own.
        let commit_id = CommitId(rand::random());
        sql.prepare_cached(
            "INSERT INTO commits (bundle, position, account, commit_id, state_len) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            key,
            position,
            commit.account.as_ref(),
            commit_id.0 as i64,
            commit.state.len() as i64
        ])?;
        sql.prepare_cached("INSERT INTO commit_values (commit_row, state) VALUES (?1, ?2)")?
            .execute(params![sql.last_insert_rowid(), &commit.state[..]])?;
        commits.push(StoredCommit { account: commit.account, commit_id, state: commit.state.clone() });
    }
    let (key, changeset) = (BundleKey(key as u64), ChangesetId(changeset as u64));
    Ok(StoredBundle { key, changeset, id: bundle.id, status, commits })
}

/// Moves a bundle on, by the state machine.
fn advance(
    sql: &Connection,
    key: BundleKey,
    event: BundleEvent,
    error: Option<&str>,
) -> Result<(), StoreError> {
    let row = key.0 as i64;
    let status: Option<String> = sql
        .prepare_cached("SELECT status FROM bundles WHERE id = ?1")?
        .query_row([row], |row| row.get(0))
        .optional()?;
    let status: BundleStatus = status.ok_or(StoreError::NoBundle(key))?.parse().map_err(
        |unknown: crate::types::UnknownStatus| StoreError::Corrupt { what: "a status", found: unknown.0 },
    )?;
    let next = status.next(event)?;
    sql.prepare_cached("UPDATE bundles SET status = ?2, error = ?3, updated_at_ms = ?4 WHERE id = ?1")?
        .execute(params![row, next.as_str(), error, now_ms()])?;
    Ok(())
}

pub(super) fn decide(
    sql: &Connection,
    key: BundleKey,
    decisions: &[CommitDecision],
) -> Result<(), StoreError> {
    advance(sql, key, BundleEvent::Prepare, None)?;
    for (decision, position) in decisions.iter().zip(0i64..) {
        let (row, account, session) = sql
            .prepare_cached("SELECT id, account, session FROM commits WHERE bundle = ?1 AND position = ?2")?
            .query_row([key.0 as i64, position], |row| {
                Ok((row.get::<_, i64>(0)?, address(row, 1)?, row.get::<_, Option<i64>>(2)?))
            })?;
        if session.is_some_and(|session| session as u64 != decision.session) {
            return Err(StoreError::OtherSession(account?));
        }
        // Of several attempts, the one that had to move the most tells best what was moved in all.
        sql.prepare_cached(
            "UPDATE commits
             SET session = ?2, nonce = ?3, strategy = ?4, rent_lamports = max(coalesce(rent_lamports, 0), ?5)
             WHERE id = ?1",
        )?
        .execute(params![
            row,
            decision.session as i64,
            decision.nonce.0 as i64,
            decision.strategy.to_string(),
            decision.rent.0 as i64
        ])?;
    }
    Ok(())
}

pub(super) fn signed(
    sql: &Connection,
    key: BundleKey,
    transactions: &[NewTransaction],
) -> Result<(), StoreError> {
    if transactions.iter().any(|transaction| transaction.stage == Stage::Commit) {
        advance(sql, key, BundleEvent::Commit, None)?;
    }
    for transaction in transactions {
        // The same plan on the same blockhash is the same transaction: signed again after a restart, it is known already.
        sql.prepare_cached(
            "INSERT INTO transactions (bundle, stage, signature, last_valid_block_height, status)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (signature) DO NOTHING",
        )?
        .execute(params![
            key.0 as i64,
            transaction.stage.as_str(),
            transaction.signature.as_ref(),
            transaction.last_valid_block_height as i64,
            TransactionStatus::Signed.as_str()
        ])?;
        let row: i64 = sql
            .prepare_cached("SELECT id FROM transactions WHERE signature = ?1")?
            .query_row([transaction.signature.as_ref()], |row| row.get(0))?;
        for position in &transaction.commits {
            sql.prepare_cached(
                "INSERT OR IGNORE INTO transaction_commits (transaction_row, commit_row)
                 SELECT ?1, id FROM commits WHERE bundle = ?2 AND position = ?3",
            )?
            .execute(params![row, key.0 as i64, *position as i64])?;
        }
    }
    Ok(())
}

pub(super) fn settled(
    sql: &Connection,
    signature: Signature,
    outcome: &TransactionOutcome,
) -> Result<(), StoreError> {
    let (status, slot, units, fee, error) = match outcome {
        TransactionOutcome::Landed { slot, compute_units, fee } => {
            let fee = fee.map(|fee| fee.0 as i64);
            let units = compute_units.map(|units| units as i64);
            (TransactionStatus::Landed, Some(*slot as i64), units, fee, None)
        }
        TransactionOutcome::Failed(error) => {
            (TransactionStatus::Failed, None, None, None, Some(error.as_str()))
        }
        TransactionOutcome::Expired => (TransactionStatus::Expired, None, None, None, None),
    };
    sql.prepare_cached(
        "UPDATE transactions
         SET status = ?2, slot = ?3, compute_units = ?4, fee_lamports = ?5, error = ?6
         WHERE signature = ?1",
    )?
    .execute(params![signature.as_ref(), status.as_str(), slot, units, fee, error])?;
    Ok(())
}

pub(super) fn end(sql: &Connection, key: BundleKey, end: &BundleEnd) -> Result<(), StoreError> {
    match end {
        BundleEnd::Failed(error) => advance(sql, key, BundleEvent::Fail, Some(error)),
        BundleEnd::Landed(signature) => {
            advance(sql, key, BundleEvent::Land, None)?;
            let Some(signature) = signature else { return Ok(()) };
            // A commit applies at once, so one transaction is the proof of both steps.
            for step in ["commit", "finalize"] {
                sql.prepare_cached(
                    "INSERT INTO bundle_signatures (bundle, step, signature) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![key.0 as i64, step, signature.as_ref()])?;
            }
            Ok(())
        }
    }
}

pub(super) fn verified(sql: &Connection, key: BundleKey, account: &Address) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE commits SET verified = 1 WHERE bundle = ?1 AND account = ?2",
        params![key.0 as i64, account.as_ref()],
    )?;
    Ok(())
}
