//! From a notification to records in the ring.

use std::cell::Cell;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use rustix::time::ClockId;

use crate::address;
use crate::callers::{Caller, Callers, Failed, read_bytes};
use crate::calls::{Call, Named, WRITING, X32, decode};
use crate::marks::{Before, Chance, Gap, Mark, Operation, Record};
use crate::packing::Packing;
use crate::place::{Places, kind, now};
use crate::processes::{Notification, Shared};
use crate::resolve::{Place, Request, Unresolved, Wants};
use crate::ring::writer::Ring;
use crate::sys;
use crate::watches::Watches;

/// `RESOLVE_IN_ROOT` of `openat2`.
const IN_ROOT: u64 = 0x10;

/// `RENAME_EXCHANGE` of `renameat2`.
const EXCHANGE: u32 = 2;

/// `RENAME_NOREPLACE` of `renameat2`.
const NO_REPLACE: u32 = 1;

/// After how many records the reader is told even if more calls wait.
const BATCH: u32 = 64;

/// How long events of watched names wait while no call does, so that many cost
/// one look.
const REST: Duration = Duration::from_millis(1);

/// `IORING_SETUP_NO_SQARRAY`: where the entries are.
const NO_ARRAY: u32 = 1 << 16;

/// Programs that use `io_uring` by libuv alone.
const LIBUV: [&[u8]; 4] = [b"node", b"nodejs", b"nvim", b"cmake"];

/// What one of the two processes needs to make marks.
#[derive(Debug)]
pub(crate) struct Witness {
    shared: &'static Shared,
    /// Which lane of the ring is this process's.
    lane: usize,
    ring: Ring,
    callers: Callers,
    places: Places,
    tools: Tools,
    /// When events were noted last.
    noted: Option<Instant>,
    /// How many records the reader is not told about.
    unannounced: Cell<u32>,
}

/// What tells more about marked files. Both holders share it.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) watches: Watches,
    pub(crate) packing: Packing,
}

impl Tools {
    /// Makes them for a ring.
    pub(crate) fn new(ring: &Path) -> Self {
        Self {
            watches: Watches::new(),
            packing: Packing::new(ring),
        }
    }

    /// Returns their descriptors.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let both = [self.watches.descriptor(), self.packing.descriptor()];
        both.into_iter().flatten()
    }
}

/// What became of a call whose marks could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unmarked {
    /// The call fails: no mark is missing.
    Nothing,
    /// The thread's number is another one's: look again.
    Again,
    /// A mark is missing.
    Missing(Gap),
}

impl From<Failed> for Unmarked {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Gone => Self::Again,
            Failed::Absent => Self::Nothing,
            Failed::Refused => Self::Missing(Gap::Unreadable),
        }
    }
}

type Marks = Vec<(Operation, Place)>;

impl Witness {
    pub(crate) fn new(
        shared: &'static Shared,
        lane: usize,
        ring: Ring,
        tools: Tools,
        roots: Vec<PathBuf>,
        callers: usize,
    ) -> Self {
        Self {
            shared,
            lane,
            ring,
            callers: Callers::new(callers),
            places: Places::new(roots),
            tools,
            noted: None,
            unannounced: Cell::new(0),
        }
    }

    /// Continues on another lane, in a new process.
    pub(crate) fn adopt(&mut self, lane: usize) {
        self.clear();
        self.tools.watches.forget();
        self.lane = lane;
        self.ring.adopt(lane, &self.shared.lanes[lane]);
    }

    /// Forgets what can be found again.
    pub(crate) fn clear(&mut self) {
        self.callers.clear();
        self.places.clear();
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Returns the descriptors that it uses.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ring.descriptors().chain(self.tools.descriptors())
    }

    /// Records what has happened to watched names.
    pub(crate) fn note_events(&mut self) {
        self.noted = Some(Instant::now());
        // Taken for a moment, since recording needs all but them.
        let mut watches = std::mem::take(&mut self.tools.watches);
        watches.drain(|record| self.record(record));
        self.tools.watches = watches;
    }

