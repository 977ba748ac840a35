//! Cursor: from its documents (docs/agents/cursor.md). `afterFileEdit` and the
//! shell's events report the same as `postToolUse`.
//!
//! Cursor rejects the whole file if it has an event that Cursor does not
//! know.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "cursor",
    program: "cursor",
    provider: "cursor",
    also: &["grok"],
    is_own: |input| input.get("cursor_version").is_some(),
    settings: Settings {
        title: "Cursor",
        programs: &["cursor-agent", "cursor"],
        user: UserFile::Home(".cursor/hooks.json"),
        project: ".cursor/hooks.json",
        adds: Addition::Hooks(Handler::Flat),
        servers: Some(Servers {
            user: UserFile::Home(".cursor/mcp.json"),
            project: ".cursor/mcp.json",
            entry: EntryFormat::Placed,
        }),
        ..SETTINGS
    },
    events: &[
        tells("sessionStart", Start),
        mute("beforeSubmitPrompt", Prompt),
        mute("beforeReadFile", Attached),
        mute("preToolUse", Before).only("Read|Write|StrReplace|Delete|ApplyPatch|Shell"),
        tells("postToolUse", After),
        mute("postToolUseFailure", Failed),
        mute("preCompact", Compacted),
        mute("stop", Stop),
        mute("sessionEnd", End),
        // Cursor sends this name, which is Claude Code's, when it runs
        // Claude Code's hooks.
        mute("UserPromptSubmit", Prompt).unasked(),
    ],
    ignored: "afterAgentResponse afterAgentThought afterFileEdit afterMCPExecution \
        afterShellExecution afterTabFileEdit beforeMCPExecution \
        beforeShellExecution beforeTabFileRead subagentStart subagentStop \
        workspaceOpen",
    fields: Fields {
        session: &["conversation_id", "session_id"],
        child: &[],
        roots: &["workspace_roots"],
        version: &["cursor_version"],
        mode: &[],
        turn: &["generation_id"],
        output: &["tool_output"],
        error: &["error_message"],
        ..FIELDS
    },
    tools: &[
        ("Read", READ_ALL),
        ("Write", Whole),
        ("StrReplace", Replace),
        ("Edit", Replace),
        ("Delete", Delete),
        ("ApplyPatch", Patch),
        ("Shell", Shell),
    ],
    other_tools: "Glob Grep LS MCP ReadLints SemanticSearch Task TodoWrite WebFetch \
        WebSearch",
    arguments: Arguments {
        path: &["file_path", "path", "target_file"],
        content: &["content", "contents", "file_text"],
        old: &["old_string", "old_str"],
        new: &["new_string", "new_str"],
        patch: &["patch", "input", "command"],
        ..ARGUMENTS
    },
    answers: Answers::Permission,
    output_in_text: true,
    asks: true,
    ..BASE
};
