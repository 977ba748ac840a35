//! Starts the four processes.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;

use rustix::fs::{AtFlags, Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, WaitOptions, getpid, pidfd_open, set_child_subreaper, setsid, waitpid,
};

use super::holder::{Holder, Peer};
use super::{Launch, Shared, launcher, target};
use crate::marks::{ProcessId, Record, Refusal};
use crate::place::{identity, look};
use crate::proc_stat::stat;
use crate::ring::writer::Ring;
use crate::sys::{self, Forked};
use crate::witness::{Tools, Witness};

/// The most descriptors that a holder uses, and how many of them are not for
/// callers.
const DESCRIPTORS: u64 = 512;
const OTHERS: u64 = 64;

/// The supervisor's slot and lane, and the guardian's.
const SUPERVISOR: usize = 0;
const GUARDIAN: usize = 1;

/// What a holder has before it has the listener.
struct Parts<'l> {
    launch: &'l Launch,
    command: &'l [CString],
    mask: sys::Mask,
    ring: Ring,
    tools: Tools,
    shared: &'static Shared,
    roots: Vec<PathBuf>,
    launcher: OwnedFd,
    report: OwnedFd,
}

/// Starts guardian, supervisor and target, and waits for the target as the
/// launcher. Returns the status to exit with.
pub(super) fn start(
    launch: &Launch,
    command: &[CString],
    ring: Ring,
    shared: &'static Shared,
) -> Result<u8, Refusal> {
    let no_holders = |_: Errno| Refusal::NoHolders;
    let roots = launch.roots.iter();
    let roots = roots.map(|root| std::fs::canonicalize(root).unwrap_or_else(|_| root.clone()));
    let roots: Vec<PathBuf> = roots.collect();
    record_inherited(shared, &ring, &roots);
    let (reports, report) = pipe_with(PipeFlags::CLOEXEC).map_err(no_holders)?;
    let launcher = pidfd_open(getpid(), PidfdFlags::empty()).map_err(no_holders)?;
    let signals = launcher::signals().map_err(|_| Refusal::NoHolders)?;
    // What loses both holders comes back to the launcher.
    set_child_subreaper(Some(getpid())).map_err(no_holders)?;
    let mask = sys::block_all();
    let parts = Parts {
        launch,
        command,
        mask,
        ring,
        tools: Tools::new(&launch.ring),
        shared,
        roots,
        launcher,
        report,
    };
    match sys::fork() {
        Ok(Forked::Child) => guardian(parts),
        Ok(Forked::Parent(guardian)) => {
            // The report's other end must be the holders' only.
            drop(parts);
            match launcher::wait(shared, reports, &signals, &mask) {
                Some(status) => Ok(status),
                None => Err(give_up(&mask, Some(guardian))),
            }
        }
        Err(_) => {
            let record = Record::Refused(Refusal::NoHolders);
            record_first(shared, &parts.ring, &record);
            Err(give_up(&parts.mask, None))
        }
    }
}

/// Undoes what the launcher has changed, so that it can become the command.
fn give_up(mask: &sys::Mask, guardian: Option<u32>) -> Refusal {
    let _unchanged = set_child_subreaper(None);
    if let Some(guardian) = guardian.and_then(|pid| Pid::from_raw(pid as i32)) {
        // It exits at once, and the command must not find it as a child.
        let _gone = waitpid(Some(guardian), WaitOptions::empty());
    }
    sys::set_mask(mask);
    Refusal::NoHolders
}

/// The guardian: starts the supervisor, and watches it.
fn guardian(parts: Parts<'_>) -> ! {
    let own = getpid();
    let started = (|| {
        set_child_subreaper(Some(own))?;
        let own_fd = pidfd_open(own, PidfdFlags::empty())?;
        Ok::<_, Errno>((own_fd, pair()?))
    })();
    let Ok((own_fd, (socket, targets))) = started else {
        refuse(&parts);
    };
    match sys::fork() {
        Ok(Forked::Child) => {
            drop(socket);
            let peer = Peer::parent(own, own_fd);
            supervisor(parts, peer, targets)
        }
        Ok(Forked::Parent(pid)) => {
            drop(targets);
            let _is_new = setsid();
            // The supervisor goes on and starts another one.
            let peer = Peer::child(pid).unwrap_or_else(|| sys::exit(1));
            hold(parts, GUARDIAN, peer, socket)
        }
        Err(_) => refuse(&parts),
    }
}

/// The supervisor: starts the target, and answers its calls.
fn supervisor(parts: Parts<'_>, guardian: Peer, for_guardian: OwnedFd) -> ! {
    let started = (|| {
        set_child_subreaper(Some(getpid()))?;
        pair()
    })();
    let Ok((socket, for_supervisor)) = started else {
        refuse(&parts);
    };
    match sys::fork() {
        Ok(Forked::Child) => {
            drop(socket);
            // Before the launcher can see that it has no holders, if it loses
            // them now: it must not start the command again.
            parts.shared.target.store(sys::own_pid(), SeqCst);
            let holders = [for_guardian, for_supervisor];
            target::run(parts.launch, parts.command, &parts.mask, holders)
        }
        Ok(Forked::Parent(pid)) => {
            drop((for_guardian, for_supervisor));
            parts.shared.target.store(pid, SeqCst);
            let _gone = rustix::io::write(&parts.report, b"T");
            // Not before: the target stays in the launcher's session.
            let _is_new = setsid();
            hold(parts, SUPERVISOR, guardian, socket)
        }
        Err(_) => refuse(&parts),
    }
}

