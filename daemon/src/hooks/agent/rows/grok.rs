//! Grok Build: from docs.x.ai/build/features/hooks and its guide to hooks
//! (docs/agents/more.md). It also runs Claude Code's and Cursor's hook
//! files. It does not read what a hook prints after a tool. Only post_compact
//! proves that a compaction took place.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "grok",
    program: "grok-build",
    provider: "xai",
    is_own: |input| {
        let event = text(input, &["hookEventName"]);
        event.is_some_and(|name| !name.contains(char::is_uppercase))
    },
    settings: Settings {
        title: "Grok Build",
        programs: &["grok"],
        user: UserFile::Named("GROK_HOME", ".grok", "hooks/touchmark.json"),
        project: ".grok/hooks/touchmark.json",
        adds: Addition::Hooks(Handler::Line),
        servers: Some(Servers {
            user: UserFile::Named("GROK_HOME", ".grok", "config.toml"),
            project: ".grok/config.toml",
            entry: EntryFormat::Table(&[]),
        }),
        note: Some("Grok Build skips the hooks of a project until you enter /hooks-trust"),
        ..SETTINGS
    },
    events: &[
        mute("SessionStart", Start),
        mute("UserPromptSubmit", Prompt),
        mute("PreToolUse", Before).only("read_file|write|search_replace|run_terminal_command"),
        mute("PostToolUse", After).only("read_file|write|search_replace|run_terminal_command"),
        mute("PostToolUseFailure", Failed).only("write|search_replace|run_terminal_command"),
        mute("PermissionDenied", Declined).only("write|search_replace|run_terminal_command"),
        mute("PostCompact", Compacted),
        mute("Stop", Stop),
        mute("StopFailure", Stop),
        mute("SessionEnd", End),
        mute("SubagentStart", ChildStart).unasked(),
        mute("SubagentStop", ChildEnd).unasked(),
        mute("SubagentEnd", ChildEnd).unasked(),
    ],
    ignored: "notification pre_compact",
    fields: Fields {
        event: &["hookEventName", "hook_event_name"],
        session: &["sessionId", "session_id"],
        tool: &["toolName", "tool_name"],
        arguments: &["toolInput", "tool_input"],
        output: &["toolResult", "tool_response"],
        ..FIELDS
    },
    tools: &[
        ("read_file", READ_ALL),
        ("write", Whole),
        ("search_replace", Replace),
        ("run_terminal_command", Shell),
    ],
    other_tools: "ask_user_question grep list_dir spawn_subagent todo_write use_tool \
        web_search",
    arguments: Arguments {
        path: &["file_path", "target_file", "path"],
        ..ARGUMENTS
    },
    answers: Answers::Decision,
    ..BASE
};
