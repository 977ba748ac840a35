//! The holders are killed and stopped under load: no call fails, and each has
//! its mark or a gap.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::HashSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{Place, gaps, heavy, short, wait_for};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use touchmark_witness::{Gap, Reader, Record};

/// How many processes make calls, and how many each.
const WORKERS: usize = 3;
const CALLS: usize = 4000;

/// Opens files with a name for each call, and counts what fails.
const LOAD: &str = "
import os, sys
failed = 0
worker, calls = int(sys.argv[1]), int(sys.argv[2])
for i in range(calls):
    try: os.close(os.open(f'w{worker}-{i}', os.O_WRONLY | os.O_CREAT))
    except OSError as error:
        failed += 1
        print(error, file=sys.stderr)
    if i % 16 == 15:
        try: os.unlink(f'w{worker}-{i}')
        except OSError: failed += 1
sys.exit(failed != 0)
";

/// The load below the witness, and what the ring tells of it.
struct Load {
    workers: usize,
    place: Place,
    child: Child,
    reader: Reader,
    records: Vec<Record>,
}

impl Load {
    fn start() -> Self {
        Self::of(WORKERS)
    }

    /// Starts this many workers.
    fn of(workers: usize) -> Self {
        let place = Place::with(64 << 20);
        let script = format!(
            "i=0; while [ $i -lt {workers} ]; do
                python3 -c \"$1\" $i {CALLS} & pids=\"$pids $!\"; i=$((i + 1))
            done
            for pid in $pids; do wait $pid || exit 1; done"
        );
        let mut command = place.witness(["sh", "-c", &script, "sh", LOAD]);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let reader = Reader::open(&place.ring).unwrap();
        let mut load = Self {
            workers,
            place,
            child,
            reader,
            records: Vec::new(),
        };
        wait_for("the first mark", || {
            load.read();
            load.records
                .iter()
                .any(|one| matches!(one, Record::Mark(_)))
        });
        load
    }

    fn read(&mut self) {
        while let Some((_, record)) = self.reader.next().unwrap() {
            self.records.push(record);
        }
    }

    /// Returns the holder that answers and the one that watches.
    fn holders(&mut self) -> [u32; 2] {
        self.read();
        let last = self.records.iter().rev().find_map(|record| match record {
            Record::Holders { holders, .. } => Some(*holders),
            _ => None,
        });
        last.unwrap()
    }

    fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn names(&self) -> HashSet<Vec<u8>> {
        let marks = self.records.iter().filter_map(|record| match record {
            Record::Mark(mark) => Some(mark.name.clone()),
            _ => None,
        });
        marks.collect()
    }

    /// Waits until there are more marks, or the load has ended.
    fn more(&mut self) {
        let before = self.records.len();
        let since = Instant::now();
        while self.runs() && self.records.len() < before + 50 {
            assert!(since.elapsed() < Duration::from_secs(30), "no more marks");
            std::thread::sleep(Duration::from_millis(1));
            self.read();
        }
    }

    /// Checks that no call has failed and that each has its mark or a gap.
    /// Returns the gaps.
    fn finish(mut self) -> Vec<Gap> {
        let since = Instant::now();
        while self.runs() {
            assert!(since.elapsed() < Duration::from_secs(60), "the load hangs");
            std::thread::sleep(Duration::from_millis(2));
            self.read();
        }
        let status = self.child.wait().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut text).unwrap();
        assert!(status.success(), "{text}");
        wait_for("the end of the tree", || {
            self.read();
            self.records.last() == Some(&Record::Ended)
                || self.records.contains(&Record::Ended) && !self.reader.runs().unwrap()
        });
        self.read();
        let names = self.names();
        let all = (0..self.workers).flat_map(|worker| (0..CALLS).map(move |call| (worker, call)));
        let all = all.map(|(worker, call)| format!("w{worker}-{call}"));
        let missing = all.filter(|name| !names.contains(name.as_bytes())).count();
        let gaps = self.records.iter().filter_map(|record| match record {
            Record::Gap { why, calls, .. } => Some((*why, *calls)),
            _ => None,
        });
        let gaps: Vec<_> = gaps.collect();
        let calls: u64 = gaps.iter().map(|gap| gap.1).sum();
        assert!(
            missing as u64 <= calls,
            "{missing} calls without a mark, {gaps:?}"
        );
        drop(self.place);
        gaps.into_iter().map(|gap| gap.0).collect()
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).unwrap();
    let _gone = kill_process(pid, signal);
}

/// Gives a process this much of something, and returns what it had.
fn limit(pid: u32, what: Resource, most: u64) -> Rlimit {
    let pid = Pid::from_raw(pid as i32);
    let maximum = rustix::process::getrlimit(what).maximum;
    let current = Some(most);
    prlimit(pid, what, Rlimit { current, maximum }).unwrap()
}

