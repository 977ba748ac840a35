//! The tables, and the settings that all connections share.

use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{FromSql, ToSql};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use touchmark_engine::Fact;
use touchmark_proto::{Millis, RelPath};

use super::checks;
use super::error::StoreError;
use super::options::{Durability, beside};

/// The kinds of rows in `fact`. They are stored: never renumber them.
pub(super) const OTHER: i64 = 0;
pub(super) const BASELINE: i64 = 1;
pub(super) const VERSION: i64 = 2;
/// What the user undid, restored and kept. People ask for it as long as for
/// versions.
pub(super) const LASTING: i64 = 3;
/// Whose lines of a version the user said they are. Kept as long as the
/// version.
pub(super) const CLAIM: i64 = 4;
/// How git brought a version's content. It belongs to a path's history, but is
/// no version.
pub(super) const CARRIAGE: i64 = 5;
/// Which names stand for which files. People need these as long as the versions.
pub(super) const LINEAGE: i64 = 6;

/// The version of the schema (`PRAGMA user_version`), and the first one that is
/// ever released. A later version needs a step that leads from this one to it.
pub(super) const SCHEMA: u32 = 9;

/// The tables of an empty store.
const TABLES: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

    -- The log, in the order of its times (see `first_at`). `path` is set for
    -- what belongs to a path's history. The other facts are dropped once a
    -- snapshot covers them, but for those of kinds 3 and 6.
    CREATE TABLE fact (
        n INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        path BLOB,
        body BLOB NOT NULL);
    -- The row's `n` is the last column of every index by itself.
    CREATE INDEX fact_path ON fact (path) WHERE path IS NOT NULL;
    CREATE INDEX fact_survival ON fact (kind) WHERE kind = 3;
    CREATE INDEX fact_claim ON fact (path, n) WHERE kind = 4;
    CREATE INDEX fact_lineage ON fact (n) WHERE kind = 6;

    -- The engine's state up to fact n, cut into parts. Counts only once
    -- `meta.snapshot` names it.
    CREATE TABLE snapshot (
        n INTEGER NOT NULL,
        part INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (n, part));

    -- Kept contents, compressed, each against the one that it replaced
    -- (KEEP-1). `used` orders them by last use. `stored` is the length of a
    -- compressed body, NULL for an uncompressed one. `base` is the hash of the
    -- content that it is compressed against. `links` is the number of such
    -- steps up to a content without a base. `time` is that of the newest
    -- version that is known to have this content, or of a pin. `pinned` says
    -- why it must not be removed (KEEP-2, `contents/pins.rs`).
    CREATE TABLE content (
        hash BLOB PRIMARY KEY,
        size INTEGER NOT NULL,
        used INTEGER NOT NULL,
        body BLOB NOT NULL,
        stored INTEGER,
        base BLOB,
        links INTEGER NOT NULL DEFAULT 0,
        time INTEGER NOT NULL DEFAULT 0,
        pinned INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX content_used ON content (pinned, used, size, stored, time);
    CREATE INDEX content_base ON content (base) WHERE base IS NOT NULL;

    -- The contents that the newest checkpoints of a session name: the first
    -- bytes of their hashes.
    CREATE TABLE checkpoint (
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        time INTEGER NOT NULL,
        hashes BLOB NOT NULL,
        PRIMARY KEY (session, number)) WITHOUT ROWID;

    -- Hashes of contents that were met as a secret, in the order in which they
    -- were met. Such a content is stored under no other path either (SEC-3).
    CREATE TABLE secret (hash BLOB PRIMARY KEY);

    -- Records that cannot be read (DUR-2) have a row each, and so has each
    -- range of facts that is missing. `records` is the number of records that a
    -- row represents.
    CREATE TABLE unreadable (
        found INTEGER NOT NULL,
        records INTEGER NOT NULL,
        cause TEXT NOT NULL,
        n INTEGER NOT NULL,
        part INTEGER,
        time,
        path,
        body);
";

/// Returns whether the file has tables; `false` for a file that is empty.
///
/// # Errors
/// [`StoreError::Incompatible`] for a schema of another version, and SQLite's
/// errors.
pub(super) fn has_tables(connection: &Connection) -> Result<bool, StoreError> {
    match version(connection)? {
        0 => Ok(false),
        SCHEMA => Ok(true),
        found => Err(StoreError::Incompatible {
            what: "schema",
            found,
            known: SCHEMA,
        }),
    }
}

/// Returns the kind of row that a fact is stored as, and its path if it is part
/// of a path's history.
pub(super) fn row_of(fact: &Fact) -> (i64, Option<&RelPath>) {
    match fact {
        Fact::Baseline { path, .. } => (BASELINE, Some(path)),
        Fact::Version(version) => (VERSION, Some(&version.path)),
        Fact::Claimed { path, .. } => (CLAIM, Some(path)),
        Fact::GitBrought { path, .. } => (CARRIAGE, Some(path)),
        Fact::Lineage { .. } => (LINEAGE, None),
        Fact::Undone { .. } | Fact::BroughtBack { .. } | Fact::Kept { .. } => (LASTING, None),
        _ => (OTHER, None),
    }
}

/// Opens the file for writing, creates it and its tables if they do not exist,
/// and checks it if it is `doubtful`.
pub(super) fn open(
    path: &Path,
    durability: Durability,
    doubtful: bool,
) -> Result<Connection, StoreError> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    // Before anything is written to the file, since a store of another version
    // stays as it is.
    let has_tables = has_tables(&connection)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::storage(format!(
            "SQLite's write-ahead log does not work in this directory (mode {mode})"
        )));
    }
    // Only the power setting syncs before the answer (DUR-1). `fullfsync` has
    // an effect on macOS alone, where a plain sync ends at the drive's cache.
    connection.execute_batch(match durability {
        Durability::Process => "PRAGMA synchronous = NORMAL",
        Durability::Power => "PRAGMA synchronous = FULL; PRAGMA fullfsync = 1",
    })?;
    // Overwrites deleted data on pages that are written anyway (SEC-3), which
    // costs no extra write. Pages that were freed still contain their data
    // until a purge.
    connection.execute_batch("PRAGMA secure_delete = FAST")?;
    if !has_tables {
        // One transaction with the version, so that no crash leaves a part.
        let transaction = begin(&mut connection)?;
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
        transaction.commit()?;
    } else if doubtful {
        checks::structure(&connection)?;
    }
    Ok(connection)
}

