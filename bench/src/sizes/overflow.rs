//! Measures an overflow of the kernel's queue: the watcher is stopped while
//! more is written than the queue holds.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use touchmark_proto::{State, daemon};

use super::{LARGE, SMALL, Size};
use crate::floor::{hash_sweep, stat_sweep};
use crate::goal::{self, Goal};
use crate::part::Part;
use crate::peers::watchman::files_of;
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{all_in, is_as_on_disk, report, state_of, status_of};
use crate::{Options, progress};

/// The number of files that are written in one pass.
const WRITTEN: usize = 10_000;

/// The least number of events that a write of a file adds to the queue:
/// modified and closed.
const EVENTS: usize = 2;

/// The results of one size.
#[derive(Default)]
struct Measured {
    count: usize,
    /// The time of a stat of each file, and of reading and hashing the changed
    /// ones.
    floor: Samples,
    /// The time until the state of one file is known.
    first: Samples,
    /// The time until the states of all files are known.
    all: Samples,
    wrong: usize,
    watchman: Samples,
    watchman_lost: usize,
}

pub(super) fn part(options: &Options, sizes: &mut [Size]) -> Result<Part> {
    let mut part = Part::new(
        "An overflow of the queue",
        format!(
            "The daemon is stopped by a signal. {} files are written, which makes more events \
             than the kernel keeps. Then the daemon continues. Measured is the time from then \
             until it has answered for every file whether it has changed; the authors cannot be \
             known. Each answer was compared with the files. The same was done with watchman.",
            units::count(WRITTEN)
        ),
    );
    for size in sizes.iter_mut().filter(|size| size.count() >= SMALL) {
        let mut measured = Measured {
            count: size.count(),
            ..Measured::default()
        };
        let rounds = options.pick(3, 7);
        for round in 0..rounds {
            progress(&format!(
                "overflow, {} tracked, round {} of {rounds}",
                units::count(size.count()),
                round + 1
            ));
            measured.own(size)?;
            measured.watchman(size)?;
        }
        measured.tell(&mut part);
    }
    part.rows.extend(options.peers.absent_watchman());
    Ok(part)
}

impl Measured {
    fn own(&mut self, size: &mut Size) -> Result<()> {
        size.world
            .read(&size.client, &size.session, &size.world.tree.names)?;
        let overflows = report(&size.client)?.counters.overflows;
        let stopped = Stopped::new(size.daemon.pid())?;
        write_more_than_fits(size)?;
        if let Some(watched) = &mut size.watchman {
            watched.since(&size.world.tree)?;
        }
        let last = size.world.tree.names.get(WRITTEN - 1).context("a file")?;
        let goes_on = stopped.go_on()?;
        let file = state_of(&size.client, status_of(&size.session, last, true))?;
        self.first.add(goes_on.elapsed());
        let stale = all_in(&size.client, &size.session, State::Stale)?;
        self.all.add(goes_on.elapsed());

        let files = &size.world.tree.files;
        let changed = files.get(..WRITTEN).unwrap_or(files);
        self.floor.add(stat_sweep(files)? + hash_sweep(changed)?);

        ensure!(
            report(&size.client)?.counters.overflows > overflows,
            "the queue did not overflow"
        );
        ensure!(
            file.state == State::Stale && is_as_on_disk(&size.world.tree, &file)?,
            "a write was missed by an overflow"
        );
        let mut right = 0;
        for file in &stale {
            right += usize::from(is_as_on_disk(&size.world.tree, file)?);
        }
        self.wrong += WRITTEN.abs_diff(right) + (stale.len() - right);
        Ok(())
    }

    fn watchman(&mut self, size: &mut Size) -> Result<()> {
        let Some(watched) = &size.watchman else {
            return Ok(());
        };
        let stopped = Stopped::new(watched.server().pid())?;
        write_more_than_fits(size)?;
        size.client.call(daemon::Sync {})?;
        let goes_on = stopped.go_on()?;
        let Some(watched) = &mut size.watchman else {
            return Ok(());
        };
        let told = watched.since(&size.world.tree)?;
        self.watchman.add(goes_on.elapsed());
        self.watchman_lost += WRITTEN.saturating_sub(files_of(&told));
        Ok(())
    }

    fn tell(self, part: &mut Part) {
        let tracked = units::count(self.count);
        let has_watchman = self.watchman.count() > 0;
        part.rows.extend([
            Row::of(
                format!("{tracked} tracked: until one file is known"),
                &self.first,
            ),
            Row::of(format!("{tracked} tracked: until all are known"), &self.all)
                .beside("the floor", self.all.p50(), self.floor.p50())
                .beside("watchman", self.all.p50(), self.watchman.p50()),
            Row::of(
                format!("{tracked} tracked: a stat of each, the changed read and hashed"),
                &self.floor,
            ),
        ]);
        if has_watchman {
            part.rows.push(Row::of(
                format!("{tracked} tracked: watchman, {} lost", self.watchman_lost),
                &self.watchman,
            ));
        }
        let what = match self.count {
            SMALL => "overflow, 10,000 tracked",
            LARGE => "overflow, 100,000 tracked",
            _ => return,
        };
        let watchman = has_watchman.then(|| units::duration(self.watchman.p50()));
        part.goals.push(
            Goal::new(what, units::duration(self.all.p50()))
                .beside_peer("watchman", watchman)
                .beside(
                    "stat all, read and hash the changed",
                    units::duration(self.floor.p50()),
                )
                .at_most(
                    1.6,
                    "x that floor",
                    goal::times(self.all.p50(), self.floor.p50()),
                )
                .at_most(0.0, "wrong", self.wrong as f64),
        );
    }
}

/// A stopped process. It continues when this is dropped, even after an error.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: u32) -> Result<Self> {
        let process = Pid::from_raw(pid.cast_signed()).context("a process has an id")?;
        kill_process(process, Signal::STOP)?;
        let stopped = Self(process);
        let until = Instant::now() + Duration::from_secs(5);
        // The signal takes effect when every thread has received it.
        while !stands_still(pid)? {
            if Instant::now() > until {
                bail!("process {pid} does not stop");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(stopped)
    }

    fn go_on(self) -> Result<Instant> {
        kill_process(self.0, Signal::CONT)?;
        Ok(Instant::now())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

fn stands_still(pid: u32) -> Result<bool> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let stat = fs::read_to_string(task?.path().join("stat"))?;
        let (_, rest) = stat.rsplit_once(") ").context("no stat")?;
        if !rest.starts_with('T') {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the first files until there are more events than the queue holds. The
/// system's limit is read and not changed.
fn write_more_than_fits(size: &mut Size) -> Result<()> {
    let holds = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")?;
    let holds: usize = holds.trim().parse().context("max_queued_events")?;
    for _ in 0..(holds / (WRITTEN * EVENTS) + 1) {
        size.world.tree.rewrite(WRITTEN, &mut size.contents)?;
    }
    Ok(())
}
