//! Records that cannot be read (DUR-2). Such a record is left out, and all
//! others stay. Its remains are moved to a separate table, where they stay as
//! long as a request may need them, and are counted in `status`.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::load::now;
use super::schema::{int, meta, set_meta, uint};
use crate::time::Timeline;

/// How long a record that cannot be read is stored and counted, in
/// milliseconds: 30 days.
const KEPT: u64 = 30 * 24 * 60 * 60 * 1_000;

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// A row of `fact` differs from what was stored, or is no fact.
    Fact { n: u64, cause: String },
    /// Facts between two others are missing.
    Missing { first: u64, last: u64 },
    /// The snapshot differs from what was stored, or is no valid state.
    Snapshot { n: u64, cause: String },
}

impl Bad {
    /// Returns the number of the newest fact that is missing in the log because
    /// of it, or 0.
    fn last(&self) -> u64 {
        match self {
            Self::Fact { n, .. } => *n,
            Self::Missing { last, .. } => *last,
            Self::Snapshot { .. } => 0,
        }
    }

    /// Returns the number up to which facts may be missing because of it.
    fn gaps(&self) -> u64 {
        match self {
            Self::Snapshot { n, .. } => *n,
            other => other.last(),
        }
    }

    pub(super) fn cause(&self) -> String {
        match self {
            Self::Fact { cause, .. } | Self::Snapshot { cause, .. } => cause.clone(),
            Self::Missing { first, last } if first == last => format!("fact {first} is missing"),
            Self::Missing { first, last } => format!("facts {first} to {last} are missing"),
        }
    }

    fn records(&self) -> u64 {
        match self {
            Self::Fact { .. } | Self::Snapshot { .. } => 1,
            Self::Missing { first, last } => last - first + 1,
        }
    }
}

/// Returns a sentence with the number of records and the cause of the first.
pub(super) fn summary(bad: &[Bad]) -> String {
    let count: u64 = bad.iter().map(Bad::records).sum();
    let cause = bad.first().map(Bad::cause).unwrap_or_default();
    match count {
        1 => format!("1 record of the store cannot be read ({cause}) and is left out"),
        _ => format!("{count} records of the store cannot be read ({cause}) and are left out"),
    }
}

/// Moves the remains of these records to the separate table. A clock or a
/// checkpoint before the newest of them is unknown from then on, since the list
/// of later facts is incomplete. Returns the number of records moved, without
/// those that had been moved before.
pub(super) fn put_aside(connection: &Connection, bad: &[Bad]) -> Result<u64, rusqlite::Error> {
    let found = int(now());
    let mut moved = 0;
    for one in bad {
        let (records, cause) = (int(one.records()), one.cause());
        let rows = match one {
            Bad::Fact { n, .. } => {
                let rows = connection.execute(
                    "INSERT INTO unreadable (found, records, cause, n, time, path, body)
                     SELECT ?1, ?2, ?3, n, time, path, body FROM fact WHERE n = ?4",
                    (found, records, cause, int(*n)),
                )?;
                connection.execute("DELETE FROM fact WHERE n = ?1", [int(*n)])?;
                rows
            }
            Bad::Missing { last, .. } => connection.execute(
                "INSERT INTO unreadable (found, records, cause, n) VALUES (?1, ?2, ?3, ?4)",
                (found, records, cause, int(*last)),
            )?,
            Bad::Snapshot { n, .. } => {
                connection.execute(
                    "INSERT INTO unreadable (found, records, cause, n, part, body)
                     SELECT ?1, 0, ?2, n, part, body FROM snapshot WHERE n = ?3",
                    (found, &cause, int(*n)),
                )?;
                connection.execute(
                    "DELETE FROM meta WHERE key IN ('snapshot', 'snapshot_sum')",
                    [],
                )?;
                connection.execute("DELETE FROM snapshot", [])?;
                connection.execute(
                    "INSERT INTO unreadable (found, records, cause, n) VALUES (?1, ?2, ?3, ?4)",
                    (found, records, &cause, int(*n)),
                )?
            }
        };
        if rows > 0 {
            moved += one.records();
            tracing::warn!(cause = one.cause(), "a record of the store cannot be read");
        }
    }
    let newest = |of: fn(&Bad) -> u64| bad.iter().map(of).max().unwrap_or(0);
    raise(connection, "pruned", newest(Bad::last))?;
    raise(connection, "gaps", newest(Bad::gaps))?;
    Ok(moved)
}

/// Sets a number in `meta`, unless it is higher already.
fn raise(connection: &Connection, key: &str, to: u64) -> Result<(), rusqlite::Error> {
    let before = meta::<i64>(connection, key)?.map_or(0, uint);
    if to > before {
        set_meta(connection, key, int(to))?;
    }
    Ok(())
}

/// Returns the number of records that were moved aside. Deletes those that were
/// found more than [`KEPT`] ago, by the time that daemons have seen pass
/// (LIM-3).
pub(super) fn count(connection: &Connection, time: &Timeline) -> Result<u64, rusqlite::Error> {
    let long_ago = int(time.before(KEPT));
    let old = connection
        .prepare("SELECT 1 FROM unreadable WHERE found < ?1 LIMIT 1")?
        .exists([long_ago])?;
    if old {
        connection.execute("DELETE FROM unreadable WHERE found < ?1", [long_ago])?;
    }
    // If a damaged file has another table's page here, its rows look like this
    // table's, except for the types.
    connection
        .query_row(
            "SELECT coalesce(sum(records), 0) FROM unreadable
             WHERE typeof(found) = 'integer' AND typeof(records) = 'integer'
                 AND typeof(cause) = 'text'",
            [],
            |row| row.get(0),
        )
        .map(uint)
}

/// Returns the numbers of a path's facts before fact `before` that were moved
/// aside.
pub(super) fn of_path(
    connection: &Connection,
    path: &[u8],
    before: i64,
) -> Result<BTreeSet<u64>, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT n FROM unreadable WHERE path = ?1 AND n < ?2")?;
    let rows = statement.query_map((path, before), |row| row.get(0).map(uint))?;
    rows.collect()
}
