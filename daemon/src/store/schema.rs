//! The tables, the migrations, and the settings that all connections share.

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
/// What people ask for as long as for versions: how many lines of a version are
/// left, and what the user undid, restored and kept.
pub(super) const LASTING: i64 = 3;
/// Whose lines of a version the user said they are. Kept as long as the
/// version.
pub(super) const CLAIM: i64 = 4;
/// How git brought a version's content. It belongs to a path's history, but is
/// no version.
pub(super) const CARRIAGE: i64 = 5;
/// Which names stand for which files. People need these as long as the versions.
pub(super) const LINEAGE: i64 = 6;

/// Step n migrates schema version n to n+1 (`PRAGMA user_version`). A step that
/// was released is never edited; new ones are appended.
pub(super) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

    -- The log. `path` is set for baselines and versions only, they make up a
    -- path's history; everything else is dropped once a snapshot covers it.
    CREATE TABLE fact (
        n INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        path BLOB,
        body BLOB NOT NULL);
    -- The row's `n` is the last column of every index by itself.
    CREATE INDEX fact_path ON fact (path) WHERE path IS NOT NULL;
    CREATE INDEX fact_time ON fact (time) WHERE kind = 2;

    -- The engine's state up to fact n, cut into parts. Counts only once
    -- `meta.snapshot` names it.
    CREATE TABLE snapshot (
        n INTEGER NOT NULL,
        part INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (n, part));

    -- Kept contents. `used` orders them by last use.
    CREATE TABLE content (
        hash BLOB PRIMARY KEY,
        size INTEGER NOT NULL,
        used INTEGER NOT NULL,
        body BLOB NOT NULL);
    CREATE INDEX content_used ON content (used, size);
",
    // Facts are already in the order of their times: see `first_at`. An index
    // by time wrote one more page with every commit of a version.
    "
    DROP INDEX IF EXISTS fact_time;
",
    // From here on a record's first byte names its format. An older touchmark
    // would treat such records as damage. Records stored before are read as
    // they are (the engine's `ledger/stored`).
    //
    // Records that cannot be read (DUR-2) have a row each, and so has each
    // range of facts that is missing. `records` is the number of records that a
    // row represents.
    "
    CREATE TABLE unreadable (
        found INTEGER NOT NULL,
        records INTEGER NOT NULL,
        cause TEXT NOT NULL,
        n INTEGER NOT NULL,
        part INTEGER,
        time,
        path,
        body);
",
    // Hashes of contents that were met as a secret, in the order in which they
    // were met. Such a content is stored under no other path either (SEC-3).
    "
    CREATE TABLE secret (hash BLOB PRIMARY KEY);
",
    // The epoch and its checksum become one record, `sealed_epoch`, which the
    // next start writes. The old value is used once more, unless its second
    // copy differs.
    "
    UPDATE meta SET key = 'unsealed_epoch'
    WHERE key = 'epoch' AND typeof(value) = 'integer'
        AND value IS coalesce((SELECT value FROM meta WHERE key = 'epoch_again'), value);
    DELETE FROM meta WHERE key IN ('epoch', 'epoch_again');
",
    // Contents are compressed, each against the one that it replaced (KEEP-1).
    // `stored` is the length of a compressed body, NULL for an uncompressed
    // one, which is read as before. `base` is the hash of the content that it
    // is compressed against. `links` is the number of such steps up to a
    // content without a base. `time` is that of the newest version that is
    // known to have this content, or of a pin. `pinned` says why it must not be
    // removed (KEEP-2, `contents/pins.rs`).
    //
    // Another table has the contents that the newest checkpoints of a session
    // name: the first bytes of their hashes.
    "
    ALTER TABLE content ADD COLUMN stored INTEGER;
    ALTER TABLE content ADD COLUMN base BLOB;
    ALTER TABLE content ADD COLUMN links INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE content ADD COLUMN time INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE content ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
    DROP INDEX IF EXISTS content_used;
    CREATE INDEX content_used ON content (pinned, used, size, stored, time);
    CREATE INDEX content_base ON content (base) WHERE base IS NOT NULL;
    CREATE TABLE checkpoint (
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        time INTEGER NOT NULL,
        hashes BLOB NOT NULL,
        PRIMARY KEY (session, number)) WITHOUT ROWID;
",
    // Facts of kind 3 outlive a snapshot too. They have no path, so that they
    // are no part of a path's history.
    "
    CREATE INDEX fact_survival ON fact (kind) WHERE kind = 3;
",
    "
    CREATE INDEX fact_claim ON fact (path, n) WHERE kind = 4;
",
    "
    CREATE INDEX fact_lineage ON fact (n) WHERE kind = 6;
",
];

/// Returns the newest known schema version.
pub(super) fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Returns the error for a store that a newer touchmark wrote.
pub(super) fn newer(found: u32) -> StoreError {
    StoreError::Newer {
        what: "schema",
        found,
        known: known(),
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
        Fact::Survival { .. }
        | Fact::Undone { .. }
        | Fact::BroughtBack { .. }
        | Fact::Kept { .. } => (LASTING, None),
        _ => (OTHER, None),
    }
}

/// Opens the file for writing, creates it if it does not exist, checks it if it
/// is `doubtful`, and migrates its schema.
pub(super) fn open(
    path: &Path,
    durability: Durability,
    doubtful: bool,
) -> Result<Connection, StoreError> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    let found = version(&connection)?;
    // Before anything is written to the file, since a newer store stays as it
    // is.
    if found > known() {
        return Err(newer(found));
    }
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
    if doubtful && found > 0 {
        checks::structure(&connection)?;
    }
    migrate(&mut connection, MIGRATIONS)?;
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
pub(super) fn version(connection: &Connection) -> Result<u32, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Runs the steps that the file has not seen. Each is one transaction with its
/// version, so that a crash in between repeats no step.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), StoreError> {
    let mut at = version(connection)?;
    for step in steps.iter().skip(at as usize) {
        let transaction = begin(connection)?;
        transaction.execute_batch(step)?;
        at += 1;
        transaction.pragma_update(None, "user_version", at)?;
        transaction.commit()?;
    }
    Ok(())
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
