//! Runs commands below the witness and reads the ring afterwards.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use touchmark_witness::{Gap, Mark, Operation, Process, Reader, Record};

/// The program that is tested.
pub const WITNESS: &str = env!("CARGO_BIN_EXE_touchmark-witness");

/// A directory with a root for files, and a ring beside it.
pub struct Place {
    pub directory: tempfile::TempDir,
    pub root: PathBuf,
    pub ring: PathBuf,
}

impl Place {
    pub fn new() -> Self {
        Self::with(4 << 20)
    }

    pub fn with(capacity: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let (root, ring) = (top.join("root"), top.join("ring"));
        std::fs::create_dir(&root).unwrap();
        touchmark_witness::create(&ring, capacity).unwrap();
        Self {
            directory,
            root,
            ring,
        }
    }

    /// Returns a command that runs these words below the witness, in the root.
    pub fn witness<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        let mut command = Command::new(WITNESS);
        command.arg("--ring").arg(&self.ring);
        command.arg("--root").arg(&self.root).arg("--");
        command.args(words).current_dir(&self.root);
        command
    }

    /// Lets another user write here, with a copy of the program.
    pub fn open_to(&self, user: u32) {
        let everyone = || std::os::unix::fs::PermissionsExt::from_mode(0o777);
        for directory in [self.directory.path(), &self.root] {
            std::fs::set_permissions(directory, everyone()).unwrap();
        }
        for file in ["ring", "ring.bell", "ring.asks"] {
            let file = self.directory.path().join(file);
            std::os::unix::fs::chown(file, Some(user), None).unwrap();
        }
        let copy = self.directory.path().join("witness");
        if std::fs::hard_link(WITNESS, &copy).is_err() {
            std::fs::copy(WITNESS, &copy).unwrap();
        }
    }

    /// Returns the program that is tested, or the copy for another user.
    pub fn program(&self) -> PathBuf {
        let copy = self.directory.path().join("witness");
        if copy.exists() { copy } else { WITNESS.into() }
    }

    /// Returns a command that runs what its arguments say, as another user if
    /// there is one, with this PATH and an empty home.
    pub fn as_user(&self, user: Option<u32>, path: &str) -> Command {
        let mut command = Command::new("env");
        if let Some(user) = user {
            let home = self.directory.path().join("home");
            command.env_clear().env("PATH", path).env("HOME", home);
            let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
            command.args(["setpriv", "--clear-groups", &user, &group]);
        }
        command
    }

    /// Runs a shell's script below the witness.
    pub fn shell(&self, script: &str) -> Output {
        self.witness(["sh", "-c", script]).output().unwrap()
    }

    /// Runs a Python program below the witness, in which `call` makes a system
    /// call by its name, and expects success.
    pub fn python(&self, program: &str) -> Vec<Record> {
        let program = format!("{PRELUDE}\n{program}");
        let output = self.witness(["python3", "-c", &program]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {text}", output.status);
        self.ended()
    }

    /// Waits until the tree has ended, and returns all records but the last.
    pub fn ended(&self) -> Vec<Record> {
        let mut reader = Reader::open(&self.ring).unwrap();
        let mut records = Vec::new();
        wait_for("the last record", || {
            while let Some((_, record)) = reader.next().unwrap() {
                records.push(record);
            }
            // A gap of lost calls is read after all records.
            records.contains(&Record::Ended) && !reader.runs().unwrap()
        });
        while let Some((_, record)) = reader.next().unwrap() {
            records.push(record);
        }
        records.retain(|record| *record != Record::Ended);
        records
    }

    /// Returns the holders of the last record about them.
    pub fn holders(&self) -> Option<[u32; 2]> {
        let mut reader = Reader::open(&self.ring).unwrap();
        let mut last = None;
        while let Some((_, record)) = reader.next().unwrap() {
            if let Record::Holders { holders, .. } = record {
                last = Some(holders);
            }
        }
        last
    }
}

