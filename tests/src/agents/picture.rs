//! Claude Code as its user sees it: it edits a line that the user has changed,
//! is refused once with that line, and edits it again. The README's first
//! picture is drawn from the screen (docs/pictures/make.py).

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::matrix::fetched;
use super::{Agent, Ask, Does, Setting, Stage, claude};
use crate::model::{Asked, Said};
use crate::network;
use crate::terminal::Terminal;
use crate::wire::PATIENCE;

const FILE: &str = "cart.py";
const BEFORE: &str = "def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n    return result\n";
/// What Claude Code replaces. It is in the user's line as well: Claude Code
/// refuses an edit itself whose old text the file does not have any more.
const OLD: &str = "return result";
const USERS: &str = "return result * 1.19  # with tax";
const PROMPT: &str = "Round the total to cents.";
const END: &str = "Rounded, and your tax stays in it.";

/// The size of the terminal.
const COLUMNS: u16 = 80;
const ROWS: u16 = 50;

/// What the run has left.
pub struct Shown {
    /// The rows of the screen, from the prompt on.
    pub rows: Vec<String>,
    /// The same rows with their colours, as a terminal receives them.
    pub coloured: String,
    /// The file at the end.
    pub file: String,
    /// The file that it should be.
    pub wanted: String,
}

/// Plays it. Returns `None` if Claude Code cannot be fetched.
pub fn refused() -> Option<Shown> {
    let name = claude::AGENT.name;
    let (agent, packages) = fetched().into_iter().find(|(one, _)| one.name == name)?;
    let play = || played(&Stage::new(agent, &packages, Setting::default()), agent);
    Some(network::loopback_alone("the real agents", play))
}

fn played(stage: &Stage, agent: &'static Agent) -> Shown {
    stage.world.file(FILE, BEFORE);
    let path = stage.world.workspace().to_string_lossy().into_owned();
    let project = path.clone();
    // As if the user had chosen a theme and accepted the key before.
    let state = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-test"], "rejected": []},
        "projects": {project: {"hasTrustDialogAccepted": true}},
    });
    stage.at_home(".claude.json", &state.to_string());
    let ask = Ask {
        prompt: PROMPT,
        continues: false,
    };
    let (program, environment) = {
        let command = (agent.command)(stage, &ask);
        (command.get_program().to_owned(), command)
    };
    let mut command = std::process::Command::new(program);
    command
        .env_clear()
        .current_dir(stage.world.workspace())
        .args(["--model", "claude-sonnet-4-5"])
        .args(["--permission-mode", "acceptEdits", PROMPT]);
    for (name, value) in environment.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let mut terminal = Terminal::start(command, COLUMNS, ROWS);
    let call = |does: &Does| (agent.call)(stage, does).expect("a tool");
    next(stage, &mut terminal).answer(&call(&Does::Read(FILE)), 1_000);
    let asked = next(stage, &mut terminal);
    fs::write(stage.world.path(FILE), BEFORE.replace(OLD, USERS)).expect("the user's save");
    let new = "return round(result, 2)";
    asked.answer(&call(&Does::Edit(FILE, OLD, new)), 1_000);
    let again = "return round(result * 1.19, 2)  # with tax";
    next(stage, &mut terminal).answer(&call(&Does::Edit(FILE, USERS, again)), 1_000);
    next(stage, &mut terminal).answer(&Said::Text(END.into()), 1_000);
    let has = |rows: &[String], text: &str| rows.iter().any(|row| row.contains(text));
    let all = terminal.until("the end", |rows| has(rows, END));
    let begin = all.iter().position(|row| row.contains(PROMPT));
    let begin = begin.expect("the prompt on the screen");
    let end = all.iter().rposition(|row| row.contains(END));
    let end = end.expect("the end on the screen");
    Shown {
        rows: all[begin..=end].to_vec(),
        // The name of the directory is another one each time.
        coloured: terminal.coloured()[begin..=end]
            .join("\u{1b}[m\n")
            .replace(&format!("{path}/"), ""),
        file: fs::read_to_string(stage.world.path(FILE)).expect("the file"),
        wanted: BEFORE.replace(OLD, again),
    }
}

/// Waits for the model's next request. Reads what the program prints until then,
/// since it would block otherwise.
fn next(stage: &Stage, terminal: &mut Terminal) -> Asked {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut model = stage.model.borrow_mut();
        if let Some(asked) = model.next(Duration::from_millis(20), |_| true) {
            return asked;
        }
        drop(model);
        terminal.take();
        let rows = terminal.rows().join("\n");
        assert!(Instant::now() < end, "no request comes:\n{rows}");
    }
}
