//! What other worktrees have changed and not merged: a file on their disks
//! against the last commit that both worktrees have (TREE-2).

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use touchmark_engine::history::Step;
use touchmark_engine::text::lines::MAX_BYTES;
use touchmark_proto::{Hash, RelPath, native};

use super::Worktrees;
use super::aside::Aside;
use super::overlap::{Clash, Mine, clashes, plain};
use super::trees::{Repository, Tree};
use crate::content::{Opened, Root};
use crate::git::{Git, Object, Objects};

/// How long one look may take.
const LOOK: Duration = Duration::from_secs(3);

/// How long a file of another worktree may take to be read.
const READ: Duration = Duration::from_millis(500);

/// How long one git process may take.
const GIT: Duration = Duration::from_secs(2);

/// The most bytes that one git process may print.
const PRINTED: u64 = 8 << 20;

/// The maximum number of merge bases that are remembered.
const BASES: usize = 4_096;

/// The content of a file in another worktree that has changed it.
pub(super) struct Unmerged {
    /// The file's path there, which differs if it was renamed.
    pub(super) path: RelPath,
    /// The content; `None` if the file was removed.
    pub(super) bytes: Option<Vec<u8>>,
    /// The content that both worktrees come from; empty if there was no file.
    pub(super) base: Arc<[u8]>,
}

/// Lines of a file that another worktree has changed and not merged, and that
/// the own worktree changes too.
pub(super) struct Met {
    pub(super) tree: Tree,
    pub(super) unmerged: Unmerged,
    pub(super) clashes: Vec<Clash>,
}

impl Met {
    /// Returns the hash of the content in which the lines of the base are
    /// counted.
    pub(super) fn base(&self) -> Hash {
        Hash::of(&plain(&self.unmerged.base))
    }
}

/// A file as it is on a disk.
#[derive(Clone, PartialEq)]
pub(super) enum Disk {
    Held(Vec<u8>),
    Absent,
    /// It is a link or no file, is too large, or cannot be read.
    Other,
}

/// One look at the worktrees of a repository. What it finds out of git is kept
/// until its end.
pub(super) struct Look<'a> {
    worktrees: &'a Worktrees,
    repository: Repository,
    aside: Aside,
    until: Instant,
    objects: Option<Objects>,
    /// The ids of last commits, by their names.
    heads: HashMap<String, Option<String>>,
    /// Contents of files in commits.
    contents: HashMap<(String, RelPath), Step>,
    /// Old and new names of renamed files, by the worktree's name and the
    /// commit.
    renames: HashMap<(String, String), Vec<(RelPath, RelPath)>>,
    /// Whether a worktree exists, by its name; `None` if it does not answer.
    there: HashMap<String, Option<bool>>,
}

impl<'a> Look<'a> {
    /// Begins a look. `None` if the workspace is in no trusted repository.
    pub(super) fn begin(worktrees: &'a Worktrees, limit: Option<Duration>) -> Option<Self> {
        Some(Self {
            repository: Repository::of(&worktrees.root, &worktrees.places)?,
            worktrees,
            aside: Aside::default(),
            until: Instant::now() + limit.unwrap_or(LOOK),
            objects: None,
            heads: HashMap::new(),
            contents: HashMap::new(),
            renames: HashMap::new(),
            there: HashMap::new(),
        })
    }

    pub(super) fn own(&self) -> Tree {
        self.repository.own(&self.worktrees.root)
    }

