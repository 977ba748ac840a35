//! What the kernel counts of a process.

use std::fs;

use anyhow::{Context as _, Result};

/// Counted since the process started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Times any of its threads went to sleep of itself, hence was woken.
    pub(crate) sleeps: u64,
    /// Processor time in ticks of the system's clock.
    pub(crate) ticks: u64,
    /// Resident memory in bytes.
    pub(crate) resident: u64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let mut sleeps = 0;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let status = fs::read_to_string(task?.path().join("status"))?;
            sleeps += field(&status, "voluntary_ctxt_switches:")?;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
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
            sleeps,
            ticks,
            resident: field(&status, "VmRSS:")? * 1024,
        })
    }

    /// Since an earlier look.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
            ticks: self.ticks.saturating_sub(earlier.ticks),
            resident: self.resident,
        }
    }

    /// Processor time in seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

fn field(status: &str, name: &str) -> Result<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("no {name} in a process's status"))
}
