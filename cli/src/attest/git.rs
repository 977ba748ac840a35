//! Reads commits, and reads and writes their notes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use touchmark_client::find::Workspace;

use crate::daemon::{Git, Limits, Object, Objects, WorkTree};
use crate::output::{Failure, Outcome};
use crate::text::{MAX_NAME, escaped};

/// The limits of one file's content, and of a commit.
const LIMITS: Limits = Limits {
    bytes: 64 << 20,
    time: Duration::from_secs(20),
    all: Duration::from_secs(600),
};

/// How long git may take for one answer, and how many bytes that may have.
const TIME: Duration = Duration::from_secs(120);
const PRINTED: u64 = 256 << 20;

/// The repository that contains a workspace.
#[derive(Debug)]
pub(crate) struct Repository {
    tree: WorkTree,
}

/// A commit.
#[derive(Debug)]
pub(crate) struct Commit {
    /// The full hash.
    pub(crate) id: String,
    parents: Vec<String>,
    /// The commit time.
    pub(crate) time: jiff::Timestamp,
    /// The first line of its message.
    pub(crate) subject: String,
}

/// The lines that a commit added to a file.
#[derive(Debug)]
pub(crate) struct AddedLines {
    /// The line numbers, from 1, in ascending order.
    pub(crate) lines: Vec<u32>,
    /// The object id of the file's content.
    pub(crate) blob: String,
}

impl Repository {
    /// Finds the repository that contains a workspace.
    pub(crate) fn of(workspace: &Workspace) -> Outcome<Self> {
        match WorkTree::of(&workspace.root, &workspace.places) {
            Some(tree) => Ok(Self { tree }),
            None => Err(Failure::No(
                "the workspace is in no work tree of git that you own: see SEC-6 in docs/semantics.md"
                    .into(),
            )),
        }
    }

    /// Returns the top directory of the work tree, a canonical path.
    pub(crate) fn top(&self) -> &Path {
        &self.tree.top
    }

    fn git(&self) -> Outcome<Git> {
        let git = self.tree.git(&self.tree.top).map_err(no_git)?;
        Ok(git.within(TIME, PRINTED))
    }

    fn objects(&self) -> Outcome<Objects> {
        let objects = Objects::open(&self.tree, &self.tree.top, LIMITS);
        objects.ok_or_else(|| Failure::No("git cannot be run".into()))
    }

    /// Returns the commits that `named` selects: one for `REV`, several for
    /// `A..B`, the oldest first.
    pub(crate) fn commits(&self, named: &str) -> Outcome<Vec<Commit>> {
        let git = self.git()?;
        let git = match named.contains("..") {
            true => git.args(["rev-list", "--reverse", "--end-of-options", named, "--"]),
            false => git
                .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
                .arg(format!("{named}^{{commit}}")),
        };
        let found = git.output().map_err(no_git)?;
        let name = escaped(named, MAX_NAME);
        if !found.status.success() {
            return Err(Failure::No(format!("git has no commit {name}")));
        }
        let ids = String::from_utf8_lossy(&found.stdout).into_owned();
        let mut objects = self.objects()?;
        let ids = ids.lines().map(|id| commit(&mut objects, id.to_owned()));
        ids.collect()
    }

    /// Returns the lines that a commit has and none of its parents, by file.
    pub(crate) fn brought(&self, commit: &Commit) -> Outcome<BTreeMap<Vec<u8>, AddedLines>> {
        if commit.parents.is_empty() {
            return self.compared(&["--root", &commit.id]);
        }
        let mut all: Option<BTreeMap<Vec<u8>, AddedLines>> = None;
        let mut objects = self.objects()?;
        for parent in &commit.parents {
            if let Some(Object::Missing) | None = objects.object(parent.as_bytes()) {
                return Err(Failure::No(format!(
                    "the parent of {} is missing, so the changes of this commit are not known: fetch \
                     more of the history (`git fetch --deepen=1`)",
                    short(&commit.id)
                )));
            }
            let found = self.compared(&[parent, &commit.id])?;
            all = Some(match all {
                None => found,
                Some(all) => in_both(all, &found),
            });
        }
        Ok(all.unwrap_or_default())
    }

    fn compared(&self, trees: &[&str]) -> Outcome<BTreeMap<Vec<u8>, AddedLines>> {
        let git = self.git()?;
        let git = git
            .args(["diff-tree", "-r", "-M", "-z", "-p", "--raw", "-U0"])
            .args(["--no-commit-id", "--full-index", "--no-abbrev"])
            .args(["--no-ext-diff", "--no-textconv", "--no-color"])
            .args(trees.iter().copied());
        Ok(read(&asked(git)?))
    }

    /// Returns the contents of blobs, without those that are too large.
    pub(crate) fn contents<'a>(
        &self,
        blobs: impl Iterator<Item = &'a str>,
    ) -> Outcome<HashMap<String, Vec<u8>>> {
        let ids: BTreeSet<&str> = blobs.collect();
        let mut objects = self.objects()?;
        let mut contents = HashMap::new();
        for id in ids {
            match objects.object(id.as_bytes()) {
                Some(Object::Whole(id, bytes)) => drop(contents.insert(id, bytes)),
                Some(_) => {}
                // Git answers nothing more.
                None => objects = self.objects()?,
            }
        }
        Ok(contents)
    }

    /// Returns the note of a commit; `None` if it has none.
    pub(crate) fn note(&self, reference: &str, commit: &str) -> Outcome<Option<Vec<u8>>> {
        let git = self.git()?.args(["notes", reference, "show", commit]);
        let found = git.output().map_err(no_git)?;
        Ok(found.status.success().then_some(found.stdout))
    }

    /// Writes the note of a commit. Without `force` an existing note stays, and
    /// git's error is returned.
    pub(crate) fn write_note(
        &self,
        reference: &str,
        commit: &str,
        note: &str,
        force: bool,
    ) -> Outcome {
        let git = self.tree.git_as_user(&self.tree.top).map_err(no_git)?;
        let git = git
            .args(["notes", reference, "add", "-F", "-"])
            .args(force.then_some("-f"))
            .args([commit]);
        let done = git.input(note).output().map_err(no_git)?;
        match done.status.success() {
            true => Ok(()),
            false => Err(Failure::No(format!("git wrote no note: {}", said(&done)))),
        }
    }
}

