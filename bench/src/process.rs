//! The kernel's counters of a process.

use std::fs;

use anyhow::{Context as _, Result};

/// Counts since the process started, over all of its current threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// The number of context switches: a thread went to sleep or was
    /// interrupted.
    pub(crate) switches: u64,
    /// The number of calls that read or wrote files, sockets or queues.
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
            // A thread may have ended after the directory was listed.
            if let Ok(status) = fs::read_to_string(task?.path().join("status")) {
                switches += field(&status, "voluntary_ctxt_switches:")?
                    + field(&status, "nonvoluntary_ctxt_switches:")?;
            }
        }
        let io = fs::read_to_string(format!("/proc/{pid}/io"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may contain anything, so fields are counted
        // from its end: the 14th and 15th are user and system time.
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

    /// Returns the difference to earlier counts.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            switches: self.switches.saturating_sub(earlier.switches),
            transfers: self.transfers.saturating_sub(earlier.transfers),
            disk: self.disk.saturating_sub(earlier.disk),
            ticks: self.ticks.saturating_sub(earlier.ticks),
        }
    }

    /// Returns the processor time in seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

/// Memory in bytes, from `smaps_rollup`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Private pages that were written to. Pages of the program's file that
    /// were only read are left out: whether they are private depends on how
    /// many processes run it.
    pub(crate) private: u64,
    /// Resident memory, including the program's file and libraries.
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
