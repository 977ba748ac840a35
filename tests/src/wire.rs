//! A client for the JSON lines wire, without touchmark's code.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take before the test fails. Far more than any answer
/// takes, so that a busy machine is not mistaken for a hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An error as it is on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// JSON-RPC's error number.
    pub code: i64,
    /// The value of `data.code`.
    pub name: String,
    /// One sentence.
    pub message: String,
    /// The whole `data`.
    pub data: Value,
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name, self.code, self.message)
    }
}

/// An answer: a result or an error.
pub type Answer = Result<Value, RpcError>;

/// One connection with the JSON lines wire.
pub struct Client {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    next: u64,
    /// Answers that arrived before they were waited for.
    answers: HashMap<u64, Answer>,
    /// Notifications, in the order of their arrival.
    events: VecDeque<Value>,
    partial: Vec<u8>,
}

impl Client {
    /// Connects to a daemon.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Self {
            stream,
            reader,
            next: 1,
            answers: HashMap::new(),
            events: VecDeque::new(),
            partial: Vec::new(),
        })
    }

    /// Sends a request and returns its id.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn try_send(&mut self, method: &str, params: &Value) -> std::io::Result<u64> {
        let id = self.next;
        self.next += 1;
        let mut line =
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        line.push('\n');
        self.stream.write_all(line.as_bytes())?;
        Ok(id)
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.try_send(method, params)
            .unwrap_or_else(|error| panic!("sending {method}: {error}"))
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: u64) -> Answer {
        self.try_answer(id)
            .unwrap_or_else(|error| panic!("waiting for answer {id}: {error}"))
    }

    /// Waits for the answer to a request. A closed connection is a system
    /// error.
    ///
    /// # Errors
    /// The connection was closed, or nothing arrived for [`PATIENCE`].
    pub fn try_answer(&mut self, id: u64) -> std::io::Result<Answer> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(answer);
            }
            if !self.pump()? && Instant::now() > end {
                return Err(std::io::Error::new(ErrorKind::TimedOut, "no answer came"));
            }
        }
    }

    /// Sends a request and returns its answer, or the system's error if there is
    /// none.
    ///
    /// # Errors
    /// The connection is closed, or nothing arrived for [`PATIENCE`].
    pub fn try_call(&mut self, method: &str, params: &Value) -> std::io::Result<Answer> {
        let id = self.try_send(method, params)?;
        self.try_answer(id)
    }

    /// Sends a request and returns its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Answer {
        let id = self.send(method, &params);
        self.answer(id)
    }

    /// Sends a request, which must succeed. Returns the result.
    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        let asked = params.to_string();
        self.call(method, params)
            .unwrap_or_else(|error| panic!("{method} {asked:.300}: {error} {}", error.data))
    }

    /// Sends a request, which must fail with this error.
    pub fn refused(&mut self, method: &str, params: Value, name: &str) -> RpcError {
        let asked = params.to_string();
        match self.call(method, params) {
            Ok(result) => panic!("{method} {asked:.300}: expected {name}, got {result}"),
            Err(error) => {
                assert_eq!(error.name, name, "{method} {asked:.300}: {error}");
                assert!(
                    error.data["hint"].is_string(),
                    "{method}: an error without a hint: {}",
                    error.data
                );
                error
            }
        }
    }

    /// Sends many requests without waiting in between. Returns the answers in
    /// the order of the requests.
    pub fn many(&mut self, requests: &[(&str, Value)]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(requests.len());
        // In portions, so that neither side's socket buffer fills up while the
        // other is still writing.
        for portion in requests.chunks(50) {
            let ids: Vec<u64> = portion
                .iter()
                .map(|(method, params)| self.send(method, params))
                .collect();
            answers.extend(ids.into_iter().map(|id| self.answer(id)));
        }
        answers
    }

    /// Returns the parameters of the next notification.
    pub fn event(&mut self) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            let came = self.pump().expect("the connection, waiting for an event");
            assert!(came || Instant::now() < end, "no event came");
        }
    }

    /// Returns notifications until one satisfies `wanted`. That one is the
    /// last.
    pub fn events_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let event = self.event();
            let done = wanted(&event);
            seen.push(event);
            if done {
                return seen;
            }
        }
    }

    /// Returns the notifications that arrived before the answers read so far.
    pub fn arrived(&mut self) -> Vec<Value> {
        self.events.drain(..).collect()
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Returns the next whole line unchanged; `None` at the end of the
    /// connection.
    pub fn raw_line(&mut self) -> Option<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.line() {
                Ok(Some(line)) => return Some(String::from_utf8_lossy(&line).into_owned()),
                Ok(None) => assert!(Instant::now() < end, "no line came"),
                Err(_) => return None,
            }
        }
    }

    /// Returns the raw stream.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Returns a line if one arrives within the stream's read timeout.
    fn line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        match self.reader.read_until(b'\n', &mut self.partial) {
            Ok(_) if self.partial.last() == Some(&b'\n') => {
                Ok(Some(std::mem::take(&mut self.partial)))
            }
            Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one message if one arrives. Returns whether one did.
    fn pump(&mut self) -> std::io::Result<bool> {
        let Some(line) = self.line()? else {
            return Ok(false);
        };
        let message: Value = serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message["method"] == "event" {
            self.events.push_back(message["params"].clone());
        } else {
            let id = message["id"]
                .as_u64()
                .unwrap_or_else(|| panic!("an answer without an id of ours: {message}"));
            self.answers.insert(id, answer(&message));
        }
        Ok(true)
    }
}

/// A connection that is opened again after the daemon was killed.
pub struct Link {
    socket: PathBuf,
    client: Option<Client>,
}

impl Link {
    /// Returns a connection that is not open yet.
    pub fn new(socket: &Path) -> Self {
        let (socket, client) = (socket.to_owned(), None);
        Self { socket, client }
    }

    /// Opens the connection if it is not open. Returns whether it is.
    pub fn connect(&mut self) -> bool {
        if self.client.is_none() {
            self.client = Client::connect(&self.socket).ok();
        }
        self.client.is_some()
    }

    /// Sends a request. Returns `None` if no answer arrived: the request may or
    /// may not have taken effect.
    pub fn ask(&mut self, method: &str, params: &Value) -> Option<Answer> {
        self.connect();
        let answer = self.client.as_mut()?.try_call(method, params);
        if answer.is_err() {
            self.client = None;
        }
        answer.ok()
    }
}

/// Returns the answer in a JSON-RPC message.
pub fn answer(message: &Value) -> Answer {
    match message.get("error") {
        None | Some(Value::Null) => Ok(message["result"].clone()),
        Some(error) => Err(RpcError {
            code: error["code"].as_i64().expect("an error has a code"),
            name: error["data"]["code"].as_str().unwrap_or("").to_owned(),
            message: error["message"].as_str().unwrap_or("").to_owned(),
            data: error["data"].clone(),
        }),
    }
}

/// Runs a future to completion, on a new tokio runtime.
pub fn on_tokio<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}
