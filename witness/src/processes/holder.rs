//! A holder of the listener: answers calls, or watches the one that does.
//!
//! Both may answer any call. Which one does is in the shared memory; the other
//! one takes over for good if it exits, and until it moves if it does not.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, setsid,
    wait as wait_any,
};

use super::{Shared, Slot, start};
use crate::calls::{Call, decode};
use crate::marks::{Gap, Record};
use crate::proc_stat::stat;
use crate::sys::{self, Forked};
use crate::witness::Witness;

/// How long the ring's reader waits for news while calls come one by one.
const NEWS: Duration = Duration::from_millis(1);

/// How often the watching holder looks while there is work.
const TICK: Duration = Duration::from_millis(50);

/// After how many looks without progress it takes over: 250 ms.
const STALLED: u32 = 5;

/// After how many looks without work it waits for some.
const QUIET: u32 = 20;

/// How long after taking over a call goes on that the other holder has
/// received, if that holder is only slow.
const LATE: Duration = Duration::from_secs(2);

/// How long the last holder waits for the target's status.
const PATIENCE: u32 = 40;

/// Another process, with a descriptor that tells its end.
#[derive(Debug)]
pub(super) struct Peer {
    pid: Pid,
    fd: OwnedFd,
    is_child: bool,
}

impl Peer {
    /// Another process of which this one is a child.
    pub(super) fn parent(pid: Pid, fd: OwnedFd) -> Self {
        let is_child = false;
        Self { pid, fd, is_child }
    }

    /// A child of this process; `None` if it is none.
    pub(super) fn child(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(pid as i32)?;
        let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let is_child = true;
        Some(Self { pid, fd, is_child })
    }
}

/// One of the two holders.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) shared: &'static Shared,
    /// Which slot and lane is this one's.
    pub(super) slot: usize,
    pub(super) witness: Witness,
    /// `None` if the command is not witnessed.
    pub(super) listener: Option<OwnedFd>,
    pub(super) peer: Option<Peer>,
    /// The launcher, as long as its end means something.
    pub(super) launcher: Option<OwnedFd>,
    pub(super) target: Option<OwnedFd>,
    /// Readable when a child has ended or stopped.
    pub(super) children: OwnedFd,
    /// Tells the launcher about the target.
    pub(super) report: OwnedFd,
    /// Whether the other holder seems to be stuck in a path.
    pub(super) is_distrusting: bool,
    /// The call that the other holder has, and since when this one has seen that.
    pub(super) given: Option<(u64, Instant)>,
    /// While an alarm interrupts this process every [`TICK`]: how often it had
    /// finished something at the last one. See [`Holder::receive`].
    pub(super) alarm: Option<u64>,
}

/// What the listener has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ready {
    /// A call.
    pending: bool,
    /// The end of the tree.
    ended: bool,
}

