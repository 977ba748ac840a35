//! Reads objects of a repository, as they are, without filters or other
//! programs (SEC-7).

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use touchmark_engine::history::Step;
use touchmark_proto::{Millis, RelPath};

use super::call::{Git, Patient, Running};
use super::{LATEST, WorkTree};

/// The longest line that git prints before an object: a name that was asked
/// for, and a word.
const LINE: u64 = 64 << 10;

/// The largest object that is compared by lines, in bytes.
const MOST: u64 = 8 << 20;

/// The most bytes of names that git is asked about at once. Even a small pipe
/// takes them, so that writing them does not wait for git.
const ASKED: usize = 4 << 10;

/// The limits of objects that are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest object that is returned, in bytes.
    pub bytes: u64,
    /// How long git may take.
    pub time: Duration,
    /// How long it may take for all objects together.
    pub all: Duration,
}

impl Default for Limits {
    /// The limits of a content that is compared by lines.
    fn default() -> Self {
        Self {
            bytes: MOST,
            time: Duration::from_secs(5),
            all: Duration::from_secs(30),
        }
    }
}

/// Git's answer for an object.
#[derive(Debug)]
pub enum Object {
    /// The object's id, and its bytes.
    Whole(String, Vec<u8>),
    /// There is none with this name.
    Missing,
    /// It is larger than the limit.
    TooLarge,
    /// It is a directory or a tag.
    Other,
}

/// A commit.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) id: String,
    /// The committer's time, in seconds.
    pub(crate) time: Millis,
    /// The id of the first parent; `None` for a first commit.
    pub(crate) parent: Option<String>,
    /// The ids of the other parents.
    pub(crate) merged: Vec<String>,
    /// The author, with the time when the commit was made first. It stays the
    /// same when the commit is made again, as by an amend or a rebase.
    pub(crate) author: String,
}

/// A git process that prints objects on request (`cat-file --batch`).
#[derive(Debug)]
pub struct Objects {
    _git: Running,
    input: ChildStdin,
    output: BufReader<Patient<ChildStdout>>,
    limits: Limits,
    /// How much of the time for all objects is left.
    left: Duration,
    /// Git did not answer a request, so it answers no later one.
    pub(crate) is_broken: bool,
}

impl Objects {
    /// Starts git. Paths are relative to `directory`. `None` if that fails.
    pub fn open(tree: &WorkTree, directory: &Path, limits: Limits) -> Option<Self> {
        let git = tree.git(directory);
        let git = git.map(|git| git.args(["cat-file", "--batch"]));
        git.and_then(|git| Self::of(git, limits))
            .inspect_err(|error| tracing::debug!("git: {error}"))
            .ok()
    }

    fn of(git: Git, limits: Limits) -> io::Result<Self> {
        let pipes = git.start(Stdio::null())?;
        Ok(Self {
            _git: pipes.child,
            input: pipes.input,
            output: BufReader::new(Patient::new(pipes.output, Instant::now())),
            left: limits.all,
            limits,
            is_broken: false,
        })
    }

    /// Returns a commit; `None` if it cannot be read.
    pub(crate) fn commit(&mut self, name: &str) -> Option<Commit> {
        parsed(self.object(name.as_bytes())?)
    }

    /// Returns those of some commits that can be read.
    pub(crate) fn commits(&mut self, names: &[Vec<u8>]) -> Vec<Commit> {
        let mut found = Vec::new();
        self.each(names, |_, object| found.extend(object.and_then(parsed)));
        found
    }

    /// Returns the content of a file in a commit. The path is relative to the
    /// directory with which git was started.
    pub(crate) fn file(&mut self, commit: &str, path: &RelPath) -> Step {
        step(self.object(&name_of(commit, path)))
    }

    /// Returns an object, or `None` if git does not answer. Git answers no
    /// later request then.
    pub fn object(&mut self, name: &[u8]) -> Option<Object> {
        let mut found = None;
        self.each(&[name], |_, object| found = object);
        found
    }

    /// Calls `found` with the index of each name and its object, in this order,
    /// as [`object`](Self::object) returns it. Git is asked about many names at
    /// once.
    pub(crate) fn each(
        &mut self,
        names: &[impl AsRef<[u8]>],
        mut found: impl FnMut(usize, Option<Object>),
    ) {
        let mut at = 0;
        while at < names.len() {
            let first = at;
            let mut asked = Vec::new();
            while let Some(name) = names.get(at).map(AsRef::as_ref)
                && (at == first || asked.len() + name.len() < ASKED)
            {
                if !name.contains(&b'\n') {
                    asked.extend([name, b"\n"].concat());
                }
                at += 1;
            }
            self.is_broken |= self.input.write_all(&asked).is_err();
            for (name, at) in names[first..at].iter().zip(first..) {
                let is_asked = !self.is_broken && !name.as_ref().contains(&b'\n');
                let object = is_asked.then(|| self.answer()).flatten();
                self.is_broken |= is_asked && object.is_none();
                found(at, object);
            }
        }
    }

    /// Returns git's next answer.
    fn answer(&mut self) -> Option<Object> {
        let begun = Instant::now();
        self.output.get_mut().until = begun + self.limits.time.min(self.left);
        let object = self.read();
        self.left = self.left.saturating_sub(begun.elapsed());
        object
    }

