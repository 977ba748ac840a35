//! pi: from its extension, which is part of this project, and the program
//! (docs/agents/pi.md).

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "pi",
    program: "pi",
    provider: "pi",
    untried: None,
    settings: Settings {
        title: "pi",
        programs: &["pi"],
        user: UserFile::Named(
            "PI_CODING_AGENT_DIR",
            ".pi/agent",
            "extensions/touchmark.js",
        ),
        project: ".pi/extensions/touchmark.js",
        adds: Addition::File(include_str!("../../../../parts/pi.js")),
        ..SETTINGS
    },
    events: PLUGIN_EVENTS,
    fields: PLUGIN_FIELDS,
    tools: &[
        ("read", READ),
        ("write", Whole),
        ("edit", Replaces),
        ("bash", Shell),
    ],
    other_tools: "find grep ls",
    arguments: Arguments {
        path: &["path"],
        old: &["oldText"],
        new: &["newText"],
        ..ARGUMENTS
    },
    answers: Answers::Plugin,
    ..BASE
};
