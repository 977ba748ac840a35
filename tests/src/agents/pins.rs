//! The versions of the agents' packages, from `tests/agents.pins`, and their
//! download by the registries' own clients.

use std::path::PathBuf;

use super::Agent;
use crate::fetched;

/// The file, which `tests/renew-agents` renews.
const PINS: &str = include_str!("../../agents.pins");

/// A package of an agent, in one version.
struct Pin {
    registry: &'static str,
    package: &'static str,
    version: &'static str,
}

/// Returns the packages of an agent. The agent's own is the first.
fn of(agent: &Agent) -> Vec<Pin> {
    let lines = PINS.lines().filter(|line| !line.starts_with('#'));
    let pins = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == agent.name).then_some(())?;
        Some(Pin {
            registry: words.next()?,
            package: words.next()?,
            version: words.next()?,
        })
    });
    pins.collect()
}

impl Agent {
    /// Returns the version of the agent that is played.
    pub fn version(&self) -> &'static str {
        let pins = of(self);
        let first = pins.first();
        first
            .unwrap_or_else(|| panic!("no line for {}", self.name))
            .version
    }

    /// Returns the directory with the agent's packages, or `None` if they
    /// cannot be fetched. `what` is then reported as not tested.
    pub fn fetch(&self, what: &str) -> Option<PathBuf> {
        let pins = of(self);
        let room = format!("agent-{}", self.name);
        let is_python = pins.iter().all(|pin| pin.registry == "pypi");
        let between = if is_python { "==" } else { "@" };
        let packages: Vec<String> = pins
            .iter()
            .map(|pin| format!("{}{between}{}", pin.package, pin.version))
            .collect();
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        if !is_python {
            return fetched::node(&room, &packages, what);
        }
        let python = fetched::python_since(self.python, &room, &packages, what)?;
        Some(python.ancestors().nth(2)?.to_owned())
    }
}
