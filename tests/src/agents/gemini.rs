//! Gemini CLI.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "gemini",
    title: "Gemini CLI",
    tells_of_declined: true,
    by: By::Hooks,
    python: 0,
    own_gate: false,
    has_prefix: false,
    lacks: &[
        // Gemini CLI announces a compaction before each request, whether or not
        // it compacts, and never reports a completed one.
        ("compaction", "not announced"),
    ],
    settle,
    command,
    call,
};

const PROGRAM: &str = "@google/gemini-cli/bundle/gemini.js";

fn settle(stage: &Stage) {
    let mut settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
    });
    if stage.setting.mcp {
        settings["mcpServers"] = json!({"touchmark": {"command": "touchmark", "args": ["mcp"]}});
    }
    if let Some(formatter) = stage.setting.formatter {
        settings["hooks"] = json!({"AfterTool": [{"matcher": "replace|write_file", "hooks": [
            {"type": "command", "name": "format", "command": format!("{formatter}; echo '{{}}'")}]}]});
    }
    stage.at_home(".gemini/settings.json", &settings.to_string());
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress("node");
    command
        .arg(stage.package(PROGRAM))
        .env("GOOGLE_GEMINI_BASE_URL", stage.url())
        .env("GEMINI_API_KEY", "test")
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
        .args(["-p", ask.prompt, "--output-format", "json"])
        .args(["-m", "gemini-2.5-pro"]);
    if !stage.setting.declines {
        command.arg("--yolo");
    }
    if ask.continues {
        command.args(["--resume", "latest"]);
    }
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("read_file", json!({"file_path": file(path)})),
        Does::Edit(path, old, new) => (
            "replace",
            json!({"file_path": file(path), "old_string": old, "new_string": new, "instruction": "work"}),
        ),
        Does::Write(path, text) => (
            "write_file",
            json!({"file_path": file(path), "content": text}),
        ),
        Does::Patch(..) => return Err("no patch tool"),
        Does::Shell(command) => (
            "run_shell_command",
            json!({"command": command, "description": "work"}),
        ),
        Does::Background(command) => (
            "run_shell_command",
            json!({"command": command, "description": "work", "is_background": true}),
        ),
        Does::Delegate(task) => (
            "invoke_agent",
            json!({"agent_name": "generalist", "prompt": task}),
        ),
        Does::Await(_) => return Err("its calls wait for the sub-agent"),
        Does::Report(text) => ("complete_task", json!({"result": {"response": text}})),
        Does::Mcp(tool, arguments) => {
            return Ok(Said::Call(
                format!("mcp_touchmark_{tool}"),
                arguments.clone(),
            ));
        }
    };
    Ok(Said::Call(name.into(), arguments))
}
