//! Changes. Each function is one change that lands as a whole: the writer runs it inside a savepoint.

use std::{
    collections::HashSet,
    time::{SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, OptionalExtension, params};
use solana_address::Address;
use solana_signature::Signature;

use super::{
    BundleEnd, CommitDecision, NewTransaction, QueuedBundle, Refusal, StoreError, TransactionOutcome, action,
    read::{address, mode, parse_status, queued},
};
use crate::types::{
    BundleEvent, BundleKey, BundleStatus, Changeset, ChangesetId, CommitBundle, CommitId, CommitMode,
    Lamports, Stage, TransactionStatus,
};

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn accept(
    sql: &Connection,
    changeset: &Changeset,
    refused: &[Refusal],
) -> Result<(ChangesetId, Vec<QueuedBundle>), StoreError> {
    sql.execute("INSERT INTO changesets (created_at_ms) VALUES (?1)", [now_ms()])?;
    let id = sql.last_insert_rowid();
    let mut queued = Vec::with_capacity(changeset.bundles.len());
    for (position, bundle) in changeset.bundles.iter().enumerate() {
        let accepted = accept_bundle(sql, id, bundle)?;
        match refused.iter().find(|refusal| refusal.position == position) {
            Some(refusal) => drop(advance(sql, accepted.key, BundleEvent::Fail, Some(&refusal.reason))?),
            None => queued.push(accepted),
        }
    }
    Ok((ChangesetId(id as u64), queued))
}

fn accept_bundle(
    sql: &Connection,
    changeset: i64,
    bundle: &CommitBundle,
) -> Result<QueuedBundle, StoreError> {
    let status = BundleStatus::Accepted;
    let actions = action::encode(&bundle.actions);
    sql.prepare_cached(
        "INSERT INTO bundles (changeset, bundle_id, mode, actions, status, updated_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        changeset,
        bundle.id.0 as i64,
        bundle.mode.as_str(),
        actions,
        status.as_str(),
        now_ms()
    ])?;
    let key = sql.last_insert_rowid();
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
    }
    Ok(QueuedBundle {
        key: BundleKey(key as u64),
        changeset: ChangesetId(changeset as u64),
        id: bundle.id,
        status,
        accounts: bundle.commits.iter().map(|commit| commit.account).collect(),
        state_bytes: bundle.commits.iter().map(|commit| commit.state.len() as u64).sum(),
        is_plain: bundle.mode == CommitMode::Finalize && actions.is_none(),
    })
}

/// Moves a bundle on, by the state machine.
fn advance(
    sql: &Connection,
    key: BundleKey,
    event: BundleEvent,
    error: Option<&str>,
) -> Result<BundleStatus, StoreError> {
    let row = key.0 as i64;
    let status: Option<String> = sql
        .prepare_cached("SELECT status FROM bundles WHERE id = ?1")?
        .query_row([row], |row| row.get(0))
        .optional()?;
    let status = parse_status(&status.ok_or(StoreError::NoBundle(key))?)?;
    let next = status.next(event)?;
    sql.prepare_cached("UPDATE bundles SET status = ?2, error = ?3, updated_at_ms = ?4 WHERE id = ?1")?
        .execute(params![row, next.as_str(), error, now_ms()])?;
    Ok(status)
}

pub(super) fn finalize(sql: &Connection, key: BundleKey) -> Result<QueuedBundle, StoreError> {
    advance(sql, key, BundleEvent::Finalize, None)?;
    queued(sql, key)
}

pub(super) fn supersede(sql: &Connection, key: BundleKey, by: BundleKey) -> Result<(), StoreError> {
    let status: Option<String> = sql
        .prepare_cached("SELECT status FROM bundles WHERE id = ?1")?
        .query_row([key.0 as i64], |row| row.get(0))
        .optional()?;
    let next = parse_status(&status.ok_or(StoreError::NoBundle(key))?)?.next(BundleEvent::Supersede)?;
    // Both columns at once: neither is allowed without the other.
    sql.prepare_cached(
        "UPDATE bundles SET status = ?2, superseded_by = ?3, updated_at_ms = ?4 WHERE id = ?1",
    )?
    .execute(params![key.0 as i64, next.as_str(), by.0 as i64, now_ms()])?;
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
        if let Some(buffer) = decision.buffer {
            sql.prepare_cached("INSERT OR IGNORE INTO buffers (address, commit_row) VALUES (?1, ?2)")?
                .execute(params![buffer.as_ref(), row])?;
        }
    }
    Ok(())
}

