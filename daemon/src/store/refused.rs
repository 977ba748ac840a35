//! A store that cannot be opened for writing when the daemon starts (LOSS-3):
//! no space, no permission, a read-only mount.
//!
//! Its content is read without writing anything, so that queries are answered.
//! Facts of this run are only in memory. The next run would give out their
//! numbers again, so this run has a separate epoch, which is written to no
//! file. Once the store can be written to, [`StoreEvent::Reopen`] requests that
//! it be opened again. It then continues from the stored facts, without those
//! of this run.

use std::fs::OpenOptions;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use rusqlite::config::DbConfig;

use super::contents::{Spool, Waiting};
use super::error::StoreError;
use super::load::{self, Found, Lost, mark_path, now};
use super::message::Message;
use super::message::StoreEvent;
use super::options::{Options, file};
use super::schema::{self, set_meta};
use super::unstored::Unstored;
use super::writer::{FIRST_DELAY, LAST_DELAY};
use super::{Opened, Store};
use crate::life::private_directory;

/// Opens a store for reading; `cause` is why it cannot be written to.
///
/// # Errors
/// [`StoreError::Incompatible`], and [`StoreError::Storage`] if a thread cannot be
/// started.
pub(super) fn open(
    options: &Options,
    cause: String,
    on_event: impl Fn(StoreEvent) + Send + 'static,
) -> Result<Opened, StoreError> {
    let (found, trouble) = match load::unwritable(options) {
        Ok((found, Lost(lost))) => (found, lost),
        Err(StoreError::Damaged { cause }) => (
            Found::default(),
            Some(format!(
                "the store is damaged ({cause}), and is set aside once that is possible"
            )),
        ),
        Err(StoreError::Storage { cause }) => (
            Found::default(),
            Some(format!("the stored state cannot be read: {cause}")),
        ),
        Err(other) => return Err(other),
    };
    tracing::error!(%cause, "the store cannot be written to");
    let waiting = Arc::new(Waiting::new(options.contents_file, [], Spool::default()));
    let unstored = Arc::new(Unstored::default());
    let (writer, messages) = channel();
    let refused = Refused {
        options: options.clone(),
        cause: cause.clone(),
        unstored: Arc::clone(&unstored),
        messages,
        report: Box::new(on_event),
    };
    let thread = std::thread::Builder::new()
        .name("store-refused".into())
        .spawn(move || refused.run())?;
    Ok(Opened {
        store: Store {
            path: file(&options.directory),
            durability: options.durability,
            waiting,
            unstored,
            unreadable: Arc::default(),
            unexported: Arc::default(),
            extent: Arc::default(),
            writable: false,
            at_once: false,
            shared: None,
            writer,
            upkeep: None,
            threads: vec![thread],
        },
        left_out: !found.bad.is_empty(),
        epoch: now().max(found.epoch.map_or(0, |epoch| epoch + 1)),
        snapshot: found.snapshot,
        facts: found.facts,
        last: found.last,
        pruned: found.pruned,
        trouble,
        exporting: false,
        refused: Some(cause),
    })
}

/// The thread that receives the writer's messages while nothing can be stored.
struct Refused {
    options: Options,
    cause: String,
    unstored: Arc<Unstored>,
    messages: Receiver<Message>,
    report: Box<dyn Fn(StoreEvent) + Send>,
}

impl Refused {
    /// Runs until [`Message::Close`].
    fn run(self) {
        let mut delay = FIRST_DELAY;
        let mut again = Some(Instant::now() + delay);
        loop {
            if again.is_some_and(|again| again <= Instant::now()) {
                delay = (delay * 2).min(LAST_DELAY);
                again = match probe(&self.options) {
                    Ok(()) => {
                        (self.report)(StoreEvent::Reopen);
                        None
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the store still refuses");
                        Some(Instant::now() + delay)
                    }
                };
            }
            let message = match again {
                Some(again) => self
                    .messages
                    .recv_timeout(again.saturating_duration_since(Instant::now())),
                None => self
                    .messages
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Commit { turn, records }) => self.keep(turn, records),
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => break,
                // Contents stay in memory; there is nothing to snapshot or
                // delete.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn keep(&self, turn: u64, records: Vec<touchmark_engine::Record>) {
        (self.report)(if records.is_empty() {
            StoreEvent::Committed { turn }
        } else {
            self.unstored.extend(records);
            StoreEvent::Failed {
                turn,
                cause: self.cause.clone(),
            }
        });
    }
}

/// Checks whether the store can be opened for writing now. Changes nothing that
/// the next start reads.
fn probe(options: &Options) -> Result<(), StoreError> {
    private_directory(&options.directory).map_err(StoreError::storage)?;
    load::room(&options.directory)?;
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(mark_path(&options.directory))?;
    let stored =
        schema::open(&file(&options.directory), options.durability, false).and_then(|connection| {
            // Keep the log: it shows the next start that the end was unclean.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(set_meta(&connection, "trial", 1)?)
        });
    match stored {
        Err(StoreError::Storage { cause }) => Err(StoreError::Storage { cause }),
        // Any other error is found and reported when the store is opened again.
        Ok(()) | Err(_) => Ok(()),
    }
}
