//! Claude Code's events.

use serde_json::{Value, json};
use touchmark_proto::daemon::Program;

use super::fields::{call, child, content, cwd, flag, number, output_text, session, text};
use super::rules::cut;
use super::{
    Background, Change, Happened, Model, Output, Reading, Replacement, Tool, Verdict, What,
};

/// Lines that Claude's Read shows unless told.
const READ_LINES: u32 = 2_000;

/// Bytes of an output too long for the model that it is shown at least.
const PREVIEW: usize = 2_000;

pub(super) fn read(input: &Value) -> Option<Happened> {
    if is_somebody_else(input) {
        return None;
    }
    read_as(input, "claude-code", "anthropic")
}

/// Cursor and VS Code's Copilot run Claude's hooks beside their own: what they
/// do would count twice.
fn is_somebody_else(input: &Value) -> bool {
    input.get("cursor_version").is_some()
        || text(input, &["transcript_path"]).is_some_and(|path| path.contains("github.copilot"))
}

/// The events of Claude's family: Codex speaks nearly the same.
pub(super) fn read_as(input: &Value, name: &str, provider: &'static str) -> Option<Happened> {
    let event = text(input, &["hook_event_name"])?;
    let main = session(text(input, &["session_id"])?)?;
    let (session, parent) = match text(input, &["agent_id"]) {
        Some(agent) => (child(&main, agent)?, Some(main)),
        None => (main, None),
    };
    let what = match event {
        "SessionStart" => What::Start {
            kept: matches!(text(input, &["source"]), Some("resume" | "fork")),
        },
        "SessionEnd" => What::End,
        "UserPromptSubmit" => What::Prompt {
            id: text(input, &["prompt_id", "turn_id"]).map(str::to_owned),
            text: content(input, &["prompt"]).unwrap_or_default().to_owned(),
        },
        "PreToolUse" => {
            let (call, tool) = tool(input)?;
            What::Before { call, tool }
        }
        "PostToolUse" => {
            let (call, tool) = tool(input)?;
            What::After {
                call,
                tool,
                output: output(input),
                batch_end: false,
            }
        }
        "PostToolUseFailure" => {
            let (call, tool) = tool(input)?;
            What::Failed {
                call,
                tool,
                output: Output {
                    text: text(input, &["error"]).map(str::to_owned),
                    ..Output::default()
                },
            }
        }
        "PermissionDenied" => What::Declined {
            call: tool(input)?.0,
        },
        "PostToolBatch" => What::BatchEnd { ran: ran(input) },
        "PreCompact" | "PostCompact" => What::Compacted,
        "SubagentStart" => What::ChildStart,
        "SubagentStop" => What::ChildEnd,
        "Stop" | "StopFailure" => What::Stop {
            tasks: input.get("background_tasks").map(tasks),
        },
        "Interrupt" => What::Interrupted,
        _ => return None,
    };
    // A sub-agent's events that carry no name of it are the parent's.
    if matches!(what, What::ChildStart | What::ChildEnd) && parent.is_none() {
        return None;
    }
    Some(Happened {
        event: event.to_owned(),
        can_tell: matches!(
            event,
            "SessionStart"
                | "UserPromptSubmit"
                | "PostToolUse"
                | "PostToolUseFailure"
                | "PostToolBatch"
                | "SubagentStart"
        ),
        session,
        parent,
        program: Program {
            name: name.into(),
            version: String::new(),
        },
        cwd: cwd(input),
        model: text(input, &["model"]).map(|id| Model {
            id: id.to_owned(),
            provider: provider.to_owned(),
            mode: text(input, &["permission_mode"])
                .unwrap_or_default()
                .to_owned(),
            message: text(input, &["prompt_id", "turn_id"]).map(str::to_owned),
        }),
        what,
    })
}

