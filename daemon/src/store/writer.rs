//! The one writer: turns in, one transaction for all that are queued, then
//! their reports. It has a thread of its own; a short turn that finds nothing
//! waiting is stored by whoever brings it, which is sooner than the thread
//! would be awake.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use touchmark_engine::Record;
use touchmark_engine::ledger::stored::{decode_fact, encode_fact};
use touchmark_proto::RelPath;

use super::chores::Chores;
use super::contents::{Asked, Note, Said};
use super::error::StoreError;
use super::high_water_mark::{Condition, HighWaterMark};
use super::schema::{self, int};
use super::unreadable::Bad;
use super::unstored::Unstored;
use super::upkeep::Nudge;
use super::{StoreEvent, seal};
use crate::failpoint;

/// What the writer is asked.
pub(super) enum Message {
    /// Store a turn's facts and report.
    Commit { turn: u64, records: Vec<Record> },
    /// Contents wait, or a commit has failed: there is something to look at.
    Look,
    /// What kept contents are to be.
    Contents(Asked),
    /// Store the engine's state.
    Snapshot { n: u64, body: Vec<u8> },
    /// Delete these facts.
    Delete(Vec<i64>),
    /// Put these records aside: they cannot be read.
    PutAside(Vec<Bad>),
    /// Delete all contents, and call this.
    ForgetContents(Box<dyn FnOnce() + Send>),
    /// Write the file anew, without what was deleted.
    Purge,
    /// Finish and end.
    Close,
}

/// Chores start after the queue was empty for this long: a burst of turns is
/// not held up by any.
const QUIET: Duration = Duration::from_millis(20);

/// The first delay between two tries of a failing commit; each failure
/// doubles it up to the last.
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(100);
pub(super) const LAST_DELAY: Duration = Duration::from_secs(1);

/// How many messages make one group at most, so that the first turn of a
/// flood is answered before the last one has come.
const GROUP: usize = 4_096;

/// Facts of a turn that is stored by whoever brings it, at most.
const SHORT: usize = 64;

/// One row of `fact`, as it will be written however often that is tried.
struct Row {
    n: u64,
    time: u64,
    kind: i64,
    path: Option<RelPath>,
    body: Vec<u8>,
    /// What it says of contents, once it is stored.
    note: Option<Note>,
}

impl From<Record> for Row {
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

impl Row {
    /// The record it was made of.
    fn record(&self) -> Option<Record> {
        let body = seal::open(self.n, self.time, &self.body)?;
        Some(Record {
            n: self.n,
            time: self.time,
            fact: decode_fact(body).ok()?,
        })
    }
}

/// Commits fail.
struct Trouble {
    cause: String,
    delay: Duration,
    again: Instant,
}

/// A turn of the group in hand.
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
    backlog: Vec<Row>,
    /// The same facts for those who look things up, while commits fail.
    unstored: Arc<Unstored>,
    trouble: Option<Trouble>,
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
        }
    }

    /// How long to wait for a message before a chore or another try is due;
    /// `None` if none is.
    fn patience(&self, resting: Duration) -> Option<Duration> {
        match &self.trouble {
            Some(trouble) => Some(trouble.again.saturating_duration_since(Instant::now())),
            None => self.chores.pending().map(|pause| pause.max(resting)),
        }
    }

    /// Queues a message; says whether it was the last.
    fn take(&mut self, message: Message, turns: &mut Vec<Turn>) -> bool {
        match message {
            Message::Commit { turn, records } => queue(&mut self.backlog, turns, turn, records),
            other => self.chores.add(other),
        }
    }

    /// Stores the backlog if it is time to, and reports the turns.
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
            self.unstored.extend(fresh.filter_map(Row::record));
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

    /// One transaction with everything that waits.
    fn store(&mut self) -> Result<(), rusqlite::Error> {
        let transaction = schema::begin(&mut self.connection)?;
        {
            // A try that failed may have reached the log all the same, and a
            // fact's number means the same fact for ever.
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
                // Trying again mends no damage; and where nothing can be
                // noted, the next life would give out the same clocks.
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

    /// Does one chore, if there is any; says whether there was.
    fn chore(&mut self) -> bool {
        let done = self.chores.step(&mut self.connection);
        if done {
            failpoint::pass("store: a chore is done");
            self.nudge.written();
        }
        done
    }
}

/// The writer as it is shared.
#[derive(Clone)]
pub(super) struct Shared {
    writer: Arc<Mutex<Writer>>,
    /// Turns on their way to the thread: nothing may overtake them.
    queued: Arc<AtomicUsize>,
}

impl Shared {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            writer: Arc::new(Mutex::new(writer)),
            queued: Arc::default(),
        }
    }

    /// Notes that a turn is sent to the thread.
    pub(super) fn queued(&self) {
        self.queued.fetch_add(1, Ordering::AcqRel);
    }

    /// Stores a turn and reports it, before this returns. The facts come back
    /// if it would have to wait. False if the thread has to try again.
    ///
    /// Reports of earlier turns may still be on their way from the thread. It
    /// has stored those turns: none waits, and commits do not fail.
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

    /// The thread: runs until [`Message::Close`].
    pub(super) fn run(&self, messages: &Receiver<Message>, mut report: impl FnMut(StoreEvent)) {
        // After a chore the next one follows at once, unless a turn came.
        let mut resting = QUIET;
        loop {
            let mut turns = Vec::new();
            let mut closing = false;
            // The guard must not be held while waiting.
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
                while writer.trouble.is_none() && writer.chore() {}
                break;
            }
            // What agents changed must not pile up in memory (KEEP-3).
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

/// The next message; `None` when none came in time.
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

fn queue(backlog: &mut Vec<Row>, turns: &mut Vec<Turn>, number: u64, records: Vec<Record>) -> bool {
    turns.push(Turn {
        number,
        empty: records.is_empty(),
    });
    backlog.extend(records.into_iter().map(Row::from));
    false
}
