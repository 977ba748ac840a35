//! The line to the store: a gate, rotel, and a store that speaks ClickHouse's
//! HTTP (`store.py`), and the disturbances of all three.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mounts::{detach, mount};
use crate::parts::not_tested;
use crate::wire::PATIENCE;
use crate::{children, fetched};

use super::load::Load;
use super::page;

/// The packages: a collector, ClickHouse, and a decoder of OTLP.
const PACKAGES: [&str; 3] = [
    "rotel==0.0.1a15",
    "chdb==4.4.0",
    "opentelemetry-proto==1.45.2",
];

/// The bytes of the store's file system.
const STORE: &str = "size=512m";

/// Returns the path of a Python program of this directory.
fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/fleet_export")
        .join(name)
}

/// Returns the interpreter with the packages, or `None` if they cannot be
/// fetched or do not run.
pub fn python(what: &str) -> Option<PathBuf> {
    let python = fetched::python("fleet", &PACKAGES, what)?;
    // It is linked with one version of Python's library.
    let runs = Command::new(rotel(&python)).arg("--version").output();
    if !runs.is_ok_and(|output| output.status.success()) {
        not_tested(&format!("{what}: rotel does not run here"));
        return None;
    }
    Some(python)
}

fn rotel(python: &Path) -> PathBuf {
    let find = "import os, rotel; print(os.path.dirname(rotel.__file__))";
    let output = Command::new(python).args(["-c", find]).output();
    let directory = String::from_utf8(output.expect("python").stdout).expect("UTF-8");
    Path::new(directory.trim()).join("rotel-agent")
}

/// A gate, a collector and a store. They end when this is dropped.
pub struct Line {
    python: PathBuf,
    rotel: PathBuf,
    directory: TempDir,
    ports: [u16; 4],
    collector: Option<Child>,
    /// What collectors have used that were ended.
    used: Load,
    store: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    mounted: bool,
}

