//! Measures the memory that tracking needs.

use std::thread;

use anyhow::Result;

use super::{LARGE, SMALL, Size};
use crate::goal::Goal;
use crate::part::Part;
use crate::plot::{Kind, Plot, Series, Up, Who};
use crate::process::Memory;
use crate::table::Row;
use crate::units;
use crate::world::CALM;
use crate::{Options, progress};

/// The memory of a program at one moment.
struct Look {
    who: Who,
    when: &'static str,
    count: usize,
    memory: Memory,
}

/// The moment at which the goals are measured.
pub(super) const JUST_READ: &str = "just read";

#[derive(Default)]
pub(super) struct Measured(Vec<Look>);

impl Measured {
    /// Records the memory of all daemons and watchmen, which have been idle for
    /// a while.
    pub(super) fn note(&mut self, sizes: &[Size], when: &'static str) -> Result<()> {
        for size in sizes {
            self.look(Who::Touchmark, when, size.count(), size.daemon.pid())?;
            if let Some(watched) = &size.watchman {
                let pid = watched.server().pid();
                self.look(Who::Watchman, when, size.count(), pid)?;
            }
        }
        Ok(())
    }

    /// Records the memory of a daemon that was started, queried once, and then
    /// idle for a while.
    pub(super) fn started(&mut self, count: usize, pid: u32) -> Result<()> {
        self.look(Who::Touchmark, "started again", count, pid)
    }

    /// Records the memory of chokidar, which runs only for this.
    pub(super) fn chokidar(&mut self, options: &Options, sizes: &[Size]) -> Result<()> {
        let Some(program) = &options.peers.chokidar else {
            return Ok(());
        };
        let mut watchers = Vec::new();
        for size in sizes {
            progress(&format!("chokidar, {} files", units::count(size.count())));
            watchers.push(program.watch(&size.world.tree.files)?);
        }
        thread::sleep(CALM);
        for (size, watcher) in sizes.iter().zip(&watchers) {
            self.look(Who::Chokidar, "watching", size.count(), watcher.pid())?;
        }
        Ok(())
    }

    fn look(&mut self, who: Who, when: &'static str, count: usize, pid: u32) -> Result<()> {
        let memory = Memory::of(pid)?;
        self.0.push(Look {
            who,
            when,
            count,
            memory,
        });
        Ok(())
    }

    pub(super) fn part(self, options: &Options) -> Part {
        let mut part = Part::new(
            "Memory",
            "Private memory is memory that a program has written to and does not share \
             (`Private_Dirty` of `smaps_rollup`). The goals refer to it, just after all files \
             were read. Resident memory (`Rss`) includes the program's own file and its \
             libraries. Both were measured after some seconds without activity. 1 MB is a million \
             bytes.",
        );
        let mut looks: Vec<&Look> = self.0.iter().collect();
        looks.sort_by_key(|look| look.count);
        for look in looks {
            let what = format!(
                "{} tracked: {}, {}",
                units::count(look.count),
                look.who.name(),
                look.when
            );
            part.rows.push(Row::value(what, said(look.memory)));
        }
        part.rows.extend(options.peers.absent_watchman());
        part.rows.extend(options.peers.absent_chokidar());
        part.goals.extend(self.small());
        part.goals.extend(self.large());
        part.plots.push(self.plot());
        part
    }

    /// Returns the highest of all measurements.
    fn most(&self, who: Who, count: usize) -> Option<Memory> {
        let looks = self.0.iter();
        let of = looks.filter(|look| look.who == who && look.count == count);
        of.map(|look| look.memory)
            .max_by_key(|memory| memory.private)
    }

    /// Returns the measurement directly after all files were read.
    fn just_read(&self, who: Who, count: usize) -> Option<Memory> {
        let mut looks = self.0.iter();
        looks
            .find(|look| look.who == who && look.count == count && look.when == JUST_READ)
            .map(|look| look.memory)
    }

    fn small(&self) -> Option<Goal> {
        let own = self.just_read(Who::Touchmark, SMALL)?;
        let goal = self.goal("memory, 10,000 tracked", SMALL, own);
        Some(goal.at_most(14.0, "MB private", own.private as f64 / 1e6))
    }

    /// Returns the goal for a large workspace. It compares private memory with
    /// watchman's resident memory: watchman stores less for each file, and its
    /// resident memory includes its libraries.
    fn large(&self) -> Option<Goal> {
        let own = self.just_read(Who::Touchmark, LARGE)?;
        let watchman = self.just_read(Who::Watchman, LARGE);
        let goal = self.goal("memory, 100,000 tracked", LARGE, own);
        Some(goal.at_most(
            1.0,
            "x watchman's resident",
            watchman.map(|watchman| own.private as f64 / watchman.resident.max(1) as f64),
        ))
    }

    fn goal(&self, what: &'static str, count: usize, own: Memory) -> Goal {
        let peer = |who| self.most(who, count).map(said);
        Goal::new(what, said(own))
            .beside_peer("watchman", peer(Who::Watchman))
            .beside_peer("chokidar", peer(Who::Chokidar))
    }

    fn plot(&self) -> Plot {
        let mut counts: Vec<usize> = self.0.iter().map(|look| look.count).collect();
        counts.sort_unstable();
        counts.dedup();
        let series = [Who::Touchmark, Who::Watchman, Who::Chokidar].map(|who| Series {
            name: who.name().into(),
            who,
            points: counts
                .iter()
                .filter_map(|&count| {
                    let memory = self.most(who, count)?;
                    Some((count as f64, memory.private as f64 / 1e6))
                })
                .collect(),
        });
        Plot {
            name: "memory",
            title: "Private memory as tracked files grow".into(),
            kind: Kind::Lines {
                across: "tracked files",
                up: Up::Megabytes,
                series: series.into(),
            },
        }
    }
}

fn said(memory: Memory) -> String {
    format!(
        "{} private, {} resident",
        units::megabytes(memory.private),
        units::megabytes(memory.resident)
    )
}
