//! Changes. Each function is one change that lands as a whole: the writer runs it inside a savepoint.

use std::{
    collections::HashSet,
    time::{SystemTime, UNIX_EPOCH},
};

use solana_address::Address;
use solana_signature::Signature;

use super::{
    BundleEnd, CommitDecision, NewTransaction, QueuedBundle, Refusal, StoreError, TransactionOutcome, action,
    read::{mode, parse_status, queued},
    sql::{Param, Row, Sql, params},
};
use crate::types::{
    BundleEvent, BundleId, BundleKey, BundleStatus, Changeset, ChangesetId, CommitBundle, CommitId,
    CommitMode, Lamports, Stage, TransactionStatus,
};

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn accept(
    sql: &dyn Sql,
    changeset: &Changeset,
    refused: &[Refusal],
) -> Result<(ChangesetId, Vec<QueuedBundle>), StoreError> {
    let rows =
        sql.query("INSERT INTO changesets (created_at_ms) VALUES (?1) RETURNING id", params![now_ms()])?;
    let id = ChangesetId(inserted(&rows, 1)?[0]);
    let keys = insert_bundles(sql, id, &changeset.bundles)?;
    insert_commits(sql, &keys, &changeset.bundles)?;
    for refusal in refused {
        if let Some(key) = keys.get(refusal.position) {
            advance(sql, *key, BundleEvent::Fail, Some(&refusal.reason))?;
        }
    }
    let is_refused = |position| refused.iter().any(|refusal| refusal.position == position);
    let queued = keys.into_iter().zip(&changeset.bundles).enumerate();
    let queued =
        queued.filter(|(position, _)| !is_refused(*position)).map(|(_, (key, bundle))| QueuedBundle {
            key,
            changeset: id,
            id: bundle.id,
            status: BundleStatus::Accepted,
            accounts: bundle.commits.iter().map(|commit| commit.account).collect(),
            state_bytes: bundle.commits.iter().map(|commit| commit.state.len() as u64).sum(),
            is_plain: bundle.mode == CommitMode::Finalize && bundle.actions.is_empty(),
        });
    Ok((id, queued.collect()))
}

/// The keys of rows that were inserted, as many as there should be.
fn inserted(rows: &[Row], count: usize) -> Result<Vec<u64>, StoreError> {
    if rows.len() != count {
        let found = format!("{} instead of {count}", rows.len());
        return Err(StoreError::Corrupt { what: "new rows", found });
    }
    rows.iter().map(|row| row.number(0)).collect()
}

fn insert_bundles(
    sql: &dyn Sql,
    changeset: ChangesetId,
    bundles: &[CommitBundle],
) -> Result<Vec<BundleKey>, StoreError> {
    let actions: Vec<_> = bundles.iter().map(|bundle| action::encode(&bundle.actions)).collect();
    let (accepted, now) = (BundleStatus::Accepted.as_str(), now_ms());
    let mut rows: Vec<Vec<Param>> = Vec::with_capacity(bundles.len());
    for (bundle, actions) in bundles.iter().zip(&actions) {
        let (id, mode, actions) =
            (bundle.id.0.into(), bundle.mode.as_str().into(), actions.as_deref().into());
        rows.push(vec![changeset.0.into(), id, mode, actions, accepted.into(), now.into()]);
    }
    let rows = sql.query_each(
        "INSERT INTO bundles (changeset, bundle_id, mode, actions, status, updated_at_ms, asked_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) RETURNING id",
        &rows,
    )?;
    Ok(inserted(&rows, bundles.len())?.into_iter().map(BundleKey).collect())
}

fn insert_commits(sql: &dyn Sql, keys: &[BundleKey], bundles: &[CommitBundle]) -> Result<(), StoreError> {
    let mut commits: Vec<Vec<Param>> = Vec::new();
    let mut states: Vec<&[u8]> = Vec::new();
    for (key, bundle) in keys.iter().zip(bundles) {
        for (commit, position) in bundle.commits.iter().zip(0i64..) {
            // Random, so that no two committors of one authority take each other's commits for their own.
            let commit_id = CommitId(rand::random());
            let len = commit.state.len() as u64;
            let account = Param::from(&commit.account);
            commits.push(vec![key.0.into(), position.into(), account, commit_id.0.into(), len.into()]);
            states.push(&commit.state);
        }
    }
    let rows = sql.query_each(
        "INSERT INTO commits (bundle, position, account, commit_id, state_len) VALUES (?1, ?2, ?3, ?4, ?5)
         RETURNING id",
        &commits,
    )?;
    let rows = inserted(&rows, states.len())?;
    let values = rows.into_iter().zip(states).map(|(row, state)| vec![row.into(), state.into()]);
    sql.query_each(
        "INSERT INTO commit_values (commit_row, state) VALUES (?1, ?2)",
        &values.collect::<Vec<_>>(),
    )?;
    Ok(())
}

