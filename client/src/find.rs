//! Which workspace, and where its daemon listens.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use touchmark_proto::daemon::Initialized;
use touchmark_proto::places::SOCKET_VARIABLE;
use touchmark_proto::trust::Trust;
use touchmark_proto::{BaseDirectories, Holder, Places};

use crate::Hello;
use crate::blocking::Client;
use crate::dial::{is_full, try_dial};
use crate::error::{Error, Result};
use crate::local::{MAX_SOCKET_BYTES, is_own, is_socket, lives, me};

/// What the environment says about places, read once, so that a caller (or a
/// test) can say otherwise.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The user's base directories.
    pub base: BaseDirectories,
    /// `TOUCHMARK_SOCKET`: the socket outright.
    pub socket: Option<OsString>,
}

impl Environment {
    /// The process's own.
    ///
    /// # Errors
    /// If the user has no home directory.
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

    /// Whose files are taken over (SEC-6).
    fn trust(&self) -> Trust {
        Trust {
            me: me(),
            list: self.base.trusted_file(),
        }
    }

    /// The places of a workspace, named by its canonical path.
    pub fn places(&self, workspace: &Path) -> Places {
        Places::new(&self.base, workspace, self.socket.as_deref())
    }
}

/// A workspace and where its daemon listens.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its canonical path.
    pub root: PathBuf,
    /// Where its daemon keeps its things, the socket among them.
    pub places: Places,
}

impl Workspace {
    /// The workspace in that very directory.
    ///
    /// # Errors
    /// If the directory does not exist, or its socket's path would be longer
    /// than the kernel takes.
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

    /// The innermost workspace, going up from `directory`, that has a running
    /// daemon, a `.touchmark.toml` or a `.git`; else `directory` itself. So a
    /// daemon in the home directory does not swallow the projects below it.
    /// Marks that others could have put there count as none (SEC-6).
    ///
    /// # Errors
    /// As [`Workspace::at`].
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

    /// The workspace of the current directory, by the process's own
    /// environment.
    ///
    /// # Errors
    /// As [`Workspace::at`].
    pub fn here() -> Result<Self> {
        let directory = std::env::current_dir()
            .map_err(|error| Error::io("find the current directory", error))?;
        Self::find(&directory, &Environment::read()?)
    }

    /// The socket of its daemon: of the one that runs, wherever that was
    /// started, or else of one that this process would start. Looked up anew
    /// each time. See [`socket`].
    pub fn socket(&self) -> PathBuf {
        socket(&self.places)
    }

    /// Whether it says of itself that it is one: by a `.touchmark.toml` or a
    /// `.git` that is taken over (SEC-6).
    pub fn is_marked(&self) -> bool {
        let list = self.places.trusted.clone();
        is_marked(&self.root, &Trust { me: me(), list })
    }

    /// A connection to its daemon.
    ///
    /// # Errors
    /// As [`Client::connect`]; `place` if that daemon serves another
    /// workspace, as one that `TOUCHMARK_SOCKET` names may (SEC-8).
    pub fn connect(&self, hello: &Hello) -> Result<Client> {
        let client = Client::connect(&self.socket(), hello)?;
        self.check_served(client.server())?;
        Ok(client)
    }

    /// The same without saying hello, for one-shot callers to whom a round
    /// trip matters. Where `TOUCHMARK_SOCKET` names the socket, hello is said
    /// nevertheless: another one can only be this workspace's.
    ///
    /// # Errors
    /// As [`Workspace::connect`].
    pub fn connect_silent(&self, hello: &Hello) -> Result<Client> {
        match self.is_named() {
            true => self.connect(hello),
            false => Client::connect_silent(&self.socket(), hello.deadline),
        }
    }

    /// Whether `TOUCHMARK_SOCKET` names its socket.
    pub(crate) fn is_named(&self) -> bool {
        self.places.socket != self.places.usual_socket()
    }

    /// Refuses a daemon that serves another workspace (SEC-8).
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

    /// Whether its daemon runs, or something else listens there.
    pub fn is_running(&self) -> bool {
        !self.is_asleep() && listens(&self.socket())
    }

    /// Whether a daemon that was asked to end is still there. Where systemd
    /// listens, connecting would start another.
    pub(crate) fn is_there(&self) -> bool {
        if self.places.service.exists() {
            is_held(&self.places)
        } else {
            listens(&self.socket())
        }
    }

    /// Whether a daemon has its lock, listening or not.
    pub(crate) fn is_taken(&self) -> bool {
        is_held(&self.places)
    }

    /// Whether systemd would start its daemon for whoever connects: looking
    /// must not do that.
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
            .is_ok_and(|mark| trust.takes(directory, &mark).is_ok())
    })
}

/// The innermost mark, going up from a directory, that is not taken over, and
/// why (SEC-6).
pub fn passed_over(directory: &Path, environment: &Environment) -> Option<(PathBuf, String)> {
    let directory = canonical(directory).ok()?;
    let trust = environment.trust();
    directory
        .ancestors()
        .flat_map(|at| MARKS.map(|name| (at, at.join(name))))
        .find_map(|(at, path)| {
            let mark = fs::symlink_metadata(&path).ok()?;
            Some((path, trust.takes(at, &mark).err()?))
        })
}

