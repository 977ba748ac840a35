//! The threads that make calls, and what is known of their processes.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open, openat, readlinkat};
use rustix::io::Errno;

use crate::marks::{Process, ProcessId};
use crate::proc_stat::{Stat, stat};
use crate::sys;

/// The most bytes of a path, with the 0 at its end.
const PATH: usize = 4096;

/// The most bytes of a command line.
const COMMAND_LINE: usize = 4096;

/// How many bytes of a path are read at first.
const FIRST: usize = 256;

/// The most processes that are remembered as recorded. One that is forgotten is
/// recorded again.
const RECORDED: usize = 2048;

/// The most ancestors of a process that are looked at.
const DEPTH: usize = 64;

/// How long after its last call a thread is taken to be the same.
const TRUSTED: Duration = Duration::from_millis(300);

/// What differs after each `exec`: the kernel puts 16 random bytes into the new
/// memory and tells the program where (`AT_RANDOM`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Image {
    at: u64,
    random: [u8; 16],
}

/// A thread. Its directory is bound to it: after its exit, nothing below can be
/// opened, also if another thread has its number.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) thread: u32,
    pub(crate) directory: OwnedFd,
    pub(crate) process: ProcessId,
    image: Option<Image>,
    /// Whether its process is recorded with its present program.
    is_recorded: bool,
    /// When it made a call the last time. A number is not used again within
    /// [`TRUSTED`].
    used: Instant,
}

/// Why something of a caller cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It is another thread by now, or has exited.
    Gone,
    /// There is nothing at this address: the call fails.
    Absent,
    /// The system refuses it.
    Refused,
}

impl From<Errno> for Failed {
    fn from(error: Errno) -> Self {
        match error {
            // A signal of this process may interrupt it.
            Errno::NOENT | Errno::SRCH | Errno::INTR => Self::Gone,
            _ => Self::Refused,
        }
    }
}

/// The callers that are known, and the processes that are recorded.
#[derive(Debug)]
pub(crate) struct Callers {
    known: HashMap<u32, Caller>,
    /// What each recorded process was like, as a hash, and when.
    recorded: HashMap<u32, (u64, Instant)>,
    /// The most entries of `known`, which has a descriptor for each.
    most: usize,
}

impl Callers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            known: HashMap::new(),
            recorded: HashMap::new(),
            most,
        }
    }

    /// Takes a thread out of the known ones, or looks it up.
    pub(crate) fn take(&mut self, thread: u32) -> Result<Caller, Failed> {
        let now = Instant::now();
        if let Some(mut caller) = self.known.remove(&thread) {
            let age = now.duration_since(caller.used);
            if age < TRUSTED || stat(caller.directory.as_fd()).is_ok() {
                caller.used = now;
                return Ok(caller);
            }
        }
        look_up(thread, now)
    }

    /// Keeps a thread for its next call.
    pub(crate) fn keep(&mut self, caller: Caller) {
        if self.known.len() >= self.most {
            self.known.clear();
        }
        self.known.insert(caller.thread, caller);
    }

    /// Forgets all, such as after a lack of descriptors.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.recorded.clear();
    }

    /// Reads a path in the caller's memory, without its 0. Notices when the
    /// caller has another program than at its last call.
    pub(crate) fn read_text(&mut self, caller: &mut Caller, at: u64) -> Result<Vec<u8>, Failed> {
        let mut bytes = [0_u8; 16 + FIRST];
        // Not over the end of a page: the next one may not exist.
        let first = FIRST.min(4096 - (at % 4096) as usize);
        let image = caller.image.unwrap_or_default();
        let places = [(image.at, 16), (at, first)];
        let got = match caller.image {
            Some(_) => sys::read_memory(caller.thread, &places, &mut bytes).unwrap_or(0),
            None => 0,
        };
        if got < 16 || bytes[..16] != image.random {
            caller.image = read_image(caller);
            caller.is_recorded = false;
            // Fails if the thread has exited and another one has its number.
            stat(caller.directory.as_fd())?;
        }
        let mut text = bytes[16.min(got)..got].to_vec();
        loop {
            if let Some(end) = text.iter().position(|byte| *byte == 0) {
                text.truncate(end);
                return Ok(text);
            }
            if text.len() >= PATH {
                return Err(Failed::Absent);
            }
            let from = at.wrapping_add(text.len() as u64);
            let length = (4096 - (from % 4096) as usize).min(PATH);
            let mut more = vec![0; length];
            let got = read_bytes(caller, from, &mut more)?;
            text.extend_from_slice(&more[..got]);
        }
    }

    /// Returns what is not recorded yet of a caller's process and those above
    /// it, up to the target, the process itself last. `holders` are not of the
    /// tree.
    pub(crate) fn unrecorded(
        &mut self,
        caller: &mut Caller,
        target: u32,
        holders: [u32; 2],
    ) -> Vec<Process> {
        if caller.is_recorded {
            return Vec::new();
        }
        caller.is_recorded = true;
        if self.recorded.len() >= RECORDED {
            self.recorded.clear();
        }
        let now = Instant::now();
        let mut found = Vec::new();
        let mut pid = caller.process.pid;
        for depth in 0..DEPTH {
            if pid <= 1 || holders.contains(&pid) {
                break;
            }
            let fresh = |(_, seen): &(u64, Instant)| {
                depth > 0 && now.duration_since(*seen) < Duration::from_millis(100)
            };
            if self.recorded.get(&pid).is_some_and(fresh) {
                break;
            }
            let Some(process) = describe(pid) else { break };
            let parent = process.parent;
            let hash = hash(&process);
            if { self.recorded.get(&pid) }.is_none_or(|(known, _)| *known != hash) {
                found.push(process);
            }
            self.recorded.insert(pid, (hash, now));
            if pid == target {
                break;
            }
            pid = parent;
        }
        found.reverse();
        found
    }
}

