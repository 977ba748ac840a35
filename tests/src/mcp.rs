//! A small MCP client on standard input and output, written from the protocol's
//! documents: lines of JSON-RPC, in both versions.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wire::PATIENCE;

/// The field with touchmark's own result, next to a tool's text.
pub const RESULT: &str = "touchmark/result";

/// How client and server agree on the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25 and older: a handshake, then requests.
    Handshake,
    /// 2026-07-28: every request has what a handshake would contain.
    Stateless,
}

/// Both ways.
pub const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// A server and its only client.
pub struct Mcp {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    era: Era,
    /// Notifications that arrived before an answer.
    notes: Vec<Value>,
}

impl Mcp {
    /// Starts a server with this command, and performs the handshake if there
    /// is one.
    pub fn start(command: Command, era: Era) -> Self {
        let mut mcp = Self::raw(command, era);
        if era == Era::Handshake {
            let welcome = mcp.request(
                "initialize",
                json!({"protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": {"name": "test-client", "version": "7"}}),
            );
            assert_eq!(
                welcome["result"]["protocolVersion"], "2025-11-25",
                "{welcome}"
            );
            mcp.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        mcp
    }

    /// Starts a server with this command, without a handshake.
    pub fn raw(mut command: Command, era: Era) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("touchmark mcp starts");
        let output = child.stdout.take().expect("a pipe");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            next_id: 0,
            era,
            notes: Vec::new(),
        }
    }

    /// Sends bytes unchanged, and a line feed.
    pub fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        // One write. A missing server shows when no answer arrives.
        let _ = input.write_all(&[line, b"\n"].concat());
        let _ = input.flush();
    }

    /// Sends a message.
    pub fn say(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    /// Sends a request without waiting. Returns its id.
    pub fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        if self.era == Era::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "7"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.say(
            &json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}),
        );
        self.next_id
    }

    /// Returns the next message: an answer or a notification.
    pub fn message(&mut self) -> Value {
        let line = self
            .lines
            .recv_timeout(PATIENCE)
            .expect("the server says something");
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("not the protocol: {line:?}: {error}"))
    }

    /// Returns the answer to a request.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            // An error without an id answers a line that was no request.
            let of_nothing = message.get("error").is_some() && message["id"].is_null();
            assert!(
                of_nothing || message.get("method").is_some(),
                "unasked: {message}"
            );
            if !of_nothing {
                self.notes.push(message);
            }
        }
    }

    /// Sends a request and returns its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool and returns its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{tool}: {answer}");
        answer["result"].take()
    }

    /// Calls a tool, which must succeed. Returns touchmark's own result.
    pub fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["_meta"][RESULT].take()
    }

    /// Calls a tool, which must fail. Returns its error.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(
            result["content"][0]["text"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{result}"
        );
        result["_meta"][RESULT]["error"].take()
    }

    /// Returns the next notification.
    pub fn notification(&mut self) -> Value {
        if self.notes.is_empty() {
            self.message()
        } else {
            self.notes.remove(0)
        }
    }

    /// Returns the notifications that have arrived already.
    pub fn noted(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.notes)
    }

    /// Returns the server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input, and waits until the server exits.
    pub fn end(&mut self) -> ExitStatus {
        drop(self.input.take());
        self.ended()
    }

    /// Waits until the server exits.
    pub fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < until, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