/// The calls of a batch that were carried out: one that was declined is not
/// among them, and nothing else says so.
fn ran(input: &Value) -> Option<Vec<String>> {
    let calls = input.get("tool_calls")?.as_array()?;
    let name = |one: &Value| {
        let name = text(one, &["tool_name"])?;
        let arguments = one.get("tool_input").unwrap_or(&Value::Null);
        Some(call(text(one, &["tool_use_id"]), name, arguments))
    };
    // One that cannot be told by name may be any.
    calls.iter().map(name).collect()
}

fn tool(input: &Value) -> Option<(String, Tool)> {
    let name = text(input, &["tool_name"])?;
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    let call = call(text(input, &["tool_use_id"]), name, arguments);
    let path = || text(arguments, &["file_path", "notebook_path", "path"]);
    let write = |change| Tool::write(name, path(), change);
    let tool = match name {
        "Read" => path().map_or(Tool::Other, |path| {
            Tool::Read(Reading {
                path: path.to_owned(),
                start: number(arguments, &["offset"]),
                limit: number(arguments, &["limit"]).or(Some(READ_LINES)),
            })
        }),
        "Write" => write(
            content(arguments, &["content"])
                .map_or(Change::Unknown, |text| Change::Whole(text.to_owned())),
        ),
        "Edit" => {
            write(replacement(arguments).map_or(Change::Unknown, |one| Change::Replace(vec![one])))
        }
        "MultiEdit" => write(
            arguments
                .get("edits")
                .and_then(Value::as_array)
                .and_then(|edits| edits.iter().map(replacement).collect())
                .map_or(Change::Unknown, Change::Replace),
        ),
        "NotebookEdit" => write(Change::Unknown),
        "Bash" => text(arguments, &["command"]).map_or(Tool::Other, |command| Tool::Shell {
            command: command.to_owned(),
        }),
        _ => Tool::Other,
    };
    Some((call, tool))
}

fn replacement(arguments: &Value) -> Option<Replacement> {
    Some(Replacement {
        old: content(arguments, &["old_string"])?.to_owned(),
        new: content(arguments, &["new_string"])?.to_owned(),
        all: flag(arguments, &["replace_all"]),
    })
}

fn output(input: &Value) -> Output {
    let raw = input.get("tool_response").unwrap_or(&Value::Null);
    let file = raw.get("file");
    let shown = file.and_then(|file| {
        Some((
            number(file, &["startLine"])?,
            number(file, &["numLines"])?,
            number(file, &["totalLines"])?,
        ))
    });
    let mut said = file.and_then(output_text).or_else(|| output_text(raw));
    // Of what it keeps in a file of its own, the model gets the beginning.
    if text(raw, &["persistedOutputPath"]).is_some() {
        said = said.map(|text| cut(&text, PREVIEW));
    }
    Output {
        text: said,
        shown,
        replaceable: true,
        raw: raw.clone(),
    }
}

fn tasks(list: &Value) -> Vec<Background> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|task| {
            Some(Background {
                id: text(task, &["id"])?.to_owned(),
                is_agent: text(task, &["type"]).is_some_and(|kind| kind.contains("agent")),
                running: !matches!(
                    text(task, &["status"]),
                    Some("completed" | "failed" | "killed" | "stopped" | "cancelled")
                ),
                command: text(task, &["command", "description"]).map(str::to_owned),
            })
        })
        .collect()
}

pub(super) fn print(event: &str, verdict: Verdict) -> Value {
    let specific = match verdict {
        Verdict::Nothing => return json!({}),
        Verdict::Deny(reason) => json!({
            "hookEventName": event,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }),
        Verdict::Ask(text) => json!({
            "hookEventName": event,
            "permissionDecision": "ask",
            "permissionDecisionReason": text,
        }),
        Verdict::Tell(text) => json!({"hookEventName": event, "additionalContext": text}),
        Verdict::Replace(output) => json!({"hookEventName": event, "updatedToolOutput": output}),
    };
    json!({"hookSpecificOutput": specific})
}
