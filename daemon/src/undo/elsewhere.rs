//! Where else lines stand that an undo takes away, or that the file does not
//! have: in a stash, or in the last commit of a branch (UNDO-12).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use touchmark_proto::undo::{UndoElsewhere, Undone};
use touchmark_proto::{Places, RelPath, native};

use super::Undoer;
use super::plan::Plan;
use crate::git::files::{branch, line};
use crate::git::reflog::moves_in;
use crate::git::{Limits, Object, Objects, WorkTree};
use crate::links::absolute;
use crate::past::top_of;

/// The most stashes that are searched, the newest.
const MOST_STASHES: usize = 16;

/// The most branches that are searched, those with the newest commits.
const MOST_BRANCHES: usize = 64;

/// The most names of files that are looked for in one repository.
const MOST_NAMES: usize = 1_000;

/// The number of files that git is asked for at once.
const AT_ONCE: usize = 64;

/// The most bytes of git's log of stashes, and of a list of its.
const MOST_LISTED: u64 = 16 << 20;

/// How long one search may take.
const TIME: Duration = Duration::from_secs(3);

/// The most bytes of lines that one place is shown with, and all of an answer.
const SHOWN: usize = 1 << 10;
const ALL_SHOWN: usize = 64 << 10;

/// Where lines of an undo stand, by the present names of the files.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    found: BTreeMap<RelPath, Vec<UndoElsewhere>>,
    /// What was not searched.
    limits: BTreeSet<String>,
    shown: usize,
}

/// A file with the lines that are looked for.
struct Sought {
    path: RelPath,
    earlier: Vec<RelPath>,
    lines: Vec<Arc<[u8]>>,
}

/// A name of a file: the file's index, the name in the workspace, and the name
/// in the repository.
type Named = (usize, RelPath, Vec<u8>);

/// A commit that is searched.
struct Tip {
    id: String,
    stash: Option<u32>,
    branch: Option<String>,
    /// It is compared with what is checked out; else with nothing.
    has_parent: bool,
}

/// For each commit, the blobs of the files that it has otherwise than what is
/// checked out, by name.
type Blobs = HashMap<String, HashMap<Vec<u8>, String>>;

impl Elsewhere {
    /// Looks for the lines of these files, on a separate thread. Each file's
    /// result has to be planned.
    pub(super) fn search_for(undoer: &Undoer, plans: &[Plan]) -> JoinHandle<Self> {
        let sought: Vec<Sought> = plans.iter().filter_map(Sought::of).collect();
        let (root, places) = (
            undoer.cx.workspace.root.clone(),
            undoer.cx.workspace.places.clone(),
        );
        tokio::task::spawn_blocking(move || {
            let mut elsewhere = Self::default();
            elsewhere.search(&root, &places, &sought);
            elsewhere
        })
    }

    /// Adds what was found to an answer.
    pub(super) fn told(mut self, mut undone: Undone) -> Undone {
        for file in &mut undone.files {
            file.elsewhere = self.found.remove(&file.path);
        }
        let limits: Vec<String> = self.limits.into_iter().collect();
        undone.unsearched = (!limits.is_empty()).then(|| limits.join("; "));
        undone
    }

    fn search(&mut self, root: &Path, places: &Places, sought: &[Sought]) {
        let until = Instant::now() + TIME;
        let mut by_top: BTreeMap<PathBuf, Vec<Named>> = BTreeMap::new();
        for (at, file) in sought.iter().enumerate() {
            for name in std::iter::once(&file.path).chain(&file.earlier) {
                if let Some((top, own)) = top_of(&absolute(root, name)) {
                    by_top.entry(top).or_default().push((at, name.clone(), own));
                }
            }
        }
        for (top, mut named) in by_top {
            let Some(tree) = WorkTree::at(&top, places) else {
                continue;
            };
            if named.len() > MOST_NAMES {
                named.truncate(MOST_NAMES);
                self.limit(&format!("only {MOST_NAMES} names of files were looked for"));
            }
            if self.search_in(&tree, &named, sought, until).is_none() {
                self.limit("git did not answer in time");
            }
        }
    }

