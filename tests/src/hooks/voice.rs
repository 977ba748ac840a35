//! How each agent spells its events, by its file in `tests/voices`: taken from
//! the agent's own documents, with `$name` where something is put in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// All files, by the agent's name.
static VOICES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("voices");
    let files = fs::read_dir(directory).expect("tests/voices");
    let voice = |file: fs::DirEntry| {
        let (path, text) = (file.path(), fs::read_to_string(file.path()));
        let name = path.file_stem()?.to_str()?.to_owned();
        let voice = serde_json::from_str(&text.expect("a file"));
        Some((
            name,
            voice.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        ))
    };
    files
        .filter_map(|file| voice(file.expect("a file")))
        .collect()
});

/// One agent in one session.
#[derive(Clone, Debug)]
pub struct Voice {
    /// The file in `tests/voices`, mostly the agent's name.
    pub agent: &'static str,
    /// Its name of the session.
    pub session: String,
    /// Where it works.
    pub cwd: PathBuf,
    /// The sub-agent that speaks.
    pub child: Option<String>,
}

/// All voices; an agent of two programs has two.
pub fn agents() -> Vec<&'static str> {
    VOICES.keys().map(String::as_str).collect()
}

/// What is in an agent's file.
pub fn of(agent: &str) -> &'static Value {
    let voice = VOICES.get(agent);
    voice.unwrap_or_else(|| panic!("no tests/voices/{agent}.json"))
}

/// The agent of a voice, as in `touchmark hook AGENT`.
pub fn hook(agent: &str) -> &str {
    let named = VOICES.get(agent).and_then(|voice| voice["agent"].as_str());
    named.unwrap_or(agent)
}

/// The name of an event, as its answer's schema goes by.
pub fn event_name<'a>(agent: &str, event: &'a Value) -> &'a str {
    let field = of(agent)["event"].as_str().expect("`event`");
    event[field].as_str().unwrap_or_default()
}

/// Puts `given` in where `$name` stands.
fn filled(template: &Value, given: &Map<String, Value>) -> Value {
    match template {
        Value::Object(members) => {
            let members = members.iter();
            let filled = members.map(|(name, value)| (name.clone(), filled(value, given)));
            Value::Object(filled.collect())
        }
        Value::Array(items) => items.iter().map(|item| filled(item, given)).collect(),
        Value::String(text) => {
            let whole = text.strip_prefix('$').and_then(|name| given.get(name));
            whole.cloned().unwrap_or_else(|| {
                let put = |text: String, (name, value): (&String, &Value)| match value {
                    Value::String(value) => text.replace(&format!("${name}"), value),
                    _ => text,
                };
                given.iter().fold(text.clone(), put).into()
            })
        }
        other => other.clone(),
    }
}

fn merge(base: &mut Value, more: Value) {
    if let (Value::Object(base), Value::Object(more)) = (base, more) {
        base.extend(more);
    }
}

/// Lines with a sign before each, as in a patch.
fn signed(sign: char, text: &str) -> String {
    text.lines().map(|line| format!("{sign}{line}\n")).collect()
}

impl Voice {
    /// An agent in a session.
    pub fn new(agent: &'static str, session: &str, cwd: &Path) -> Self {
        Self {
            agent,
            session: session.into(),
            cwd: cwd.into(),
            child: None,
        }
    }

    /// The same agent's sub-agent.
    #[must_use]
    pub fn sub_agent(&self, id: &str) -> Self {
        Self {
            child: Some(id.into()),
            ..self.clone()
        }
    }

    /// What all of the agent's events carry, and `more`.
    fn with(&self, more: Value) -> Value {
        let voice = of(self.agent);
        let given = json!({"session": self.session, "cwd": self.cwd, "child": self.child});
        let given = given.as_object().expect("an object");
        let mut event = filled(&voice["every"], given);
        if self.child.is_some() {
            merge(&mut event, filled(&voice["child"], given));
        }
        merge(&mut event, more);
        event
    }

    /// An event by its name, with what all of the agent's events carry.
    pub fn event(&self, name: &str, more: Value) -> Value {
        let field = of(self.agent)["event"].as_str().expect("`event`");
        let mut event = self.with(json!({field: name}));
        merge(&mut event, more);
        event
    }

    /// Whether the agent has such an event, or something to be heard by.
    pub fn has(&self, what: &str) -> bool {
        of(self.agent).get(what).is_some()
    }

    /// An event of the agent's file.
    fn said(&self, what: &str, given: Value) -> Value {
        let template = &of(self.agent)[what];
        assert!(template.is_object(), "{} says no {what:?}", self.agent);
        let mut all = json!({"session": self.session, "cwd": self.cwd});
        merge(&mut all, given);
        self.with(filled(template, all.as_object().expect("an object")))
    }

