//! What the kernel counts of a process.

use std::fs;

use anyhow::{Context as _, Result};

/// Counted since the process started, over all threads it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Times a thread went to sleep, hence was woken, or was interrupted.
    pub(crate) switches: u64,
    /// Calls that read or wrote, whatever: files, sockets, queues.
    pub(crate) transfers: u64,
    /// Bytes read from and written to disks.
    pub(crate) disk: u64,
    /// Processor time in ticks of the system's clock.
    ticks: u64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let mut switches = 0;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may have ended since.
            if let Ok(status) = fs::read_to_string(task?.path().join("status")) {
                switches += field(&status, "voluntary_ctxt_switches:")?
                    + field(&status, "nonvoluntary_ctxt_switches:")?;
            }
        }
        let io = fs::read_to_string(format!("/proc/{pid}/io"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may hold anything; fields are counted from
        // behind it: the 14th and 15th are user and system time.
        let (_, rest) = stat.rsplit_once(')').context("no stat")?;
        let ticks = rest
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse().unwrap_or(0))
            .sum::<u64>();
        Ok(Self {
            switches,
            transfers: field(&io, "syscr:")? + field(&io, "syscw:")?,
            disk: field(&io, "read_bytes:")? + field(&io, "write_bytes:")?,
            ticks,
        })
    }

    /// Since an earlier look.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            switches: self.switches.saturating_sub(earlier.switches),
            transfers: self.transfers.saturating_sub(earlier.transfers),
            disk: self.disk.saturating_sub(earlier.disk),
            ticks: self.ticks.saturating_sub(earlier.ticks),
        }
    }

    /// Processor time in seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

/// Bytes of memory, from `smaps_rollup`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Written to, and shared with nobody. What is only read of the program's
    /// file counts as somebody's own or not by how many run it.
    pub(crate) private: u64,
    /// With the program's file and libraries.
    pub(crate) resident: u64,
}

impl Memory {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        Ok(Self {
            private: field(&maps, "Private_Dirty:")? * 1024,
            resident: field(&maps, "Rss:")? * 1024,
        })
    }
}

fn field(lines: &str, name: &str) -> Result<u64> {
    lines
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("no {name} among what the kernel counts"))
}
