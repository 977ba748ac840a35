//! A collector for OTLP over HTTP that does what a test orders, and a reader of
//! what it received. Both are written from the specification: neither HTTP nor
//! protobuf uses the daemon's libraries.

mod decode;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::wire::PATIENCE;

/// What a collector does with each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// It takes the request.
    Takes,
    /// It takes the request, and rejects that many of its records.
    Rejects(u8),
    /// It takes the request and closes the connection without an answer.
    TakesSilently,
    /// It takes nothing, and answers with this status, these header lines and
    /// this body.
    Answers(u16, &'static str, &'static str),
    /// It refuses requests that contain these bytes as malformed, and takes all
    /// others.
    RefusesWith(&'static str),
    /// It takes nothing, and answers with what is no HTTP.
    TalksNonsense,
    /// It takes nothing, and does not answer.
    Hangs,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path.
    pub path: String,
    /// The headers, the names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the collector took it.
    pub taken: bool,
    /// When it had arrived.
    pub at: Instant,
}

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// The name of the event.
    pub event: String,
    /// The time, in nanoseconds since 1970.
    pub time: u64,
    /// The attributes.
    pub attributes: BTreeMap<String, Value>,
    /// The attributes of the resource.
    pub resource: BTreeMap<String, Value>,
}

impl Logged {
    /// Returns its identity.
    pub fn uid(&self) -> String {
        self.text("log.record.uid")
    }

    /// Returns an attribute that is a text.
    pub fn text(&self, key: &str) -> String {
        let found = self.attributes.get(key).and_then(Value::as_str);
        found
            .unwrap_or_else(|| panic!("no {key} in {self:?}"))
            .to_owned()
    }
}

#[derive(Default)]
struct State {
    does: Option<Does>,
    received: Vec<Received>,
    /// The number of connections.
    connections: u64,
    /// Connections that are not answered.
    hanging: Vec<TcpStream>,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A collector. It stops when this is dropped.
pub struct Collector {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: Option<std::thread::JoinHandle<()>>,
}

impl Collector {
    /// Starts a collector that takes everything.
    pub fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let mut collector = Self {
            shared: Arc::default(),
            address: listener.local_addr().expect("its address"),
            serving: None,
        };
        collector.serve(listener);
        collector
    }

    /// Returns the address for `telemetry.endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes what the collector does from now on. Requests that hang are
    /// dropped.
    pub fn does(&self, does: Does) {
        let mut state = self.shared.lock();
        state.does = Some(does);
        state.hanging.clear();
    }

    /// Ends the collector's process, so to speak: its port is closed.
    pub fn goes_down(&mut self) {
        self.shared.lock().stopped = true;
        // Wakes the thread that accepts.
        let _closed = TcpStream::connect(self.address);
        if let Some(serving) = self.serving.take() {
            serving.join().expect("the collector's thread");
        }
        self.shared.lock().hanging.clear();
    }

    /// Opens the port again.
    pub fn comes_up(&mut self) {
        let end = Instant::now() + PATIENCE;
        let listener = loop {
            match TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        self.shared.lock().stopped = false;
        self.serve(listener);
    }

    /// Returns all requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.shared.lock().received.clone()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.lock().connections
    }

    /// Returns the records of all requests that were taken, repeated ones too.
    pub fn logged(&self) -> Vec<Logged> {
        let received = self.received();
        let taken = received
            .iter()
            .filter(|received| received.taken && received.path == "/v1/logs");
        taken
            .flat_map(|received| decode::logs(&received.body))
            .collect()
    }

    /// Returns the records by their identities. Repeated ones must be equal.
    pub fn joined(&self) -> BTreeMap<String, Logged> {
        let mut joined: BTreeMap<String, Logged> = BTreeMap::new();
        for logged in self.logged() {
            let uid = logged.uid();
            match joined.get(&uid) {
                Some(first) => assert_eq!(first.event, logged.event, "two facts are {uid}"),
                None => drop(joined.insert(uid, logged)),
            }
        }
        joined
    }

    /// Waits until something is true of the collector.
    pub fn wait(&self, what: &str, mut is_true: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_true(self) {
            let state = self.shared.lock();
            assert!(Instant::now() < end, "{what} does not happen");
            let _woken = self
                .shared
                .changed
                .wait_timeout(state, Duration::from_millis(100));
        }
    }

    /// Waits until that many requests have arrived.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait("a request", |collector| {
            collector.shared.lock().received.len() >= count
        });
    }

    fn serve(&mut self, listener: TcpListener) {
        let shared = Arc::clone(&self.shared);
        self.serving = Some(std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut state = shared.lock();
                if state.stopped {
                    return;
                }
                state.connections += 1;
                drop(state);
                if let Ok(stream) = stream {
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || {
                        let _broken = answer(&shared, stream);
                    });
                }
            }
        }));
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.goes_down();
    }
}

/// Reads one request and answers it.
fn answer(shared: &Shared, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let Some((path, headers, body)) = request(&stream)? else {
        return Ok(());
    };
    let mut state = shared.lock();
    let does = state.does.clone().unwrap_or(Does::Takes);
    let refused = |text: &str| body.windows(text.len()).any(|part| part == text.as_bytes());
    let does = match does {
        Does::RefusesWith(text) if refused(text) => Does::Answers(400, "", "no"),
        Does::RefusesWith(_) => Does::Takes,
        does => does,
    };
    let taken = matches!(does, Does::Takes | Does::Rejects(_) | Does::TakesSilently);
    state.received.push(Received {
        path,
        headers,
        body,
        taken,
        at: Instant::now(),
    });
    if does == Does::Hangs {
        state.hanging.push(stream.try_clone()?);
    }
    drop(state);
    shared.changed.notify_all();
    let protobuf = "Content-Type: application/x-protobuf\r\n";
    let bytes = match does {
        Does::Takes => http(200, protobuf, b""),
        // `partial_success` (1) with `rejected_log_records` (1).
        Does::Rejects(count) => http(200, protobuf, &[0x0a, 2, 0x08, count]),
        Does::Answers(status, head, body) => http(status, head, body.as_bytes()),
        Does::TalksNonsense => b"\x00\xffhello\r\n\r\nhello".to_vec(),
        Does::TakesSilently | Does::Hangs | Does::RefusesWith(_) => Vec::new(),
    };
    if does != Does::Hangs {
        stream.write_all(&bytes)?;
        stream.shutdown(Shutdown::Both)?;
    }
    Ok(())
}

fn http(status: u16, head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 {status} Status\r\n{head}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

type Request = (String, Vec<(String, String)>, Vec<u8>);

fn request(stream: &TcpStream) -> std::io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let packed = ("content-encoding".to_owned(), "gzip".to_owned());
    if headers.contains(&packed) {
        body = unpacked(body)?;
    }
    Ok(Some((path, headers, body)))
}

/// Unpacks a body by `gzip`. Real collectors compress what they pass on.
fn unpacked(body: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let mut gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = gzip.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || input.write_all(&body));
    let unpacked = gzip.wait_with_output()?.stdout;
    writing.join().expect("the writing thread")?;
    Ok(unpacked)
}