fn commit(objects: &mut Objects, id: String) -> Outcome<Commit> {
    let Some(Object::Whole(_, object)) = objects.object(id.as_bytes()) else {
        return Err(Failure::No(format!("git cannot read {}", short(&id))));
    };
    let text = String::from_utf8_lossy(&object);
    let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let field = |name: &'static str| {
        let lines = head.lines();
        lines.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(' '))
    };
    let seconds = field("committer").next().and_then(|line| {
        let mut words = line.rsplit(' ').skip(1);
        words.next()?.parse().ok()
    });
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    Ok(Commit {
        parents: field("parent").map(str::to_owned).collect(),
        time: time.unwrap_or_default(),
        subject: message.lines().next().unwrap_or_default().to_owned(),
        id,
    })
}

/// Returns a commit's abbreviated hash.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn in_both(
    all: BTreeMap<Vec<u8>, AddedLines>,
    found: &BTreeMap<Vec<u8>, AddedLines>,
) -> BTreeMap<Vec<u8>, AddedLines> {
    let both = all.into_iter().filter_map(|(path, mut file)| {
        let other: BTreeSet<u32> = found.get(&path)?.lines.iter().copied().collect();
        file.lines.retain(|line| other.contains(line));
        (!file.lines.is_empty()).then_some((path, file))
    });
    both.collect()
}

/// Parses the output of `git diff-tree --raw -p -z`: the new files, and after
/// them the patches, which are matched by the ids of the two contents.
fn read(printed: &[u8]) -> BTreeMap<Vec<u8>, AddedLines> {
    let mut rest = printed;
    let mut files: Vec<(Vec<u8>, String, String)> = Vec::new();
    while let Some(row) = rest.strip_prefix(b":") {
        let mut fields = row.splitn(3, |byte| *byte == 0);
        let head = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
        let mut name = fields.next().unwrap_or_default();
        rest = fields.next().unwrap_or_default();
        let words: Vec<&str> = head.split(' ').collect();
        let [_, mode, old, new, status] = words.as_slice() else {
            break;
        };
        if status.starts_with(['R', 'C']) {
            let mut fields = rest.splitn(2, |byte| *byte == 0);
            name = fields.next().unwrap_or_default();
            rest = fields.next().unwrap_or_default();
        }
        // Symlinks and submodules are skipped.
        if mode.starts_with("100") {
            files.push((name.to_vec(), (*old).to_owned(), (*new).to_owned()));
        }
    }
    let mut patches: HashMap<(String, String), Vec<u32>> = HashMap::new();
    let mut of = None;
    for line in rest.split(|byte| *byte == b'\n') {
        if let Some(index) = line.strip_prefix(b"index ") {
            let index = String::from_utf8_lossy(index);
            let names = index.split(' ').next().unwrap_or_default();
            of = names
                .split_once("..")
                .map(|(old, new)| (old.to_owned(), new.to_owned()));
        } else if let (Some(head), Some(of)) = (line.strip_prefix(b"@@ -"), &of) {
            let lines = patches.entry(of.clone()).or_default();
            // Two files with the same change have the same lines.
            let new = added(head).filter(|line| lines.last().is_none_or(|last| line > last));
            let new: Vec<u32> = new.collect();
            lines.extend(new);
        }
    }
    let brought = files.into_iter().filter_map(|(path, old, new)| {
        let none = "0".repeat(old.len());
        let lines = patches.get(&(old, new.clone()));
        // Git reports a file that replaced a symlink as a new file.
        let lines = lines.or_else(|| patches.get(&(none, new.clone())))?;
        (!lines.is_empty()).then(|| {
            let lines = lines.clone();
            (path, AddedLines { lines, blob: new })
        })
    });
    brought.collect()
}

/// Returns the numbers of the new lines of a hunk with the head `-a,b +c,d @@`.
fn added(head: &[u8]) -> impl Iterator<Item = u32> + use<> {
    let head = String::from_utf8_lossy(head).into_owned();
    let new = head.split(' ').nth(1).and_then(|new| {
        let new = new.strip_prefix('+')?;
        let (start, count) = new.split_once(',').unwrap_or((new, "1"));
        let (start, count): (u32, u32) = (start.parse().ok()?, count.parse().ok()?);
        Some(start..start.saturating_add(count))
    });
    new.unwrap_or(0..0)
}

/// Returns git's output, or an error if git fails.
fn asked(git: Git) -> Outcome<Vec<u8>> {
    let output = git.output().map_err(no_git)?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(Failure::No(format!("git: {}", said(&output)))),
    }
}

fn no_git(error: io::Error) -> Failure {
    Failure::No(format!("git cannot be run: {error}"))
}

/// Returns the first line of git's error message.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().next().unwrap_or("it does not say why");
    escaped(line.trim_start_matches("fatal: "), MAX_NAME)
}
