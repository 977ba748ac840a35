//! Windsurf's Cascade: from docs.windsurf.com/windsurf/cascade/hooks
//! (docs/agents/more.md). Each tool has its own events, calls have no ids, and
//! no text reaches the model except the reason of a denial.

use super::*;

pub(super) static ROW: Agent = Agent {
    name: "windsurf",
    program: "windsurf",
    provider: "windsurf",
    settings: Settings {
        title: "Windsurf's Cascade",
        programs: &["windsurf"],
        user: UserFile::Home(".codeium/windsurf/hooks.json"),
        project: ".windsurf/hooks.json",
        adds: Addition::Hooks(Handler::Quiet),
        ..SETTINGS
    },
    events: &[
        mute("pre_user_prompt", Prompt),
        mute("pre_read_code", Before).of("read_code"),
        mute("post_read_code", After).of("read_code"),
        mute("pre_write_code", Before).of("write_code"),
        mute("post_write_code", After).of("write_code"),
        mute("pre_run_command", Before).of("run_command"),
        mute("post_run_command", After).of("run_command"),
        mute("post_cascade_response", Stop),
    ],
    ignored: "post_cascade_response_with_transcript post_mcp_tool_use \
        post_setup_worktree pre_mcp_tool_use",
    fields: Fields {
        event: &["agent_action_name"],
        session: &["trajectory_id"],
        model: &["model_name"],
        prompt: &["user_prompt"],
        turn: &["execution_id"],
        call: &[],
        arguments: &["tool_info"],
        ..FIELDS
    },
    tools: &[
        ("read_code", READ_ALL_FROM_0),
        ("write_code", Replaces),
        ("run_command", Shell),
    ],
    arguments: Arguments {
        command: &["command_line"],
        directory: &["cwd"],
        ..ARGUMENTS
    },
    answers: Answers::Exit,
    ..BASE
};
