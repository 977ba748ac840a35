//! Opening the store: checks it and reads it back, or sets it aside and begins
//! an empty one (DUR-2).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};
use touchmark_engine::Record;
use touchmark_engine::ledger::stored::{Unreadable, decode_fact};
use touchmark_proto::{Hash, native};

use super::checks;
use super::contents;
use super::error::StoreError;
use super::high_water_mark::{self, Condition, HighWaterMark, Noted};
use super::mend;
use super::options::{Durability, Options, beside, file};
use super::schema::{self, int, meta, set_meta, uint};
use super::seal;
use super::unreadable::{self, Bad};
use crate::failpoint;
use crate::system::open::private_directory;
use crate::time::Timeline;

/// The store as it was read back.
pub(super) struct Loaded {
    pub(super) connection: Connection,
    pub(super) mark: HighWaterMark,
    pub(super) epoch: u64,
    pub(super) snapshot: Option<Vec<u8>>,
    pub(super) facts: Vec<Record>,
    pub(super) last: u64,
    pub(super) pruned: u64,
    pub(super) trouble: Option<String>,
    pub(super) left_out: bool,
    pub(super) unreadable: u64,
    /// Contents that must not be stored.
    pub(super) secrets: Vec<Hash>,
}

/// The free space, in bytes, that the directory must have for the store to
/// count as writable.
const ROOM: usize = 256 << 10;

/// In `meta`: which records that the state rested on were moved aside, until
/// the new epoch that this requires is stored.
const LEFT_OUT: &str = "left_out";

/// In `meta`: the epoch, with a checksum like that of a fact's body.
const EPOCH: &str = "sealed_epoch";

/// What was read from a store's file.
#[derive(Default)]
pub(super) struct Found {
    /// The epoch; `None` if there is none yet, or if it cannot be read.
    pub(super) epoch: Option<u64>,
    pub(super) snapshot: Option<Vec<u8>>,
    pub(super) facts: Vec<Record>,
    pub(super) last: u64,
    pub(super) pruned: u64,
    pub(super) bad: Vec<Bad>,
}

impl Found {
    /// Returns whether an epoch was given out and cannot be read.
    fn lacks_its_epoch(&self, noted: Option<&Noted>) -> bool {
        self.epoch.is_none() && (self.last > 0 || noted.is_some_and(|noted| noted.n > 0))
    }

    /// Returns the time of the newest fact, or 0 if there is none.
    fn newest_time(&self) -> u64 {
        self.facts.last().map_or(0, |record| record.time)
    }
}

/// Why facts must be missing; `None` if nothing shows that.
pub(super) struct Lost(pub(super) Option<String>);

/// Opens the store, or sets it aside and opens an empty one.
pub(super) fn load(options: &Options) -> Result<Loaded, StoreError> {
    private_directory()
        .recursive(true)
        .create(&options.directory)?;
    if options.durability == Durability::Power {
        // SQLite syncs the entries of its files, not those of the directories
        // above: the workspace's state directory, touchmark's and the user's.
        for parent in options.directory.ancestors().skip(1).take(3) {
            File::open(parent)?.sync_all()?;
        }
    }
    let read_back = match read(options) {
        Err(StoreError::Storage { .. }) if checks::names_no_format(&file(&options.directory)) => {
            Err(StoreError::damaged(
                "its header names no format that is written",
            ))
        }
        other => other,
    };
    match read_back {
        Err(StoreError::Damaged { cause }) => {
            let aside = set_aside(&options.directory)?;
            tracing::warn!(%cause, aside = %aside.display(), "the store is damaged");
            mended(options, &cause, &aside)
        }
        other => other,
    }
}

