//! The output of the tour.

use std::thread;
use std::time::Duration;

use anstyle::Style;

use crate::output::{self, Outcome};
use crate::style::{self, paint};

/// The pause after a step. With about thirty steps the tour takes ten seconds.
const PAUSE: Duration = Duration::from_millis(330);

/// The pace of the tour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Whether to pause, so that a person can read along.
    pub(crate) pauses: bool,
    /// Whether the steps are printed, or only the end.
    pub(crate) steps: bool,
}

/// The actor of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    Agent,
    You,
    Touchmark,
}

/// Prints the steps, and counts the checks.
#[derive(Debug)]
pub(super) struct Narrator {
    pace: Pace,
    chapter: u32,
    /// The number of the daemon's answers that were compared with the tour's
    /// claims.
    pub(super) checked: u32,
}

impl Narrator {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            chapter: 0,
            checked: 0,
        }
    }

    /// Begins a chapter.
    pub(super) fn chapter(&mut self, title: &str) -> Outcome {
        self.chapter += 1;
        self.told(&format!(
            "\n{} {}",
            paint(style::DIM, &format!("{}.", self.chapter)),
            paint(style::BOLD, title)
        ))
    }

    /// Prints one step, and pauses.
    pub(super) fn step(&mut self, actor: Actor, text: &str) -> Outcome {
        let (name, actor_style) = match actor {
            Actor::Agent => ("agent", style::AGENT),
            Actor::You => ("you", style::USER),
            Actor::Touchmark => ("touchmark", style::GOOD),
        };
        let text_style = match actor {
            Actor::Touchmark => Style::new(),
            Actor::Agent | Actor::You => style::DIM,
        };
        let name = paint(actor_style, &format!("{name:<9}"));
        self.told(&format!("   {name}  {}", paint(text_style, text)))?;
        if self.pace.pauses {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Prints a line without an actor.
    pub(super) fn told(&mut self, text: &str) -> Outcome {
        if self.pace.steps {
            output::line(text)?;
        }
        Ok(())
    }
}
