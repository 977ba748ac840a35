//! GitHub Copilot CLI, with a provider of the user's own.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage, patch};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "copilot",
    title: "Copilot CLI",
    by: By::Hooks,
    python: 0,
    tells_of_declined: false,
    own_gate: false,
    has_prefix: false,
    lacks: &[
        ("whole file", "never over a file"),
        // It counts the tokens itself, whatever its model says.
        ("compaction", "not by a script"),
    ],
    settle,
    command,
    call,
};

const PROGRAM: &str = "@github/copilot-linux-x64/copilot";

fn settle(stage: &Stage) {
    if let Some(formatter) = stage.setting.formatter {
        // Its hooks have no matcher.
        let line = format!("grep -q '\"tool_name\":\"Edit\"' && {formatter}; echo '{{}}'");
        let hook = json!([{"type": "command", "bash": line, "timeoutSec": 5}]);
        let settings = json!({"version": 1, "hooks": {"PostToolUse": hook}});
        stage.at_home(".copilot/hooks/format.json", &settings.to_string());
    }
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package(PROGRAM));
    // To models with such a name it offers a tool for patches.
    let model = match stage.setting.patches {
        true => "gpt-5.4",
        false => "scripted",
    };
    command
        .env("COPILOT_OFFLINE", "true")
        .env("COPILOT_AUTO_UPDATE", "false")
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", stage.url()))
        .env("COPILOT_PROVIDER_API_KEY", "test")
        .env("COPILOT_PROVIDER_WIRE_API", "completions")
        .env("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "100000")
        .env("COPILOT_MODEL", model)
        .args(["-p", ask.prompt]);
    match stage.setting.declines {
        true => command.arg("--allow-tool=shell"),
        false => command.arg("--allow-all-tools"),
    };
    if stage.setting.mcp {
        let servers = json!({"mcpServers": {"touchmark": {
            "type": "local", "command": "touchmark", "args": ["mcp"], "tools": ["*"]}}});
        command.args(["--additional-mcp-config", &servers.to_string()]);
    }
    // It takes no trust for a conversation that goes on.
    command.arg(match ask.continues {
        true => "--continue",
        false => "--trust-folder",
    });
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("view", json!({"path": file(path)})),
        Does::Edit(path, old, new) => (
            "edit",
            json!({"path": file(path), "old_str": old, "new_str": new}),
        ),
        Does::Write(path, text) => ("create", json!({"path": file(path), "file_text": text})),
        Does::Patch(path, old, new) => {
            return Ok(Said::Custom("apply_patch".into(), patch(path, old, new)));
        }
        Does::Shell(command) => ("bash", json!({"command": command, "description": "work"})),
        Does::Background(command) => (
            "bash",
            json!({"command": command, "description": "work", "mode": "async"}),
        ),
        Does::Delegate(task) => (
            "task",
            json!({"description": "work", "name": "sub", "prompt": task,
                "agent_type": "general-purpose", "mode": "sync"}),
        ),
        Does::Await(_) => return Err("its calls wait for the sub-agent"),
        Does::Report(text) => return Ok(Said::Text((*text).into())),
        Does::Mcp(tool, arguments) => {
            return Ok(Said::Call(format!("touchmark-{tool}"), arguments.clone()));
        }
    };
    Ok(Said::Call(name.into(), arguments))
}