fn has_daemon(directory: &Path, environment: &Environment) -> bool {
    // `TOUCHMARK_SOCKET` is the same for every directory, so it marks none.
    let places = Places::new(&environment.base, directory, None);
    // One that systemd starts for whoever connects is as good as running, and
    // must not be started by a look.
    places.service.exists() || listens(&socket(&places))
}

/// Where the daemon of a workspace listens. One that was started with another
/// runtime directory, as by an agent that hands none on, listens elsewhere
/// than one of this environment would; its lock says where (SEC-1).
pub fn socket(places: &Places) -> PathBuf {
    let own = &places.socket;
    let Some(other) = holder(&places.lock).and_then(|holder| holder.socket) else {
        return own.clone();
    };
    // What `TOUCHMARK_SOCKET` names comes first, if anybody is there.
    let named = *own != places.usual_socket();
    if other == *own || (named && listens(own)) {
        return own.clone();
    }
    // A killed daemon leaves its lock behind. The kernel lets others make
    // sockets in the place of one that is gone, where the directory is theirs.
    let ours = fs::symlink_metadata(&other).is_ok_and(|file| is_own(&file));
    if ours && listens(&other) {
        other
    } else {
        own.clone()
    }
}

/// What a lock of this user's says.
fn holder(lock: &Path) -> Option<Holder> {
    let file = fs::symlink_metadata(lock).ok()?;
    if !file.is_file() || !is_own(&file) {
        return None;
    }
    Holder::parse(&fs::read(lock).ok()?)
}

/// Whether a service is installed whose daemon does not run: neither it nor
/// any other of that workspace.
pub fn is_asleep(places: &Places) -> bool {
    places.service.exists() && !is_held(places)
}

/// Whether a lock names a process that lives. Its number may be another's by
/// now; then somebody connects in vain, and no harm is done.
fn is_held(places: &Places) -> bool {
    [&places.lock, &places.spare_lock]
        .into_iter()
        .filter_map(|lock| fs::read(lock).ok())
        // One that says nothing was just taken.
        .any(|text| Holder::parse(&text).is_none_or(|holder| lives(holder.pid)))
}

/// Whether something listens on that socket.
pub fn listens(socket: &Path) -> bool {
    // The file is looked at first: connecting costs more than a stat, and
    // most directories have none.
    fs::symlink_metadata(socket).is_ok_and(|file| is_socket(&file))
        && match try_dial(socket) {
            Ok(_) => true,
            // A daemon that is stopped or busy is there all the same.
            Err(error) => is_full(&error),
        }
}

/// Every socket of this user's daemons, wherever they were started, dead ones
/// included; not those on which systemd listens for a daemon that does not
/// run.
pub fn sockets(environment: &Environment) -> Vec<PathBuf> {
    let named = |directory: &Path, extension: &'static str| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(move |path| path.extension() == Some(OsStr::new(extension)))
    };
    let base = &environment.base;
    let asleep = |socket: &PathBuf| {
        let key = socket.file_stem().and_then(OsStr::to_str);
        key.is_some_and(|key| is_asleep(&Places::of_key(base, key)))
    };
    let locks = named(&base.state_directory(), "lock");
    let mut found: Vec<PathBuf> = locks
        .filter_map(|lock| holder(&lock)?.socket)
        .chain(named(&base.runtime_directory(), "sock"))
        .filter(|socket| !asleep(socket))
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::net::UnixListener;

    use super::*;

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

    /// Needs root, to have a file of another user's.
    #[test]
    fn sec6_marks_of_others_are_passed_over() {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let (_home, environment, root) = world();
        let (outer, deep) = (root.join("o"), root.join("o/i"));
        fs::create_dir_all(&deep).unwrap();
        // Everybody may put another in its place.
        fs::create_dir(outer.join(".git")).unwrap();
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(found(&deep, &environment), deep);
        let (path, why) = passed_over(&deep, &environment).unwrap();
        assert_eq!(path, outer.join(".git"));
        assert!(why.contains("everybody"), "{why}");
        // The user says that it is all right.
        let list = environment.base.trusted_file();
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::write(&list, format!("{}\n", outer.display())).unwrap();
        assert_eq!(found(&deep, &environment), outer);
        fs::remove_file(&list).unwrap();
        // As `/tmp` is: what is the user's there stays the user's.
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

    /// Writes what a daemon's lock says.
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

        // What is named outright comes first, if somebody listens there.
        let mut named = environment.clone();
        let outright = root.join("named.sock");
        named.socket = Some(outright.clone().into());
        let workspace_named = Workspace::at(&outer, &named).unwrap();
        assert_eq!(workspace_named.socket(), elsewhere);
        let _listens = UnixListener::bind(&outright).unwrap();
        assert_eq!(workspace_named.socket(), outright);

        // A killed daemon's lock leads nowhere, and half a lock neither.
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