    /// Searches one repository. `None` if git does not answer in time.
    fn search_in(
        &mut self,
        tree: &WorkTree,
        named: &[Named],
        sought: &[Sought],
        until: Instant,
    ) -> Option<()> {
        let mut git = Objects::open(tree, &tree.top, Limits::default())?;
        let Object::Whole(head, _) = git.object(b"HEAD")? else {
            return Some(());
        };
        let tips = self.tips(tree, &mut git, &head, until)?;
        let blobs = differing(tree, &head, &tips, named, until)?;
        let here = Tip {
            branch: line(&tree.own.join("HEAD")).and_then(|line| branch(&line)),
            id: head,
            stash: None,
            has_parent: true,
        };
        for part in named.chunks(AT_ONCE) {
            let names: Vec<Vec<u8>> = part.iter().map(|(.., own)| in_head(own)).collect();
            let mut committed = Vec::new();
            let mut are_all_answered = true;
            git.each(&names, |nth, object| {
                let file = &sought[part[nth].0];
                are_all_answered &= object.is_some();
                committed.push(match object {
                    Some(Object::Whole(_, bytes)) => file.among(&file.texts(), &bytes),
                    _ => Vec::new(),
                });
            });
            for ((at, name, own), found) in part.iter().zip(committed) {
                let file = &sought[*at];
                let mut missing = file.texts();
                missing.retain(|text| !found.iter().any(|line| line.trim_ascii() == *text));
                self.add(file, name, &here, &found);
                let mut known: HashMap<&String, Vec<&[u8]>> = HashMap::new();
                for tip in tips.iter().filter(|_| !missing.is_empty()) {
                    let Some(blob) = blobs.get(&tip.id).and_then(|own_blobs| own_blobs.get(own))
                    else {
                        continue;
                    };
                    if !known.contains_key(blob) {
                        let found = match git.object(blob.as_bytes())? {
                            Object::Whole(_, bytes) => file.among(&missing, &bytes),
                            _ => Vec::new(),
                        };
                        known.insert(blob, found);
                    }
                    self.add(file, name, tip, &known[blob]);
                }
            }
            (are_all_answered && Instant::now() < until).then_some(())?;
        }
        Some(())
    }

    /// Returns the commits of the stashes, the newest first, and then those of
    /// the branches. None is the one that is checked out.
    fn tips(
        &mut self,
        tree: &WorkTree,
        git: &mut Objects,
        head: &str,
        until: Instant,
    ) -> Option<Vec<Tip>> {
        let mut tips = Vec::new();
        let stashes = moves_in(&tree.common.join("logs/refs/stash"), MOST_LISTED);
        if stashes.len() > MOST_STASHES {
            self.limit(&format!(
                "only the newest {MOST_STASHES} stashes were searched"
            ));
        }
        for (number, stash) in (0..).zip(stashes.into_iter().rev().take(MOST_STASHES)) {
            let tip = |id, has_parent| Tip {
                id,
                stash: Some(number),
                branch: None,
                has_parent,
            };
            // Untracked files are in a commit of their own.
            let untracked = git.commit(&stash.id).and_then(|mut commit| {
                let is_any = commit.merged.len() > 1;
                is_any.then(|| commit.merged.swap_remove(1))
            });
            tips.push(tip(stash.id, true));
            tips.extend(untracked.map(|id| tip(id, false)));
        }
        let listed = tree.git(&tree.top).ok()?.args([
            "for-each-ref",
            "--sort=-committerdate",
            "--format=%(objectname) %(refname)",
            "refs/heads",
        ]);
        let listed = listed.within(left(until), MOST_LISTED).printed()?;
        let listed = String::from_utf8_lossy(&listed);
        let mut seen: BTreeSet<&str> = [head].into();
        let others = listed.lines().filter_map(|line| line.split_once(' '));
        let mut others = others.filter(|(id, _)| seen.insert(id));
        for (id, name) in others.by_ref().take(MOST_BRANCHES) {
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            tips.push(Tip {
                id: id.to_owned(),
                stash: None,
                branch: Some(name.to_owned()),
                has_parent: true,
            });
        }
        if others.next().is_some() {
            self.limit(&format!(
                "only the newest {MOST_BRANCHES} branches were searched"
            ));
        }
        Some(tips)
    }

