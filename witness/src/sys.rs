//! The system calls that neither `std` nor `rustix` has without `unsafe`. The
//! one module with `unsafe` code; each block says why it is right.
//!
//! Linux only. No function here keeps a pointer after it returns, except the
//! kernel for the shared memory, which is never unmapped.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use libc::{c_ulong, sigset_t};

/// Returns the system's last error unless the result says success.
fn check(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// What the process was started with and the standard library has changed
/// before `main`: the disposition of SIGPIPE, and closed standard streams.
static SIGPIPE_IGNORED: AtomicU32 = AtomicU32::new(0);
static STREAMS_CLOSED: AtomicU32 = AtomicU32::new(0);

extern "C" fn before_main() {
    // SAFETY: a zeroed `sigaction` is a valid one to be written to, and the
    // pointer is to a local. `fcntl` with F_GETFD reads nothing else.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut action) == 0 {
            let ignored = action.sa_sigaction == libc::SIG_IGN;
            SIGPIPE_IGNORED.store(u32::from(ignored), Relaxed);
        }
        for stream in 0..3 {
            if libc::fcntl(stream, libc::F_GETFD) < 0 {
                STREAMS_CLOSED.fetch_or(1 << stream, Relaxed);
            }
        }
    }
}

// SAFETY: the section holds pointers to functions that are called once before
// `main`, with arguments that a C function without parameters may ignore.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// Which process a [`fork`] returned in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forked {
    /// The new one.
    Child,
    /// The old one, with the new one's id.
    Parent(u32),
}

/// Makes a copy of this process.
///
/// # Errors
/// The system's, such as too many processes.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: this process has one thread (the callers are before any other is
    // started), so the copy finds no lock that another thread holds.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid as u32)),
    }
}

/// Ends this process at once: no destructors, no flushed streams.
pub(crate) fn exit(status: u8) -> ! {
    // SAFETY: has no precondition.
    unsafe { libc::_exit(c_int::from(status)) }
}

