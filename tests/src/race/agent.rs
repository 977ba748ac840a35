//! An agent: reads files, writes them through the daemon or directly with
//! marks, and may be killed at any moment.

use std::collections::HashMap;
use std::fs;

use serde_json::{Value, json};

use super::Field;
use super::arena::{Link, Seat};
use super::log::{Log, now};
use crate::dice::Dice;
use crate::wire::Answer;
use crate::{Way, sha256, user};

/// The lifetime of a mark, in milliseconds: how long the mark of a killed agent
/// blocks others.
const TTL: u64 = 1_500;

/// A content that the session has reported as read.
#[derive(Clone)]
struct Copy {
    hash: String,
    text: String,
}

struct Agent<'s> {
    seat: &'s Seat,
    dice: Dice,
    log: Log,
    link: Link,
    /// The newest copy of each file.
    known: HashMap<&'static str, Copy>,
    count: u64,
}

/// Runs an agent until the end of the round.
pub fn play(seat: &Seat) {
    let mut agent = Agent {
        seat,
        dice: seat.dice(),
        log: seat.log(),
        link: seat.link(),
        known: HashMap::new(),
        count: 0,
    };
    while now() < seat.until {
        let path = seat.aim(&mut agent.dice);
        match agent.dice.below(100) {
            0..35 => agent.read(path),
            35..45 => agent.read_text(path),
            45..52 => agent.status(path),
            52..57 => agent.take(),
            _ if agent.writes_by_itself(path) => agent.own(path),
            _ => agent.guarded(path),
        }
        user::pause(agent.dice.below(4));
    }
}

