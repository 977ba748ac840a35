//! What a player did: a line before each act and a line after it, each one
//! write to a file, so that a player that is killed leaves what it has done.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Nanoseconds since 1970: the one clock that all processes share.
pub fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    u64::try_from(since.as_nanos()).expect("before the year 2554")
}

/// A player's log.
pub struct Log {
    file: File,
    next: u64,
}

impl Log {
    /// Goes on with a file; `turn` tells the lives of one player apart.
    pub fn open(directory: &Path, name: &str, turn: u64) -> Self {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join(format!("{name}.{turn}.log")))
            .expect("a player's log");
        Self { file, next: 0 }
    }

    /// About to do this; its number.
    pub fn begin(&mut self, act: &str, mut fields: Value) -> u64 {
        self.next += 1;
        fields["act"] = json!(act);
        fields["id"] = json!(self.next);
        fields["t0"] = json!(now());
        self.line(&fields);
        self.next
    }

    /// Done, with this result.
    pub fn end(&mut self, id: u64, mut fields: Value) {
        fields["id"] = json!(id);
        fields["t1"] = json!(now());
        self.line(&fields);
    }

    fn line(&mut self, fields: &Value) {
        let line = format!("{fields}\n");
        self.file.write_all(line.as_bytes()).expect("a line");
    }
}

/// One act, its two lines together.
#[derive(Clone, Debug)]
pub struct Act {
    /// Whose.
    pub who: String,
    /// What was done.
    pub act: String,
    /// When it began.
    pub t0: u64,
    /// When it had ended; `None` if that is not known.
    pub t1: Option<u64>,
    /// Everything else, of both lines.
    pub fields: Value,
}

impl Act {
    /// A text among the fields.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields[field].as_str()
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.text("path").unwrap_or_default()
    }

    /// A flag among the fields.
    pub fn flag(&self, field: &str) -> bool {
        self.fields[field] == true
    }
}

/// All that is in a directory of logs.
pub fn read_all(directory: &Path) -> Vec<Act> {
    let mut acts = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the logs").flatten() {
        let name = entry.file_name().into_string().expect("a name of ours");
        let Some(who) = name.strip_suffix(".log").and_then(|n| n.split('.').next()) else {
            continue;
        };
        let text = std::fs::read_to_string(entry.path()).expect("a log");
        let mut of_this: Vec<Act> = Vec::new();
        for line in text.lines() {
            // The last line of a killed player may be cut short.
            let Ok(fields) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            if let Some(t0) = fields["t0"].as_u64() {
                of_this.push(Act {
                    who: who.to_owned(),
                    act: fields["act"].as_str().unwrap_or_default().to_owned(),
                    t0,
                    t1: None,
                    fields,
                });
                continue;
            }
            let id = &fields["id"];
            let act = of_this.iter_mut().rev().find(|act| act.fields["id"] == *id);
            let act = act.expect("an end has a beginning");
            act.t1 = fields["t1"].as_u64();
            for (name, value) in fields.as_object().expect("an object") {
                act.fields[name] = value.clone();
            }
        }
        acts.extend(of_this);
    }
    acts.sort_by_key(|act| act.t0);
    acts
}
