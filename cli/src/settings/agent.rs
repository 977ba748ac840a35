//! An agent as an argument of a command. Its row is in the daemon's crate.

use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::daemon::agent::{self, Settings};

/// The name of touchmark's entry among MCP servers.
pub(super) const NAME: &str = "touchmark";

/// An agent for which hooks can be installed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent(pub(super) &'static agent::Agent);

impl ValueEnum for Agent {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Agent>> =
            LazyLock::new(|| agent::Agent::all().map(Agent).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.settings().title))
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Agent {
    /// Returns the names of all agents' programs.
    pub(crate) fn programs() -> Vec<&'static str> {
        agent::Agent::programs()
    }

    /// Returns its name in `touchmark hook NAME`.
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the name of an event by which its hooks can be tested.
    pub(crate) fn plain_event(self) -> &'static str {
        self.0.plain_event()
    }

    /// Returns what of it no test has run as the real program; `None` if all of
    /// it is run.
    pub(crate) fn untried(self) -> Option<&'static str> {
        self.0.untried
    }

    /// Returns its settings, and what is added to them.
    pub(crate) fn settings(self) -> &'static Settings {
        &self.0.settings
    }
}
