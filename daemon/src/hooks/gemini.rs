//! Gemini CLI's events. Its tool calls have no names of their own.

use serde_json::{Value, json};
use touchmark_proto::daemon::Program;

use super::fields::{call, content, cwd, flag, number, output_text, session, text};
use super::{Change, Happened, Model, Output, Reading, Replacement, Tool, Verdict, What};

/// Lines that `read_file` shows unless told.
const READ_LINES: u32 = 2_000;

pub(super) fn read(input: &Value) -> Option<Happened> {
    let event = text(input, &["hook_event_name"])?;
    let session = session(text(input, &["session_id"])?)?;
    let mut directory = cwd(input);
    let what = match event {
        "SessionStart" => What::Start {
            kept: text(input, &["source"]) == Some("resume"),
        },
        "SessionEnd" => What::End,
        "BeforeAgent" => What::Prompt {
            id: None,
            text: content(input, &["prompt"]).unwrap_or_default().to_owned(),
        },
        "AfterAgent" => What::Stop { tasks: None },
        // Said before each request to the model, ahead of the question whether
        // there is anything to compress; only who says /compress means it.
        "PreCompress" if text(input, &["trigger"]) == Some("auto") => What::Nothing,
        "PreCompress" => What::Compacted,
        "AfterModel" => What::ModelUsed,
        "BeforeTool" | "AfterTool" => {
            let name = text(input, &["tool_name"])?;
            let arguments = input.get("tool_input").unwrap_or(&Value::Null);
            let call = call(None, name, arguments);
            let tool = tool(name, arguments);
            if let (Tool::Shell { .. }, Some(cwd)) = (&tool, &mut directory)
                && let Some(below) = text(arguments, &["dir_path", "directory"])
            {
                *cwd = cwd.join(below);
            }
            let response = input.get("tool_response").unwrap_or(&Value::Null);
            match event {
                "BeforeTool" => What::Before { call, tool },
                _ if response.get("error").is_some_and(|error| !error.is_null()) => What::Failed {
                    call,
                    tool,
                    output: Output {
                        text: output_text(response),
                        ..Output::default()
                    },
                },
                _ => What::After {
                    call,
                    tool,
                    output: Output {
                        text: output_text(response),
                        ..Output::default()
                    },
                    batch_end: true,
                },
            }
        }
        _ => return None,
    };
    let model = input
        .get("llm_request")
        .and_then(|request| text(request, &["model"]))
        .filter(|_| what == What::ModelUsed);
    Some(Happened {
        event: event.to_owned(),
        can_tell: matches!(event, "SessionStart" | "BeforeAgent" | "AfterTool"),
        session,
        parent: None,
        program: Program {
            name: "gemini-cli".into(),
            version: String::new(),
        },
        cwd: directory,
        model: model.map(|id| Model {
            id: id.to_owned(),
            provider: "google".to_owned(),
            mode: String::new(),
            message: None,
        }),
        what,
    })
}

fn tool(name: &str, arguments: &Value) -> Tool {
    let path = || text(arguments, &["file_path", "absolute_path", "path"]);
    let write = |change| Tool::write(name, path(), change);
    match name {
        "read_file" => path().map_or(Tool::Other, |path| Tool::Read(reading(path, arguments))),
        "write_file" => write(
            content(arguments, &["content"])
                .map_or(Change::Unknown, |text| Change::Whole(text.to_owned())),
        ),
        "replace" | "edit" => write(replacement(arguments)),
        "run_shell_command" => {
            text(arguments, &["command"]).map_or(Tool::Other, |command| Tool::Shell {
                command: command.to_owned(),
            })
        }
        _ => Tool::Other,
    }
}

fn reading(path: &str, arguments: &Value) -> Reading {
    // `start_line` and `end_line` count from 1, the older `offset` from 0.
    let start = number(arguments, &["start_line"])
        .or_else(|| number(arguments, &["offset"]).map(|offset| offset.saturating_add(1)));
    let end = number(arguments, &["end_line"])
        .map(|end| end.saturating_sub(start.unwrap_or(1)).saturating_add(1));
    Reading {
        path: path.to_owned(),
        start,
        limit: end.or(number(arguments, &["limit"])).or(Some(READ_LINES)),
    }
}

fn replacement(arguments: &Value) -> Change {
    let (Some(old), Some(new)) = (
        content(arguments, &["old_string"]),
        content(arguments, &["new_string"]),
    ) else {
        return Change::Unknown;
    };
    // An empty text in place of nothing makes the file.
    if old.is_empty() {
        return Change::Whole(new.to_owned());
    }
    Change::Replace(vec![Replacement {
        old: old.to_owned(),
        new: new.to_owned(),
        all: flag(arguments, &["allow_multiple"])
            || number(arguments, &["expected_replacements"]).is_some_and(|count| count > 1),
    }])
}

pub(super) fn print(verdict: Verdict) -> Value {
    match verdict {
        Verdict::Deny(reason) => json!({"decision": "deny", "reason": reason}),
        Verdict::Tell(text) => json!({"hookSpecificOutput": {"additionalContext": text}}),
        Verdict::Nothing | Verdict::Ask(_) | Verdict::Replace(_) => json!({}),
    }
}