/// Opens a new store with what can be read of one that was set aside.
fn mended(options: &Options, cause: &str, aside: &Path) -> Result<Loaded, StoreError> {
    let path = file(&options.directory);
    let said = format!(
        "the store was damaged ({cause}) and is set aside as {}",
        aside.display()
    );
    let copied = schema::open(&path, options.durability, false).and_then(|mut new| {
        let facts = mend::copy(aside, &mut new)?;
        // Which facts are missing at the end cannot be told.
        set_meta(&new, LEFT_OUT, &said)?;
        Ok(facts)
    });
    let found = match copied {
        Ok(0) => Err(StoreError::damaged("no fact can be read")),
        Ok(facts) => read(options).map(|kept| Loaded {
            trouble: Some(format!(
                "{said}; {facts} facts were kept; earlier clocks are unknown"
            )),
            ..kept
        }),
        Err(error) => Err(error),
    };
    let Err(error) = found else { return found };
    // The high-water mark goes as well: it names facts that the next store does
    // not have.
    for (own, _) in parts(&options.directory, aside) {
        match fs::remove_file(own) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    if let StoreError::Storage { .. } = error {
        // The copy has no room, for instance. A later start tries again.
        let back = parts(&options.directory, aside);
        rename_all(back.map(|(own, aside)| (aside, own)))?;
        return Err(error);
    }
    tracing::warn!(%error, "nothing is kept of the damaged store");
    let mut fresh = read(options)?;
    fresh.trouble = Some(format!("{said}; everything known was lost"));
    Ok(fresh)
}

fn read(options: &Options) -> Result<Loaded, StoreError> {
    let path = file(&options.directory);
    let noted = Noted::read(&mark_path(&options.directory));
    let boot = high_water_mark::boot();
    let unclean = log_length(&path) > 0;
    not_emptied(&path, unclean)?;
    room(&options.directory)?;

    let mut connection = schema::open(&path, options.durability, unclean)?;
    let found = found(&connection, noted.as_ref())?;
    if !found.bad.is_empty() && !unclean {
        // After a clean end the structure has not been checked yet. The check
        // distinguishes a few bad records from a file that is damaged as a
        // whole.
        checks::structure(&connection)?;
    }
    let tail = checks::tail(noted.as_ref(), found.last, unclean, &boot)?;
    if !found.bad.is_empty() {
        let transaction = schema::begin(&mut connection)?;
        unreadable::put_aside(&transaction, &found.bad)?;
        set_meta(&transaction, LEFT_OUT, unreadable::summary(&found.bad))?;
        transaction.commit()?;
    }
    failpoint::pass("store: what cannot be read is aside");
    let left_out: Option<String> = meta(&connection, LEFT_OUT)?;
    let tail = tail.or(found
        .lacks_its_epoch(noted.as_ref())
        .then_some("the epoch is not what it was"));
    let lost = left_out.clone().or_else(|| tail.map(str::to_owned));
    let epoch = match found.epoch {
        Some(epoch) if lost.is_none() => epoch,
        // The time alone could repeat an epoch if the system clock was set
        // back.
        Some(epoch) => now().max(epoch.saturating_add(1)),
        None => now().max(found.newest_time().saturating_add(1)),
    };
    if found.epoch != Some(epoch) {
        let transaction = schema::begin(&mut connection)?;
        let sealed = seal::close(0, 0, epoch.to_le_bytes().to_vec());
        set_meta(&transaction, EPOCH, sealed)?;
        transaction.execute("DELETE FROM meta WHERE key = ?1", [LEFT_OUT])?;
        transaction.commit()?;
    }
    failpoint::pass("store: the epoch is known");
    note_workspace(&connection, &options.workspace)?;
    let mark = HighWaterMark::open(
        &mark_path(&options.directory),
        Noted {
            boot,
            n: found.last,
            durability: options.durability,
            condition: Condition::Good,
        },
    )?;
    failpoint::pass("store: it is loaded");
    Ok(Loaded {
        unreadable: unreadable::count(&connection, &Timeline::open(&options.directory, 0))?,
        secrets: contents::secrets(&connection)?,
        connection,
        mark,
        epoch,
        snapshot: found.snapshot,
        facts: found.facts,
        last: found.last,
        pruned: found.pruned,
        trouble: lost.map(|cause| format!("{cause}; earlier clocks are unknown")),
        left_out: left_out.is_some(),
    })
}

/// Returns the size of SQLite's log in bytes. The last connection to close
/// removes the log, so a log with content means an unclean end.
fn log_length(path: &Path) -> u64 {
    fs::metadata(beside(path, "-wal")).map_or(0, |wal| wal.len())
}

/// Checks that a file can be created in the directory, and that there is space
/// for SQLite's files next to the store. SQLite maps its index of the log into
/// memory: if a page of it has no disk block yet and the disk is full, SIGBUS
/// kills the process.
pub(super) fn room(directory: &Path) -> Result<(), StoreError> {
    let trial = directory.join("store.trial");
    let written = fs::write(&trial, vec![0; ROOM]);
    let removed = fs::remove_file(&trial);
    Ok(written.and(removed)?)
}

/// Rejects an empty or cut-off file. SQLite treats a file without content, or
/// shorter than the smallest page, as a new one, and removes the log next to
/// it.
fn not_emptied(path: &Path, unclean: bool) -> Result<(), StoreError> {
    const SMALLEST_PAGE: u64 = 512;
    match fs::metadata(path).map(|found| found.len()) {
        Ok(0) if unclean => Err(StoreError::damaged("the file is empty, its log is not")),
        Ok(1..SMALLEST_PAGE) => Err(StoreError::damaged("the file is cut off in its header")),
        _ => Ok(()),
    }
}

/// Reads back the content of a file. `noted` is the high-water mark next to it,
/// `None` if there is none.
fn found(connection: &Connection, noted: Option<&Noted>) -> Result<Found, StoreError> {
    let mut bad = Vec::new();
    // Numbers in `meta` have no checksum. They may be no larger than the newest
    // fact's number or the noted one.
    let newest = newest(connection)?.max(noted.map_or(0, |noted| noted.n));
    let gaps = meta(connection, "gaps")?.map_or(0, uint);
    let (covered, gaps, snapshot) = match snapshot(connection)? {
        None => (0, gaps.min(newest), None),
        Some((n, Ok(body))) => (n, gaps.min(newest).max(n), Some(body)),
        // Without the snapshot only baselines and versions remain up to there.
        Some((n, Err(cause))) => {
            bad.push(Bad::Snapshot { n, cause });
            (0, gaps.max(n).min(newest), None)
        }
    };
    let (facts, last) = facts(connection, covered, gaps, &mut bad)?;
    Ok(Found {
        epoch: sealed_epoch(connection)?,
        snapshot,
        facts,
        last,
        bad,
        pruned: meta(connection, "pruned")?.map_or(0, uint),
    })
}

/// Returns the epoch, or `None` if it does not match its checksum.
fn sealed_epoch(connection: &Connection) -> Result<Option<u64>, StoreError> {
    let mut statement = connection.prepare("SELECT value FROM meta WHERE key = ?1")?;
    let mut rows = statement.query([EPOCH])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let sealed = row.get_ref(0)?.as_blob().ok();
    let body = sealed.and_then(|sealed| seal::open(0, 0, sealed));
    let bytes = body.and_then(|body| body.try_into().ok());
    Ok(bytes.map(u64::from_le_bytes))
}

/// Reads a store back in a place that cannot be written to. Changes nothing.
pub(super) fn unwritable(options: &Options) -> Result<(Found, Lost), StoreError> {
    let path = file(&options.directory);
    let noted = Noted::read(&mark_path(&options.directory));
    let unclean = log_length(&path) > 0;
    let found = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::default(),
        Err(error) => return Err(error.into()),
        Ok(_) => {
            not_emptied(&path, unclean)?;
            let connection = schema::connect_unwritable(&path)?;
            if schema::has_tables(&connection)? {
                if unclean {
                    checks::structure(&connection)?;
                }
                found(&connection, noted.as_ref())?
            } else {
                Found::default()
            }
        }
    };
    let tail = checks::tail(
        noted.as_ref(),
        found.last,
        unclean,
        &high_water_mark::boot(),
    )?;
    let left_out = (!found.bad.is_empty()).then(|| unreadable::summary(&found.bad));
    Ok((found, Lost(left_out.or_else(|| tail.map(str::to_owned)))))
}

