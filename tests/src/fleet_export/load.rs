//! What a process costs, from /proc.

use std::fs;
use std::ops::{Add, Sub};

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Processor time in seconds.
    pub processor: f64,
    /// Memory that only this process has, in KiB.
    pub private: u64,
    /// The number of times at which one of its threads was put on a processor.
    pub switches: u64,
}

impl Add for Load {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            processor: self.processor + other.processor,
            private: self.private + other.private,
            switches: self.switches + other.switches,
        }
    }
}

impl Sub for Load {
    type Output = Self;

    /// Returns what was used between two looks. The memory is the later one's.
    fn sub(self, earlier: Self) -> Self {
        Self {
            processor: self.processor - earlier.processor,
            private: self.private,
            // A thread that has ended takes its switches along.
            switches: self.switches.abs_diff(earlier.switches),
        }
    }
}

impl Load {
    /// Looks at a running process.
    pub fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
        // After the name, which may contain anything: the state is the third.
        let fields: Vec<&str> = stat
            .rsplit(") ")
            .next()
            .expect("fields")
            .split(' ')
            .collect();
        let ticks = |at: usize| fields[at - 3].parse::<u32>().expect("ticks");
        let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its memory");
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
        let switches = tasks.flatten().map(|task| {
            // A thread may have ended meanwhile.
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            sum(&status, |name| name.ends_with("voluntary_ctxt_switches"))
        });
        Self {
            // The kernel reports hundredths of a second to programs.
            processor: f64::from(ticks(14) + ticks(15)) / 100.0,
            private: sum(&memory, |name| name.starts_with("Private_")),
            switches: switches.sum(),
        }
    }
}

/// Returns the sum of the numbers in lines with these names.
fn sum(text: &str, wanted: impl Fn(&str) -> bool) -> u64 {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let numbers = lines
        .filter(|(name, _)| wanted(name))
        .filter_map(|(_, value)| value.split_whitespace().next()?.parse::<u64>().ok());
    numbers.sum()
}
