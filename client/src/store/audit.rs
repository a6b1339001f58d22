//! What an audit compares with the chain.

use solana_address::Address;

use super::{
    StoreError, StoredLanding,
    read::{parse_mode, state},
    sql::{Sql, params},
};
use crate::types::{BundleKey, CommitId, Nonce};

/// Accounts after one, in the order of their bytes; from the index of commits by account.
pub(super) const ACCOUNTS: &str =
    "SELECT DISTINCT account FROM commits WHERE account > ?1 ORDER BY account LIMIT ?2";
const FIRST_ACCOUNTS: &str = "SELECT DISTINCT account FROM commits ORDER BY account LIMIT ?1";

pub(super) const LANDING: &str = "SELECT bundle, mode, session, nonce, commit_id, state
     FROM commits JOIN bundles ON bundles.id = bundle JOIN commit_values ON commit_row = commits.id
     WHERE account = ?1 AND status = 'landed' AND nonce IS NOT NULL
     ORDER BY commits.id DESC LIMIT 1";
pub(super) const UNFINISHED: &str = "SELECT count(*) FROM commits JOIN bundles ON bundles.id = bundle
     WHERE account = ?1 AND status IN ('accepted', 'preparing', 'committing', 'staged', 'finalizing')";

/// The accounts after `after`, `limit` at most.
pub(super) fn accounts(
    sql: &dyn Sql,
    after: Option<Address>,
    limit: u32,
) -> Result<Vec<Address>, StoreError> {
    let rows = match after {
        Some(after) => sql.query(ACCOUNTS, params![&after, u64::from(limit)])?,
        None => sql.query(FIRST_ACCOUNTS, params![u64::from(limit)])?,
    };
    rows.iter().map(|row| row.address(0)).collect()
}

/// The last commit of an account that landed from here, and whether there is more to come.
pub(super) fn landing(sql: &dyn Sql, account: Address) -> Result<Option<StoredLanding>, StoreError> {
    let Some(mut row) = sql.first(LANDING, params![&account])? else { return Ok(None) };
    let unfinished = sql.first(UNFINISHED, params![&account])?;
    Ok(Some(StoredLanding {
        account,
        bundle: BundleKey(row.number(0)?),
        mode: parse_mode(&row.text(1)?)?,
        session: row.number(2)?,
        nonce: Nonce(row.number(3)?),
        commit_id: CommitId(row.number(4)?),
        state: state(&mut row, 5)?,
        unfinished: unfinished.map(|row| row.number(0)).transpose()?.unwrap_or_default() > 0,
    }))
}
