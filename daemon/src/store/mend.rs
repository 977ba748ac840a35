//! Copies what can be read of a damaged store into a new one, row by row
//! (DUR-2). SQLite stops at a page that it cannot read; this goes on after it.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::error::StoreError;
use super::schema;

/// A table, with its columns and the order in which its rows are read.
struct Table {
    name: &'static str,
    columns: &'static str,
    /// Its rows have numbers, by which those after a damaged page are found.
    numbered: bool,
}

const TABLES: [Table; 7] = [
    table("fact", "n, time, kind, path, body", true),
    table("snapshot", "n, part, body", true),
    table(
        "content",
        "hash, size, used, body, stored, base, links, time, pinned",
        true,
    ),
    table("secret", "hash", true),
    table(
        "unreadable",
        "found, records, cause, n, part, time, path, body",
        true,
    ),
    table("meta", "key, value", false),
    table("checkpoint", "session, number, time, hashes", false),
];

const fn table(name: &'static str, columns: &'static str, numbered: bool) -> Table {
    Table {
        name,
        columns,
        numbered,
    }
}

/// Copies the rows of a damaged file. Returns the number of facts copied: 0 if
/// the file cannot be read at all.
///
/// # Errors
/// The new store cannot be written.
pub(super) fn copy(damaged: &Path, into: &mut Connection) -> Result<u64, StoreError> {
    let Ok(from) = schema::connect_unwritable(damaged) else {
        return Ok(0);
    };
    if !matches!(schema::has_tables(&from), Ok(true)) {
        return Ok(0);
    }
    let transaction = schema::begin(into)?;
    let mut facts = 0;
    for table in &TABLES {
        let rows = match table.numbered {
            true => numbered(&from, &transaction, table)?,
            false => in_order(&from, &transaction, table)?,
        };
        tracing::info!(rows, table = table.name, "copied from the damaged store");
        facts = if table.name == "fact" { rows } else { facts };
    }
    transaction.commit()?;
    Ok(facts)
}

/// Copies the rows of a table without numbers up to the first that cannot be
/// read.
fn in_order(from: &Connection, into: &Connection, table: &Table) -> Result<u64, StoreError> {
    let Table { name, columns, .. } = table;
    let Ok(mut statement) = from.prepare(&format!("SELECT 0, {columns} FROM {name}")) else {
        return Ok(0);
    };
    let Ok(mut rows) = statement.query([]) else {
        return Ok(0);
    };
    let mut copied = 0;
    while let Ok(Some(row)) = rows.next() {
        copied += put(row, into, table)?;
    }
    Ok(copied)
}

fn numbered(from: &Connection, into: &Connection, table: &Table) -> Result<u64, StoreError> {
    let Table { name, columns, .. } = table;
    let sql = format!("SELECT rowid, {columns} FROM {name} WHERE rowid >= ?1 ORDER BY rowid");
    let (mut copied, mut next) = (0, 1);
    loop {
        let Ok(mut statement) = from.prepare(&sql) else {
            return Ok(copied);
        };
        let Ok(mut rows) = statement.query([next]) else {
            return Ok(copied);
        };
        let ended = loop {
            match rows.next() {
                Ok(None) => break true,
                Err(_) => break false,
                Ok(Some(row)) => {
                    let number: i64 = row.get(0).unwrap_or(next);
                    copied += put(row, into, table)?;
                    next = number.max(next).saturating_add(1);
                }
            }
        };
        if ended {
            return Ok(copied);
        }
        match after_damage(from, name, next) {
            Some(readable) => next = readable,
            None => return Ok(copied),
        }
    }
}

/// Returns the first number from which rows can be read again; `None` if none
/// can. A row with the number `from` cannot be read.
fn after_damage(connection: &Connection, table: &str, from: i64) -> Option<i64> {
    let sql = format!("SELECT * FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
    let mut statement = connection.prepare(&sql).ok()?;
    let mut reads = |number: i64| {
        let row = statement.query([number]);
        row.and_then(|mut rows| rows.next().map(drop)).is_ok()
    };
    let (mut low, mut step) = (from, 1_i64);
    let mut high = loop {
        let number = from.checked_add(step)?;
        if reads(number) {
            break number;
        }
        low = number;
        step = step.checked_mul(2)?;
    };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match reads(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high)
}

/// Inserts a row, whose first column is left out. Returns the number of rows
/// inserted.
fn put(row: &rusqlite::Row<'_>, into: &Connection, table: &Table) -> Result<u64, StoreError> {
    let Table { name, columns, .. } = table;
    let count = columns.split(',').count();
    let mut values: Vec<Value> = Vec::with_capacity(count);
    for column in 1..=count {
        let Ok(value) = row.get(column) else {
            return Ok(0);
        };
        values.push(value);
    }
    let places = vec!["?"; count].join(", ");
    let sql = format!("INSERT OR IGNORE INTO {name} ({columns}) VALUES ({places})");
    let inserted = into.prepare_cached(&sql)?.execute(params_from_iter(values));
    match inserted {
        Ok(inserted) => Ok(inserted as u64),
        // A row of another table, or of another type.
        Err(error) if is_refused(&error) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn is_refused(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
    )
}
