//! systemd, or another manager with the same protocol: the socket that it
//! passed (sd_listen_fds(3)), and the reports to it (sd_notify(3)). Without a
//! manager all of this has no effect.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use listenfd::ListenFd;
use rustix::time::{ClockId, clock_gettime};

use crate::Error;

/// The minimum time between two reports of the status.
const STATUS_PACE: Duration = Duration::from_secs(5);

/// Returns the socket that the manager listens on and has passed to this
/// process, if any. Must be called only once.
///
/// # Errors
/// If it passed something else.
pub fn passed_socket() -> Result<Option<UnixListener>, Error> {
    let wrong = |cause: String| Error::Part {
        part: "socket activation",
        cause,
    };
    let mut passed = ListenFd::from_env();
    match passed.len() {
        0 => Ok(None),
        1 => passed
            .take_unix_listener(0)
            .map_err(|error| wrong(error.to_string())),
        many => Err(wrong(format!("one socket was expected, not {many}"))),
    }
}

/// Ends the connections that are waiting on a passed socket for a daemon that
/// cannot start. Otherwise the manager would start the daemon for them again
/// and again.
pub fn turn_away(socket: &UnixListener) {
    if socket.set_nonblocking(true).is_ok() {
        while socket.accept().is_ok() {}
    }
}

/// The manager's channel, and the interval in which it expects a sign of life
/// from the loop.
#[derive(Clone, Debug, Default)]
pub struct Manager {
    channel: Option<Arc<(UnixDatagram, SocketAddr)>>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// Returns the manager that this process's environment names.
    pub fn of_environment() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let own = |pid| pid == u64::from(std::process::id());
        let channel = variable("NOTIFY_SOCKET").and_then(|name| {
            open(name.as_bytes())
                .inspect_err(|error| tracing::warn!("the service manager: {error}"))
                .ok()
        });
        Self {
            // The variables may have been meant for a parent process.
            watchdog: number("WATCHDOG_USEC")
                .filter(|pause| *pause > 0 && number("WATCHDOG_PID").is_none_or(own))
                .map(Duration::from_micros),
            channel: channel.map(Arc::new),
        }
    }

    /// Reports that the daemon ends immediately, for a reason that is no
    /// failure.
    pub fn nothing_to_do(&self, why: &str) {
        // A service that ends before it was ready counts as failed.
        self.say(&format!("READY=1\nSTATUS={}", harmless(why)));
        self.say("STOPPING=1");
    }

    /// Sends a report. Returns whether it was accepted. A manager that does not
    /// read blocks nothing.
    fn say(&self, words: &str) -> bool {
        let Some(channel) = &self.channel else {
            return true;
        };
        let (socket, address) = &**channel;
        match socket.send_to_addr(words.as_bytes(), address) {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!("the service manager: {error}");
                false
            }
        }
    }
}

fn open(name: &[u8]) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// The loop's reports to the manager.
#[derive(Debug)]
pub(crate) struct ServiceReport {
    manager: Manager,
    ready: bool,
    /// The last status that was reported, and when.
    status: Option<(String, Instant)>,
    /// When to send the next sign of life.
    alive: Option<Instant>,
}

impl ServiceReport {
    pub(crate) fn new(manager: Manager) -> Self {
        let alive = manager.watchdog.map(|_| Instant::now());
        Self {
            manager,
            ready: false,
            status: None,
            alive,
        }
    }

    /// Returns whether there is a manager.
    pub(crate) fn is_heard(&self) -> bool {
        self.manager.channel.is_some()
    }

    /// Reports the state at the end of a turn: whether the daemon is ready, and
    /// a status line, if the line has changed and the last report is not too
    /// recent.
    pub(crate) fn turn(&mut self, ready: bool, status: String) {
        if ready && !self.ready {
            self.ready = self.manager.say("READY=1");
        }
        let now = Instant::now();
        let due = match &self.status {
            Some((told, at)) => *told != status && *at + STATUS_PACE <= now,
            None => true,
        };
        if due && self.manager.say(&format!("STATUS={}", harmless(&status))) {
            self.status = Some((status, now));
        }
    }

