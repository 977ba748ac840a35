//! opencode.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage, patch};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "opencode",
    title: "opencode",
    tells_of_declined: true,
    by: By::Hooks,
    python: 0,
    own_gate: false,
    has_prefix: false,
    lacks: &[],
    settle,
    command,
    call,
};

const PROGRAM: &str = "opencode-linux-x64/bin/opencode";

/// Returns the model's name. opencode offers a patch tool instead of its edit
/// tool to models with such a name.
fn model(stage: &Stage) -> &'static str {
    match stage.setting.patches {
        true => "gpt-5",
        false => "scripted",
    }
}

fn settle(stage: &Stage) {
    let model = model(stage);
    let mut settings = json!({
        "model": format!("scripted/{model}"),
        "autoupdate": false,
        "share": "disabled",
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{}/v1", stage.url()), "apiKey": "test"},
            "models": {model: {"tool_call": true, "limit": {"context": 100_000, "output": 4_000}}},
        }},
    });
    if stage.setting.mcp {
        settings["mcp"] = json!({"touchmark": {"type": "local", "command": ["touchmark", "mcp"]}});
    }
    if let Some(formatter) = stage.setting.formatter {
        settings["formatter"] =
            json!({"own": {"command": ["sh", "-c", formatter], "extensions": [".txt"]}});
    }
    if stage.setting.declines {
        settings["permission"] = json!({"edit": "deny"});
    }
    let config = stage.world.config().join("opencode");
    std::fs::create_dir_all(&config).expect("a directory");
    std::fs::write(config.join("opencode.json"), settings.to_string()).expect("a setting");
    for name in ["node_modules", "package.json", "package-lock.json"] {
        symlink(stage.packages.join(name), config.join(name)).expect("a link");
    }
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package(PROGRAM));
    for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE"] {
        command.env(format!("OPENCODE_DISABLE_{name}"), "1");
    }
    command.arg("run");
    if ask.continues {
        command.arg("--continue");
    }
    command.arg(ask.prompt);
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("read", json!({"filePath": file(path)})),
        Does::Edit(path, old, new) => (
            "edit",
            json!({"filePath": file(path), "oldString": old, "newString": new}),
        ),
        Does::Write(path, text) => ("write", json!({"filePath": file(path), "content": text})),
        Does::Patch(path, old, new) => ("apply_patch", json!({"patchText": patch(path, old, new)})),
        Does::Shell(command) => ("bash", json!({"command": command, "description": "work"})),
        Does::Background(_) => return Err("no background"),
        Does::Delegate(task) => (
            "task",
            json!({"description": "work", "prompt": task, "subagent_type": "general"}),
        ),
        Does::Await(_) => return Err("its calls wait for the sub-agent"),
        Does::Report(text) => return Ok(Said::Text((*text).into())),
        Does::Mcp(tool, arguments) => {
            return Ok(Said::Call(format!("touchmark_{tool}"), arguments.clone()));
        }
    };
    Ok(Said::Call(name.into(), arguments))
}
