//! What is drawn: lines over a growing number of something, and spans from
//! the median to the rare.

mod svg;

use crate::goal;
use crate::samples::Samples;
use crate::units;

/// Whose numbers they are; the same colour in every plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Touchmark,
    /// Touchmark in another way of asking.
    TouchmarkToo,
    Watchman,
    Chokidar,
    Floor,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Touchmark | Self::TouchmarkToo => "touchmark",
            Self::Watchman => "watchman",
            Self::Chokidar => "chokidar",
            Self::Floor => "floor",
        }
    }
}

impl Up {
    fn name(self) -> &'static str {
        match self {
            Self::Time => "median",
            Self::Megabytes => "megabytes",
            Self::AnswersPerSecond => "answers a second",
        }
    }

    fn said(self, value: f64) -> String {
        match self {
            Self::Time => units::round_time(value),
            Self::Megabytes | Self::AnswersPerSecond => units::number(value),
        }
    }
}

/// A drawing for the page.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The file's name without its ending.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) kind: Kind,
}

/// What the axis upwards counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Up {
    /// Values are microseconds.
    Time,
    Megabytes,
    AnswersPerSecond,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Both axes are logarithmic.
    Lines {
        across: &'static str,
        up: Up,
        series: Vec<Series>,
    },
    /// Each from p50 over p99 to p99.9, in microseconds, on one logarithmic
    /// axis.
    Spans(Vec<Span>),
}

#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) who: Who,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Series {
    /// The medians of what was measured at all.
    pub(crate) fn of_medians<'a>(
        name: &str,
        who: Who,
        measured: impl Iterator<Item = (usize, &'a Samples)>,
    ) -> Self {
        Self {
            name: name.into(),
            who,
            points: measured
                .filter(|(_, samples)| samples.count() > 0)
                .map(|(across, samples)| (across as f64, goal::micros(samples.p50())))
                .collect(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) who: Who,
    pub(crate) micros: [f64; 3],
}

impl Plot {
    pub(crate) fn svg(&self) -> String {
        match &self.kind {
            Kind::Lines { across, up, series } => svg::lines(&self.title, across, *up, series),
            Kind::Spans(spans) => svg::spans(&self.title, spans),
        }
    }
}
