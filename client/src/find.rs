//! Finds the workspace of a directory.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use touchmark_client::{Environment, Hello, Workspace};
//!
//! let environment = Environment::read()?;
//! let workspace = Workspace::find(Path::new("/home/me/project/src"), &environment)?;
//! println!("{} is served at {}", workspace.root.display(), workspace.socket().display());
//! if workspace.is_running() {
//!     let client = workspace.connect(&Hello::default())?;
//! }
//! # Ok::<(), touchmark_client::Error>(())
//! ```

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use touchmark_proto::daemon::Initialized;
use touchmark_proto::places::SOCKET_VARIABLE;
use touchmark_proto::trust::Trust;
use touchmark_proto::{BaseDirectories, Places};

use crate::Hello;
use crate::blocking::Client;
use crate::error::{Error, Result};
use crate::local::{MAX_SOCKET_BYTES, locks, me};
use crate::sockets::{is_asleep, is_held, listens, socket};

/// The values from the environment that determine paths. They are read once, so
/// that a caller or a test can replace them.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The user's base directories.
    pub base: BaseDirectories,
    /// The value of `TOUCHMARK_SOCKET`: the path of the socket; `None` if not
    /// set.
    pub socket: Option<OsString>,
}

impl Environment {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// `place` if the user has no home directory.
    pub fn read() -> Result<Self> {
        let base = directories::BaseDirs::new().ok_or_else(|| Error::Place {
            path: PathBuf::from("~"),
            reason: "there is no home directory: set HOME".into(),
        })?;
        Ok(Self {
            base: BaseDirectories {
                runtime: base.runtime_dir().map(Path::to_owned),
                state: base
                    .state_dir()
                    .unwrap_or_else(|| base.data_local_dir())
                    .to_owned(),
                config: base.config_dir().to_owned(),
                cache: base.cache_dir().to_owned(),
            },
            socket: std::env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty()),
        })
    }

    /// Returns the rule for which files are trusted (SEC-6).
    fn trust(&self) -> Trust {
        Trust {
            me: me(),
            list: self.base.trusted_file(),
        }
    }

    /// Returns the places of the workspace with this canonical path.
    pub fn places(&self, workspace: &Path) -> Places {
        Places::new(&self.base, workspace, self.socket.as_deref())
    }
}

/// A workspace, and the places of its daemon's files.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The workspace's canonical path.
    pub root: PathBuf,
    /// The places of its daemon's files, including the socket.
    pub places: Places,
}

impl Workspace {
    /// Returns the workspace whose root is this directory.
    ///
    /// # Errors
    /// `place` if the directory does not exist, or if its socket's path would
    /// be too long for the kernel.
    pub fn at(directory: &Path, environment: &Environment) -> Result<Self> {
        let root = canonical(directory)?;
        let places = environment.places(&root);
        let length = places.socket.as_os_str().len();
        if length > MAX_SOCKET_BYTES {
            return Err(Error::Place {
                path: places.socket,
                reason: format!(
                    "the path of a socket may have {MAX_SOCKET_BYTES} bytes, this one has {length}: set {SOCKET_VARIABLE} to a shorter one"
                ),
            });
        }
        Ok(Self { root, places })
    }

    /// Returns the workspace of a directory: the innermost directory, going up
    /// from `directory`, that has a running daemon, a `.touchmark.toml` or a
    /// `.git`; else `directory` itself. The innermost one is used so that a
    /// daemon in the home directory does not serve the projects below it. Files
    /// that other users could have put there are ignored (SEC-6).
    ///
    /// # Errors
    /// The same as [`Workspace::at`].
    pub fn find(directory: &Path, environment: &Environment) -> Result<Self> {
        let directory = canonical(directory)?;
        let root = directory
            .ancestors()
            .find(|ancestor| {
                is_marked(ancestor, &environment.trust()) || has_daemon(ancestor, environment)
            })
            .unwrap_or(&directory);
        Self::at(root, environment)
    }

    /// Returns the workspace of the current directory, with the environment of
    /// this process.
    ///
    /// # Errors
    /// The same as [`Workspace::at`].
    pub fn here() -> Result<Self> {
        let directory = std::env::current_dir()
            .map_err(|error| Error::io("find the current directory", error))?;
        Self::find(&directory, &Environment::read()?)
    }

