//! Telemetry: records of facts for an OpenTelemetry collector, by OTLP over
//! HTTP, if the user has switched that on (TEL).
//!
//! The log is the queue. One task on the daemon's runtime packs the facts after
//! the newest one that the collector has acknowledged into a request, sends it,
//! and stores the new position. It sleeps until the loop reports a committed
//! fact that has a record, and it keeps nothing while it sleeps. Nothing waits
//! for it.
//!
//! - [`settings`](Settings): where to send.
//! - `task`: when to send. `http`, `answer`: one request, and what its answer
//!   means.
//! - `pack`, `events`: from facts to records. `sessions`, `identity`, `remote`:
//!   what they say about sessions, repositories and files.
//! - `progress`: what is stored.

mod answer;
mod events;
#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/collector.rs"]
pub(crate) mod fuzzed;
mod http;
mod identity;
mod pack;
mod progress;
mod remote;
mod sessions;
mod settings;
mod task;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use touchmark_engine::{Fact, Record};
use touchmark_proto::Clock;
use touchmark_proto::daemon::TelemetryStatus;

pub(crate) use pack::Subject;
pub(crate) use settings::Settings;

use crate::event::Event;
use crate::store::Exports;
use progress::Progress;
use task::Task;

/// How long the end of the daemon waits for the last batch.
pub(crate) const LAST: Duration = Duration::from_secs(1);

/// Returns whether a fact has a record.
pub(crate) fn is_exported(fact: &Fact) -> bool {
    events::Event::of(fact).is_some()
}

/// The running export.
pub(crate) struct Exporter {
    shared: Arc<Shared>,
    endpoint: String,
    /// The newest turn with a fact that has a record.
    turn: Option<u64>,
    task: JoinHandle<()>,
}

/// What the loop and the task share.
pub(crate) struct Shared {
    /// A fact with a record was committed.
    committed: Notify,
    /// The deadline for the last batch, once the daemon ends.
    end: watch::Sender<Option<Instant>>,
    told: Mutex<Told>,
    /// The number of facts with records that the loop has seen since the start,
    /// and of those before it that were not acknowledged then.
    wanted: AtomicU64,
}

/// What the task has done so far.
#[derive(Default)]
struct Told {
    progress: Option<Progress>,
    /// The number of records that were acknowledged or given up since the
    /// start.
    done: u64,
    /// The number of records that were dropped from the log before the start.
    dropped_before: u64,
    /// Why the last batch was not taken.
    last_error: Option<String>,
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With what an export begins.
pub(crate) struct Begin {
    pub(crate) settings: Settings,
    pub(crate) subject: Subject,
    pub(crate) exports: Exports,
    pub(crate) events: UnboundedSender<Event>,
    /// The epoch of new facts.
    pub(crate) epoch: u64,
    /// The number of the newest fact.
    pub(crate) newest: u64,
    /// Whether the position that is stored is not valid.
    pub(crate) anew: bool,
    /// What an earlier export in this process has done.
    pub(crate) before: Option<Before>,
}

/// What a stopped export has done.
pub(crate) struct Before(Progress);

impl Exporter {
    /// Starts the export on the current runtime.
    pub(crate) fn start(begin: Begin) -> Self {
        let endpoint = begin.settings.endpoint().as_str().to_owned();
        let shared = Arc::new(Shared {
            committed: Notify::new(),
            end: watch::Sender::new(None),
            told: Mutex::new(Told {
                progress: begin.before.as_ref().map(|before| before.0.clone()),
                dropped_before: begin.exports.dropped(),
                ..Told::default()
            }),
            wanted: AtomicU64::new(0),
        });
        let task = tokio::spawn(Task::new(begin, Arc::clone(&shared)).run());
        Self {
            shared,
            endpoint,
            turn: None,
            task,
        }
    }

    /// Notes the facts of a turn that is about to be committed.
    pub(crate) fn heed(&mut self, turn: u64, facts: &[Record]) {
        let wanted = facts.iter().filter(|record| is_exported(&record.fact));
        let wanted = wanted.count() as u64;
        if wanted > 0 {
            self.shared.wanted.fetch_add(wanted, Ordering::Relaxed);
            self.turn = Some(turn);
        }
    }

    /// Notes that all turns up to this one are committed.
    pub(crate) fn committed(&mut self, turn: u64) {
        if self.turn.take_if(|newest| *newest <= turn).is_some() {
            self.shared.committed.notify_one();
        }
    }

    /// Notes that commits that had failed are done.
    pub(crate) fn recovered(&mut self) {
        self.turn = None;
        self.shared.committed.notify_one();
    }

    /// Stops immediately. The next export continues from what this returns.
    pub(crate) fn stop(self) -> Option<Before> {
        self.task.abort();
        self.shared.told().progress.clone().map(Before)
    }

    /// Sends one last batch, until the deadline at the latest.
    pub(crate) async fn finish(&mut self) {
        let deadline = Instant::now() + LAST;
        self.shared.end.send_replace(Some(deadline));
        // A batch that is being packed cannot be interrupted.
        let late = deadline + LAST / 4;
        let _late_or_died = tokio::time::timeout_at(late, &mut self.task).await;
    }

    /// Returns the state of the export.
    pub(crate) fn status(&self, epoch: u64, dropped: u64) -> TelemetryStatus {
        let told = self.shared.told();
        let wanted = self.shared.wanted.load(Ordering::Relaxed);
        let gone = dropped.saturating_sub(told.dropped_before);
        TelemetryStatus {
            endpoint: Some(self.endpoint.clone()),
            acknowledged: told.progress.as_ref().map(|progress| Clock {
                epoch,
                n: progress.n,
            }),
            unsent: wanted.saturating_sub(told.done + gone),
            pruned: dropped,
            rejected: told
                .progress
                .as_ref()
                .map_or(0, |progress| progress.rejected),
            last_error: told.last_error.clone(),
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}
