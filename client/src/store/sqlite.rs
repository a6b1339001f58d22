//! A store in a SQLite file.

use std::{
    cell::RefCell,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{
    Connection, OpenFlags, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    StoreError,
    error::DatabaseError,
    migrations,
    sql::{Cell, Durability, Param, Row, Sql, Transactions},
};

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Statements that are kept prepared, on each connection.
const STATEMENTS: usize = 64;
/// Length of the write-ahead log, in bytes, from which on the writer empties it itself. SQLite does it every 4 MB, but only
/// as long as no reader is in the way.
const WAL_LIMIT: u64 = 32 * 1024 * 1024;
/// How long the writer waits for readers when it empties the log.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_millis(100);

/// The connection that writes.
pub(super) struct Writing {
    connection: Connection,
    wal: PathBuf,
    synchronous: Option<Durability>,
    /// Length of the log from which on it is emptied.
    empty_at: u64,
    /// The error that ended the transaction before its time.
    ended_by: RefCell<Option<rusqlite::Error>>,
}

/// Opens a file, and makes or migrates it if need be.
pub(super) fn open(path: &Path) -> Result<Writing, StoreError> {
    let open = |source: rusqlite::Error| StoreError::Open { store: name(path), source: source.into() };
    let wal = beside(path, "-wal");
    // SQLite takes an empty file for a new database and deletes the log beside it.
    let len = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    if path.exists() && len(path) == 0 && len(&wal) > 0 {
        return Err(StoreError::Emptied { store: name(path) });
    }
    if len(&wal) == 0 && len(&beside(path, "-journal")) == 0 {
        // With a log, what the file lacks may be in there.
        whole(path).map_err(|(len, expected)| StoreError::Cut { store: name(path), len, expected })?;
    }
    let mut connection = Connection::open(path).map_err(open)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(open)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch("PRAGMA foreign_keys = ON;").map_err(open)?;
    // Before the first pragma that writes: what is not ours must stay as it is.
    let version = migrations::version(&connection, path)?;
    connection
        .execute_batch(&format!("PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = {WAL_LIMIT};"))
        .map_err(open)?;
    connection.execute_batch("PRAGMA synchronous = FULL;").map_err(open)?;
    migrations::run(&mut connection, version, path)?;
    Ok(Writing {
        connection,
        wal,
        synchronous: Some(Durability::Power),
        empty_at: WAL_LIMIT,
        ended_by: RefCell::default(),
    })
}

/// Checks that a file is as long as its header says. SQLite takes what is missing of a page for zeroes, and so rows for
/// absent that were there. What is no database is left to SQLite.
///
/// # Errors
/// The file's length, and what it should be at least.
fn whole(path: &Path) -> Result<(), (u64, u64)> {
    let mut header = [0; 100];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    let number = |at: usize| u64::from(u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte])));
    // The page count is valid if the file was last written by a version that keeps it.
    if read.is_err() || !header.starts_with(b"SQLite format 3\0") || number(24) != number(92) {
        return Ok(());
    }
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        page => page,
    };
    let (len, expected) = (std::fs::metadata(path).map_or(0, |file| file.len()), number(28) * page);
    if len < expected { Err((len, expected)) } else { Ok(()) }
}

/// Opens a connection that only reads.
pub(super) fn reading(path: &Path) -> Result<Connection, StoreError> {
    let open = |source: rusqlite::Error| StoreError::Open { store: name(path), source: source.into() };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(open)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(open)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// How errors call the file.
pub(super) fn name(path: &Path) -> String {
    path.display().to_string()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Writing {
    /// Moves what is in the log into the file and empties the log, once it has grown too long.
    ///
    /// A reader that holds an old state is waited for, briefly: then the log goes on growing, and the next try comes when it
    /// is longer by as much again.
    fn keep_log_short(&mut self) {
        let len = std::fs::metadata(&self.wal).map_or(0, |file| file.len());
        if len < self.empty_at {
            return;
        }
        let _ = self.connection.busy_timeout(CHECKPOINT_TIMEOUT);
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        let _ = self.connection.busy_timeout(BUSY_TIMEOUT);
        match emptied {
            Ok(0i64) => self.empty_at = WAL_LIMIT,
            Ok(_) => self.empty_at = len + WAL_LIMIT,
            Err(error) => {
                tracing::warn!(%error, "could not empty the store's write-ahead log");
                self.empty_at = len + WAL_LIMIT;
            }
        }
    }

    fn note(&self, error: &DatabaseError) {
        let mut ended_by = self.ended_by.borrow_mut();
        if let DatabaseError::Sqlite(rusqlite::Error::SqliteFailure(code, words)) = error
            && self.connection.is_autocommit()
            && ended_by.is_none()
        {
            *ended_by = Some(rusqlite::Error::SqliteFailure(*code, words.clone()));
        }
    }
}

impl Transactions for Writing {
    fn begin(&mut self, durability: Durability) -> Result<(), DatabaseError> {
        self.ended_by.take();
        // It can't be changed inside a transaction.
        if self.synchronous != Some(durability) {
            self.synchronous = None;
            self.connection.execute_batch(match durability {
                Durability::Power => "PRAGMA synchronous = FULL",
                Durability::Process => "PRAGMA synchronous = NORMAL",
            })?;
            self.synchronous = Some(durability);
        }
        Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?)
    }

    fn commit(&mut self) -> Result<(), DatabaseError> {
        let committed = self.connection.execute_batch("COMMIT");
        if committed.is_ok() {
            self.keep_log_short();
        }
        Ok(committed?)
    }

    fn cause(&self, error: DatabaseError) -> DatabaseError {
        self.ended_by.take().map_or(error, DatabaseError::from)
    }

    fn rollback(&mut self) {
        // SQLite has ended it by itself after some errors.
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn sync(&mut self) {
        // A checkpoint makes the log durable before it moves anything.
        if let Err(error) = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::warn!(%error, "could not make the store's last changes durable; the next ones will");
        }
    }
}

impl Sql for Writing {
    fn execute(&self, sql: &str, params: &[Param]) -> Result<u64, DatabaseError> {
        // Through the trait: the connection has a method of that name.
        Sql::execute(&self.connection, sql, params).inspect_err(|error| self.note(error))
    }

    fn query(&self, sql: &str, params: &[Param]) -> Result<Vec<Row>, DatabaseError> {
        self.connection.query(sql, params).inspect_err(|error| self.note(error))
    }
}

impl Sql for Connection {
    fn execute(&self, sql: &str, params: &[Param]) -> Result<u64, DatabaseError> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(params))? as u64)
    }

    fn query(&self, sql: &str, params: &[Param]) -> Result<Vec<Row>, DatabaseError> {
        let mut statement = self.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map(params_from_iter(params), |row| {
            let cells = (0..columns).map(|column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(number) => Cell::Int(number),
                    ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
                    ValueRef::Blob(bytes) => Cell::Blob(bytes.to_owned()),
                    // No column holds one: whoever reads it is told that the text is none.
                    ValueRef::Real(number) => Cell::Text(number.to_string()),
                })
            });
            cells.collect::<rusqlite::Result<_>>().map(Row)
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
