//! opencode's events, as its plug-in tells them (docs/protocol.md).

use serde_json::{Value, json};
use touchmark_proto::daemon::Program;

use super::fields::{call, content, cwd, flag, number, output_text, session, text};
use super::{Change, Happened, Model, Output, Reading, Replacement, Tool, Verdict, What, codex};

/// Lines that `read` shows unless told.
const READ_LINES: u32 = 2_000;

pub(super) fn read(input: &Value) -> Option<Happened> {
    let phase = text(input, &["phase"])?;
    let session = session(text(input, &["sessionID"])?)?;
    let mut directory = cwd(input);
    let what = match phase {
        "before" | "after" | "failed" => {
            let name = text(input, &["tool"])?;
            let arguments = input.get("args").unwrap_or(&Value::Null);
            let call = call(text(input, &["callID"]), name, arguments);
            let tool = tool(name, arguments);
            if let (Tool::Shell { .. }, Some(cwd)) = (&tool, &mut directory)
                && let Some(below) = text(arguments, &["workdir"])
            {
                *cwd = cwd.join(below);
            }
            match phase {
                "before" => What::Before { call, tool },
                "failed" => What::Failed {
                    call,
                    tool,
                    output: Output::default(),
                },
                _ => What::After {
                    call,
                    tool,
                    output: Output {
                        text: input
                            .get("output")
                            .and_then(output_text)
                            .or_else(|| input.get("metadata").and_then(output_text)),
                        ..Output::default()
                    },
                    batch_end: true,
                },
            }
        }
        "prompt" => What::Prompt {
            id: text(input, &["messageID"]).map(str::to_owned),
            text: content(input, &["prompt", "text"])
                .unwrap_or_default()
                .to_owned(),
        },
        "session.created" => What::Start { kept: false },
        "session.compacted" => What::Compacted,
        "session.idle" => What::Stop { tasks: None },
        "session.deleted" => What::End,
        _ => return None,
    };
    let model = text(input, &["model"]).map(|id| Model {
        id: id.to_owned(),
        provider: "opencode".to_owned(),
        mode: text(input, &["agent"]).unwrap_or_default().to_owned(),
        message: text(input, &["messageID"]).map(str::to_owned),
    });
    Some(Happened {
        event: phase.to_owned(),
        can_tell: matches!(phase, "after" | "prompt"),
        parent: text(input, &["parentID"]).and_then(super::fields::session),
        session,
        program: Program {
            name: "opencode".into(),
            version: String::new(),
        },
        cwd: directory,
        model,
        what,
    })
}

fn tool(name: &str, arguments: &Value) -> Tool {
    let path = || text(arguments, &["filePath", "file_path", "path"]);
    let write = |change| Tool::write(name, path(), change);
    match name {
        "read" => path().map_or(Tool::Other, |path| {
            Tool::Read(Reading {
                path: path.to_owned(),
                // Counted from 0.
                start: number(arguments, &["offset"]).map(|offset| offset.saturating_add(1)),
                limit: number(arguments, &["limit"]).or(Some(READ_LINES)),
            })
        }),
        "write" => write(
            content(arguments, &["content"])
                .map_or(Change::Unknown, |text| Change::Whole(text.to_owned())),
        ),
        "edit" => write(replacement(arguments).map_or(Change::Unknown, |one| {
            // An empty text in place of nothing makes the file.
            if one.old.is_empty() {
                Change::Whole(one.new)
            } else {
                Change::Replace(vec![one])
            }
        })),
        "multiedit" => write(
            arguments
                .get("edits")
                .and_then(Value::as_array)
                .and_then(|edits| edits.iter().map(replacement).collect())
                .map_or(Change::Unknown, Change::Replace),
        ),
        "patch" | "apply_patch" => {
            text(arguments, &["patchText", "patch"]).map_or(Tool::Other, |patch| Tool::Write {
                name: name.to_owned(),
                files: codex::writings(patch),
            })
        }
        "bash" => text(arguments, &["command"]).map_or(Tool::Other, |command| Tool::Shell {
            command: command.to_owned(),
        }),
        _ => Tool::Other,
    }
}

fn replacement(arguments: &Value) -> Option<Replacement> {
    Some(Replacement {
        old: content(arguments, &["oldString", "old_string"])?.to_owned(),
        new: content(arguments, &["newString", "new_string"])?.to_owned(),
        all: flag(arguments, &["replaceAll", "replace_all"]),
    })
}

pub(super) fn print(verdict: Verdict) -> Value {
    match verdict {
        Verdict::Deny(reason) => json!({"deny": reason}),
        Verdict::Tell(text) => json!({"append": text}),
        Verdict::Nothing | Verdict::Ask(_) | Verdict::Replace(_) => json!({}),
    }
}
