//! Which versions a commit settles. It settles the versions before it of each
//! file that it changed, and of each file that was, when it was made, as it
//! has it: nothing of such a file was left to commit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Instant;

use touchmark_engine::history::Step;
use touchmark_engine::{Fact, Record};
use touchmark_proto::survival::Horizon;
use touchmark_proto::{Error, Hash, Millis, Places, RelPath, SessionId, VersionKind};

use super::line::{Lines, Wanted};
use super::progress::Progress;
use super::{COMMIT, Judge, Look, REPOSITORY, SETTLED, agent, survivals};
use crate::context::aside;
use crate::git::reflog::{self, Commit, Place};
use crate::git::{Limits, Objects, WorkTree};

/// A version, as far as it matters here.
#[derive(Clone, Debug)]
struct Row {
    n: u64,
    time: Millis,
    hash: Option<Hash>,
    /// The session that wrote it and waits for a commit; `None` for others.
    waits: Option<SessionId>,
}

/// Versions of a name that a commit settles, with what it contains.
#[derive(Debug)]
struct Settled {
    path: RelPath,
    versions: Vec<(SessionId, u64)>,
    /// The newest version that was there when it was made, and its time.
    until: Millis,
    content: Step,
}

impl Look {
    /// Judges the versions that new commits settle. Returns whether there may
    /// be more commits to look at.
    pub(super) async fn by_commits(&self, progress: &mut Progress) -> Result<bool, Error> {
        if self.read(|log| log.versions_from(0, 1)).await??.is_empty() {
            return Ok(false);
        }
        let Some((head, commits)) = self.new_commits(&progress.commits).await? else {
            return Ok(false);
        };
        let oldest = self.view.cx.workspace.time.before(COMMIT);
        let now = self.view.cx.workspace.time.now();
        let (records, judged) = self
            .read(move |log| {
                let records =
                    log.versions_between_times(oldest, now.saturating_add(1), usize::MAX)?;
                let first = records.first().map_or(u64::MAX, |record| record.n);
                let judged: HashSet<u64> = log
                    .survivals_after(first)?
                    .into_iter()
                    .filter_map(|record| match record.fact {
                        Fact::Survival {
                            version,
                            horizon: Horizon::Commit,
                            ..
                        } => Some(version),
                        _ => None,
                    })
                    .collect();
                Ok::<_, crate::store::StoreError>((records, judged))
            })
            .await??;
        let mut waiting = Waiting::of(&records, &judged);
        let (root, places) = (
            self.view.cx.workspace.root.clone(),
            self.view.cx.workspace.places.clone(),
        );
        let settle = move || {
            let tree = WorkTree::of(&root, &places)?;
            Some(waiting.settle(&tree, &root, commits))
        };
        let (settled, place, more) = aside(settle).await?.unwrap_or_default();
        let mut lines = Lines::new(self);
        let mut facts = Vec::new();
        for Settled {
            path,
            versions,
            until,
            content,
        } in settled
        {
            let asked: Vec<(SessionId, Wanted)> = versions
                .into_iter()
                .map(|(session, version)| (session, Wanted { version, until }))
                .collect();
            let wanted: Vec<Wanted> = asked.iter().map(|(_, wanted)| wanted.clone()).collect();
            let left = lines.left_at_commit(&path, &wanted, content).await?;
            facts.extend(survivals(&path, Horizon::Commit, asked, left));
        }
        self.record(facts).await?;
        if let Some(place) = place {
            progress.commits = place;
            progress.write(&self.view.judge.file);
        }
        if !more {
            *self
                .view
                .judge
                .head
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = head;
        }
        Ok(more)
    }

    /// Returns the commits after a place, and the stamp of the log that has
    /// them. `None` if `HEAD` has not moved since the last look.
    async fn new_commits(
        &self,
        place: &Place,
    ) -> Result<Option<(Option<reflog::Stamp>, Vec<(Commit, Place)>)>, Error> {
        let known = *self
            .view
            .judge
            .head
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (view, place) = (self.view.clone(), place.clone());
        aside(move || {
            let path = view
                .judge
                .log_of_head(&view.cx.workspace.root, &view.cx.workspace.places)?;
            let stamp = reflog::stamp(&path);
            if stamp.is_none() || stamp == known {
                return None;
            }
            let commits = reflog::after(&path, &place);
            Some((stamp, commits))
        })
        .await
    }
}

