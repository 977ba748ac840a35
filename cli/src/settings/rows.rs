//! The agents that hooks can be installed for: a row each, in the order in
//! which they are listed. What an agent's events mean is its row in
//! `daemon/src/hooks/agent/rows.rs`.

use super::Agent;

/// One agent's settings.
#[derive(Debug)]
pub(super) struct Row {
    /// As in `touchmark hook NAME`.
    pub(super) name: &'static str,
    /// For people.
    pub(super) title: &'static str,
    /// What its programs are called.
    pub(super) programs: &'static [&'static str],
    pub(super) user: Place,
    /// Below the workspace.
    pub(super) project: &'static str,
    pub(super) what: What,
    /// Its MCP servers, where it has settings for them.
    pub(super) servers: Option<Servers>,
    /// What is left to the user once the hooks are in.
    pub(super) note: Option<&'static str>,
}

/// Where an agent has its MCP servers.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) user: Place,
    /// Below the workspace.
    pub(super) project: &'static str,
    pub(super) entry: Entry,
}

/// What some agents replace by the directory that they work in.
pub(super) const WORKSPACE: &str = "${workspaceFolder}";

/// How it writes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// `command` and `args` in `mcpServers`, beside a `type` where it is named.
    Json(Option<&'static str>),
    /// The same, with the workspace named: the server is started elsewhere.
    /// The agent puts its directory in the place of [`WORKSPACE`].
    Placed,
    /// One list in `mcp`.
    List,
    /// A table as in Codex's configuration, with the variables that the agent
    /// has to be told to hand on.
    Table(&'static [&'static str]),
}

/// By which `touchmark mcp` finds the daemon that the hooks find. Codex hands
/// on none of them unless told.
const PLACES: &[&str] = &[
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "TOUCHMARK_SOCKET",
];

/// Where a user's settings are.
#[derive(Debug)]
pub(super) enum Place {
    /// In a directory that a variable names, else in one below the home
    /// directory: variable, directory, file.
    Named(&'static str, &'static str, &'static str),
    /// Below the home directory.
    Home(&'static str),
    /// Below the directory of the user's configuration.
    Config(&'static str),
}

/// What is put there.
#[derive(Debug)]
pub(super) enum What {
    /// Hooks among settings.
    Hooks(Shape),
    /// A file of its own; its first line says whose it is.
    File(&'static str),
}

/// How hooks are written.
#[derive(Debug)]
pub(super) struct Shape {
    /// Members beside `hooks` that must be there.
    pub(super) beside: &'static [(&'static str, u64)],
    pub(super) events: &'static [Event],
    pub(super) handler: Handler,
    /// For an event, in the agent's unit; the hook itself gives up long
    /// before.
    pub(super) timeout: u64,
}

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: &'static str,
    /// The tools whose events are asked for.
    pub(super) matcher: Option<&'static str>,
    /// Where it is not the usual one.
    pub(super) timeout: Option<u64>,
}

/// What a hook looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// In a group with its matcher; one line for a shell. A list of words
    /// beside the command would spare that, and agents that run another's hooks
    /// do not know it: they would run the command without them.
    Line,
    /// The same with a name.
    NamedLine,
    /// The matcher beside the line, and no group.
    Flat,
    /// Neither matcher, group nor timeout; what it prints is not shown.
    Quiet,
    /// Without a group, as Copilot CLI wants it: `bash`, `timeoutSec`.
    Bash,
}

const fn on(name: &'static str) -> Event {
    Event {
        name,
        matcher: None,
        timeout: None,
    }
}

/// Of these tools.
const fn of(name: &'static str, tools: &'static str) -> Event {
    Event {
        name,
        matcher: Some(tools),
        timeout: None,
    }
}

/// Within a shorter time.
const fn within(name: &'static str, timeout: u64) -> Event {
    Event {
        name,
        matcher: None,
        timeout: Some(timeout),
    }
}

