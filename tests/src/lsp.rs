//! A small LSP client on standard input and output, written from the protocol's
//! documents.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use crate::framed::{framed, receive};
use crate::process::until;
use crate::wire::PATIENCE;

/// A server and its only client.
pub struct Lsp {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
    /// Notifications that arrived before something else.
    notes: VecDeque<Value>,
    /// The answer to `initialize`.
    pub welcome: Value,
    /// The answer to a request for the settings.
    pub settings: Value,
}

impl Lsp {
    /// Starts a server with this command, and says what the client can do and
    /// what its user has set.
    pub fn start(command: Command, capabilities: &Value, options: &Value) -> Self {
        let mut lsp = Self::raw(command);
        let params = json!({
            "processId": null,
            "rootUri": null,
            "clientInfo": {"name": "test-editor", "version": "7"},
            "capabilities": capabilities,
            "initializationOptions": options,
        });
        lsp.welcome = lsp.request("initialize", &params)["result"].take();
        lsp.notify("initialized", &json!({}));
        lsp
    }

    /// Starts a server with this command, without a word.
    pub fn raw(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("touchmark lsp starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            while let Some(message) = receive(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            messages,
            next_id: 0,
            notes: VecDeque::new(),
            welcome: Value::Null,
            settings: Value::Null,
        }
    }

    /// Sends bytes unchanged.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        // A missing server shows when no answer arrives.
        let _ = input.write_all(bytes);
        let _ = input.flush();
    }

    fn send(&mut self, message: &Value) {
        self.write(framed(&message.to_string()).as_bytes());
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its answer, with `result` or `error`.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notes.push_back(message);
        }
    }

    /// Returns the next message that is not a request of the server's. Those are
    /// answered as an editor does it.
    fn message(&mut self) -> Value {
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            let message = message.expect("the server says something");
            if message.get("id").is_none() || message.get("method").is_none() {
                return message;
            }
            let result = match message["method"].as_str() {
                Some("workspace/configuration") => json!([self.settings]),
                _ => Value::Null,
            };
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
    }

    /// Returns the parameters of the next notification of this kind.
    pub fn note(&mut self, method: &str) -> Value {
        loop {
            let at = self.notes.iter().position(|note| note["method"] == method);
            if let Some(mut note) = at.and_then(|at| self.notes.remove(at)) {
                return note["params"].take();
            }
            let message = self.message();
            self.notes.push_back(message);
        }
    }

    /// Returns the messages of this kind that have arrived before the last
    /// answer.
    pub fn noted(&self, method: &str) -> Vec<&Value> {
        let notes = self.notes.iter();
        notes.filter(|note| note["method"] == method).collect()
    }

    /// Opens a file with the text that it has on disk.
    pub fn open(&mut self, path: &Path) -> String {
        let text = std::fs::read_to_string(path).expect("a text");
        self.open_as(path, &text)
    }

    /// Opens a file with another text than it has on disk. Returns its URI.
    pub fn open_as(&mut self, path: &Path, text: &str) -> String {
        let uri = uri(path);
        let item = json!({"uri": uri, "languageId": "text", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": item}));
        uri
    }

    /// Replaces the text from one place (line and character, from 0) to another.
    pub fn change(&mut self, uri: &str, from: (u32, u32), to: (u32, u32), text: &str) {
        let position = |(line, character)| json!({"line": line, "character": character});
        let range = json!({"start": position(from), "end": position(to)});
        self.changes(uri, &json!([{"range": range, "text": text}]));
    }

    /// Replaces the whole text.
    pub fn replace(&mut self, uri: &str, text: &str) {
        self.changes(uri, &json!([{"text": text}]));
    }

    fn changes(&mut self, uri: &str, changes: &Value) {
        let document = json!({"uri": uri, "version": 2});
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.notify("textDocument/didChange", &params);
    }

    /// Says that the editor has written the file.
    pub fn saved(&mut self, uri: &str) {
        self.notify(
            "textDocument/didSave",
            &json!({"textDocument": {"uri": uri}}),
        );
    }

    /// Returns the text of a hover in a line, counted from 0; `None` without one.
    pub fn hover(&mut self, uri: &str, line: u32) -> Option<String> {
        let position = json!({"line": line, "character": 0});
        let params = json!({"textDocument": {"uri": uri}, "position": position});
        let answer = self.request("textDocument/hover", &params);
        let text = answer["result"]["contents"]["value"].as_str();
        text.map(str::to_owned)
    }

    /// Returns the code actions in a line, counted from 0.
    pub fn actions(&mut self, uri: &str, line: u32) -> Vec<Value> {
        let position = json!({"line": line, "character": 0});
        let params = json!({
            "textDocument": {"uri": uri},
            "range": {"start": position, "end": position},
            "context": {"diagnostics": []},
        });
        let answer = self.request("textDocument/codeAction", &params);
        answer["result"].as_array().expect("actions").clone()
    }

    /// Chooses the code action in a line whose title begins like this. Returns
    /// what the user is told.
    pub fn act(&mut self, uri: &str, line: u32, title: &str) -> String {
        let actions = self.actions(uri, line);
        let begins = |action: &&Value| {
            let text = action["title"].as_str().unwrap_or_default();
            text.starts_with(title)
        };
        let chosen = actions.iter().find(begins);
        let command =
            chosen.unwrap_or_else(|| panic!("no {title}: {actions:#?}"))["command"].clone();
        self.execute(&command)
    }

    /// Carries out a command. Returns what the user is told.
    pub fn execute(&mut self, command: &Value) -> String {
        let answer = self.request("workspace/executeCommand", command);
        assert_eq!(answer["result"], Value::Null, "{answer}");
        let told = self.note("window/showMessage");
        told["message"].as_str().expect("a message").to_owned()
    }

    /// Shuts the server down, and waits until it exits.
    pub fn end(&mut self) -> ExitStatus {
        let answer = self.request("shutdown", &Value::Null);
        assert_eq!(answer["result"], Value::Null, "{answer}");
        self.notify("exit", &Value::Null);
        self.ended()
    }

    /// Returns the server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input.
    pub fn close(&mut self) {
        drop(self.input.take());
    }

    /// Waits until the server exits.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the server does not end", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("a status")
    }
}

impl Drop for Lsp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the URI of a path, with everything escaped that may be.
fn uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}
