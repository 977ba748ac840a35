//! What users, agents, commands and undos do, each on a thread of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::ledger::Written;
use super::{FILES, Stage, of};
use crate::children::{self, unshared};
use crate::dice::Dice;
use crate::user::{self, pause};
use crate::wire::{Answer, Link};
use crate::{sha256, text};

/// The most lines of a file. Users then remove some of their own.
const LONGEST: usize = 400;

/// What an actor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Edits in an editor, in one of five ways to save.
    User,
    /// Writes and edits through the daemon.
    Agent,
    /// Runs commands in a shell, each in a command window.
    Shell,
    /// Undoes, redoes and reviews what the agents did.
    Reviewer,
}

impl Role {
    /// All actors of a round, with their names.
    pub(super) const ALL: [(Self, &'static str); 7] = [
        (Self::User, "user-1"),
        (Self::User, "user-2"),
        (Self::Agent, "maker-1"),
        (Self::Agent, "maker-2"),
        (Self::Agent, "maker-3"),
        (Self::Shell, "shell-1"),
        (Self::Reviewer, "reviewer"),
    ];
}

/// A thread of a round.
pub(super) struct Actor<'s> {
    stage: &'s Stage,
    role: Role,
    name: &'static str,
    dice: Dice,
    link: Link,
    /// The number of the next line.
    next: u64,
    undos: u64,
}

impl<'s> Actor<'s> {
    pub(super) fn new(stage: &'s Stage, role: Role, name: &'static str, dice: Dice) -> Self {
        Self {
            stage,
            role,
            name,
            dice,
            link: Link::new(&stage.socket),
            next: 0,
            undos: 0,
        }
    }

    /// Acts until the round ends. Returns how many undos changed a file.
    pub(super) fn play(mut self) -> u64 {
        while !self.stage.ends.load(Ordering::Relaxed) {
            {
                let gate = self.stage.gate.read();
                let _act = gate.unwrap_or_else(PoisonError::into_inner);
                let file = *self.dice.pick(&FILES);
                match self.role {
                    Role::User => match self.dice.below(50) {
                        0 => self.commit(),
                        1 => self.moves(file),
                        _ => self.save(file),
                    },
                    Role::Agent => self.write(file),
                    Role::Shell => self.command(file),
                    Role::Reviewer => self.review(file),
                }
            }
            pause(self.dice.below(12));
        }
        self.undos
    }

    fn ask(&mut self, method: &str, params: Value) -> Option<Answer> {
        let params = match self.role {
            Role::Agent | Role::Shell => of(self.name, params),
            Role::User | Role::Reviewer => params,
        };
        let answer = self.link.ask(method, &params);
        let note = format!("{method} {params:.300}: {answer:.300?}");
        self.stage.note(note);
        answer
    }

    fn path(&self, name: &str) -> PathBuf {
        self.stage.workspace.join(name)
    }

    /// Returns a line that no one else writes.
    fn line(&mut self) -> String {
        self.next += 1;
        format!("{} {}", self.name, self.next)
    }

    /// A user changes a file in an editor, and saves it.
    fn save(&mut self, file: &'static str) {
        let mut entry = self.stage.ledger.of(file);
        let path = entry.name();
        let file = self.path(&path);
        let Ok(before) = fs::read_to_string(&file) else {
            // Only a save of the user's own has removed it, on a full disk.
            return;
        };
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        let mut gone = Vec::new();
        let own = |line: &String| entry.lines.contains(line);
        let crowded = lines.len() > LONGEST;
        if crowded || self.dice.percent(15) {
            let all: Vec<usize> = (0..lines.len()).filter(|at| own(&lines[*at])).collect();
            let count = if crowded { all.len() / 2 } else { 1 };
            for at in all.into_iter().rev().take(count) {
                gone.push(lines.remove(at));
            }
        }
        let mut new = self.line();
        let at = self.dice.index(lines.len() + 1);
        if at < lines.len() && lines[at].starts_with("maker") && self.dice.percent(30) {
            // The user goes on from a line of an agent's.
            new = format!("{new} was {}", lines[at]);
            lines[at].clone_from(&new);
        } else {
            lines.insert(at, new.clone());
        }
        // Their fate depends on whether this save succeeds.
        for line in &gone {
            entry.lines.remove(line);
        }
        let after = lines.join("\n") + "\n";
        if !self.saved(&file, &after) {
            return;
        }
        // Not the other lines of the buffer: those that an undo has brought back
        // are taken away again by its redo.
        entry.lines.insert(new);
        drop(entry);
        if self.dice.percent(40) {
            let report = json!({"path": path, "hash": sha256(&after)});
            let _unheard = self.ask("editor/didSave", report);
        }
    }

