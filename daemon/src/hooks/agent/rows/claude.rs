//! Claude Code: from its documents and the program
//! (docs/agents/claude-code.md).

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "claude",
    program: "claude-code",
    provider: "anthropic",
    also: &["cursor", "grok", "copilot"],
    untried: None,
    settings: Settings {
        title: "Claude Code",
        programs: &["claude"],
        user: UserFile::Named("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        project: ".claude/settings.json",
        adds: Addition::Hooks(Handler::Line),
        servers: Some(Servers {
            user: UserFile::Named("CLAUDE_CONFIG_DIR", "", ".claude.json"),
            project: ".mcp.json",
            entry: EntryFormat::Json(Some("stdio")),
        }),
        project_note: Some(
            "Claude Code asks whether you want a project's MCP servers when it starts there",
        ),
        runs_once: true,
        switch: Some(Switch {
            pointer: "/disableAllHooks",
            off: true,
            before: Some((
                "settings.local.json",
                "/etc/claude-code/managed-settings.json",
            )),
        }),
        shell: Some(ShellPrefix {
            within: "env",
            name: "CLAUDE_CODE_SHELL_PREFIX",
            agent: "CLAUDE_PID",
        }),
        ..SETTINGS
    },
    events: &[
        tells("SessionStart", Start),
        tells("UserPromptSubmit", Prompt),
        // Include touchmark's own tools, so that a call is recognised.
        mute("PreToolUse", Before).only("Read|Edit|Write|NotebookEdit|Bash|mcp__.*touchmark__.*"),
        tells("PostToolUse", After).only("Read|Edit|Write|NotebookEdit|Bash|Grep"),
        tells("PostToolUseFailure", Failed).only("Edit|Write|NotebookEdit|Bash"),
        mute("PermissionDenied", Declined).only("Edit|Write|NotebookEdit|Bash"),
        tells("PostToolBatch", BatchEnd),
        tells("SubagentStart", ChildStart),
        mute("SubagentStop", ChildEnd),
        mute("PostCompact", Compacted),
        mute("Stop", Stop),
        // Claude Code allows a second and a half for all hooks
        // together.
        mute("SessionEnd", End).within(1),
        mute("PreCompact", Compacted).unasked(),
        mute("StopFailure", Stop).unasked(),
        mute("Interrupt", Interrupted).unasked(),
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
    attaches: true,
    replaces: true,
    leads_sessions: true,
    shows: true,
    ..BASE
};