    /// Returns the socket of the workspace's daemon, from the lock file at each
    /// call. It is the socket of the running daemon, wherever it was started,
    /// or the one that a daemon started by this process would use. See
    /// [`socket`].
    pub fn socket(&self) -> PathBuf {
        socket(&self.places)
    }

    /// Returns whether the directory has a trusted `.touchmark.toml` or `.git`
    /// (SEC-6).
    pub fn is_marked(&self) -> bool {
        let list = self.places.trusted.clone();
        is_marked(&self.root, &Trust { me: me(), list })
    }

    /// Connects to the workspace's daemon.
    ///
    /// # Errors
    /// The same as [`Client::connect`], and `place` if the daemon serves
    /// another workspace, which is possible if `TOUCHMARK_SOCKET` is set
    /// (SEC-8).
    pub fn connect(&self, hello: &Hello) -> Result<Client> {
        let client = Client::connect(&self.socket(), hello)?;
        self.check_served(client.server())?;
        Ok(client)
    }

    /// Connects to the workspace's daemon without `initialize`, which saves a
    /// round trip. If `TOUCHMARK_SOCKET` names the socket, `initialize` is sent
    /// nevertheless, to check which workspace the daemon serves.
    ///
    /// # Errors
    /// The same as [`Workspace::connect`].
    pub fn connect_silent(&self, hello: &Hello) -> Result<Client> {
        match self.is_named() {
            true => self.connect(hello),
            false => Client::connect_silent(&self.socket(), hello.deadline),
        }
    }

    /// Returns whether `TOUCHMARK_SOCKET` names the socket.
    pub(crate) fn is_named(&self) -> bool {
        self.places.socket != self.places.usual_socket()
    }

