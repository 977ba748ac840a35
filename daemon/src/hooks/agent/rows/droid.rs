//! Factory Droid: from docs.factory.ai/reference/hooks-reference
//! (docs/agents/more.md).

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "droid",
    program: "droid",
    provider: "factory",
    settings: Settings {
        title: "Factory Droid",
        programs: &["droid"],
        user: UserFile::Home(".factory/settings.json"),
        project: ".factory/settings.json",
        adds: Addition::Hooks(Handler::Line),
        servers: Some(Servers {
            user: UserFile::Home(".factory/mcp.json"),
            project: ".factory/mcp.json",
            entry: EntryFormat::Json(Some("stdio")),
        }),
        note: Some("Droid does not read these hooks if a hooks.json is next to the settings"),
        ..SETTINGS
    },
    events: &[
        tells("SessionStart", Start),
        tells("UserPromptSubmit", Prompt),
        mute("PreToolUse", Before).only("Read|Create|Write|Edit|MultiEdit|ApplyPatch|Execute|Bash"),
        tells("PostToolUse", After)
            .only("Read|Create|Write|Edit|MultiEdit|ApplyPatch|Execute|Bash"),
        mute("PreCompact", Compacted),
        mute("Stop", Stop),
        mute("SessionEnd", End),
        mute("SubagentStop", ChildEnd).unasked(),
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
    shows: true,
    ..BASE
};