/// Replaces this process's program, looked for on the PATH. Returns only the
/// error.
pub(crate) fn execute(command: &[CString]) -> io::Error {
    let mut pointers: Vec<_> = command.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let Some(program) = command.first() else {
        return io::ErrorKind::NotFound.into();
    };
    // SAFETY: the pointers are to strings with a 0 at the end that live until
    // the call returns, and the last one is null.
    unsafe { libc::execvp(program.as_ptr(), pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Memory that this process and those it forks share. A value is never moved
/// and never freed.
pub(crate) fn shared<T: AllZero>() -> io::Result<&'static T> {
    // SAFETY: a new anonymous mapping at a place that the kernel chooses
    // overwrites no other. It is filled with zeros, which `AllZero` says is a
    // value of `T`; pages are aligned for any type; it is never unmapped.
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            size_of::<T>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(&*memory.cast::<T>())
    }
}

/// A type for which zeros are a value, and all of whose fields are atomic.
///
/// # Safety
/// Both must be so.
pub(crate) unsafe trait AllZero: Sync {}

// SAFETY: all fields are atomic integers, or arrays and structures of them.
unsafe impl AllZero for crate::processes::Shared {}

// --- Signals ---------------------------------------------------------------

/// A set of blocked signals.
pub(crate) type Mask = sigset_t;

/// Blocks all signals that can be blocked, and returns what was blocked before.
pub(crate) fn block_all() -> Mask {
    // SAFETY: both sets are locals, written by the first and last call.
    unsafe {
        let mut all: sigset_t = std::mem::zeroed();
        let mut old: sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        old
    }
}

/// Blocks all signals but these.
pub(crate) fn block_all_but(signals: &[c_int]) {
    // SAFETY: as in `block_all`.
    unsafe {
        let mut set: sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        for signal in signals {
            libc::sigdelset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Blocks these signals and those of a mask.
pub(crate) fn block_also(mask: &Mask, signals: &[c_int]) {
    let mut set = *mask;
    // SAFETY: the set is initialised: it comes from `block_all`.
    unsafe {
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Blocks exactly these signals.
pub(crate) fn set_mask(mask: &Mask) {
    // SAFETY: the set is initialised: it comes from `block_all`.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// Gives SIGPIPE the disposition that this process was started with, and
/// closes the standard streams that were closed.
pub(crate) fn restore_start() {
    let ignored = SIGPIPE_IGNORED.load(Relaxed) != 0;
    let action = if ignored {
        libc::SIG_IGN
    } else {
        libc::SIG_DFL
    };
    // SAFETY: neither disposition calls code. The streams were opened by the
    // standard library, which does not own them.
    unsafe {
        libc::signal(libc::SIGPIPE, action);
        for stream in 0..3 {
            if STREAMS_CLOSED.load(Relaxed) & (1 << stream) != 0 {
                libc::close(stream);
            }
        }
    }
}

extern "C" fn nothing(_signal: c_int) {}

/// Makes this signal interrupt system calls and do nothing else.
pub(crate) fn interrupt_by(signal: c_int) {
    // SAFETY: the handler does nothing, which is allowed at any moment.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// Sends SIGALRM to this process again and again, or no longer if `every` is 0.
/// A fork has no such alarm.
pub(crate) fn alarm(every: Duration) -> bool {
    let time = libc::timeval {
        tv_sec: every.as_secs() as libc::time_t,
        tv_usec: every.subsec_micros() as libc::suseconds_t,
    };
    let timer = libc::itimerval {
        it_interval: time,
        it_value: time,
    };
    // SAFETY: the kernel reads a local, and is asked for no old value.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) == 0 }
}

/// Gives a signal its default disposition.
pub(crate) fn default_action(signal: c_int) {
    // SAFETY: the default calls no code of this process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Sends a signal. Returns whether there was a process to send it to.
pub(crate) fn kill(pid: u32, signal: c_int) -> bool {
    // SAFETY: has no precondition. A pid of 0 would be the own group.
    pid != 0 && unsafe { libc::kill(pid as libc::pid_t, signal) } == 0
}

/// Returns a descriptor that reads these signals while they are blocked.
pub(crate) fn signal_fd(signals: &[c_int]) -> io::Result<OwnedFd> {
    // SAFETY: the set is a local; a descriptor that the kernel returns is new
    // and has no other owner.
    unsafe {
        let mut set: sigset_t = std::mem::zeroed();
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let fd = check(libc::signalfd(-1, &raw const set, flags))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

// --- Descriptors -----------------------------------------------------------

/// Closes all descriptors but these, which must be the caller's only ones that
/// it still uses; and makes the standard streams `/dev/null`.
pub(crate) fn close_all_but(keep: &[BorrowedFd<'_>]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd() as u32).collect();
    keep.sort_unstable();
    let mut from = 3_u32;
    // SAFETY: the caller says that nothing uses the others. `dup2` replaces the
    // standard streams, which have no owner.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for stream in 0..3 {
            if null >= 0 {
                libc::dup2(null, stream);
            } else {
                libc::close(stream);
            }
        }
        for fd in keep.into_iter().chain([u32::MAX]) {
            if from < fd {
                let last = if fd == u32::MAX { fd } else { fd - 1 };
                libc::syscall(libc::SYS_close_range, from, last, 0);
            }
            from = fd.saturating_add(1);
        }
    }
}

/// Raises the limits of a file's size and of open descriptors as far as they may
/// be, the second at most to `most`. Returns the limit of descriptors.
pub(crate) fn raise_limits(most: u64) -> u64 {
    // SAFETY: the pointers are to locals.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
        }
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 256;
        }
        if limit.rlim_cur < most {
            let wanted = libc::rlimit {
                rlim_cur: limit.rlim_max.min(most),
                rlim_max: limit.rlim_max,
            };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) == 0 {
                limit = wanted;
            }
        }
        limit.rlim_cur
    }
}

// --- The filter and its listener -------------------------------------------

/// One instruction of a filter, as the kernel has it.
pub(crate) type Instruction = libc::sock_filter;

/// Returns whether the kernel has the action that asks a listener.
pub(crate) fn has_listeners() -> bool {
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the pointer is to a local that the kernel reads.
    unsafe {
        let operation = libc::SECCOMP_GET_ACTION_AVAIL;
        libc::syscall(libc::SYS_seccomp, operation, 0, &raw const action) == 0
    }
}

/// Returns the sizes of a notification and of an answer; `None` if unknown.
pub(crate) fn notification_sizes() -> Option<(usize, usize)> {
    // SAFETY: the kernel writes three 16-bit numbers into a local of that type.
    unsafe {
        let mut sizes: libc::seccomp_notif_sizes = std::mem::zeroed();
        let operation = libc::SECCOMP_GET_NOTIF_SIZES;
        let result = libc::syscall(libc::SYS_seccomp, operation, 0, &raw mut sizes);
        let sizes = (sizes.seccomp_notif, sizes.seccomp_notif_resp);
        (result == 0).then_some((sizes.0.into(), sizes.1.into()))
    }
}

/// Puts a filter on this process and all that it will start. Returns the
/// listener.
///
/// # Errors
/// The system's: EACCES without `no_new_privs` and CAP_SYS_ADMIN, EBUSY if a
/// filter with a listener is above, EINVAL for flags that are not known.
pub(crate) fn install(filter: &mut [Instruction], flags: c_ulong) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program is a local, and its pointer and length are those of
    // a slice. A descriptor that the kernel returns is new.
    unsafe {
        let operation = libc::SECCOMP_SET_MODE_FILTER;
        let flags = flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let fd = libc::syscall(libc::SYS_seccomp, operation, flags, &raw const program);
        Ok(OwnedFd::from_raw_fd(check(fd)? as RawFd))
    }
}

/// Gives up new privileges by `exec`, for this process and all that it starts.
pub(crate) fn set_no_new_privileges() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// The words of a notification, and room for what later kernels append.
pub(crate) const WORDS: usize = 32;

const RECEIVE: c_ulong = libc::SECCOMP_IOCTL_NOTIF_RECV as c_ulong;
const SEND: c_ulong = libc::SECCOMP_IOCTL_NOTIF_SEND as c_ulong;
const IS_VALID: c_ulong = libc::SECCOMP_IOCTL_NOTIF_ID_VALID as c_ulong;
const SET_FLAGS: c_ulong = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as c_ulong;

/// Waits for a notification, which the kernel writes into `slot`. The slot must
/// be all zeros.
pub(crate) fn receive(listener: BorrowedFd<'_>, slot: &[AtomicU64; WORDS]) -> io::Result<()> {
    // SAFETY: the slot has room for 256 bytes, more than the notification has
    // (`notification_sizes` is compared at the start). Its words are atomic, so
    // the kernel may write them while another process reads them.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, slot.as_ptr()) };
    check(result).map(drop)
}

/// Lets a call go on. An error of ENOENT says that no caller waits any more.
pub(crate) fn go_on(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let mut answer = [0_u64; WORDS];
    // `id`, `val`, and `error` and `flags` as halves of one word.
    answer[0] = id;
    answer[2] = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE << 32;
    // SAFETY: as in `receive`, with memory of this function.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, answer.as_mut_ptr()) };
    check(result).map(drop)
}

/// Returns whether the caller still waits for an answer.
pub(crate) fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads one number from a local.
    unsafe { libc::ioctl(listener.as_raw_fd(), IS_VALID as _, &raw const id) == 0 }
}

/// Asks the kernel to start the listener on the processor of the caller, which
/// waits anyway. Kernels before 6.6 refuse it.
pub(crate) fn wake_on_same_processor(listener: BorrowedFd<'_>) -> bool {
    let flag = c_ulong::from(1_u32);
    // SAFETY: the argument is a number.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, flag) == 0 }
}

// --- The memory of the tree ------------------------------------------------

/// Reads another process's memory: each of the places, a number of bytes, one
/// after the other. Returns how many bytes were read before the first place
/// that could not be.
pub(crate) fn read_memory(
    thread: u32,
    places: &[(u64, usize)],
    into: &mut [u8],
) -> io::Result<usize> {
    let size: usize = places.iter().map(|place| place.1).sum();
    if size > into.len() || places.len() > 4 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast::<c_void>(),
        iov_len: size,
    };
    let mut remote = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; 4];
    for (part, (place, length)) in remote.iter_mut().zip(places) {
        part.iov_base = *place as usize as *mut c_void;
        part.iov_len = *length;
    }
    // SAFETY: the local part is a slice of at least that size. The remote
    // parts are addresses in another process, which the kernel checks.
    let got = unsafe {
        libc::process_vm_readv(
            thread as libc::pid_t,
            &raw const local,
            1,
            remote.as_ptr(),
            places.len() as c_ulong,
            0,
        )
    };
    check(got as i64).map(|got| got as usize)
}

/// Returns this process's number, also after a fork.
pub(crate) fn own_pid() -> u32 {
    // SAFETY: has no precondition.
    unsafe { libc::getpid() as u32 }
}