    /// Returns when the loop must run next to send a sign of life.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.alive
    }

    /// Sends the sign of life if it is due. It is sent by the loop itself, so
    /// that a loop that hangs is noticed.
    pub(crate) fn alive(&mut self, now: Instant) {
        let (Some(due), Some(pause)) = (self.alive, self.manager.watchdog) else {
            return;
        };
        if due <= now {
            self.manager.say("WATCHDOG=1");
            // Half of the interval, as sd_watchdog_enabled(3) recommends.
            self.alive = Some(now + pause / 2);
        }
    }

    /// Reports that the configuration is being read, until
    /// [`reloaded`](Self::reloaded).
    pub(crate) fn reloading(&mut self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.manager
            .say(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
        self.ready = false;
        // The result of the reload is reported together with its end.
        self.status = None;
    }

    /// Reports the end of [`reloading`](Self::reloading).
    pub(crate) fn reloaded(&mut self) {
        self.ready = self.manager.say("READY=1");
    }

    /// Reports that the daemon ends.
    pub(crate) fn stopping(&self, why: &str) {
        self.manager
            .say(&format!("STOPPING=1\nSTATUS=ending: {why}"));
    }
}

/// Returns a status as one line: a line break would begin another message to
/// the manager (SEC-4).
fn harmless(status: &str) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    status.chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn manager(watchdog: Option<Duration>) -> (tempfile::TempDir, UnixDatagram, Manager) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("notify");
        let heard = UnixDatagram::bind(&path).unwrap();
        heard.set_nonblocking(true).unwrap();
        let channel = open(path.as_os_str().as_bytes()).unwrap();
        let manager = Manager {
            channel: Some(Arc::new(channel)),
            watchdog,
        };
        (home, heard, manager)
    }

    fn next(heard: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 500];
        let count = heard.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..count].to_vec()).unwrap())
    }

    #[test]
    fn ready_once_it_is_and_a_status_when_it_changes() {
        let (_home, heard, manager) = manager(None);
        let mut report = ServiceReport::new(manager);
        report.turn(false, "comparing".into());
        assert_eq!(next(&heard).unwrap(), "STATUS=comparing");
        report.turn(true, "a\nREADY=0".into());
        assert_eq!(next(&heard).unwrap(), "READY=1");
        assert_eq!(next(&heard), None, "too soon for another status");
        report.status = Some(("a".into(), Instant::now().checked_sub(STATUS_PACE).unwrap()));
        report.turn(true, "a".into());
        assert_eq!(next(&heard), None, "the same");
        report.turn(true, "b\nREADY=0".into());
        assert_eq!(next(&heard).unwrap(), "STATUS=b\u{fffd}READY=0");
        assert_eq!(report.due(), None);
    }

    #[test]
    fn a_reload_begins_with_a_time_and_ends_ready() {
        let (_home, heard, manager) = manager(None);
        let mut report = ServiceReport::new(manager);
        report.reloading();
        let told = next(&heard).unwrap();
        let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.parse::<u64>().unwrap() > 0);
        report.reloaded();
        assert_eq!(next(&heard).unwrap(), "READY=1");
        report.stopping("asked to");
        assert_eq!(next(&heard).unwrap(), "STOPPING=1\nSTATUS=ending: asked to");
    }

    #[test]
    fn alive_twice_in_the_time_allowed() {
        let (_home, heard, manager) = manager(Some(Duration::from_secs(10)));
        let mut report = ServiceReport::new(manager);
        let now = Instant::now();
        report.alive(now);
        assert_eq!(next(&heard).unwrap(), "WATCHDOG=1");
        assert_eq!(report.due(), Some(now + Duration::from_secs(5)));
        report.alive(now + Duration::from_secs(4));
        assert_eq!(next(&heard), None);
        report.alive(now + Duration::from_secs(5));
        assert_eq!(next(&heard).unwrap(), "WATCHDOG=1");
    }

    #[test]
    fn a_manager_that_does_not_listen_holds_nobody_up_and_is_told_later() {
        let (_home, heard, manager) = manager(None);
        let full = (0..100_000).any(|_| !manager.say("STATUS=x"));
        assert!(full, "its queue takes everything");
        let mut report = ServiceReport::new(manager);
        report.turn(true, "y".into());
        assert!(!report.ready);
        while next(&heard).is_some() {}
        report.turn(true, "y".into());
        assert_eq!(next(&heard).unwrap(), "READY=1");
        assert_eq!(next(&heard).unwrap(), "STATUS=y");
    }

    #[test]
    fn those_who_wait_for_a_daemon_that_cannot_start_are_let_go() {
        use std::io::Read as _;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s");
        let socket = UnixListener::bind(&path).unwrap();
        let mut waiting = std::os::unix::net::UnixStream::connect(&path).unwrap();
        turn_away(&socket);
        assert_eq!(waiting.read(&mut [0]).unwrap(), 0);
    }
}