    pub(super) fn others(&self) -> Vec<Tree> {
        self.repository.others()
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Returns whether a worktree exists; `None` if its file system does not
    /// answer.
    pub(super) fn is_there(&mut self, tree: &Tree) -> Option<bool> {
        if let Some(known) = self.there.get(&tree.name) {
            return *known;
        }
        let looked = tree.clone();
        let there = self.at(tree, READ, move || looked.is_there());
        self.there.insert(tree.name.clone(), there);
        there
    }

    /// Returns where the own content of a file meets what a worktree has
    /// changed in it. `None` if it does not, or if that cannot be found out.
    pub(super) fn met(
        &mut self,
        tree: &Tree,
        path: &RelPath,
        own: &[u8],
        mine: &Mine,
    ) -> Option<Met> {
        let unmerged = self.unmerged(tree, path, own)?;
        let theirs = unmerged.bytes.as_deref().unwrap_or_default();
        let clashes = clashes(&unmerged.base, own, theirs, mine)?;
        (!clashes.is_empty()).then(|| Met {
            tree: tree.clone(),
            unmerged,
            clashes,
        })
    }

    /// Returns what a worktree has changed in a file and not merged. `None` if
    /// it has nothing that `own` does not have.
    fn unmerged(&mut self, tree: &Tree, path: &RelPath, own: &[u8]) -> Option<Unmerged> {
        if self.is_there(tree) != Some(true) {
            return None;
        }
        // First what costs least: most worktrees have the same file.
        let mut disk = self.disk(tree, path)?;
        let is_like = |disk: &Disk, other: &[u8]| match disk {
            Disk::Held(bytes) => plain(bytes) == plain(other),
            Disk::Absent | Disk::Other => false,
        };
        if disk == Disk::Other || is_like(&disk, own) {
            return None;
        }
        if let Step::Held(committed) = self.content("HEAD", path)
            && is_like(&disk, &committed)
        {
            return None;
        }
        let base = self.base(tree)?;
        let mut name = path.clone();
        let mut was = self.content(&base, path);
        if was == Step::Absent && disk == Disk::Absent {
            // The file may have another name there.
            name = self.name_in(&self.own(), &base, |_, new| new == path)?.0;
            was = self.content(&base, &name);
            disk = self.disk(tree, &name)?;
        }
        if was == Step::Absent && disk == Disk::Absent {
            return None;
        }
        let mut removed = None;
        if disk == Disk::Absent {
            match self.listed(tree, &name)? {
                // Not checked out (a sparse checkout).
                Some(b'S') => {
                    let head = self.id(&tree.head())?;
                    disk = match self.content(&head, &name) {
                        Step::Held(bytes) => Disk::Held(bytes.to_vec()),
                        _ => return None,
                    };
                }
                _ => removed = self.name_in(tree, &base, |old, _| *old == name),
            }
        }
        if let Some((_, new)) = removed {
            disk = self.disk(tree, &new)?;
            name = new;
        }
        let base = match was {
            Step::Held(bytes) => bytes,
            // Both have created it. Files that git ignores do not count.
            Step::Absent if disk != Disk::Absent => {
                self.listed(tree, &name)??;
                Arc::from([])
            }
            Step::Absent | Step::NotKept => return None,
        };
        if is_like(&disk, &base) {
            return None;
        }
        let bytes = match disk {
            Disk::Held(bytes) => Some(bytes),
            Disk::Absent => None,
            Disk::Other => return None,
        };
        Some(Unmerged {
            path: name,
            bytes,
            base,
        })
    }

    /// Returns the files that a worktree has changed since a commit and that
    /// exist there or have existed: those of its commits, of its disk, and new
    /// ones that git does not ignore. Some may be unchanged after all. `None` if
    /// git fails or takes too long.
    pub(super) fn candidates(&mut self, tree: &Tree, base: &str) -> Option<Vec<RelPath>> {
        let mut found = Vec::new();
        let raw = ["--raw", "-z", "--no-renames", "--no-ext-diff", "--relative"];
        let raw = [&raw[..], &["--ignore-submodules=all"]].concat();
        // The index has what was committed and what was staged.
        for command in [&["diff-index", "--cached", base][..], &["diff-files"]] {
            let (name, of) = (&command[..1], &command[1..]);
            let command = [name, &raw, of].concat();
            found.extend(changed(&self.git(tree, |git| git.args(command))?));
        }
        let new = ["ls-files", "-o", "-z", "--exclude-standard"];
        let new = self.git(tree, |git| git.args(new))?;
        let new = new.split(|byte| *byte == 0);
        found.extend(new.filter_map(|name| RelPath::new(name).ok()));
        found.sort();
        found.dedup();
        Some(found)
    }

    /// Returns whether the content of a file in a worktree differs from that in
    /// a commit. `None` if that cannot be found out.
    pub(super) fn differs(&mut self, tree: &Tree, path: &RelPath, base: &str) -> Option<bool> {
        let disk = self.disk(tree, path)?;
        Some(match (self.content(base, path), disk) {
            (Step::Held(was), Disk::Held(is)) => plain(&was) != plain(&is),
            (Step::Absent, Disk::Absent) => false,
            _ => true,
        })
    }

    /// Returns the last commit that the worktree and the own one have in
    /// common; `None` if there is none.
    pub(super) fn base(&mut self, tree: &Tree) -> Option<String> {
        let pair = (self.id("HEAD")?, self.id(&tree.head())?);
        if pair.0 == pair.1 {
            return Some(pair.0);
        }
        let known = self.worktrees.bases.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(base) = known.get(&pair) {
            return base.clone();
        }
        drop(known);
        let begun = Instant::now();
        let git = self.repository.git(&self.own())?;
        let git = git.args(["merge-base", &pair.0, &pair.1]);
        let base = match git.within(GIT, PRINTED).printed() {
            Some(base) => Some(String::from_utf8(base).ok()?.trim().to_owned()),
            // It has only taken too long.
            None if begun.elapsed() >= GIT => return None,
            None => None,
        };
        let known = self.worktrees.bases.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if known.len() >= BASES {
            known.clear();
        }
        known.insert(pair, base.clone());
        base
    }

    /// Returns the id of a commit.
    pub(super) fn id(&mut self, name: &str) -> Option<String> {
        if let Some(known) = self.heads.get(name) {
            return known.clone();
        }
        let id = match self.objects()?.object(name.as_bytes()) {
            Some(Object::Whole(id, _)) => Some(id),
            _ => None,
        };
        self.heads.insert(name.to_owned(), id.clone());
        id
    }

    fn content(&mut self, commit: &str, path: &RelPath) -> Step {
        let key = (commit.to_owned(), path.clone());
        if let Some(known) = self.contents.get(&key) {
            return known.clone();
        }
        let content = match self.objects() {
            Some(objects) => objects.file(commit, path),
            None => Step::NotKept,
        };
        // A look examines one file after the other.
        self.contents.retain(|(_, known), _| known == path);
        self.contents.insert(key, content.clone());
        content
    }

    fn objects(&mut self) -> Option<&mut Objects> {
        if self.objects.is_none() {
            self.objects = self.repository.objects(&self.worktrees.root);
        }
        self.objects.as_mut()
    }

    /// Returns how git lists a file of a worktree: `H` if it is tracked, `S` if
    /// it is tracked and not checked out, `?` if it is neither tracked nor
    /// ignored. The inner `None` means that it is not listed.
    fn listed(&mut self, tree: &Tree, path: &RelPath) -> Option<Option<u8>> {
        let listed = self.git(tree, |git| {
            git.args(["ls-files", "-t", "-z", "-c", "-o", "--exclude-standard"])
                .arg("--")
                .arg(&*native::name(path.as_bytes()))
        });
        Some(listed?.first().copied())
    }

    /// Returns the old and the new name of a file that a worktree has renamed
    /// since a commit.
    fn name_in(
        &mut self,
        tree: &Tree,
        base: &str,
        is_it: impl Fn(&RelPath, &RelPath) -> bool,
    ) -> Option<(RelPath, RelPath)> {
        let key = (tree.name.clone(), base.to_owned());
        if !self.renames.contains_key(&key) {
            // The index has renamed files under both names; on the disk they
            // would have to be searched for.
            let printed = self.git(tree, |git| {
                git.args(["diff-index", "--cached", "-M", "-l400", "--diff-filter=R"])
                    .args(["-z", "--name-status", "--no-ext-diff", "--relative", base])
            });
            let printed = printed.unwrap_or_default();
            let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
            let names = fields.chunks_exact(3);
            let names = names
                .filter_map(|row| Some((RelPath::new(row[1]).ok()?, RelPath::new(row[2]).ok()?)));
            self.renames.insert(key.clone(), names.collect());
        }
        let names = self.renames.get(&key)?;
        names.iter().find(|(old, new)| is_it(old, new)).cloned()
    }

    /// Returns what git prints in a worktree; `None` if it fails or takes too
    /// long.
    fn git(&self, tree: &Tree, command: impl FnOnce(Git) -> Git) -> Option<Vec<u8>> {
        if self.is_over() || self.worktrees.hangs(&tree.root) {
            return None;
        }
        let git = command(self.repository.git(tree)?);
        git.within(GIT, PRINTED).printed()
    }

    /// Returns a file of a worktree; `None` if its file system does not answer.
    pub(super) fn disk(&mut self, tree: &Tree, path: &RelPath) -> Option<Disk> {
        let (root, path) = (tree.root.clone(), path.clone());
        self.at(tree, READ, move || disk(&root, &path))
    }

    /// Does work in a worktree's directory. Until it returns, no other work is
    /// done there.
    fn at<T: Send + 'static>(
        &mut self,
        tree: &Tree,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let hung = Arc::clone(&self.worktrees.hung);
        let root = tree.root.clone();
        let mut known = hung.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.insert(root.clone()) {
            return None;
        }
        drop(known);
        self.aside.within(limit, move || {
            let result = work();
            let mut known = hung.lock().unwrap_or_else(PoisonError::into_inner);
            known.remove(&root);
            result
        })
    }
}

