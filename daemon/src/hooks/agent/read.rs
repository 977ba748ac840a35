//! Reads an event by its agent's row.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use touchmark_proto::SessionId;
use touchmark_proto::daemon::Program;

use super::super::fields::{
    call, child, content, cwd, flag, number, output_text, present, session, text,
};
use super::super::happened::{
    Background, Change, Happened, Model, Output, Reading, Replacement, Tool, What, Writing,
};
use super::super::rules::cut;
use super::super::{patch, shell_patch};
use super::{Agent, Arguments, Does, Fields, Heard, Is, Names, Odd};

/// The minimum of bytes that the model is shown of an output that is too long
/// for it.
const PREVIEW: usize = 2_000;

/// The maximum length of a program's version, in characters.
const VERSION: usize = 40;

/// The maximum length of the name of an event or a tool that is not known, in
/// bytes. Such names are remembered.
const ODD: usize = 400;

/// The prefixes in names of tools of MCP servers. Other agents put two
/// underscores between server and tool.
const SERVERS: &[&str] = &["mcp_", "mcp:", "MCP:"];

/// Returns the session of an event, and the session that started it; `None` for
/// a main conversation.
///
/// # Errors
/// The field that is missing.
pub(super) fn sessions(
    fields: &Fields,
    input: &Value,
) -> Result<(SessionId, Option<SessionId>), Names> {
    let main = text(input, fields.session).and_then(session);
    let main = main.ok_or(fields.session)?;
    match text(input, fields.child) {
        Some(name) => {
            let child = child(&main, name).ok_or(fields.child)?;
            Ok((child, Some(main)))
        }
        None => Ok((main, text(input, fields.parent).and_then(session))),
    }
}

pub(super) fn read(agent: &Agent, input: &Value) -> Heard {
    let fields = &agent.fields;
    let Some(name) = text(input, fields.event).or(agent.unnamed) else {
        return Heard::odd(Odd::NoEvent);
    };
    let mut events = agent.events.iter();
    let Some(event) = events.find(|event| same(event.name, name)) else {
        let mut ignored = agent.ignored.split(' ');
        return match ignored.any(|known| same(known, name)) {
            true => Heard::default(),
            false => Heard::odd(Odd::Event(cut(name, ODD))),
        };
    };
    let lacks = |field: Names| Heard::odd(Odd::Field(event.name, field.first().unwrap_or(&"")));
    let (session, parent) = match sessions(fields, input) {
        Ok(sessions) => sessions,
        Err(field) => return lacks(field),
    };
    let mut directory = cwd(input, fields.cwd, fields.roots);
    let mut odd = None;
    let mut knows_tool = false;
    let what = match event.is {
        Is::Start => What::Start {
            kept: matches!(text(input, &["source"]), Some("resume" | "fork")),
        },
        Is::End => What::End,
        Is::Prompt => What::Prompt {
            id: text(input, fields.turn).map(str::to_owned),
            text: content(input, fields.prompt)
                .or_else(|| content(present(input, fields.arguments)?, fields.prompt))
                .unwrap_or_default()
                .to_owned(),
        },
        Is::Before | Is::After | Is::AfterOrFailed | Is::Failed | Is::Declined => {
            let Some(name) = event.tool.or_else(|| text(input, fields.tool)) else {
                return lacks(fields.tool);
            };
            let parsed = agent.given(input);
            let given = parsed.as_ref();
            let call = call(text(input, fields.call), name, given);
            let tool = match agent.tool(name, given) {
                Ok(tool) => {
                    knows_tool = tool != Tool::Other;
                    tool
                }
                Err(wrong) => {
                    odd = Some(wrong);
                    Tool::Other
                }
            };
            if let (Tool::Shell { .. }, Some(below)) =
                (&tool, text(given, agent.arguments.directory))
            {
                let inside = directory.unwrap_or_default().join(below);
                directory = Some(inside).filter(|path| path.is_absolute());
            }
            let has_failed = match event.is {
                Is::AfterOrFailed => {
                    present(input, fields.error).is_some()
                        || present(input, fields.output).is_some_and(is_error)
                }
                is => is == Is::Failed,
            };
            match event.is {
                Is::Before => What::Before { call, tool },
                Is::Declined => What::Declined { call },
                _ if has_failed => What::Failed {
                    call,
                    tool,
                    output: agent.failure(input),
                },
                _ => What::After {
                    call,
                    tool,
                    output: agent.output(input),
                    batch_end: !agent.ends_batches(),
                },
            }
        }
        Is::BatchEnd => What::BatchEnd,
        // An automatic compaction is reported before each request to the model,
        // before it is decided whether anything is compacted. A requested one
        // is certain.
        Is::CompactedByHand if text(input, &["trigger"]) == Some("auto") => What::Nothing,
        Is::Compacted | Is::CompactedByHand => What::Compacted,
        // Events without a sub-agent's name belong to the parent.
        Is::ChildStart | Is::ChildEnd if parent.is_none() => return Heard::default(),
        Is::ChildStart => What::ChildStart,
        Is::ChildEnd => What::ChildEnd,
        Is::Stop => What::Stop {
            tasks: input.get("background_tasks").map(tasks),
        },
        Is::Interrupted => What::Interrupted,
        Is::ModelUsed => What::ModelUsed,
        // The tools' reads have separate events, so this is no read. An
        // attached file has no other event.
        Is::Attached => {
            let Some(path) = text(input, agent.arguments.path) else {
                return lacks(agent.arguments.path);
            };
            What::Attached {
                path: path.to_owned(),
                content: content(input, agent.arguments.content).map(str::to_owned),
            }
        }
    };
    let happened = Happened {
        event: event.name.to_owned(),
        session,
        parent,
        program: agent.program(input),
        cwd: directory,
        model: agent.model(input),
        can_tell: event.tells
            && (agent.told_with.is_empty() || present(input, agent.told_with).is_some()),
        what,
    };
    Heard {
        happened: Some(happened),
        odd,
        knows_tool,
    }
}

