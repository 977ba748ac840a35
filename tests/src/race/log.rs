//! A player's log: a line before each act and a line after it. Each line is one
//! write, so that the log of a killed player is complete.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Returns the time in nanoseconds since 1970, the only clock that all
/// processes share.
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
    /// Opens a log for appending. `turn` distinguishes the runs of one player.
    pub fn open(directory: &Path, name: &str, turn: u64) -> Self {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join(format!("{name}.{turn}.log")))
            .expect("a player's log");
        Self { file, next: 0 }
    }

    /// Logs that an act begins. Returns its number.
    pub fn begin(&mut self, act: &str, mut fields: Value) -> u64 {
        self.next += 1;
        fields["act"] = json!(act);
        fields["id"] = json!(self.next);
        fields["t0"] = json!(now());
        self.line(&fields);
        self.next
    }

    /// Logs that an act has ended, with its result.
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

/// One act, combined from its two lines in the log.
#[derive(Clone, Debug)]
pub struct Act {
    /// The player's name.
    pub who: String,
    /// The kind of act.
    pub act: String,
    /// When it began, in nanoseconds.
    pub t0: u64,
    /// When it had ended, in nanoseconds; `None` if that is not known.
    pub t1: Option<u64>,
    /// All other fields of both lines.
    pub fields: Value,
}

impl Act {
    /// Returns a text field.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields[field].as_str()
    }

    /// Returns the path.
    pub fn path(&self) -> &str {
        self.text("path").unwrap_or_default()
    }

    /// Returns a flag.
    pub fn flag(&self, field: &str) -> bool {
        self.fields[field] == true
    }
}

/// Reads all logs in a directory.
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
