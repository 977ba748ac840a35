//! The players that are no agents: a user with all ways to save, an editor that
//! reports its saves, git.
//!
//! No two of them save one file at the same moment. A lock outside of the
//! workspace orders their saves of each file, so that it is known what each
//! replaced. Agents may still write in between.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::arena::Seat;
use super::log::{Log, now};
use super::{FILES, Field};
use crate::dice::Dice;
use crate::user;

/// A player that is no agent.
struct Person<'s> {
    seat: &'s Seat,
    dice: Dice,
    log: Log,
    count: u64,
}

impl<'s> Person<'s> {
    fn new(seat: &'s Seat) -> Self {
        Self {
            seat,
            dice: seat.dice(),
            log: seat.log(),
            count: 0,
        }
    }

    fn id(&mut self) -> String {
        self.count += 1;
        format!("{} {}", self.seat.name, self.count)
    }

    /// Locks these files for saving, until the result is dropped.
    fn locks(&self, paths: &[&str]) -> Vec<File> {
        paths
            .iter()
            .map(|path| {
                let name = path.replace('/', "-");
                let lock = File::create(self.seat.directory.join("locks").join(name));
                let lock = lock.expect("a lock");
                flock(&lock, FlockOperation::LockExclusive).expect("locking");
                lock
            })
            .collect()
    }

    /// Saves a unique content in one of several ways. Returns its hash.
    fn save(&mut self, path: &str) -> String {
        let id = self.id();
        let content = self.dice.content(&id);
        let target = self.seat.path(path);
        let hash = self.seat.keep(content.as_bytes());
        let mut ways = vec!["write", "replace", "halves", "fsync"];
        match Field::of(path) {
            // Agents delete such a file, so it may not exist.
            Field::Own => {}
            Field::Guarded | Field::Mixed => ways.extend(["overwrite", "vim", "recreate"]),
            // git may have left such a file without its name.
            Field::Branch | Field::Stash => ways.push("overwrite"),
        }
        let way = *self.dice.pick(&ways);
        let gap = self.dice.below(3);
        let put = json!({"path": path, "hash": hash, "way": way});
        if matches!(way, "vim" | "recreate") {
            let gone = self.log.begin("delete", json!({"path": path, "way": way}));
            let id = self.log.begin("put", put);
            if way == "vim" {
                user::like_vim(&target, &content, gap);
            } else {
                user::recreate(&target, &content, gap);
            }
            self.log.end(gone, json!({}));
            self.log.end(id, json!({}));
            return hash;
        }
        let id = self.log.begin("put", put);
        match way {
            "write" => user::write(&target, &content),
            "replace" => user::replace(&target, &content),
            "overwrite" if target.exists() => user::overwrite(&target, &content),
            "halves" => {
                let (first, second) = content.split_at(content.len() / 2);
                user::write_in_two(&target, first, second, gap);
            }
            "fsync" => user::replace_synced(&target, &content),
            _ => user::write(&target, &content),
        }
        self.log.end(id, json!({}));
        hash
    }

    /// Adds a line to the current content, by `sed -i` or by appending.
    fn add(&mut self, path: &str) {
        let target = self.seat.path(path);
        if fs::metadata(&target).map_or(0, |found| found.len()) == 0 {
            return;
        }
        let line = format!("added by {}", self.id());
        let way = if self.dice.percent(30) {
            "sed"
        } else {
            "append"
        };
        let put = json!({"path": path, "line": line, "way": way});
        let id = self.log.begin("put", put);
        if way == "sed" {
            user::sed(&target, &format!("1a\\{line}"));
        } else {
            user::append(&target, &format!("{line}\n"));
        }
        self.log.end(id, json!({}));
        // The resulting content is read back, unless another player wrote
        // first.
        let end = now() + 100_000_000;
        while now() < end {
            let bytes = fs::read(&target).unwrap_or_default();
            if holds_line(&bytes, &line) {
                let seen = self.log.begin("found", json!({"path": path, "line": line}));
                let hash = self.seat.keep(&bytes);
                self.log.end(seen, json!({"hash": hash}));
                return;
            }
            user::pause(1);
        }
    }
}

/// Returns whether a content has this line.
pub fn holds_line(bytes: &[u8], line: &str) -> bool {
    bytes
        .split(|byte| *byte == b'\n')
        .any(|found| found == line.as_bytes())
}

/// A user who saves files.
pub fn user(seat: &Seat) {
    let mut person = Person::new(seat);
    while now() < seat.until {
        let path = seat.aim(&mut person.dice);
        let locks = person.locks(&[path]);
        if person.dice.percent(25) && Field::of(path) != Field::Own {
            person.add(path);
        } else {
            person.save(path);
        }
        drop(locks);
        user::pause(person.dice.below(6));
    }
}

