//! The results of all scenarios with all agents, compared with the table in the
//! documents.

use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::scenarios::{SCENARIOS, Scenario};
use super::{AGENTS, Agent, Stage};
use crate::{network, snippets};

/// The number of agents that run at the same time.
const AT_ONCE: usize = 2;

/// One cell: the result of a scenario with an agent.
#[derive(Debug)]
pub enum Cell {
    /// The scenario passed.
    Good,
    /// The agent lacks a feature that the scenario needs. Has the reason.
    Lacks(&'static str),
    /// The scenario failed. Has the failure.
    Bad(String),
}

impl Cell {
    /// Returns the text of the cell in the documents.
    fn shown(&self) -> &str {
        match self {
            Self::Good => "yes",
            Self::Lacks(why) => why,
            Self::Bad(_) => "no",
        }
    }
}

/// Returns the heading of an agent's column: its title and version.
pub(super) fn title(agent: &Agent) -> String {
    format!("{} {}", agent.title, agent.version())
}

/// Reads the documents' table. The keys are the names of its row and its
/// column.
///
/// # Panics
/// If the rows and columns are not exactly the known scenarios and agents.
pub fn documented() -> HashMap<(&'static str, &'static str), String> {
    let page = Path::new(snippets::AGENTS).join("README.md");
    let page = fs::read_to_string(page).expect("the page");
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| scenario |"))
        .take_while(|line| line.starts_with('|'));
    let head = cells(rows.next().expect("a table of scenarios"));
    let titles: Vec<String> = AGENTS.iter().map(|agent| title(agent)).collect();
    assert_eq!(head[1..], titles, "the table's agents");
    let rows: Vec<Vec<String>> = rows.skip(1).map(cells).collect();
    let named: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let names: Vec<&str> = SCENARIOS.iter().map(|one| one.name).collect();
    assert_eq!(named, names, "the table's scenarios");
    let mut found = HashMap::new();
    for (row, scenario) in rows.iter().zip(SCENARIOS) {
        for (cell, agent) in row[1..].iter().zip(AGENTS) {
            found.insert((scenario.name, agent.name), cell.clone());
        }
    }
    found
}

/// Returns the agents that can be fetched, each with the directory of its
/// packages.
pub(super) fn fetched() -> Vec<(&'static Agent, PathBuf)> {
    let fetch = |agent: &&'static Agent| {
        let what = format!("{} with touchmark", agent.title);
        Some((*agent, agent.fetch(&what)?))
    };
    AGENTS.iter().filter_map(fetch).collect()
}

/// Runs all scenarios with all agents that can be fetched, and returns the
/// differences from the documents.
pub fn play() -> Vec<String> {
    let documented = documented();
    let only = std::env::var("TOUCHMARK_AGENTS").unwrap_or_default();
    let agents = fetched();
    let each = agents.iter().flat_map(|(agent, packages)| {
        SCENARIOS
            .iter()
            .map(move |scenario| (*agent, packages, scenario))
    });
    let mut pairs: Vec<(&Agent, &PathBuf, &Scenario)> = each.collect();
    pairs.retain(|(agent, _, scenario)| {
        format!("{}: {}", agent.name, scenario.name).contains(&only)
    });
    let wrong = at_once(&pairs, |(agent, packages, scenario)| {
        let began = Instant::now();
        let cell = cell(agent, packages, scenario);
        println!(
            "{}: {}: {} ({} ms)",
            agent.name,
            scenario.name,
            cell.shown(),
            began.elapsed().as_millis()
        );
        let said = &documented[&(scenario.name, agent.name)];
        (cell.shown() != said).then(|| {
            let (agent, scenario) = (agent.name, scenario.name);
            format!("{agent}: {scenario}: the documents say {said:?}, but {cell:?}")
        })
    });
    wrong.into_iter().flatten().collect()
}

/// Plays each of these, several at the same time, and returns the results in
/// the same order.
pub(super) fn at_once<T: Sync, R: Send>(all: &[T], play: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(all.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(at) else { break };
                    let result = play(one);
                    done.lock().expect("a list").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("a list");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn cell(agent: &'static Agent, packages: &Path, scenario: &Scenario) -> Cell {
    let lacks = agent.lacks.iter().find(|(name, _)| *name == scenario.name);
    let lacks = lacks.map(|(_, why)| *why).or(agent.by.lacks(scenario.name));
    if let Some(why) = lacks {
        return Cell::Lacks(why);
    }
    let play = || {
        let stage = Stage::new(agent, packages, scenario.setting);
        (scenario.play)(&stage)
    };
    let played =
        network::loopback_alone("the real agents", || catch_unwind(AssertUnwindSafe(play)));
    match played {
        Ok(Ok(())) => Cell::Good,
        Ok(Err(why)) => Cell::Lacks(why),
        Err(panic) => Cell::Bad(
            panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
                .unwrap_or_default(),
        ),
    }
}