impl Holder {
    fn own(&self) -> &'static Slot {
        &self.shared.slots[self.slot]
    }

    fn other(&self) -> &'static Slot {
        &self.shared.slots[1 - self.slot]
    }

    fn is_primary(&self) -> bool {
        self.shared.primary.load(SeqCst) as usize == self.slot
    }

    /// Closes what this process does not use.
    pub(super) fn close_others(&self, socket: &OwnedFd) {
        let mut keep = vec![socket.as_fd(), self.children.as_fd(), self.report.as_fd()];
        keep.extend(self.witness.descriptors());
        keep.extend(self.peer.as_ref().map(|peer| peer.fd.as_fd()));
        let more = [&self.listener, &self.launcher, &self.target];
        keep.extend(more.into_iter().flatten().map(|fd| fd.as_fd()));
        sys::close_all_but(&keep);
    }

    /// Holds the listener until the tree has ended.
    pub(super) fn run(mut self) -> ! {
        if let Some(listener) = &self.listener {
            sys::wake_on_same_processor(listener.as_fd());
        }
        self.serve()
    }

    fn serve(&mut self) -> ! {
        loop {
            if self.is_primary() {
                let limit = self.overdue();
                let ready = self.wait(true, limit);
                self.answer(ready);
            } else {
                self.watch();
            }
        }
    }

    /// Lets a call go on that the other holder has received, while it stood in for
    /// this one, and has not answered in time: it may have been stopped. Returns how
    /// long to wait at most while it has one.
    fn overdue(&mut self) -> Option<Duration> {
        let id = self.other().id();
        let since = match self.given {
            Some((given, since)) if given == id => since,
            _ => Instant::now(),
        };
        self.given = (id != 0).then_some((id, since));
        if id != 0 && since.elapsed() >= TICK * STALLED {
            self.settle(Gap::Unanswered);
        }
        (id != 0).then_some(TICK)
    }

    /// Waits for an unwitnessed target, and tells the launcher how it ended.
    pub(super) fn accompany(mut self) -> ! {
        self.peer = None;
        while self.shared.status().is_none() {
            self.wait(false, None);
        }
        sys::exit(0)
    }

    /// Answers a call, or ends with the tree.
    fn answer(&mut self, ready: Ready) {
        if ready.ended {
            self.finish();
        }
        if ready.pending {
            self.receive();
        } else if self.peer.is_none() {
            self.start_standby();
        }
    }

    /// Waits for a call (`calls`), the end of a process, or the time. Deals with
    /// all but calls.
    fn wait(&mut self, calls: bool, limit: Option<Duration>) -> Ready {
        let limit = match (self.peer.is_none() && self.listener.is_some(), limit) {
            _ if self.witness.has_news() => Some(limit.unwrap_or(NEWS).min(NEWS)),
            // To start another one was impossible: try again.
            (true, None) => Some(TICK),
            (_, limit) => limit,
        };
        let is_primary = self.is_primary();
        let rest = self.witness.rest().filter(|_| is_primary);
        let limit = rest.map_or(limit, |rest| {
            Some(limit.map_or(rest, |limit| limit.min(rest)))
        });
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        let asks = self.witness.ring().asks().filter(|_| is_primary);
        let watched = [
            Some(self.children.as_fd()),
            self.peer.as_ref().map(|peer| peer.fd.as_fd()),
            self.launcher.as_ref().map(|launcher| launcher.as_fd()),
            { self.listener.as_ref() }
                .filter(|_| calls)
                .map(|it| it.as_fd()),
            asks.map(|asks| asks.as_fd()),
            self.witness
                .events()
                .filter(|_| is_primary && rest.is_none()),
        ];
        // The first one again stands for a descriptor that is not there.
        let children = self.children.as_fd();
        let mut waits =
            watched.map(|fd| PollFd::from_borrowed_fd(fd.unwrap_or(children), PollFlags::IN));
        let ready = poll_all(&mut waits, limit.as_ref());
        if !ready.is_ok_and(|ready| ready > 0) {
            if self.witness.has_news() {
                self.witness.announce();
            }
            if ready.is_err() && self.alarm.is_some() {
                self.calm();
            }
            return Ready::default();
        }
        let mut events = [PollFlags::empty(); 6];
        for ((event, wait), fd) in events.iter_mut().zip(&waits).zip(watched) {
            *event = fd.map_or(PollFlags::empty(), |_| wait.revents());
        }
        let [children, peer, launcher, of, asks, happened] = events;
        if !happened.is_empty() {
            self.witness.note_events();
        }
        if !asks.is_empty() {
            self.witness.answer();
        }
        if !children.is_empty() {
            self.reap();
        }
        if !launcher.is_empty() {
            self.launcher_ended();
        }
        if !peer.is_empty() {
            self.peer_ended();
        }
        Ready {
            pending: of.contains(PollFlags::IN),
            ended: of.contains(PollFlags::HUP),
        }
    }

    /// An alarm has interrupted a wait: turns it off if nothing was received
    /// since the last one. While nothing is written, nothing wakes this process.
    fn calm(&mut self) {
        let beats = self.own().beats.load(SeqCst);
        if self.alarm.replace(beats) == Some(beats) && sys::alarm(Duration::ZERO) {
            self.alarm = None;
        }
    }

    /// Receives a call, makes its marks, and lets it go on.
    fn receive(&mut self) {
        let Some(listener) = &self.listener else {
            return;
        };
        let (listener, slot) = (listener.as_fd(), self.own());
        slot.clear();
        // The other holder may have been quicker, and this one waits for the
        // next call, which may never come: the other one may be killed with the
        // last one in its hands. The alarm interrupts that.
        if self.alarm.is_none() && sys::alarm(TICK) {
            self.alarm = Some(slot.beats.load(SeqCst));
        }
        if sys::receive(listener, &slot.words).is_err() {
            return;
        }
        let call = slot.notification();
        if self.is_distrusting {
            self.witness.gap(Gap::Late, call.thread);
            self.note_view(slot);
        } else {
            self.witness.observe(listener, &call);
        }
        slot.is_marked.store(1, SeqCst);
        // Fails if the caller is gone, or the other holder has answered.
        let _answered = sys::go_on(listener, call.id);
        slot.clear();
        slot.beats.fetch_add(1, SeqCst);
    }

    /// Lets the call go on that the other holder has received and not answered.
    /// Its path is not touched: that may be what it died of.
    fn settle(&mut self, why: Gap) {
        let slot = self.other();
        let call = slot.notification();
        let Some(listener) = self.listener.as_ref().filter(|_| call.id != 0) else {
            return;
        };
        if slot.is_marked.load(SeqCst) == 0 && sys::is_waiting(listener.as_fd(), call.id) {
            self.witness.gap(why, call.thread);
            self.note_view(slot);
        }
        let _answered = sys::go_on(listener.as_fd(), call.id);
    }

    /// Remembers that the tree may have another view of the file system, if
    /// that is what this unseen call does.
    fn note_view(&self, slot: &Slot) {
        let call = slot.notification();
        if decode(call.architecture, call.number, &call.arguments) == Call::View {
            self.shared.views_differ.store(1, SeqCst);
        }
    }

    /// Watches the other holder while that one answers.
    fn watch(&mut self) {
        // Without work, neither holder wakes up.
        let ready = self.wait(true, None);
        if ready.ended {
            self.finish();
        }
        let mut beats = self.other().beats.load(SeqCst);
        let (mut stalled, mut quiet) = (0, 0);
        while quiet < QUIET && !self.is_primary() {
            self.wait(false, Some(TICK));
            let ready = self.wait(true, Some(Duration::ZERO));
            if ready.ended {
                self.finish();
            }
            let now = self.other().beats.load(SeqCst);
            let has_work = ready.pending || self.other().id() != 0;
            if now != beats || !has_work {
                stalled = 0;
                quiet = if now == beats { quiet + 1 } else { 0 };
                beats = now;
                continue;
            }
            quiet = 0;
            stalled += 1;
            // An exit is seen by the descriptor: this one is stopped or stuck.
            if stalled >= STALLED && !self.is_primary() {
                self.stand_in(beats);
                return;
            }
        }
    }

    /// Answers until the other holder moves.
    fn stand_in(&mut self, beats: u64) {
        let since = Instant::now();
        while !self.is_primary() && self.other().beats.load(SeqCst) == beats {
            let state = self.peer_state();
            let is_stopped = matches!(state, b'T' | b't');
            let has_call = self.other().id() != 0;
            // It may only be slow, such as below a debugger or on a busy disk.
            if is_stopped {
                self.settle(Gap::Unanswered);
            } else if since.elapsed() >= LATE || matches!(state, b'D' | b'S') {
                self.settle(Gap::Late);
            }
            // What it is stuck in may be where the next path leads.
            self.is_distrusting = has_call && matches!(state, b'D' | b'S');
            for _ in 0..64 {
                let ready = self.wait(true, Some(TICK));
                if ready.ended {
                    self.finish();
                }
                if !ready.pending || self.is_primary() {
                    break;
                }
                self.receive();
                if self.other().beats.load(SeqCst) != beats {
                    break;
                }
            }
        }
        self.is_distrusting = false;
    }

    /// Returns the letter of the other holder's state; 0 if it is not known.
    fn peer_state(&self) -> u8 {
        let pid = self.other().pid.load(SeqCst);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(format!("/proc/{pid}"), flags, Mode::empty());
        let stat = directory.and_then(|directory| stat(directory.as_fd()));
        stat.map_or(0, |stat| stat.state)
    }

    /// The other holder has exited: takes over, and starts a new one.
    fn peer_ended(&mut self) {
        self.peer = None;
        if self.is_over() {
            self.finish();
        }
        self.shared.primary.store(self.slot as u32, SeqCst);
        self.is_distrusting = false;
        self.settle(Gap::Unanswered);
        let other = self.other();
        other.clear();
        other.pid.store(0, SeqCst);
        self.start_standby();
    }

    /// Returns whether the tree has ended.
    fn is_over(&self) -> bool {
        let Some(listener) = &self.listener else {
            return true;
        };
        let mut waits = [PollFd::new(listener, PollFlags::IN)];
        let _none = poll(&mut waits, Some(&Timespec::default()));
        waits[0].revents().contains(PollFlags::HUP)
    }

    /// Starts another holder, which watches this one.
    fn start_standby(&mut self) {
        let own = getpid();
        let Ok(own_fd) = pidfd_open(own, PidfdFlags::empty()) else {
            self.witness.clear();
            return;
        };
        match sys::fork() {
            Ok(Forked::Child) => {
                self.slot = 1 - self.slot;
                self.own().pid.store(sys::own_pid(), SeqCst);
                self.peer = Some(Peer::parent(own, own_fd));
                self.witness.adopt(self.slot);
                self.is_distrusting = false;
                self.given = None;
                self.alarm = None;
                // A signal to the group of one must not reach both.
                let _is_new = setsid();
                self.serve()
            }
            Ok(Forked::Parent(pid)) => {
                self.other().pid.store(pid, SeqCst);
                self.peer = Peer::child(pid);
                self.record_holders();
            }
            Err(_) => {}
        }
    }

    /// Records who holds the listener.
    pub(super) fn record_holders(&self) {
        let peer = self.peer.as_ref();
        let peer = peer.map_or(0, |peer| peer.pid.as_raw_nonzero().get() as u32);
        self.witness.record(&Record::Holders {
            holders: [sys::own_pid(), peer],
            target: start::target_of(self.shared),
        });
    }

    /// The launcher has exited before the target: a process killed it, and meant
    /// the command.
    fn launcher_ended(&mut self) {
        self.launcher = None;
        if self.shared.status().is_none()
            && let Some(target) = &self.target
        {
            let _ended = pidfd_send_signal(target, Signal::KILL);
        }
    }

    /// Waits for children that have ended, and tells the launcher about the
    /// target.
    fn reap(&self) {
        let mut bytes = [0; 4096];
        while rustix::io::read(&self.children, &mut bytes).is_ok() {}
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        while let Ok(Some((pid, status))) = wait_any(options) {
            if pid.as_raw_nonzero().get() as u32 != self.shared.target.load(SeqCst) {
                continue;
            }
            let word = match status.stopped() {
                true => b"S",
                false => {
                    self.shared.set_status(status.as_raw());
                    b"E"
                }
            };
            let _gone = rustix::io::write(&self.report, word);
        }
    }

    /// The tree has ended: writes that once, and exits.
    fn finish(&mut self) -> ! {
        // The target's status comes a little later than the end of its calls.
        for _ in 0..PATIENCE {
            self.reap();
            if self.shared.status().is_some() {
                break;
            }
            let mut waits = [PollFd::new(&self.children, PollFlags::IN)];
            let _time = poll(&mut waits, Some(&tick()));
        }
        if self.shared.finished.swap(1, SeqCst) == 0 {
            self.witness.note_events();
            self.witness.record(&Record::Ended);
            self.witness.announce();
            // The end of this process takes some milliseconds more.
            self.witness.ring().end();
        }
        self.witness.announce();
        if let Some(peer) = &self.peer {
            // It may wait for a call that never comes.
            let _gone = pidfd_send_signal(&peer.fd, Signal::ALARM);
            // Perhaps no other process ever waits for it: not every first process of
            // a container does.
            let mut waits = [PollFd::new(&peer.fd, PollFlags::IN)];
            if peer.is_child && poll(&mut waits, Some(&tick())).is_ok_and(|ready| ready > 0) {
                self.reap();
            }
        }
        sys::exit(0)
    }
}

/// Polls, at most for this time. With a limit of descriptors below the number of
/// these, which `poll` refuses, it polls them one by one.
fn poll_all(waits: &mut [PollFd<'_>], limit: Option<&Timespec>) -> Result<usize, Errno> {
    match poll(waits, limit) {
        Err(Errno::INVAL) => {}
        done => return done,
    }
    let mut ready = 0;
    for wait in waits.iter_mut() {
        ready += poll(std::slice::from_mut(wait), Some(&Timespec::default())).unwrap_or(0);
    }
    if ready == 0 {
        // Never in a loop that uses a processor.
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(ready)
}

/// Returns [`TICK`] as the system takes it.
fn tick() -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(TICK.subsec_nanos()),
    }
}
