//! VS Code's agent and Copilot CLI, which read one file: from
//! code.visualstudio.com/docs (agent hooks), and Copilot CLI 1.0.102 itself
//! (docs/agents/more.md).
//!
//! Copilot CLI puts a tool's result into `tool_result`. A sub-agent has a
//! session id of its own there, and names its parent's. `SubagentStart` comes
//! without its name.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "copilot",
    program: "copilot",
    provider: "github",
    is_own: |input| {
        let says = |name: &str| input.get(name).is_some();
        says("timestamp") && !says("permission_mode")
    },
    // Of VS Code's events only those after tools; of Copilot CLI's, all.
    told_with: &["tool_response", "hook_event_name"],
    untried: Some("VS Code's agent: from documents, not run"),
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
        tells("SessionStart", Start),
        tells("UserPromptSubmit", Prompt),
        mute("PreToolUse", Before),
        tells("PostToolUse", AfterOrFailed),
        tells("PostToolUseFailure", Failed),
        mute("PreCompact", Compacted),
        mute("SubagentStart", ChildStart),
        mute("SubagentStop", ChildEnd),
        mute("Stop", Stop),
        mute("SessionEnd", End),
        mute("UserPromptSubmitted", Prompt).unasked(),
        mute("AgentStop", Stop).unasked(),
    ],
    ignored: "ErrorOccurred Notification PermissionRequest",
    unnamed: Some("SubagentStart"),
    fields: Fields {
        session: &["agent_id", "session_id", "sessionId"],
        child: &[],
        parent: &["parent_agent_id"],
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
        // Copilot CLI, with these event names: Claude Code's names, and its own
        // arguments. With its own event names, its own names. `Edit` is also
        // the name of the tool for patches.
        ("Read", READ_ALL),
        ("Write", Whole),
        ("Edit", Replace),
        ("Bash", Shell),
        ("view", READ_ALL),
        ("create", Whole),
        ("edit", Replace),
        ("bash", Shell),
    ],
    other_tools: "Agent AskUserQuestion Glob Grep Task WebFetch WebSearch ask_user \
        create_directory exit_plan_mode fetch_copilot_cli_documentation \
        fetch_webpage file_search get_changed_files get_errors \
        get_terminal_output glob grep grep_search list_agents list_bash list_dir \
        manage_todo_list powershell read_agent read_bash report_intent rg \
        run_notebook_cell runSubagent semantic_search session_store_sql skill sql \
        stop_bash store_memory task update_todo view_image web_fetch web_search \
        write_agent write_bash",
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
