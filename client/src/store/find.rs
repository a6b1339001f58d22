//! What people look for among many changesets.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;
use solana_address::Address;

use super::{
    BundleReport, Store, StoreError, report,
    sql::{Param, Row, Sql},
    write::now_ms,
};
use crate::types::{BundleId, BundleKey, BundleStatus, Lamports};

/// Which bundles to find: those that everything which is given applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleFilter {
    /// Those that commit to this account.
    pub account: Option<Address>,
    /// Those that their callers gave this id, in any changeset.
    pub bundle: Option<BundleId>,
    /// Those that stand there.
    pub status: Option<BundleStatus>,
    /// Those that have not moved for so long.
    pub older_than: Option<Duration>,
    /// At most so many.
    pub limit: u32,
}

/// Sums over all that a store holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Changesets.
    pub changesets: u64,
    /// Bundles, by where they stand.
    pub bundles: BTreeMap<&'static str, u64>,
    /// Commits.
    pub commits: u64,
    /// Length of their states in bytes.
    pub state_bytes: u64,
    /// Transactions that landed.
    pub transactions: u64,
    /// Compute units that they used.
    pub compute_units: u64,
    /// Fees that they paid, in lamports.
    pub fee_lamports: Lamports,
}

pub(super) const TOTALS: &str = "SELECT name, total FROM totals";
pub(super) const BY_STATUS: &str = "SELECT id, updated_at_ms FROM bundles
     WHERE status = ?1 AND updated_at_ms <= ?2 ORDER BY updated_at_ms DESC, id DESC LIMIT ?3";

impl Store {
    /// The bundles that a filter is for: by account or id the newest first, otherwise those first that moved last.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn find(&self, filter: BundleFilter) -> Result<Vec<BundleReport>, StoreError> {
        self.readers.run("look for bundles", move |sql| find(sql, &filter)).await
    }

    /// Sums over all that the store holds; what was pruned is in none of them.
    ///
    /// # Errors
    /// [`StoreError`] if they could not be read.
    pub async fn totals(&self) -> Result<Totals, StoreError> {
        self.readers.run("read the totals", totals).await
    }
}

/// The statement for what has an index of its own, and its parameters.
pub(super) fn statement(filter: &BundleFilter, until: i64) -> (String, Vec<Param<'_>>) {
    let mut params: Vec<Param> = Vec::new();
    let mut conditions: Vec<String> = Vec::new();
    let mut add = |condition: &str, param| {
        params.push(param);
        conditions.push(format!("{condition} ?{}", params.len()));
    };
    if let Some(account) = &filter.account {
        add("account =", account.into());
    }
    if let Some(bundle) = filter.bundle {
        add("bundle_id =", bundle.0.into());
    }
    if let Some(status) = filter.status {
        // The sign keeps SQLite from using the index by status here: what is asked for has a better one.
        add("status || '' =", status.as_str().into());
    }
    if filter.older_than.is_some() {
        add("updated_at_ms <=", until.into());
    }
    let conditions = conditions.join(" AND ");
    params.push(i64::from(filter.limit).into());
    let limit = params.len();
    let statement = if filter.account.is_some() {
        format!(
            "SELECT bundles.id FROM commits JOIN bundles ON bundles.id = commits.bundle
             WHERE {conditions} ORDER BY commits.id DESC LIMIT ?{limit}"
        )
    } else {
        format!("SELECT id FROM bundles WHERE {conditions} ORDER BY id DESC LIMIT ?{limit}")
    };
    (statement, params)
}

pub(super) fn find(sql: &dyn Sql, filter: &BundleFilter) -> Result<Vec<BundleReport>, StoreError> {
    let age = filter.older_than.unwrap_or_default().as_millis();
    let until = now_ms().saturating_sub(i64::try_from(age).unwrap_or(i64::MAX));
    let mut keys: Vec<u64>;
    if filter.account.is_some() || filter.bundle.is_some() {
        let (statement, params) = statement(filter, until);
        keys = sql.query(&statement, &params)?.iter().map(|row| row.number(0)).collect::<Result<_, _>>()?;
    } else {
        // One index serves status and age: without a status, each has its turn.
        let every = BundleStatus::ALL;
        let statuses = filter.status.as_ref().map_or(&every[..], std::slice::from_ref);
        let params = statuses
            .iter()
            .map(|status| vec![status.as_str().into(), until.into(), i64::from(filter.limit).into()]);
        let rows = sql.query_each(BY_STATUS, &params.collect::<Vec<_>>())?;
        let moved = |row: &Row| Ok((row.int(1)?, row.number(0)?));
        let mut found: Vec<(i64, u64)> = rows.iter().map(moved).collect::<Result<_, StoreError>>()?;
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(filter.limit as usize);
        keys = found.into_iter().map(|(_, key)| key).collect();
    }
    keys.dedup();
    keys.into_iter().map(|key| report::bundle(sql, BundleKey(key))).collect()
}