/// Returns where to look for the workspace of an event.
pub(super) fn place(agent: &Agent, input: &Value) -> Option<PathBuf> {
    let fields = &agent.fields;
    let cwd = cwd(input, fields.cwd, fields.roots);
    let file = read(agent, input).happened.and_then(|happened| {
        let path = match happened.what {
            What::Before { tool, .. } | What::After { tool, .. } | What::Failed { tool, .. } => {
                match tool {
                    Tool::Read(reading) => reading.path,
                    Tool::Write { files, .. } => files.into_iter().next()?.path,
                    // If the event names no other directory: the one in which
                    // the command runs.
                    Tool::Shell { .. } if cwd.is_none() => return happened.cwd,
                    Tool::Shell { .. } | Tool::Other => return None,
                }
            }
            What::Attached { path, .. } => path,
            _ => return None,
        };
        let file = cwd.as_deref().unwrap_or(Path::new("")).join(path);
        Some(file.parent()?.to_owned()).filter(|directory| directory.is_absolute())
    });
    file.or(cwd)
}

/// Returns whether two names of an event differ only in their spelling:
/// `PreToolUse`, `preToolUse`, `pre_tool_use`.
fn same(one: &str, other: &str) -> bool {
    let fold = |name: &str| -> Vec<char> {
        let letters = name.chars().filter(|letter| *letter != '_');
        letters.flat_map(char::to_lowercase).collect()
    };
    fold(one) == fold(other)
}

impl Heard {
    fn odd(odd: Odd) -> Self {
        Self {
            odd: Some(odd),
            ..Self::default()
        }
    }
}

impl Agent {
    fn program(&self, input: &Value) -> Program {
        let version = text(input, self.fields.version).unwrap_or_default();
        Program {
            name: self.program.into(),
            version: version.chars().take(VERSION).collect(),
        }
    }

    fn model(&self, input: &Value) -> Option<Model> {
        let named = text(input, self.fields.model);
        // Gemini CLI reports the model only with an answer.
        let id = named.or_else(|| text(input.get("llm_request")?, &["model"]))?;
        Some(Model {
            id: id.to_owned(),
            provider: self.provider.to_owned(),
            mode: text(input, self.fields.mode).unwrap_or_default().to_owned(),
            message: text(input, self.fields.turn).map(str::to_owned),
        })
    }

