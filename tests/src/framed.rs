//! A client for the `Content-Length` wire, without touchmark's code.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::wire::{Answer, PATIENCE, answer};

/// Returns a body with its header.
pub fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Returns the next message; `None` at the end.
pub fn receive(stream: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).expect("a line") == 0 {
            return None;
        }
        let line = line.strip_suffix("\r\n").expect("a header ends in CR LF");
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("Content-Length: ") {
            length = Some(number.parse::<usize>().expect("a number"));
        }
    }
    let mut body = vec![0; length.expect("a Content-Length")];
    stream.read_exact(&mut body).expect("a whole body");
    Some(serde_json::from_slice(&body).expect("JSON"))
}

/// One connection with the `Content-Length` wire.
pub struct Framed {
    stream: BufReader<UnixStream>,
    next: u64,
    events: VecDeque<Value>,
}

impl Framed {
    /// Connects to a daemon.
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("a daemon that listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self {
            stream: BufReader::new(stream),
            next: 1,
            events: VecDeque::new(),
        }
    }

    /// Sends a body with its header.
    pub fn send(&mut self, body: &str) {
        let sent = self.stream.get_mut().write_all(framed(body).as_bytes());
        sent.expect("a daemon that reads");
    }

    /// Returns the next message: an answer or a notification.
    pub fn receive(&mut self) -> Value {
        receive(&mut self.stream).expect("an open connection")
    }

    /// Sends a request and returns its answer. Events that arrive first are
    /// queued.
    pub fn call(&mut self, method: &str, params: &Value) -> Answer {
        let id = self.next;
        self.next += 1;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        loop {
            let message = self.receive();
            if message["method"] == "event" {
                self.events.push_back(message["params"].clone());
                continue;
            }
            assert_eq!(message["id"], id, "{message}");
            return answer(&message);
        }
    }

    /// Returns the parameters of the next notification.
    pub fn event(&mut self) -> Value {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        let message = self.receive();
        assert_eq!(message["method"], "event", "{message}");
        message["params"].clone()
    }
}
