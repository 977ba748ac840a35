//! The agents that hooks can be installed for: one row each, in the order of
//! lists. The meaning of an agent's events is in its row in
//! `daemon/src/hooks/agent/rows.rs`.

use clap::ValueEnum;
use clap::builder::PossibleValue;

/// An agent for which hooks can be installed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent(pub(super) &'static AgentRow);

impl ValueEnum for Agent {
    fn value_variants<'a>() -> &'a [Self] {
        AGENTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.0.title))
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Agent {
    /// Returns its name in `touchmark hook NAME`.
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns what is left to the user after the hooks are installed; `None`
    /// for nothing.
    pub(crate) fn note(self) -> Option<&'static str> {
        self.0.note
    }
}

/// Returns the agent with this name; `None` if there is none.
pub(super) fn agent(name: &str) -> Option<Agent> {
    AGENTS.iter().copied().find(|agent| agent.name() == name)
}

/// The name of touchmark's entry among MCP servers.
pub(super) const NAME: &str = "touchmark";

/// One agent's settings.
#[derive(Debug)]
pub(super) struct AgentRow {
    /// The name in `touchmark hook NAME`.
    pub(super) name: &'static str,
    /// The name for display.
    pub(super) title: &'static str,
    /// The names of its programs.
    pub(super) programs: &'static [&'static str],
    pub(super) user: UserFile,
    /// The project's settings, below the workspace.
    pub(super) project: &'static str,
    pub(super) adds: Addition,
    /// The format of its hooks.
    pub(super) handler: Handler,
    /// The timeout for an event, in the agent's unit. The hook itself gives up
    /// long before.
    pub(super) timeout: u64,
    /// The settings of its MCP servers; `None` if it has none.
    pub(super) servers: Option<Servers>,
    /// What is left to the user after the hooks are installed; `None` for
    /// nothing.
    pub(super) note: Option<&'static str>,
}

/// The settings of an agent's MCP servers.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) user: UserFile,
    /// The project's settings, below the workspace.
    pub(super) project: &'static str,
    pub(super) entry: EntryFormat,
}

/// A variable that some agents replace by their working directory.
pub(super) const WORKSPACE: &str = "${workspaceFolder}";

/// The format of an MCP server's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryFormat {
    /// `command` and `args` in `mcpServers`, with a `type` if it is given.
    Json(Option<&'static str>),
    /// `command` and `args` in `mcpServers`, with `--workspace`, since the
    /// server is started in another directory. The agent replaces [`WORKSPACE`]
    /// by its own directory.
    Placed,
    /// A single list in `mcp`.
    List,
    /// A table as in Codex's configuration, with the variables that the agent
    /// must pass on.
    Table(&'static [&'static str]),
}

/// The variables by which `touchmark mcp` finds the same daemon as the hooks.
/// Codex passes on only listed variables.
const PLACES: &[&str] = &[
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "TOUCHMARK_SOCKET",
];