/// Where a bundle stands.
fn status(sql: &dyn Sql, key: BundleKey) -> Result<BundleStatus, StoreError> {
    let row = sql.first("SELECT status FROM bundles WHERE id = ?1", params![key.0])?;
    parse_status(&row.ok_or(StoreError::NoBundle(key))?.text(0)?)
}

/// Moves a bundle on, by the state machine. Returns where it stood.
fn advance(
    sql: &dyn Sql,
    key: BundleKey,
    event: BundleEvent,
    error: Option<&str>,
) -> Result<BundleStatus, StoreError> {
    let before = status(sql, key)?;
    let next = before.next(event)?.as_str();
    sql.execute(
        "UPDATE bundles SET status = ?2, error = ?3, updated_at_ms = ?4 WHERE id = ?1",
        params![key.0, next, error, now_ms()],
    )?;
    Ok(before)
}

pub(super) fn finalize(sql: &dyn Sql, key: BundleKey) -> Result<QueuedBundle, StoreError> {
    advance(sql, key, BundleEvent::Finalize, None)?;
    sql.execute("UPDATE bundles SET asked_at_ms = ?2 WHERE id = ?1", params![key.0, now_ms()])?;
    queued(sql, key)
}

/// A bundle that shares an account with an older one and was not given up: what it committed, or is going to, is newer.
pub(super) const NEWER: &str = "SELECT newer.account, bundles.changeset, bundles.bundle_id
     FROM commits AS own
         JOIN commits AS newer ON newer.account = own.account AND newer.id > own.id
         JOIN bundles ON bundles.id = newer.bundle
     WHERE own.bundle = ?1 AND status NOT IN ('failed', 'superseded', 'abandoned') LIMIT 1";

pub(super) fn retry(sql: &dyn Sql, key: BundleKey) -> Result<QueuedBundle, StoreError> {
    let staged = sql.first("SELECT was_staged FROM bundles WHERE id = ?1", params![key.0])?;
    let staged = staged.ok_or(StoreError::NoBundle(key))?.flag(0)?;
    advance(sql, key, if staged { BundleEvent::RetryFinalize } else { BundleEvent::Retry }, None)?;
    if let Some(newer) = sql.first(NEWER, params![key.0])? {
        let (account, changeset, bundle) = (newer.address(0)?, newer.number(1)?, newer.number(2)?);
        return Err(StoreError::NewerBundle {
            account,
            changeset: ChangesetId(changeset),
            bundle: BundleId(bundle),
        });
    }
    sql.execute("UPDATE bundles SET asked_at_ms = ?2 WHERE id = ?1", params![key.0, now_ms()])?;
    queued(sql, key)
}

pub(super) fn abandon(sql: &dyn Sql, key: BundleKey) -> Result<(), StoreError> {
    let next = status(sql, key)?.next(BundleEvent::Abandon)?.as_str();
    // Why it failed stays.
    sql.execute(
        "UPDATE bundles SET status = ?2, updated_at_ms = ?3 WHERE id = ?1",
        params![key.0, next, now_ms()],
    )?;
    Ok(())
}

pub(super) fn supersede(sql: &dyn Sql, key: BundleKey, by: BundleKey) -> Result<(), StoreError> {
    let next = status(sql, key)?.next(BundleEvent::Supersede)?.as_str();
    // Both columns at once: neither is allowed without the other.
    sql.execute(
        "UPDATE bundles SET status = ?2, superseded_by = ?3, updated_at_ms = ?4 WHERE id = ?1",
        params![key.0, next, by.0, now_ms()],
    )?;
    Ok(())
}

pub(super) fn decide(sql: &dyn Sql, key: BundleKey, decisions: &[CommitDecision]) -> Result<(), StoreError> {
    advance(sql, key, BundleEvent::Prepare, None)?;
    let commits = sql.query(
        "SELECT id, account, session FROM commits WHERE bundle = ?1 ORDER BY position",
        params![key.0],
    )?;
    if commits.len() != decisions.len() {
        let found = format!("{} of {}", commits.len(), decisions.len());
        return Err(StoreError::Corrupt { what: "commits", found });
    }
    let strategies: Vec<String> = decisions.iter().map(|decision| decision.strategy.to_string()).collect();
    let mut updates: Vec<Vec<Param>> = Vec::with_capacity(decisions.len());
    let mut buffers: Vec<Vec<Param>> = Vec::new();
    for ((row, decision), strategy) in commits.iter().zip(decisions).zip(&strategies) {
        let id = row.int(0)?;
        if row.optional_number(2)?.is_some_and(|session| session != decision.session) {
            return Err(StoreError::OtherSession(row.address(1)?));
        }
        let (session, nonce, rent) =
            (decision.session.into(), decision.nonce.0.into(), decision.rent.0.into());
        updates.push(vec![id.into(), session, nonce, strategy.as_str().into(), rent]);
        if let Some(buffer) = &decision.buffer {
            buffers.push(vec![buffer.into(), id.into()]);
        }
    }
    // Of several attempts, the one that had to move the most tells best what was moved in all.
    sql.query_each(
        "UPDATE commits
         SET session = ?2, nonce = ?3, strategy = ?4,
             rent_lamports = CASE WHEN rent_lamports > ?5 THEN rent_lamports ELSE ?5 END
         WHERE id = ?1",
        &updates,
    )?;
    sql.query_each(
        "INSERT INTO buffers (address, commit_row) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        &buffers,
    )?;
    Ok(())
}

