//! VS Code's agent and Copilot CLI: from code.visualstudio.com/docs (agent
//! hooks) and docs.github.com (Copilot CLI's hooks). Both read one file. Of
//! Copilot CLI, the payloads of 1.0.102 are played; VS Code's agent was not
//! tried (docs/agents/more.md). Copilot CLI accepts no text for the model after
//! a tool; it puts the tool's result into `tool_result`.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "copilot",
    program: "copilot",
    provider: "github",
    is_own: |input| {
        let says = |name: &str| input.get(name).is_some();
        says("timestamp") && !says("permission_mode")
    },
    told_with: Some("tool_response"),
    settings: Settings {
        title: "GitHub Copilot: VS Code's agent, Copilot CLI",
        programs: &["copilot"],
        user: UserFile::Home(".copilot/hooks/touchmark.json"),
        project: ".github/hooks/touchmark.json",
        adds: Addition::Hooks(Handler::Bash),
        note: Some("Copilot runs the hooks of a project only in a folder that you trust"),
        ..SETTINGS
    },
    events: &[
        mute("SessionStart", Start),
        mute("UserPromptSubmit", Prompt),
        mute("PreToolUse", Before),
        tells("PostToolUse", AfterOrFailed),
        mute("PostToolUseFailure", Failed),
        mute("PreCompact", Compacted),
        mute("SubagentStart", ChildStart),
        mute("SubagentStop", ChildEnd),
        mute("Stop", Stop),
        mute("SessionEnd", End),
        mute("UserPromptSubmitted", Prompt).unasked(),
        mute("AgentStop", Stop).unasked(),
    ],
    ignored: "ErrorOccurred Notification PermissionRequest",
    fields: Fields {
        output: &["tool_response", "tool_result", "toolResult"],
        arguments: &["tool_input", "toolArgs"],
        ..FIELDS
    },
    tools: &[
        // VS Code
        ("read_file", READ_ALL),
        ("create_file", Whole),
        ("replace_string_in_file", Replace),
        ("multi_replace_string_in_file", Replaces),
        ("insert_edit_into_file", Rewrite),
        ("edit_notebook_file", Rewrite),
        ("apply_patch", Patch),
        ("run_in_terminal", Shell),
        // Copilot CLI 1.0.102, with these event names: Claude Code's names, and
        // its own arguments. With its own event names, its own names.
        ("Read", READ_ALL),
        ("Write", Whole),
        ("Edit", Replace),
        ("Bash", Shell),
        ("view", READ_ALL),
        ("create", Whole),
        ("edit", Replace),
        ("bash", Shell),
    ],
    other_tools: "Glob Grep Task WebFetch ask_user create_directory fetch_webpage file_search get_changed_files \
        get_errors get_terminal_output glob grep grep_search list_dir \
        manage_todo_list powershell run_notebook_cell runSubagent \
        semantic_search task view_image web_fetch",
    arguments: Arguments {
        path: &["filePath", "file_path", "path"],
        from: &["startLine"],
        to: &["endLine"],
        range: &["view_range"],
        content: &["content", "file_text"],
        old: &["oldString", "old_str"],
        new: &["newString", "new_str"],
        edits: &["replacements"],
        patch: &["input", "patch"],
        ..ARGUMENTS
    },
    answers: Answers::Copilot,
    ..BASE
};
