//! The project's performance goals, and whether they are met.

use std::time::Duration;

use crate::units;

/// A row of the table of goals.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    what: &'static str,
    here: String,
    beside: Vec<String>,
    bounds: Vec<Bound>,
}

/// A condition of a goal.
#[derive(Clone, Debug)]
struct Bound {
    limit: f64,
    most: bool,
    /// The unit of the value, such as `us` or `x ping-pong`.
    unit: String,
    /// The measured value; `None` if there was nothing to compare with.
    is: Option<f64>,
}

pub(crate) const HEADINGS: [&str; 5] = ["what", "touchmark", "beside", "goal", "met"];

impl Goal {
    pub(crate) fn new(what: &'static str, here: impl Into<String>) -> Self {
        Self {
            what,
            here: here.into(),
            beside: Vec::new(),
            bounds: Vec::new(),
        }
    }

    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// Adds a floor or peer for comparison, with its measured value.
    pub(crate) fn beside(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.beside.push(format!("{name} {}", value.as_ref()));
        self
    }

    /// Adds a peer for comparison; `value` is `None` if the peer is not
    /// installed.
    pub(crate) fn beside_peer(self, name: &str, value: Option<String>) -> Self {
        self.beside(name, value.as_deref().unwrap_or("not installed"))
    }

    pub(crate) fn at_most(self, limit: f64, unit: &str, is: impl Into<Option<f64>>) -> Self {
        self.bound(limit, true, unit, is.into())
    }

    pub(crate) fn at_least(self, limit: f64, unit: &str, is: impl Into<Option<f64>>) -> Self {
        self.bound(limit, false, unit, is.into())
    }

    fn bound(mut self, limit: f64, most: bool, unit: &str, is: Option<f64>) -> Self {
        self.bounds.push(Bound {
            limit,
            most,
            unit: unit.into(),
            is,
        });
        self
    }

    /// Returns whether every condition that could be measured is met.
    pub(crate) fn is_met(&self) -> bool {
        self.bounds
            .iter()
            .all(|bound| bound.is.is_none_or(|is| bound.holds(is)))
    }

    /// Returns whether the goal is met and, if not, by what factor it is
    /// missed.
    pub(crate) fn verdict(&self) -> String {
        if self.is_met() {
            let measured = self.bounds.iter().all(|bound| bound.is.is_some());
            let said = if measured {
                "yes"
            } else {
                "as far as measured"
            };
            return said.into();
        }
        let missed: Vec<String> = self.bounds.iter().filter_map(Bound::missed).collect();
        format!("no: {}", missed.join("; "))
    }

    pub(crate) fn cells(&self) -> [String; 5] {
        let bounds: Vec<String> = self.bounds.iter().map(Bound::said).collect();
        [
            self.what.into(),
            self.here.clone(),
            self.beside.join("; "),
            bounds.join("; "),
            self.verdict(),
        ]
    }
}

impl Bound {
    fn holds(&self, is: f64) -> bool {
        if self.most {
            is <= self.limit
        } else {
            is >= self.limit
        }
    }

    fn said(&self) -> String {
        let relation = if self.most { "at most" } else { "at least" };
        let is = self.is.map_or("not measured".into(), units::number);
        format!(
            "{relation} {} {}: {is}",
            units::shortest(self.limit),
            self.unit
        )
    }

    fn missed(&self) -> Option<String> {
        let is = self.is.filter(|is| !self.holds(*is))?;
        let (times, too) = if self.most {
            (is / self.limit, "much")
        } else {
            (self.limit / is, "little")
        };
        Some(if times.is_finite() {
            format!("{} times too {too}", units::number(times))
        } else {
            format!("{} {}", units::number(is), self.unit)
        })
    }
}

/// Returns the ratio of two durations; `None` without the second one.
pub(crate) fn times(took: Duration, other: impl Into<Option<Duration>>) -> Option<f64> {
    let other = other.into().filter(|other| !other.is_zero())?;
    Some(took.as_secs_f64() / other.as_secs_f64())
}

pub(crate) fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

pub(crate) fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_by_how_much_a_goal_is_missed() {
        let goal = Goal::new("status", "6.0 us")
            .at_most(5.0, "us", 6.0)
            .at_most(0.4, "x watchman", 0.3)
            .at_least(100.0, "/s", 50.0)
            .at_most(0.0, "lost", 3.0);
        assert!(!goal.is_met());
        assert_eq!(
            goal.verdict(),
            "no: 1.20 times too much; 2 times too little; 3 lost"
        );
    }

    #[test]
    fn what_has_no_peer_here_is_not_missed() {
        let goal = Goal::new("status", "6.0 us")
            .beside_peer("watchman", None)
            .at_most(0.4, "x watchman", None);
        assert!(goal.is_met());
        let cells = goal.cells();
        assert_eq!(goal.verdict(), "as far as measured");
        assert_eq!(cells[2], "watchman not installed");
        assert_eq!(cells[3], "at most 0.4 x watchman: not measured");
    }
}
