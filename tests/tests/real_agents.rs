//! The real agents, each with touchmark's hooks and a model that says what the
//! test tells it to.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use touchmark_tests::agents::matrix;
use touchmark_tests::parts;

/// With `TOUCHMARK_AGENTS=codex` or `TOUCHMARK_AGENTS='codex: patch'` only
/// what has that in its name.
#[test]
fn every_agent_plays_every_scenario_as_documented() {
    if !parts::heavy("the real agents") {
        return;
    }
    let wrong = matrix::play();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_documents_table_has_all_agents_and_scenarios() {
    let table = matrix::documented();
    for ((scenario, agent), cell) in table {
        assert!(!cell.is_empty(), "{agent}: {scenario}");
    }
}