/// Kills one of the holders again and again, each time after new marks and once
/// there are two again.
fn kills(which: impl Fn(u32) -> usize, most: u32) -> Vec<Gap> {
    let mut load = Load::start();
    let mut killed = 0;
    let mut last = [0; 2];
    while killed < most && load.runs() {
        let holders = load.holders();
        if holders == last {
            load.more();
            continue;
        }
        last = holders;
        send(holders[which(killed)], Signal::KILL);
        killed += 1;
        load.more();
    }
    assert!(killed >= 5, "{killed}");
    load.finish()
}

#[test]
fn the_answering_holder_is_killed() {
    let gaps = kills(|_| 0, 40);
    let is_known = |gap: &Gap| matches!(gap, Gap::Unanswered | Gap::Late);
    assert!(gaps.iter().all(is_known), "{gaps:?}");
}

#[test]
fn the_watching_holder_is_killed() {
    let mut gaps = kills(|_| 1, 40);
    // A disk that needs 250 ms makes such a gap.
    gaps.retain(|gap| *gap != Gap::Late);
    assert_eq!(gaps, []);
}

#[test]
fn both_holders_are_killed_in_turn() {
    kills(|round| (round % 2) as usize, 40);
    kills(|round| (round / 2 % 2) as usize, 40);
}

#[test]
fn the_answering_holder_is_stopped() {
    let mut load = Load::start();
    let [primary, _] = load.holders();
    for _ in 0..3 {
        send(primary, Signal::STOP);
        // Only the other one can make these.
        load.more();
        load.more();
        send(primary, Signal::CONT);
        load.more();
    }
    let gaps = load.finish();
    let is_known = |gap: &Gap| matches!(gap, Gap::Unanswered | Gap::Late);
    assert!(gaps.iter().all(is_known), "{gaps:?}");
    assert!(gaps.len() <= 3, "{gaps:?}");
}

#[test]
fn a_stopped_holder_is_killed() {
    let mut load = Load::start();
    let [primary, _] = load.holders();
    send(primary, Signal::STOP);
    load.more();
    send(primary, Signal::KILL);
    load.more();
    let [primary, standby] = load.holders();
    send(standby, Signal::STOP);
    load.more();
    send(standby, Signal::KILL);
    load.more();
    send(primary, Signal::KILL);
    load.finish();
}

#[test]
fn a_holder_is_stopped_with_a_call_in_its_hands() {
    let mut load = Load::of(1);
    let [primary, standby] = load.holders();
    // The one that stands in has a call most of the time.
    for _ in 0..12 {
        send(primary, Signal::STOP);
        load.more();
        send(standby, Signal::STOP);
        send(primary, Signal::CONT);
        load.more();
        send(standby, Signal::CONT);
    }
    load.finish();
}

#[test]
fn the_watching_holder_is_stopped() {
    let mut load = Load::start();
    let [_, standby] = load.holders();
    send(standby, Signal::STOP);
    load.more();
    send(standby, Signal::CONT);
    load.more();
    let mut gaps = load.finish();
    gaps.retain(|gap| *gap != Gap::Late);
    assert_eq!(gaps, []);
}