/// Checks a store without changing it. Returns its size in bytes, or `None` if
/// there is no store.
pub(super) fn examine(directory: &Path) -> Result<Option<u64>, StoreError> {
    let path = file(directory);
    let size = match fs::metadata(&path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let log = log_length(&path);
    let connection = schema::connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    match connection.and_then(|connection| look(&connection)) {
        // Even a read-only connection needs SQLite to create a file next to the
        // store.
        Err(StoreError::Storage { .. }) => look(&schema::connect_unwritable(&path)?)?,
        looked => looked?,
    }
    Ok(Some(size + log))
}

fn look(connection: &Connection) -> Result<(), StoreError> {
    if schema::has_tables(connection)? {
        checks::structure(connection)?;
        if let Some((_, Err(cause))) = snapshot(connection)? {
            return Err(StoreError::damaged(cause));
        }
    }
    Ok(())
}

/// Returns the number of the last fact that the snapshot covers, and the
/// snapshot's bytes, or why they differ from what was stored.
#[allow(clippy::type_complexity)]
fn snapshot(connection: &Connection) -> Result<Option<(u64, Result<Vec<u8>, String>)>, StoreError> {
    let Some(n) = meta::<i64>(connection, "snapshot")? else {
        return Ok(None);
    };
    let sum: Option<Vec<u8>> = meta(connection, "snapshot_sum")?;
    let mut body = Vec::new();
    let mut statement =
        connection.prepare("SELECT body FROM snapshot WHERE n = ?1 ORDER BY part")?;
    let mut rows = statement.query([n])?;
    while let Some(row) = rows.next()? {
        body.extend_from_slice(row.get_ref(0)?.as_blob().map_err(StoreError::damaged)?);
    }
    let whole = sum.as_deref() == Some(&seal::sum(uint(n), 0, &body)[..]);
    let body = whole.then_some(body);
    let body = body.ok_or_else(|| "the snapshot is not what was stored".to_owned());
    Ok(Some((uint(n), body)))
}

/// Returns the number of the newest fact that can be read, or 0 if there is
/// none.
fn newest(connection: &Connection) -> Result<u64, StoreError> {
    let mut statement = connection.prepare("SELECT n, time, body FROM fact ORDER BY n DESC")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Ok(record) = record(row)? {
            return Ok(record.n);
        }
    }
    Ok(0)
}

