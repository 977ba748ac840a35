//! The table of contents, as the writer uses it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use touchmark_engine::Fact;
use touchmark_proto::{Hash, Millis};

use super::super::load::record;
use super::super::schema::{self, int, meta, set_meta, uint};
use super::packed::{Kept, Packed, read, rests_on};
use super::pins::{self, CHANGED, CHECKPOINT, LOST};
use super::removal::{base, evict, has_dependents, remove, repack};
use super::rows::{forget, held_by, keep_out, touch};
use super::sums::{SINCE, Sums};
use super::waiting::Waiting;
use super::{CheckpointContents, Extent, Note, Said};
use crate::failpoint;

/// The time that one transaction may take for contents. A commit waits for at
/// most this time, or for one content if that takes longer.
const PATIENCE: Duration = Duration::from_millis(4);

/// When all contents take more than this many times the limit, pinned ones are
/// removed too. So an agent that writes without end does not fill the disk.
const PINNED: u64 = 4;

/// The maximum number of notes that one transaction applies.
const NOTES: usize = 1_000;

/// The maximum number of pending notes, and of pending requests. Later ones are
/// dropped: where the table cannot be written, missing pins do little harm.
const MOST_NOTES: usize = 100_000;

/// The key in `meta` for the number of the fact up to which all notes are
/// applied.
const NOTED: &str = "contents_noted";

/// The pins, base and time of a content that is not written yet.
#[derive(Clone, Copy, Default)]
struct Mark {
    before: Option<Hash>,
    pinned: i64,
    time: Millis,
}

/// A request about stored contents.
pub(in super::super) enum Asked {
    /// The content was used.
    Used(Hash),
    /// The stored bytes do not match the content's hash.
    Damaged(Hash),
    /// Agents' changes that need these contents were kept or undone.
    Unpin(Vec<Hash>),
    /// A checkpoint of the given time names some of these contents.
    Pin(Vec<Hash>, Millis),
    /// A checkpoint names these contents, which are pinned. It may replace an
    /// older one.
    Checkpoint(CheckpointContents),
    /// Pins that were set before this time end.
    Expire(Millis),
}

/// The result of one step.
struct Done {
    sums: Sums,
    /// How many of the pending notes the step applied.
    notes: usize,
    /// How many of the pending requests the step processed.
    asked: usize,
    written: Vec<Hash>,
    noted: u64,
}

/// The table of contents, as the writer uses it.
pub(in super::super) struct Table {
    cap: u64,
    /// The totals. They are read from the table when first needed, not while
    /// the daemon starts.
    sums: Option<Sums>,
    /// What is noted about contents that are not written yet.
    marks: HashMap<Hash, Mark>,
    notes: VecDeque<Note>,
    asked: VecDeque<Asked>,
    /// Whether facts of an earlier run of the daemon may not be applied yet.
    behind: bool,
    /// The number of the newest fact up to which everything is noted, in the
    /// table or in `marks`.
    noted: u64,
    /// The last value of `noted` that was stored in the table.
    noted_in_table: u64,
    /// The time of the newest known fact.
    now: Millis,
    /// Whether nothing more can be removed, since all other contents are
    /// pinned.
    all_pinned: bool,
    shown: Arc<Mutex<Option<Extent>>>,
}

impl Table {
    pub(in super::super) fn new(cap: u64) -> Self {
        Self {
            cap,
            sums: None,
            marks: HashMap::new(),
            notes: VecDeque::new(),
            asked: VecDeque::new(),
            behind: true,
            noted: 0,
            noted_in_table: 0,
            now: 0,
            all_pinned: false,
            shown: Arc::default(),
        }
    }

    /// Returns the table's totals, shared; `None` until they were first read.
    pub(in super::super) fn shown(&self) -> Arc<Mutex<Option<Extent>>> {
        Arc::clone(&self.shown)
    }

