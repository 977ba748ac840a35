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
        eprintln!("NOT TESTED: there is no {program}");
    }
    found
}

/// Returns whether the tests run as root, and says if they do not.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("NOT TESTED: only root can do this");
    }
    is_root
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
