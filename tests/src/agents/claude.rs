//! Claude Code.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "claude",
    title: "Claude Code",
    tells_of_declined: true,
    by: By::Hooks,
    python: 0,
    own_gate: false,
    has_prefix: true,
    lacks: &[],
    settle,
    command,
    call,
};

const PROGRAM: &str = "@anthropic-ai/claude-code-linux-x64/claude";

fn settle(stage: &Stage) {
    // Set up as if it had been started before and this workspace had been
    // trusted.
    let project = stage.world.workspace().to_string_lossy().into_owned();
    let state = json!({
        "hasCompletedOnboarding": true,
        "projects": {project: {"hasTrustDialogAccepted": true}},
    });
    stage.at_home(".claude.json", &state.to_string());
    if let Some(formatter) = stage.setting.formatter {
        let hook = json!([{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": formatter}]}]);
        let settings = json!({"hooks": {"PostToolUse": hook}});
        stage.at_home(".claude/settings.json", &settings.to_string());
    }
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package(PROGRAM));
    command
        .env("ANTHROPIC_BASE_URL", stage.url())
        .env("ANTHROPIC_API_KEY", "sk-test")
        .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    for name in [
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "IS_SANDBOX",
    ] {
        command.env(name, "1");
    }
    command.args(["-p", ask.prompt, "--output-format", "json"]);
    command.args(["--model", "claude-sonnet-4-5"]);
    if !stage.setting.declines {
        command.arg("--dangerously-skip-permissions");
    }
    if stage.setting.mcp {
        let servers =
            json!({"mcpServers": {"touchmark": {"command": "touchmark", "args": ["mcp"]}}});
        command.args(["--mcp-config", &servers.to_string()]);
    }
    if ask.continues {
        command.arg("--continue");
    }
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("Read", json!({"file_path": file(path)})),
        Does::Edit(path, old, new) => (
            "Edit",
            json!({"file_path": file(path), "old_string": old, "new_string": new}),
        ),
        Does::Write(path, text) => ("Write", json!({"file_path": file(path), "content": text})),
        Does::Patch(..) => return Err("no patch tool"),
        Does::Shell(command) => ("Bash", json!({"command": command, "description": "work"})),
        Does::Background(command) => (
            "Bash",
            json!({"command": command, "description": "work", "run_in_background": true}),
        ),
        Does::Delegate(task) => (
            "Agent",
            json!({"prompt": task, "description": "work", "subagent_type": "general-purpose", "run_in_background": false}),
        ),
        Does::Await(_) => return Err("its calls wait for the sub-agent"),
        Does::Report(text) => return Ok(Said::Text((*text).into())),
        Does::Mcp(tool, arguments) => {
            return Ok(Said::Call(
                format!("mcp__touchmark__{tool}"),
                arguments.clone(),
            ));
        }
    };
    Ok(Said::Call(name.into(), arguments))
}
