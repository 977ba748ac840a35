//! opencode: from its plug-in, which is part of this project
//! (docs/protocol.md).

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "opencode",
    program: "opencode",
    provider: "opencode",
    untried: None,
    settings: Settings {
        title: "opencode",
        programs: &["opencode"],
        user: UserFile::Config("opencode/plugins/touchmark.js"),
        project: ".opencode/plugins/touchmark.js",
        adds: Addition::File(include_str!("../../../../parts/touchmark.js")),
        servers: Some(Servers {
            user: UserFile::Config("opencode/opencode.json"),
            project: "opencode.json",
            entry: EntryFormat::List,
        }),
        note: Some(
            "opencode loads the plug-in at its next start. With any plug-in it first waits for its own package @opencode-ai/plugin, which it fetches once; without a network that takes more than a minute at each start",
        ),
        ..SETTINGS
    },
    events: PLUGIN_EVENTS,
    fields: PLUGIN_FIELDS,
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
};
