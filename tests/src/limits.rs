//! An ordinary user's daemon with its own limit of watches: in a user
//! namespace, so that no other process is affected.

use std::fs;
use std::os::unix::fs::chown;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use crate::world::{World, binary, finish};

/// The daemon's user if the tests run as root, since such limits do not apply
/// to root.
const ORDINARY: u32 = 1000;

const NAMESPACE: [&str; 4] = ["unshare", "--user", "--map-current-user", "--keep-caps"];

/// Sets the limit, and becomes the daemon by `exec`. A second process stays in
/// the namespace to change the limit, since processes outside may not. It ends
/// with the daemon.
const SCRIPT: &str = r#"
    echo "$MOST" > "$LIMIT" || exit 1
    setpriv --pdeathsig KILL sh -c '
        while read -r most < "$ORDERS"; do
            echo "$most" > "$LIMIT" && echo done > "$DONE"
        done' &
    exec "$@"
"#;

/// A limit: a file in `/proc/sys/user`, see namespaces(7).
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// `max_inotify_watches`
    Watches,
    /// `max_inotify_instances`
    Instances,
}

impl Limit {
    fn file(self) -> &'static str {
        match self {
            Self::Watches => "/proc/sys/user/max_inotify_watches",
            Self::Instances => "/proc/sys/user/max_inotify_instances",
        }
    }
}

/// Runs a test as an ordinary user, in a world whose daemon is not started yet
/// and will have this limit. Prints a message and skips the test where the
/// system has no such namespaces.
pub fn limited(limit: Limit, most: u32, test: impl FnOnce(World) + Send) {
    as_ordinary_user(|place| {
        if let Err(cause) = possible(place) {
            println!("not tested: no limits of its own for a daemon: {cause}");
            return;
        }
        let mut world = World::asleep_in(place);
        world.launch_through(&[&NAMESPACE[..], &["sh", "-c", SCRIPT, "sh"]].concat());
        world.set_env("LIMIT", limit.file());
        world.set_env("MOST", &most.to_string());
        for (name, fifo) in [("ORDERS", "orders"), ("DONE", "done")] {
            let fifo = world.outside().join(fifo);
            mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
            world.set_env(name, fifo.to_str().expect("a UTF-8 path"));
        }
        test(world);
    });
}

/// Runs a test as an ordinary user, with a directory for worlds.
pub fn as_ordinary_user(test: impl FnOnce(&Path) + Send) {
    let place = tempfile::Builder::new()
        .prefix("tm")
        .tempdir()
        .expect("a place for a world");
    let run = || {
        if geteuid().is_root() {
            chown(place.path(), Some(ORDINARY), Some(ORDINARY)).expect("a gift");
            become_ordinary();
        }
        test(place.path());
    };
    // On a separate thread, since it cannot become root again.
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    if let Err(panic) = joined {
        resume_unwind(panic);
    }
}

/// Changes the limit of the running daemon.
pub fn set(world: &World, most: u32) {
    let orders = world.outside().join("orders");
    fs::write(orders, format!("{most}\n")).expect("an order");
    let done = fs::read(world.outside().join("done")).expect("an answer");
    assert_eq!(done, b"done\n", "the limit is not set");
}

/// Makes this thread, and processes that it starts, an ordinary user's.
fn become_ordinary() {
    set_thread_groups(&[]).expect("no other groups");
    set_thread_gid(Gid::from_raw(ORDINARY)).expect("another group");
    set_thread_uid(Uid::from_raw(ORDINARY)).expect("another user");
}

/// Checks whether this user may have a namespace, and may run the daemon in it.
fn possible(place: &Path) -> Result<(), String> {
    let child = Command::new(NAMESPACE[0])
        .args(&NAMESPACE[1..])
        .args(["sh", "-c", "echo 5 > \"$0\" && exec \"$@\""])
        .arg(Limit::Watches.file())
        .arg(binary())
        .arg("--version")
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("unshare: {error}"))?;
    let output = finish(child, "unshare");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