    fn add(&mut self, file: &Sought, name: &RelPath, tip: &Tip, lines: &[&[u8]]) {
        if lines.is_empty() {
            return;
        }
        let text = lines.concat();
        let room = SHOWN.min(ALL_SHOWN.saturating_sub(self.shown));
        let text = String::from_utf8_lossy(&text[..text.len().min(room)]).into_owned();
        self.shown += text.len();
        let rows = self.found.entry(file.path.clone()).or_default();
        rows.push(UndoElsewhere {
            commit: tip.id.clone(),
            stash: tip.stash,
            branch: tip.branch.clone(),
            path: (*name != file.path).then(|| name.clone()),
            lines: u32::try_from(lines.len()).unwrap_or(u32::MAX),
            text,
        });
    }

    fn limit(&mut self, what: &str) {
        self.limits.insert(what.to_owned());
    }
}

impl Sought {
    /// Returns the file with the lines that it will not have; `None` if there
    /// are none.
    fn of(plan: &Plan) -> Option<Self> {
        if plan.own.is_empty() {
            return None;
        }
        let after = plan.after.as_deref().unwrap_or_default();
        let stays: BTreeSet<&[u8]> = lines(after).map(<[u8]>::trim_ascii).collect();
        let gone = plan
            .own
            .iter()
            .filter(|line| !stays.contains(line.trim_ascii()));
        let gone: Vec<Arc<[u8]>> = gone.cloned().collect();
        (!gone.is_empty()).then(|| Self {
            path: plan.path.clone(),
            earlier: plan.earlier.clone(),
            lines: gone,
        })
    }

    fn texts(&self) -> BTreeSet<&[u8]> {
        self.lines.iter().map(|line| line.trim_ascii()).collect()
    }

    /// Returns which of these texts a content has, as lines of it, each once.
    fn among<'s>(&'s self, texts: &BTreeSet<&[u8]>, content: &[u8]) -> Vec<&'s [u8]> {
        let there: BTreeSet<&[u8]> = lines(content)
            .map(<[u8]>::trim_ascii)
            .filter(|line| texts.contains(line))
            .collect();
        let found = self.lines.iter().map(|line| &**line);
        found
            .filter(|line| there.contains(line.trim_ascii()))
            .collect()
    }
}

/// Returns how git is asked for a file as it is in the commit that is checked
/// out.
fn in_head(own: &[u8]) -> Vec<u8> {
    [b"HEAD:", own].concat()
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split(|byte| *byte == b'\n')
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// Returns the blobs of these names that commits have and the one that is
/// checked out has not at that name. One run of git finds all. `None` if it
/// fails.
fn differing(
    tree: &WorkTree,
    head: &str,
    tips: &[Tip],
    named: &[Named],
    until: Instant,
) -> Option<Blobs> {
    if tips.is_empty() {
        return Some(Blobs::new());
    }
    let asked: String = tips
        .iter()
        .map(|tip| match tip.has_parent {
            true => format!("{} {head}\n", tip.id),
            false => format!("{}\n", tip.id),
        })
        .collect();
    let git = tree.git(&tree.top).ok()?;
    let git = git.args(["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames"]);
    let mut git = git.args(["--root", "--no-abbrev", "--no-ext-diff", "--"]);
    for (.., own) in named {
        git = git.arg(&*native::name(own));
    }
    let printed = git
        .within(left(until), MOST_LISTED)
        .input(asked)
        .printed()?;
    let mut blobs = Blobs::new();
    let mut of = None;
    let mut fields = printed.split(|byte| *byte == 0);
    while let Some(field) = fields.next() {
        let field = String::from_utf8_lossy(field.trim_ascii());
        match field.strip_prefix(':') {
            // Two modes, two blobs, and what was done.
            Some(row) => {
                if let (Some(blob), Some(of), Some(path)) =
                    (row.split(' ').nth(3), &of, fields.next())
                {
                    let own: &mut HashMap<_, _> = blobs.entry(String::clone(of)).or_default();
                    own.insert(path.to_owned(), blob.to_owned());
                }
            }
            None => of = Some(field.into_owned()),
        }
    }
    Some(blobs)
}