/// All of them.
pub(super) static AGENTS: &[Agent] = &[
    Agent(&Row {
        name: "claude",
        title: "Claude Code",
        programs: &["claude"],
        user: Place::Named("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        project: ".claude/settings.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
                on("SessionStart"),
                on("UserPromptSubmit"),
                // With touchmark's own tools, so that a call is known again.
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
                // A second and a half for all hooks together.
                within("SessionEnd", 1),
            ],
            handler: Handler::Line,
            timeout: 5,
        }),
        servers: Some(Servers {
            user: Place::Named("CLAUDE_CONFIG_DIR", "", ".claude.json"),
            project: ".mcp.json",
            entry: Entry::Json(Some("stdio")),
        }),
        note: None,
    }),
    Agent(&Row {
        name: "codex",
        title: "Codex",
        programs: &["codex"],
        user: Place::Named("CODEX_HOME", ".codex", "hooks.json"),
        project: ".codex/hooks.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
                on("SessionStart"),
                on("UserPromptSubmit"),
                of("PreToolUse", "Bash|apply_patch|mcp__.*touchmark__.*"),
                of("PostToolUse", "Bash|apply_patch"),
                on("SubagentStart"),
                on("SubagentStop"),
                on("PostCompact"),
                // Codex grants no more to what ends something, and warns at
                // each start where more is asked.
                within("Interrupt", 3),
                on("Stop"),
                within("SessionEnd", 3),
            ],
            handler: Handler::Line,
            timeout: 5,
        }),
        servers: Some(Servers {
            user: Place::Named("CODEX_HOME", ".codex", "config.toml"),
            project: ".codex/config.toml",
            entry: Entry::Table(PLACES),
        }),
        note: Some(
            "Codex passes over hooks in silence before you have approved them: say /hooks in Codex, and again whenever they change; for a run without anybody, `codex exec --dangerously-bypass-hook-trust`",
        ),
    }),
    // AfterModel is left out: it comes with every piece of an answer, and each
    // would start a process. So would an automatic PreCompress, which comes
    // with every request and says nothing.
    Agent(&Row {
        name: "gemini",
        title: "Gemini CLI",
        programs: &["gemini"],
        user: Place::Home(".gemini/settings.json"),
        project: ".gemini/settings.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
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
            ],
            handler: Handler::NamedLine,
            timeout: 5_000,
        }),
        servers: Some(Servers {
            user: Place::Home(".gemini/settings.json"),
            project: ".gemini/settings.json",
            entry: Entry::Json(None),
        }),
        note: Some(
            "Gemini CLI asks whether you trust the hooks of a project, and again whenever they change; in a folder that you do not trust it starts no MCP server",
        ),
    }),
    // One event that Cursor does not know, and it takes none of them.
    Agent(&Row {
        name: "cursor",
        title: "Cursor",
        programs: &["cursor-agent", "cursor"],
        user: Place::Home(".cursor/hooks.json"),
        project: ".cursor/hooks.json",
        what: What::Hooks(Shape {
            beside: &[("version", 1)],
            events: &[
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
            ],
            handler: Handler::Flat,
            timeout: 5,
        }),
        servers: Some(Servers {
            user: Place::Home(".cursor/mcp.json"),
            project: ".cursor/mcp.json",
            entry: Entry::Placed,
        }),
        note: None,
    }),
    Agent(&Row {
        name: "opencode",
        title: "opencode",
        programs: &["opencode"],
        user: Place::Config("opencode/plugins/touchmark.ts"),
        project: ".opencode/plugins/touchmark.ts",
        what: What::File(include_str!(
            "../../../bindings/typescript/opencode/touchmark.ts"
        )),
        servers: Some(Servers {
            user: Place::Config("opencode/opencode.json"),
            project: "opencode.json",
            entry: Entry::List,
        }),
        note: Some(
            "opencode takes the plug-in up when it starts the next time. With any plug-in it first waits for its own package @opencode-ai/plugin, which it fetches once; without a network that takes more than a minute at each start",
        ),
    }),
    // Seconds, but milliseconds in older versions; from 1000 on all take them
    // for milliseconds.
    Agent(&Row {
        name: "qwen",
        title: "Qwen Code",
        programs: &["qwen"],
        user: Place::Named("QWEN_HOME", ".qwen", "settings.json"),
        project: ".qwen/settings.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
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
            ],
            handler: Handler::NamedLine,
            timeout: 5_000,
        }),
        servers: Some(Servers {
            user: Place::Named("QWEN_HOME", ".qwen", "settings.json"),
            project: ".qwen/settings.json",
            entry: Entry::Json(None),
        }),
        note: Some("Qwen Code runs the hooks of a project only in a folder that you trust"),
    }),
    // By these names of events Copilot CLI sends what VS Code sends.
    Agent(&Row {
        name: "copilot",
        title: "GitHub Copilot: VS Code's agent, Copilot CLI",
        programs: &["copilot"],
        user: Place::Home(".copilot/hooks/touchmark.json"),
        project: ".github/hooks/touchmark.json",
        what: What::Hooks(Shape {
            beside: &[("version", 1)],
            events: &[
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
            ],
            handler: Handler::Bash,
            timeout: 5,
        }),
        servers: None,
        note: Some("Copilot runs the hooks of a project only in a folder that you trust"),
    }),
    Agent(&Row {
        name: "droid",
        title: "Factory Droid",
        programs: &["droid"],
        user: Place::Home(".factory/settings.json"),
        project: ".factory/settings.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
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
            ],
            handler: Handler::Line,
            timeout: 5,
        }),
        servers: Some(Servers {
            user: Place::Home(".factory/mcp.json"),
            project: ".factory/mcp.json",
            entry: Entry::Json(Some("stdio")),
        }),
        note: Some("Droid does not read these hooks where a hooks.json stands beside the settings"),
    }),
    Agent(&Row {
        name: "grok",
        title: "Grok Build",
        programs: &["grok"],
        user: Place::Named("GROK_HOME", ".grok", "hooks/touchmark.json"),
        project: ".grok/hooks/touchmark.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
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
            ],
            handler: Handler::Line,
            timeout: 5,
        }),
        servers: Some(Servers {
            user: Place::Named("GROK_HOME", ".grok", "config.toml"),
            project: ".grok/config.toml",
            entry: Entry::Table(&[]),
        }),
        note: Some("Grok Build passes over the hooks of a project until you say /hooks-trust"),
    }),
    Agent(&Row {
        name: "windsurf",
        title: "Windsurf's Cascade",
        programs: &["windsurf"],
        user: Place::Home(".codeium/windsurf/hooks.json"),
        project: ".windsurf/hooks.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
                on("pre_user_prompt"),
                on("pre_read_code"),
                on("post_read_code"),
                on("pre_write_code"),
                on("post_write_code"),
                on("pre_run_command"),
                on("post_run_command"),
                on("post_cascade_response"),
            ],
            handler: Handler::Quiet,
            timeout: 5,
        }),
        servers: None,
        note: None,
    }),
    // A plug-in by its directory alone.
    Agent(&Row {
        name: "goose",
        title: "goose",
        programs: &["goose"],
        user: Place::Home(".agents/plugins/touchmark/hooks/hooks.json"),
        project: ".agents/plugins/touchmark/hooks/hooks.json",
        what: What::Hooks(Shape {
            beside: &[],
            events: &[
                on("SessionStart"),
                on("UserPromptSubmit"),
                of("PreToolUse", "^developer__(shell|write|edit)$"),
                of("PostToolUse", "^developer__(shell|write|edit)$"),
                of("PostToolUseFailure", "^developer__(shell|write|edit)$"),
                on("Stop"),
                on("SessionEnd"),
            ],
            handler: Handler::Line,
            timeout: 5,
        }),
        servers: None,
        note: None,
    }),
];
