//! Removes what is left of workspaces that no longer exist (LIFE-1): old state,
//! and what a killed daemon left next to its socket. No daemon will start for
//! these workspaces again, so every other daemon cleans up at its start.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

use touchmark_proto::{Holder, Places};

use super::{GONE, Lock, lock};
use crate::fleet::numbers;
use crate::{Error, guard, store};

/// Which state of workspaces that no longer exist is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unused {
    /// The time since which nothing was written in it; `None` for state of any
    /// age.
    oldest: Option<SystemTime>,
    /// Whether state is also removed if its recovery directory contains bytes
    /// that guarded writes have replaced, and that may exist nowhere else
    /// (GUARD-1).
    recovered: bool,
}

/// The result of [`forget_vanished`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Vanished {
    /// The workspaces whose state was removed.
    pub removed: Vec<PathBuf>,
    /// The workspaces that do not exist either, but whose state stays because
    /// of its recovery directory.
    pub kept: Vec<PathBuf>,
}

/// Removes the state of workspaces that no longer exist, whatever its age, and
/// returns their paths. `own` and state that a daemon uses are left alone.
pub fn forget_vanished(own: &Places, recovered: bool) -> Vanished {
    let unused = Unused {
        oldest: None,
        recovered,
    };
    sweep(own, unused, &AtomicBool::new(false))
}

/// A cleanup on a separate thread.
#[derive(Debug)]
pub struct Sweep {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sweep {
    /// Starts to remove what daemons of removed workspaces have left: locks,
    /// sockets and fences immediately, state if it was not used since `oldest`.
    /// `own` is left alone, and so is everything that is not understood.
    pub fn start(own: Places, oldest: SystemTime) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("sweep".into());
        let unused = Unused {
            oldest: Some(oldest),
            // The recovery directory's time limit is part of `oldest`.
            recovered: true,
        };
        let thread = thread.spawn(move || drop(sweep(&own, unused, &stopped)));
        Self {
            stop,
            // If the thread could not be started, the next start cleans up.
            thread: thread.ok(),
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The lock that the thread holds must not be left behind.
        if let Some(thread) = self.thread.take() {
            let _died = thread.join();
        }
    }
}

fn sweep(own: &Places, unused: Unused, stopped: &AtomicBool) -> Vanished {
    let mut vanished = Vanished::default();
    let Some(states) = own.state.parent() else {
        return vanished;
    };
    for directory in [states, &own.runtime] {
        for key in names(directory, Some("lock")) {
            if stopped.load(Ordering::Relaxed) {
                return vanished;
            }
            let lock = directory.join(format!("{key}.lock"));
            let named = named_in(&lock).filter(|_| key != own.key);
            if let Some(holder) = named.filter(|holder| is_gone(&holder.workspace)) {
                // Taking the lock also removes what is next to its socket.
                let _in_use = take(&lock, &key, holder);
            }
        }
    }
    for key in names(states, None) {
        if stopped.load(Ordering::Relaxed) {
            return vanished;
        }
        let state = states.join(&key);
        if key == own.key || !is_unused(&state, unused.oldest) {
            continue;
        }
        let Ok(Some(workspace)) = store::workspace(&state) else {
            continue;
        };
        if !is_gone(&workspace) {
            continue;
        }
        let lock = states.join(format!("{key}.lock"));
        let holder = named_in(&lock).unwrap_or_else(|| Holder {
            pid: 0,
            socket: Some(own.runtime.join(format!("{key}.sock"))),
            workspace: workspace.clone(),
        });
        let Ok(_lock) = take(&lock, &key, holder) else {
            continue;
        };
        // This is checked under the lock, since the workspace may have been
        // created again.
        if !is_gone(&workspace) {
            continue;
        }
        if !unused.recovered && guard::kept(&state) > 0 {
            vanished.kept.push(workspace);
            continue;
        }
        // The rename removes it in one step: half of a state would not name its
        // workspace.
        match fs::rename(&state, state.with_extension(GONE)) {
            Ok(()) => {
                tracing::info!("removing the state of {workspace:?}, which is gone");
                vanished.removed.push(workspace);
            }
            Err(error) => tracing::warn!("{}: {error}", state.display()),
        }
    }
    for key in names(states, Some(GONE)) {
        let state = states.join(key).with_extension(GONE);
        if let Err(error) = fs::remove_dir_all(&state) {
            tracing::warn!("{}: {error}", state.display());
        }
    }
    vanished
}

/// Takes the lock of a workspace without a daemon, and removes what else its
/// last holder left in its runtime directory.
fn take(lock: &Path, key: &str, last: Holder) -> Result<Lock, Error> {
    let holder = Holder {
        pid: std::process::id(),
        ..last
    };
    let at = lock;
    let lock = Lock::take(at, &holder)?;
    numbers::remove_stale(at);
    // A path that came from `TOUCHMARK_SOCKET` may name anything by now.
    let name = format!("{key}.sock");
    if let Some(socket) = holder.socket.filter(|socket| socket.ends_with(name)) {
        let _none = fs::remove_file(&socket);
        let _none = fs::remove_dir_all(socket.with_extension("fence"));
    }
    Ok(lock)
}

/// Returns the keys of workspaces that the names in a directory contain.
fn names(directory: &Path, extension: Option<&str>) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = PathBuf::from(entry.file_name());
            let fits = name.extension().and_then(OsStr::to_str) == extension;
            let key = name.file_stem()?.to_str()?.to_owned();
            (fits && Places::is_key(&key)).then_some(key)
        })
        .collect()
}