impl Judge {
    /// Returns whether `HEAD` has moved since the last look.
    pub(super) fn has_moved(&self) -> bool {
        let path = {
            let known = self.log_path.lock().unwrap_or_else(PoisonError::into_inner);
            match (&known.0, known.1) {
                (Some(path), _) => path.clone(),
                (None, last) => return last.is_none_or(|last| last.elapsed() >= REPOSITORY),
            }
        };
        let head = *self.head.lock().unwrap_or_else(PoisonError::into_inner);
        reflog::stamp(&path).is_some_and(|stamp| Some(stamp) != head)
    }

    /// Returns the path of the log of `HEAD`; `None` outside of a repository.
    /// It is searched for once, and again while there is no repository.
    fn log_of_head(&self, root: &Path, places: &Places) -> Option<PathBuf> {
        let mut known = self.log_path.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0.is_none() && known.1.is_none_or(|last| last.elapsed() >= REPOSITORY) {
            *known = (reflog::path(root, places), Some(Instant::now()));
        }
        known.0.clone()
    }
}

/// The versions that wait for a commit, among all versions of their names.
struct Waiting {
    /// The versions of each name, oldest first.
    rows: BTreeMap<RelPath, Vec<Row>>,
    /// The names from which files were renamed: the new name, and the number
    /// and time of the version.
    renames: HashMap<RelPath, Vec<(RelPath, u64, Millis)>>,
}

impl Waiting {
    fn of(records: &[Record], judged: &HashSet<u64>) -> Self {
        let mut rows: BTreeMap<RelPath, Vec<Row>> = BTreeMap::new();
        let mut renames: HashMap<RelPath, Vec<(RelPath, u64, Millis)>> = HashMap::new();
        for record in records {
            let Fact::Version(fact) = &record.fact else {
                continue;
            };
            let own = rows.entry(fact.path.clone()).or_default();
            let author = agent(&fact.author);
            if let Some(of) = fact.amends {
                if let Some(row) = own.iter_mut().find(|row| row.n == of) {
                    row.waits = author.filter(|_| !judged.contains(&of));
                }
                continue;
            }
            own.push(Row {
                n: record.n,
                time: record.time,
                hash: fact.held.hash,
                waits: author.filter(|_| !judged.contains(&record.n)),
            });
            if fact.kind == VersionKind::Renamed
                && let Some(from) = &fact.from
            {
                let to = (fact.path.clone(), record.n, record.time);
                renames.entry(from.clone()).or_default().push(to);
            }
        }
        Self { rows, renames }
    }

    /// Returns what the commits settle, in their order; the place of the last
    /// one that was looked at; and whether there are more.
    fn settle(
        &mut self,
        tree: &WorkTree,
        root: &Path,
        commits: Vec<(Commit, Place)>,
    ) -> (Vec<Settled>, Option<Place>, bool) {
        let mut settled = Vec::new();
        let last = commits.last().map(|(_, place)| place.clone());
        if !self.any() || commits.is_empty() {
            return (settled, last, false);
        }
        let first = self
            .rows
            .values()
            .flatten()
            .filter(|row| row.waits.is_some())
            .map(|row| row.time / 1_000)
            .min()
            .unwrap_or(0);
        let from = commits.partition_point(|(commit, _)| commit.second < first);
        let commits = &commits[from..];
        let Some(mut git) = Objects::open(tree, root, Limits::default()) else {
            return (settled, None, false);
        };
        let ids: Vec<&Commit> = commits.iter().map(|(commit, _)| commit).collect();
        let Some(changed) = changed(tree, root, &ids) else {
            return (settled, None, false);
        };
        let mut place = None;
        let mut count = 0;
        // What an earlier commit had of a name that later ones did not change.
        let mut had: HashMap<RelPath, Step> = HashMap::new();
        let mut head: Option<&str> = None;
        for ((commit, own), changed) in commits.iter().zip(changed) {
            if head.is_none() || head != commit.before.as_deref() {
                // `HEAD` was moved in between, as by a checkout.
                had.clear();
            }
            head = Some(&commit.id);
            for path in changed.iter().filter_map(|path| RelPath::new(path).ok()) {
                had.remove(&path);
            }
            let names: Vec<RelPath> = self.rows.keys().cloned().collect();
            for path in names {
                let is_changed = |name: &RelPath| changed.contains(name.as_bytes());
                let content = |name: &RelPath| {
                    had.entry(name.clone())
                        .or_insert_with(|| git.file(&commit.id, name))
                        .clone()
                };
                if let Some(found) = self.settled(&path, commit.second, is_changed, content) {
                    count += found.versions.len();
                    settled.push(found);
                }
            }
            place = Some(own.clone());
            if count >= SETTLED {
                break;
            }
            if !self.any() {
                place.clone_from(&last);
                break;
            }
        }
        let more = place != last;
        (settled, place.or(last), more)
    }

