//! Codex: from its documents, its source and the program
//! (docs/agents/codex.md).

use super::*;

/// The variables by which `touchmark mcp` finds the same daemon as the hooks.
/// Codex passes on only listed variables.
const PLACES: &[&str] = &[
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "TOUCHMARK_SOCKET",
];

pub(super) static ROW: Agent = Agent {
    name: "codex",
    program: "codex",
    provider: "openai",
    untried: None,
    settings: Settings {
        title: "Codex",
        programs: &["codex"],
        user: UserFile::Named("CODEX_HOME", ".codex", "hooks.json"),
        project: ".codex/hooks.json",
        adds: Addition::Hooks(Handler::Line),
        servers: Some(Servers {
            user: UserFile::Named("CODEX_HOME", ".codex", "config.toml"),
            project: ".codex/config.toml",
            entry: EntryFormat::Table(PLACES),
        }),
        note: Some(
            "Codex skips hooks without a message until you approve them: enter /hooks in Codex, and again whenever they change; for an unattended run, `codex exec --dangerously-bypass-hook-trust`",
        ),
        records_trust: true,
        ..SETTINGS
    },
    events: &[
        tells("SessionStart", Start),
        tells("UserPromptSubmit", Prompt),
        mute("PreToolUse", Before).only("Bash|apply_patch|mcp__.*touchmark__.*"),
        tells("PostToolUse", After).only("Bash|apply_patch"),
        tells("SubagentStart", ChildStart),
        mute("SubagentStop", ChildEnd),
        mute("PostCompact", Compacted),
        // Codex allows no more for events that end something, and warns
        // at each start if more is requested.
        mute("Interrupt", Interrupted).within(3),
        mute("Stop", Stop),
        mute("SessionEnd", End).within(3),
        mute("PreCompact", Compacted).unasked(),
    ],
    ignored: "PermissionRequest",
    tools: &[
        ("Bash", ShellOrPatch),
        ("apply_patch", Patch),
        ("Edit", Patch),
        ("Write", Patch),
    ],
    other_tools: "spawn_agent update_plan view_image web_search",
    leads_sessions: true,
    ends_unreported: true,
    shows: true,
    ..BASE
};
