//! What tracking costs in memory.

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

/// A program's memory at one moment.
struct Look {
    who: Who,
    when: &'static str,
    count: usize,
    memory: Memory,
}

#[derive(Default)]
pub(super) struct Measured(Vec<Look>);

impl Measured {
    /// Of all daemons and watchmen, which have been left alone for a while.
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

    /// Of a daemon that was started, asked once, and left alone for a while.
    pub(super) fn started(&mut self, count: usize, pid: u32) -> Result<()> {
        self.look(Who::Touchmark, "started anew", count, pid)
    }

    /// Of chokidar, which runs for this alone.
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
            "Private memory is what a program has written to and shares with nobody \
             (`Private_Dirty` of `smaps_rollup`); the goals are of it. Resident memory (`Rss`) \
             has the program's own file and its libraries in it, too. Looked at when all had been quiet \
             for some seconds. 1 MB is a million bytes.",
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
        part.goals
            .extend(self.goal(SMALL, "memory, 10,000 tracked", 12.0));
        part.goals
            .extend(self.goal(LARGE, "memory, 100,000 tracked", 40.0));
        part.plots.push(self.plot());
        part
    }

    /// The most of all looks.
    fn most(&self, who: Who, count: usize) -> Option<Memory> {
        let looks = self.0.iter();
        let of = looks.filter(|look| look.who == who && look.count == count);
        of.map(|look| look.memory)
            .max_by_key(|memory| memory.private)
    }

    fn goal(&self, count: usize, what: &'static str, limit: f64) -> Option<Goal> {
        let own = self.most(Who::Touchmark, count)?;
        let peer = |who| self.most(who, count).map(said);
        Some(
            Goal::new(what, said(own))
                .beside_peer("watchman", peer(Who::Watchman))
                .beside_peer("chokidar", peer(Who::Chokidar))
                .at_most(limit, "MB private", own.private as f64 / 1e6),
        )
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
