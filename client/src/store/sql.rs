//! What the statements of this module need of a database: the narrow part that SQLite and PostgreSQL have in common.
//!
//! Statements are written once, in SQL that both understand, with parameters `?1`, `?2`, …. Numbers are signed 64-bit ones,
//! flags are 0 or 1, and what was read is owned, so that no statement is open while the next one runs.

use solana_address::Address;
use solana_signature::Signature;

use super::{StoreError, error::DatabaseError};

/// A value that goes in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Param<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// A value that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

/// What a change must survive when its caller has been told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// The end of the process. A power cut may undo it, together with everything after it and nothing before it.
    Process,
    /// A power cut.
    Power,
}

/// A connection.
pub(super) trait Sql {
    /// Runs a statement; returns how many rows it changed.
    fn execute(&self, sql: &str, params: &[Param]) -> Result<u64, DatabaseError>;

    /// Runs a statement; returns its rows.
    fn query(&self, sql: &str, params: &[Param]) -> Result<Vec<Row>, DatabaseError>;

    /// Runs one statement with each of `rows` in turn; returns the rows of all, in order. Where there is a network, all of
    /// them are on their way at once.
    fn query_each(&self, sql: &str, rows: &[Vec<Param>]) -> Result<Vec<Row>, DatabaseError> {
        let mut found = Vec::with_capacity(rows.len());
        for params in rows {
            found.append(&mut self.query(sql, params)?);
        }
        Ok(found)
    }

    /// The first row of a statement, if it has one.
    fn first(&self, sql: &str, params: &[Param]) -> Result<Option<Row>, DatabaseError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }
}

/// A connection that writes.
pub(super) trait Transactions: Sql + Send {
    /// Begins a transaction that sees and blocks like the only one.
    fn begin(&mut self, durability: Durability) -> Result<(), DatabaseError>;

    /// Ends it. When this returns, it is as durable as was asked for.
    fn commit(&mut self) -> Result<(), DatabaseError>;

    /// Why a savepoint failed: some errors end the whole transaction, and what comes after them fails for that.
    fn cause(&self, error: DatabaseError) -> DatabaseError;

    /// Undoes it.
    fn rollback(&mut self);

    /// Makes durable what was committed with [`Durability::Process`]: nothing has come for a while.
    fn sync(&mut self);
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row(pub(super) Vec<Cell>);

fn corrupt(what: &'static str, found: impl std::fmt::Debug) -> StoreError {
    StoreError::Corrupt { what, found: format!("{found:?}") }
}

impl Row {
    fn cell(&self, column: usize) -> &Cell {
        self.0.get(column).unwrap_or(&Cell::Null)
    }

    pub(super) fn optional_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.cell(column) {
            Cell::Null => Ok(None),
            Cell::Int(number) => Ok(Some(*number)),
            other => Err(corrupt("a number", other)),
        }
    }

    pub(super) fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.optional_int(column)?.ok_or_else(|| corrupt("a number", Cell::Null))
    }

    /// An unsigned number, stored as the signed one of the same bits.
    pub(super) fn number(&self, column: usize) -> Result<u64, StoreError> {
        self.int(column).map(|number| number as u64)
    }

    pub(super) fn optional_number(&self, column: usize) -> Result<Option<u64>, StoreError> {
        Ok(self.optional_int(column)?.map(|number| number as u64))
    }

    pub(super) fn flag(&self, column: usize) -> Result<bool, StoreError> {
        self.int(column).map(|number| number != 0)
    }

    pub(super) fn optional_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        match self.cell(column) {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text.clone())),
            other => Err(corrupt("a text", other)),
        }
    }

    pub(super) fn text(&self, column: usize) -> Result<String, StoreError> {
        self.optional_text(column)?.ok_or_else(|| corrupt("a text", Cell::Null))
    }

    /// Bytes, moved out: states are long.
    pub(super) fn take_bytes(&mut self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        match self.0.get_mut(column).map(|cell| std::mem::replace(cell, Cell::Null)) {
            None | Some(Cell::Null) => Ok(None),
            Some(Cell::Blob(bytes)) => Ok(Some(bytes)),
            Some(other) => Err(corrupt("bytes", other)),
        }
    }

    pub(super) fn address(&self, column: usize) -> Result<Address, StoreError> {
        let Cell::Blob(bytes) = self.cell(column) else {
            return Err(corrupt("an address", self.cell(column)));
        };
        Address::try_from(bytes.as_slice()).map_err(|_| corrupt("an address", bytes))
    }

    pub(super) fn signature(&self, column: usize) -> Result<Signature, StoreError> {
        let Cell::Blob(bytes) = self.cell(column) else {
            return Err(corrupt("a signature", self.cell(column)));
        };
        Signature::try_from(bytes.as_slice()).map_err(|_| corrupt("a signature", bytes))
    }
}

impl From<i64> for Param<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Param<'_> {
    /// The signed number of the same bits.
    fn from(number: u64) -> Self {
        Self::Int(number as i64)
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(bytes)
    }
}

impl<'a> From<&'a Address> for Param<'a> {
    fn from(address: &'a Address) -> Self {
        Self::Blob(address.as_ref())
    }
}

impl<'a> From<&'a Signature> for Param<'a> {
    fn from(signature: &'a Signature) -> Self {
        Self::Blob(signature.as_ref())
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::store::sql::Param::from($value)),*]
    };
}
pub(super) use params;
