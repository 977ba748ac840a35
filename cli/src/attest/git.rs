//! Reads commits with git. A repository may be untrusted, so no program, filter
//! or hook from its configuration is run, and nothing is fetched (SEC-7).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use touchmark_client::proto::native;

use crate::commands::daemon::git;
use crate::output::{Failure, Outcome};
use crate::text::{MAX_NAME, escaped};

/// The largest file content that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// The repository that contains a workspace.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The top directory of its work tree, as a canonical path.
    pub(crate) top: PathBuf,
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
pub(crate) struct Brought {
    /// The line numbers, from 1, in ascending order.
    pub(crate) lines: Vec<u32>,
    /// The object id of the file's content.
    pub(crate) blob: String,
}

impl Repository {
    /// Finds the repository that contains a directory.
    pub(crate) fn of(directory: &Path) -> Outcome<Self> {
        let found = output(git(directory).args(["rev-parse", "--show-toplevel"]))?;
        if !found.status.success() {
            return Err(Failure::No(format!(
                "the workspace is in no work tree of git: {}",
                said(&found)
            )));
        }
        let top = found.stdout.strip_suffix(b"\n").unwrap_or(&found.stdout);
        let top = PathBuf::from(&*native::name(top));
        Ok(Self {
            top: top.canonicalize()?,
        })
    }

    /// Returns the commits that `named` selects: one for `REV`, several for
    /// `A..B`, the oldest first.
    pub(crate) fn commits(&self, named: &str) -> Outcome<Vec<Commit>> {
        let mut git = git(&self.top);
        match named.contains("..") {
            true => git.args(["rev-list", "--reverse", "--end-of-options", named, "--"]),
            false => git
                .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
                .arg(format!("{named}^{{commit}}")),
        };
        let found = output(&mut git)?;
        let name = escaped(named, MAX_NAME);
        if !found.status.success() {
            return Err(Failure::No(format!("git has no commit {name}")));
        }
        let ids = String::from_utf8_lossy(&found.stdout).into_owned();
        let ids = ids.lines().map(|id| self.commit(id.to_owned()));
        ids.collect()
    }

    fn commit(&self, id: String) -> Outcome<Commit> {
        let object = asked(git(&self.top).args(["cat-file", "commit", &id]))?;
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

    /// Returns the lines that a commit has and none of its parents, by file.
    pub(crate) fn brought(&self, commit: &Commit) -> Outcome<BTreeMap<Vec<u8>, Brought>> {
        if commit.parents.is_empty() {
            return self.compared(&["--root", &commit.id]);
        }
        let mut all: Option<BTreeMap<Vec<u8>, Brought>> = None;
        for parent in &commit.parents {
            if !output(git(&self.top).args(["cat-file", "-e", parent]))?
                .status
                .success()
            {
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

    fn compared(&self, trees: &[&str]) -> Outcome<BTreeMap<Vec<u8>, Brought>> {
        let mut git = git(&self.top);
        git.args(["diff-tree", "-r", "-M", "-z", "-p", "--raw", "-U0"])
            .args(["--no-commit-id", "--full-index", "--no-abbrev"])
            .args(["--no-ext-diff", "--no-textconv", "--no-color"])
            .args(trees);
        Ok(read(&asked(&mut git)?))
    }

    /// Returns the contents of blobs, without those that are too large.
    pub(crate) fn contents<'a>(
        &self,
        blobs: impl Iterator<Item = &'a str>,
    ) -> Outcome<HashMap<String, Vec<u8>>> {
        let ids: BTreeSet<&str> = blobs.collect();
        let list: String = ids.iter().flat_map(|id| [*id, "\n"]).collect();
        let mut git = git(&self.top)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (git.stdin.take(), git.stdout.take());
        // Git answers while requests are still written, so neither pipe may
        // fill up.
        let asking = std::thread::spawn(move || match input {
            Some(mut input) => input.write_all(list.as_bytes()),
            None => Ok(()),
        });
        let mut contents = HashMap::new();
        if let Some(output) = output {
            let mut output = BufReader::new(output);
            for _ in &ids {
                let mut head = String::new();
                output.read_line(&mut head)?;
                let mut words = head.split_whitespace();
                let (id, size) = (words.next(), words.nth(1));
                let size = size.and_then(|size| size.parse::<u64>().ok());
                let (Some(id), Some(size)) = (id, size) else {
                    continue;
                };
                let mut body = (&mut output).take(size + 1);
                if size > LARGEST {
                    io::copy(&mut body, &mut io::sink())?;
                    continue;
                }
                let mut bytes = Vec::new();
                body.read_to_end(&mut bytes)?;
                bytes.pop();
                contents.insert(id.to_owned(), bytes);
            }
        }
        let _it_read_what_it_wanted = asking.join();
        git.wait()?;
        Ok(contents)
    }

    /// Returns the note of a commit; `None` if it has none.
    pub(crate) fn note(&self, reference: &str, commit: &str) -> Outcome<Option<Vec<u8>>> {
        let mut git = git(&self.top);
        let found = output(git.args(["notes", reference, "show", commit]))?;
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
        let mut git = git(&self.top);
        git.args(["notes", reference, "add", "-F", "-"])
            .args(force.then_some("-f"))
            .arg(commit)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut git = git.spawn()?;
        if let Some(mut input) = git.stdin.take() {
            input.write_all(note.as_bytes())?;
        }
        let done = git.wait_with_output()?;
        match done.status.success() {
            true => Ok(()),
            false => Err(Failure::No(format!("git wrote no note: {}", said(&done)))),
        }
    }
}

/// Returns a commit's abbreviated hash.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn in_both(
    all: BTreeMap<Vec<u8>, Brought>,
    found: &BTreeMap<Vec<u8>, Brought>,
) -> BTreeMap<Vec<u8>, Brought> {
    let both = all.into_iter().filter_map(|(path, mut file)| {
        let other: BTreeSet<u32> = found.get(&path)?.lines.iter().copied().collect();
        file.lines.retain(|line| other.contains(line));
        (!file.lines.is_empty()).then_some((path, file))
    });
    both.collect()
}

/// Parses the output of `git diff-tree --raw -p -z`: the new files, and after
/// them the patches, which are matched by the ids of the two contents.
fn read(printed: &[u8]) -> BTreeMap<Vec<u8>, Brought> {
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
            (path, Brought { lines, blob: new })
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

fn output(git: &mut Command) -> Outcome<Output> {
    git.output()
        .map_err(|error| Failure::No(format!("git cannot be run: {error}")))
}

/// Returns git's output, or an error if git fails.
fn asked(git: &mut Command) -> Outcome<Vec<u8>> {
    let output = output(git)?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(Failure::No(format!("git: {}", said(&output)))),
    }
}

/// Returns the first line of git's error message.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().next().unwrap_or("it does not say why");
    escaped(line.trim_start_matches("fatal: "), MAX_NAME)
}
