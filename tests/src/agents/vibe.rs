//! Mistral Vibe.

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "vibe",
    title: "Mistral Vibe",
    by: By::Hooks,
    python: 12,
    tells_of_declined: false,
    own_gate: false,
    has_prefix: false,
    lacks: &[
        ("formatter", "no formatter"),
        ("sub-agent", "only in a script"),
        // It has no event for it.
        ("compaction", "not announced"),
        ("MCP", "only in a script"),
    ],
    settle,
    command,
    call,
};

fn settle(stage: &Stage) {
    let mut config = format!(
        r#"active_model = "scripted"
enable_telemetry = false
enable_update_checks = false

[[providers]]
name = "scripted"
api_base = "{}/v1"
api_key_env_var = ""

[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
"#,
        stage.url()
    );
    if stage.setting.mcp {
        config += "\n[[mcp_servers]]\nname = \"touchmark\"\ntransport = \"stdio\"\ncommand = \"touchmark\"\nargs = [\"mcp\"]\n";
    }
    stage.at_home(".vibe/config.toml", &config);
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.program("vibe"));
    command.args(["-p", ask.prompt, "--trust"]);
    match stage.setting.declines {
        true => command.args(["--agent", "ask"]),
        false => command.arg("--yolo"),
    };
    if ask.continues {
        command.arg("--continue");
    }
    command
}

fn call(stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let file = |name: &str| stage.world.path(name);
    let (name, arguments) = match does {
        Does::Read(path) => ("read_file", json!({"path": file(path)})),
        Does::Edit(path, old, new) => (
            "edit",
            json!({"file_path": file(path), "old_string": old, "new_string": new}),
        ),
        Does::Write(path, text) => ("write_file", json!({"path": file(path), "content": text})),
        Does::Patch(..) => return Err("no patch tool"),
        Does::Shell(command) => ("bash", json!({"command": command})),
        Does::Background(_) => return Err("only in a script"),
        Does::Delegate(_) | Does::Await(_) | Does::Report(_) => return Err("only in a script"),
        Does::Mcp(tool, arguments) => {
            return Ok(Said::Call(
                format!("mcp_touchmark_{tool}"),
                arguments.clone(),
            ));
        }
    };
    Ok(Said::Call(name.into(), arguments))
}
