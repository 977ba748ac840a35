//! The results of one part of the bench.

use crate::goal::Goal;
use crate::plot::Plot;
use crate::table::Row;

/// A section of the page.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) title: &'static str,
    /// How the part was measured, and what its results mean.
    pub(crate) about: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) goals: Vec<Goal>,
    pub(crate) plots: Vec<Plot>,
}

impl Part {
    pub(crate) fn new(title: &'static str, about: impl Into<String>) -> Self {
        Self {
            title,
            about: about.into(),
            rows: Vec::new(),
            goals: Vec::new(),
            plots: Vec::new(),
        }
    }
}
