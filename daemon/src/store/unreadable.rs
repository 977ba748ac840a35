//! Records that cannot be read (DUR-2): each costs itself and no other. What
//! there is of it is moved to a table of its own, never deleted while it may
//! be asked for, and counted in `status`.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::load::now;
use super::schema::{int, meta, set_meta, uint};
use crate::time::Timeline;

/// How long a record that cannot be read is kept and counted, in
/// milliseconds: 30 days.
const KEPT: u64 = 30 * 24 * 60 * 60 * 1_000;

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// A row of `fact` is not what was stored, or no fact.
    Fact { n: u64, cause: String },
    /// Facts that came between two others are not there.
    Missing { first: u64, last: u64 },
    /// The snapshot is not what was stored, or no state.
    Snapshot { n: u64, cause: String },
}

impl Bad {
    /// The newest fact that the log lacks for it.
    fn last(&self) -> u64 {
        match self {
            Self::Fact { n, .. } => *n,
            Self::Missing { last, .. } => *last,
            Self::Snapshot { .. } => 0,
        }
    }

    /// The newest fact up to which some need not be there.
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

/// How many there are, with why of the first.
pub(super) fn summary(bad: &[Bad]) -> String {
    let count: u64 = bad.iter().map(Bad::records).sum();
    let cause = bad.first().map(Bad::cause).unwrap_or_default();
    match count {
        1 => format!("1 record of the store cannot be read ({cause}) and is left out"),
        _ => format!("{count} records of the store cannot be read ({cause}) and are left out"),
    }
}

/// Moves what there is of them out of the way. A clock or a checkpoint before
/// the newest of them is unknown from then on: what came after it cannot be
/// told whole. Says how many records were moved: none that were before.
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

/// Sets a number that never falls.
fn raise(connection: &Connection, key: &str, to: u64) -> Result<(), rusqlite::Error> {
    let before = meta::<i64>(connection, key)?.map_or(0, uint);
    if to > before {
        set_meta(connection, key, int(to))?;
    }
    Ok(())
}

/// How many records are aside. Those that were found long ago, as far as
/// daemons have seen time pass (LIM-3), are let go.
pub(super) fn count(connection: &Connection, time: &Timeline) -> Result<u64, rusqlite::Error> {
    let long_ago = int(time.before(KEPT));
    let old = connection
        .prepare("SELECT 1 FROM unreadable WHERE found < ?1 LIMIT 1")?
        .exists([long_ago])?;
    if old {
        connection.execute("DELETE FROM unreadable WHERE found < ?1", [long_ago])?;
    }
    // A page of another table in the place of this one's looks like its rows,
    // but for the types.
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

/// The numbers of a path's facts that are aside, before fact `before`.
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