#[test]
fn holders_are_killed_and_stopped_at_random() {
    let mut state = 88172645463325252_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut load = Load::start();
    let mut last = [0; 2];
    while load.runs() {
        let holders = load.holders();
        let one = holders[random(2) as usize];
        match random(3) {
            0 if holders != last => {
                last = holders;
                send(one, Signal::KILL);
            }
            1 => {
                send(one, Signal::STOP);
                std::thread::sleep(Duration::from_millis(random(400)));
                send(one, Signal::CONT);
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_micros(random(20_000)));
        load.read();
    }
    load.finish();
}

/// Starts a command that waits for a file and exits with 5.
fn wait_for_go(place: &Place) -> Child {
    let script = "echo > ready; while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let child = place.witness(["sh", "-c", script]).spawn().unwrap();
    wait_for("the command", || place.root.join("ready").exists());
    child
}

#[test]
fn a_stopped_holder_does_not_keep_the_status() {
    for which in 0..2 {
        let place = Place::new();
        let mut child = wait_for_go(&place);
        let holder = place.holders().unwrap()[which];
        send(holder, Signal::STOP);
        std::fs::write(place.root.join("go"), "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(5), "{which}");
        send(holder, Signal::CONT);
        place.ended();
    }
}

#[test]
fn the_launcher_has_the_status_without_holders() {
    for which in 0..2 {
        let place = Place::new();
        let mut child = wait_for_go(&place);
        let holders = place.holders().unwrap();
        for holder in holders {
            send(holder, Signal::STOP);
        }
        send(holders[which], Signal::KILL);
        send(holders[1 - which], Signal::KILL);
        std::fs::write(place.root.join("go"), "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(5), "{which}");
    }
}

#[test]
fn the_launcher_is_stopped() {
    let mut load = Load::start();
    let launcher = load.child.id();
    send(launcher, Signal::STOP);
    load.more();
    // Nothing waits for it.
    let [primary, _] = load.holders();
    send(primary, Signal::KILL);
    load.more();
    send(launcher, Signal::CONT);
    load.finish();
}

#[test]
fn the_launcher_is_killed() {
    let mut load = Load::start();
    send(load.child.id(), Signal::KILL);
    load.child.wait().unwrap();
    // The command is killed with it, its children go on to their ends.
    let since = Instant::now();
    while load.reader.runs().unwrap() {
        assert!(since.elapsed() < Duration::from_secs(60), "the tree hangs");
        load.read();
        std::thread::sleep(Duration::from_millis(2));
    }
    load.read();
    let names = load.names();
    for worker in 0..WORKERS {
        // A worker that was not started yet is none.
        let first = load.place.root.join(format!("w{worker}-0"));
        let last = format!("w{worker}-{}", CALLS - 1);
        if first.exists() {
            assert!(names.contains(last.as_bytes()), "{last}");
        }
    }
}

#[test]
fn the_holders_have_no_descriptors_left() {
    let mut load = Load::start();
    let holders = load.holders();
    // `poll` takes no more than one of them then.
    let before = holders.map(|pid| limit(pid, Resource::Nofile, 1));
    load.more();
    // The other one takes over, and cannot start a third one.
    send(holders[0], Signal::KILL);
    let before = before[1].current.unwrap_or(1024);
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(300) && load.runs() {
        load.more();
    }
    limit(holders[1], Resource::Nofile, before);
    wait_for("another holder", || {
        load.holders()[1] != holders[1] && load.holders()[0] == holders[1] || !load.runs()
    });
    load.finish();
}

#[test]
fn the_holders_get_no_more_memory() {
    let mut load = Load::start();
    let mut last = [0; 2];
    for _ in 0..6 {
        let holders = load.holders();
        // A new one has what it is forked with.
        if holders != last {
            for holder in holders {
                limit(holder, Resource::As, 1);
            }
            send(holders[0], Signal::KILL);
            last = holders;
        }
        load.more();
    }
    load.finish();
}

#[test]
fn a_tree_of_2000_processes_loses_its_holders() {
    if !heavy("2,000 processes write while a holder is killed") {
        return;
    }
    let place = Place::with(64 << 20);
    // All at the same moment: each writes when the pipe's last writer is gone.
    let program = "
import os
most, failed = 2000, 0
ready, start = os.pipe(), os.pipe()
for i in range(most):
    if os.fork() == 0:
        os.close(start[1])
        os.write(ready[1], b'x')
        os.read(start[0], 1)
        try: os.close(os.open(f'f{i}', os.O_WRONLY | os.O_CREAT))
        except OSError: os._exit(1)
        os._exit(0)
got = 0
while got < most: got += len(os.read(ready[0], 4096))
open('ready', 'w')
os.close(start[1])
for i in range(most): failed += os.wait()[1] != 0
raise SystemExit(failed != 0)
";
    let mut child = place.witness(["python3", "-c", program]).spawn().unwrap();
    wait_for("all processes", || place.root.join("ready").exists());
    let [primary, _] = place.holders().unwrap();
    send(primary, Signal::KILL);
    assert!(child.wait().unwrap().success());
    let records = place.ended();
    let mut files: Vec<_> = { short(&records).into_iter() }.map(|mark| mark.1).collect();
    files.sort();
    files.dedup();
    let gaps = gaps(&records);
    // The reader goes on behind the record of the holders.
    assert!(files.len() + gaps.len() >= 2000, "{} {gaps:?}", files.len());
    assert!(gaps.len() <= 2, "{gaps:?}");
}

#[test]
fn a_holder_that_waits_in_vain_is_no_hang() {
    if !heavy("a holder is continued and the other one killed, again and again") {
        return;
    }
    // One caller: no other call wakes a holder that waits for one.
    let place = Place::with(64 << 20);
    let program = "
import os
while not os.path.exists('go'):
    os.close(os.open('file', os.O_WRONLY | os.O_CREAT))
";
    let mut child = place.witness(["python3", "-c", program]).spawn().unwrap();
    let mut reader = Reader::open(&place.ring).unwrap();
    let mut holders = [0; 2];
    let mut marks = 0_u64;
    let mut look = |holders: &mut [u32; 2]| {
        while let Some((_, record)) = reader.next().unwrap() {
            match record {
                Record::Holders { holders: new, .. } => *holders = new,
                _ => marks += 1,
            }
        }
        marks
    };
    wait_for("a mark", || look(&mut holders) > 0);
    for round in 0..60_u64 {
        let [stopped, other] = match round % 2 {
            0 => holders,
            _ => [holders[1], holders[0]],
        };
        send(stopped, Signal::STOP);
        // Until the other one stands in.
        let before = look(&mut holders);
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(350) {
            look(&mut holders);
            std::thread::sleep(Duration::from_millis(5));
        }
        send(stopped, Signal::CONT);
        std::thread::sleep(Duration::from_micros(round % 8 * 300));
        let last = holders;
        send(other, Signal::KILL);
        wait_for("a new holder", || {
            look(&mut holders);
            holders != last
        });
        let now = look(&mut holders);
        wait_for("more marks", || look(&mut holders) > now + 5);
        assert!(now > before);
    }
    std::fs::write(place.root.join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}