/// A user who saves at the worst moment: when a guarded write has made its
/// temporary file and is about to exchange it. Everything is prepared before,
/// so that the save is a single rename.
pub fn rival(seat: &Seat) {
    let mut person = Person::new(seat);
    while now() < seat.until {
        let path = seat.aim(&mut person.dice);
        if !matches!(Field::of(path), Field::Guarded | Field::Mixed) {
            user::pause(5);
            continue;
        }
        let target = seat.path(path);
        let id = person.id();
        let content = person.dice.content(&id);
        let hash = seat.keep(content.as_bytes());
        let ready = target.with_extension("ready");
        user::write(&ready, &content);
        // The lock is held while it waits, so that agents find their copies
        // current.
        let locks = person.locks(&[path]);
        let end = now() + 40_000_000;
        while now() < end {
            if !is_being_written(&target) {
                continue;
            }
            let put = json!({"path": path, "hash": hash, "way": "ready"});
            let id = person.log.begin("put", put);
            fs::rename(&ready, &target).expect("a rename");
            person.log.end(id, json!({}));
            // The pause lets another player read the result.
            user::pause(5 + person.dice.below(10));
            break;
        }
        drop(locks);
        user::pause(person.dice.below(30));
    }
}

/// Returns whether a guarded write is in progress in a file's directory.
fn is_being_written(target: &Path) -> bool {
    let directory = target.parent().expect("a directory");
    fs::read_dir(directory).expect("a directory").any(|entry| {
        let name = entry.expect("a name").file_name();
        name.to_string_lossy().starts_with(".touchmark-")
    })
}

/// An editor that reports its saves.
pub fn editor(seat: &Seat) {
    let mut person = Person::new(seat);
    let mut link = seat.link();
    while now() < seat.until {
        let path = seat.aim(&mut person.dice);
        let mut tell = |method: &str, more: serde_json::Value| {
            let mut params = more;
            params["path"] = json!(path);
            link.ask(method, &params)
        };
        tell("editor/didOpen", json!({}));
        tell("editor/dirty", json!({"dirty": true}));
        let locks = person.locks(&[path]);
        let hash = person.save(path);
        drop(locks);
        let report = json!({"path": path, "hash": hash});
        let id = person.log.begin("report", report);
        if let Some(answer) = tell("editor/didSave", json!({"hash": hash})) {
            person.log.end(id, json!({"ok": answer.is_ok()}));
        }
        tell("editor/dirty", json!({"dirty": false}));
        tell("editor/didClose", json!({}));
        user::pause(person.dice.below(12));
    }
}

/// A user who switches git branches and stashes.
pub fn git(seat: &Seat) {
    let mut person = Person::new(seat);
    let branch: Vec<&str> = of_field(Field::Branch);
    let stash: Vec<&str> = of_field(Field::Stash);
    let all: Vec<&str> = branch.iter().chain(&stash).copied().collect();
    while now() < seat.until {
        let locks = person.locks(&all);
        if person.dice.percent(25) {
            // Stashed and restored: the contents occurred before.
            let back = person.dice.percent(70);
            git_may_fail(seat, &["stash", "push", "-q", "--", "stash"]);
            if back && !git_may_fail(seat, &["stash", "pop", "-q"]) {
                git_may_fail(seat, &["checkout", "-qf", "HEAD", "--", "stash"]);
                git_may_fail(seat, &["stash", "drop", "-q"]);
            }
        } else {
            let id = person.id();
            let mut puts = Vec::new();
            let mut contents = Vec::new();
            for path in &branch {
                let content = person.dice.content(&format!("{id} of {path}"));
                let hash = seat.keep(content.as_bytes());
                puts.push(json!({"path": path, "hash": hash, "way": "checkout"}));
                contents.push((*path, content));
            }
            let name = format!("b{}", person.count);
            commit(seat, &name, &contents);
            // git removes the old file before it creates the new one.
            let mut ids: Vec<u64> = Vec::new();
            for put in puts {
                let gone = json!({"path": put["path"], "way": "checkout"});
                ids.push(person.log.begin("delete", gone));
                ids.push(person.log.begin("put", put));
            }
            if git_may_fail(seat, &["checkout", "-qf", &name]) {
                for id in ids {
                    person.log.end(id, json!({}));
                }
            }
        }
        drop(locks);
        user::pause(person.dice.below(60));
    }
}

fn of_field(field: Field) -> Vec<&'static str> {
    FILES
        .iter()
        .copied()
        .filter(|path| Field::of(path) == field)
        .collect()
}

/// Creates the repository from the existing files.
pub fn repository(seat: &Seat) {
    user::git(&seat.workspace, &["init", "-q", "-b", "main"]);
    user::git(&seat.workspace, &["add", "branch", "stash"]);
    user::git(&seat.workspace, &["commit", "-qm", "start"]);
}

/// Creates a branch with these contents, without touching the work tree.
fn commit(seat: &Seat, name: &str, contents: &[(&str, String)]) {
    let mut stream = format!(
        "commit refs/heads/{name}\ncommitter U <u@example.invalid> 1000000000 +0000\n\
         data 1\nn\nfrom refs/heads/main^0\n"
    );
    for (path, content) in contents {
        stream.push_str(&format!("M 100644 inline {path}\ndata {}\n", content.len()));
        stream.push_str(content);
        stream.push('\n');
    }
    let mut child = user::git_command(&seat.workspace, &["fast-import", "--quiet", "--force"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(stream.as_bytes()).expect("a commit");
    drop(stdin);
    assert!(child.wait().expect("git").success(), "git fast-import");
}

/// Runs git, which may fail because an agent writes at the same time. Returns
/// whether it succeeded.
fn git_may_fail(seat: &Seat, args: &[&str]) -> bool {
    let status = user::git_command(&seat.workspace, args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("git").success()
}
