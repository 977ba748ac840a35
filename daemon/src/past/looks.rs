//! The queue of versions to look at, and the answers that wait for it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use touchmark_engine::{Carriage, Fact, Record};
use touchmark_proto::daemon::Ping;
use touchmark_proto::{Error, Millis, Places, RelPath};

use super::judge::{Job, OnDisk, is_doubtful, on_disk};
use super::place::{Place, path_in, top_above};
use crate::inside::Inside;
use crate::store::{Reader, Readers, StoreError};

/// The most versions that wait. Those above it are not looked at: they count as
/// their authors'.
const MOST: usize = 200_000;

/// The most versions that are looked at again.
const MOST_OPEN: usize = 10_000;

/// How long before the end of the daemon a version was recorded that it may not
/// have looked at any more, in milliseconds.
const BEFORE_END: Millis = 10_000;

/// The size of a batch, in versions, from which on the files are read ahead by
/// a thread of its own.
const MANY: usize = 100;

/// The number of files that are read ahead and handed over together. At most
/// three times as many are in memory.
const AHEAD: usize = 64;

/// The largest file that is read ahead, in bytes.
const LARGEST_AHEAD: u64 = 256 << 10;

/// The most facts that are passed to the loop together. It stores them while
/// more versions are looked at.
const FACTS: usize = 500;

/// How long an answer waits for the looks at versions that git may have brought.
const LOOKING: Duration = Duration::from_secs(10);

/// How long git may take from releasing the index to the end.
const LAST: Duration = Duration::from_millis(50);

/// How long git processes that hold the indexes of repositories are waited for.
/// A version is looked at while the command that wrote it may not have ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most git processes of a batch that run at the same time.
const MOST_PROCESSES: usize = 16;

/// The most repositories that are remembered.
const MOST_PLACES: usize = 64;

/// The versions that are looked at in the background.
#[derive(Debug)]
pub(crate) struct Looks {
    /// The workspace's canonical path.
    root: PathBuf,
    user: Places,
    store: Readers,
    queue: Mutex<Queue>,
    /// The number of the newest fact of the daemon before this one; `None` when
    /// its last versions were looked at.
    before: Mutex<Option<u64>>,
    /// Versions that nothing has explained yet.
    open: Mutex<Vec<InPlace>>,
    /// The repositories, by their top directories. Locked during a look.
    places: Mutex<HashMap<PathBuf, Option<Place>>>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waits>,
    is_running: bool,
}

#[derive(Debug)]
enum Waits {
    Version(Box<Job>),
    /// An answer that may be computed once the versions before it were looked
    /// at.
    Answer(oneshot::Sender<()>),
}

/// A version in a repository, or an answer that waits.
enum Placed {
    Version(Box<InPlace>),
    Answer(oneshot::Sender<()>),
}

/// A version, with the top directory of its repository and its path in it.
#[derive(Debug)]
struct InPlace {
    job: Job,
    top: PathBuf,
    path: Vec<u8>,
    /// What the first look has explained it by, if there was one: what git
    /// leaves behind may be gone at the second look.
    seen: Option<Carriage>,
}

impl InPlace {
    /// Returns whether git may be in the middle of writing it.
    fn is_merging(&self, places: &HashMap<PathBuf, Option<Place>>) -> bool {
        let place = places.get(&self.top).and_then(Option::as_ref);
        place.is_some_and(|place| place.is_merging(self.job.since()))
    }
}

impl Placed {
    fn is_version(&self) -> bool {
        matches!(self, Self::Version(_))
    }
}

/// Returns what is to be looked at of a fact: a version that git may have
/// brought.
fn doubtful(record: &Record) -> Option<Job> {
    match &record.fact {
        Fact::Version(fact) if is_doubtful(fact) => Some(Job {
            n: record.n,
            time: record.time,
            fact: fact.clone(),
        }),
        _ => None,
    }
}

