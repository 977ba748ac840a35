//! When records are sent (TEL-3).
//!
//! At most one request a second, and none without a fact. A collector that does
//! not take a batch gets it again after a pause that doubles. A batch that it
//! calls malformed is halved until a single record is left; that record is
//! given up in the end.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::answer::Meaning;
use super::pack::{Batch, MOST_RECORDS, Packer, Subject};
use super::progress::Progress;
use super::sessions::Sessions;
use super::settings::Settings;
use super::{Begin, Shared, http};
use crate::failpoint;
use crate::store::{Exports, StoreError};

/// The least time between two requests. Facts wait that long for others.
const PACE: Duration = Duration::from_secs(1);

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest pause after failures, unless the collector asks for a longer
/// one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How often a single record is sent that the collector calls malformed.
const MOST_TRIES: u32 = 3;

/// How many facts without records may follow the stored position.
const MOST_BEHIND: u64 = 1_000;

/// The task.
pub(super) struct Task {
    settings: Settings,
    exports: Exports,
    shared: Arc<Shared>,
    ending: watch::Receiver<Option<Instant>>,
    /// `None` while it packs on another thread.
    packer: Option<Packer>,
    /// What the packer is made of.
    making: Option<(Subject, Sessions)>,
    epoch: u64,
    newest: u64,
    anew: bool,
    progress: Progress,
    /// The position that is stored.
    stored: u64,
    /// The earliest time of the next request.
    next: Instant,
    failures: u32,
    /// The most records in the next batch.
    most: usize,
    /// How often the collector has called a single record malformed.
    tries: u32,
}

impl Task {
    pub(super) fn new(begin: Begin, shared: Arc<Shared>) -> Self {
        let ending = shared.end.subscribe();
        let Begin {
            settings,
            subject,
            exports,
            events,
            epoch,
            newest,
            anew,
            before,
        } = begin;
        let progress = before.map(|before| before.0).unwrap_or_default();
        Self {
            settings,
            exports,
            shared,
            ending,
            packer: None,
            making: Some((subject, Sessions::new(events))),
            epoch,
            newest,
            anew,
            stored: progress.n,
            progress,
            next: Instant::now(),
            failures: 0,
            most: MOST_RECORDS,
            tries: 0,
        }
    }