/// Waits until something is so, at most 30 s.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "waited for {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the marks among records.
pub fn marks(records: &[Record]) -> Vec<&Mark> {
    let marks = records.iter().filter_map(|record| match record {
        Record::Mark(mark) => Some(mark),
        _ => None,
    });
    marks.collect()
}

/// Returns the processes among records.
pub fn processes(records: &[Record]) -> Vec<&Process> {
    let processes = records.iter().filter_map(|record| match record {
        Record::Process(process) => Some(process),
        _ => None,
    });
    processes.collect()
}

/// Returns the gaps among records.
pub fn gaps(records: &[Record]) -> Vec<Gap> {
    let gaps = records.iter().filter_map(|record| match record {
        Record::Gap { why, .. } => Some(*why),
        _ => None,
    });
    gaps.collect()
}

/// Returns each mark as its operation, its path, and whether there was an
/// object.
pub fn short(records: &[Record]) -> Vec<(Operation, PathBuf, bool)> {
    let short = marks(records).into_iter().map(|mark| {
        let path = Path::new(OsStr::from_bytes(&mark.path));
        let path = path.join(OsStr::from_bytes(&mark.name));
        (mark.operation, path, mark.object.is_some())
    });
    short.collect()
}

/// Returns whether a program is there, and says if it is not.
pub fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        not_tested(&format!("{}: there is no {program}", this_test()));
    }
    found
}

/// Returns whether the tests run as root, and says if they do not.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        not_tested(&format!("{}: only root can do this", this_test()));
    }
    is_root
}

/// Returns the test that runs in this thread.
fn this_test() -> String {
    let thread = std::thread::current();
    format!("witness, {}", thread.name().unwrap_or_default())
}

/// Returns whether heavy parts are wanted, and says that something is left out
/// if they are not. As `touchmark_tests::parts`, which this small crate does
/// not depend on.
pub fn heavy(what: &str) -> bool {
    let wanted = std::env::var_os("TOUCHMARK_PARTS");
    let wanted = wanted.is_some_and(|value| !value.is_empty() && value != "0");
    if !wanted {
        say(&format!("left for --parts: {what}"));
    }
    wanted
}

/// Says that something could not be tested here, and why.
pub fn not_tested(what_and_why: &str) {
    say(&format!("not tested: {what_and_why}"));
}

/// Says a line on the standard output, and where `tests/run` reads it.
fn say(line: &str) {
    println!("{line}");
    let notes = std::env::var_os("TOUCHMARK_TEST_NOTES").filter(|path| !path.is_empty());
    if let Some(notes) = notes {
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.create(true).append(true).open(notes).unwrap();
        // One write, so that lines stay whole.
        std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).unwrap();
    }
}

const PRELUDE: &str = r#"
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
X = dict(open=2, creat=85, openat=257, openat2=437, rename=82, renameat=264, renameat2=316,
    link=86, linkat=265, unlink=87, unlinkat=263, rmdir=84, symlink=88, symlinkat=266,
    truncate=76, mknod=133, mknodat=259, io_uring_setup=425, open_by_handle_at=304)
A = dict(openat=56, openat2=437, renameat=38, renameat2=276, linkat=37, unlinkat=35,
    symlinkat=36, truncate=45, mknodat=33, io_uring_setup=425, open_by_handle_at=265)
N = X if platform.machine() == 'x86_64' else A
CWD = -100
def call(name, *arguments, fails=False):
    given = [a.encode() if isinstance(a, str) else a for a in arguments]
    given = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in given]
    result = libc.syscall(ctypes.c_long(N[name]), *given)
    if (result < 0) != fails:
        raise OSError(ctypes.get_errno(), name + ': ' + os.strerror(ctypes.get_errno()))
    return result
"#;

impl Place {
    /// Waits until the ring is free, and returns why the command ran
    /// unwitnessed.
    pub fn ended_refused(&self) -> touchmark_witness::Refusal {
        let mut reader = Reader::open(&self.ring).unwrap();
        wait_for("the ring", || !reader.runs().unwrap());
        while let Some((_, record)) = reader.next().unwrap() {
            if let Record::Refused(why) = record {
                return why;
            }
        }
        panic!("no refusal")
    }
}
