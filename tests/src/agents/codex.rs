//! Codex. It reads files with shell commands and writes them with patches.

use std::fmt::Write as _;

use serde_json::json;

use super::{Agent, Ask, By, Does, Stage, patch};
use crate::model::Said;

pub(super) const AGENT: Agent = Agent {
    name: "codex",
    title: "Codex",
    tells_of_declined: false,
    by: By::Hooks,
    python: 0,
    own_gate: false,
    has_prefix: false,
    lacks: &[],
    settle,
    command,
    call,
};

const PROGRAM: &str = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

fn settle(stage: &Stage) {
    let mut config = format!(
        r#"model = "gpt-5.5"
model_provider = "scripted"
model_context_window = 100000
model_auto_compact_token_limit = 50000

[model_providers.scripted]
name = "scripted"
base_url = "{}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"

[projects.{:?}]
trust_level = "trusted"
"#,
        stage.url(),
        stage.world.workspace(),
    );
    if stage.setting.mcp {
        config += "\n[mcp_servers.touchmark]\ncommand = \"touchmark\"\nargs = [\"mcp\"]\nenv_vars = [\"XDG_RUNTIME_DIR\", \"XDG_STATE_HOME\"]\n";
    }
    if let Some(formatter) = stage.setting.formatter {
        let _ = write!(
            config,
            "\n[[hooks.PostToolUse]]\nmatcher = \"apply_patch\"\n[[hooks.PostToolUse.hooks]]\ntype = \"command\"\ncommand = {formatter:?}\n"
        );
    }
    stage.at_home(".codex/config.toml", &config);
}

fn command(stage: &Stage, ask: &Ask) -> std::process::Command {
    let mut command = stage.dress(stage.package(PROGRAM));
    command.env("SCRIPTED_KEY", "test").arg("exec");
    if ask.continues {
        command.args(["resume", "--last"]);
    }
    command.args(["--skip-git-repo-check", "--dangerously-bypass-hook-trust"]);
    match stage.setting.declines {
        true => command.args([
            "-c",
            "approval_policy=\"never\"",
            "-c",
            "sandbox_mode=\"read-only\"",
        ]),
        false => command.arg("--dangerously-bypass-approvals-and-sandbox"),
    };
    command.arg(ask.prompt);
    command
}

fn call(_stage: &Stage, does: &Does) -> Result<Said, &'static str> {
    let shell = |command: &str, wait: u32| {
        let arguments = json!({"cmd": command, "yield_time_ms": wait});
        Ok(Said::Call("exec_command".into(), arguments))
    };
    match does {
        Does::Read(path) => shell(&format!("cat {path}"), 10_000),
        Does::Edit(path, old, new) | Does::Patch(path, old, new) => {
            Ok(Said::Free("apply_patch".into(), patch(path, old, new)))
        }
        Does::Write(path, text) => {
            let mut patch = format!("*** Begin Patch\n*** Add File: {path}\n");
            for line in text.lines() {
                let _ = writeln!(patch, "+{line}");
            }
            Ok(Said::Free("apply_patch".into(), patch + "*** End Patch"))
        }
        Does::Shell(command) => shell(command, 10_000),
        Does::Background(command) => shell(command, 250),
        Does::Delegate(task) => {
            let arguments = json!({"message": task});
            Ok(Said::Call("multi_agent_v1.spawn_agent".into(), arguments))
        }
        Does::Await(told) => {
            // The text is `{"agent_id": "...", ...}`.
            let id = told
                .split("agent_id")
                .nth(1)
                .and_then(|rest| rest.split('"').nth(2));
            let arguments = json!({"targets": [id.expect("an agent's id")], "timeout_ms": 30_000});
            Ok(Said::Call("multi_agent_v1.wait_agent".into(), arguments))
        }
        Does::Report(text) => Ok(Said::Text((*text).into())),
        Does::Mcp(tool, arguments) => Ok(Said::Call(
            format!("mcp__touchmark.{tool}"),
            arguments.clone(),
        )),
    }
}