    /// Checks that the daemon serves this workspace (SEC-8).
    pub(crate) fn check_served(&self, server: Option<&Initialized>) -> Result<()> {
        let meant = self.root.to_string_lossy();
        match server {
            Some(server) if server.workspace != meant => Err(Error::Place {
                path: self.socket(),
                reason: format!(
                    "its daemon serves {}, not {meant}: unset {SOCKET_VARIABLE}",
                    server.workspace
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Returns whether a process listens on the workspace's socket.
    pub fn is_running(&self) -> bool {
        !self.is_asleep() && listens(&self.socket())
    }

    /// Returns whether a daemon still runs after a `shutdown`: while it has the
    /// lock, its state may not be changed. Where systemd
    /// listens, the socket is not asked, since connecting would start another
    /// daemon.
    pub(crate) fn is_there(&self) -> bool {
        is_held(&self.places) || (!self.places.service.exists() && listens(&self.socket()))
    }

    /// Returns whether a running daemon has the workspace's lock, even if it
    /// does not listen.
    pub(crate) fn is_taken(&self) -> bool {
        is_held(&self.places)
    }

    /// Returns the process that holds the lock of the workspace's store. `None`
    /// if no process holds it that can be seen here, and on other systems than
    /// Linux.
    pub fn holder(&self) -> Option<u32> {
        locks::holder(&self.places.lock)
    }

    /// Returns whether the daemon runs in another mount namespace, such as a
    /// sandbox: it is reached by a path of its own process.
    pub fn is_elsewhere(&self) -> bool {
        locks::is_elsewhere(&self.socket())
    }

    /// Returns whether no daemon runs and systemd would start one on the next
    /// connection. Callers that only look for a daemon must not connect then.
    pub fn is_asleep(&self) -> bool {
        is_asleep(&self.places)
    }
}

fn canonical(directory: &Path) -> Result<PathBuf> {
    let root = fs::canonicalize(directory).map_err(|error| Error::Place {
        path: directory.to_owned(),
        reason: error.to_string(),
    })?;
    if root.is_dir() {
        Ok(root)
    } else {
        Err(Error::Place {
            path: root,
            reason: "a workspace is a directory".into(),
        })
    }
}

const MARKS: [&str; 2] = [".touchmark.toml", ".git"];

fn is_marked(directory: &Path, trust: &Trust) -> bool {
    MARKS.iter().any(|name| {
        fs::symlink_metadata(directory.join(name))
            .is_ok_and(|mark| trust.check(directory, &mark).is_ok())
    })
}

/// Returns the innermost `.git` or `.touchmark.toml`, going up from a
/// directory, that is not trusted, with the reason (SEC-6). `None` if there is
/// none.
pub fn passed_over(directory: &Path, environment: &Environment) -> Option<(PathBuf, String)> {
    let directory = canonical(directory).ok()?;
    let trust = environment.trust();
    directory
        .ancestors()
        .flat_map(|at| MARKS.map(|name| (at, at.join(name))))
        .find_map(|(at, path)| {
            let mark = fs::symlink_metadata(&path).ok()?;
            Some((path, trust.check(at, &mark).err()?))
        })
}

fn has_daemon(directory: &Path, environment: &Environment) -> bool {
    // `TOUCHMARK_SOCKET` is the same for every directory, so it is not used
    // here.
    let places = Places::new(&environment.base, directory, None);
    // A workspace whose daemon systemd starts on demand counts as running. It
    // is not connected to, since that would start the daemon.
    places.service.exists() || listens(&socket(&places))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::net::UnixListener;

    use touchmark_proto::Holder;

    use super::*;
    use crate::sockets::sockets;

    fn environment(home: &Path) -> Environment {
        Environment {
            base: BaseDirectories {
                runtime: Some(home.join("run")),
                state: home.join("state"),
                config: home.join("config"),
                cache: home.join("cache"),
            },
            socket: None,
        }
    }

    fn world() -> (tempfile::TempDir, Environment, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let environment = environment(&root);
        fs::create_dir_all(environment.base.runtime_directory()).unwrap();
        (home, environment, root)
    }

    fn found(directory: &Path, environment: &Environment) -> PathBuf {
        Workspace::find(directory, environment).unwrap().root
    }

    #[test]
    fn the_innermost_mark_wins() {
        let (_home, environment, root) = world();
        let (outer, inner) = (root.join("o"), root.join("o/i"));
        let deep = inner.join("a/b");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(found(&deep, &environment), deep, "no mark: itself");
        fs::create_dir(outer.join(".git")).unwrap();
        assert_eq!(found(&deep, &environment), outer);
        fs::write(inner.join(".touchmark.toml"), "").unwrap();
        assert_eq!(found(&deep, &environment), inner);
        assert_eq!(found(&outer, &environment), outer);
    }

    /// This test needs root, to create a file of another user.
    #[test]
    fn sec6_marks_of_others_are_passed_over() {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let (_home, environment, root) = world();
        let (outer, deep) = (root.join("o"), root.join("o/i"));
        fs::create_dir_all(&deep).unwrap();
        // Every user may replace files in this directory.
        fs::create_dir(outer.join(".git")).unwrap();
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(found(&deep, &environment), deep);
        let (path, why) = passed_over(&deep, &environment).unwrap();
        assert_eq!(path, outer.join(".git"));
        assert!(why.contains("everybody"), "{why}");
        // The user's list trusts the directory.
        let list = environment.base.trusted_file();
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::write(&list, format!("{}\n", outer.display())).unwrap();
        assert_eq!(found(&deep, &environment), outer);
        fs::remove_file(&list).unwrap();
        // The directory is sticky like `/tmp`, so no other user can replace the
        // user's files.
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(found(&deep, &environment), outer);
        assert_eq!(passed_over(&deep, &environment), None);
        assert_eq!(
            me().uid,
            0,
            "only root has files of others: run this as root"
        );
        chown(outer.join(".git"), Some(1002), None).unwrap();
        assert_eq!(found(&deep, &environment), deep);
        let workspace = Workspace::at(&outer, &environment).unwrap();
        assert!(!workspace.is_marked());
    }

    #[test]
    fn a_running_daemon_marks_and_a_dead_socket_does_not() {
        let (_home, environment, root) = world();
        let (outer, deep) = (root.join("o"), root.join("o/i"));
        fs::create_dir_all(&deep).unwrap();
        let socket = environment.places(&outer).socket;
        let listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(found(&deep, &environment), outer);
        drop(listener);
        assert_eq!(found(&deep, &environment), deep);
    }

    #[test]
    fn a_service_marks_and_is_not_started_by_a_look() {
        let (_home, environment, root) = world();
        let (outer, deep) = (root.join("o"), root.join("o/i"));
        fs::create_dir_all(&deep).unwrap();
        let places = environment.places(&outer);
        fs::create_dir_all(places.service.parent().unwrap()).unwrap();
        fs::write(&places.service, outer.as_os_str().as_encoded_bytes()).unwrap();
        let listener = UnixListener::bind(&places.socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let workspace = Workspace::find(&deep, &environment).unwrap();
        assert_eq!(workspace.root, outer);
        assert!(workspace.is_asleep() && !workspace.is_running());
        assert_eq!(sockets(&environment), Vec::<PathBuf>::new());
        lock(&places, 999_999_999, &places.socket);
        assert!(workspace.is_asleep(), "what a killed daemon left");
        assert!(listener.accept().is_err(), "nobody connected");
        lock(&places, std::process::id(), &places.socket);
        assert!(!workspace.is_asleep() && workspace.is_running());
        assert_eq!(sockets(&environment), [places.socket]);
    }

    /// Writes a daemon's lock file.
    fn lock(places: &Places, pid: u32, socket: &Path) {
        fs::create_dir_all(places.lock.parent().unwrap()).unwrap();
        let holder = Holder {
            pid,
            socket: Some(socket.to_owned()),
            workspace: "/o".into(),
        };
        fs::write(&places.lock, holder.text()).unwrap();
    }

    #[test]
    fn a_daemon_of_another_runtime_directory_is_found_by_its_lock() {
        let (_home, environment, root) = world();
        let (outer, deep) = (root.join("o"), root.join("o/i"));
        fs::create_dir_all(&deep).unwrap();
        let elsewhere = root.join("elsewhere.sock");
        let listener = UnixListener::bind(&elsewhere).unwrap();
        let places = environment.places(&outer);
        lock(&places, std::process::id(), &elsewhere);
        let workspace = Workspace::find(&deep, &environment).unwrap();
        assert_eq!(workspace.root, outer, "it marks its workspace");
        assert_eq!(workspace.socket(), elsewhere);
        assert!(workspace.is_running());
        assert_eq!(sockets(&environment), std::slice::from_ref(&elsewhere));

        // A socket that is named directly is preferred if a process listens on
        // it.
        let mut named = environment.clone();
        let outright = root.join("named.sock");
        named.socket = Some(outright.clone().into());
        let workspace_named = Workspace::at(&outer, &named).unwrap();
        assert_eq!(workspace_named.socket(), elsewhere);
        let _listens = UnixListener::bind(&outright).unwrap();
        assert_eq!(workspace_named.socket(), outright);

        // The lock of a killed daemon is ignored, and so is an incomplete one.
        drop(listener);
        assert_eq!(workspace.socket(), places.socket);
        let _listener = UnixListener::bind(root.join("again.sock")).unwrap();
        fs::write(
            &places.lock,
            format!("1\n{}", root.join("again.sock").display()),
        )
        .unwrap();
        assert_eq!(workspace.socket(), places.socket);
    }

    #[test]
    fn a_daemon_further_out_does_not_swallow_a_project() {
        let (_home, environment, root) = world();
        let project = root.join("project");
        fs::create_dir_all(project.join(".git")).unwrap();
        let _listener = UnixListener::bind(environment.places(&root).socket).unwrap();
        assert_eq!(found(&project, &environment), project);
    }

    #[test]
    fn two_spellings_are_one_workspace() {
        let (_home, environment, root) = world();
        fs::create_dir(root.join("a")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("b")).unwrap();
        let a = Workspace::at(&root.join("a"), &environment).unwrap();
        let b = Workspace::at(&root.join("b/../b"), &environment).unwrap();
        assert_eq!(a.socket(), b.socket());
    }

    #[test]
    fn a_socket_too_long_for_the_kernel_is_named() {
        let (_home, mut environment, root) = world();
        environment.socket = Some(root.join("x".repeat(120)).into());
        let error = Workspace::at(&root, &environment).unwrap_err();
        assert_eq!(error.code(), "place");
        assert!(error.to_string().contains(SOCKET_VARIABLE));
    }

    #[test]
    fn a_file_is_no_workspace() {
        let (_home, environment, root) = world();
        fs::write(root.join("f"), "").unwrap();
        assert!(Workspace::at(&root.join("f"), &environment).is_err());
        assert!(Workspace::at(&root.join("none"), &environment).is_err());
    }
}
