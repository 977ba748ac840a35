//! The writer: receives turns, stores all queued turns in one transaction, and
//! reports them. It has a separate thread. A short turn is stored on the
//! caller's thread if nothing is pending, which is faster than waking the
//! writer's thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use touchmark_engine::Record;
use touchmark_engine::ledger::stored::{decode_fact, encode_fact};
use touchmark_proto::RelPath;

use super::chores::Chores;
use super::contents::{Note, Said};
use super::error::StoreError;
use super::high_water_mark::{Condition, HighWaterMark};
use super::message::{Message, StoreEvent};
use super::schema::{self, int};
use super::seal;
use super::unstored::Unstored;
use super::upkeep::Nudge;
use crate::failpoint;

/// Chores start after the queue was empty for this long, so that they do not
/// delay a burst of turns.
const QUIET: Duration = Duration::from_millis(20);

/// The first delay between two attempts at a failing commit. Each failure
/// doubles it, up to [`LAST_DELAY`].
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(100);
pub(super) const LAST_DELAY: Duration = Duration::from_secs(1);

/// How long chores may take when the daemon ends. The next start does those that
/// are left: the contents that an undo needs are in the spool by then.
const CLOSING: Duration = Duration::from_millis(500);

/// The most messages in one transaction. With many messages queued, the first
/// turns are answered before the last ones are stored.
const GROUP: usize = 4_096;

/// The most facts of a turn that is stored on the caller's thread.
const SHORT: usize = 64;

/// One row of `fact`, the same for every attempt to write it.
struct FactRow {
    n: u64,
    time: u64,
    kind: i64,
    path: Option<RelPath>,
    body: Vec<u8>,
    /// What the fact says about contents, used once it is stored.
    note: Option<Note>,
}

impl From<Record> for FactRow {
    fn from(record: Record) -> Self {
        let Record { n, time, fact } = record;
        let (kind, path) = schema::row_of(&fact);
        let path = path.cloned();
        let note = Said::by(&fact).map(|said| Note { n, time, said });
        Self {
            n,
            time,
            kind,
            path,
            body: seal::close(n, time, encode_fact(fact)),
            note,
        }
    }
}

impl FactRow {
    /// Returns the record that this row was made from.
    fn record(&self) -> Option<Record> {
        let body = seal::open(self.n, self.time, &self.body)?;
        Some(Record {
            n: self.n,
            time: self.time,
            fact: decode_fact(body).ok()?,
        })
    }
}

/// The state while commits fail.
struct Trouble {
    cause: String,
    delay: Duration,
    again: Instant,
}

/// A turn of the current transaction.
struct Turn {
    number: u64,
    empty: bool,
}

pub(super) struct Writer {
    connection: Connection,
    mark: HighWaterMark,
    chores: Chores,
    nudge: Nudge,
    /// Facts that are not stored yet, in their order.
    backlog: Vec<FactRow>,
    /// The same facts for lookups, while commits fail.
    unstored: Arc<Unstored>,
    trouble: Option<Trouble>,
    /// A lookup has found the file malformed.
    malformed: Option<String>,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        mark: HighWaterMark,
        chores: Chores,
        unstored: Arc<Unstored>,
        nudge: Nudge,
    ) -> Self {
        Self {
            connection,
            mark,
            chores,
            nudge,
            backlog: Vec::new(),
            unstored,
            trouble: None,
            malformed: None,
        }
    }

    /// Returns how long to wait for a message until a chore or another attempt
    /// is due, or `None` if neither is pending.
    fn patience(&self, resting: Duration) -> Option<Duration> {
        match &self.trouble {
            Some(trouble) => Some(trouble.again.saturating_duration_since(Instant::now())),
            None => self.chores.pending().map(|pause| pause.max(resting)),
        }
    }

    /// Queues a message. Returns whether it is [`Message::Close`].
    fn take(&mut self, message: Message, turns: &mut Vec<Turn>) -> bool {
        match message {
            Message::Commit { turn, records } => queue(&mut self.backlog, turns, turn, records),
            Message::Malformed(cause) => {
                self.malformed = Some(cause);
                false
            }
            other => self.chores.add(other),
        }
    }

    /// Stores the backlog if an attempt is due, and reports the turns.
    fn settle(&mut self, turns: &[Turn], closing: bool, report: &mut impl FnMut(StoreEvent)) {
        let due = closing
            || self
                .trouble
                .as_ref()
                .is_none_or(|trouble| trouble.again <= Instant::now());
        if !self.backlog.is_empty() && due {
            match self.store() {
                Ok(()) => {
                    if let Some(row) = self.backlog.last() {
                        self.mark.committed(row.n);
                    }
                    failpoint::pass("store: the mark is written");
                    for note in self.backlog.drain(..).filter_map(|row| row.note) {
                        self.chores.note(note);
                    }
                    self.nudge.written();
                    if self.trouble.take().is_some() {
                        self.unstored.clear();
                        tracing::info!("the store works again");
                        report(StoreEvent::Recovered);
                    }
                }
                Err(error) => self.failed(error, report),
            }
        }
        if self.trouble.is_some() {
            let last = self.unstored.last();
            let fresh = self.backlog.iter().filter(|row| row.n > last);
            self.unstored.extend(fresh.filter_map(FactRow::record));
        }
        if let Some(cause) = self.malformed.take() {
            self.mark.troubled(Condition::Damaged);
            report(StoreEvent::Malformed { cause });
        }
        for turn in turns {
            report(match &self.trouble {
                Some(trouble) if !turn.empty => StoreEvent::Failed {
                    turn: turn.number,
                    cause: trouble.cause.clone(),
                },
                _ => StoreEvent::Committed { turn: turn.number },
            });
            failpoint::pass("store: a turn is reported");
        }
    }

    /// Stores the backlog, after the contents that it needs.
    fn store(&mut self) -> Result<(), rusqlite::Error> {
        self.chores.spool();
        let stored = self.attempt();
        let full = |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        // Facts need the room more.
        if stored.as_ref().is_err_and(full) && self.chores.empty_spool() {
            return self.attempt();
        }
        stored
    }

    /// Stores the backlog in one transaction.
    fn attempt(&mut self) -> Result<(), rusqlite::Error> {
        let transaction = schema::begin(&mut self.connection)?;
        {
            // A failed attempt may have reached the log nevertheless. The
            // replaced row is the same: a fact's number never means another
            // fact.
            let mut insert = transaction.prepare_cached(
                "INSERT OR REPLACE INTO fact (n, time, kind, path, body)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for row in &self.backlog {
                insert.execute((
                    int(row.n),
                    int(row.time),
                    row.kind,
                    row.path.as_ref().map(RelPath::as_bytes),
                    &row.body,
                ))?;
            }
        }
        failpoint::pass("store: about to commit");
        transaction.commit()?;
        failpoint::pass("store: committed");
        Ok(())
    }

    fn failed(&mut self, error: rusqlite::Error, report: &mut impl FnMut(StoreEvent)) {
        let malformed = error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt);
        let cause = match StoreError::from(error) {
            StoreError::Storage { cause } => cause,
            other => other.to_string(),
        };
        let delay = match &self.trouble {
            Some(trouble) => (trouble.delay * 2).min(LAST_DELAY),
            None => {
                tracing::warn!(%cause, "the store refuses");
                let noted = self.mark.troubled(if malformed {
                    Condition::Damaged
                } else {
                    Condition::Failing
                });
                // Another attempt does not repair damage. If the failure cannot
                // be noted, the next start would give out the same clocks.
                if malformed || !noted {
                    report(StoreEvent::Reopen);
                }
                FIRST_DELAY
            }
        };
        self.trouble = Some(Trouble {
            cause,
            delay,
            again: Instant::now() + delay,
        });
    }

    /// Does one chore. Returns whether there was one.
    fn chore(&mut self) -> bool {
        let done = self.chores.step(&mut self.connection);
        if done {
            failpoint::pass("store: a chore is done");
            self.nudge.written();
        }
        done
    }
}