    /// Returns a tool's arguments: an object, or an object parsed from a text.
    fn given<'a>(&self, input: &'a Value) -> Cow<'a, Value> {
        let given = present(input, self.fields.arguments).unwrap_or(&Value::Null);
        let held = given.as_str().filter(|text| text.starts_with('{'));
        match held.and_then(|text| serde_json::from_str(text).ok()) {
            Some(held) => Cow::Owned(held),
            None => Cow::Borrowed(given),
        }
    }

    /// Returns what a tool does, or what was not understood in its call.
    fn tool(&self, name: &str, given: &Value) -> Result<Tool, Odd> {
        let Some((name, does)) = self.tools.iter().find(|(known, _)| *known == name) else {
            let served =
                name.contains("__") || SERVERS.iter().any(|server| name.starts_with(server));
            return match served || self.other_tools.split(' ').any(|known| known == name) {
                true => Ok(Tool::Other),
                false => Err(Odd::Tool(cut(name, ODD))),
            };
        };
        let arguments = &self.arguments;
        let lacks = |field: Names| Odd::Field(name, field.first().unwrap_or(&""));
        let path = || text(given, arguments.path).ok_or_else(|| lacks(arguments.path));
        let write = |change| Ok(Tool::write(name, path()?, change));
        // Copilot CLI gives the tools for edits and for patches one name.
        let does = match does {
            Does::Whole | Does::Replace if given.is_string() => &Does::Patch,
            does => does,
        };
        match does {
            Does::Read { first, lines } => Ok(Tool::Read(arguments.reading(
                path()?,
                given,
                *first,
                *lines,
            ))),
            Does::Whole => write(
                content(given, arguments.content)
                    .map_or(Change::Unknown, |text| Change::Whole(text.to_owned())),
            ),
            Does::Replace => write(
                arguments
                    .replacement(given)
                    .map_or(Change::Unknown, |one| replaced(vec![one])),
            ),
            Does::Replaces => match arguments.replacements(given) {
                Some(files) => Ok(Tool::Write {
                    name: (*name).to_owned(),
                    files,
                }),
                None => write(Change::Unknown),
            },
            Does::Rewrite => write(Change::Unknown),
            Does::Delete => write(Change::Delete),
            Does::Patch => {
                let patch = text(given, arguments.patch).or_else(|| given.as_str());
                Ok(Tool::Write {
                    name: (*name).to_owned(),
                    files: patch::parse(patch.ok_or_else(|| lacks(arguments.patch))?)
                        .unwrap_or_default(),
                })
            }
            Does::Shell | Does::ShellOrPatch => {
                let command = text(given, arguments.command);
                let command = command.ok_or_else(|| lacks(arguments.command))?;
                let patched = (*does == Does::ShellOrPatch)
                    .then(|| shell_patch::writings(command))
                    .flatten();
                Ok(match patched {
                    Some(files) => Tool::Write {
                        name: "apply_patch".to_owned(),
                        files,
                    },
                    None => Tool::Shell {
                        command: command.to_owned(),
                    },
                })
            }
        }
    }

    /// Returns a tool's result.
    fn output(&self, input: &Value) -> Output {
        let raw = present(input, self.fields.output).unwrap_or(&Value::Null);
        let inner: Option<Value> = raw
            .as_str()
            .filter(|_| self.output_in_text)
            .and_then(|text| serde_json::from_str(text).ok());
        let file = raw.get("file");
        let shown = file.and_then(|file| {
            Some((
                number(file, &["startLine"])?,
                number(file, &["numLines"])?,
                number(file, &["totalLines"])?,
            ))
        });
        let mut said = [inner.as_ref(), file, Some(raw)]
            .into_iter()
            .flatten()
            .find_map(output_text);
        // If the agent stores the output in a file, the model gets only its
        // beginning.
        if text(raw, &["persistedOutputPath"]).is_some() {
            said = said.map(|text| cut(&text, PREVIEW));
        }
        Output {
            text: said,
            shown,
            replaceable: self.replaces,
            raw: match self.replaces {
                true => raw.clone(),
                false => Value::Null,
            },
        }
    }

    /// Returns the result of a tool that has failed.
    fn failure(&self, input: &Value) -> Output {
        let error = text(input, self.fields.error).map(str::to_owned);
        Output {
            text: error.or_else(|| self.output(input).text),
            ..Output::default()
        }
    }
}