    fn read(&mut self) -> Option<Object> {
        let mut head = Vec::new();
        let mut line = (&mut self.output).take(LINE);
        line.read_until(b'\n', &mut head).ok()?;
        let head = String::from_utf8_lossy(&head);
        let words: Vec<&str> = head.split_whitespace().collect();
        // Git prints a name unchanged; it may have spaces.
        if head.ends_with(" missing\n") {
            return Some(Object::Missing);
        }
        let [id, kind, size] = words.as_slice() else {
            return None;
        };
        let size: u64 = size.parse().ok()?;
        let mut body = (&mut self.output).take(size.checked_add(1)?);
        let is_content = matches!(*kind, "blob" | "commit");
        if !is_content || size > self.limits.bytes {
            // The next answer follows it.
            let skipped = io::copy(&mut body, &mut io::sink()).ok()?;
            return (skipped == size + 1).then_some(match is_content {
                true => Object::TooLarge,
                false => Object::Other,
            });
        }
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes).ok()?;
        // Git may have exited in the middle.
        (bytes.len() as u64 == size + 1).then(|| {
            bytes.pop();
            Object::Whole((*id).to_owned(), bytes)
        })
    }
}

/// Returns how git is asked for a file in a commit.
pub(crate) fn name_of(commit: &str, path: &RelPath) -> Vec<u8> {
    [commit.as_bytes(), b":./", path.as_bytes()].concat()
}

/// Returns the content of a file in a commit, given git's answer.
pub(crate) fn step(object: Option<Object>) -> Step {
    match object {
        Some(Object::Whole(_, bytes)) => Step::Held(Arc::from(bytes)),
        Some(Object::Missing) => Step::Absent,
        Some(Object::TooLarge | Object::Other) | None => Step::NotKept,
    }
}

/// Returns an object as a commit; `None` if it is none.
pub(crate) fn parsed(object: Object) -> Option<Commit> {
    let Object::Whole(id, commit) = object else {
        return None;
    };
    let text = String::from_utf8_lossy(&commit);
    let head = text.split("\n\n").next().unwrap_or_default();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let time: u64 = field("committer ")?.rsplit(' ').nth(1)?.parse().ok()?;
    let parents = head.lines().filter_map(|line| line.strip_prefix("parent "));
    Some(Commit {
        id,
        time: time.min(LATEST),
        parent: field("parent ").map(str::to_owned),
        merged: parents.skip(1).map(str::to_owned).collect(),
        author: field("author ")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::call::shell;
    use super::*;

    /// Returns the answers to some requests, if git prints this.
    fn answers(printed: &str, requests: usize) -> Vec<String> {
        let limits = Limits {
            bytes: 8,
            time: Duration::from_millis(100),
            all: Duration::from_secs(100),
        };
        // What is printed is the same however much was read.
        let script = format!("printf '{printed}'; exec sleep 100");
        let mut objects = Objects::of(shell(&script), limits).unwrap();
        let answers = (0..requests).map(|_| match objects.object(b"HEAD") {
            Some(Object::Whole(id, bytes)) => {
                format!("{id} {}", String::from_utf8_lossy(&bytes))
            }
            Some(other) => format!("{other:?}"),
            None => "none".into(),
        });
        answers.collect()
    }

    #[test]
    fn what_follows_an_object_is_the_next_one() {
        let content = "b blob 3\\nabc\\n";
        let cases = [
            (content, "b abc"),
            ("HEAD missing\\n", "Missing"),
            ("a b missing\\n", "Missing"),
            ("c blob 9\\n123456789\\n", "TooLarge"),
            // A directory, with an entry that looks like an answer.
            ("t tree 12\\nb blob 2\\nab\\n\\n", "Other"),
            ("t tag 2\\nab\\n", "Other"),
        ];
        for (printed, expected) in cases {
            let both = format!("{printed}{content}");
            assert_eq!(answers(&both, 2), [expected, "b abc"], "{printed}");
        }
    }

    #[test]
    fn answers_that_are_none_end_in_time() {
        let long = "x".repeat(100_000);
        for printed in [
            "",
            "b blob 3\\nab",
            "b blob 18446744073709551615\\nab",
            "b blob -1\\nab\\n",
            "b blob 99999999999999999999\\n",
            "t tree 400\\nab",
            "HEAD ambiguous\\n",
            &long,
        ] {
            assert_eq!(answers(printed, 1), ["none"], "{printed}");
        }
    }
    /// Each object comes in time, and a repository may have any number of them.
    #[test]
    fn all_objects_together_end_in_time() {
        let limits = Limits {
            bytes: 8,
            time: Duration::from_secs(100),
            all: Duration::from_millis(2_000),
        };
        let script = "while read -r name; do sleep 0.5; echo $name missing; done";
        let mut objects = Objects::of(shell(script), limits).unwrap();
        let mut answered = 0;
        objects.each(&["x"; 1_000], |_, object| {
            answered += usize::from(object.is_some());
        });
        assert!((1..=4).contains(&answered), "{answered}");
        assert!(objects.is_broken);
    }
}
