//! The agents, one row each. The comment above a row names its sources.

use super::super::fields::text;
use super::Does::{Delete, Patch, Read, Replace, Replaces, Rewrite, Shell, ShellOrPatch, Whole};
use super::Is::{
    After, AfterOrFailed, Attached, BatchEnd, Before, ChildEnd, ChildStart, Compacted,
    CompactedByHand, Declined, End, Failed, Interrupted, ModelUsed, Prompt, Start, Stop,
};
use super::{ARGUMENTS, Agent, Answers, Arguments, BASE, Does, FIELDS, Fields, mute, tells};

/// A read of 2,000 lines by default, with `offset` counted from 1.
const READ: Does = Read {
    first: 1,
    lines: Some(2_000),
};

/// A read of 2,000 lines by default, with `offset` counted from 0.
const READ_FROM_0: Does = Read {
    first: 0,
    lines: Some(2_000),
};

/// A read of the whole file by default, with `offset` counted from 0.
const READ_ALL_FROM_0: Does = Read {
    first: 0,
    lines: None,
};

/// A read of the whole file by default, with `offset` counted from 1.
const READ_ALL: Does = Read {
    first: 1,
    lines: None,
};

/// All agents.
pub(super) static AGENTS: &[Agent] = &[
    // From its documents and the program (docs/agents/claude-code.md).
    Agent {
        name: "claude",
        program: "claude-code",
        provider: "anthropic",
        also: &["cursor", "grok", "copilot"],
        events: &[
            tells("SessionStart", Start),
            mute("SessionEnd", End),
            tells("UserPromptSubmit", Prompt),
            mute("PreToolUse", Before),
            tells("PostToolUse", After),
            tells("PostToolUseFailure", Failed),
            mute("PermissionDenied", Declined),
            tells("PostToolBatch", BatchEnd),
            mute("PreCompact", Compacted),
            mute("PostCompact", Compacted),
            tells("SubagentStart", ChildStart),
            mute("SubagentStop", ChildEnd),
            mute("Stop", Stop),
            mute("StopFailure", Stop),
            mute("Interrupt", Interrupted),
        ],
        ignored: "ConfigChange CwdChanged DirectoryAdded Elicitation ElicitationResult \
            FileChanged InstructionsLoaded MessageDisplay Notification \
            PermissionRequest Setup TaskCompleted TaskCreated TeammateIdle \
            UserPromptExpansion WorktreeCreate WorktreeRemove",
        tools: &[
            ("Read", READ),
            ("Write", Whole),
            ("Edit", Replace),
            ("MultiEdit", Replaces),
            ("NotebookEdit", Rewrite),
            ("Bash", Shell),
        ],
        other_tools: "Agent AskUserQuestion BashOutput EnterPlanMode ExitPlanMode Glob Grep \
            KillShell LS LSP NotebookRead Skill Task TaskOutput TaskStop TodoWrite \
            ToolSearch WebFetch WebSearch",
        asks: true,
        replaces: true,
        ..BASE
    },
    // From its documents, its source and the program (docs/agents/codex.md).
    Agent {
        name: "codex",
        program: "codex",
        provider: "openai",
        events: &[
            tells("SessionStart", Start),
            mute("SessionEnd", End),
            tells("UserPromptSubmit", Prompt),
            mute("PreToolUse", Before),
            tells("PostToolUse", After),
            mute("PreCompact", Compacted),
            mute("PostCompact", Compacted),
            tells("SubagentStart", ChildStart),
            mute("SubagentStop", ChildEnd),
            mute("Stop", Stop),
            mute("Interrupt", Interrupted),
        ],
        ignored: "PermissionRequest",
        tools: &[
            ("Bash", ShellOrPatch),
            ("apply_patch", Patch),
            ("Edit", Patch),
            ("Write", Patch),
        ],
        other_tools: "spawn_agent update_plan view_image web_search",
        ..BASE
    },
    // From its documents and the program (docs/agents/gemini.md). Its tool
    // calls have no ids.
    Agent {
        name: "gemini",
        program: "gemini-cli",
        provider: "google",
        events: &[
            tells("SessionStart", Start),
            mute("SessionEnd", End),
            tells("BeforeAgent", Prompt),
            mute("BeforeTool", Before),
            tells("AfterTool", AfterOrFailed),
            mute("PreCompress", CompactedByHand),
            mute("AfterAgent", Stop),
            mute("AfterModel", ModelUsed),
        ],
        ignored: "BeforeModel BeforeToolSelection Notification",
        fields: Fields {
            call: &[],
            child: &[],
            turn: &[],
            ..FIELDS
        },
        tools: &[
            ("read_file", READ_FROM_0),
            ("write_file", Whole),
            ("replace", Replace),
            ("edit", Replace),
            ("run_shell_command", Shell),
        ],
        other_tools: "activate_skill ask_user cli_help complete_task enter_plan_mode \
            exit_plan_mode get_internal_docs glob google_web_search grep_search \
            invoke_agent list_directory read_many_files save_memory \
            search_file_content web_fetch write_todos",
        arguments: Arguments {
            path: &["file_path", "absolute_path", "path"],
            all: &["allow_multiple"],
            ..ARGUMENTS
        },
        answers: Answers::Decision,
        ..BASE
    },
    // From its documents (docs/agents/cursor.md). `afterFileEdit` and the
    // shell's events report the same as `postToolUse`.
    Agent {
        name: "cursor",
        program: "cursor",
        provider: "cursor",
        also: &["grok"],
        is_own: |input| input.get("cursor_version").is_some(),
        events: &[
            tells("sessionStart", Start),
            mute("sessionEnd", End),
            mute("beforeSubmitPrompt", Prompt),
            mute("preToolUse", Before),
            tells("postToolUse", After),
            mute("postToolUseFailure", Failed),
            mute("beforeReadFile", Attached),
            mute("preCompact", Compacted),
            mute("stop", Stop),
            // Cursor sends this name, which is Claude Code's, when it runs
            // Claude Code's hooks.
            mute("UserPromptSubmit", Prompt),
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
    },
    // From its plug-in, which is part of this project (docs/protocol.md).
    Agent {
        name: "opencode",
        program: "opencode",
        provider: "opencode",
        events: &[
            mute("session.created", Start),
            mute("session.deleted", End),
            tells("prompt", Prompt),
            mute("before", Before),
            tells("after", After),
            mute("failed", Failed),
            mute("session.compacted", Compacted),
            mute("session.idle", Stop),
        ],
        fields: Fields {
            event: &["phase"],
            session: &["sessionID"],
            child: &[],
            parent: &["parentID"],
            mode: &["agent"],
            prompt: &["prompt", "text"],
            turn: &["messageID"],
            tool: &["tool"],
            call: &["callID"],
            arguments: &["args"],
            output: &["output", "metadata"],
            ..FIELDS
        },
        tools: &[
            ("read", READ_FROM_0),
            ("write", Whole),
            ("edit", Replace),
            ("multiedit", Replaces),
            ("patch", Patch),
            ("apply_patch", Patch),
            ("bash", Shell),
        ],
        other_tools: "batch codesearch glob grep invalid list lsp plan_enter plan_exit \
            question skill task todoread todowrite webfetch websearch",
        arguments: Arguments {
            path: &["filePath", "file_path", "path"],
            old: &["oldString", "old_string"],
            new: &["newString", "new_string"],
            all: &["replaceAll", "replace_all"],
            patch: &["patchText", "patch"],
            ..ARGUMENTS
        },
        answers: Answers::Plugin,
        ..BASE
    },
    // Qwen Code 0.24.4: from its documents and source (docs/agents/more.md).
    // Only `tool_call_id` is the same in the event of a call and in that of its
    // batch. A compaction that is announced may not take place; PostCompact
    // reports that it did.
    Agent {
        name: "qwen",
        program: "qwen-code",
        provider: "qwen",
        events: &[
            tells("SessionStart", Start),
            mute("SessionEnd", End),
            tells("UserPromptSubmit", Prompt),
            mute("PreToolUse", Before),
            tells("PostToolUse", After),
            tells("PostToolUseFailure", Failed),
            mute("PermissionDenied", Declined),
            tells("PostToolBatch", BatchEnd),
            mute("PostCompact", Compacted),
            tells("SubagentStart", ChildStart),
            mute("SubagentStop", ChildEnd),
            mute("Stop", Stop),
            mute("StopFailure", Stop),
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
        ..BASE
    },
    // VS Code's agent and Copilot CLI: from code.visualstudio.com/docs (agent
    // hooks) and docs.github.com (Copilot CLI's hooks); neither was tried
    // (docs/agents/more.md). Both read one file. Copilot CLI accepts no text
    // for the model after a tool; it puts the tool's result into `tool_result`.
    Agent {
        name: "copilot",
        program: "copilot",
        provider: "github",
        is_own: |input| {
            let says = |name: &str| input.get(name).is_some();
            says("timestamp") && !says("permission_mode")
        },
        told_with: Some("tool_response"),
        events: &[
            mute("SessionStart", Start),
            mute("SessionEnd", End),
            mute("UserPromptSubmit", Prompt),
            mute("UserPromptSubmitted", Prompt),
            mute("PreToolUse", Before),
            tells("PostToolUse", AfterOrFailed),
            mute("PostToolUseFailure", Failed),
            mute("PreCompact", Compacted),
            mute("SubagentStart", ChildStart),
            mute("SubagentStop", ChildEnd),
            mute("Stop", Stop),
            mute("AgentStop", Stop),
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
            // Copilot CLI
            ("view", READ_ALL),
            ("create", Whole),
            ("edit", Replace),
            ("bash", Shell),
        ],
        other_tools: "ask_user create_directory fetch_webpage file_search get_changed_files \
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
    },
    // Factory Droid: from docs.factory.ai/reference/hooks-reference; not tried
    // (docs/agents/more.md).
    Agent {
        name: "droid",
        program: "droid",
        provider: "factory",
        events: &[
            tells("SessionStart", Start),
            mute("SessionEnd", End),
            tells("UserPromptSubmit", Prompt),
            mute("PreToolUse", Before),
            tells("PostToolUse", After),
            mute("PreCompact", Compacted),
            mute("Stop", Stop),
            mute("SubagentStop", ChildEnd),
        ],
        ignored: "Notification",
        tools: &[
            ("Read", READ),
            ("Create", Whole),
            ("Write", Whole),
            ("Edit", Replace),
            ("MultiEdit", Replaces),
            ("ApplyPatch", Patch),
            ("Execute", Shell),
            ("Bash", Shell),
        ],
        other_tools: "FetchUrl Glob Grep LS Task TodoWrite WebFetch WebSearch",
        arguments: Arguments {
            old: &["old_string", "old_str"],
            new: &["new_string", "new_str"],
            all: &["replace_all", "change_all"],
            patch: &["input", "patch"],
            ..ARGUMENTS
        },
        asks: true,
        ..BASE
    },
    // Grok Build: from docs.x.ai/build/features/hooks and its guide to hooks;
    // not tried (docs/agents/more.md). It also runs Claude Code's and Cursor's
    // hook files. It does not read what a hook prints after a tool. Only
    // post_compact proves that a compaction took place.
    Agent {
        name: "grok",
        program: "grok-build",
        provider: "xai",
        is_own: |input| {
            let event = text(input, &["hookEventName"]);
            event.is_some_and(|name| !name.contains(char::is_uppercase))
        },
        events: &[
            mute("session_start", Start),
            mute("session_end", End),
            mute("user_prompt_submit", Prompt),
            mute("pre_tool_use", Before),
            mute("post_tool_use", After),
            mute("post_tool_use_failure", Failed),
            mute("permission_denied", Declined),
            mute("post_compact", Compacted),
            mute("stop", Stop),
            mute("stop_failure", Stop),
            mute("subagent_start", ChildStart),
            mute("subagent_stop", ChildEnd),
            mute("subagent_end", ChildEnd),
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
    },
    // Windsurf's Cascade: from docs.windsurf.com/windsurf/cascade/hooks; not
    // tried (docs/agents/more.md). Each tool has its own events, calls have no
    // ids, and no text reaches the model except the reason of a denial.
    Agent {
        name: "windsurf",
        program: "windsurf",
        provider: "windsurf",
        events: &[
            mute("pre_user_prompt", Prompt),
            mute("pre_read_code", Before).of("read_code"),
            mute("post_read_code", After).of("read_code"),
            mute("pre_write_code", Before).of("write_code"),
            mute("post_write_code", After).of("write_code"),
            mute("pre_run_command", Before).of("run_command"),
            mute("post_run_command", After).of("run_command"),
            mute("post_cascade_response", Stop),
        ],
        ignored: "post_cascade_response_with_transcript post_mcp_tool_use \
            post_setup_worktree pre_mcp_tool_use",
        fields: Fields {
            event: &["agent_action_name"],
            session: &["trajectory_id"],
            model: &["model_name"],
            prompt: &["user_prompt"],
            turn: &["execution_id"],
            call: &[],
            arguments: &["tool_info"],
            ..FIELDS
        },
        tools: &[
            ("read_code", READ_ALL_FROM_0),
            ("write_code", Replaces),
            ("run_command", Shell),
        ],
        arguments: Arguments {
            command: &["command_line"],
            directory: &["cwd"],
            ..ARGUMENTS
        },
        answers: Answers::Exit,
        ..BASE
    },
    // goose: from its documents and source (hooks of Open Plugins); not tried
    // (docs/agents/more.md). It reads files by its shell. No text reaches the
    // model except the reason of a denial.
    Agent {
        name: "goose",
        program: "goose",
        provider: "goose",
        events: &[
            mute("SessionStart", Start),
            mute("SessionEnd", End),
            mute("UserPromptSubmit", Prompt),
            mute("PreToolUse", Before),
            mute("PostToolUse", After),
            mute("PostToolUseFailure", Failed),
            mute("Stop", Stop),
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
    },
];