    pub(super) async fn run(mut self) {
        if let Err(error) = self.begin().await {
            tracing::error!("telemetry: nothing is sent: {error}");
            self.shared.told().last_error = Some(error);
            return;
        }
        while self.drain().await {
            if let Some(packer) = &mut self.packer {
                packer.rest();
            }
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                () = shared.committed.notified() => {}
                _deadline = ended(&mut self.ending) => {}
            }
            self.next = self.next.max(Instant::now() + PACE);
        }
        if self.progress.n != self.stored {
            self.store();
        }
    }

    /// Finds out how far the facts were sent, and what identifies them.
    async fn begin(&mut self) -> Result<(), String> {
        let Some((subject, sessions)) = self.making.take() else {
            return Ok(());
        };
        let (exports, before) = (self.exports.clone(), self.progress.clone());
        let (newest, epoch, anew) = (self.newest, self.epoch, self.anew);
        let begun = move || -> Result<_, StoreError> {
            let progress = match before.instance.is_empty() {
                false => Some(before),
                true if anew => None,
                true => exports
                    .reader()?
                    .progress()?
                    .and_then(|stored| Progress::stored(&stored, newest, epoch)),
            };
            let fresh = progress.is_none();
            let progress = progress.unwrap_or_else(|| Progress::begin(newest, epoch));
            let mut packer = Packer::new(exports, sessions, &subject, &progress.instance);
            let unsent = packer.count(progress.n, newest)?;
            Ok((packer, progress, fresh, unsent))
        };
        let begun = tokio::task::spawn_blocking(begun).await;
        let begun = begun.map_err(|error| error.to_string())?;
        let (packer, progress, fresh, unsent) = begun.map_err(|error| error.to_string())?;
        self.packer = Some(packer);
        self.stored = progress.n;
        self.progress = progress;
        self.shared.wanted.fetch_add(unsent, Ordering::Relaxed);
        self.shared.told().progress = Some(self.progress.clone());
        if fresh {
            self.store();
        }
        Ok(())
    }

    /// Sends everything that is committed, or one batch if the daemon ends.
    /// Returns whether the task goes on.
    async fn drain(&mut self) -> bool {
        loop {
            self.wait(self.next).await;
            let ending = self.is_ending();
            match self.pack().await {
                Ok(batch) if batch.records > 0 => self.send(batch).await,
                Ok(batch) => {
                    self.pass(batch.upto);
                    if !batch.more {
                        return !ending;
                    }
                }
                // The packer is lost with a thread that panicked.
                Err(_) if self.packer.is_none() => return false,
                Err(error) => {
                    self.failed(error);
                    self.pause(None);
                }
            }
            if ending {
                return false;
            }
        }
    }

    /// Sends a batch, and takes the collector's answer.
    async fn send(&mut self, batch: Batch) {
        let (records, upto) = (batch.records, batch.upto);
        failpoint::pass("telemetry: about to send");
        let answered = self.post(batch.body).await;
        failpoint::pass("telemetry: sent");
        match answered {
            Ok(Meaning::Taken { rejected, says }) => {
                self.progress.rejected += rejected;
                self.tries = 0;
                self.most = (self.most * 2).min(MOST_RECORDS);
                self.worked((rejected > 0).then(|| {
                    let says = says.unwrap_or_default();
                    format!("the collector rejected {rejected} records: {says}")
                }));
                self.advance(upto, records);
            }
            Ok(Meaning::Malformed(why)) => {
                self.failed(why);
                self.next = Instant::now() + PACE * (1 << self.tries);
                self.most = (records / 2).max(1);
                if records == 1 {
                    self.tries += 1;
                }
                if self.tries == MOST_TRIES {
                    self.tries = 0;
                    self.progress.rejected += 1;
                    self.advance(upto, records);
                }
            }
            Ok(Meaning::Later { after, why }) => {
                self.failed(why);
                self.pause(after);
            }
            Err(why) => {
                self.failed(why);
                self.pause(None);
            }
        }
    }

    /// Packs the next batch on another thread.
    async fn pack(&mut self) -> Result<Batch, String> {
        let Some(mut packer) = self.packer.take() else {
            return Err("nothing can be packed".into());
        };
        let (progress, most) = (self.progress.clone(), self.most);
        let packed = tokio::task::spawn_blocking(move || {
            let batch = packer.pack(&progress, most);
            (packer, batch)
        });
        let (packer, batch) = packed.await.map_err(|error| error.to_string())?;
        self.packer = Some(packer);
        batch.map_err(|error| error.to_string())
    }

    /// Sends a request. Once the daemon ends, it has until the deadline.
    async fn post(&mut self, body: Vec<u8>) -> Result<Meaning, String> {
        let mut ending = self.ending.clone();
        let post = http::post(
            &self.settings.endpoint,
            &self.settings.headers,
            body,
            PATIENCE,
        );
        tokio::pin!(post);
        let answered = tokio::select! {
            answered = &mut post => answered,
            deadline = ended(&mut ending) => timeout_at(deadline, post)
                .await
                .unwrap_or_else(|_| Err("the daemon ended first".into())),
        };
        answered.map(|answer| answer.meaning())
    }

    /// Waits until a time, or until the daemon ends.
    async fn wait(&mut self, until: Instant) {
        let mut ending = self.ending.clone();
        tokio::select! {
            () = sleep_until(until) => {}
            _deadline = ended(&mut ending) => {}
        }
    }

    fn is_ending(&self) -> bool {
        self.ending.borrow().is_some()
    }

    /// Notes that the facts up to `upto` need not be sent again.
    fn advance(&mut self, upto: u64, records: usize) {
        self.progress.n = upto;
        self.progress.records += records as u64;
        self.shared.told().done += records as u64;
        self.next = self.next.max(Instant::now() + PACE);
        self.store();
    }

    /// Notes that the facts up to `upto` have no records.
    fn pass(&mut self, upto: u64) {
        if self.progress.n == upto {
            return;
        }
        self.progress.n = upto;
        match upto - self.stored > MOST_BEHIND {
            true => self.store(),
            false => self.shared.told().progress = Some(self.progress.clone()),
        }
    }

    fn store(&mut self) {
        self.exports.advance(self.progress.to_store());
        self.stored = self.progress.n;
        self.shared.told().progress = Some(self.progress.clone());
    }

    /// Notes that a batch was taken. `but`: what the collector has against it.
    fn worked(&mut self, but: Option<String>) {
        if self.failures > 0 {
            tracing::info!("telemetry: the collector takes records again");
        }
        self.failures = 0;
        self.shared.told().last_error = but;
    }

    fn failed(&mut self, why: String) {
        let mut told = self.shared.told();
        if told.last_error.is_none() {
            tracing::warn!("telemetry: {why}; it is tried again");
        }
        told.last_error = Some(why);
    }

    /// Waits before the next request, longer with each failure.
    fn pause(&mut self, asked: Option<Duration>) {
        let doubled = PACE * (1 << self.failures.min(6));
        self.failures = self.failures.saturating_add(1);
        // So that the daemons of one machine do not all come at once.
        let random = RandomState::new().hash_one(self.failures) % 256;
        let random = doubled.mul_f64(random as f64 / 1_024.0);
        let pause = doubled.min(LONGEST_PAUSE) + random;
        self.next = Instant::now() + pause.max(asked.unwrap_or_default());
    }
}

/// Waits until the daemon ends. Returns the deadline.
async fn ended(ending: &mut watch::Receiver<Option<Instant>>) -> Instant {
    loop {
        let deadline = *ending.borrow_and_update();
        if let Some(deadline) = deadline {
            return deadline;
        }
        if ending.changed().await.is_err() {
            // The exporter was dropped, which ends this task.
            std::future::pending::<()>().await;
        }
    }
}