/// Returns the holder that a lock file names, if its workspace is a full path.
fn named_in(lock: &Path) -> Option<Holder> {
    lock::named_in(lock).filter(|holder| holder.workspace.is_absolute())
}

/// Returns whether a workspace does not exist. One that is only out of reach
/// does.
fn is_gone(workspace: &Path) -> bool {
    fs::symlink_metadata(workspace).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns whether nothing in a state directory was written since `oldest`. Its
/// daemon writes at each start and end.
fn is_unused(state: &Path, oldest: Option<SystemTime>) -> bool {
    let Some(oldest) = oldest else { return true };
    let written = |path: &Path| fs::symlink_metadata(path)?.modified();
    // The directory comes first: it is newer for all but a few of what may be a
    // thousand, and then no other file is looked at.
    match written(state) {
        Ok(written) if written <= oldest => {}
        _ => return false,
    }
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let mut times = entries.filter_map(|entry| written(&entry.path()).ok());
    times.all(|written| written <= oldest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use touchmark_proto::BaseDirectories;

    use super::*;
    use crate::life::private_directory;

    /// Returns the places of a workspace that a daemon has served, with what it
    /// left.
    fn left(base: &BaseDirectories, workspace: &Path) -> Places {
        fs::create_dir_all(workspace).unwrap();
        let places = Places::new(base, workspace, None);
        private_directory(&places.runtime).unwrap();
        let options = store::Options::new(&places.state, workspace);
        store::open(&options, |_| {}).unwrap().store.close();
        let holder = Holder {
            pid: 999_999_999,
            socket: Some(places.socket.clone()),
            workspace: workspace.to_owned(),
        };
        fs::write(&places.lock, holder.text()).unwrap();
        fs::write(&places.socket, "").unwrap();
        fs::create_dir(&places.fence).unwrap();
        places
    }

    fn is_there(places: &Places) -> (bool, bool) {
        let beside = [&places.lock, &places.socket, &places.fence];
        let there = beside.iter().filter(|path| path.exists()).count();
        assert!(there == 0 || there == 3, "{there} of 3 in {places:?}");
        (there == 3, places.state.exists())
    }

    #[test]
    fn what_is_gone_and_past_its_time_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let base = BaseDirectories {
            runtime: Some(home.join("run")),
            state: home.join("state"),
            config: home.join("config"),
            cache: home.join("cache"),
        };
        let own = left(&base, &home.join("own"));
        let living = left(&base, &home.join("living"));
        let gone = left(&base, &home.join("gone"));
        let held = left(&base, &home.join("held"));
        let _served = Lock::of(&held, &home.join("held")).unwrap();
        let strange = base.state_directory().join("0123456789abcdef");
        fs::create_dir(&strange).unwrap();
        // Neither is opened: a read of one of them never ends.
        let fifo = base.state_directory().join("0123456789abcde0.lock");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let endless = base.state_directory().join("0123456789abcde1.lock");
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        // An interrupted removal is completed.
        let half = base.state_directory().join("fedcba9876543210.gone");
        fs::create_dir_all(half.join("recovery")).unwrap();
        for name in ["gone", "held"] {
            fs::remove_dir(home.join(name)).unwrap();
        }
        let bytes = gone.state.join("recovery/r1.json");
        fs::create_dir_all(bytes.parent().unwrap()).unwrap();
        fs::write(&bytes, "{}").unwrap();
        let an_hour = Unused {
            oldest: Some(SystemTime::now() - Duration::from_secs(3600)),
            recovered: true,
        };
        let nothing = Vanished::default();
        assert_eq!(sweep(&own, an_hour, &AtomicBool::new(false)), nothing);
        assert_eq!(is_there(&gone), (false, true), "its time is not up");
        let named = vec![home.join("gone")];
        let (removed, kept) = (Vec::new(), named.clone());
        assert_eq!(forget_vanished(&own, false), Vanished { removed, kept });
        assert_eq!(is_there(&gone), (false, true), "its bytes are not named");
        let (removed, kept) = (named, Vec::new());
        assert_eq!(forget_vanished(&own, true), Vanished { removed, kept });
        assert_eq!(is_there(&gone), (false, false));
        for places in [&own, &living, &held] {
            assert!(is_there(places).1, "{places:?}");
        }
        assert!(is_there(&own).0 && is_there(&living).0);
        assert!(strange.exists(), "it is not known what that is");
        assert!(!half.exists());
    }
}
