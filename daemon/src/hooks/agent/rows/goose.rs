//! goose: from its documents and source (hooks of Open Plugins)
//! (docs/agents/more.md). It reads files by its shell. No text reaches the
//! model except the reason of a denial.
//!
//! goose finds a plug-in by its directory alone.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "goose",
    program: "goose",
    provider: "goose",
    settings: Settings {
        title: "goose",
        programs: &["goose"],
        user: UserFile::Home(".agents/plugins/touchmark/hooks/hooks.json"),
        project: ".agents/plugins/touchmark/hooks/hooks.json",
        adds: Addition::Hooks(Handler::Line),
        ..SETTINGS
    },
    events: &[
        mute("SessionStart", Start),
        mute("UserPromptSubmit", Prompt),
        mute("PreToolUse", Before).only("^developer__(shell|write|edit)$"),
        mute("PostToolUse", After).only("^developer__(shell|write|edit)$"),
        mute("PostToolUseFailure", Failed).only("^developer__(shell|write|edit)$"),
        mute("Stop", Stop),
        mute("SessionEnd", End),
    ],
    ignored: "AfterFileEdit AfterShellExecution BeforeReadFile BeforeShellExecution \
        PreToolUseResult",
    fields: Fields {
        event: &["event"],
        cwd: &["working_dir"],
        prompt: &["message"],
        call: &["tool_call_id"],
        ..FIELDS
    },
    tools: &[
        ("developer__write", Whole),
        ("developer__edit", Replace),
        ("developer__shell", Shell),
    ],
    arguments: Arguments {
        old: &["before"],
        new: &["after"],
        ..ARGUMENTS
    },
    answers: Answers::Block,
    ..BASE
};