    /// Returns what is readable when something happens to watched names.
    pub(crate) fn events(&self) -> Option<BorrowedFd<'_>> {
        self.tools.watches.descriptor()
    }

    /// Returns how long events are left in their queue: each write of a file is
    /// one. `None` if they are not.
    pub(crate) fn rest(&self) -> Option<Duration> {
        REST.checked_sub(self.noted?.elapsed())
    }

    /// Records what has happened to watched names, and tells the reader that it
    /// did so.
    pub(crate) fn answer(&mut self) {
        let asked = self.ring.asked();
        self.note_events();
        self.announce();
        self.ring.answer(asked);
    }

    /// Appends a record.
    pub(crate) fn record(&self, record: &Record) {
        let seq = self.shared.seq.fetch_add(1, SeqCst);
        let lane = &self.shared.lanes[self.lane];
        self.ring.append(self.lane, lane, seq, record);
        self.unannounced.set(self.unannounced.get() + 1);
        if self.unannounced.get() >= BATCH {
            self.announce();
        }
    }

    /// Returns whether the reader is not told yet about some records.
    pub(crate) fn has_news(&self) -> bool {
        self.unannounced.get() > 0
    }

    /// Tells the reader.
    pub(crate) fn announce(&self) {
        self.unannounced.set(0);
        self.ring.announce(self.lane, &self.shared.lanes[self.lane]);
    }

    /// Records that a call has no mark.
    pub(crate) fn gap(&self, why: Gap, thread: u32) {
        self.record(&Record::Gap {
            why,
            pid: thread,
            calls: 1,
        });
    }

    /// Makes the marks of a call. Afterwards it can go on.
    pub(crate) fn observe(&mut self, listener: BorrowedFd<'_>, call: &Notification) {
        let mut tries = 0;
        let why = loop {
            tries += 1;
            match self.attempt(listener, call) {
                Ok(()) | Err(Unmarked::Nothing) => return,
                Err(Unmarked::Missing(why)) => {
                    if tries == 1 {
                        // A lack of descriptors, perhaps.
                        self.clear();
                        continue;
                    }
                    break why;
                }
                Err(Unmarked::Again) if tries < 3 => {}
                Err(Unmarked::Again) => break Gap::Unreadable,
            }
            if !sys::is_waiting(listener, call.id) {
                return;
            }
        };
        if sys::is_waiting(listener, call.id) {
            self.gap(why, call.thread);
        }
    }

    fn attempt(&mut self, listener: BorrowedFd<'_>, call: &Notification) -> Result<(), Unmarked> {
        let decoded = decode(call.architecture, call.number, &call.arguments);
        match decoded {
            Call::View => {
                self.shared.views_differ.store(1, SeqCst);
                self.places.clear();
                return Ok(());
            }
            Call::Handle => return Err(Unmarked::Missing(Gap::Handle)),
            Call::Unknown => {
                let is_x32_view = decode(call.architecture, call.number & !X32, &call.arguments);
                if is_x32_view == Call::View {
                    self.shared.views_differ.store(1, SeqCst);
                    return Ok(());
                }
                return match self.shared.unknown_architecture.swap(1, SeqCst) {
                    0 => Err(Unmarked::Missing(Gap::Architecture)),
                    _ => Ok(()),
                };
            }
            _ => {}
        }
        if call.thread == 0 {
            return Err(Unmarked::Missing(Gap::Unreadable));
        }
        self.places.note_moves(self.shared.moves.load(SeqCst));
        let mut caller = self.callers.take(call.thread)?;
        if let Call::IoUring(entries, parameters) = decoded {
            let is_harmless = is_for_events(&caller, entries, parameters);
            self.callers.keep(caller);
            return match is_harmless {
                true => Ok(()),
                false => Err(Unmarked::Missing(Gap::IoUring)),
            };
        }
        if let Call::Connect(at, length) = decoded {
            let mut bytes = [0; address::LONGEST];
            let length = usize::try_from(length).map_or(bytes.len(), |it| it.min(bytes.len()));
            let got = read_bytes(&caller, at, &mut bytes[..length])?;
            if let Some(address) = address::here(&bytes[..got])
                && sys::is_waiting(listener, call.id)
            {
                self.introduce(&mut caller);
                let process = caller.process;
                self.record(&Record::Connected { process, address });
            }
            self.callers.keep(caller);
            return Ok(());
        }
        let mut marks = self.marks(&mut caller, &decoded)?;
        if !marks.is_empty() {
            self.note_events();
            let watches = &mut self.tools.watches;
            let added = marks.iter().filter(|(_, place)| watches.add(place));
            if added.count() > 0 {
                // What is there now is followed from now on.
                marks = self.marks(&mut caller, &decoded)?;
            }
        }
        // What was read may be another thread's if the caller does not wait.
        if !marks.is_empty() && sys::is_waiting(listener, call.id) {
            let writes = |(operation, place): &(Operation, Place)| {
                place.has_other_names && operation.writes_content()
            };
            if marks.iter().any(writes) {
                self.gap(Gap::SeveralNames, call.thread);
            }
            self.introduce(&mut caller);
            self.write(&caller, marks);
        }
        self.callers.keep(caller);
        Ok(())
    }

    /// Records a process and its ancestors, if they are not recorded yet.
    fn introduce(&mut self, caller: &mut Caller) {
        let (target, holders) = self.shared.processes();
        for process in self.callers.unrecorded(caller, target, holders) {
            self.record(&Record::Process(process));
        }
    }

    /// Writes marks.
    fn write(&mut self, caller: &Caller, marks: Marks) {
        let (realtime, boottime) = (now(ClockId::Realtime), now(ClockId::Boottime));
        for (operation, mut place) in marks {
            let is_directory = { place.object }.is_some_and(|it| kind(it.mode) == libc::S_IFDIR);
            if is_directory {
                // It is renamed or removed: the paths below it will differ.
                self.shared.moves.fetch_add(1, SeqCst);
            }
            if operation.may_destroy() {
                let end = &self.shared.packed;
                let stored = self.tools.packing.store(&place, &self.ring, end);
                place.before = place.before.map(|before| Before { stored, ..before });
            }
            self.record(&Record::Mark(Mark {
                // What another name's file does is not seen.
                is_watched: self.tools.watches.has(&place) && !place.has_other_names,
                before: place.before,
                realtime,
                boottime,
                process: caller.process,
                operation,
                directory: place.directory,
                path: place.path,
                name: place.name,
                object: place.object,
                chance: place.chance,
            }));
        }
    }

    /// Returns the marks of a call: none if it only concerns other files.
    fn marks(&mut self, caller: &mut Caller, call: &Call) -> Result<Marks, Unmarked> {
        let one = |operation, place: Option<Place>| {
            let place = place.filter(is_relevant);
            place.map(|place| (operation, place)).into_iter().collect()
        };
        match *call {
            Call::Open(path, flags) => self.open(caller, path, flags, 0),
            Call::OpenStructure(path, at) => {
                let mut how = [0; 24];
                if read_bytes(caller, at, &mut how)? < how.len() {
                    return Err(Unmarked::Missing(Gap::Unreadable));
                }
                let [flags, _, resolve] = [0, 8, 16].map(|at| {
                    let word = how[at..].first_chunk().copied();
                    u64::from_le_bytes(word.unwrap_or_default())
                });
                if flags & u64::from(WRITING) == 0 {
                    return Ok(Vec::new());
                }
                self.open(caller, path, flags, resolve)
            }
            Call::Truncate(path) => {
                let place = self.resolve(caller, path, Wants::File, false)?;
                Ok(one(Operation::Truncated, place.filter(is_writable)))
            }
            Call::MakeNode(path) => {
                let place = self.resolve(caller, path, Wants::Name, false)?;
                Ok(one(Operation::Created, place))
            }
            Call::Symlink(path) => {
                let place = self.resolve(caller, path, Wants::Name, false)?;
                Ok(one(Operation::Symlinked, place))
            }
            Call::Unlink(path, flags) => {
                let operation = match flags & libc::AT_REMOVEDIR as u32 {
                    0 => Operation::Unlinked,
                    _ => Operation::DirectoryRemoved,
                };
                let place = self.resolve(caller, path, Wants::Name, false)?;
                Ok(one(operation, place.filter(|place| place.object.is_some())))
            }
            Call::Rename(from, to, flags) => {
                let (before, after) = match flags & EXCHANGE {
                    0 => (Operation::RenamedFrom, Operation::RenamedTo),
                    _ => (Operation::Exchanged, Operation::Exchanged),
                };
                let from = self.resolve(caller, from, Wants::Name, false)?;
                let mut to = self.resolve(caller, to, Wants::Name, false)?;
                if flags & NO_REPLACE != 0
                    && let Some(to) = &mut to
                {
                    to.must_be_new();
                }
                Ok(pair((before, from), (after, to)))
            }
            Call::Link(from, to, flags) => {
                let flags = flags as i32;
                let wants = match flags & libc::AT_SYMLINK_FOLLOW {
                    0 => Wants::Name,
                    _ => Wants::File,
                };
                let may_be_empty = flags & libc::AT_EMPTY_PATH != 0;
                let from = self.resolve(caller, from, wants, may_be_empty)?;
                let mut to = self.resolve(caller, to, Wants::Name, false)?;
                if let Some(to) = &mut to {
                    to.must_be_new();
                }
                Ok(pair((Operation::LinkedFrom, from), (Operation::Linked, to)))
            }
            Call::Handle | Call::IoUring(..) | Call::Connect(..) | Call::View | Call::Unknown => {
                Ok(Vec::new())
            }
        }
    }

    fn open(
        &mut self,
        caller: &mut Caller,
        path: Named,
        flags: u64,
        resolve: u64,
    ) -> Result<Marks, Unmarked> {
        let has = |flag: i32| flags & flag as u64 == flag as u64;
        if has(libc::O_PATH) {
            return Ok(Vec::new());
        }
        let is_temporary = has(libc::O_TMPFILE);
        let wants = if is_temporary {
            Wants::Directory
        } else if has(libc::O_NOFOLLOW) || has(libc::O_CREAT | libc::O_EXCL) {
            Wants::Name
        } else {
            Wants::File
        };
        let in_root = resolve & IN_ROOT != 0;
        let text = self.callers.read_text(caller, path.text)?;
        let mut request = self.request(caller, path.directory, &text, wants);
        request.in_root = in_root;
        // The call fails if there is anything.
        let is_new = has(libc::O_CREAT | libc::O_EXCL);
        request.is_new = is_new;
        let place = answer(request.resolve(&mut self.places), caller)?;
        let Some(mut place) = place.filter(is_relevant) else {
            return Ok(Vec::new());
        };
        if is_new {
            place.chance = Chance::IfNew;
        }
        let operation = if is_temporary {
            Operation::Temporary
        } else if !is_writable(&place) {
            return Ok(Vec::new());
        } else if has(libc::O_TRUNC) && place.object.is_some() {
            Operation::OpenedTruncating
        } else if has(libc::O_CREAT) {
            Operation::Created
        } else {
            Operation::Opened
        };
        Ok(vec![(operation, place)])
    }

    /// Resolves a path; `None` if the call will fail.
    fn resolve(
        &mut self,
        caller: &mut Caller,
        path: Named,
        wants: Wants,
        may_be_empty: bool,
    ) -> Result<Option<Place>, Unmarked> {
        let text = self.callers.read_text(caller, path.text)?;
        if text.is_empty() && may_be_empty {
            let request = self.request(caller, path.directory, &text, wants);
            return answer(request.descriptor(&mut self.places), caller);
        }
        let request = self.request(caller, path.directory, &text, wants);
        answer(request.resolve(&mut self.places), caller)
    }

    fn request<'p>(
        &self,
        caller: &'p Caller,
        directory: i32,
        path: &'p [u8],
        wants: Wants,
    ) -> Request<'p> {
        Request {
            caller,
            directory,
            path,
            wants,
            in_root: false,
            is_new: false,
            may_differ: self.shared.views_differ.load(Relaxed) != 0,
        }
    }
}

