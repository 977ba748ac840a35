//! Changes and lookups of single rows of the table of contents.

use rusqlite::{Connection, OptionalExtension as _};
use touchmark_proto::{Hash, Millis};

use super::super::load::record;
use super::super::schema::{self, int, set_meta};
use super::removal::remove;
use super::sums::{SINCE, Sums};

/// The maximum number of secrets' hashes that are stored. The oldest are
/// removed beyond it.
const SECRETS: usize = 100_000;

/// Returns the hashes of secrets that the table contains.
pub(in super::super) fn secrets(connection: &Connection) -> Result<Vec<Hash>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT hash FROM secret")?;
    let rows = statement.query_map([], |row| row.get(0).map(Hash))?;
    rows.collect()
}

pub(super) fn keep_out(
    connection: &mut Connection,
    secrets: &[Hash],
) -> Result<Sums, rusqlite::Error> {
    let transaction = schema::begin(connection)?;
    let mut sums = Sums::read(&transaction)?;
    for hash in secrets {
        transaction.execute("INSERT OR IGNORE INTO secret VALUES (?1)", [&hash.0[..]])?;
    }
    for hash in secrets {
        remove(&transaction, *hash, &mut sums, true)?;
    }
    transaction.execute(
        "DELETE FROM secret WHERE rowid <= (SELECT max(rowid) FROM secret) - ?1",
        [int(SECRETS as u64)],
    )?;
    transaction.commit()?;
    Ok(sums)
}

pub(super) fn forget(connection: &mut Connection, now: Millis) -> Result<Sums, rusqlite::Error> {
    let transaction = schema::begin(connection)?;
    let any: bool = transaction.query_row("SELECT EXISTS (SELECT 1 FROM content)", [], |row| {
        row.get(0)
    })?;
    transaction.execute_batch("DELETE FROM content; DELETE FROM checkpoint;")?;
    let newest: Option<i64> = transaction
        .query_row("SELECT time FROM fact ORDER BY n DESC LIMIT 1", [], |row| {
            row.get(0)
        })
        .optional()?;
    if any {
        set_meta(&transaction, SINCE, newest.unwrap_or(0).max(int(now)))?;
    }
    let sums = Sums::read(&transaction)?;
    transaction.commit()?;
    Ok(sums)
}

/// Moves a content to the end of the eviction order. Returns whether the table
/// contains it.
pub(super) fn touch(
    connection: &Connection,
    hash: &Hash,
    used: u64,
) -> Result<bool, rusqlite::Error> {
    connection
        .prepare_cached("UPDATE content SET used = ?2 WHERE hash = ?1")?
        .execute((&hash.0[..], int(used)))
        .map(|rows| rows > 0)
}

/// Returns the hash of a version's or baseline's content; `None` for no file.
pub(super) fn held_by(connection: &Connection, n: u64) -> Result<Option<Hash>, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT n, time, body FROM fact WHERE n = ?1")?;
    let mut rows = statement.query([int(n)])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let fact = record(row)
        .ok()
        .and_then(Result::ok)
        .map(|record| record.fact);
    Ok(fact.and_then(|fact| fact.held()?.hash))
}