impl Agent<'_> {
    fn ask(&mut self, method: &str, mut params: Value) -> Option<Answer> {
        params["session"] = json!(self.seat.name);
        self.link.ask(method, &params)
    }

    fn writes_by_itself(&mut self, path: &str) -> bool {
        let field = Field::of(path);
        field.own() && (!field.guarded() || self.dice.percent(50))
    }

    fn new_content(&mut self) -> String {
        self.count += 1;
        let id = format!("{} {} {}", self.seat.name, self.seat.turn, self.count);
        self.dice.content(&id)
    }

    /// Reads a file directly, as an agent's own tool does, and reports the
    /// read.
    fn read(&mut self, path: &'static str) {
        let id = self.log.begin("read", json!({"path": path}));
        let Ok(bytes) = fs::read(self.seat.path(path)) else {
            return self.log.end(id, json!({"absent": true}));
        };
        let hash = sha256(&bytes);
        self.log.end(id, json!({"hash": hash}));
        self.seat.keep(&bytes);
        let id = self.log.begin("tell", json!({"path": path, "hash": hash}));
        if let Some(answer) = self.ask("file/read", json!({"path": path, "hash": hash})) {
            self.log.end(id, json!({"ok": answer.is_ok()}));
            if answer.is_ok()
                && let Ok(text) = String::from_utf8(bytes)
            {
                self.known.insert(path, Copy { hash, text });
            }
        }
    }

    /// Reads a file through the daemon.
    fn read_text(&mut self, path: &'static str) {
        let id = self.log.begin("readText", json!({"path": path}));
        let answer = self.ask("file/readText", json!({"path": path, "force": true}));
        let Some(Ok(answer)) = answer else { return };
        let hash = answer["hash"].clone();
        let partial = answer["truncated"] == true;
        self.log.end(id, json!({"hash": hash, "partial": partial}));
        if let (Some(hash), Some(text), false) = (hash.as_str(), answer["text"].as_str(), partial) {
            self.seat.keep(text.as_bytes());
            let (hash, text) = (hash.to_owned(), text.to_owned());
            self.known.insert(path, Copy { hash, text });
        }
    }

    fn status(&mut self, path: &str) {
        let id = self.log.begin("status", json!({"path": path}));
        if let Some(Ok(answer)) = self.ask("file/status", json!({"paths": [path]})) {
            let file = &answer["files"][0];
            let told = json!({"state": file["state"], "hash": file["hash"]});
            self.log.end(id, told);
        }
    }

    fn take(&mut self) {
        let id = self.log.begin("take", json!({}));
        if let Some(Ok(answer)) = self.ask("modified/take", json!({})) {
            self.log.end(id, json!({"changes": answer["changes"]}));
        }
    }

    /// Writes a file through the daemon.
    fn guarded(&mut self, path: &'static str) {
        let Some(copy) = self.known.get(path).cloned() else {
            return self.read(path);
        };
        let content = self.new_content();
        let new = sha256(&content);
        let way = *self.dice.pick(&[
            "base", "base", "base", "edit", "edit", "edit", "seen", "force", "new",
        ]);
        let (method, params, fields) = match way {
            // The request names the content that was read.
            "base" => (
                "file/write",
                json!({"path": path, "text": content, "base": copy.hash}),
                json!({"hash": new, "base": copy.hash}),
            ),
            // The request names no base: the daemon has on record what was
            // read.
            "seen" => (
                "file/write",
                json!({"path": path, "text": content}),
                json!({"hash": new}),
            ),
            "force" => (
                "file/write",
                json!({"path": path, "text": content, "force": true}),
                json!({"hash": new, "force": true}),
            ),
            // The request expects that the file does not exist.
            "new" if !self.seat.path(path).exists() => (
                "file/write",
                json!({"path": path, "text": content, "requireRead": false}),
                json!({"hash": new, "fresh": true}),
            ),
            _ => {
                // Replaces the first line. Only this content has it, and
                // contents that were made from it.
                let line = copy.text.lines().next().unwrap_or_default();
                let other = content.lines().next().unwrap_or_default();
                if line.is_empty() {
                    return self.read(path);
                }
                let edited = copy.text.replacen(line, other, 1);
                self.seat.keep(edited.as_bytes());
                (
                    "file/edit",
                    json!({"path": path, "oldString": format!("{line}\n"),
                           "newString": format!("{other}\n")}),
                    json!({"line": other, "from": copy.hash, "to": sha256(edited)}),
                )
            }
        };
        if method == "file/write" {
            self.seat.keep(content.as_bytes());
        }
        let mut fields = fields;
        fields["path"] = json!(path);
        fields["way"] = json!(way);
        let id = self.log.begin("guarded", fields);
        match self.ask(method, params) {
            None => {}
            Some(Ok(done)) => {
                let kept: Vec<String> = done["recovered"]
                    .as_array()
                    .expect("what was kept")
                    .iter()
                    .map(|file| sha256(fs::read(file.as_str().expect("a name")).expect("bytes")))
                    .collect();
                self.log.end(
                    id,
                    json!({"outcome": done["outcome"], "written": done["version"]["hash"],
                           "guard": done["guard"], "kept": kept}),
                );
                // If the daemon has edited another content than the known one,
                // the new content is known only after another read.
                let held = done["version"]["hash"].as_str();
                if held == Some(&new) {
                    let (hash, text) = (new, content);
                    self.known.insert(path, Copy { hash, text });
                } else {
                    self.known.remove(path);
                }
                if self.dice.percent(60) {
                    // This read proves that the new content came after the
                    // previous one.
                    self.read(path);
                }
            }
            Some(Err(error)) => {
                let cause = &error.data["cause"];
                self.log
                    .end(id, json!({"error": error.name, "cause": cause}));
                self.known.remove(path);
            }
        }
    }

    /// Writes a file directly, with one of the kinds of marks.
    fn own(&mut self, path: &'static str) {
        let content = self.new_content();
        let hash = self.seat.keep(content.as_bytes());
        let delete = Field::of(path) == Field::Own && self.dice.percent(8);
        let way = if delete {
            Way::Edit
        } else {
            *self.dice.pick(&Way::ALL)
        };
        // Plan 0 marks and writes nothing. Plan 1 writes and restores the
        // previous content.
        let plan = self.dice.below(12);
        let declared = match way {
            Way::Declared | Way::Edit if delete => Some("absent".to_owned()),
            Way::Declared | Way::Edit => Some(hash.clone()),
            _ => None,
        };
        let fields = json!({"path": path, "way": format!("{way:?}"), "expect": declared});
        let id = self.log.begin("declare", fields);
        let answer = match way {
            Way::Declared | Way::Flag => {
                let params = json!({"path": path, "expect": declared, "ttlMs": TTL});
                self.ask("edit/mark", params)
            }
            _ => {
                let files = json!([{"path": path, "expect": declared}]);
                let params = json!({"files": files, "ttlMs": TTL, "force": true,
                                    "requireRead": false});
                self.ask("edit/begin", params)
            }
        };
        let edit = match answer {
            // Without a confirmed declaration nothing is written.
            None => return,
            Some(Err(error)) => return self.log.end(id, json!({"error": error.name})),
            Some(Ok(begun)) => {
                let deadline = &begun["deadline"];
                self.log
                    .end(id, json!({"edit": begun["edit"], "deadline": deadline}));
                begun["edit"].clone()
            }
        };
        if plan > 0 && delete {
            let id = self
                .log
                .begin("delete", json!({"path": path, "way": "own"}));
            let gone = fs::remove_file(self.seat.path(path)).is_ok();
            self.log.end(id, json!({"gone": gone}));
        } else if plan > 0 {
            self.write(path, &content, &hash);
        }
        if matches!(way, Way::Declared | Way::Flag) && plan > 0 {
            return;
        }
        let (method, claim) = match way {
            _ if plan < 2 => ("edit/abort", None),
            Way::Blind => ("edit/commit", None),
            _ if delete => ("edit/commit", Some("absent".to_owned())),
            _ => ("edit/commit", Some(hash.clone())),
        };
        let mut params = json!({"edit": edit});
        if method == "edit/commit" {
            params["files"] = json!([{"path": path, "hash": claim}]);
        }
        let fields = json!({"path": path, "edit": edit, "method": method, "claim": claim});
        let id = self.log.begin("finish", fields);
        match self.ask(method, params) {
            None => {}
            Some(Ok(done)) => {
                let outcome = &done["files"][0]["outcome"];
                self.log.end(id, json!({"outcome": outcome}));
                if plan > 1 && !delete {
                    let text = content;
                    self.known.insert(path, Copy { hash, text });
                }
            }
            Some(Err(error)) => self.log.end(id, json!({"error": error.name})),
        }
    }

    fn write(&mut self, path: &str, content: &str, hash: &str) {
        let target = self.seat.path(path);
        let way = *self.dice.pick(&["write", "replace", "halves"]);
        let gap = self.dice.below(3);
        let fields = json!({"path": path, "hash": hash, "way": way});
        let id = self.log.begin("own", fields);
        match way {
            "replace" => {
                let beside = target.with_extension(format!("{}.tmp", self.seat.name));
                user::replace_beside(&target, &beside, content);
            }
            "halves" => {
                let (first, second) = content.split_at(content.len() / 2);
                user::write_in_two(&target, first, second, gap);
            }
            _ => user::write(&target, content),
        }
        self.log.end(id, json!({}));
    }
}
