//! What is left of workspaces that are gone (LIFE-1): state past its time, and
//! what a killed daemon left beside the sockets. Nobody will start a daemon
//! there again that could tidy up, so any other does at its start.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

use touchmark_proto::{Holder, Places};

use super::{GONE, Lock};
use crate::{Error, guard, store};

/// Which state of workspaces that are gone is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unused {
    /// Nothing was written in it since; `None` for whatever its age.
    oldest: Option<SystemTime>,
    /// Also where bytes are kept that guarded writes replaced, and that may be
    /// nowhere else (GUARD-1).
    recovered: bool,
}

/// What [`forget_vanished`] did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Vanished {
    /// Workspaces whose state is removed.
    pub removed: Vec<PathBuf>,
    /// Workspaces that are gone as well, whose state stays for the bytes kept
    /// in it.
    pub kept: Vec<PathBuf>,
}

/// Removes what is stored of workspaces that no longer exist, whatever its
/// age, and says of which. `own` is left alone, and so is what a daemon uses.
pub fn forget_vanished(own: &Places, recovered: bool) -> Vanished {
    let unused = Unused {
        oldest: None,
        recovered,
    };
    sweep(own, unused, &AtomicBool::new(false))
}

/// A sweep on a thread of its own.
#[derive(Debug)]
pub struct Sweep {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sweep {
    /// Removes what daemons of workspaces that are gone have left: locks,
    /// sockets and fences at once, state that was not used since `oldest`. `own`
    /// is left alone, and so is whatever is not understood.
    pub fn start(own: Places, oldest: SystemTime) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("sweep".into());
        let unused = Unused {
            oldest: Some(oldest),
            // Their time is longer than that of everything else.
            recovered: true,
        };
        let thread = thread.spawn(move || drop(sweep(&own, unused, &stopped)));
        Self {
            stop,
            // Without it, the next start sweeps.
            thread: thread.ok(),
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The lock that it holds must not be left behind.
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
                // Taking it tidies up beside its socket.
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
        // Under the lock, since it may have come back.
        if !is_gone(&workspace) {
            continue;
        }
        if !unused.recovered && guard::kept(&state) > 0 {
            vanished.kept.push(workspace);
            continue;
        }
        // At once: half of a state would say of nothing whose it was.
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
    let lock = Lock::take(lock, &holder)?;
    // One that `TOUCHMARK_SOCKET` has named may be anything by now.
    let name = format!("{key}.sock");
    if let Some(socket) = holder.socket.filter(|socket| socket.ends_with(name)) {
        let _none = fs::remove_file(&socket);
        let _none = fs::remove_dir_all(socket.with_extension("fence"));
    }
    Ok(lock)
}

/// Keys of workspaces, by the names in a directory.
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

/// What a lock says.
fn named_in(lock: &Path) -> Option<Holder> {
    let holder = Holder::parse(&fs::read(lock).ok()?)?;
    holder.workspace.is_absolute().then_some(holder)
}

/// Not merely out of reach.
fn is_gone(workspace: &Path) -> bool {
    fs::symlink_metadata(workspace).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether nothing in a state directory was written since. Its daemon writes at
/// each start and end.
fn is_unused(state: &Path, oldest: Option<SystemTime>) -> bool {
    let Some(oldest) = oldest else { return true };
    let written = |path: &Path| fs::symlink_metadata(path)?.modified();
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let newest = entries
        .filter_map(|entry| written(&entry.path()).ok())
        .chain(written(state).ok())
        .max();
    newest.is_some_and(|newest| newest <= oldest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use touchmark_proto::BaseDirectories;

    use super::*;
    use crate::life::private_directory;

    /// The places of a workspace that a daemon has served, and what it left.
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
        // One that was interrupted is brought to its end.
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
