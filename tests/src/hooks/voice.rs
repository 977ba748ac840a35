//! The format of each agent's events, from its file in `tests/voices`. The
//! formats are taken from the agent's own documents. `$name` stands for a value
//! that is filled in.

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
    /// The name of the file in `tests/voices`, mostly the agent's name.
    pub agent: &'static str,
    /// The agent's id of the session.
    pub session: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The sub-agent whose events these are; `None` for the main agent.
    pub child: Option<String>,
}

/// Returns the names of all files. An agent with two programs has two.
pub fn agents() -> Vec<&'static str> {
    VOICES.keys().map(String::as_str).collect()
}

/// Returns the content of an agent's file.
pub fn of(agent: &str) -> &'static Value {
    let voice = VOICES.get(agent);
    voice.unwrap_or_else(|| panic!("no tests/voices/{agent}.json"))
}

/// Returns the agent's name in `touchmark hook AGENT`.
pub fn hook(agent: &str) -> &str {
    let named = VOICES.get(agent).and_then(|voice| voice["agent"].as_str());
    named.unwrap_or(agent)
}

/// Returns the name of an event, by which its answer's schema is found.
pub fn event_name<'a>(agent: &str, event: &'a Value) -> &'a str {
    let field = of(agent)["event"].as_str().expect("`event`");
    event[field].as_str().unwrap_or_default()
}

/// Replaces each `$name` in the template by its value in `given`.
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

/// Returns the lines of a text with a sign before each, as in a patch.
fn signed(sign: char, text: &str) -> String {
    text.lines().map(|line| format!("{sign}{line}\n")).collect()
}

impl Voice {
    /// Returns an agent in a session.
    pub fn new(agent: &'static str, session: &str, cwd: &Path) -> Self {
        Self {
            agent,
            session: session.into(),
            cwd: cwd.into(),
            child: None,
        }
    }

    /// Returns a sub-agent of the same agent.
    #[must_use]
    pub fn sub_agent(&self, id: &str) -> Self {
        Self {
            child: Some(id.into()),
            ..self.clone()
        }
    }

    /// Returns an event with the fields that all of the agent's events have,
    /// and `more`.
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

    /// Returns an event with this name and the fields that all of the agent's
    /// events have.
    pub fn event(&self, name: &str, more: Value) -> Value {
        let field = of(self.agent)["event"].as_str().expect("`event`");
        let mut event = self.with(json!({field: name}));
        merge(&mut event, more);
        event
    }

    /// Returns whether the agent has such an event, or such a field in its
    /// answers.
    pub fn has(&self, what: &str) -> bool {
        of(self.agent).get(what).is_some()
    }

    /// Returns an event from the agent's file.
    fn said(&self, what: &str, given: Value) -> Value {
        let template = &of(self.agent)[what];
        assert!(template.is_object(), "{} says no {what:?}", self.agent);
        let mut all = json!({"session": self.session, "cwd": self.cwd});
        merge(&mut all, given);
        self.with(filled(template, all.as_object().expect("an object")))
    }

    /// Returns the event before or after a tool call, from the agent's file.
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

    /// Returns the event when a session begins.
    pub fn start(&self, source: &str) -> Value {
        self.said("start", json!({"source": source}))
    }

    /// Returns the event when the user submits a prompt.
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

    /// Returns the event before a tool reads a file.
    pub fn before_read(&self, call: &str, path: &str) -> Value {
        self.read(false, call, path, "")
    }

    /// Returns the event after a tool has read a file.
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

    /// Returns the event before a tool replaces whole lines.
    pub fn before_edit(&self, call: &str, path: &str, old: &str, new: &str) -> Value {
        self.edit(false, call, path, old, new)
    }

    /// Returns the event after a tool has replaced whole lines.
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

    /// Returns the event before a tool writes a whole file.
    pub fn before_write(&self, call: &str, path: &str, content: &str) -> Value {
        self.write(false, call, path, content)
    }

    /// Returns the event after a tool has written a whole file.
    pub fn after_write(&self, call: &str, path: &str, content: &str) -> Value {
        self.write(true, call, path, content)
    }

    /// Returns the event before a command runs.
    pub fn before_shell(&self, call: &str, command: &str) -> Value {
        self.tool(
            false,
            call,
            "shell",
            json!({"command": command, "text": ""}),
        )
    }

    /// Returns the event after a command has run.
    pub fn after_shell(&self, call: &str, command: &str, output: &str) -> Value {
        self.tool(
            true,
            call,
            "shell",
            json!({"command": command, "text": output}),
        )
    }

    /// Returns the event when all tools of a turn have run; `None` if the agent
    /// has no such event.
    pub fn batch_end(&self) -> Option<Value> {
        self.has("batch_end")
            .then(|| self.said("batch_end", json!({})))
    }

    /// Returns the event before or after the context is compacted.
    pub fn compacted(&self) -> Value {
        self.said("compacted", json!({}))
    }

    /// Returns the event when the agent ends its turn.
    pub fn stop(&self) -> Value {
        self.said("stop", json!({}))
    }

    /// Returns the event when the session ends.
    pub fn end(&self) -> Value {
        self.said("end", json!({}))
    }

    /// Returns one event of every kind, for tests that change them.
    pub fn all(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if self.has("start") {
            all.push(self.start("startup"));
        }
        if self.has("prompt") {
            all.push(self.prompt("p1", "look at @a.txt"));
        }
        all.extend([
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
