//! Where daemons listen: the sockets of this user, and the lock files that name
//! them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use touchmark_proto::{BaseDirectories, Holder, Places};

use crate::Environment;
use crate::dial::{is_full, try_dial};
use crate::local::{is_own, is_socket, lives, locks};

/// Returns the socket of a workspace's daemon. A daemon that was started with
/// another runtime directory (by an agent that passes none on) listens
/// elsewhere than this environment says; its lock file names the socket
/// (SEC-1).
pub fn socket(places: &Places) -> PathBuf {
    let own = &places.socket;
    let Some(other) = holder(&places.lock).and_then(|holder| holder.socket) else {
        return own.clone();
    };
    let is_own_socket = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|file| is_own(&file) && is_socket(&file))
    };
    // A socket that `TOUCHMARK_SOCKET` names is preferred if a process listens
    // on it.
    let named = *own != places.usual_socket();
    let is_here = match other == *own {
        true => is_own_socket(own),
        false => named && listens(own),
    };
    if is_here {
        return own.clone();
    }
    // A killed daemon leaves its lock file behind. Another user might create a
    // socket at the path that it names, so the owner is checked.
    if other != *own && is_own_socket(&other) && listens(&other) {
        return other;
    }
    elsewhere(&places.lock, &other)
        .filter(|there| is_own_socket(there))
        .unwrap_or_else(|| own.clone())
}

/// Returns a path to the socket of a daemon that runs in another mount
/// namespace, such as a sandbox with a runtime directory of its own. `None` if
/// no process that can be seen here holds the lock.
fn elsewhere(lock: &Path, socket: &Path) -> Option<PathBuf> {
    locks::seen_by(locks::holder(lock)?, socket)
}

/// Returns the content of a lock file that belongs to this user.
pub(crate) fn holder(lock: &Path) -> Option<Holder> {
    Holder::parse(&text(lock)?)
}

/// Returns the content of a regular file that belongs to this user.
fn text(lock: &Path) -> Option<Vec<u8>> {
    let file = fs::symlink_metadata(lock).ok()?;
    if !file.is_file() || !is_own(&file) {
        return None;
    }
    fs::read(lock).ok()
}

/// Returns whether a service is installed for the workspace and no daemon runs,
/// started by systemd or otherwise.
pub fn is_asleep(places: &Places) -> bool {
    places.service.exists() && !is_held(places)
}

/// Returns whether a lock file names a running process. The process id may have
/// been reused; then a caller tries to connect in vain, which does no harm.
pub(crate) fn is_held(places: &Places) -> bool {
    [&places.lock, &places.spare_lock]
        .into_iter()
        .filter_map(|lock| Some((lock, text(lock)?)))
        // A lock file that is empty or incomplete was just taken. A process in a
        // namespace of its own has another number here.
        .any(|(lock, text)| {
            let holder = Holder::parse(&text);
            holder.is_none_or(|holder| lives(holder.pid)) || locks::holder(lock).is_some()
        })
}

/// Returns whether a process listens on the socket.
pub fn listens(socket: &Path) -> bool {
    // The file is checked first: `connect` costs more than a stat, and most
    // directories have no socket.
    fs::symlink_metadata(socket).is_ok_and(|file| is_socket(&file))
        && match try_dial(socket) {
            Ok(_) => true,
            // A daemon that is stopped or busy exists nevertheless.
            Err(error) => is_full(&error),
        }
}

/// Returns the contents of all lock files of this user, with the sockets as they
/// can be reached from here.
pub(crate) fn holders(base: &BaseDirectories) -> impl Iterator<Item = Holder> {
    named(base.state_directory(), "lock").filter_map(|lock| {
        let mut holder = holder(&lock)?;
        if let Some(socket) = &holder.socket
            && fs::symlink_metadata(socket).is_err()
        {
            let there = elsewhere(&lock, socket);
            holder.socket = there.or(holder.socket);
        }
        Some(holder)
    })
}

/// Returns the files in a directory whose names have this extension.
fn named(directory: PathBuf, extension: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(move |path| path.extension() == Some(OsStr::new(extension)))
}

/// Returns all sockets of this user's daemons, wherever they were started,
/// including those of daemons that have exited. Sockets on which only systemd
/// listens are left out.
pub fn sockets(environment: &Environment) -> Vec<PathBuf> {
    let base = &environment.base;
    let asleep = |socket: &PathBuf| {
        let key = socket.file_stem().and_then(OsStr::to_str);
        key.is_some_and(|key| is_asleep(&Places::of_key(base, key)))
    };
    let mut found: Vec<PathBuf> = holders(base)
        .filter_map(|holder| holder.socket)
        .chain(named(base.runtime_directory(), "sock"))
        .filter(|socket| !asleep(socket))
        .collect();
    found.sort();
    found.dedup();
    found
}
