//! Qwen Code 0.24.4: from its documents and source (docs/agents/more.md). Only
//! `tool_call_id` is the same in the event of a call and in that of its batch.
//! A compaction that is announced may not take place; PostCompact reports that
//! it did.
//!
//! Newer versions take seconds, older ones milliseconds. All versions treat
//! values from 1000 as milliseconds.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "qwen",
    program: "qwen-code",
    provider: "qwen",
    untried: None,
    settings: Settings {
        title: "Qwen Code",
        programs: &["qwen"],
        user: UserFile::Named("QWEN_HOME", ".qwen", "settings.json"),
        project: ".qwen/settings.json",
        adds: Addition::Hooks(Handler::NamedLine),
        timeout: 5_000,
        servers: Some(Servers {
            user: UserFile::Named("QWEN_HOME", ".qwen", "settings.json"),
            project: ".qwen/settings.json",
            entry: EntryFormat::Json(None),
        }),
        note: Some("Qwen Code runs the hooks of a project only in a folder that you trust"),
        switch: Some(Switch {
            pointer: "/disableAllHooks",
            off: true,
            before: None,
        }),
        ..SETTINGS
    },
    events: &[
        tells("SessionStart", Start),
        tells("UserPromptSubmit", Prompt),
        mute("PreToolUse", Before)
            .only("read_file|write_file|edit|notebook_edit|run_shell_command"),
        tells("PostToolUse", After)
            .only("read_file|write_file|edit|notebook_edit|run_shell_command"),
        tells("PostToolUseFailure", Failed).only("write_file|edit|notebook_edit|run_shell_command"),
        mute("PermissionDenied", Declined).only("write_file|edit|notebook_edit|run_shell_command"),
        tells("PostToolBatch", BatchEnd),
        tells("SubagentStart", ChildStart),
        mute("SubagentStop", ChildEnd),
        mute("PostCompact", Compacted),
        mute("Stop", Stop),
        mute("StopFailure", Stop),
        mute("SessionEnd", End),
    ],
    ignored: "InstructionsLoaded MessageDisplay Notification PermissionRequest \
        PreCompact SessionDelete TodoCompleted TodoCreated UserPromptExpansion",
    fields: Fields {
        turn: &["prompt_id"],
        call: &["tool_call_id", "tool_use_id"],
        ..FIELDS
    },
    tools: &[
        (
            "read_file",
            Read {
                first: 0,
                lines: Some(1_000),
            },
        ),
        ("write_file", Whole),
        ("edit", Replace),
        ("notebook_edit", Rewrite),
        ("run_shell_command", Shell),
    ],
    other_tools: "agent ask_user_question enter_plan_mode exit_plan_mode glob \
        grep_search list_directory lsp save_memory skill todo_write web_fetch \
        web_search",
    asks: true,
    shows: true,
    ..BASE
};
