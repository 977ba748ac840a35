//! From the records of a ring to what they mean for the workspace.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use touchmark_engine::Sighting;
use touchmark_proto::RelPath;
use touchmark_witness::{Chance, Gap, Identity, Mark, Operation, ProcessId, Record, device};

use super::family::Family;
use super::prior;

/// Programs that ask another process of this machine, by a port or a bus, to write
/// files for them.
const CLIENTS: [&str; 20] = [
    "adb",
    "bazel",
    "bazelisk",
    "buck",
    "buck2",
    "busctl",
    "dbus-send",
    "docker",
    "flutter",
    "gdbus",
    "java",
    "kubectl",
    "machinectl",
    "mvnd",
    "podman",
    "sccache",
    "ssh",
    "systemctl",
    "systemd-run",
    "turbo",
];

/// Sockets behind which nothing writes into a workspace, by the beginning of
/// their paths: names and logs of the system, and the screen.
const HARMLESS: [&[u8]; 10] = [
    b"/dev/log",
    b"/run/nscd/",
    b"/var/run/nscd/",
    b"/run/systemd/journal/",
    b"/run/systemd/notify",
    b"/run/systemd/resolve/",
    b"/run/systemd/userdb/",
    b"/var/lib/sss/pipes/",
    b"/tmp/.X11-unix/",
    b"@/tmp/.X11-unix/",
];

/// The same, by what is in their paths: touchmark's own daemons and agents of
/// keys.
const HARMLESS_ANYWHERE: [&[u8]; 5] = [
    b"/touchmark/",
    b"/agent.",
    b"/S.gpg-agent",
    b"/keyring/ssh",
    b"ssh-agent",
];

/// What is needed to understand the marks of a workspace.
pub(super) struct Translation {
    root: PathBuf,
    device: u64,
    family: Family,
    /// What the last mark of a rename moves; the mark of its new name is next.
    moving: Option<Identity>,
}

impl Translation {
    /// Returns the translation for this workspace. `agents` are the names of
    /// agents' programs.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn new(root: &Path, agents: &[&'static str]) -> io::Result<Self> {
        Ok(Self {
            root: root.to_path_buf(),
            device: device(root)?,
            family: Family::new(agents),
            moving: None,
        })
    }

    /// Adds what a record says about the workspace.
    pub(super) fn add(&mut self, record: &Record, sightings: &mut Vec<Sighting>) {
        let Record::Happened {
            realtime,
            path,
            events,
        } = record
        else {
            return sightings.extend(self.sighting(record));
        };
        let names = events.iter().filter_map(|(event, name)| {
            let path = [path, &b"/"[..], name].concat();
            Some((self.name(&path)?, *event))
        });
        sightings.extend(names.map(|(name, event)| Sighting::Happened {
            name,
            event: prior::event(event),
            at: realtime / 1_000_000,
        }));
    }

    /// Returns what a record says about the workspace; `None` if nothing.
    fn sighting(&mut self, record: &Record) -> Option<Sighting> {
        match record {
            Record::Holders { target, .. } => {
                self.family.begins_with(*target);
                Some(Sighting::Began)
            }
            Record::Mark(mark) => self.marked(mark),
            Record::Inherited { path, .. } if path.is_empty() => Some(Sighting::lasting(
                "the command was started with a file open that has no name",
            )),
            Record::Inherited { path, .. } => {
                let name = self.name(path)?;
                Some(Sighting::MayWrite(touchmark_engine::Mark::new(name)))
            }
            Record::Process(process) => {
                self.family.meet(process);
                None
            }
            Record::Connected { process, address } => self.connected(*process, address),
            Record::Gap { why, .. } => Some(gap(*why)),
            Record::Refused(why) => Some(Sighting::lasting(why.to_string())),
            Record::Missed => Some(Sighting::Missed),
            // Many sightings: see `add`.
            Record::Ended | Record::Happened { .. } => None,
        }
    }

    fn marked(&mut self, mark: &Mark) -> Option<Sighting> {
        if mark.operation == Operation::RenamedFrom {
            self.moving = mark.object;
        }
        if !mark.path.is_empty() {
            let mut path = mark.path.clone();
            if !mark.name.is_empty() {
                path.push(b'/');
                path.extend_from_slice(&mark.name);
            }
            let removes = matches!(
                mark.operation,
                Operation::Unlinked | Operation::RenamedFrom | Operation::DirectoryRemoved
            );
            let process = self.family.marker(mark);
            let in_place = matches!(
                mark.operation,
                Operation::Opened
                    | Operation::OpenedTruncating
                    | Operation::Created
                    | Operation::Truncated
            );
            let moving = match mark.operation {
                Operation::RenamedTo => self.moving.take(),
                Operation::RenamedFrom | Operation::Exchanged => mark.object,
                _ => None,
            };
            let name = self.name(&path)?;
            return Some(Sighting::MayWrite(touchmark_engine::Mark {
                prior: prior::prior(mark),
                events: prior::events(mark),
                subtree: prior::subtree(mark, moving),
                name,
                made: mark.realtime / 1_000_000,
                removes,
                in_place,
                inode: match mark.operation {
                    Operation::RenamedTo => moving,
                    _ if in_place => mark.object,
                    _ => None,
                }
                .map(|object| object.inode),
                is_poor: mark.chance == Chance::Poor,
                process,
            }));
        }
        // A file or directory that the witness could not find. On another
        // device it is in no workspace that is mounted once.
        let device = mark.object.map_or(mark.directory.device, |it| it.device);
        let is_near = device == self.device || mark.directory.device == self.device;
        is_near
            .then(|| Sighting::passing("it wrote a file whose place in the workspace is not known"))
    }

    /// Returns a gap if another process may write for one that connects to it.
    fn connected(&self, process: ProcessId, address: &[u8]) -> Option<Sighting> {
        let to = String::from_utf8_lossy(address);
        let why = match (is_shared(address), self.family.program(process)) {
            (true, Some(name)) if CLIENTS.contains(&name) => {
                format!("{name} connected to {to}: the program there may write for it")
            }
            (false, _) if !is_harmless(address) => {
                format!("it connected to {to}: the program there may write for it")
            }
            _ => return None,
        };
        Some(Sighting::passing(why))
    }

    /// Returns the name of an absolute path; `None` for one outside.
    fn name(&self, path: &[u8]) -> Option<RelPath> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let rest = path.strip_prefix(&self.root).ok()?;
        RelPath::new(rest.as_os_str().as_bytes()).ok()
    }
}

