//! SURV: how many of the lines that agents wrote are still in their files at
//! the next commit, after a day, and after a week.
//!
//! There is no timer. The counts are made when there is work anyway, and they
//! are the same however late: they rest on the log, on stored contents and on
//! commits. Each is recorded as a fact.
//!
//! - [`commits`]: which versions a commit settles, and what it contains.
//! - [`line`]: a file's versions under all its names.
//! - [`progress`]: up to where versions and commits were looked at.
//! - [`list`]: the sums.

mod commits;
mod line;
mod list;
mod progress;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use touchmark_engine::history::Left;
use touchmark_engine::{Fact, Record};
use touchmark_proto::daemon::Ping;
use touchmark_proto::survival::Horizon;
use touchmark_proto::{Author, AuthorKind, Error, Millis, RelPath, SessionId};

use crate::context::{Context, Log, aside};
use crate::failpoint;
use crate::git::reflog;
use crate::store::Reader;
use line::{Lines, Wanted};
use progress::Progress;

pub(crate) use list::Agents;

const DAY: Millis = 86_400_000;
const WEEK: Millis = 7 * DAY;

/// A version that no commit has contained after this time is not judged at
/// one.
const COMMIT: Millis = 30 * DAY;

/// How often a repository is searched for while there is none.
const REPOSITORY: Duration = Duration::from_secs(60);

/// The maximum number of records of the log that one step looks at.
const STEP: usize = 1_000;

/// The maximum number of versions that one step judges at commits.
const SETTLED: usize = 1_000;

/// The maximum number of steps of a request.
const STEPS: usize = 1_000;

/// What is remembered between the looks.
#[derive(Debug)]
pub(crate) struct Judge {
    file: PathBuf,
    /// `None` until the first look has read it. Locked during a look.
    progress: tokio::sync::Mutex<Option<Progress>>,
    /// Nothing becomes due by time before this.
    due: AtomicU64,
    /// The stamp of the log of `HEAD` that was processed.
    head: Mutex<Option<reflog::Stamp>>,
    /// The path of that log; `None` outside of a repository. And when it was
    /// searched for.
    log_path: Mutex<(Option<PathBuf>, Option<Instant>)>,
}

/// What a look needs of the daemon.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) judge: Arc<Judge>,
    pub(crate) cx: Context,
}

/// One look at what can be judged by now.
struct Look {
    view: View,
    /// The log and the stored contents.
    log: Log,
}

impl Judge {
    /// Creates the record for the workspace whose state directory is `state`.
    pub(crate) fn new(state: &Path) -> Self {
        Self {
            file: state.join("survival.json"),
            progress: tokio::sync::Mutex::default(),
            due: AtomicU64::new(0),
            head: Mutex::default(),
            log_path: Mutex::default(),
        }
    }
}

impl View {
    /// Judges what can be judged by now, in the background. A later look
    /// continues where this one ends.
    pub(crate) async fn background(&self) {
        // If it is locked, another look is in progress.
        if let Ok(mut progress) = self.judge.progress.try_lock()
            && let Err(error) = self.look(&mut progress).await
        {
            tracing::debug!("survival: {error}");
        }
    }

    async fn look(&self, progress: &mut Option<Progress>) -> Result<(), Error> {
        let judge = Arc::clone(&self.judge);
        let is_due = judge.due.load(Ordering::Relaxed) <= self.cx.workspace.time.now();
        // The store is opened only if there is something to do.
        if progress.is_some() && !is_due && !aside(move || judge.has_moved()).await? {
            return Ok(());
        }
        Look::open(self)?.step(progress).await.map(drop)
    }
}

impl Look {
    /// Opens the log.
    fn open(view: &View) -> Result<Self, Error> {
        Ok(Self {
            view: view.clone(),
            log: view.cx.log()?,
        })
    }

    /// Judges everything that can be judged by now. Returns up to where
    /// versions were looked at.
    ///
    /// # Errors
    /// `storage`.
    async fn whole(&self) -> Result<Progress, Error> {
        let mut progress = self.view.judge.progress.lock().await;
        self.view.judge.due.store(0, Ordering::Relaxed);
        for _ in 0..STEPS {
            if !self.step(&mut progress).await? {
                break;
            }
        }
        Ok(progress.clone().unwrap_or_default())
    }

