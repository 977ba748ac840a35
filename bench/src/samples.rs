//! Durations of many repetitions of one operation.

use std::time::{Duration, Instant};

/// The durations of the repetitions, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    nanos: Vec<u64>,
}

/// The usual percentiles of a distribution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) p999: Duration,
    pub(crate) worst: Duration,
}

impl Samples {
    /// Runs and measures one repetition.
    pub(crate) fn time<T>(&mut self, what: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let value = what();
        self.add(started.elapsed());
        value
    }

    pub(crate) fn add(&mut self, took: Duration) {
        self.nanos
            .push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the newest sample; zero if there is none.
    pub(crate) fn last(&self) -> Duration {
        Duration::from_nanos(self.nanos.last().copied().unwrap_or_default())
    }

    pub(crate) fn count(&self) -> usize {
        self.nanos.len()
    }

    /// Returns the percentiles by nearest rank; zero if there are no samples.
    pub(crate) fn points(&self) -> Points {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        let at = |permille: usize| {
            let rank = (sorted.len() * permille).div_ceil(1000).max(1) - 1;
            Duration::from_nanos(sorted.get(rank).copied().unwrap_or(0))
        };
        Points {
            p50: at(500),
            p99: at(990),
            p999: at(999),
            worst: at(1000),
        }
    }

    pub(crate) fn p50(&self) -> Duration {
        self.points().p50
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_nearest_ranks() {
        let mut samples = Samples::default();
        for n in (1..=1000).rev() {
            samples.add(Duration::from_nanos(n));
        }
        let Points {
            p50,
            p99,
            p999,
            worst,
        } = samples.points();
        assert_eq!(
            [p50, p99, p999, worst].map(|point| point.as_nanos()),
            [500, 990, 999, 1000]
        );
    }

    #[test]
    fn nothing_has_points_too() {
        assert_eq!(Samples::default().p50(), Duration::ZERO);
    }
}
