//! Aider. Its model has no tools: it answers with the edits, and the program
//! writes them and exits. The files are given with the prompt.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "aider",
    title: "Aider",
    by: By::Run,
    python: 0,
    tells_of_declined: false,
    own_gate: false,
    has_prefix: false,
    lacks: &[],
    settle,
    command,
    call,
};

fn settle(stage: &Stage) {
    let model = json!({"scripted": {"max_tokens": 4_000, "max_input_tokens": 100_000}});
    stage.at_home(".aider.model.metadata.json", &model.to_string());
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let program = stage.program("aider");
    let mut command = match stage.setting.bare {
        true => stage.dress(program),
        false => {
            let mut command = stage.dress(crate::world::binary());
            command
                .args(["run", "--session", "aider", "--"])
                .arg(program);
            command
        }
    };
    command
        .env("OPENAI_API_BASE", format!("{}/v1", stage.url()))
        .env("OPENAI_API_KEY", "test")
        .args(["--model", "openai/scripted", "--edit-format", "diff"])
        .args(["--message", ask.prompt, "--yes-always", "--no-stream"])
        .args(["--no-auto-commits", "--no-gitignore", "--map-tokens", "0"])
        .args(["--no-check-update", "--analytics-disable"])
        .args(["--no-show-model-warnings", "--no-show-release-notes"]);
    if ask.continues {
        command.arg("--restore-chat-history");
    }
    command.arg("f.txt");
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let block = |path: &str, old: &str, new: &str| {
        let text =
            format!("{path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n");
        Ok(Said::Text(text))
    };
    match does {
        Does::Edit(path, old, new) => block(path, &format!("{old}\n"), &format!("{new}\n")),
        // It has no other way to write a whole file that exists.
        Does::Write(path, text) => block(path, &stage.text(path), text),
        Does::Read(_) => Err("reads what it is given"),
        Does::Shell(_) | Does::Background(_) => Err("runs no commands"),
        Does::Patch(..) => Err("no patch tool"),
        Does::Delegate(_) | Does::Await(_) | Does::Report(_) => Err("no sub-agents"),
        Does::Mcp(..) => Err("no MCP"),
    }
}
