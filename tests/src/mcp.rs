//! A small MCP client on standard input and output, written from the
//! protocol's texts: lines of JSON-RPC, in either era.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wire::PATIENCE;

/// Where the protocol's own result stands beside a tool's text.
pub const RESULT: &str = "touchmark/result";

/// How client and server come to terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25 and older: a handshake, then requests.
    Handshake,
    /// 2026-07-28: every request says all that a handshake would have said.
    Stateless,
}

/// Both.
pub const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// A server and its only client.
pub struct Mcp {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    era: Era,
    /// Notifications that came while an answer was awaited.
    notes: Vec<Value>,
}

impl Mcp {
    /// Starts a server by this command and comes to terms with it.
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

    /// The same without a word.
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

    /// Sends bytes as they are, and a line's end.
    pub fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        // One write: a server that has gone away is found out by its answer.
        let _ = input.write_all(&[line, b"\n"].concat());
        let _ = input.flush();
    }

    /// Sends a message.
    pub fn say(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    /// Sends a request without waiting; its id.
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

    /// The next message, whatever it is.
    pub fn message(&mut self) -> Value {
        let line = self
            .lines
            .recv_timeout(PATIENCE)
            .expect("the server says something");
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("not the protocol: {line:?}: {error}"))
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            // An error without an id answers what was no request.
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

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool; its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{tool}: {answer}");
        answer["result"].take()
    }

    /// Calls a tool that does what it is asked; the protocol's own result.
    pub fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["_meta"][RESULT].take()
    }

    /// Calls a tool that refuses; its error.
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

    /// The next notification.
    pub fn notification(&mut self) -> Value {
        if self.notes.is_empty() {
            self.message()
        } else {
            self.notes.remove(0)
        }
    }

    /// The notifications that came already.
    pub fn noted(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.notes)
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the input, and waits for the server's end.
    pub fn end(&mut self) -> ExitStatus {
        drop(self.input.take());
        self.ended()
    }

    /// Waits for the server's end.
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