/// Returns a number that differs if the process does.
fn hash(process: &Process) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (process.process, process.parent).hash(&mut hasher);
    (&process.program, &process.command_line).hash(&mut hasher);
    hasher.finish()
}

/// Looks a thread up by its number.
fn look_up(thread: u32, used: Instant) -> Result<Caller, Failed> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(format!("/proc/{thread}"), flags, Mode::empty())?;
    let text = read_file(directory.as_fd(), "status")?;
    let text = String::from_utf8_lossy(&text);
    let group = { text.lines() }.find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let pid: u32 = group.ok_or(Failed::Refused)?;
    let started = if pid == thread {
        stat(directory.as_fd())?.started
    } else {
        let leader = open(format!("/proc/{pid}"), flags, Mode::empty())?;
        stat(leader.as_fd())?.started
    };
    let mut caller = Caller {
        thread,
        directory,
        process: ProcessId { pid, started },
        image: None,
        is_recorded: false,
        used,
    };
    caller.image = read_image(&caller);
    Ok(caller)
}

/// Returns the process with this number; `None` if there is none.
fn describe(pid: u32) -> Option<Process> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(format!("/proc/{pid}"), flags, Mode::empty()).ok()?;
    let directory = directory.as_fd();
    let Stat {
        started, parent, ..
    } = stat(directory).ok()?;
    let program = readlinkat(directory, "exe", Vec::new());
    let program = program.map(std::ffi::CString::into_bytes);
    let mut command_line = read_file(directory, "cmdline").unwrap_or_default();
    command_line.truncate(COMMAND_LINE);
    Some(Process {
        process: ProcessId { pid, started },
        parent,
        program: program.unwrap_or_default(),
        command_line,
    })
}

/// Reads a file of a process, at most 8 KiB of it.
fn read_file(directory: BorrowedFd<'_>, name: &str) -> Result<Vec<u8>, Errno> {
    let file = openat(
        directory,
        name,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut bytes = vec![0; 8192];
    let mut length = 0;
    while length < bytes.len() {
        match rustix::io::read(&file, &mut bytes[length..])? {
            0 => break,
            got => length += got,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads where the random bytes are, and the bytes. `None` if they are not
/// known: then the process is looked at before each mark.
fn read_image(caller: &Caller) -> Option<Image> {
    const AT_RANDOM: u64 = 25;
    let vector = read_file(caller.directory.as_fd(), "auxv").ok()?;
    let (pairs, _) = vector.as_chunks::<16>();
    let wide = pairs.iter().find_map(|pair| {
        let (key, value) = (pair.first_chunk::<8>()?, pair.last_chunk::<8>()?);
        (u64::from_le_bytes(*key) == AT_RANDOM).then(|| u64::from_le_bytes(*value))
    });
    let (pairs, _) = vector.as_chunks::<8>();
    let narrow = pairs.iter().find_map(|pair| {
        let (key, value) = (pair.first_chunk::<4>()?, pair.last_chunk::<4>()?);
        (u64::from(u32::from_le_bytes(*key)) == AT_RANDOM)
            .then(|| u64::from(u32::from_le_bytes(*value)))
    });
    let at = wide.or(narrow)?;
    let mut random = [0; 16];
    let got = read_bytes(caller, at, &mut random).ok()?;
    (got == random.len()).then_some(Image { at, random })
}

/// Reads a caller's memory: all that is before a part that does not exist, at
/// least one byte.
pub(crate) fn read_bytes(caller: &Caller, at: u64, into: &mut [u8]) -> Result<usize, Failed> {
    let length = into.len();
    match sys::read_memory(caller.thread, &[(at, length)], into) {
        Ok(got) if got > 0 => return Ok(got),
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(Failed::Gone),
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => return Err(Failed::Absent),
        Err(_) => {}
    }
    // A filter of the machine may refuse the call, and not this file.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let memory = openat(&caller.directory, "mem", flags, Mode::empty())?;
    match rustix::io::pread(&memory, into, at) {
        Ok(0) | Err(Errno::IO) => Err(Failed::Absent),
        Ok(got) => Ok(got),
        Err(error) => Err(error.into()),
    }
}