    /// A user moves a file.
    fn moves(&mut self, file: &'static str) {
        let mut entry = self.stage.ledger.of(file);
        let (from, to) = (entry.name(), format!("m{}/{file}", self.dice.below(3)));
        let place = self.path(&to);
        if from == to || place.exists() {
            return;
        }
        let above = place.parent().expect("a directory");
        let done = fs::create_dir_all(above).and_then(|()| fs::rename(self.path(&from), &place));
        if done.is_ok() {
            let name = self.name;
            self.stage.note(format!("{name} moves {from} to {to}"));
            entry.names.push(to);
        }
    }

    /// A user commits everything.
    fn commit(&mut self) {
        for words in [&["add", "-A"][..], &["commit", "-qm", "more"]] {
            let mut git = user::git_command(&self.stage.workspace, words);
            // On a full disk, or beside another git, it fails.
            let _status = children::start(git.stderr(Stdio::null())).and_then(|mut git| git.wait());
        }
        self.stage.note(format!("{} commits", self.name));
    }

    /// An agent writes, edits, or writes itself between two marks.
    fn write(&mut self, file: &'static str) {
        let path = self.stage.ledger.of(file).name();
        let path = path.as_str();
        let Ok(before) = fs::read_to_string(self.path(path)) else {
            return;
        };
        let read = json!({"path": path, "hash": sha256(&before)});
        if !matches!(self.ask("file/read", read), Some(Ok(_))) {
            return;
        }
        if self.dice.percent(10) {
            let checkpoint = json!({"text": "go on"});
            let _unanswered = self.ask("checkpoint/create", checkpoint);
        }
        let own: Vec<&str> = before
            .lines()
            .filter(|line| line.starts_with(self.name))
            .collect();
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        match self.dice.below(4) {
            0 if !own.is_empty() => {
                let old = (*self.dice.pick(&own)).to_owned() + "\n";
                let new = match self.dice.percent(30) {
                    true => String::new(),
                    false => self.line() + "\n",
                };
                let edit = json!({"path": path, "oldString": old, "newString": new});
                let _answer = self.ask("file/edit", edit);
            }
            1 => self.by_hand(file),
            _ => {
                for _ in 0..=self.dice.below(3) {
                    let at = self.dice.index(lines.len() + 1);
                    let line = self.line();
                    lines.insert(at, line);
                }
                let after = lines.join("\n") + "\n";
                let write = json!({"path": path, "text": after, "base": sha256(&before)});
                if let Some(Ok(_)) = self.ask("file/write", write) {
                    self.acknowledged(file, &after);
                }
            }
        }
    }

    /// An agent's own tool writes, announced by a mark. No user saves
    /// meanwhile: the tool would overwrite that.
    fn by_hand(&mut self, file: &'static str) {
        let mut entry = self.stage.ledger.of(file);
        let path = entry.name();
        let begin = json!({"files": [{"path": path}]});
        let Some(Ok(begun)) = self.ask("edit/begin", begin) else {
            return;
        };
        let edit = text(&begun, "edit");
        let file = self.path(&path);
        let before = fs::read_to_string(&file).unwrap_or_default();
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        let at = self.dice.index(lines.len() + 1);
        let line = self.line();
        lines.insert(at, line);
        let after = lines.join("\n") + "\n";
        let done = !before.is_empty() && self.saved(&file, &after);
        let (method, hash) = match done {
            true => ("edit/commit", Some(sha256(&after))),
            false => ("edit/abort", None),
        };
        let end = match &hash {
            Some(hash) => json!({"edit": edit, "files": [{"path": path, "hash": hash}]}),
            None => json!({"edit": edit}),
        };
        let ended = self.ask(method, end);
        if let (Some(Ok(_)), Some(hash)) = (ended, hash) {
            let session = self.name.to_owned();
            entry.writes.insert(Written { session, hash });
        }
    }

