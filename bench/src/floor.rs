//! Measures floors: the least that an operation can cost on this machine.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::queue::Queue;

/// The argument that makes this program the answering process of the ping-pong.
pub(crate) const ECHO: &str = "echo-floor";

/// The size of a ping in bytes: about that of a small request.
const PING: usize = 64;

/// A separate process that sends back the bytes it receives, with one blocking
/// thread per connection. No program that answers over a Unix socket can be
/// faster.
#[derive(Debug)]
pub(crate) struct Echo {
    process: Child,
    socket: PathBuf,
}

impl Echo {
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        Self::spawn(directory.join("echo.sock"), &[])
    }

    /// Starts an echo process that drains an inotify queue of these directories
    /// before each answer. No program that watches can be faster.
    pub(crate) fn start_watching(directory: &Path, watched: &[&Path]) -> Result<Self> {
        Self::spawn(directory.join("watching-echo.sock"), watched)
    }

    fn spawn(socket: PathBuf, watched: &[&Path]) -> Result<Self> {
        let process = Command::new(std::env::current_exe()?)
            .arg(ECHO)
            .arg(&socket)
            .args(watched)
            .stdin(Stdio::null())
            .spawn()
            .context("the echo process cannot be started")?;
        let echo = Self { process, socket };
        let until = Instant::now() + Duration::from_secs(5);
        while !echo.socket.exists() {
            anyhow::ensure!(Instant::now() < until, "the echo process does not listen");
            thread::sleep(Duration::from_millis(1));
        }
        Ok(echo)
    }

    pub(crate) fn connect(&self) -> Result<Pinger> {
        Ok(Pinger(UnixStream::connect(&self.socket)?))
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The sending end of the ping-pong.
#[derive(Debug)]
pub(crate) struct Pinger(UnixStream);

impl Pinger {
    /// Sends a ping and waits for its echo.
    pub(crate) fn ping(&mut self) -> Result<()> {
        let mut bytes = [7; PING];
        self.0.write_all(&bytes)?;
        self.0.read_exact(&mut bytes)?;
        Ok(())
    }
}

/// Runs the echo process.
pub(crate) fn serve_echo(socket: &Path, watched: &[PathBuf]) -> Result<()> {
    let queue = match watched {
        [] => None,
        watched => Some(Arc::new(Queue::of_writes(
            watched.iter().map(PathBuf::as_path),
        )?)),
    };
    // The socket is bound under another name and renamed, so that a process
    // which sees the name can connect.
    let aside = socket.with_extension("new");
    let listener = UnixListener::bind(&aside)?;
    fs::rename(&aside, socket)?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        let queue = queue.clone();
        thread::spawn(move || {
            let mut bytes = [0; PING];
            while stream.read_exact(&mut bytes).is_ok()
                && queue.as_ref().is_none_or(|queue| queue.drain().is_ok())
                && stream.write_all(&bytes).is_ok()
            {}
        });
    }
    Ok(())
}

/// Returns the time of a stat of each file: the least that can show whether
/// they changed.
pub(crate) fn stat_sweep(files: &[PathBuf]) -> Result<Duration> {
    let started = Instant::now();
    for file in files {
        fs::symlink_metadata(file)?;
    }
    Ok(started.elapsed())
}

/// Returns the time of reading and hashing each file in one thread.
pub(crate) fn hash_sweep(files: &[PathBuf]) -> Result<Duration> {
    let started = Instant::now();
    for file in files {
        touchmark_client::hash_of(&fs::read(file)?);
    }
    Ok(started.elapsed())
}
