//! What happens to a user's changes with each agent, without touchmark and with
//! it. The truth is taken from outside touchmark: the bytes on disk, and the
//! text that the model was sent.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::matrix::{at_once, fetched, title};
use super::{AGENTS, Agent, By, Does, Setting, Stage};
use crate::network;

/// One situation: a row of the table.
struct Situation {
    /// Its name in the documents' table.
    name: &'static str,
    /// Runs the situation, and returns the outcome in a word or two, or why the
    /// agent cannot be in it.
    play: fn(&Stage) -> Result<&'static str, &'static str>,
}

const SITUATIONS: &[Situation] = &[
    Situation {
        name: "you change a file that it has read; it writes the whole file",
        play: |stage| over(stage, &Does::Read("f.txt")),
    },
    Situation {
        name: "the same, and it had read the file by `cat`",
        play: |stage| over(stage, &Does::Shell("cat f.txt")),
    },
    Situation {
        name: "it writes a whole file that it has never read",
        play: |stage| over(stage, &Does::Shell("true")),
    },
    Situation {
        name: "you change a file that it has read; it goes on with something else",
        play: changed,
    },
    Situation {
        name: "you change a line; it edits another line of the file",
        play: edited,
    },
    Situation {
        name: "you change a file, and continue the conversation later",
        play: continued,
    },
    Situation {
        name: "its own shell command changes a file that it has read",
        play: by_command,
    },
];

const BEFORE: &str = "one\ntwo\nthree\n";
const YOURS: &str = "one\nby hand\nthree\n";

/// The agent writes a whole file after the user has changed a line that it has
/// read.
fn over(stage: &Stage, looks: &Does) -> Result<&'static str, &'static str> {
    const ALL: Does = Does::Write("f.txt", "one\ntwo\nthree\nfour\n");
    stage.world.file("f.txt", BEFORE);
    let is_given = stage.agent.by == By::Run && matches!(looks, Does::Read(_));
    if !is_given {
        stage.able(looks)?;
    }
    let mut run = stage.ask("Write f.txt.");
    if is_given {
        stage.world.file("f.txt", YOURS);
        run.ends_with(&ALL);
    } else {
        run.does(looks);
        stage.world.file("f.txt", YOURS);
        run.does(&ALL);
        run.ends();
    }
    Ok(match stage.text("f.txt").contains("by hand") {
        true => "refused",
        false => "your line is lost",
    })
}

fn changed(stage: &Stage) -> Result<&'static str, &'static str> {
    stage.able(&Does::Shell("true"))?;
    stage.world.file("f.txt", BEFORE);
    let mut run = stage.ask("Read f.txt.");
    run.does(&Does::Read("f.txt"));
    stage.world.file("f.txt", YOURS);
    let sent = run.does(&Does::Shell("true"));
    run.ends();
    Ok(told(&sent))
}

fn edited(stage: &Stage) -> Result<&'static str, &'static str> {
    let lines: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    stage.world.file("f.txt", &lines);
    let edit = Does::Edit("f.txt", "line 18", "the eighteenth");
    let yours = lines.replace("line 2\n", "by hand\n");
    let mut run = stage.ask("Change line 18 of f.txt.");
    let mut sent = String::new();
    if stage.agent.by == By::Run {
        stage.world.file("f.txt", &yours);
        run.ends_with(&edit);
    } else {
        run.does(&Does::Read("f.txt"));
        stage.world.file("f.txt", &yours);
        sent = run.does(&edit);
        run.ends();
    }
    let text = stage.text("f.txt");
    Ok(
        match (text.contains("the eighteenth"), sent.contains("by hand")) {
            _ if !text.contains("by hand") => "your line is lost",
            (true, true) => "edited; told your line",
            (true, false) => "edited; not told",
            (false, _) => "refused",
        },
    )
}

