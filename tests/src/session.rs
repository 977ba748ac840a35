//! An agent's session over the JSON lines wire.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::wire::{Answer, Client, PATIENCE, RpcError};
use crate::{paths, sha256, text};

/// The ways in which an agent announces a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `edit/mark` with the content declared.
    Declared,
    /// `edit/mark` without a content: the one-call mark.
    Flag,
    /// `edit/begin` with the content declared, `edit/commit` with its hash.
    Edit,
    /// `edit/begin` without a content, `edit/commit` with the hash.
    CommitHash,
    /// `edit/begin` and `edit/commit`, both without a content.
    Blind,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 5] = [
        Self::Declared,
        Self::Flag,
        Self::Edit,
        Self::CommitHash,
        Self::Blind,
    ];

    /// Returns the author and the evidence of a version that was written this
    /// way.
    pub fn story(self, session: &str) -> String {
        let evidence = match self {
            Self::Declared | Self::Edit => "declared",
            // A hash in the commit confirms the mark (ATTR-4).
            Self::CommitHash | Self::Flag | Self::Blind => "marked",
        };
        format!("agent:{session} {evidence}")
    }
}

/// A session with its own connection.
pub struct Session {
    /// The connection.
    pub client: Client,
    /// The session's name.
    pub name: String,
    workspace: PathBuf,
}

impl Session {
    /// Returns the session `name` on a connection.
    pub fn new(client: Client, name: &str, workspace: &Path) -> Self {
        Self {
            client,
            name: name.into(),
            workspace: workspace.into(),
        }
    }

    /// Sends a request with the session's name added.
    pub fn call(&mut self, method: &str, mut params: Value) -> Answer {
        params["session"] = json!(self.name);
        self.client.call(method, params)
    }

    /// Sends a request with the session's name added. It must succeed.
    pub fn ok(&mut self, method: &str, mut params: Value) -> Value {
        params["session"] = json!(self.name);
        self.client.ok(method, params)
    }

    /// Sends a request with the session's name added. It must fail with this
    /// error.
    pub fn refused(&mut self, method: &str, mut params: Value, name: &str) -> RpcError {
        params["session"] = json!(self.name);
        self.client.refused(method, params, name)
    }

    /// Reads the bytes from disk as an agent's tool does, and records the read
    /// with their hash.
    pub fn read(&mut self, path: &str) -> Value {
        let bytes = fs::read(self.workspace.join(path))
            .unwrap_or_else(|error| panic!("reading {path}: {error}"));
        self.ok("file/read", json!({"path": path, "hash": sha256(bytes)}))
    }

    /// Records reads of many files, with several requests in progress at a
    /// time.
    pub fn read_all(&mut self, files: &[String]) {
        let requests: Vec<(&str, Value)> = files
            .iter()
            .map(|path| {
                let bytes = fs::read(self.workspace.join(path)).expect("a file to read");
                let params = json!({"session": self.name, "path": path, "hash": sha256(bytes)});
                ("file/read", params)
            })
            .collect();
        for (answer, path) in self.client.many(&requests).iter().zip(files) {
            assert!(answer.is_ok(), "file/read {path}: {answer:?}");
        }
    }

    /// Sends `edit/mark`, with the content declared or, for `None`, not.
    pub fn mark(&mut self, path: &str, expect: Option<&str>) -> Value {
        let expect = expect.map(sha256);
        self.ok("edit/mark", json!({"path": path, "expect": expect}))
    }

    /// Sends `edit/begin` for one file. Returns the edit's id.
    pub fn begin(&mut self, path: &str, expect: Option<&str>) -> Result<String, RpcError> {
        let expect = expect.map(sha256);
        self.call(
            "edit/begin",
            json!({"files": [{"path": path, "expect": expect}]}),
        )
        .map(|begun| text(&begun, "edit"))
    }

    /// Sends `edit/commit` for one file. Returns the file's result.
    pub fn commit(&mut self, edit: &str, path: &str, written: Option<&str>) -> Value {
        let hash = written.map(sha256);
        let done = self.client.ok(
            "edit/commit",
            json!({"edit": edit, "files": [{"path": path, "hash": hash}]}),
        );
        assert_eq!(done["files"].as_array().map(Vec::len), Some(1), "{done}");
        done["files"][0].clone()
    }

    /// Announces a write. Returns the edit's id if it has to be committed.
    pub fn announce(&mut self, way: Way, path: &str, content: &str) -> Option<String> {
        let begun = match way {
            Way::Declared => {
                self.mark(path, Some(content));
                return None;
            }
            Way::Flag => {
                self.mark(path, None);
                return None;
            }
            Way::Edit => self.begin(path, Some(content)),
            Way::CommitHash | Way::Blind => self.begin(path, None),
        };
        Some(begun.unwrap_or_else(|error| panic!("edit/begin {path}: {error} {}", error.data)))
    }

    /// Ends what [`announce`](Self::announce) began. Returns the outcome, if
    /// there is one.
    pub fn conclude(
        &mut self,
        way: Way,
        edit: Option<String>,
        path: &str,
        content: &str,
    ) -> Option<String> {
        let edit = edit?;
        let written = (way != Way::Blind).then_some(content);
        Some(text(&self.commit(&edit, path, written), "outcome"))
    }

    /// Performs a whole edit: announces it, writes with `write`, and concludes.
    /// The outcome must be `applied`.
    pub fn edit(&mut self, way: Way, path: &str, content: &str, write: impl FnOnce(&Path)) {
        let edit = self.announce(way, path, content);
        write(&self.workspace.join(path));
        if let Some(outcome) = self.conclude(way, edit, path, content) {
            assert_eq!(outcome, "applied", "{path}");
        }
    }

