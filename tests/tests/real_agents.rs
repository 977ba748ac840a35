//! The real agents, each with touchmark's hooks and a model that answers as the
//! test orders.

use std::sync::{Mutex, PoisonError};

use touchmark_tests::agents::{compared, cost, matrix};
use touchmark_tests::parts;

/// Locked by measurements, so that nothing else runs at the same time.
static ALONE: Mutex<()> = Mutex::new(());

/// With `TOUCHMARK_AGENTS=codex` or `TOUCHMARK_AGENTS='codex: patch'` runs only
/// what has that in its name.
#[test]
fn every_agent_plays_every_scenario_as_documented() {
    if !parts::heavy("the real agents") {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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

#[test]
fn without_touchmark_and_with_it_it_is_as_documented() {
    let documented = compared::documented();
    assert!(compared::is_whole(&documented), "{documented:?}");
    if !parts::heavy("the real agents without touchmark and with it") {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = compared::table();
    if std::env::var_os("TOUCHMARK_AGENTS").is_none() {
        assert_eq!(found.join("\n"), documented.join("\n"));
    }
}

/// Nothing is expected on a busy machine. The numbers are printed.
#[test]
fn what_the_hooks_take_of_a_call_is_printed() {
    if !parts::heavy("what hooks take of the real agents' calls") {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for cost in cost::of_a_call() {
        println!("{}", cost.line());
    }
}
