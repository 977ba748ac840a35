//! Gemini CLI: from its documents and the program (docs/agents/gemini.md). Its
//! tool calls have no ids.
//!
//! AfterModel is left out: it is sent for every part of an answer, and each
//! would start a process. An automatic PreCompress is left out, too: it is
//! sent with every request and has no information.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "gemini",
    program: "gemini-cli",
    provider: "google",
    untried: None,
    settings: Settings {
        title: "Gemini CLI",
        programs: &["gemini"],
        user: UserFile::Home(".gemini/settings.json"),
        project: ".gemini/settings.json",
        adds: Addition::Hooks(Handler::NamedLine),
        timeout: 5_000,
        servers: Some(Servers {
            user: UserFile::Home(".gemini/settings.json"),
            project: ".gemini/settings.json",
            entry: EntryFormat::Json(None),
        }),
        note: Some(
            "Gemini CLI asks whether you trust the hooks of a project, and again whenever they change; in a folder that you do not trust it starts no MCP server",
        ),
        switch: Some(Switch {
            pointer: "/hooksConfig/enabled",
            off: false,
            before: None,
        }),
        ..SETTINGS
    },
    events: &[
        tells("SessionStart", Start),
        tells("BeforeAgent", Prompt),
        mute("BeforeTool", Before)
            .only("read_file|write_file|replace|run_shell_command|invoke_agent|mcp_touchmark_.*"),
        tells("AfterTool", AfterOrFailed)
            .only("read_file|write_file|replace|run_shell_command|invoke_agent"),
        mute("PreCompress", CompactedByHand).only("manual"),
        mute("AfterAgent", Stop),
        mute("SessionEnd", End),
        mute("AfterModel", ModelUsed).unasked(),
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
    leads_sessions: true,
    shows: true,
    ..BASE
};