fn continued(stage: &Stage) -> Result<&'static str, &'static str> {
    stage.able(&Does::Read("f.txt"))?;
    stage.world.file("f.txt", BEFORE);
    let mut run = stage.ask("Read f.txt.");
    run.does(&Does::Read("f.txt"));
    let before = mentions(&run.sent());
    run.ends();
    stage.world.file("f.txt", YOURS);
    let mut run = stage.ask_further("What now?");
    run.does(&Does::Shell("true"));
    let now = mentions(&run.sent());
    run.ends();
    Ok(match now > before {
        true => "told",
        false => "not told",
    })
}

/// Returns how often the file's name occurs in the text that a model was sent.
fn mentions(sent: &str) -> usize {
    sent.matches("f.txt").count()
}

fn by_command(stage: &Stage) -> Result<&'static str, &'static str> {
    stage.able(&Does::Shell("true"))?;
    stage.world.file("f.txt", BEFORE);
    let mut run = stage.ask("Change f.txt by a command.");
    run.does(&Does::Read("f.txt"));
    let sent = run.does(&Does::Shell("sed -i s/two/2/ f*"));
    run.ends();
    Ok(told(&sent))
}

/// Returns whether the model was sent the name of the file that it had read:
/// `told` or `not told`.
fn told(sent: &str) -> &'static str {
    match mentions(sent) {
        0 => "not told",
        _ => "told",
    }
}

/// Returns the lines of the Markdown table. Each cell has the outcome without
/// touchmark, then with it. Agents that cannot be fetched, or that
/// `TOUCHMARK_AGENTS` does not name, have no column.
pub fn table() -> Vec<String> {
    let only = std::env::var("TOUCHMARK_AGENTS").unwrap_or_default();
    let mut agents = fetched();
    agents.retain(|(agent, _)| agent.name.contains(&only));
    let each = SITUATIONS.iter().flat_map(|situation| {
        let agents = agents.iter();
        agents.map(move |(agent, packages)| (situation, *agent, packages.as_path()))
    });
    let pairs: Vec<(&Situation, &'static Agent, &Path)> = each.collect();
    let cells = at_once(&pairs, |(situation, agent, packages)| {
        let [alone, with] = [true, false].map(|bare| played(agent, packages, situation, bare));
        let cell = match alone == with {
            true => alone,
            false => format!("{alone} → **{with}**"),
        };
        println!("{}: {}: {cell}", agent.name, situation.name);
        cell
    });
    let heads = agents.iter().map(|(agent, _)| title(agent));
    let mut lines = vec![
        row("situation", heads),
        row("---", agents.iter().map(|_| "---".to_owned())),
    ];
    let rows = cells.chunks(agents.len().max(1)).zip(SITUATIONS);
    lines.extend(rows.map(|(cells, situation)| row(situation.name, cells.iter().cloned())));
    lines
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {name} | {} |", cells.join(" | "))
}

fn played(agent: &'static Agent, packages: &Path, situation: &Situation, bare: bool) -> String {
    let setting = Setting {
        bare,
        ..Setting::default()
    };
    let play = || (situation.play)(&Stage::new(agent, packages, setting));
    let played =
        network::loopback_alone("the real agents", || catch_unwind(AssertUnwindSafe(play)));
    let (Ok(outcome) | Err(outcome)) = played.unwrap_or(Ok("did not play"));
    outcome.to_owned()
}

/// Returns the lines of the table in the documents.
///
/// # Panics
/// If the documents have no such table.
pub fn documented() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/why.md");
    let page = fs::read_to_string(page).expect("the page");
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| situation |"))
        .take_while(|line| line.starts_with('|'));
    rows.map(str::to_owned).collect()
}

/// Returns whether the documents' table has a row for each situation and a
/// column for each agent.
pub fn is_whole(documented: &[String]) -> bool {
    let heads = AGENTS.iter().map(|agent| title(agent));
    documented.len() == SITUATIONS.len() + 2
        && documented[0] == row("situation", heads)
        && documented[2..]
            .iter()
            .zip(SITUATIONS)
            .all(|(line, one)| line.starts_with(&format!("| {} |", one.name)))
}
