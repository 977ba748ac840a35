//! Mistral Vibe: from the documents in its package, and the program
//! (docs/agents/vibe.md). It has no event for a prompt or a session's start.
//! After a failed tool, a text of a hook would replace the error.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "vibe",
    program: "vibe",
    provider: "mistral",
    told_with: &["tool_output"],
    untried: None,
    settings: Settings {
        title: "Mistral Vibe",
        programs: &["vibe"],
        user: UserFile::Named("VIBE_HOME", ".vibe", "hooks.toml"),
        project: ".vibe/hooks.toml",
        adds: Addition::File(include_str!("../../../../parts/vibe.toml")),
        note: Some("Mistral Vibe runs the hooks of a project only in a folder that you trust"),
        ..SETTINGS
    },
    events: &[
        mute("pre_tool", Before),
        tells("post_tool", AfterOrFailed),
        mute("post_agent", Stop),
    ],
    fields: Fields {
        parent: &["parent_session_id"],
        call: &["tool_call_id"],
        output: &["tool_output_text"],
        error: &["tool_error"],
        ..FIELDS
    },
    tools: &[
        ("file_system.read_file", READ_ALL_FROM_0),
        ("file_system.write_file", Whole),
        ("file_system.search_replace", Replace),
        ("file_system.edit", Replace),
        ("file_system.bash", Shell),
        ("process_start", Shell),
        ("process.start", Shell),
    ],
    answers: Answers::Flat,
    ..BASE
};