    fn acknowledged(&self, file: &str, content: &str) {
        let session = self.name.to_owned();
        let hash = sha256(content);
        let mut entry = self.stage.ledger.of(file);
        entry.writes.insert(Written { session, hash });
    }

    /// An agent's shell appends to a file, edits its own lines, and makes and
    /// removes other files. No user saves meanwhile: `sed` would overwrite that.
    fn command(&mut self, file: &'static str) {
        let path = self.stage.ledger.of(file).name();
        let call = self.line();
        let window = json!({"callId": call, "label": "make", "scope": "workspace"});
        let _unanswered = self.ask("command/begin", window);
        let made = format!("made-{}", self.dice.below(20));
        let (script, edits) = match self.dice.below(6) {
            0 => (format!("rm -f {made}"), false),
            1 => (format!("echo '{call}' > {made}"), false),
            2 => (format!("sed -i 's/^shell-1 .*$/& too/' {path}"), true),
            3 => (format!("sed -i '/^shell-1 .*$/d' {path}"), true),
            _ => (format!("echo '{call}' >> {path}"), false),
        };
        let _nobody_saves = edits.then(|| self.stage.ledger.of(file));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script])
            .current_dir(&self.stage.workspace)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = children::start(&mut shell);
        // A command that fails on a full disk fails.
        let _status = child.and_then(|mut child| child.wait());
        let _unanswered = self.ask("command/end", json!({"callId": call}));
    }

    /// A user takes back what agents did, or accepts it.
    fn review(&mut self, file: &'static str) {
        let path = self.stage.ledger.of(file).name();
        let agents = ["maker-1", "maker-2", "maker-3", "shell-1"];
        let session = *self.dice.pick(&agents);
        let (method, params) = match self.dice.below(8) {
            0 => ("undo", json!({"session": session, "now": true})),
            1 => (
                "undo",
                json!({"session": session, "now": true, "paths": [path]}),
            ),
            2 => (
                "undo",
                json!({"session": session, "now": true, "last": true}),
            ),
            3 => ("redo", json!({})),
            way => {
                let Some(Ok(list)) = self.ask("review/list", json!({"limit": 40})) else {
                    return;
                };
                let hunks = list["hunks"].as_array().cloned().unwrap_or_default();
                // What is only likely an agent's may be the user's (UNDO-7).
                let sure = hunks.into_iter().filter(|hunk| hunk["likely"] != true);
                let mut sure: Vec<Value> = sure
                    .map(|hunk| json!({"path": hunk["path"], "id": hunk["id"]}))
                    .collect();
                self.dice.shuffle(&mut sure);
                sure.truncate(1 + self.dice.index(4));
                let method = if way < 6 {
                    "review/undo"
                } else {
                    "review/keep"
                };
                (method, json!({"hunks": sure}))
            }
        };
        if let Some(Ok(answer)) = self.ask(method, params) {
            let changed = |file: &Value| file["outcome"] == "undone" || file["outcome"] == "redone";
            let files = answer["files"].as_array();
            self.undos += u64::from(files.is_some_and(|files| files.iter().any(changed)));
        }
    }

    /// Saves a file in one of five ways. Returns whether it was saved; if not,
    /// the file has its previous content.
    fn saved(&mut self, file: &Path, content: &str) -> bool {
        let beside = file.with_extension("saving");
        if unshared(|| fs::write(&beside, content)).is_err() {
            let _half = fs::remove_file(&beside);
            return false;
        }
        let in_place = 0..2;
        let is_full = self.stage.is_full.load(Ordering::Relaxed);
        let way = self.dice.below(5);
        let name = self.name;
        self.stage
            .note(format!("{name} saves {} ({way})", file.display()));
        let done = match way {
            // On a full disk this would lose the text.
            way if in_place.contains(&way) && !is_full => {
                fs::remove_file(&beside).and_then(|()| unshared(|| fs::write(file, content)))
            }
            // As vim does.
            2 => {
                let backup = file.with_extension("txt~");
                fs::rename(file, &backup)
                    .and_then(|()| fs::rename(&beside, file))
                    .and_then(|()| fs::remove_file(&backup))
            }
            3 => fs::remove_file(file).and_then(|()| fs::rename(&beside, file)),
            _ => fs::rename(&beside, file),
        };
        done.unwrap_or_else(|error| panic!("saving {}: {error}", file.display()));
        self.stage.note(format!("{name} saved {}", file.display()));
        true
    }
}