/// Says what a failure means for a mark; `None` if the call will fail.
fn answer(found: Result<Place, Unresolved>, caller: &Caller) -> Result<Option<Place>, Unmarked> {
    match found {
        Ok(place) => Ok(Some(place)),
        Err(Unresolved::Absent) => Ok(None),
        Err(Unresolved::Denied) if has_own_rights(caller) => Ok(None),
        Err(Unresolved::Gone) => Err(Unmarked::Again),
        Err(Unresolved::Unreadable) => Err(Unmarked::Missing(Gap::Unreadable)),
        Err(Unresolved::Denied | Unresolved::Refused) => Err(Unmarked::Missing(Gap::Unresolved)),
    }
}

/// Returns whether a caller may do no more than this process: it has the same
/// user and user namespace.
fn has_own_rights(caller: &Caller) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxFlags, readlinkat, statx};
    let proc = caller.directory.as_fd();
    let namespace = readlinkat(proc, "ns/user", Vec::new()).ok();
    let own = readlinkat(CWD, "/proc/self/ns/user", Vec::new()).ok();
    let owner = |stat: rustix::fs::Statx| (stat.stx_uid, stat.stx_gid);
    let wanted = StatxFlags::UID | StatxFlags::GID;
    let user = statx(proc, "", AtFlags::EMPTY_PATH, wanted).map(owner).ok();
    let own_user = { statx(CWD, "/proc/self", AtFlags::empty(), wanted) }.map(owner);
    namespace.is_some() && namespace == own && user.is_some() && user == own_user.ok()
}

