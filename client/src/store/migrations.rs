//! Bringing a store file to the newest schema.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::{StoreError, sqlite::name};

/// Marks a file as a store of this program: `CMTR`.
const APPLICATION_ID: i64 = 0x434d_5452;

/// The migrations, in order. Immutable: a change of schema is a new file.
const MIGRATIONS: [&str; 5] = [
    include_str!("../../../migrations/sqlite/0001_initial.sql"),
    include_str!("../../../migrations/sqlite/0002_modes_and_buffers.sql"),
    include_str!("../../../migrations/sqlite/0003_lookup_tables.sql"),
    include_str!("../../../migrations/sqlite/0004_questions_and_retention.sql"),
    include_str!("../../../migrations/sqlite/0005_retries_and_identity.sql"),
];

/// The schema version of a file; 0 if it is new.
///
/// # Errors
/// [`StoreError`] if the file is another application's, a newer version's, or no database.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let known = MIGRATIONS.len() as i64;
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let open = |source: rusqlite::Error| StoreError::Open { store: name(path), source: source.into() };
    let application = number("PRAGMA application_id").map_err(open)?;
    let found = number("PRAGMA user_version").map_err(open)?;
    let tables = number("SELECT count(*) FROM sqlite_schema").map_err(open)?;
    let is_new = application == 0 && found == 0 && tables == 0;
    if !is_new && application != APPLICATION_ID {
        return Err(StoreError::Foreign { store: name(path) });
    }
    if found > known {
        return Err(StoreError::Newer { store: name(path), found, known });
    }
    Ok(found)
}

/// Runs the migrations that a file of `version` lacks, each with its version in one transaction.
pub(super) fn run(connection: &mut Connection, version: i64, path: &Path) -> Result<(), StoreError> {
    for (version, migration) in (1..).zip(MIGRATIONS).skip(version.max(0) as usize) {
        migrate(connection, version, migration).map_err(|source| StoreError::Migrate {
            store: name(path),
            version,
            source: source.into(),
        })?;
    }
    Ok(())
}

/// Tables are made anew under other tables that refer to them, so references are checked at the end and not on the way. The
/// switch has no effect inside a transaction.
fn migrate(connection: &mut Connection, version: i64, migration: &str) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON;")?;
    let migrated = in_transaction(connection, version, migration);
    connection.execute_batch("PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ON;")?;
    migrated
}

fn in_transaction(connection: &mut Connection, version: i64, migration: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(migration)?;
    let dangling: i64 =
        transaction.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))?;
    if dangling > 0 {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
        return Err(rusqlite::Error::SqliteFailure(code, Some(format!("{dangling} dangling references"))));
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}