/// Where a user's settings are.
#[derive(Debug)]
pub(super) enum UserFile {
    /// In a directory that a variable names, else in one below the home
    /// directory: variable, directory, file.
    Named(&'static str, &'static str, &'static str),
    /// Below the home directory.
    Home(&'static str),
    /// Below the directory of the user's configuration.
    Config(&'static str),
}

/// What is added.
#[derive(Debug)]
pub(super) enum Addition {
    /// Hooks in a settings file.
    Hooks(&'static [Event]),
    /// A separate file. Its first line identifies it.
    File(&'static str),
}

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: &'static str,
    /// The tools for which the event is requested; `None` for no limit.
    pub(super) matcher: Option<&'static str>,
    /// A timeout other than the usual one, in the agent's unit.
    pub(super) timeout: Option<u64>,
}

/// The format of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// In a group with its matcher, as one line for a shell. A list of
    /// arguments next to the command would avoid the shell, but agents that run
    /// another agent's hooks do not support it: they would run the command
    /// without its arguments.
    Line,
    /// Like `Line`, with a name.
    NamedLine,
    /// The matcher next to the line, without a group.
    Flat,
    /// Without matcher, group and timeout. The output is not shown.
    Quiet,
    /// Without a group, in Copilot CLI's format: `bash`, `timeoutSec`.
    Bash,
}

const fn on(name: &'static str) -> Event {
    Event {
        name,
        matcher: None,
        timeout: None,
    }
}

/// Returns an event for these tools.
const fn of(name: &'static str, tools: &'static str) -> Event {
    Event {
        name,
        matcher: Some(tools),
        timeout: None,
    }
}

/// Returns an event with its own timeout.
const fn within(name: &'static str, timeout: u64) -> Event {
    Event {
        name,
        matcher: None,
        timeout: Some(timeout),
    }
}

/// What most agents have in common.
const ROW: AgentRow = AgentRow {
    name: "",
    title: "",
    programs: &[],
    user: UserFile::Home(""),
    project: "",
    adds: Addition::Hooks(&[]),
    handler: Handler::Line,
    timeout: 5,
    servers: None,
    note: None,
};

/// All agents.
pub(super) static AGENTS: &[Agent] = &[
    Agent(&AgentRow {
        name: "claude",
        title: "Claude Code",
        programs: &["claude"],
        user: UserFile::Named("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        project: ".claude/settings.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("UserPromptSubmit"),
            // Include touchmark's own tools, so that a call is recognised.
            of(
                "PreToolUse",
                "Read|Edit|Write|NotebookEdit|Bash|mcp__.*touchmark__.*",
            ),
            of("PostToolUse", "Read|Edit|Write|NotebookEdit|Bash|Grep"),
            of("PostToolUseFailure", "Edit|Write|NotebookEdit|Bash"),
            of("PermissionDenied", "Edit|Write|NotebookEdit|Bash"),
            on("PostToolBatch"),
            on("SubagentStart"),
            on("SubagentStop"),
            on("PostCompact"),
            on("Stop"),
            // Claude Code allows a second and a half for all hooks
            // together.
            within("SessionEnd", 1),
        ]),
        servers: Some(Servers {
            user: UserFile::Named("CLAUDE_CONFIG_DIR", "", ".claude.json"),
            project: ".mcp.json",
            entry: EntryFormat::Json(Some("stdio")),
        }),
        ..ROW
    }),
    Agent(&AgentRow {
        name: "codex",
        title: "Codex",
        programs: &["codex"],
        user: UserFile::Named("CODEX_HOME", ".codex", "hooks.json"),
        project: ".codex/hooks.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("UserPromptSubmit"),
            of("PreToolUse", "Bash|apply_patch|mcp__.*touchmark__.*"),
            of("PostToolUse", "Bash|apply_patch"),
            on("SubagentStart"),
            on("SubagentStop"),
            on("PostCompact"),
            // Codex allows no more for events that end something, and warns
            // at each start if more is requested.
            within("Interrupt", 3),
            on("Stop"),
            within("SessionEnd", 3),
        ]),
        servers: Some(Servers {
            user: UserFile::Named("CODEX_HOME", ".codex", "config.toml"),
            project: ".codex/config.toml",
            entry: EntryFormat::Table(PLACES),
        }),
        note: Some(
            "Codex skips hooks without a message until you approve them: enter /hooks in Codex, and again whenever they change; for an unattended run, `codex exec --dangerously-bypass-hook-trust`",
        ),
        ..ROW
    }),
    // AfterModel is left out: it is sent for every part of an answer, and each
    // would start a process. An automatic PreCompress is left out, too: it is
    // sent with every request and has no information.
    Agent(&AgentRow {
        name: "gemini",
        title: "Gemini CLI",
        programs: &["gemini"],
        user: UserFile::Home(".gemini/settings.json"),
        project: ".gemini/settings.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("BeforeAgent"),
            of(
                "BeforeTool",
                "read_file|write_file|replace|run_shell_command|invoke_agent|mcp_touchmark_.*",
            ),
            of(
                "AfterTool",
                "read_file|write_file|replace|run_shell_command|invoke_agent",
            ),
            of("PreCompress", "manual"),
            on("AfterAgent"),
            on("SessionEnd"),
        ]),
        handler: Handler::NamedLine,
        timeout: 5_000,
        servers: Some(Servers {
            user: UserFile::Home(".gemini/settings.json"),
            project: ".gemini/settings.json",
            entry: EntryFormat::Json(None),
        }),
        note: Some(
            "Gemini CLI asks whether you trust the hooks of a project, and again whenever they change; in a folder that you do not trust it starts no MCP server",
        ),
    }),
    // Cursor rejects the whole file if it has an event that Cursor does not
    // know.
    Agent(&AgentRow {
        name: "cursor",
        title: "Cursor",
        programs: &["cursor-agent", "cursor"],
        user: UserFile::Home(".cursor/hooks.json"),
        project: ".cursor/hooks.json",
        adds: Addition::Hooks(&[
            on("sessionStart"),
            on("beforeSubmitPrompt"),
            on("beforeReadFile"),
            of(
                "preToolUse",
                "Read|Write|StrReplace|Delete|ApplyPatch|Shell",
            ),
            on("postToolUse"),
            on("postToolUseFailure"),
            on("preCompact"),
            on("stop"),
            on("sessionEnd"),
        ]),
        handler: Handler::Flat,
        servers: Some(Servers {
            user: UserFile::Home(".cursor/mcp.json"),
            project: ".cursor/mcp.json",
            entry: EntryFormat::Placed,
        }),
        ..ROW
    }),
    Agent(&AgentRow {
        name: "opencode",
        title: "opencode",
        programs: &["opencode"],
        user: UserFile::Config("opencode/plugins/touchmark.js"),
        project: ".opencode/plugins/touchmark.js",
        adds: Addition::File(include_str!("../../parts/touchmark.js")),
        servers: Some(Servers {
            user: UserFile::Config("opencode/opencode.json"),
            project: "opencode.json",
            entry: EntryFormat::List,
        }),
        note: Some(
            "opencode loads the plug-in at its next start. With any plug-in it first waits for its own package @opencode-ai/plugin, which it fetches once; without a network that takes more than a minute at each start",
        ),
        ..ROW
    }),
    // Newer versions take seconds, older ones milliseconds. All versions treat
    // values from 1000 as milliseconds.
    Agent(&AgentRow {
        name: "qwen",
        title: "Qwen Code",
        programs: &["qwen"],
        user: UserFile::Named("QWEN_HOME", ".qwen", "settings.json"),
        project: ".qwen/settings.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("UserPromptSubmit"),
            of(
                "PreToolUse",
                "read_file|write_file|edit|notebook_edit|run_shell_command",
            ),
            of(
                "PostToolUse",
                "read_file|write_file|edit|notebook_edit|run_shell_command",
            ),
            of(
                "PostToolUseFailure",
                "write_file|edit|notebook_edit|run_shell_command",
            ),
            of(
                "PermissionDenied",
                "write_file|edit|notebook_edit|run_shell_command",
            ),
            on("PostToolBatch"),
            on("SubagentStart"),
            on("SubagentStop"),
            on("PostCompact"),
            on("Stop"),
            on("StopFailure"),
            on("SessionEnd"),
        ]),
        handler: Handler::NamedLine,
        timeout: 5_000,
        servers: Some(Servers {
            user: UserFile::Named("QWEN_HOME", ".qwen", "settings.json"),
            project: ".qwen/settings.json",
            entry: EntryFormat::Json(None),
        }),
        note: Some("Qwen Code runs the hooks of a project only in a folder that you trust"),
    }),
    // With these event names Copilot CLI sends what VS Code sends.
    Agent(&AgentRow {
        name: "copilot",
        title: "GitHub Copilot: VS Code's agent, Copilot CLI",
        programs: &["copilot"],
        user: UserFile::Home(".copilot/hooks/touchmark.json"),
        project: ".github/hooks/touchmark.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("UserPromptSubmit"),
            on("PreToolUse"),
            on("PostToolUse"),
            on("PostToolUseFailure"),
            on("PreCompact"),
            on("SubagentStart"),
            on("SubagentStop"),
            on("Stop"),
            on("SessionEnd"),
        ]),
        handler: Handler::Bash,
        note: Some("Copilot runs the hooks of a project only in a folder that you trust"),
        ..ROW
    }),
    Agent(&AgentRow {
        name: "droid",
        title: "Factory Droid",
        programs: &["droid"],
        user: UserFile::Home(".factory/settings.json"),
        project: ".factory/settings.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("UserPromptSubmit"),
            of(
                "PreToolUse",
                "Read|Create|Write|Edit|MultiEdit|ApplyPatch|Execute|Bash",
            ),
            of(
                "PostToolUse",
                "Read|Create|Write|Edit|MultiEdit|ApplyPatch|Execute|Bash",
            ),
            on("PreCompact"),
            on("Stop"),
            on("SessionEnd"),
        ]),
        servers: Some(Servers {
            user: UserFile::Home(".factory/mcp.json"),
            project: ".factory/mcp.json",
            entry: EntryFormat::Json(Some("stdio")),
        }),
        note: Some("Droid does not read these hooks if a hooks.json is next to the settings"),
        ..ROW
    }),
    Agent(&AgentRow {
        name: "grok",
        title: "Grok Build",
        programs: &["grok"],
        user: UserFile::Named("GROK_HOME", ".grok", "hooks/touchmark.json"),
        project: ".grok/hooks/touchmark.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("UserPromptSubmit"),
            of(
                "PreToolUse",
                "read_file|write|search_replace|run_terminal_command",
            ),
            of(
                "PostToolUse",
                "read_file|write|search_replace|run_terminal_command",
            ),
            of(
                "PostToolUseFailure",
                "write|search_replace|run_terminal_command",
            ),
            of(
                "PermissionDenied",
                "write|search_replace|run_terminal_command",
            ),
            on("PostCompact"),
            on("Stop"),
            on("StopFailure"),
            on("SessionEnd"),
        ]),
        servers: Some(Servers {
            user: UserFile::Named("GROK_HOME", ".grok", "config.toml"),
            project: ".grok/config.toml",
            entry: EntryFormat::Table(&[]),
        }),
        note: Some("Grok Build skips the hooks of a project until you enter /hooks-trust"),
        ..ROW
    }),
    Agent(&AgentRow {
        name: "windsurf",
        title: "Windsurf's Cascade",
        programs: &["windsurf"],
        user: UserFile::Home(".codeium/windsurf/hooks.json"),
        project: ".windsurf/hooks.json",
        adds: Addition::Hooks(&[
            on("pre_user_prompt"),
            on("pre_read_code"),
            on("post_read_code"),
            on("pre_write_code"),
            on("post_write_code"),
            on("pre_run_command"),
            on("post_run_command"),
            on("post_cascade_response"),
        ]),
        handler: Handler::Quiet,
        ..ROW
    }),
    // goose finds a plug-in by its directory alone.
    Agent(&AgentRow {
        name: "goose",
        title: "goose",
        programs: &["goose"],
        user: UserFile::Home(".agents/plugins/touchmark/hooks/hooks.json"),
        project: ".agents/plugins/touchmark/hooks/hooks.json",
        adds: Addition::Hooks(&[
            on("SessionStart"),
            on("UserPromptSubmit"),
            of("PreToolUse", "^developer__(shell|write|edit)$"),
            of("PostToolUse", "^developer__(shell|write|edit)$"),
            of("PostToolUseFailure", "^developer__(shell|write|edit)$"),
            on("Stop"),
            on("SessionEnd"),
        ]),
        ..ROW
    }),
];