/// Returns all facts after `n` that can be read, oldest first, and the number
/// of the newest fact, readable or not. Facts up to number `gaps` may be
/// missing.
fn facts(
    connection: &Connection,
    n: u64,
    gaps: u64,
    bad: &mut Vec<Bad>,
) -> Result<(Vec<Record>, u64), StoreError> {
    let mut statement =
        connection.prepare("SELECT n, time, body FROM fact WHERE n > ?1 ORDER BY n")?;
    let mut rows = statement.query([int(n)])?;
    let mut facts: Vec<Record> = Vec::new();
    let mut last = 0;
    while let Some(row) = rows.next()? {
        // Facts are numbered without gaps, so a missing number is a lost fact.
        let next = last.max(gaps) + 1;
        match record(row)? {
            Ok(record) => {
                if record.n > next && next > 1 {
                    bad.push(Bad::Missing {
                        first: next,
                        last: record.n - 1,
                    });
                }
                last = record.n;
                facts.push(record);
            }
            Err(one) => {
                // A number that does not follow the previous one may itself be
                // damaged.
                if let Bad::Fact { n, .. } = one
                    && n <= next
                {
                    last = n;
                }
                bad.push(one);
            }
        }
    }
    Ok((facts, last.max(gaps)))
}

/// Reads a row of `n, time, body` as a record, or returns why it cannot be
/// read.
///
/// # Errors
/// [`StoreError::Incompatible`], and SQLite's errors.
pub(super) fn record(row: &rusqlite::Row<'_>) -> Result<Result<Record, Bad>, StoreError> {
    let n = uint(row.get(0)?);
    let bad = |cause: String| Ok(Err(Bad::Fact { n, cause }));
    let (time, sealed) = (row.get_ref(1)?.as_i64(), row.get_ref(2)?.as_blob());
    let opened = match (time.map(uint), sealed) {
        (Ok(time), Ok(sealed)) => seal::open(n, time, sealed).map(|body| (time, body)),
        _ => None,
    };
    let Some((time, body)) = opened else {
        return bad(format!("fact {n} is not what was stored"));
    };
    match decode_fact(body) {
        Ok(fact) => Ok(Ok(Record { n, time, fact })),
        Err(Unreadable::Newer { found, known }) => Err(StoreError::newer_record(found, known)),
        Err(Unreadable::Damaged(cause)) => bad(format!("fact {n} is no fact: {cause}")),
    }
}