pub(super) fn signed(sql: &dyn Sql, transactions: &[NewTransaction]) -> Result<(), StoreError> {
    let mut moved = HashSet::new();
    let mut rows: Vec<Vec<Param>> = Vec::with_capacity(transactions.len());
    let mut served: Vec<Vec<Param>> = Vec::new();
    for transaction in transactions {
        for (bundle, position) in &transaction.serves {
            if transaction.stage == Stage::Commit && moved.insert(*bundle) {
                advance(sql, *bundle, BundleEvent::Commit, None)?;
            }
            served.push(vec![(&transaction.signature).into(), bundle.0.into(), (*position as u64).into()]);
        }
        let (stage, status) = (transaction.stage.as_str().into(), TransactionStatus::Signed.as_str().into());
        let height = transaction.last_valid_block_height.into();
        rows.push(vec![stage, (&transaction.signature).into(), height, status]);
    }
    // The same plan on the same blockhash is the same transaction: signed again after a restart, it is known already.
    sql.query_each(
        "INSERT INTO transactions (stage, signature, last_valid_block_height, status)
         VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (signature) DO NOTHING",
        &rows,
    )?;
    sql.query_each(
        "INSERT INTO transaction_commits (transaction_row, commit_row)
         SELECT transactions.id, commits.id FROM transactions, commits
         WHERE signature = ?1 AND bundle = ?2 AND position = ?3
         ON CONFLICT DO NOTHING",
        &served,
    )?;
    Ok(())
}

pub(super) fn settled(
    sql: &dyn Sql,
    signature: Signature,
    outcome: &TransactionOutcome,
) -> Result<(), StoreError> {
    let (status, slot, error) = outcome_columns(outcome);
    sql.execute(
        "UPDATE transactions SET status = ?2, slot = ?3, error = ?4 WHERE signature = ?1",
        params![&signature, status.as_str(), slot, error],
    )?;
    Ok(())
}

/// What an outcome is in a row of a transaction: status, slot and error.
pub(super) fn outcome_columns(
    outcome: &TransactionOutcome,
) -> (TransactionStatus, Option<u64>, Option<&str>) {
    match outcome {
        TransactionOutcome::Landed { slot } => (TransactionStatus::Landed, Some(*slot), None),
        TransactionOutcome::Failed(error) => (TransactionStatus::Failed, None, Some(error)),
        TransactionOutcome::Expired => (TransactionStatus::Expired, None, None),
    }
}

pub(super) fn cost(
    sql: &dyn Sql,
    signature: Signature,
    compute_units: u64,
    fee: Lamports,
) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE transactions SET compute_units = ?2, fee_lamports = ?3 WHERE signature = ?1",
        params![&signature, compute_units, fee.0],
    )?;
    Ok(())
}

pub(super) fn end(sql: &dyn Sql, key: BundleKey, end: &BundleEnd) -> Result<(), StoreError> {
    match end {
        BundleEnd::Failed(error) => advance(sql, key, BundleEvent::Fail, Some(error)).map(drop),
        BundleEnd::Postponed(error) => advance(sql, key, BundleEvent::Postpone, Some(error)).map(drop),
        BundleEnd::Staged(proof) => {
            advance(sql, key, BundleEvent::Stage, None)?;
            sql.execute("UPDATE bundles SET was_staged = 1 WHERE id = ?1", params![key.0])?;
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

fn step(sql: &dyn Sql, key: BundleKey, steps: &[&str], proof: Option<Signature>) -> Result<(), StoreError> {
    let Some(signature) = proof else { return Ok(()) };
    for step in steps {
        sql.execute(
            "INSERT INTO bundle_signatures (bundle, step, signature) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
            params![key.0, *step, &signature],
        )?;
    }
    Ok(())
}

pub(super) fn verified(sql: &dyn Sql, key: BundleKey, account: &Address) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE commits SET verified = 1 WHERE bundle = ?1 AND account = ?2",
        params![key.0, account],
    )?;
    Ok(())
}