    /// Queues what a stored fact says about contents.
    pub(in super::super) fn note(&mut self, note: Note) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push_back(note);
        }
    }

    pub(in super::super) fn ask(&mut self, asked: Asked) {
        if self.asked.len() < MOST_NOTES {
            self.asked.push_back(asked);
        }
    }

    /// Returns whether there is work besides the contents that wait to be
    /// written.
    pub(in super::super) fn is_pending(&self) -> bool {
        self.behind || !self.notes.is_empty() || !self.asked.is_empty() || self.is_over()
    }

    fn is_over(&self) -> bool {
        !self.all_pinned && self.sums.is_some_and(|sums| sums.extent.bytes > self.cap)
    }

    /// Does part of the pending work, in one transaction.
    pub(in super::super) fn step(
        &mut self,
        connection: &mut Connection,
        waiting: &Waiting,
    ) -> Result<(), rusqlite::Error> {
        let transaction = schema::begin(connection)?;
        let step = self.within(&transaction, waiting).and_then(|done| {
            failpoint::pass("store: about to commit contents");
            transaction.commit().map(|()| done)
        });
        match step {
            Ok(done) => {
                self.settled(done.sums);
                self.notes.drain(..done.notes);
                self.asked.drain(..done.asked);
                self.noted_in_table = done.noted;
                for hash in &done.written {
                    self.marks.remove(hash);
                }
                waiting.written(&done.written);
                if waiting.is_empty() {
                    self.marks.clear();
                }
                Ok(())
            }
            Err(error) => {
                self.sums = None;
                Err(error)
            }
        }
    }

    fn settled(&mut self, sums: Sums) {
        self.sums = Some(sums);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(sums.extent);
    }

    fn within(
        &mut self,
        connection: &Connection,
        waiting: &Waiting,
    ) -> Result<Done, rusqlite::Error> {
        let until = Instant::now() + PATIENCE;
        let changes = connection.total_changes();
        let mut sums = match self.sums {
            Some(sums) => sums,
            None => Sums::read(connection)?,
        };
        let since = sums.extent.since;
        if self.behind {
            self.catch_up(connection, waiting, &mut sums)?;
            self.behind = false;
        }
        if waiting.take_dropped() {
            sums.gone(self.now);
        }
        let mut notes = 0;
        while notes < NOTES && Instant::now() < until {
            let Some(note) = self.notes.get(notes).copied() else {
                break;
            };
            self.heed(connection, waiting, &note, &mut sums)?;
            notes += 1;
        }
        let mut asked = 0;
        if notes == self.notes.len() {
            while Instant::now() < until && asked < self.asked.len() {
                self.answer(connection, waiting, asked, &mut sums)?;
                asked += 1;
            }
        }
        while Instant::now() < until && sums.extent.bytes > self.cap {
            let most = self.cap.saturating_mul(PINNED);
            let all = self.cap == 0 || sums.extent.bytes > most;
            if self.all_pinned && !all {
                break;
            }
            let gone = evict(connection, all, &mut sums)?;
            self.all_pinned = !gone;
            if all && !gone {
                break;
            }
        }
        let mut written = Vec::new();
        // A content is written only after all notes, since one of them may name
        // its base.
        if notes == self.notes.len() {
            for (hash, bytes) in waiting.batch() {
                self.write(connection, &hash, &bytes, &mut sums)?;
                written.push(hash);
                if Instant::now() >= until {
                    break;
                }
            }
        }
        self.all_pinned &= written.is_empty() && asked == 0;
        let mut noted = self.noted_in_table;
        // The number alone is not worth a write. If it is not stored, the next
        // start applies some notes again.
        let writes = connection.total_changes() > changes;
        if writes && self.noted > noted && self.marks.keys().all(|hash| written.contains(hash)) {
            noted = self.noted;
            set_meta(connection, NOTED, int(noted))?;
        }
        if sums.extent.since != since {
            set_meta(connection, SINCE, sums.extent.since.map(int))?;
        }
        Ok(Done {
            sums,
            notes,
            asked,
            written,
            noted,
        })
    }

    /// Applies the facts whose notes a killed daemon did not apply. Contents
    /// that it did not write are lost.
    fn catch_up(
        &mut self,
        connection: &Connection,
        waiting: &Waiting,
        sums: &mut Sums,
    ) -> Result<(), rusqlite::Error> {
        let last = self.notes.front().map_or(i64::MAX, |note| int(note.n));
        let Some(noted) = meta::<i64>(connection, NOTED)? else {
            // An older daemon stored no such number. Its contents are not
            // pinned.
            let newest: Option<i64> =
                connection.query_row("SELECT max(n) FROM fact", [], |row| row.get(0))?;
            self.noted = uint(newest.unwrap_or(0).min(last - 1));
            return Ok(());
        };
        let mut statement = connection
            .prepare("SELECT n, time, body FROM fact WHERE n > ?1 AND n < ?2 ORDER BY n")?;
        let mut rows = statement.query((noted, last))?;
        while let Some(row) = rows.next()? {
            // A fact that cannot be read is reported elsewhere.
            let Ok(Ok(record)) = record(row) else {
                continue;
            };
            let Some(said) = Said::by(&record.fact) else {
                continue;
            };
            let (n, time) = (record.n, record.time);
            self.heed(connection, waiting, &Note { n, time, said }, sums)?;
            if let Fact::Version(version) = &record.fact
                && let Some(hash) = version.held.hash
                && waiting.get(&hash).is_none()
                && !waiting.is_secret(&hash)
                && !waiting.is_too_large(version.held.size)
                && pins::row(connection, &hash)?.is_none()
            {
                sums.gone(time);
            }
        }
        Ok(())
    }

    fn heed(
        &mut self,
        connection: &Connection,
        waiting: &Waiting,
        note: &Note,
        sums: &mut Sums,
    ) -> Result<(), rusqlite::Error> {
        self.noted = self.noted.max(note.n);
        self.now = self.now.max(note.time);
        match note.said {
            Said::Holds {
                hash,
                before,
                agent,
            } => {
                let pins = if agent { CHANGED } else { 0 };
                if let Some(hash) = hash {
                    let mark = Mark {
                        before: before.filter(|before| *before != hash),
                        pinned: pins,
                        time: note.time,
                    };
                    self.mark(connection, waiting, &hash, mark, sums)?;
                }
                if let Some(before) = before.filter(|_| agent) {
                    self.pin(connection, waiting, &before, (CHANGED, 0), note.time, sums)?;
                }
            }
            Said::Lost { version } => {
                if let Some(hash) = held_by(connection, version)? {
                    self.pin(connection, waiting, &hash, (LOST, 0), note.time, sums)?;
                }
            }
            Said::Forgotten { session } => {
                for first in pins::session(connection, session)? {
                    self.release(connection, first, sums)?;
                }
            }
        }
        Ok(())
    }

    /// Notes the base, the pins and the time of a content.
    fn mark(
        &mut self,
        connection: &Connection,
        waiting: &Waiting,
        hash: &Hash,
        mark: Mark,
        sums: &mut Sums,
    ) -> Result<(), rusqlite::Error> {
        if waiting.get(hash).is_some() {
            let known = self.marks.entry(*hash).or_default();
            known.before = known.before.or(mark.before);
            known.pinned |= mark.pinned;
            known.time = known.time.max(mark.time);
            return Ok(());
        }
        let Some(row) = pins::row(connection, hash)? else {
            return Ok(());
        };
        let more = pins::change(connection, hash, &row, (mark.pinned, 0), mark.time)?;
        sums.extent.pinned = sums.extent.pinned.saturating_add_signed(more);
        // The content was written before its base was known.
        if let Some(before) = mark.before.filter(|_| !row.rests)
            && !has_dependents(connection, hash)?
            && !rests_on(connection, &before, hash)?
            && let Some(bytes) = read(connection, hash, None)?.bytes()
            && let Some(base) = base(connection, &before, bytes.len() as u64)?
        {
            repack(connection, hash, &bytes, Some(&base), sums)?;
        }
        Ok(())
    }

    fn pin(
        &mut self,
        connection: &Connection,
        waiting: &Waiting,
        hash: &Hash,
        (put, taken): (i64, i64),
        time: Millis,
        sums: &mut Sums,
    ) -> Result<(), rusqlite::Error> {
        if waiting.get(hash).is_some() {
            let known = self.marks.entry(*hash).or_default();
            known.pinned = (known.pinned | put) & !taken;
            known.time = known.time.max(time);
            // A content that waits may be in the table as well, from an earlier
            // write.
            if taken == 0 {
                return Ok(());
            }
        }
        if let Some(row) = pins::row(connection, hash)? {
            let more = pins::change(connection, hash, &row, (put, taken), time)?;
            sums.extent.pinned = sums.extent.pinned.saturating_add_signed(more);
        }
        Ok(())
    }

    /// Ends the checkpoints' pins of the contents whose hashes begin with
    /// `first`.
    fn release(
        &mut self,
        connection: &Connection,
        first: [u8; 8],
        sums: &mut Sums,
    ) -> Result<(), rusqlite::Error> {
        for hash in pins::by_short(connection, first)? {
            if let Some(row) = pins::row(connection, &hash)? {
                let more = pins::change(connection, &hash, &row, (0, CHECKPOINT), 0)?;
                sums.extent.pinned = sums.extent.pinned.saturating_add_signed(more);
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        connection: &Connection,
        waiting: &Waiting,
        number: usize,
        sums: &mut Sums,
    ) -> Result<(), rusqlite::Error> {
        let Some(asked) = self.asked.get(number) else {
            return Ok(());
        };
        match asked {
            Asked::Used(hash) => {
                sums.used += 1;
                touch(connection, hash, sums.used)?;
            }
            Asked::Damaged(hash) => {
                let hash = *hash;
                // It may have been written again in the meantime.
                if read(connection, &hash, None)? == Kept::Damaged {
                    remove(connection, hash, sums, false)?;
                }
            }
            Asked::Expire(time) => {
                if pins::expire(connection, *time)? {
                    let since = sums.extent.since;
                    *sums = Sums::read(connection)?;
                    sums.extent.since = since;
                }
            }
            // The hashes stay in the queue until the transaction is committed.
            Asked::Unpin(hashes) => {
                for hash in hashes.clone() {
                    self.pin(connection, waiting, &hash, (0, CHANGED), 0, sums)?;
                }
            }
            Asked::Pin(hashes, time) => {
                let (hashes, time) = (hashes.clone(), *time);
                for hash in hashes {
                    self.pin(connection, waiting, &hash, (CHECKPOINT, 0), time, sums)?;
                }
            }
            Asked::Checkpoint(named) => {
                for first in pins::checkpoint(connection, named)? {
                    self.release(connection, first, sums)?;
                }
            }
        }
        Ok(())
    }

    /// Writes one content, if the table does not contain it.
    fn write(
        &self,
        connection: &Connection,
        hash: &Hash,
        bytes: &[u8],
        sums: &mut Sums,
    ) -> Result<(), rusqlite::Error> {
        sums.used += 1;
        let mark = self.marks.get(hash).copied().unwrap_or_default();
        if touch(connection, hash, sums.used)? {
            if let Some(row) = pins::row(connection, hash)? {
                let more = pins::change(connection, hash, &row, (mark.pinned, 0), mark.time)?;
                sums.extent.pinned = sums.extent.pinned.saturating_add_signed(more);
            }
            return Ok(());
        }
        let size = bytes.len() as u64;
        let base = match mark.before {
            Some(before) => base(connection, &before, size)?,
            None => None,
        };
        let packed = Packed::new(bytes, base.as_ref());
        let stored = packed.body.len() as u64;
        if stored > self.cap && (mark.pinned == 0 || self.cap == 0) {
            sums.gone(self.now);
            return Ok(());
        }
        connection
            .prepare_cached(
                "INSERT INTO content (hash, size, used, body, stored, base, links, time, pinned)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute((
                &hash.0[..],
                int(size),
                int(sums.used),
                &packed.body,
                packed.compressed.then_some(int(stored)),
                packed.base.as_ref().map(|base| &base.0[..]),
                int(packed.links),
                // The time of its version is not later than that of the newest
                // fact.
                int(if mark.time > 0 { mark.time } else { self.now }),
                mark.pinned,
            ))?;
        sums.add(stored, size, mark.pinned > 0);
        Ok(())
    }

    /// Stores which contents are secrets, and deletes those that were stored
    /// under another name, also where they are the base of others. Their bytes
    /// are overwritten, as by [`forget`](Self::forget).
    pub(in super::super) fn keep_out(
        &mut self,
        connection: &mut Connection,
        waiting: &Waiting,
    ) -> Result<(), rusqlite::Error> {
        let new = waiting.new_secrets();
        self.sums = None;
        connection.execute_batch("PRAGMA secure_delete = 1")?;
        let done = keep_out(connection, &new);
        connection.execute_batch("PRAGMA secure_delete = FAST")?;
        self.settled(done?);
        waiting.secrets_written(new.len());
        Ok(())
    }

    /// Deletes all contents. `secure_delete` overwrites the freed pages, so
    /// that the bytes are removed from the file and not only from the table.
    pub(in super::super) fn forget(
        &mut self,
        connection: &mut Connection,
    ) -> Result<(), rusqlite::Error> {
        self.sums = None;
        connection.execute_batch("PRAGMA secure_delete = 1")?;
        let done = forget(connection, self.now);
        connection.execute_batch("PRAGMA secure_delete = FAST")?;
        self.settled(done?);
        self.marks.clear();
        Ok(())
    }
}