impl Line {
    /// Starts all of it. A file system is mounted for the store if `mounts`.
    pub fn new(python: &Path, mounts: bool) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("fleet")
            .tempdir()
            .expect("a directory");
        let rows = directory.path().join("rows");
        fs::create_dir(&rows).expect("a directory");
        if mounts {
            mount("tmpfs", "rows", STORE, &rows);
        }
        // All are open at the same time, so that they differ.
        let open: Vec<TcpListener> = (0..4)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"))
            .collect();
        let port = |at: usize| open[at].local_addr().expect("an address").port();
        let ports = [port(0), port(1), port(2), port(3)];
        drop(open);
        let mut command = Command::new(python);
        command
            .arg(program("store.py"))
            .args(ports[..3].iter().map(u16::to_string))
            .arg(&rows)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut store = children::start(&mut command).expect("the store");
        let commands = store.stdin.take().expect("its input");
        let mut answers = BufReader::new(store.stdout.take().expect("its output"));
        let mut ready = String::new();
        answers.read_line(&mut ready).expect("the store is ready");
        assert_eq!(ready, "{}\n", "the store does not start");
        let mut line = Self {
            python: python.to_owned(),
            rotel: rotel(python),
            directory,
            ports,
            collector: None,
            used: Load::default(),
            store,
            commands,
            answers,
            mounted: mounts,
        };
        line.start();
        line
    }

    /// Returns the address to which daemons send.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    fn rows(&self) -> PathBuf {
        self.directory.path().join("rows")
    }

    /// Starts rotel, and waits until it accepts connections.
    pub fn start(&mut self) {
        assert!(self.collector.is_none(), "rotel is running");
        let at = |port: u16| format!("127.0.0.1:{port}");
        let log = self.directory.path().join("rotel.log");
        let log = File::options().create(true).append(true).open(log);
        let log = log.expect("a log");
        let mut command = Command::new(&self.rotel);
        command
            .arg("start")
            .args(["--otlp-http-endpoint", &at(self.ports[1])])
            .args(["--otlp-grpc-endpoint", &at(self.ports[3])])
            .args(["--exporter", "clickhouse"])
            .arg("--clickhouse-exporter-endpoint")
            .arg(format!("http://{}", at(self.ports[2])))
            .args(["--clickhouse-exporter-database", "otel"])
            // The store does not unpack.
            .args(["--clickhouse-exporter-compression", "none"])
            .arg("--otlp-with-logs-processor")
            .arg(page::processor())
            .current_dir(self.directory.path())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .stdin(Stdio::null());
        self.collector = Some(children::start(&mut command).expect("rotel"));
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports[1])).is_err() {
            assert!(Instant::now() < end, "rotel does not listen");
            // Polls, since rotel does not report that it is ready.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: Signal) {
        let collector = self.collector.as_ref().expect("rotel runs");
        let pid = i32::try_from(collector.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("a signal");
    }

    /// Kills rotel (`kill -9`), and waits until it has exited.
    pub fn kill(&mut self) {
        self.note();
        self.signal(Signal::KILL);
        self.ended();
    }

    /// Ends rotel by SIGTERM, and waits until it has exited.
    pub fn end(&mut self) {
        self.note();
        self.signal(Signal::TERM);
        self.ended();
    }

    fn note(&mut self) {
        let used = self.load();
        self.used = Load { private: 0, ..used };
    }

    fn ended(&mut self) {
        let mut collector = self.collector.take().expect("rotel runs");
        collector.wait().expect("rotel's end");
    }

    /// Stops rotel (SIGSTOP): its port accepts connections, and nothing
    /// answers.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues a stopped rotel.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Fills the store's file system.
    pub fn fill(&self) {
        if !self.mounted {
            return;
        }
        let mut ballast = File::create(self.rows().join("ballast")).expect("a file");
        let mut size = 1 << 20;
        // A write may be done in part, so the last ones are small.
        while size > 0 {
            if ballast.write_all(&vec![0; size]).is_err() {
                size /= 2;
            }
        }
    }

    /// Makes room in the store's file system again.
    pub fn make_room(&self) {
        if self.mounted {
            fs::remove_file(self.rows().join("ballast")).expect("the ballast");
        }
    }

    /// Sends a command to the store.
    pub fn say(&mut self, command: &str) -> Value {
        writeln!(self.commands, "{command}").expect("the store's input");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("an answer");
        serde_json::from_str(&answer).expect("JSON")
    }

    /// Returns what passed so far.
    pub fn counts(&mut self) -> BTreeMap<String, u64> {
        serde_json::from_value(self.say("counts")).expect("counts")
    }

    /// Returns what rotel has used since its first start.
    pub fn load(&self) -> Load {
        let running = self.collector.as_ref();
        self.used
            + running
                .map(|child| Load::of(child.id()))
                .unwrap_or_default()
    }

    /// Loads the rows into ClickHouse, and returns the answers to queries: for
    /// each name the columns and the rows.
    pub fn ask(&self, queries: &BTreeMap<String, String>) -> BTreeMap<String, Answer> {
        let order = json!({
            "tables": page::read().tables,
            "rows": self.rows(),
            "queries": queries,
        });
        let mut command = Command::new(&self.python);
        command
            .arg(program("ask.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = children::start(&mut command).expect("python");
        let mut input = child.stdin.take().expect("its input");
        input
            .write_all(order.to_string().as_bytes())
            .expect("queries");
        drop(input);
        let output = child.wait_with_output().expect("answers");
        assert!(output.status.success(), "the queries fail");
        let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let answers = answers.as_object().expect("answers").iter();
        answers
            .map(|(name, answer)| {
                let columns = serde_json::from_value(answer["columns"].clone());
                let rows = serde_json::from_value(answer["rows"].clone());
                let answer = Answer {
                    columns: columns.expect("names"),
                    rows: rows.expect("rows"),
                };
                (name.clone(), answer)
            })
            .collect()
    }
}

/// The answer to a query.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

impl Answer {
    /// Returns the rows without shares, sorted. Numbers are numbers: ClickHouse
    /// writes those of 64 bits as texts.
    pub fn plain(&self) -> Vec<Vec<Value>> {
        let mut rows: Vec<Vec<Value>> = self
            .rows
            .iter()
            .map(|row| {
                let columns = self.columns.iter().zip(row);
                let counted = columns.filter(|(name, _)| *name != "percent");
                counted.map(|(_, value)| number(value)).collect()
            })
            .collect();
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    }
}

fn number(value: &Value) -> Value {
    let parsed = value.as_str().and_then(|text| text.parse::<u64>().ok());
    parsed.map_or_else(|| value.clone(), Value::from)
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(mut collector) = self.collector.take() {
            let _ = collector.kill();
            let _ = collector.wait();
        }
        let _ = self.store.kill();
        let _ = self.store.wait();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.path().join("rotel.log"));
            let log = log.unwrap_or_default();
            let tail = log.lines().rev().take(10).collect::<Vec<_>>();
            eprintln!("rotel's log, newest first:\n{}", tail.join("\n"));
        }
        if self.mounted {
            detach(&self.rows());
        }
    }
}