    /// Does one step of each kind. Returns whether there may be more to do.
    async fn step(&self, progress: &mut Option<Progress>) -> Result<bool, Error> {
        if progress.is_none() {
            let (file, epoch) = (self.view.judge.file.clone(), self.view.cx.epoch);
            *progress = Some(
                self.read(move |log| Progress::open(&file, epoch, log))
                    .await??,
            );
        }
        let Some(progress) = progress else {
            return Ok(false);
        };
        let mut more = false;
        let now = self.view.cx.workspace.time.now();
        if self.view.judge.due.load(Ordering::Relaxed) <= now {
            let mut due = now + DAY;
            for (horizon, age) in [(Horizon::Day, DAY), (Horizon::Week, WEEK)] {
                match self.by_time(progress, horizon, age).await? {
                    Some(next) => due = due.min(next),
                    None => more = true,
                }
            }
            if !more {
                self.view.judge.due.store(due, Ordering::Relaxed);
            }
        }
        Ok(self.by_commits(progress).await? || more)
    }

    /// Judges the oldest versions that have reached an age. Returns when the
    /// next one reaches it; `None` if there may be more to do now.
    async fn by_time(
        &self,
        progress: &mut Progress,
        horizon: Horizon,
        age: Millis,
    ) -> Result<Option<Millis>, Error> {
        let (from, cutoff) = (
            progress.mark(horizon),
            self.view.cx.workspace.time.before(age),
        );
        let page = self
            .read(move |log| log.versions_from(from, STEP))
            .await??;
        let ripe = page.partition_point(|record| record.time <= cutoff);
        let Some(last) = page[..ripe].last().map(|record| record.n) else {
            let next = page.first().map(|record| record.time);
            let after = next.map_or(self.view.cx.workspace.time.now(), |time| time);
            return Ok(Some(self.view.cx.workspace.time.after(after, age)));
        };
        let mut lines = Lines::new(self);
        let mut facts = Vec::new();
        for path in of_agents(&page[..ripe]) {
            let chain = lines.chain(&path).await?;
            let asked: Vec<(SessionId, Wanted)> = chain
                .versions
                .iter()
                .filter(|version| version.path == path)
                .filter(|version| (from + 1..=last).contains(&version.clock.n))
                .filter(|version| !progress.is_known(version.clock.n, horizon))
                .filter_map(|version| {
                    let wanted = Wanted {
                        version: version.clock.n,
                        until: self.view.cx.workspace.time.after(version.time, age),
                    };
                    Some((agent(&version.author)?, wanted))
                })
                .collect();
            let wanted: Vec<Wanted> = asked.iter().map(|(_, wanted)| wanted.clone()).collect();
            let left = lines.left(&path, &wanted).await?;
            facts.extend(survivals(&path, horizon, asked, left));
        }
        self.record(facts).await?;
        progress.set_mark(horizon, last);
        progress.write(&self.view.judge.file);
        Ok(match ripe == page.len() {
            true => None,
            false => page
                .get(ripe)
                .map(|next| self.view.cx.workspace.time.after(next.time, age)),
        })
    }

    /// Records facts about survival, and waits until they are committed.
    async fn record(&self, mut facts: Vec<Fact>) -> Result<(), Error> {
        if facts.is_empty() {
            return Ok(());
        }
        facts.sort_by_key(|fact| match fact {
            Fact::Survival { version, .. } => *version,
            _ => 0,
        });
        failpoint::pass("survival: about to record");
        self.view.cx.inside.record(facts);
        self.view.cx.inside.ask(Ping {}).await?;
        failpoint::pass("survival: recorded");
        Ok(())
    }

    /// Reads from the log, on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let log = Arc::clone(&self.log);
        aside(move || read(&log.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

/// Returns the session of an author; `None` if it is no agent's.
fn agent(author: &Author) -> Option<SessionId> {
    let session = author.session.clone();
    session.filter(|_| author.kind == AuthorKind::Agent)
}

/// Returns the facts about versions of a file: one for each version that added
/// lines, if it is known what is left of them.
fn survivals(
    path: &RelPath,
    horizon: Horizon,
    asked: Vec<(SessionId, Wanted)>,
    left: Vec<Option<Left>>,
) -> impl Iterator<Item = Fact> {
    let judged = asked.into_iter().zip(left);
    judged.filter_map(move |((session, wanted), left)| {
        let Left { added, alive } = left.filter(|left| left.added > 0)?;
        Some(Fact::Survival {
            version: wanted.version,
            session,
            path: path.clone(),
            horizon,
            added,
            alive,
        })
    })
}

/// Returns the paths of versions that agents may have written.
fn of_agents(records: &[Record]) -> BTreeSet<RelPath> {
    let versions = records.iter().filter_map(|record| match &record.fact {
        Fact::Version(fact) => Some(fact),
        _ => None,
    });
    versions
        // An author who is not known yet may be corrected later.
        .filter(|fact| {
            fact.author.kind == AuthorKind::Agent
                || !fact.candidates.is_empty()
                || fact.edit.is_some()
                || fact.command.is_some()
        })
        .map(|fact| fact.path.clone())
        .collect()
}
