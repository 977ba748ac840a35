//! The real agents, each with touchmark's hooks and a model that says what the
//! test tells it to.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use touchmark_tests::agents::scenarios::SCENARIOS;
use touchmark_tests::agents::{AGENTS, Stage};
use touchmark_tests::{fetched, parts};

#[test]
fn every_agent_plays_every_scenario() {
    if !parts::heavy("the real agents") {
        return;
    }
    for agent in AGENTS {
        let room = format!("agent-{}", agent.name);
        let what = format!("{} with touchmark's hooks", agent.title);
        let Some(packages) = fetched::node(&room, agent.packages, &what) else {
            continue;
        };
        for scenario in SCENARIOS {
            let stage = Stage::new(agent, &packages, scenario.setting);
            let began = std::time::Instant::now();
            let played = (scenario.play)(&stage);
            println!(
                "{} {}: {played:?} {:?}",
                agent.name,
                scenario.name,
                began.elapsed()
            );
        }
    }
}
