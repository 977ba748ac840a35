//! Reads objects of a repository, as they are, without filters or other
//! programs (SEC-7).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;

use touchmark_engine::history::Step;
use touchmark_engine::text::lines::MAX_BYTES;
use touchmark_proto::{Millis, RelPath};

use super::git;

/// Git's answer for an object.
pub(crate) enum Object {
    /// The object's id, and its bytes.
    Whole(String, Vec<u8>),
    Missing,
    TooLarge,
}

/// A commit that has a parent.
pub(crate) struct Commit {
    pub(crate) id: String,
    /// The committer's time, in seconds.
    pub(crate) time: Millis,
    /// The id of the first parent.
    pub(crate) parent: String,
    /// The ids of the other parents.
    pub(crate) merged: Vec<String>,
    /// The author, with the time when the commit was made first. It stays the
    /// same when the commit is made again, as by an amend or a rebase.
    pub(crate) author: String,
}

/// A git process that prints objects on request (`cat-file --batch`).
#[derive(Debug)]
pub(crate) struct Objects {
    git: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Objects {
    /// Starts git for the repository of a directory. `None` if that fails.
    pub(crate) fn open(root: &Path) -> Option<Self> {
        let mut git = git(root)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .inspect_err(|error| tracing::debug!("git: {error}"))
            .ok()?;
        Some(Self {
            input: git.stdin.take()?,
            output: BufReader::new(git.stdout.take()?),
            git,
        })
    }

    /// Returns a commit; `None` if it has no parent, or cannot be read.
    pub(crate) fn commit(&mut self, name: &str) -> Option<Commit> {
        let Some(Object::Whole(id, commit)) = self.object(name.as_bytes()) else {
            return None;
        };
        let text = String::from_utf8_lossy(&commit);
        let head = text.split("\n\n").next().unwrap_or_default();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let time = field("committer ")?.rsplit(' ').nth(1)?.parse().ok()?;
        let parents = head.lines().filter_map(|line| line.strip_prefix("parent "));
        Some(Commit {
            id,
            time,
            parent: field("parent ")?.to_owned(),
            merged: parents.skip(1).map(str::to_owned).collect(),
            author: field("author ")?.to_owned(),
        })
    }

    /// Returns the content of a file in a commit. The path is relative to the
    /// directory with which git was started.
    pub(crate) fn file(&mut self, commit: &str, path: &RelPath) -> Step {
        let name = [commit.as_bytes(), b":./", path.as_bytes()].concat();
        match self.object(&name) {
            Some(Object::Whole(_, bytes)) => Step::Held(Arc::from(bytes)),
            Some(Object::Missing) => Step::Absent,
            Some(Object::TooLarge) | None => Step::NotKept,
        }
    }

    /// Returns an object, or `None` if git does not answer.
    pub(crate) fn object(&mut self, name: &[u8]) -> Option<Object> {
        if name.contains(&b'\n') {
            return None;
        }
        self.input.write_all(&[name, b"\n"].concat()).ok()?;
        let mut head = Vec::new();
        self.output.read_until(b'\n', &mut head).ok()?;
        let head = String::from_utf8_lossy(&head);
        let words: Vec<&str> = head.split_whitespace().collect();
        let known = match words.as_slice() {
            [id, "blob" | "commit", size] => size.parse::<u64>().ok().map(|size| (id, size)),
            _ => None,
        };
        let Some((id, size)) = known else {
            return head.ends_with(" missing\n").then_some(Object::Missing);
        };
        let mut body = (&mut self.output).take(size + 1);
        if size > MAX_BYTES as u64 {
            std::io::copy(&mut body, &mut std::io::sink()).ok()?;
            return Some(Object::TooLarge);
        }
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes).ok()?;
        bytes.pop();
        Some(Object::Whole((*id).to_owned(), bytes))
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let _it_has_ended = self.git.kill();
        let _ = self.git.wait();
    }
}