/// The writer, shared by its thread and its callers.
#[derive(Clone)]
pub(super) struct Shared {
    writer: Arc<Mutex<Writer>>,
    /// The number of turns in the thread's queue. No other turn may overtake
    /// them.
    queued: Arc<AtomicUsize>,
}

impl Shared {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            writer: Arc::new(Mutex::new(writer)),
            queued: Arc::default(),
        }
    }

    /// Counts a turn that is sent to the thread.
    pub(super) fn queued(&self) {
        self.queued.fetch_add(1, Ordering::AcqRel);
    }

    /// Stores a turn and reports it before this returns. Returns the facts as
    /// `Err` if they would have to wait, and `Ok(false)` if the thread has to
    /// try again.
    ///
    /// The thread may not have sent its reports of earlier turns yet. It has
    /// stored those turns: none is queued, and commits do not fail.
    pub(super) fn commit(
        &self,
        turn: u64,
        records: Vec<Record>,
        report: &mut impl FnMut(StoreEvent),
    ) -> Result<bool, Vec<Record>> {
        if records.len() > SHORT || self.queued.load(Ordering::Acquire) > 0 {
            return Err(records);
        }
        let Ok(mut writer) = self.writer.try_lock() else {
            return Err(records);
        };
        if writer.trouble.is_some() {
            return Err(records);
        }
        let mut turns = Vec::with_capacity(1);
        queue(&mut writer.backlog, &mut turns, turn, records);
        writer.settle(&turns, false, report);
        Ok(writer.trouble.is_none())
    }

    /// Runs the writer's thread until [`Message::Close`].
    pub(super) fn run(&self, messages: &Receiver<Message>, mut report: impl FnMut(StoreEvent)) {
        // After a chore the next one follows immediately, unless a turn
        // arrived.
        let mut resting = QUIET;
        loop {
            let mut turns = Vec::new();
            let mut closing = false;
            // The lock must not be held while waiting.
            let patience = self.lock().patience(resting);
            let first = wait(messages, patience);
            resting = QUIET;
            let woken = first.is_some();
            let mut writer = self.lock();
            if let Some(message) = first {
                closing |= writer.take(message, &mut turns);
                for message in messages.try_iter().take(GROUP) {
                    closing |= writer.take(message, &mut turns);
                }
            }
            writer.settle(&turns, closing, &mut report);
            self.queued.fetch_sub(turns.len(), Ordering::AcqRel);
            if closing {
                let until = Instant::now() + CLOSING;
                while writer.trouble.is_none() && Instant::now() < until && writer.chore() {}
                break;
            }
            // The contents of agents' changes must not accumulate in memory
            // (KEEP-3).
            let due = !woken || writer.chores.are_urgent();
            if due && writer.trouble.is_none() && writer.chore() {
                resting = Duration::ZERO;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the next message, or `None` if none arrived in time.
fn wait(messages: &Receiver<Message>, patience: Option<Duration>) -> Option<Message> {
    let Some(patience) = patience else {
        return Some(messages.recv().unwrap_or(Message::Close));
    };
    match messages.recv_timeout(patience) {
        Ok(message) => Some(message),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Message::Close),
    }
}

fn queue(
    backlog: &mut Vec<FactRow>,
    turns: &mut Vec<Turn>,
    number: u64,
    records: Vec<Record>,
) -> bool {
    turns.push(Turn {
        number,
        empty: records.is_empty(),
    });
    backlog.extend(records.into_iter().map(FactRow::from));
    false
}
