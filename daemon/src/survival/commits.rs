//! Which versions a commit settles. It settles the versions before it of each
//! file that it changed, and of each file that was, when it was made, as it
//! has it: nothing of such a file was left to commit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use touchmark_engine::history::Step;
use touchmark_engine::{Fact, Record};
use touchmark_proto::survival::Horizon;
use touchmark_proto::{Error, Hash, Millis, RelPath, VersionKind};

use super::line::{Lines, Wanted};
use super::{COMMIT, Judged, Look, agent, note};
use crate::context::aside;
use crate::git::reflog::{self, Move};
use crate::git::{Limits, Objects, WorkTree};

/// A version, as far as it matters here.
#[derive(Clone, Debug)]
struct OwnVersion {
    n: u64,
    time: Millis,
    hash: Option<Hash>,
    /// Whether an agent wrote it, and it waits for a commit.
    waits: bool,
}

/// Versions of a name that a commit settles, with what it contains.
#[derive(Debug)]
struct Settled {
    path: RelPath,
    versions: Vec<u64>,
    /// The newest version that was there when it was made, and its time.
    until: Millis,
    content: Step,
}

impl Look {
    /// Judges the versions that commits settle, among those of the last 30 days.
    pub(super) async fn by_commits(
        &self,
        records: &[Record],
        lines: &mut Lines<'_>,
        judged: &mut Judged,
    ) -> Result<(), Error> {
        let oldest = self.cx.workspace.time.before(COMMIT);
        let first = records.partition_point(|record| record.time < oldest);
        let mut waiting = Waiting::of(&records[first..]);
        if !waiting.any() {
            return Ok(());
        }
        let workspace = Arc::clone(&self.cx.workspace);
        let settle = move || {
            let (root, places) = (&workspace.root, &workspace.places);
            let tree = WorkTree::of(root, places)?;
            let mut commits = reflog::moves(&tree);
            commits.retain(Move::is_commit);
            Some(waiting.settle(&tree, root, &commits))
        };
        for Settled {
            path,
            versions,
            until,
            content,
        } in aside(settle).await?.unwrap_or_default()
        {
            let wanted: Vec<Wanted> = versions
                .into_iter()
                .map(|version| Wanted { version, until })
                .collect();
            let left = lines.left_at_commit(&path, &wanted, content).await?;
            note(judged, Horizon::Commit, &wanted, left);
        }
        Ok(())
    }
}

/// The versions that wait for a commit, among all versions of their names.
struct Waiting {
    /// The versions of each name, oldest first.
    rows: BTreeMap<RelPath, Vec<OwnVersion>>,
    /// The names from which files were renamed: the new name, and the number
    /// and time of the version.
    renames: HashMap<RelPath, Vec<(RelPath, u64, Millis)>>,
}

impl Waiting {
    fn of(records: &[Record]) -> Self {
        let mut rows: BTreeMap<RelPath, Vec<OwnVersion>> = BTreeMap::new();
        let mut renames: HashMap<RelPath, Vec<(RelPath, u64, Millis)>> = HashMap::new();
        for record in records {
            let Fact::Version(fact) = &record.fact else {
                continue;
            };
            let own = rows.entry(fact.path.clone()).or_default();
            let waits = agent(&fact.author).is_some();
            if let Some(of) = fact.amends {
                if let Some(row) = own.iter_mut().find(|row| row.n == of) {
                    row.waits = waits;
                }
                continue;
            }
            own.push(OwnVersion {
                n: record.n,
                time: record.time,
                hash: fact.held.hash,
                waits,
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

    /// Returns what the commits settle, in their order.
    fn settle(&mut self, tree: &WorkTree, root: &Path, commits: &[Move]) -> Vec<Settled> {
        let mut settled = Vec::new();
        let waiting = self.rows.values().flatten().filter(|row| row.waits);
        let first = waiting.map(|row| row.time / 1_000).min().unwrap_or(0);
        let commits = &commits[commits.partition_point(|commit| commit.second < first)..];
        let git = Objects::open(tree, root, Limits::default());
        let (Some(mut git), Some(changed)) = (git, changed(tree, root, commits)) else {
            return settled;
        };
        // What an earlier commit had of a name that later ones did not change.
        let mut had: HashMap<RelPath, Step> = HashMap::new();
        let mut head: Option<&str> = None;
        for (commit, changed) in commits.iter().zip(changed) {
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
                settled.extend(self.settled(&path, commit.second, is_changed, content));
            }
            if !self.any() {
                break;
            }
        }
        settled
    }

    fn any(&self) -> bool {
        self.rows.values().flatten().any(|row| row.waits)
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
        if !own.iter().any(|row| row.waits && row.time < end) {
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
        let versions: Vec<u64> = own
            .iter_mut()
            .filter_map(|row| {
                let settles = row.n <= last && std::mem::take(&mut row.waits);
                settles.then_some(row.n)
            })
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
    fn at(&self, path: &RelPath, end: Millis) -> (RelPath, Vec<OwnVersion>) {
        let mut name = path.clone();
        let mut all = self.rows.get(path).cloned().unwrap_or_default();
        for _ in 0..8 {
            let before = all.partition_point(|row| row.time < end);
            let gone = before > 0 && all[before - 1].hash.is_none();
            let last_waiting = all[..before].iter().rfind(|row| row.waits);
            let after = last_waiting.map_or(0, |row| row.n);
            let renames = self.renames.get(&name).into_iter().flatten();
            let mut renames = renames.filter(|(_, n, time)| *n > after && *time < end);
            let Some((to, n, _)) = renames.next().filter(|_| gone) else {
                break;
            };
            all.retain(|row| row.n < *n && row.hash.is_some());
            let later = self.rows.get(to).into_iter().flatten();
            // Versions under the other name are asked for under that name.
            all.extend(later.filter(|row| row.n >= *n).map(|row| OwnVersion {
                waits: false,
                ..row.clone()
            }));
            name = to.clone();
        }
        (name, all)
    }
}

/// Returns the names that each commit changed, as it moved `HEAD`; `None` if
/// git fails.
fn changed(tree: &WorkTree, root: &Path, commits: &[Move]) -> Option<Vec<HashSet<Vec<u8>>>> {
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
        let is_id = |commit: &Move| commit.id.as_bytes() == id;
        if let Some(of) = commits[next.min(commits.len())..].iter().position(is_id) {
            at = Some(next + of);
        } else if let Some(at) = at.filter(|_| !field.is_empty()) {
            found[at].insert(field.to_vec());
        }
    }
    Some(found)
}