    fn any(&self) -> bool {
        self.rows.values().flatten().any(|row| row.waits.is_some())
    }

    /// Returns the versions of a name that a commit of this second settles, if
    /// there are any. They do not wait any more then.
    fn settled(
        &mut self,
        path: &RelPath,
        second: u64,
        is_changed: impl Fn(&RelPath) -> bool,
        mut content: impl FnMut(&RelPath) -> Step,
    ) -> Option<Settled> {
        let (start, end) = (second * 1_000, (second + 1) * 1_000);
        let own = self.rows.get(path)?;
        if !own.iter().any(|row| row.waits.is_some() && row.time < end) {
            return None;
        }
        let (name, all) = self.at(path, end);
        let content = content(&name);
        let hash = match &content {
            Step::Held(bytes) => Some(Hash::of(bytes)),
            Step::Absent => None,
            Step::NotKept => return None,
        };
        let before = all.partition_point(|row| row.time < end);
        // Git tells only the second. A version of that second is in the commit,
        // or before it, if the commit has its content or that of a later one.
        let same = all[..before].iter().rposition(|row| row.hash == hash);
        let clean = same.is_some_and(|same| same + 1 == before);
        if !is_changed(&name) && !is_changed(path) && !clean {
            return None;
        }
        let surely = all.partition_point(|row| row.time < start);
        let count = surely.max(same.map_or(0, |same| same + 1));
        let last = all.get(count.checked_sub(1)?)?;
        let (last, until) = (last.n, last.time);
        let own = self.rows.get_mut(path)?;
        let versions: Vec<(SessionId, u64)> = own
            .iter_mut()
            .filter(|row| row.n <= last)
            .filter_map(|row| Some((row.waits.take()?, row.n)))
            .collect();
        (!versions.is_empty()).then(|| Settled {
            path: path.clone(),
            versions,
            until,
            content,
        })
    }

    /// Returns the name that the file of a name has at a moment, and its
    /// versions under both names.
    fn at(&self, path: &RelPath, end: Millis) -> (RelPath, Vec<Row>) {
        let mut name = path.clone();
        let mut all = self.rows.get(path).cloned().unwrap_or_default();
        for _ in 0..8 {
            let before = all.partition_point(|row| row.time < end);
            let gone = before > 0 && all[before - 1].hash.is_none();
            let last_waiting = all[..before].iter().rfind(|row| row.waits.is_some());
            let after = last_waiting.map_or(0, |row| row.n);
            let renames = self.renames.get(&name).into_iter().flatten();
            let mut renames = renames.filter(|(_, n, time)| *n > after && *time < end);
            let Some((to, n, _)) = renames.next().filter(|_| gone) else {
                break;
            };
            all.retain(|row| row.n < *n && row.hash.is_some());
            let later = self.rows.get(to).into_iter().flatten();
            // Versions under the other name are asked for under that name.
            all.extend(later.filter(|row| row.n >= *n).map(|row| Row {
                waits: None,
                ..row.clone()
            }));
            name = to.clone();
        }
        (name, all)
    }
}

/// Returns the names that each commit changed, as it moved `HEAD`; `None` if
/// git fails.
fn changed(tree: &WorkTree, root: &Path, commits: &[&Commit]) -> Option<Vec<HashSet<Vec<u8>>>> {
    let asked: String = commits
        .iter()
        .map(|commit| match &commit.before {
            Some(before) => format!("{} {before}\n", commit.id),
            None => format!("{}\n", commit.id),
        })
        .collect();
    let git = tree
        .git(root)
        .ok()?
        .args(["diff-tree", "--stdin", "--root", "-r", "-z", "--name-only"])
        .args(["--no-renames", "--relative", "--no-ext-diff"]);
    let printed = git.input(asked).printed()?;
    let mut found: Vec<HashSet<Vec<u8>>> = vec![HashSet::new(); commits.len()];
    let mut at: Option<usize> = None;
    for field in printed.split(|byte| *byte == 0) {
        let next = at.map_or(0, |at| at + 1);
        // The commits are listed in order, each by its id on a line. A commit
        // without changes may be missing.
        let id = field.trim_ascii_end();
        let is_id = |commit: &&Commit| commit.id.as_bytes() == id;
        if let Some(of) = commits[next.min(commits.len())..].iter().position(is_id) {
            at = Some(next + of);
        } else if let Some(at) = at.filter(|_| !field.is_empty()) {
            found[at].insert(field.to_vec());
        }
    }
    Some(found)
}