/// Tells the launcher to run the command itself, and exits.
fn refuse(parts: &Parts<'_>) -> ! {
    let record = Record::Refused(Refusal::NoHolders);
    record_first(parts.shared, &parts.ring, &record);
    let _gone = rustix::io::write(&parts.report, b"N");
    sys::exit(1)
}

/// Waits for the listener, and holds it until the tree has ended.
fn hold(parts: Parts<'_>, slot: usize, peer: Peer, socket: OwnedFd) -> ! {
    std::panic::set_hook(Box::new(|_| std::process::abort()));
    let shared = parts.shared;
    // The target has inherited the dispositions already.
    sys::default_action(libc::SIGCHLD);
    sys::interrupt_by(libc::SIGALRM);
    let Ok(children) = sys::signal_fd(&[libc::SIGCHLD]) else {
        sys::exit(1);
    };
    let (listener, why) = receive(&socket);
    let target = shared.target.load(SeqCst);
    let target = Pid::from_raw(target as i32);
    let target = target.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let limit = sys::raise_limits(DESCRIPTORS);
    let callers = limit.saturating_sub(OTHERS).max(8) as usize;
    let witness = Witness::new(shared, slot, parts.ring, parts.tools, parts.roots, callers);
    let holder = Holder {
        shared,
        slot,
        witness,
        listener,
        peer: Some(peer),
        launcher: Some(parts.launcher),
        target,
        children,
        report: parts.report,
        is_distrusting: false,
        given: None,
        alarm: None,
    };
    holder.close_others(&socket);
    let _stays = rustix::process::chdir("/");
    shared.slots[slot].pid.store(sys::own_pid(), SeqCst);
    if slot == SUPERVISOR {
        shared.started.store(started(shared), SeqCst);
        match why {
            Some(why) => holder.witness.record(&Record::Refused(why)),
            None => holder.record_holders(),
        }
    }
    sys::block_all_but(&[libc::SIGALRM]);
    let _gone = rustix::io::write(&socket, b"a");
    drop(socket);
    match holder.listener {
        Some(_) => holder.run(),
        None if slot == SUPERVISOR => holder.accompany(),
        None => sys::exit(0),
    }
}

/// Returns when the target was started.
fn started(shared: &Shared) -> u64 {
    let pid = shared.target.load(SeqCst);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(format!("/proc/{pid}"), flags, Mode::empty());
    let stat = directory.and_then(|directory| stat(directory.as_fd()));
    stat.map_or(0, |stat| stat.started)
}

/// Receives the listener from the target, or why there is none.
fn receive(socket: &OwnedFd) -> (Option<OwnedFd>, Option<Refusal>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut data = [0; 1];
    loop {
        let mut parts = [std::io::IoSliceMut::new(&mut data)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(message) if message.bytes == 1 => break,
            Err(Errno::INTR) => {}
            // The target has exited.
            _ => return (None, Some(Refusal::NoHolders)),
        }
    }
    if data[0] != 0 {
        return (None, Refusal::from_number(data[0]));
    }
    let listener = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    (listener, None)
}

/// Returns two sockets that are connected.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Appends a record before there are holders.
fn record_first(shared: &Shared, ring: &Ring, record: &Record) {
    let seq = shared.seq.fetch_add(1, SeqCst);
    ring.append(GUARDIAN, &shared.lanes[GUARDIAN], seq, record);
    ring.announce(GUARDIAN, &shared.lanes[GUARDIAN]);
}

/// Records the files below a root that the command can write by a descriptor
/// that it is started with.
fn record_inherited(shared: &Shared, ring: &Ring, roots: &[PathBuf]) {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(path) = std::fs::read_link(entry.path()) else {
            continue;
        };
        if !roots.iter().any(|root| path.starts_with(root)) {
            continue;
        }
        let name = entry.file_name();
        let Some(flags) = crate::tree::flags("self", &name.to_string_lossy()) else {
            continue;
        };
        let fd = entry.path();
        let stat = look(rustix::fs::CWD, fd.as_os_str().as_bytes(), AtFlags::empty());
        let Ok(stat) = stat else { continue };
        let is_file = crate::place::kind(stat.stx_mode) == libc::S_IFREG;
        let is_open = flags & libc::O_CLOEXEC as u32 == 0;
        if is_file && is_open && flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32 {
            let record = Record::Inherited {
                object: identity(&stat),
                path: path.as_os_str().as_bytes().to_vec(),
            };
            record_first(shared, ring, &record);
        }
    }
}

/// Returns the target's process.
pub(super) fn target_of(shared: &Shared) -> ProcessId {
    ProcessId {
        pid: shared.target.load(SeqCst),
        started: shared.started.load(SeqCst),
    }
}