    /// Before or after a tool of the agent's file.
    fn tool(&self, after: bool, call: &str, tool: &str, mut given: Value) -> Value {
        let tool = &of(self.agent)["tools"][tool];
        merge(&mut given, json!({"cwd": self.cwd}));
        let given = given.as_object().expect("an object");
        let output = filled(&tool["output"], given);
        let call = json!({
            "call": call,
            "tool": tool["tool"],
            "input": filled(&tool["input"], given),
            "json": output.to_string(),
            "output": output,
        });
        self.said(if after { "after" } else { "before" }, call)
    }

    /// A session begins.
    pub fn start(&self, source: &str) -> Value {
        self.said("start", json!({"source": source}))
    }

    /// The user says something.
    pub fn prompt(&self, id: &str, text: &str) -> Value {
        self.said("prompt", json!({"id": id, "text": text}))
    }

    fn read(&self, after: bool, call: &str, path: &str, text: &str) -> Value {
        let given = json!({
            "path": self.cwd.join(path), "relative": path,
            "text": text, "lines": text.lines().count(),
        });
        self.tool(after, call, "read", given)
    }

    /// A tool is about to read a file.
    pub fn before_read(&self, call: &str, path: &str) -> Value {
        self.read(false, call, path, "")
    }

    /// It has.
    pub fn after_read(&self, call: &str, path: &str, text: &str) -> Value {
        self.read(true, call, path, text)
    }

    fn edit(&self, after: bool, call: &str, path: &str, old: &str, new: &str) -> Value {
        let given = json!({
            "path": self.cwd.join(path), "relative": path, "old": old, "new": new,
            "minus": signed('-', old), "plus": signed('+', new),
        });
        self.tool(after, call, "edit", given)
    }

    /// A tool is about to replace whole lines.
    pub fn before_edit(&self, call: &str, path: &str, old: &str, new: &str) -> Value {
        self.edit(false, call, path, old, new)
    }

    /// It has.
    pub fn after_edit(&self, call: &str, path: &str, old: &str, new: &str) -> Value {
        self.edit(true, call, path, old, new)
    }

    fn write(&self, after: bool, call: &str, path: &str, text: &str) -> Value {
        let given = json!({
            "path": self.cwd.join(path), "relative": path, "text": text,
            "plus": signed('+', text),
        });
        self.tool(after, call, "write", given)
    }

    /// A tool is about to write a whole file.
    pub fn before_write(&self, call: &str, path: &str, content: &str) -> Value {
        self.write(false, call, path, content)
    }

    /// It has.
    pub fn after_write(&self, call: &str, path: &str, content: &str) -> Value {
        self.write(true, call, path, content)
    }

    /// A command is about to run.
    pub fn before_shell(&self, call: &str, command: &str) -> Value {
        self.tool(
            false,
            call,
            "shell",
            json!({"command": command, "text": ""}),
        )
    }

    /// It has.
    pub fn after_shell(&self, call: &str, command: &str, output: &str) -> Value {
        self.tool(
            true,
            call,
            "shell",
            json!({"command": command, "text": output}),
        )
    }

    /// All tools of a turn have run, where the agent says so.
    pub fn batch_end(&self) -> Option<Value> {
        self.has("batch_end")
            .then(|| self.said("batch_end", json!({})))
    }

    /// The context was compacted, or is about to be.
    pub fn compacted(&self) -> Value {
        self.said("compacted", json!({}))
    }

    /// The agent stops for now.
    pub fn stop(&self) -> Value {
        self.said("stop", json!({}))
    }

    /// The session ends.
    pub fn end(&self) -> Value {
        self.said("end", json!({}))
    }

    /// One event of every kind, for tests that change them.
    pub fn all(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if self.has("start") {
            all.push(self.start("startup"));
        }
        all.extend([
            self.prompt("p1", "look at @a.txt"),
            self.before_read("1", "a.txt"),
            self.after_read("1", "a.txt", "one\n"),
            self.before_edit("2", "a.txt", "one", "two"),
            self.after_edit("2", "a.txt", "one", "two"),
            self.before_write("3", "new.txt", "text\n"),
            self.after_write("3", "new.txt", "text\n"),
            self.before_shell("4", "cat a.txt"),
            self.after_shell("4", "cat a.txt", "one\n"),
            self.stop(),
        ]);
        if self.has("compacted") {
            all.push(self.compacted());
        }
        all.extend(self.batch_end());
        if self.has("end") {
            all.push(self.end());
        }
        all
    }
}
