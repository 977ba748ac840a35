//! A real collector: `rotel`, from PyPI. It passes what it takes on to another
//! address, by OTLP over HTTP.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::children;
use crate::fetched;
use crate::process::until;

/// The collector's package.
pub const PACKAGE: &str = "rotel==0.0.1a15";

/// Python's messages of OTLP: another decoder.
pub const DECODER: &str = "opentelemetry-proto==1.45.2";

/// Returns a Python interpreter that has [`DECODER`], and the collector's
/// program, or `None` if they cannot be fetched. `what` is then reported as not
/// tested.
pub fn fetched(what: &str) -> Option<(PathBuf, PathBuf)> {
    let python = fetched::python("rotel", &[PACKAGE, DECODER], what)?;
    let found = Command::new(&python)
        .args(["-c", "import rotel; print(rotel.__path__[0])"])
        .output()
        .expect("python");
    let package = String::from_utf8(found.stdout).expect("UTF-8");
    Some((python, PathBuf::from(package.trim()).join("rotel-agent")))
}

/// A running collector. It is killed when this is dropped.
pub struct Rotel {
    program: PathBuf,
    next: String,
    port: u16,
    /// A directory for its files.
    room: tempfile::TempDir,
    child: Option<Child>,
}

impl Rotel {
    /// Starts a collector that sends everything on to `next`, such as
    /// `http://127.0.0.1:4318`.
    pub fn new(program: PathBuf, next: &str) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let mut rotel = Self {
            program,
            next: next.into(),
            port,
            room: tempfile::tempdir().expect("a directory"),
            child: None,
        };
        rotel.start();
        rotel
    }

    /// Returns the address for `telemetry.endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the id of its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running collector").id()
    }

    /// Starts it again at the same address, and waits until it listens.
    pub fn start(&mut self) {
        let file = |name: &str| self.room.path().join(name);
        let mut command = Command::new(&self.program);
        command
            .arg("start")
            .arg(format!("--otlp-http-endpoint=127.0.0.1:{}", self.port))
            // Any free port: nothing sends to it.
            .arg("--otlp-grpc-endpoint=127.0.0.1:0")
            .arg("--exporter=otlp")
            .arg("--otlp-exporter-protocol=http")
            .arg(format!("--otlp-exporter-endpoint={}", self.next))
            .arg("--pid-file")
            .arg(file("pid"))
            .arg("--log-file")
            .arg(file("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.child = Some(children::start(&mut command).expect("the collector"));
        until("the collector listens", || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
        });
    }

    /// Kills it (`kill -9`).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        self.kill();
    }
}
