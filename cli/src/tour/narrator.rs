//! How the tour speaks.

use std::thread;
use std::time::Duration;

use anstyle::Style;

use crate::output::{self, Outcome};
use crate::style::{self, paint};

/// The pause after a step. With some thirty of them the tour takes ten
/// seconds.
const PAUSE: Duration = Duration::from_millis(330);

/// How fast the tour goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Whether a person reads along.
    pub(crate) pauses: bool,
    /// Whether the steps are told, or only the end.
    pub(crate) steps: bool,
}

/// Who speaks or acts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    Agent,
    You,
    Touchmark,
}

/// Tells the steps and counts what was checked.
#[derive(Debug)]
pub(super) struct Narrator {
    pace: Pace,
    chapter: u32,
    /// Answers of the daemon that were compared with what the tour says.
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

    /// A new part of the story.
    pub(super) fn chapter(&mut self, title: &str) -> Outcome {
        self.chapter += 1;
        self.told(&format!(
            "\n{} {}",
            paint(style::DIM, &format!("{}.", self.chapter)),
            paint(style::BOLD, title)
        ))
    }

    /// One step, and a pause to read it.
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

    /// A line without an actor.
    pub(super) fn told(&mut self, text: &str) -> Outcome {
        if self.pace.steps {
            output::line(text)?;
        }
        Ok(())
    }
}