    /// Sends `edit/abort`.
    pub fn abort(&mut self, edit: &str) {
        self.client.ok("edit/abort", json!({"edit": edit}));
    }

    /// Sends `modified/take` until there are no more changes and no file is
    /// `pending`. Returns all changes.
    ///
    /// On a machine that stalls for a second an answer does not wait for all
    /// reads. It names their files in `pending`, and what it lists of them is
    /// older. Such a row counts if the file is still not fresh at the end.
    pub fn take(&mut self) -> Vec<Value> {
        let mut changes = Vec::new();
        let mut older = Vec::new();
        loop {
            let taken = self.ok("modified/take", json!({}));
            let late = pending(&taken);
            for row in taken["changes"].as_array().expect("changes") {
                let is_older = late.contains(&row["path"]);
                let rows = if is_older { &mut older } else { &mut changes };
                rows.push(row.clone());
            }
            if !late.is_empty() {
                let waits = Instant::now();
                while !pending(&self.client.ok("sync", json!({}))).is_empty() {
                    assert!(waits.elapsed() < PATIENCE, "still pending: {late:?}");
                }
            } else if taken["more"] != true {
                break;
            }
        }
        for row in older {
            let path = text(&row, "path");
            if !paths(&changes).contains(&path) && self.state(&path) != "fresh" {
                changes.push(row);
            }
        }
        changes
    }

    /// Returns the paths that `modified/take` lists.
    pub fn taken(&mut self) -> Vec<String> {
        paths(&self.take())
    }

    /// Waits for a fence: everything written before has been processed.
    pub fn sync(&mut self) {
        self.client.ok("sync", json!({}));
    }

    /// Sends `file/status` for one path, and returns its state object.
    pub fn status(&mut self, path: &str) -> Value {
        let files = self.ok("file/status", json!({"paths": [path]}));
        let files = files["files"].as_array().expect("files").clone();
        assert_eq!(files.len(), 1, "one file asked for: {files:?}");
        files[0].clone()
    }

    /// Returns the state of the session's copy.
    pub fn state(&mut self, path: &str) -> String {
        text(&self.status(path), "state")
    }

    /// Returns `file/history`, newest first.
    pub fn history(&mut self, path: &str) -> Vec<Value> {
        self.history_as(path, true)
    }

    fn history_as(&mut self, path: &str, sync: bool) -> Vec<Value> {
        let params = json!({"path": path, "sync": sync});
        let history = self.client.ok("file/history", params);
        history["versions"].as_array().expect("versions").clone()
    }

    /// Returns each version of `path` as `author evidence`, oldest first,
    /// without the baseline and without versions that a later row corrects.
    pub fn story(&mut self, path: &str) -> Vec<String> {
        self.story_of(path, |_| true)
    }

    /// Returns the versions of `path` like [`story`](Self::story), without the
    /// middle of slow saves, in which the file was empty or absent. Without
    /// `sync`, the history as far as it is recorded, for tests that wait for a
    /// save: a query for the current state in the middle of a save records that
    /// middle (ATTR-12).
    pub fn saves(&mut self, path: &str, sync: bool) -> Vec<String> {
        told(&self.history_as(path, sync), |row| row["size"] != 0)
    }

    /// Waits until the versions of `path` are as wanted, since an editor's
    /// report comes after its save.
    pub fn wait_saves(&mut self, path: &str, wanted: &[&str]) {
        let end = Instant::now() + PATIENCE;
        loop {
            // Without a fence: a question in the middle of a save would be
            // answered with its middle.
            let found = self.saves(path, false);
            if found == wanted {
                assert_eq!(self.saves(path, true), wanted, "{path}");
                return;
            }
            let beginning = found.len() <= wanted.len();
            assert!(
                beginning && Instant::now() < end,
                "{path}: {found:?}, not {wanted:?}: {:#?}",
                self.history(path)
            );
        }
    }

    /// Waits until the daemon reports the file as unsaved in an editor, or as
    /// not unsaved. Returns the unsaved lines; null if they are not known.
    pub fn wait_unsaved(&mut self, path: &str, wanted: bool) -> Value {
        let end = Instant::now() + PATIENCE;
        let asked = json!({"paths": [path], "sync": false});
        loop {
            let mut file = self.ok("file/status", asked.clone())["files"][0].take();
            if (file["unsaved"] == true) == wanted {
                return file["unsavedLines"].take();
            }
            assert!(Instant::now() < end, "{path}: unsaved is not {wanted}");
        }
    }

    /// Returns the versions of `path` like [`story`](Self::story), without
    /// those in which the file was empty.
    pub fn story_of_texts(&mut self, path: &str) -> Vec<String> {
        self.story_of(path, |row| {
            row["size"] != 0 || row["hash"].is_null() || row["unobserved"] == true
        })
    }

    fn story_of(&mut self, path: &str, counts: impl Fn(&Value) -> bool) -> Vec<String> {
        told(&self.history(path), counts)
    }
}

/// Returns the versions of a history as `author evidence`, the oldest first.
fn told(rows: &[Value], counts: impl Fn(&Value) -> bool) -> Vec<String> {
    let amended: Vec<String> = rows
        .iter()
        .filter_map(|row| row["amends"].as_str().map(str::to_owned))
        .collect();
    // The last row is the baseline.
    let versions = rows.split_last().map_or(&[][..], |(_, rest)| rest);
    let mut story: Vec<String> = versions
        .iter()
        .filter(|row| !amended.contains(&text(row, "clock")) && counts(row))
        .map(|row| {
            format!(
                "{} {}",
                crate::author(&row["author"]),
                text(row, "evidence")
            )
        })
        .collect();
    story.reverse();
    story
}

/// Returns the files that an answer does not cover.
fn pending(answer: &Value) -> Vec<Value> {
    answer["pending"].as_array().cloned().unwrap_or_default()
}
