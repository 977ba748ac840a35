//! Cursor's events.

use serde_json::{Value, json};
use touchmark_proto::daemon::Program;

use super::fields::{call, content, cwd, flag, number, output_text, session, text};
use super::{Change, Happened, Model, Output, Reading, Replacement, Tool, Verdict, What, codex};

pub(super) fn read(input: &Value) -> Option<Happened> {
    let event = text(input, &["hook_event_name"])?;
    let session = session(text(input, &["conversation_id", "session_id"])?)?;
    let generation = text(input, &["generation_id"]).map(str::to_owned);
    let what = match event {
        "sessionStart" => What::Start { kept: false },
        "sessionEnd" => What::End,
        "beforeSubmitPrompt" => What::Prompt {
            id: generation.clone(),
            text: content(input, &["prompt"]).unwrap_or_default().to_owned(),
        },
        "preToolUse" => {
            let (call, tool) = tool(input)?;
            What::Before { call, tool }
        }
        "postToolUse" => {
            let (call, tool) = tool(input)?;
            What::After {
                call,
                tool,
                output: output(input),
                batch_end: true,
            }
        }
        "postToolUseFailure" => {
            let (call, tool) = tool(input)?;
            What::Failed {
                call,
                tool,
                output: output(input),
            }
        }
        // The tools' own reads have events of their own, so this is no read,
        // but an attached file has no other.
        "beforeReadFile" => What::Attached {
            path: text(input, &["file_path"])?.to_owned(),
            content: content(input, &["content"]).map(str::to_owned),
        },
        "preCompact" => What::Compacted,
        "stop" => What::Stop { tasks: None },
        // `afterFileEdit` and the shell's events say what `postToolUse` says.
        _ => return None,
    };
    Some(Happened {
        event: event.to_owned(),
        can_tell: matches!(event, "sessionStart" | "postToolUse"),
        session,
        parent: None,
        program: Program {
            name: "cursor".into(),
            version: text(input, &["cursor_version"])
                .unwrap_or_default()
                .chars()
                .take(40)
                .collect(),
        },
        cwd: cwd(input).or_else(|| {
            let roots = input.get("workspace_roots")?.as_array()?;
            Some(roots.first()?.as_str()?.into())
        }),
        model: text(input, &["model"]).map(|id| Model {
            id: id.to_owned(),
            provider: "cursor".to_owned(),
            mode: String::new(),
            message: generation,
        }),
        what,
    })
}

fn tool(input: &Value) -> Option<(String, Tool)> {
    let name = text(input, &["tool_name"])?;
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    let call = call(text(input, &["tool_use_id"]), name, arguments);
    let path = || text(arguments, &["file_path", "path", "target_file"]);
    let write = |change| Tool::write(name, path(), change);
    let tool = match name {
        "Read" => path().map_or(Tool::Other, |path| {
            Tool::Read(Reading {
                path: path.to_owned(),
                start: number(arguments, &["offset"]),
                limit: number(arguments, &["limit"]),
            })
        }),
        "Write" => write(
            content(arguments, &["content", "contents", "file_text"])
                .map_or(Change::Unknown, |text| Change::Whole(text.to_owned())),
        ),
        "StrReplace" | "Edit" => write(
            match (
                content(arguments, &["old_string", "old_str"]),
                content(arguments, &["new_string", "new_str"]),
            ) {
                (Some(old), Some(new)) => Change::Replace(vec![Replacement {
                    old: old.to_owned(),
                    new: new.to_owned(),
                    all: flag(arguments, &["replace_all"]),
                }]),
                _ => Change::Unknown,
            },
        ),
        "Delete" => write(Change::Delete),
        "ApplyPatch" => text(arguments, &["patch", "input", "command"])
            .or_else(|| arguments.as_str())
            .map_or(Tool::Other, |patch| Tool::Write {
                name: name.to_owned(),
                files: codex::writings(patch),
            }),
        "Shell" => text(arguments, &["command"]).map_or(Tool::Other, |command| Tool::Shell {
            command: command.to_owned(),
        }),
        _ => Tool::Other,
    };
    Some((call, tool))
}

fn output(input: &Value) -> Output {
    let raw = input.get("tool_output").unwrap_or(&Value::Null);
    // A text that holds JSON.
    let inner: Option<Value> = raw
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    Output {
        text: inner
            .as_ref()
            .and_then(output_text)
            .or_else(|| output_text(raw)),
        ..Output::default()
    }
}

pub(super) fn print(event: &str, verdict: Verdict) -> Value {
    match verdict {
        Verdict::Deny(reason) => json!({
            "permission": "deny",
            "user_message": reason,
            "agent_message": reason,
        }),
        Verdict::Ask(text) => json!({"permission": "ask", "user_message": text}),
        Verdict::Tell(text) if matches!(event, "postToolUse" | "sessionStart") => {
            json!({"additional_context": text})
        }
        Verdict::Nothing | Verdict::Tell(_) | Verdict::Replace(_) => json!({}),
    }
}
