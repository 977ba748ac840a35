//! Cline's command line, with touchmark's plug-in.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "cline",
    title: "Cline CLI",
    by: By::Hooks,
    python: 0,
    tells_of_declined: false,
    own_gate: false,
    has_prefix: false,
    lacks: &[
        ("whole file", "never over a file"),
        ("formatter", "no formatter"),
        // Its plug-ins are not told of it.
        ("compaction", "not announced"),
        ("declined tool", "only in a terminal"),
        ("resumption", "only in a terminal"),
    ],
    settle,
    command,
    call,
};

const PROGRAM: &str = "@cline/cli-linux-x64/bin/cline";

fn settle(stage: &Stage) {
    let providers = json!({
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": {
            "settings": {"provider": "openai-compatible", "apiKey": "test", "model": "scripted",
                "baseUrl": format!("{}/v1", stage.url())},
            "updatedAt": "2026-01-01T00:00:00.000Z",
            "tokenSource": "manual",
        }},
    });
    stage.at_home(
        ".cline/data/settings/providers.json",
        &providers.to_string(),
    );
    if stage.setting.mcp {
        let servers =
            json!({"mcpServers": {"touchmark": {"command": "touchmark", "args": ["mcp"]}}});
        let file = ".cline/data/settings/cline_mcp_settings.json";
        stage.at_home(file, &servers.to_string());
    }
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package(PROGRAM));
    command.env("CLINE_TELEMETRY_DISABLED", "1").args([
        "-P",
        "openai-compatible",
        "-m",
        "scripted",
    ]);
    if stage.setting.declines {
        command.args(["--auto-approve", "false"]);
    }
    if ask.continues {
        let sessions = stage.world.outside().join(".cline/data/sessions");
        let names = std::fs::read_dir(sessions).expect("its sessions").flatten();
        let names = names.map(|entry| entry.file_name());
        command.arg("--id").arg(names.max().expect("a session"));
    }
    command.arg(ask.prompt);
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("read_files", json!({"files": [{"path": file(path)}]})),
        Does::Edit(path, old, new) => (
            "editor",
            json!({"path": file(path), "old_text": old, "new_text": new}),
        ),
        Does::Write(path, text) => ("editor", json!({"path": file(path), "new_text": text})),
        Does::Patch(..) => return Err("no patch tool"),
        Does::Shell(command) => ("run_commands", json!({"commands": [command]})),
        Does::Background(_) => return Err("no background"),
        Does::Delegate(task) => (
            "spawn_agent",
            json!({"systemPrompt": "Work.", "task": task}),
        ),
        Does::Await(_) => return Err("its calls wait for the sub-agent"),
        Does::Report(text) => return Ok(Said::Text((*text).into())),
        Does::Mcp(tool, arguments) => {
            return Ok(Said::Call(format!("touchmark__{tool}"), arguments.clone()));
        }
    };
    Ok(Said::Call(name.into(), arguments))
}