/// Logs what was recorded of a file, for those who look for a wrong answer.
fn trace(record: &Record) {
    let n = record.n;
    match &record.fact {
        Fact::Version(fact) => tracing::debug!(
            "version {n}: {} {:?} from {:?} by {:?}, {:?}, {:?}",
            fact.path,
            fact.kind,
            fact.from,
            fact.author,
            fact.evidence,
            fact.held.hash,
        ),
        Fact::Baseline { path, held, .. } => {
            tracing::debug!("baseline {n}: {path}, {:?}", held.hash);
        }
        _ => {}
    }
}

/// Returns the versions that the daemon before this one recorded last, and may
/// not have looked at any more. `newest` is the number of its newest fact.
fn left_over(log: &Reader, newest: u64) -> Result<Vec<Waits>, StoreError> {
    let Some(last) = log.versions_before(newest + 1, 1)?.pop() else {
        return Ok(Vec::new());
    };
    let from = last.time.saturating_sub(BEFORE_END);
    let versions = log.versions_between_times(from, last.time + 1, MOST_OPEN)?;
    let versions = versions.iter().filter(|record| record.n <= newest);
    let mut jobs: Vec<Job> = versions.filter_map(doubtful).collect();
    let paths: BTreeSet<RelPath> = jobs.iter().map(|job| job.fact.path.clone()).collect();
    let mut brought: HashSet<u64> = HashSet::new();
    for path in paths {
        let records = log.carriages(&path)?.into_iter();
        brought.extend(records.filter_map(|record| match record.fact {
            Fact::GitBrought { version, .. } => Some(version),
            _ => None,
        }));
    }
    jobs.retain(|job| !brought.contains(&job.n));
    let jobs = jobs.into_iter();
    Ok(jobs.map(|job| Waits::Version(Box::new(job))).collect())
}

/// Returns how git brought a version, if that is known.
fn explained(fact: &Fact) -> Option<Carriage> {
    match fact {
        Fact::GitBrought {
            how: how @ (Carriage::Carried | Carriage::Wiped),
            ..
        } => Some(*how),
        _ => None,
    }
}

/// Waits for what git writes last, after it has released an index: the log of
/// `HEAD`. Once for each repository in a batch.
fn settle(places: &mut HashMap<PathBuf, Option<Place>>) {
    let all = places.values_mut().flatten();
    let unsettled: Vec<&mut Place> = all.filter_map(Place::unsettled).collect();
    if unsettled.is_empty() {
        return;
    }
    std::thread::sleep(LAST);
    let until = Instant::now() + PATIENCE;
    for place in unsettled {
        place.refresh(until);
    }
}

/// Leaves out the versions of files that are in no repository.
fn placed(root: &Path, waiting: Vec<Waits>) -> Vec<Placed> {
    // A switch of branches changes many files of one directory.
    let mut tops: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
    let placed = waiting.into_iter().filter_map(|one| match one {
        Waits::Answer(answer) => Some(Placed::Answer(answer)),
        Waits::Version(job) => {
            let file = job.file(root);
            let directory = file.parent()?;
            if !tops.contains_key(directory) {
                let top = top_above(directory).map(Path::to_owned);
                tops.insert(directory.to_owned(), top);
            }
            let top = tops[directory].clone()?;
            let path = path_in(&top, &file)?;
            let job = *job;
            let version = InPlace {
                job,
                top,
                path,
                seen: None,
            };
            Some(Placed::Version(Box::new(version)))
        }
    });
    placed.collect()
}

impl Looks {
    /// Creates the queue for a workspace, whose user has these directories.
    /// `newest` is the number of the newest fact in its log.
    pub(crate) fn new(root: PathBuf, user: Places, store: Readers, newest: u64) -> Self {
        Self {
            root,
            user,
            store,
            queue: Mutex::default(),
            before: Mutex::new(Some(newest)),
            open: Mutex::default(),
            places: Mutex::default(),
        }
    }

