//! Pins: why a content must not be removed yet (KEEP-2), as bits of
//! `content.pinned`.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use touchmark_proto::{Hash, Millis, SessionId};

use super::super::schema::{int, uint};
use super::CheckpointContents;

/// The content was before or after a change by an agent that the user has
/// neither kept nor undone.
pub(super) const CHANGED: i64 = 1;
/// The content was reported as lost.
pub(super) const LOST: i64 = 2;
/// A checkpoint names the content.
pub(super) const CHECKPOINT: i64 = 4;

/// A pin is renewed only if it is older than this, in milliseconds: one day.
/// This saves writes.
const RENEWED: u64 = 24 * 60 * 60 * 1_000;

/// Returns the session's key in the table. It is a hash, so that a forgotten
/// session's id is in no file.
pub(super) fn key(session: &SessionId) -> i64 {
    let digest = Sha256::digest(session.as_str().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

/// The columns of a row that pinning needs.
pub(super) struct Row {
    pub(super) pinned: i64,
    pub(super) time: Millis,
    pub(super) stored: u64,
    /// The content has a base.
    pub(super) rests: bool,
}

pub(super) fn row(connection: &Connection, hash: &Hash) -> Result<Option<Row>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT pinned, time, coalesce(stored, size), base IS NOT NULL
             FROM content WHERE hash = ?1",
        )?
        .query_row([&hash.0[..]], |row| {
            Ok(Row {
                pinned: row.get(0)?,
                time: uint(row.get(1)?),
                stored: uint(row.get(2)?),
                rests: row.get(3)?,
            })
        })
        .optional()
}

/// Changes a content's pins: adds `put` and removes `taken`. Returns by how
/// many stored bytes the pinned contents grew.
pub(super) fn change(
    connection: &Connection,
    hash: &Hash,
    row: &Row,
    (put, taken): (i64, i64),
    time: Millis,
) -> Result<i64, rusqlite::Error> {
    let pinned = (row.pinned | put) & !taken;
    let newer = match put & CHECKPOINT {
        0 => time > row.time,
        _ => time > row.time.saturating_add(RENEWED) || pinned != row.pinned && time > row.time,
    };
    if pinned != row.pinned || newer {
        connection
            .prepare_cached("UPDATE content SET pinned = ?2, time = max(time, ?3) WHERE hash = ?1")?
            .execute((&hash.0[..], pinned, int(time)))?;
    }
    Ok(match (row.pinned > 0, pinned > 0) {
        (false, true) => int(row.stored),
        (true, false) => -int(row.stored),
        _ => 0,
    })
}

/// Stores which contents a checkpoint names, and deletes older checkpoints of
/// the session. Returns the contents that no checkpoint names any more, by the
/// first bytes of their hashes.
pub(super) fn checkpoint(
    connection: &Connection,
    named: &CheckpointContents,
) -> Result<Vec<[u8; SHORT]>, rusqlite::Error> {
    let hashes: Vec<u8> = named.hashes.iter().flat_map(short).collect();
    connection.execute(
        "INSERT OR REPLACE INTO checkpoint (session, number, time, hashes)
         VALUES (?1, ?2, ?3, ?4)",
        (
            key(&named.session),
            int(named.checkpoint),
            int(named.time),
            hashes,
        ),
    )?;
    drop_rows(
        connection,
        "session = ?1 AND number < ?2",
        (key(&named.session), int(named.oldest)),
    )
}

/// Deletes all checkpoints of a session. Returns the contents that no
/// checkpoint names any more, by the first bytes of their hashes.
pub(super) fn session(
    connection: &Connection,
    session: i64,
) -> Result<Vec<[u8; SHORT]>, rusqlite::Error> {
    drop_rows(connection, "session = ?1 AND ?2 = 0", (session, 0))
}

/// Removes the pins that were made before `time`. Returns whether there were
/// any.
pub(super) fn expire(connection: &Connection, time: Millis) -> Result<bool, rusqlite::Error> {
    connection.execute("DELETE FROM checkpoint WHERE time < ?1", [int(time)])?;
    let ended = connection.execute(
        "UPDATE content SET pinned = 0 WHERE pinned > 0 AND time < ?1",
        [int(time)],
    )?;
    Ok(ended > 0)
}

/// The number of bytes of each hash that a checkpoint stores.
const SHORT: usize = 8;

fn short(hash: &Hash) -> [u8; SHORT] {
    let mut first = [0; SHORT];
    first.copy_from_slice(&hash.0[..SHORT]);
    first
}

/// Returns the contents whose hashes begin with these bytes.
pub(super) fn by_short(
    connection: &Connection,
    first: [u8; SHORT],
) -> Result<Vec<Hash>, rusqlite::Error> {
    let bound = |fill: u8| {
        let mut hash = [fill; 32];
        hash[..SHORT].copy_from_slice(&first);
        hash
    };
    connection
        .prepare_cached("SELECT hash FROM content WHERE hash BETWEEN ?1 AND ?2")?
        .query_map((bound(0), bound(0xff)), |row| row.get(0).map(Hash))?
        .collect()
}

fn drop_rows(
    connection: &Connection,
    which: &str,
    params: (i64, i64),
) -> Result<Vec<[u8; SHORT]>, rusqlite::Error> {
    let named = |which: &str, params: &[&dyn rusqlite::ToSql]| {
        let mut statement =
            connection.prepare(&format!("SELECT hashes FROM checkpoint WHERE {which}"))?;
        let rows = statement.query_map(params, |row| row.get::<_, Vec<u8>>(0))?;
        let mut all: HashSet<[u8; SHORT]> = HashSet::new();
        for row in rows {
            all.extend(row?.as_chunks().0);
        }
        Ok::<_, rusqlite::Error>(all)
    };
    let gone = named(which, &[&params.0, &params.1])?;
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    connection.execute(&format!("DELETE FROM checkpoint WHERE {which}"), params)?;
    let left = named("1", &[])?;
    Ok(gone.difference(&left).copied().collect())
}
