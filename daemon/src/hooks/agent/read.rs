//! An event by its agent's row.

use serde_json::Value;
use touchmark_proto::daemon::Program;

use super::super::fields::{
    call, child, content, cwd, flag, number, output_text, present, session, text,
};
use super::super::rules::cut;
use super::super::{
    Background, Change, Happened, Model, Output, Reading, Replacement, Tool, What, patch,
    shell_patch,
};
use super::{Agent, Arguments, Does, Heard, Is, Names, Odd};

/// Bytes of an output too long for the model that it is shown at least.
const PREVIEW: usize = 2_000;

/// Letters of a program's version.
const VERSION: usize = 40;

/// A tool's name that a server of the Model Context Protocol gave it.
const SERVERS: &[&str] = &["mcp_", "mcp:", "MCP:"];

pub(super) fn read(agent: &Agent, input: &Value) -> Heard {
    let fields = &agent.fields;
    let Some(name) = text(input, fields.event) else {
        return Heard::odd(Odd::NoEvent);
    };
    let Some(event) = agent.events.iter().find(|event| event.name == name) else {
        return Heard::odd(Odd::Event(name.to_owned()));
    };
    let lacks = |field: Names| Heard::odd(Odd::Field(event.name, field.first().unwrap_or(&"")));
    if event.is == Is::Nothing {
        return Heard::default();
    }
    let Some(main) = text(input, fields.session).and_then(session) else {
        return lacks(fields.session);
    };
    let (session, parent) = match text(input, fields.child) {
        Some(name) => match child(&main, name) {
            Some(child) => (child, Some(main)),
            None => return lacks(fields.child),
        },
        None => (main, text(input, fields.parent).and_then(session)),
    };
    let mut directory = cwd(input, fields.cwd, fields.roots);
    let mut odd = None;
    let what = match event.is {
        Is::Start => What::Start {
            kept: matches!(text(input, &["source"]), Some("resume" | "fork")),
        },
        Is::End => What::End,
        Is::Prompt => What::Prompt {
            id: text(input, fields.turn).map(str::to_owned),
            text: content(input, fields.prompt).unwrap_or_default().to_owned(),
        },
        Is::Before | Is::After | Is::AfterOrFailed | Is::Failed | Is::Declined => {
            let Some(name) = text(input, fields.tool) else {
                return lacks(fields.tool);
            };
            let given = present(input, fields.arguments).unwrap_or(&Value::Null);
            let call = call(text(input, fields.call), name, given);
            let tool = match agent.tool(name, given) {
                Ok(tool) => tool,
                Err(wrong) => {
                    odd = Some(wrong);
                    Tool::Other
                }
            };
            if let (Tool::Shell { .. }, Some(cwd)) = (&tool, &mut directory)
                && let Some(below) = text(given, agent.arguments.directory)
            {
                *cwd = cwd.join(below);
            }
            let has_failed = match event.is {
                Is::AfterOrFailed => present(input, fields.output).is_some_and(is_error),
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
        Is::BatchEnd => What::BatchEnd {
            ran: agent.ran(input),
        },
        // Said before each request to the model, ahead of the question whether
        // there is anything to compress; only who asks for it means it.
        Is::CompactedByHand if text(input, &["trigger"]) == Some("auto") => What::Nothing,
        Is::Compacted | Is::CompactedByHand => What::Compacted,
        // Those that carry no name of a sub-agent are the parent's.
        Is::ChildStart | Is::ChildEnd if parent.is_none() => return Heard::default(),
        Is::ChildStart => What::ChildStart,
        Is::ChildEnd => What::ChildEnd,
        Is::Stop => What::Stop {
            tasks: input.get("background_tasks").map(tasks),
        },
        Is::Interrupted => What::Interrupted,
        Is::ModelUsed => What::ModelUsed,
        // The tools' own reads have events of their own, so this is no read,
        // but an attached file has no other.
        Is::Attached => {
            let Some(path) = text(input, agent.arguments.path) else {
                return lacks(agent.arguments.path);
            };
            What::Attached {
                path: path.to_owned(),
                content: content(input, agent.arguments.content).map(str::to_owned),
            }
        }
        Is::Nothing => What::Nothing,
    };
    let happened = Happened {
        event: event.name.to_owned(),
        session,
        parent,
        program: agent.program(input),
        cwd: directory,
        model: agent.model(input),
        can_tell: event.tells,
        what,
    };
    Heard {
        happened: Some(happened),
        odd,
    }
}

impl Heard {
    fn odd(odd: Odd) -> Self {
        Self {
            happened: None,
            odd: Some(odd),
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
        // Gemini CLI says it only with an answer.
        let id = named.or_else(|| text(input.get("llm_request")?, &["model"]))?;
        Some(Model {
            id: id.to_owned(),
            provider: self.provider.to_owned(),
            mode: text(input, self.fields.mode).unwrap_or_default().to_owned(),
            message: text(input, self.fields.turn).map(str::to_owned),
        })
    }

    /// What a tool does; what is odd about it is not done by any.
    fn tool(&self, name: &str, given: &Value) -> Result<Tool, Odd> {
        let Some((name, does)) = self.tools.iter().find(|(known, _)| *known == name) else {
            let served = SERVERS.iter().any(|server| name.starts_with(server));
            return match served {
                true => Ok(Tool::Other),
                false => Err(Odd::Tool(name.to_owned())),
            };
        };
        let arguments = &self.arguments;
        let lacks = |field: Names| Odd::Field(name, field.first().unwrap_or(&""));
        let path = || text(given, arguments.path).ok_or_else(|| lacks(arguments.path));
        let write = |change| Ok(Tool::write(name, path()?, change));
        match does {
            Does::Nothing => Ok(Tool::Other),
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
            Does::Replace => write(match arguments.replacement(given) {
                // An empty text in place of nothing makes the file.
                Some(one) if one.old.is_empty() => Change::Whole(one.new),
                Some(one) => Change::Replace(vec![one]),
                None => Change::Unknown,
            }),
            Does::Replaces => write(
                present(given, arguments.edits)
                    .and_then(Value::as_array)
                    .and_then(|edits| edits.iter().map(|one| arguments.replacement(one)).collect())
                    .map_or(Change::Unknown, Change::Replace),
            ),
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

    /// What a tool has answered.
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
        // Of what it keeps in a file of its own, the model gets the beginning.
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

    /// What one that has failed has said.
    fn failure(&self, input: &Value) -> Output {
        let error = text(input, self.fields.error).map(str::to_owned);
        Output {
            text: error.or_else(|| self.output(input).text),
            ..Output::default()
        }
    }

    /// The calls of a batch that were carried out: one that was declined is
    /// not among them, or says so, and nothing else does.
    fn ran(&self, input: &Value) -> Option<Vec<String>> {
        let fields = &self.fields;
        let calls = input.get("tool_calls")?.as_array()?;
        let name = |one: &Value| {
            let name = text(one, fields.tool)?;
            let given = present(one, fields.arguments).unwrap_or(&Value::Null);
            Some(call(text(one, fields.call), name, given))
        };
        // One that cannot be told by name may be any.
        calls
            .iter()
            .filter(|one| text(one, &["status"]) != Some("cancelled"))
            .map(name)
            .collect()
    }
}

impl Arguments {
    fn reading(&self, path: &str, given: &Value, first: u32, lines: Option<u32>) -> Reading {
        let offset = || number(given, self.offset);
        let start = number(given, self.from)
            .or_else(|| offset().map(|offset| offset.saturating_add(1 - first.min(1))));
        let to = number(given, self.to)
            .map(|to| to.saturating_sub(start.unwrap_or(1)).saturating_add(1));
        Reading {
            path: path.to_owned(),
            start,
            limit: to.or(number(given, self.limit)).or(lines),
        }
    }

    fn replacement(&self, given: &Value) -> Option<Replacement> {
        // Gemini CLI's older word for all of them.
        let several = number(given, &["expected_replacements"]).is_some_and(|count| count > 1);
        Some(Replacement {
            old: content(given, self.old)?.to_owned(),
            new: content(given, self.new)?.to_owned(),
            all: several || flag(given, self.all),
        })
    }
}

/// Whether an output says that its tool has failed.
fn is_error(output: &Value) -> bool {
    output.get("error").is_some_and(|error| !error.is_null())
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