    /// Queues the versions among a turn's facts that git may have brought.
    /// Returns whether [`run`](Self::run) is to be called.
    pub(crate) fn queue(&self, facts: &[Record]) -> bool {
        for record in facts {
            trace(record);
        }
        let doubtful = facts.iter().filter_map(doubtful);
        let mut queue = self.locked();
        for job in doubtful {
            if queue.waiting.len() < MOST {
                queue.waiting.push(Waits::Version(Box::new(job)));
            }
        }
        let starts = !queue.is_running && !queue.waiting.is_empty();
        queue.is_running |= starts;
        starts
    }

    /// Waits until it is known of all recorded versions whether git brought them
    /// (HIST-8), and these results are recorded. Not longer than [`LOOKING`]:
    /// a version on a mount that hangs then counts as its author's.
    ///
    /// # Errors
    /// `shuttingDown`.
    pub(crate) async fn looked(self: &Arc<Self>, inside: &Inside) -> Result<(), Error> {
        let (looks, own) = (Arc::clone(self), inside.clone());
        let (answer, is_answered) = oneshot::channel();
        let looked = async {
            // On the loop, which has queued all versions that are recorded now.
            let waits = inside.look(move |_| {
                if looks.wait(answer) {
                    tokio::spawn(looks.run(own));
                }
            });
            waits.await;
            is_answered.await
        };
        let _or_too_late = tokio::time::timeout(LOOKING, looked).await;
        inside.ask(Ping {}).await.map(drop)
    }

    /// Completes `answer` once all versions that are queued now were looked at,
    /// and the results were passed to the loop.
    /// Returns whether [`run`](Self::run) is to be called.
    fn wait(&self, answer: oneshot::Sender<()>) -> bool {
        let mut queue = self.locked();
        queue.waiting.push(Waits::Answer(answer));
        !std::mem::replace(&mut queue.is_running, true)
    }

    /// Looks at versions until the queue is empty.
    pub(crate) async fn run(self: Arc<Self>, inside: Inside) {
        loop {
            let waiting = {
                let mut queue = self.locked();
                queue.is_running = !queue.waiting.is_empty();
                std::mem::take(&mut queue.waiting)
            };
            if waiting.is_empty() {
                return;
            }
            let root = self.root.clone();
            let placed = tokio::task::spawn_blocking(move || placed(&root, waiting)).await;
            let Ok(waiting) = placed else { continue };
            // Without a repository the log is not opened.
            let log = match self.has_work(&waiting) {
                true => Some(self.store.open()),
                false => None,
            };
            let (looks, to) = (Arc::clone(&self), inside.clone());
            let looked = tokio::task::spawn_blocking(move || {
                // An answer looks again at what is open.
                if let Some(Ok(log)) = log {
                    looks.look(&log, waiting, &to);
                }
            });
            if let Err(error) = looked.await {
                tracing::error!("a look at a repository broke off: {error}");
            }
        }
    }

    /// Returns whether there is anything to look at.
    fn has_work(&self, waiting: &[Placed]) -> bool {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        before.is_some() || !open.is_empty() || waiting.iter().any(Placed::is_version)
    }

