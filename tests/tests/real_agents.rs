//! The real agents, each with touchmark's hooks and a model that answers as the
//! test orders.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use touchmark_tests::agents::{AGENTS, By, compared, cost, matrix, picture};
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

/// The machine and the command stand beside the table; the test below prints what
/// they give.
#[test]
fn the_costs_are_those_of_all_agents() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agents/README.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (before, costs) = page.split_once("What hooks add to a tool call").unwrap();
    assert!(before.contains("| undo |"));
    assert!(costs.contains("real_agents::what_the_hooks"), "{costs}");
    let rows = costs.lines().filter_map(|line| line.strip_prefix('|'));
    let rows: Vec<Vec<&str>> = rows
        .map(|row| {
            row.trim_end_matches('|')
                .split('|')
                .map(str::trim)
                .collect()
        })
        .take(5)
        .collect();
    let titles: BTreeSet<&str> = AGENTS
        .iter()
        .filter(|agent| agent.by == By::Hooks)
        .map(|agent| agent.title)
        .collect();
    let named: BTreeSet<&str> = rows[0][1..].iter().copied().collect();
    assert_eq!(named, titles, "{costs}");
    for row in &rows[2..] {
        assert_eq!(row.len(), titles.len() + 1, "{row:?}");
        let is_cell = |cell: &&str| cell.ends_with(" ms") || *cell == "a plug-in";
        assert!(row[1..].iter().all(is_cell), "{row:?}");
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

/// What Claude Code's user sees. With `TOUCHMARK_PICTURE=FILE` the screen is
/// written there, with its colours; `docs/pictures/make.py` draws it.
#[test]
fn hook4_the_user_sees_claude_code_refused_with_the_users_line() {
    if !parts::heavy("Claude Code's screen") {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(shown) = picture::refused() else {
        return;
    };
    let text = shown.rows.join("\n");
    assert!(text.contains("after you read it"), "{text}");
    let line = "5:     return result * 1.19  # with tax";
    assert!(text.contains(line), "{text}");
    assert_eq!(shown.file, shown.wanted, "{text}");
    if let Some(file) = std::env::var_os("TOUCHMARK_PICTURE") {
        std::fs::write(file, shown.coloured).unwrap();
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