/// Returns whether many programs connect there, of which few let others write: a
/// port, or a message bus (D-Bus).
fn is_shared(address: &[u8]) -> bool {
    let is_bus = |start: &[u8]| address.starts_with(start);
    is_bus(b"tcp:")
        || is_bus(b"/run/dbus/")
        || is_bus(b"/var/run/dbus/")
        || memchr::memmem::find(address, b"/tmp/dbus-").is_some()
        || (is_bus(b"/run/user/") && address.ends_with(b"/bus"))
}

/// Returns whether nothing behind a socket writes into a workspace.
fn is_harmless(socket: &[u8]) -> bool {
    let mut anywhere = HARMLESS_ANYWHERE.iter();
    HARMLESS.iter().any(|start| socket.starts_with(start))
        || anywhere.any(|part| memchr::memmem::find(socket, part).is_some())
}

fn gap(why: Gap) -> Sighting {
    match why {
        Gap::Unreadable => Sighting::passing("a call of one of its processes could not be read"),
        Gap::Unresolved => Sighting::passing("the path of a call could not be resolved"),
        Gap::IoUring => Sighting::passing("io_uring was used"),
        Gap::Handle => Sighting::passing("a file was opened by its handle"),
        Gap::Architecture => Sighting::lasting("a program of another architecture was run"),
        Gap::Unanswered | Gap::Late => Sighting::passing("a call went on without a mark"),
        Gap::Overflow => Sighting::passing("there were more marks than could be kept"),
        Gap::Damaged => Sighting::passing("a mark could not be read"),
        Gap::SeveralNames => Sighting::passing("a file with several names was written"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_witness::Process;

    use super::*;

    fn translation() -> Translation {
        Translation {
            root: "/w/s".into(),
            device: 7,
            family: Family::default(),
            moving: None,
        }
    }

    fn mark(directory: u64, path: &str, name: &str) -> Record {
        let identity = |device| Identity {
            device,
            ..Identity::default()
        };
        Record::Mark(Mark {
            realtime: 0,
            boottime: 0,
            process: ProcessId::default(),
            operation: Operation::Opened,
            directory: identity(directory),
            path: path.into(),
            name: name.into(),
            object: None,
            chance: touchmark_witness::Chance::Good,
            before: None,
            is_watched: false,
        })
    }

    fn may_write(name: &str) -> Option<Sighting> {
        let name = RelPath::new(name.as_bytes()).unwrap();
        Some(Sighting::MayWrite(touchmark_engine::Mark {
            prior: touchmark_engine::Prior::Absent,
            ..touchmark_engine::Mark::new(name)
        }))
    }

    #[test]
    fn marks_are_names_in_the_workspace() {
        let mut translation = translation();
        let mut of = |path, name| translation.sighting(&mark(7, path, name));
        assert_eq!(of("/w/s", "a"), may_write("a"));
        assert_eq!(of("/w/s/b", "a"), may_write("b/a"));
        assert_eq!(of("/w/s/b", ""), may_write("b"));
        for outside in ["/w", "/w/sb", "/tmp"] {
            assert_eq!(of(outside, "a"), None, "{outside}");
        }
    }

    #[test]
    fn a_mark_without_a_path_is_a_gap_on_the_same_device() {
        let mut translation = translation();
        let mut is_gap =
            |record| matches!(translation.sighting(&record), Some(Sighting::Gap { .. }));
        assert!(is_gap(mark(7, "", "a")));
        assert!(!is_gap(mark(8, "", "a")));
    }

    #[test]
    fn who_lets_others_write_is_a_gap() {
        let mut translation = translation();
        let mut is_gap = |program: &str, address: &str| {
            let process = Process {
                program: program.into(),
                ..Process::default()
            };
            let connected = Record::Connected {
                process: process.process,
                address: address.into(),
            };
            assert_eq!(translation.sighting(&Record::Process(process)), None);
            matches!(translation.sighting(&connected), Some(Sighting::Gap { .. }))
        };
        assert!(is_gap("/usr/bin/docker", "/run/docker.sock"));
        assert!(is_gap("/usr/bin/tmux", "/tmp/tmux-0/default"));
        assert!(is_gap("/usr/bin/java", "tcp:4000"));
        assert!(!is_gap("/usr/bin/node", "tcp:4000"));
        for bus in [
            "/run/dbus/system_bus_socket",
            "/run/user/7/bus",
            "@/tmp/dbus-x",
        ] {
            assert!(!is_gap("/usr/bin/node", bus));
            assert!(is_gap("/usr/bin/systemd-run", bus));
        }
        assert!(!is_gap("/usr/bin/id", "/var/run/nscd/socket"));
        assert!(!is_gap("/usr/bin/ssh", "/tmp/ssh-XQ/agent.12"));
        assert!(!is_gap("/usr/bin/x", "/run/user/0/touchmark/0.sock"));
    }
}