    fn look(&self, log: &Reader, waiting: Vec<Placed>, inside: &Inside) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() > MOST_PLACES {
            places.clear();
        }
        let until = Instant::now() + PATIENCE;
        for place in places.values_mut().flatten() {
            place.refresh(until);
        }
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let left_over = before.take().map(|newest| left_over(log, newest));
        let left_over = left_over.transpose().inspect_err(|error| {
            tracing::warn!("versions that git may have brought before the start: {error}");
        });
        let mut all = placed(&self.root, left_over.ok().flatten().unwrap_or_default());
        all.extend(waiting);
        std::thread::scope(|scope| {
            let ahead = self.read_ahead(scope, &all);
            self.judge_all(log, all, ahead, &mut places, inside);
        });
        places.retain(|_, place| place.is_some());
        for place in places.values_mut().flatten() {
            place.rest();
        }
    }

    /// Reads the files of many versions, in their order, while the versions are
    /// looked at. Without a message, the file is to be read then.
    fn read_ahead<'scope>(
        &self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        all: &[Placed],
    ) -> mpsc::Receiver<Vec<Option<OnDisk>>> {
        let (sender, ahead) = mpsc::sync_channel(1);
        if all.len() >= MANY {
            let versions = all.iter().filter_map(|one| match one {
                Placed::Version(version) => Some(version),
                Placed::Answer(_) => None,
            });
            let files: Vec<PathBuf> = versions
                .map(|version| version.job.file(&self.root))
                .collect();
            scope.spawn(move || {
                let read = |file: &PathBuf| on_disk(file, LARGEST_AHEAD);
                let mut parts = files.chunks(AHEAD);
                parts.try_for_each(|part| sender.send(part.iter().map(read).collect()))
            });
        }
        ahead
    }

    /// Looks at versions, in their order.
    fn judge_all(
        &self,
        log: &Reader,
        all: Vec<Placed>,
        ahead: mpsc::Receiver<Vec<Option<OnDisk>>>,
        places: &mut HashMap<PathBuf, Option<Place>>,
        inside: &Inside,
    ) {
        let mut facts = Vec::new();
        let mut ahead = ahead.into_iter().flatten();
        // What nothing explains is looked at again before an answer: git writes
        // its log of HEAD last.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for one in all {
            match one {
                Placed::Version(mut version) => {
                    let read = ahead.next().flatten();
                    match self.judged(log, &version, read, places) {
                        Some(fact) if explained(&fact).is_some() && !version.is_merging(places) => {
                            facts.push(fact);
                        }
                        Some(fact) if open.len() < MOST_OPEN => {
                            version.seen = explained(&fact);
                            open.push(*version);
                        }
                        None if version.job.may_be_explained_later() && open.len() < MOST_OPEN => {
                            open.push(*version);
                        }
                        fact => facts.extend(fact),
                    }
                }
                Placed::Answer(answer) => {
                    if !open.is_empty() {
                        settle(places);
                    }
                    for version in open.drain(..) {
                        facts.extend(self.judged(log, &version, None, places));
                    }
                    inside.record(std::mem::take(&mut facts));
                    let _nobody_waits = answer.send(());
                }
            }
            if facts.len() >= FACTS {
                inside.record(std::mem::take(&mut facts));
            }
        }
        inside.record(facts);
    }

    /// Returns the fact about a version; `None` if git did not bring it. `read`
    /// is what was read of its file shortly before; `None` if it is to be read
    /// now.
    fn judged(
        &self,
        log: &Reader,
        version: &InPlace,
        read: Option<OnDisk>,
        places: &mut HashMap<PathBuf, Option<Place>>,
    ) -> Option<Fact> {
        let InPlace {
            job,
            top,
            path,
            seen,
        } = version;
        let file = job.file(&self.root);
        let running = places.values().flatten().filter(|place| place.runs_git());
        if running.count() >= MOST_PROCESSES {
            places.values_mut().flatten().for_each(Place::end_git);
        }
        let place = places.entry(top.clone()).or_insert_with(|| {
            let mut place = Place::at(top, &self.user)?;
            place.refresh(Instant::now() + PATIENCE);
            Some(place)
        });
        let place = place.as_mut()?;
        // A revert shows only afterwards.
        let seen = seen.filter(|_| !place.is_reverted(job.since()));
        let how = seen.or_else(|| job.judge(place, log, &file, path, read))?;
        if how != Carriage::Unclear {
            place.note_brought(job.n);
        }
        tracing::debug!("{}, version {}: {how:?}", job.fact.path, job.n);
        Some(Fact::GitBrought {
            version: job.n,
            path: job.fact.path.clone(),
            how,
        })
    }

    fn locked(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