pub(super) fn signed(sql: &Connection, transactions: &[NewTransaction]) -> Result<(), StoreError> {
    let mut moved = HashSet::new();
    for transaction in transactions {
        for (bundle, _) in &transaction.serves {
            if transaction.stage == Stage::Commit && moved.insert(*bundle) {
                advance(sql, *bundle, BundleEvent::Commit, None)?;
            }
        }
        // The same plan on the same blockhash is the same transaction: signed again after a restart, it is known already.
        sql.prepare_cached(
            "INSERT INTO transactions (stage, signature, last_valid_block_height, status)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (signature) DO NOTHING",
        )?
        .execute(params![
            transaction.stage.as_str(),
            transaction.signature.as_ref(),
            transaction.last_valid_block_height as i64,
            TransactionStatus::Signed.as_str()
        ])?;
        let row: i64 = sql
            .prepare_cached("SELECT id FROM transactions WHERE signature = ?1")?
            .query_row([transaction.signature.as_ref()], |row| row.get(0))?;
        for (bundle, position) in &transaction.serves {
            sql.prepare_cached(
                "INSERT OR IGNORE INTO transaction_commits (transaction_row, commit_row)
                 SELECT ?1, id FROM commits WHERE bundle = ?2 AND position = ?3",
            )?
            .execute(params![row, bundle.0 as i64, *position as i64])?;
        }
    }
    Ok(())
}

pub(super) fn settled(
    sql: &Connection,
    signature: Signature,
    outcome: &TransactionOutcome,
) -> Result<(), StoreError> {
    let (status, slot, error) = match outcome {
        TransactionOutcome::Landed { slot } => (TransactionStatus::Landed, Some(*slot as i64), None),
        TransactionOutcome::Failed(error) => (TransactionStatus::Failed, None, Some(error.as_str())),
        TransactionOutcome::Expired => (TransactionStatus::Expired, None, None),
    };
    sql.prepare_cached("UPDATE transactions SET status = ?2, slot = ?3, error = ?4 WHERE signature = ?1")?
        .execute(params![signature.as_ref(), status.as_str(), slot, error])?;
    Ok(())
}

pub(super) fn cost(
    sql: &Connection,
    signature: Signature,
    compute_units: u64,
    fee: Lamports,
) -> Result<(), StoreError> {
    sql.prepare_cached("UPDATE transactions SET compute_units = ?2, fee_lamports = ?3 WHERE signature = ?1")?
        .execute(params![signature.as_ref(), compute_units as i64, fee.0 as i64])?;
    Ok(())
}

pub(super) fn end(sql: &Connection, key: BundleKey, end: &BundleEnd) -> Result<(), StoreError> {
    match end {
        BundleEnd::Failed(error) => advance(sql, key, BundleEvent::Fail, Some(error)).map(drop),
        BundleEnd::Postponed(error) => advance(sql, key, BundleEvent::Postpone, Some(error)).map(drop),
        BundleEnd::Staged(proof) => {
            advance(sql, key, BundleEvent::Stage, None)?;
            step(sql, key, &["commit"], *proof)
        }
        BundleEnd::Landed(proof) => {
            let before = advance(sql, key, BundleEvent::Land, None)?;
            // What applies at once proves all of its steps with one transaction.
            let steps: &[&str] = match (before, mode(sql, key)?) {
                (BundleStatus::Finalizing, _) => &["finalize"],
                (_, CommitMode::Finalize | CommitMode::Stage) => &["commit", "finalize"],
                (_, CommitMode::Undelegate) => &["commit", "finalize", "undelegate"],
            };
            step(sql, key, steps, *proof)
        }
    }
}

fn step(
    sql: &Connection,
    key: BundleKey,
    steps: &[&str],
    proof: Option<Signature>,
) -> Result<(), StoreError> {
    let Some(signature) = proof else { return Ok(()) };
    for step in steps {
        sql.prepare_cached(
            "INSERT OR IGNORE INTO bundle_signatures (bundle, step, signature) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![key.0 as i64, step, signature.as_ref()])?;
    }
    Ok(())
}

pub(super) fn verified(sql: &Connection, key: BundleKey, account: &Address) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE commits SET verified = 1 WHERE bundle = ?1 AND account = ?2",
        params![key.0 as i64, account.as_ref()],
    )?;
    Ok(())
}