/// Sets the snapshot of a closed store aside.
pub(super) fn give_up_snapshot(options: &Options, cause: String) -> Result<(), StoreError> {
    let mut connection = schema::open(&file(&options.directory), options.durability, false)?;
    let n = meta::<i64>(&connection, "snapshot")?.map_or(0, uint);
    let bad = [Bad::Snapshot { n, cause }];
    let transaction = schema::begin(&mut connection)?;
    unreadable::put_aside(&transaction, &bad)?;
    set_meta(&transaction, LEFT_OUT, unreadable::summary(&bad))?;
    transaction.commit()?;
    Ok(())
}

/// Returns the workspace that is noted in a store.
pub(super) fn workspace(directory: &Path) -> Result<Option<PathBuf>, StoreError> {
    let path = file(directory);
    if !path.exists() {
        return Ok(None);
    }
    let connection = schema::connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let noted: Option<Vec<u8>> = meta(&connection, "workspace")?;
    Ok(noted.map(|bytes| native::owned(bytes).into()))
}

fn note_workspace(connection: &Connection, workspace: &Path) -> Result<(), StoreError> {
    let bytes = native::bytes(workspace);
    if meta::<Vec<u8>>(connection, "workspace")?.as_deref() != Some(&*bytes) {
        set_meta(connection, "workspace", &*bytes)?;
    }
    Ok(())
}

/// Renames all files of the store. The log keeps its place next to the file
/// under the new name, so that SQLite's tools find it.
pub(super) fn set_aside(directory: &Path) -> Result<PathBuf, StoreError> {
    let path = file(directory);
    let mut stamp = now();
    let mut aside = beside(&path, &format!(".damaged-{stamp}"));
    while ["", "-wal", "-last"]
        .iter()
        .any(|s| beside(&aside, s).exists())
    {
        stamp += 1;
        aside = beside(&path, &format!(".damaged-{stamp}"));
    }
    rename_all(parts(directory, &aside))?;
    Ok(aside)
}

/// Returns the files of a store, each with its name beside `aside`.
fn parts(directory: &Path, aside: &Path) -> [(PathBuf, PathBuf); 4] {
    let path = file(directory);
    [
        (path.clone(), aside.to_owned()),
        (beside(&path, "-wal"), beside(aside, "-wal")),
        (beside(&path, "-shm"), beside(aside, "-shm")),
        (mark_path(directory), beside(aside, "-last")),
    ]
}

/// Renames the files that exist.
fn rename_all(files: [(PathBuf, PathBuf); 4]) -> Result<(), StoreError> {
    for (from, to) in files {
        match fs::rename(from, to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn mark_path(directory: &Path) -> PathBuf {
    directory.join("store.last")
}

pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