/// Returns a file below a directory, without leaving it.
pub(super) fn disk(root: &Path, path: &RelPath) -> Disk {
    let Opened::File { file, before, real } = (match Root::open(root).file(path) {
        Opened::Absent { real: None } => return Disk::Absent,
        opened => opened,
    }) else {
        return Disk::Other;
    };
    if real.is_some() || before.len() > MAX_BYTES as u64 {
        return Disk::Other;
    }
    let mut bytes = Vec::new();
    match file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => Disk::Held(bytes),
        Err(_) => Disk::Other,
    }
}

/// Returns the paths in git's raw output, without submodules.
fn changed(printed: &[u8]) -> Vec<RelPath> {
    let mut found = Vec::new();
    let mut fields = printed.split(|byte| *byte == 0);
    while let Some(field) = fields.next() {
        let (true, Some(name)) = (field.starts_with(b":"), fields.next()) else {
            continue;
        };
        let mut modes = field.splitn(3, |byte| *byte == b' ');
        let is_module = modes.by_ref().take(2).any(|mode| mode.ends_with(b"160000"));
        found.extend(RelPath::new(name).ok().filter(|_| !is_module));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_output_is_read_without_submodules() {
        let raw =
            b":100644 100644 aa bb M\0a b\0:160000 160000 aa bb M\0sub\0:000000 100644 0 b A\0n\0";
        let names: Vec<String> = changed(raw).iter().map(RelPath::to_string_lossy).collect();
        assert_eq!(names, ["a b", "n"]);
        assert!(changed(b"").is_empty());
    }
}