/// Opens one more connection to an open store.
pub(super) fn connect(path: &Path, extra: OpenFlags) -> Result<Connection, StoreError> {
    let access = if extra.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) {
        extra
    } else {
        extra | OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    // No mutex, since each connection is used by one thread at a time.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // No statement is planned again for other values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    settle(&connection)?;
    Ok(connection)
}

/// Opens a connection for reading where nothing can be written, not even the
/// files that SQLite shares between connections. It takes no locks: no other
/// process may write meanwhile.
pub(super) fn connect_unwritable(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if std::fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0) {
        // The log is read with its index in memory.
        let connection = Connection::open_with_flags_and_vfs(path, flags, c"unix-none")?;
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection
    } else {
        // There is no log, and SQLite must not create one.
        let uri = format!("file:{}?immutable=1", percent_encoded(path));
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    settle(&connection)?;
    Ok(connection)
}

/// Returns the path in percent-encoding, for a URI.
fn percent_encoded(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut uri = String::new();
    for byte in touchmark_proto::native::bytes(path).iter() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            _ => {
                // Writing to a String never fails.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// Makes the settings that all connections share.
fn settle(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(Duration::from_secs(5))?;
    // With automatic checkpoints one commit in a thousand took milliseconds;
    // `upkeep` makes them instead. The cache is small, since the pages are in
    // the system's cache as well: with the usual two megabytes each, three
    // connections would be half of an idle daemon's memory.
    connection.execute_batch(
        "PRAGMA cache_size = -512;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA cell_size_check = 1;
         PRAGMA trusted_schema = 0;",
    )?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// Returns the schema version of the file.
fn version(connection: &Connection) -> Result<u32, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// A transaction that may write from the start. It is rolled back unless it is
/// committed. rusqlite's transaction parses `BEGIN` and `COMMIT` each time,
/// which takes longer than storing a fact.
pub(super) struct Transaction<'a>(&'a Connection);

/// Begins a transaction. A connection has one at a time.
pub(super) fn begin(connection: &mut Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(Transaction(connection))
}

impl Transaction<'_> {
    pub(super) fn commit(self) -> Result<(), rusqlite::Error> {
        self.prepare_cached("COMMIT")?.execute([]).map(|_| ())
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_autocommit() {
            // The caller reports the error that led here.
            let _ = self.execute_batch("ROLLBACK");
        }
    }
}

/// Reads a value of `meta`; `None` if there is none.
pub(super) fn meta<T: FromSql>(
    connection: &Connection,
    key: &str,
) -> Result<Option<T>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}

/// Returns the number of the first fact that was recorded at `time` or later.
/// Facts are in the order of their times, so a binary search finds it.
pub(super) fn first_at(connection: &Connection, time: Millis) -> Result<i64, rusqlite::Error> {
    let mut next =
        connection.prepare_cached("SELECT n, time FROM fact WHERE n >= ?1 ORDER BY n LIMIT 1")?;
    let newest: Option<i64> = connection
        .prepare_cached("SELECT max(n) FROM fact")?
        .query_row([], |row| row.get(0))?;
    let (mut low, mut high) = (0, newest.map_or(0, |newest| newest.saturating_add(1)));
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<(i64, i64)> = next
            .query_row([middle], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        match found {
            Some((n, at)) if uint(at) < time => low = n.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Writes a value of `meta`.
pub(super) fn set_meta(
    connection: &Connection,
    key: &str,
    value: impl ToSql,
) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?
        .execute((key, value))?;
    Ok(())
}

/// Converts a number to SQLite's integers, which are signed.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number back from SQLite's integers. No number here is ever
/// negative.
pub(super) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
