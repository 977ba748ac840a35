//! Plots: lines over a growing number of something, and spans from the median
//! to rare values.

mod svg;

use crate::goal;
use crate::samples::Samples;
use crate::units;

/// The program that a series belongs to. Each has the same colour in every
/// plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Touchmark,
    /// touchmark, queried in another way.
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

/// A plot for the page.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The name of the file without its extension.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) kind: Kind,
}

/// The unit of the vertical axis.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Up {
    /// The values are microseconds.
    Time,
    Megabytes,
    AnswersPerSecond,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Lines with two logarithmic axes.
    Lines {
        across: &'static str,
        up: Up,
        series: Vec<Series>,
    },
    /// Spans from p50 over p99 to p99.9, in microseconds, on one logarithmic
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
    /// Returns a series of the medians. Sizes without samples are left out.
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