fn totals(sql: &dyn Sql) -> Result<Totals, StoreError> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for row in sql.query(TOTALS, &[])? {
        found.insert(row.text(0)?, row.number(1)?);
    }
    let total = |name: &str| found.get(name).copied().unwrap_or_default();
    Ok(Totals {
        changesets: total("changesets"),
        bundles: BundleStatus::ALL.map(|status| (status.as_str(), total(status.as_str()))).into(),
        commits: total("commits"),
        state_bytes: total("state_bytes"),
        transactions: total("transactions"),
        compute_units: total("compute_units"),
        fee_lamports: Lamports(total("fee_lamports")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{audit, read, report, retention, sqlite, tables, write};

    /// The steps in which SQLite answers a question.
    fn plan(sql: &dyn Sql, statement: &str, count: usize) -> Vec<String> {
        let params = vec![Param::Int(1); count];
        let rows = sql.query(&format!("EXPLAIN QUERY PLAN {statement}"), &params).unwrap();
        rows.iter().map(|row| row.text(3).unwrap()).collect()
    }

    #[test]
    fn no_question_reads_a_whole_table() {
        let folder = tempfile::tempdir().unwrap();
        let store = sqlite::open(&folder.path().join("s.db")).unwrap();
        let account = Some(Address::new_from_array([1; 32]));
        let filter = |account, bundle, status, older_than| BundleFilter {
            account,
            bundle,
            status,
            older_than,
            limit: 9,
        };
        let (bundle, status, age) =
            (Some(BundleId(1)), Some(BundleStatus::Failed), Some(Duration::from_secs(1)));
        let mut statements: Vec<(String, usize)> = Vec::new();
        for (account, bundle) in [(account, None), (None, bundle), (account, bundle)] {
            for (status, age) in [(None, None), (status, None), (None, age), (status, age)] {
                let filter = filter(account, bundle, status, age);
                let (statement, params) = statement(&filter, 1);
                statements.push((statement, params.len()));
            }
        }
        let fixed = [
            (BY_STATUS, 3),
            (report::COUNTS, 1),
            (report::HISTORY, 2),
            (report::BUNDLE_COSTS, 1),
            (report::COMMIT_COSTS, 1),
            (read::UNFINISHED, 0),
            (read::STAGED, 0),
            (read::LAST_LANDED, 1),
            (read::LAST_SLOT, 2),
            (read::OPEN_TRANSACTIONS, 2),
            (read::WITHOUT_COST, 1),
            (audit::ACCOUNTS, 2),
            (audit::LANDING, 1),
            (audit::UNFINISHED, 1),
            (write::NEWER, 1),
            (retention::ENDED, 3),
            (tables::ENTRIES, 1),
            (tables::RELEASE_ENDED, 0),
            (retention::PRUNABLE, 2),
        ];
        statements.extend(fixed.map(|(statement, count)| (statement.to_owned(), count)));
        statements.extend(retention::OF_BUNDLE.map(|statement| (statement.to_owned(), 1)));
        statements.extend(tables::RELEASE.map(|statement| (statement.to_owned(), 2)));
        for (statement, count) in statements {
            for step in plan(&store, &statement, count) {
                assert!(!step.starts_with("SCAN") && !step.contains("AUTOMATIC"), "{statement}\n{step}");
                // Sorting means that all there is has to be read before the first row is known.
                // Of the first two, all that is found is wanted; the third sorts the bundles of one changeset.
                let sorts = [read::UNFINISHED, read::STAGED, retention::ENDED].contains(&&*statement);
                assert!(!step.contains("TEMP B-TREE") || sorts, "{statement}\n{step}");
            }
        }
        // These read an index from one end as far as they are allowed to, or one that has only what is asked for.
        let whole = [(report::CHANGESETS, 1, "SCAN changesets"), (TOTALS, 0, "SCAN totals")];
        for (statement, count, expected) in whole {
            assert_eq!(plan(&store, statement, count), [expected]);
        }
    }
}