impl Arguments {
    fn reading(&self, path: &str, given: &Value, first: u32, lines: Option<u32>) -> Reading {
        let offset = || number(given, self.offset);
        let range = |at: usize| {
            let end = present(given, self.range)?.as_array()?.get(at)?.as_u64()?;
            u32::try_from(end).ok()
        };
        let start = number(given, self.from)
            .or_else(|| range(0))
            .or_else(|| offset().map(|offset| offset.saturating_add(1 - first.min(1))));
        let to = number(given, self.to)
            .or_else(|| range(1))
            .map(|to| to.saturating_sub(start.unwrap_or(1)).saturating_add(1));
        Reading {
            path: path.to_owned(),
            start,
            limit: to.or(number(given, self.limit)).or(lines),
        }
    }

    /// Returns several replacements in one file, or in the files that each of
    /// them names.
    fn replacements(&self, given: &Value) -> Option<Vec<Writing>> {
        let own = text(given, self.path);
        let mut files: Vec<(&str, Option<Vec<Replacement>>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for edit in present(given, self.edits)?.as_array()? {
            let path = text(edit, self.path).or(own)?;
            let place = *places.entry(path).or_insert(files.len());
            if place == patch::FILES {
                return None;
            }
            if place == files.len() {
                files.push((path, Some(Vec::new())));
            }
            let (_, known) = files.get_mut(place)?;
            match (known.as_mut(), self.replacement(edit)) {
                (Some(known), Some(one)) => known.push(one),
                _ => *known = None,
            }
        }
        let files = files.into_iter().map(|(path, edits)| Writing {
            path: path.to_owned(),
            change: edits.map_or(Change::Unknown, replaced),
        });
        Some(files.collect())
    }

    fn replacement(&self, given: &Value) -> Option<Replacement> {
        // An older argument of Gemini CLI means all occurrences.
        let several = number(given, &["expected_replacements"]).is_some_and(|count| count > 1);
        Some(Replacement {
            old: content(given, self.old)?.to_owned(),
            new: content(given, self.new)?.to_owned(),
            all: several || flag(given, self.all),
        })
    }
}

/// Returns the change that replacements make. Replacing an empty text creates
/// the file.
fn replaced(mut edits: Vec<Replacement>) -> Change {
    match edits.as_mut_slice() {
        [one] if one.old.is_empty() => Change::Whole(std::mem::take(&mut one.new)),
        _ => Change::Replace(edits),
    }
}

/// Returns whether an output reports that its tool has failed.
fn is_error(output: &Value) -> bool {
    let kind = text(output, &["resultType", "result_type"]);
    kind.is_some_and(|kind| kind != "success") || present(output, &["error"]).is_some()
}

fn tasks(list: &Value) -> Vec<Background> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|task| {
            Some(Background {
                id: text(task, &["id"])?.to_owned(),
                is_agent: text(task, &["type", "agent_type"])
                    .is_some_and(|kind| kind.contains("agent"))
                    || task.get("agent_type").is_some(),
                running: !matches!(
                    text(task, &["status"]),
                    Some("completed" | "failed" | "killed" | "stopped" | "cancelled")
                ),
                command: text(task, &["command", "description"]).map(str::to_owned),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn many_replacements_are_soon_read() {
        let edit = |path: String| serde_json::json!({"file_path": path, "old_string": "a", "new_string": "b"});
        let edits =
            |path: fn(usize) -> String| -> Value { (0..60_000).map(path).map(edit).collect() };
        let read = |edits| {
            let given = serde_json::json!({"file_path": "f", "edits": edits});
            super::super::BASE.arguments.replacements(&given)
        };
        let begun = std::time::Instant::now();
        let one_file = read(edits(|_| "f".into())).unwrap();
        assert_eq!(one_file.len(), 1);
        assert_eq!(one_file[0].change.quotes().len(), 60_000);
        // More files than the daemon looks at for one event.
        assert!(read(edits(|n| n.to_string())).is_none());
        assert!(begun.elapsed().as_secs() < 10);
    }
}
