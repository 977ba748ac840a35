//! Measures the cost without requests: idle, while other processes read tracked
//! files, and while untracked files change.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use touchmark_proto::daemon;

use super::{SMALL, Size};
use crate::goal::Goal;
use crate::part::Part;
use crate::process::Usage;
use crate::table::Row;
use crate::units;
use crate::world::{CALM, report};
use crate::{Options, progress};

/// The number of untracked files that are created and removed.
const CHURN: usize = 60_000;

/// The number of tracked files that other processes read.
const READ: usize = 30_000;

/// What the daemon and watchman used during a measurement.
struct Spent {
    own: Usage,
    events: u64,
    watchman: Option<Usage>,
}

pub(super) fn part(options: &Options, sizes: &mut [Size]) -> Result<Part> {
    let mut part = Part::new(
        "An idle daemon",
        "Context switches of all threads, calls that read or wrote, bytes from and to disks, and \
         processor time, as the kernel counts them, with one open connection. touchmark and \
         watchman had the same tree at the same time.",
    );
    let small = sizes.iter_mut().find(|size| size.count() == SMALL);
    let small = small.context("a workspace of the size for the goals")?;
    let seconds = options.pick(5, 60);
    progress(&format!("idle for {seconds} s"));
    let idle = spent(small, || {
        thread::sleep(Duration::from_secs(seconds));
        Ok(())
    })?;
    tell(
        &mut part,
        &format!("idle for {seconds} s, 10,000 tracked"),
        &idle,
    );
    part.goals.push(
        goal("idle, 10,000 tracked", &idle, switches)
            .at_most(0.0, "wake-ups", idle.own.switches as f64)
            .at_most(0.0, "reads or writes", idle.own.transfers as f64)
            .at_most(0.0, "bytes of disk", idle.own.disk as f64),
    );

    progress("churn of untracked files");
    let place = small.world.tree.root.join("untracked");
    fs::create_dir(&place)?;
    let churn = spent(small, || make_and_remove(&place))?;
    let what = format!("{} untracked files made and removed", units::count(CHURN));
    tell(&mut part, &what, &churn);
    part.goals.push(
        goal("churn of 60,000 untracked files", &churn, processor)
            .at_most(0.0, "s of CPU", churn.own.seconds())
            .at_most(0.0, "events", churn.events as f64),
    );

    progress("others' reads");
    let largest = sizes.last_mut().context("a workspace")?;
    let files = largest.world.tree.files.clone();
    let reads = spent(largest, || {
        for file in files.iter().cycle().take(READ) {
            fs::read(file)?;
        }
        Ok(())
    })?;
    let what = format!("others read {} tracked files", units::count(READ));
    tell(&mut part, &what, &reads);
    part.goals.push(
        goal("others read 30,000 tracked files", &reads, switches)
            .at_most(0.0, "events", reads.events as f64)
            .at_most(0.0, "wake-ups", reads.own.switches as f64),
    );
    part.rows.extend(options.peers.absent_watchman());
    Ok(part)
}

/// Returns what was used, measured between two quiet moments.
fn spent(size: &mut Size, what: impl FnOnce() -> Result<()>) -> Result<Spent> {
    let events = report(&size.client)?.counters.events;
    let pids = (
        size.daemon.pid(),
        size.watchman.as_ref().map(|watched| watched.server().pid()),
    );
    let usage = || -> Result<_> {
        thread::sleep(CALM);
        Ok((Usage::of(pids.0)?, pids.1.map(Usage::of).transpose()?))
    };
    let (own_before, watchman_before) = usage()?;
    what()?;
    // No request is sent before the counters are read, since a request costs
    // too.
    let (own, watchman) = usage()?;
    size.client.call(daemon::Sync {})?;
    Ok(Spent {
        own: own.since(own_before),
        events: report(&size.client)?.counters.events - events,
        watchman: watchman
            .zip(watchman_before)
            .map(|(usage, before)| usage.since(before)),
    })
}

fn make_and_remove(place: &Path) -> Result<()> {
    for n in 0..CHURN {
        fs::write(place.join(n.to_string()), b"x")?;
    }
    for n in 0..CHURN {
        fs::remove_file(place.join(n.to_string()))?;
    }
    Ok(())
}

fn tell(part: &mut Part, what: &str, spent: &Spent) {
    let row = |who: &str, usage: Usage, more: &str| {
        let value = format!(
            "{} switches, {} calls, {} bytes of disk, {:.2} s CPU{more}",
            units::grouped(usage.switches as f64),
            units::grouped(usage.transfers as f64),
            units::grouped(usage.disk as f64),
            usage.seconds()
        );
        Row::value(format!("{what}: {who}"), value)
    };
    let events = format!(", {} events", spent.events);
    part.rows.push(row("touchmark", spent.own, &events));
    part.rows
        .extend(spent.watchman.map(|usage| row("watchman", usage, "")));
}

/// Returns a goal, with watchman's value for comparison.
fn goal(what: &'static str, spent: &Spent, said: fn(Usage) -> String) -> Goal {
    Goal::new(what, said(spent.own)).beside_peer("watchman", spent.watchman.map(said))
}

fn switches(usage: Usage) -> String {
    format!("{} wake-ups", units::grouped(usage.switches as f64))
}

fn processor(usage: Usage) -> String {
    format!("{:.2} s of CPU", usage.seconds())
}
