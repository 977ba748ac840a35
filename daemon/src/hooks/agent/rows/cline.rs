//! Cline's command line: from its plug-in, which is part of this project, and
//! the program (docs/agents/cline.md). The plug-in sends a call that reads
//! several files as one for each file, and names what `editor` does.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "cline",
    program: "cline",
    provider: "cline",
    untried: None,
    settings: Settings {
        title: "Cline's command line",
        programs: &["cline"],
        user: UserFile::Home(".cline/plugins/touchmark.js"),
        project: ".cline/plugins/touchmark.js",
        adds: Addition::File(include_str!("../../../../parts/cline.js")),
        ..SETTINGS
    },
    events: PLUGIN_EVENTS,
    fields: PLUGIN_FIELDS,
    tools: &[
        ("read_files", READ),
        ("create", Whole),
        ("editor", Replace),
        ("insert", Rewrite),
        ("apply_patch", Patch),
        ("run_commands", Shell),
    ],
    other_tools: "ask_question fetch_web_content search_codebase skills spawn_agent \
        submit_and_exit team_attach_outcome_fragment team_await_runs \
        team_broadcast team_cancel_run team_cleanup team_create_outcome \
        team_finalize_outcome team_list_outcomes team_list_runs \
        team_mission_log team_read_mailbox team_review_outcome_fragment \
        team_run_task team_send_message team_shutdown_teammate \
        team_spawn_teammate team_status team_task use_skill",
    arguments: Arguments {
        path: &["path"],
        content: &["new_text"],
        old: &["old_text"],
        new: &["new_text"],
        patch: &["input", "patch"],
        ..ARGUMENTS
    },
    answers: Answers::Plugin,
    apart: true,
    ..BASE
};