/// Returns whether `io_uring_setup` makes the queue by which libuv waits for
/// descriptors (`uv__iou_init` with 256 entries). Its queue for files is another
/// one, with other flags.
fn is_for_events(caller: &Caller, entries: u64, parameters: u64) -> bool {
    let mut flags = [0; 4];
    // The third word of the structure.
    let is_read = parameters
        .checked_add(8)
        .is_some_and(|at| matches!(read_bytes(caller, at, &mut flags), Ok(4)));
    let flags = u32::from_le_bytes(flags) & !NO_ARRAY;
    is_read && entries == 256 && flags == 0 && runs_libuv(caller)
}

/// Returns whether a caller runs a program that uses `io_uring` by libuv alone.
fn runs_libuv(caller: &Caller) -> bool {
    let program = rustix::fs::readlinkat(&caller.directory, "exe", Vec::new());
    let program = program.unwrap_or_default();
    let name = program.as_bytes().rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| LIBUV.contains(&name))
}

/// Returns whether an open for writing may change what has this name: a FIFO,
/// a device or a directory has no content to change.
fn is_writable(place: &Place) -> bool {
    let types = [libc::S_IFREG, libc::S_IFLNK];
    match place.object {
        Some(object) => types.contains(&kind(object.mode)),
        None => !place.name.is_empty(),
    }
}

/// Returns whether a file is below a root, or may have a name there.
fn is_relevant(place: &Place) -> bool {
    place.is_inside || place.has_other_names
}

/// Returns both marks of a call with two names, if the first exists and either
/// is below a root.
fn pair(from: (Operation, Option<Place>), to: (Operation, Option<Place>)) -> Marks {
    let (Some(first), Some(second)) = (from.1, to.1) else {
        return Vec::new();
    };
    if first.object.is_none() || !(first.is_inside || second.is_inside) {
        return Vec::new();
    }
    let (mut first, mut second) = (first, second);
    if first.directory.device != second.directory.device {
        (first.chance, second.chance) = (Chance::Poor, Chance::Poor);
    }
    vec![(from.0, first), (to.0, second)]
}
