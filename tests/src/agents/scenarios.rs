//! The scenarios that are run with each agent. The truth is taken from outside:
//! the bytes on disk, the text that the model was sent, and the authors that
//! touchmark reports.

use rustix::process::Signal;
use serde_json::json;

use super::{By, Does, Setting, Stage};
use crate::hooks::voice;
use crate::model::ASIDE;
use crate::process::{signal, until, wait_gone};

/// The result of a scenario that did not fail. `Err` has the reason why the
/// agent cannot run it.
pub type Played = Result<(), &'static str>;

/// One scenario.
pub struct Scenario {
    /// Its name in the documents' table.
    pub name: &'static str,
    /// How the agent is set up.
    pub setting: Setting,
    /// Runs the scenario. Panics if something is wrong.
    pub play: fn(&Stage) -> Played,
}

const PLAIN: Setting = Setting {
    bare: false,
    mcp: false,
    formatter: None,
    declines: false,
    patches: false,
    witness: false,
};

/// All scenarios, in the order of the documents' table.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "read",
        setting: PLAIN,
        play: read,
    },
    Scenario {
        name: "a user's change",
        setting: PLAIN,
        play: users_change,
    },
    Scenario {
        name: "edit beside a change",
        setting: PLAIN,
        play: edit_beside,
    },
    Scenario {
        name: "denial and retry",
        setting: PLAIN,
        play: denial,
    },
    Scenario {
        name: "whole file",
        setting: PLAIN,
        play: whole_file,
    },
    Scenario {
        name: "patch",
        setting: Setting {
            patches: true,
            ..PLAIN
        },
        play: patch,
    },
    Scenario {
        name: "shell write",
        setting: PLAIN,
        play: shell_write,
    },
    Scenario {
        name: "a save beside a command",
        setting: Setting {
            witness: true,
            ..PLAIN
        },
        play: save_beside,
    },
    Scenario {
        name: "background command",
        setting: PLAIN,
        play: background,
    },
    Scenario {
        name: "declined tool",
        setting: Setting {
            declines: true,
            ..PLAIN
        },
        play: declined,
    },
    Scenario {
        name: "formatter",
        setting: Setting {
            formatter: Some(FORMATTER),
            ..PLAIN
        },
        play: formatter,
    },
    Scenario {
        name: "sub-agent",
        setting: PLAIN,
        play: sub_agent,
    },
    Scenario {
        name: "resumption",
        setting: PLAIN,
        play: resumption,
    },
    Scenario {
        name: "compaction",
        setting: PLAIN,
        play: compaction,
    },
    Scenario {
        name: "killed daemon",
        setting: PLAIN,
        play: killed_daemon,
    },
    Scenario {
        name: "MCP",
        setting: Setting { mcp: true, ..PLAIN },
        play: mcp,
    },
    Scenario {
        name: "undo",
        setting: PLAIN,
        play: undo,
    },
];

/// The user's formatter: one space between words.
const FORMATTER: &str = "sed -i 's/  */ /g' f.txt";

const THREE: &str = "one\ntwo\nthree\n";

/// Returns ten lines, `line 1` to `line 10`.
fn ten() -> String {
    (1..=10).map(|line| format!("line {line}\n")).collect()
}

/// Asserts that the newest version of a file is an agent's.
fn is_agents(stage: &Stage, file: &str) {
    let writers = stage.writers(file);
    assert!(writers[0].starts_with("agent:"), "{file}: {writers:?}");
}

/// Asserts that nothing of touchmark's is in a text that a model was sent.
fn is_silent(sent: &str) {
    for word in [
        "touchmark",
        "hanged since",
        "was changed",
        "outside any agent",
    ] {
        assert!(!sent.contains(word), "{word:?} in {sent}");
    }
}

fn read(stage: &Stage) -> Played {
    stage.world.file("f.txt", THREE);
    let mut run = stage.ask("Read f.txt.");
    let sent = run.does(&Does::Read("f.txt"));
    assert!(sent.contains("three"), "{sent}");
    is_silent(&sent);
    let session = stage.session();
    let files = stage.told(&["files", "--session", &session]);
    let file = &files["files"][0];
    assert_eq!(file["path"], "f.txt", "{files}");
    assert_eq!(file["mayEdit"], true, "{files}");
    assert_eq!(file["resident"], true, "{files}");
    run.ends();
    Ok(())
}

fn users_change(stage: &Stage) -> Played {
    stage.world.file("f.txt", THREE);
    stage.world.file("other.txt", "else\n");
    let mut run = stage.ask("Read f.txt.");
    run.does(&Does::Read("f.txt"));
    stage.world.file("f.txt", "one\nTWO\nthree\n");
    let sent = run.does(&Does::Read("other.txt"));
    assert!(sent.contains("\"f.txt\""), "{sent}");
    assert!(sent.contains("outside any agent"), "{sent}");
    assert!(!sent.contains("by the user"), "{sent}");
    // The change is reported only once.
    let sent = run.does(&Does::Shell("true"));
    is_silent(&sent);
    run.ends();
    assert_eq!(stage.writers("f.txt")[0], "user");
    Ok(())
}

fn edit_beside(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Change line 9 of f.txt.");
    run.does(&Does::Read("f.txt"));
    stage
        .world
        .file("f.txt", ten().replace("line 2\n", "LINE 2\n"));
    let sent = run.does(&Does::Edit("f.txt", "line 9", "ninth"));
    assert!(sent.contains("LINE 2"), "{sent}");
    assert!(sent.contains("outside any agent"), "{sent}");
    run.ends();
    let both = ten()
        .replace("line 2\n", "LINE 2\n")
        .replace("line 9", "ninth");
    assert_eq!(stage.text("f.txt"), both);
    assert!(
        matches!(&stage.writers("f.txt")[..], [agent, user, ..]
        if agent.starts_with("agent:") && user == "user"),
        "{:?}",
        stage.writers("f.txt")
    );
    Ok(())
}

fn denial(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Change line 5 of f.txt.");
    run.does(&Does::Read("f.txt"));
    let changed = ten().replace("line 5", "line 5 by somebody");
    stage.world.file("f.txt", &changed);
    let sent = run.does(&Does::Edit("f.txt", "line 5", "fifth"));
    assert!(sent.contains("line 5 by somebody"), "{sent}");
    assert!(sent.contains("outside any agent"), "{sent}");
    assert_eq!(stage.text("f.txt"), changed);
    // Lines that a denial showed count as read, and are not reported again.
    run.catches_up("f.txt");
    let sent = run.does(&Does::Edit("f.txt", "line 5 by somebody", "fifth"));
    assert_eq!(
        stage.text("f.txt"),
        ten().replace("line 5", "fifth"),
        "{sent}"
    );
    is_silent(&sent);
    run.ends();
    is_agents(stage, "f.txt");
    Ok(())
}

fn whole_file(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Write f.txt and new.txt.");
    run.does(&Does::Write("new.txt", "new\n"));
    assert_eq!(stage.text("new.txt"), "new\n");
    let sent = run.does(&Does::Write("f.txt", "all new\n"));
    assert!(sent.contains("has not been read"), "{sent}");
    assert_eq!(stage.text("f.txt"), ten());
    run.does(&Does::Read("f.txt"));
    let sent = run.does(&Does::Write("f.txt", "all new\n"));
    assert_eq!(stage.text("f.txt"), "all new\n");
    is_silent(&sent);
    // A write over a file that the user has changed is denied once, with the
    // user's lines.
    stage.world.file("f.txt", "all new\nmine\n");
    let sent = run.does(&Does::Write("f.txt", "all newer\n"));
    assert!(sent.contains("mine"), "{sent}");
    assert_eq!(stage.text("f.txt"), "all new\nmine\n");
    run.ends();
    is_agents(stage, "new.txt");
    assert_eq!(stage.writers("f.txt")[0], "user");
    Ok(())
}

fn patch(stage: &Stage) -> Played {
    stage.able(&Does::Patch("f.txt", "", ""))?;
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Change lines 5 and 9 of f.txt.");
    run.does(&Does::Read("f.txt"));
    run.does(&Does::Patch("f.txt", "line 5", "fifth"));
    let fifth = ten().replace("line 5", "fifth");
    assert_eq!(stage.text("f.txt"), fifth);
    is_agents(stage, "f.txt");
    stage
        .world
        .file("f.txt", fifth.replace("line 2\n", "LINE 2\n"));
    let sent = run.does(&Does::Patch("f.txt", "line 9", "ninth"));
    assert!(sent.contains("LINE 2"), "{sent}");
    let both = fifth
        .replace("line 2\n", "LINE 2\n")
        .replace("line 9", "ninth");
    assert_eq!(stage.text("f.txt"), both);
    stage
        .world
        .file("f.txt", both.replace("line 7\n", "line 7 by somebody\n"));
    let sent = run.does(&Does::Patch("f.txt", "line 7", "seventh"));
    assert!(sent.contains("line 7 by somebody"), "{sent}");
    run.ends();
    assert_eq!(
        stage.text("f.txt"),
        both.replace("line 7\n", "line 7 by somebody\n")
    );
    Ok(())
}

fn shell_write(stage: &Stage) -> Played {
    stage.world.file("f.txt", THREE);
    stage.world.file("mine.txt", "mine\n");
    let mut run = stage.ask("Change f.txt by a command.");
    run.does(&Does::Read("f.txt"));
    run.does(&Does::Read("mine.txt"));
    let sent = run.does(&Does::Shell("sed -i s/two/2/ f.txt && echo made > new.txt"));
    assert!(!sent.contains("outside any agent"), "{sent}");
    assert_eq!(stage.text("f.txt"), "one\n2\nthree\n");
    is_agents(stage, "f.txt");
    // A change after the command's end is not attributed to the command.
    stage.world.file("mine.txt", "mine too\n");
    let sent = run.does(&Does::Read("new.txt"));
    assert!(sent.contains("\"mine.txt\""), "{sent}");
    assert!(!sent.contains("\"f.txt\""), "{sent}");
    run.ends();
    assert_eq!(stage.writers("mine.txt")[0], "user");
    Ok(())
}

/// What the user saves while a witnessed command runs is the user's, and an undo
/// takes what the command wrote without a question.
fn save_beside(stage: &Stage) -> Played {
    const COMMAND: &str =
        "touch begun; until [ -e go ]; do sleep 0.05; done; sed -i s/two/2/ f.txt; echo said";
    stage.world.file("f.txt", THREE);
    stage.world.file("mine.txt", "mine\n");
    let mut run = stage.ask("Change f.txt by a command.");
    run.does(&Does::Read("f.txt"));
    run.does(&Does::Read("mine.txt"));
    let sent = run.does_while(&Does::Shell(COMMAND), || {
        until("it does not begin", || stage.world.path("begun").exists());
        stage.world.file("mine.txt", "mine too\n");
        stage.world.file("go", "");
    });
    assert!(sent.contains("said"), "{sent}");
    assert!(!sent.contains("or by another author"), "{sent}");
    run.ends();
    assert_eq!(stage.text("f.txt"), "one\n2\nthree\n");
    is_agents(stage, "f.txt");
    assert_eq!(stage.writers("mine.txt")[0], "user");
    stage.touchmark(&["undo", stage.session().as_str(), "--yes"]);
    assert_eq!(stage.text("f.txt"), THREE);
    assert_eq!(stage.text("mine.txt"), "mine too\n");
    Ok(())
}

fn background(stage: &Stage) -> Played {
    const COMMAND: &str =
        "touch begun; until [ -e go ]; do sleep 0.05; done; echo late > late.txt; touch over";
    stage.able(&Does::Background(""))?;
    stage.world.file("late.txt", "early\n");
    stage.world.file("mine.txt", "mine\n");
    let mut run = stage.ask("Run it in the background.");
    run.does(&Does::Read("late.txt"));
    run.does(&Does::Read("mine.txt"));
    run.does(&Does::Background(COMMAND));
    until("it does not begin", || stage.world.path("begun").exists());
    run.does(&Does::Shell("true"));
    // While another process of the agent runs, a user's write cannot be
    // distinguished from that process's writes. So the test waits for its end.
    stage.world.file("go", "");
    until("it does not end", || stage.world.path("over").exists());
    let sent = run.does(&Does::Shell("true"));
    assert!(!sent.contains("outside any agent"), "{sent}");
    // Nothing reports when the daemon has noticed that end, so the test saves
    // repeatedly. A file is told once in a turn.
    let mut is_told = false;
    let is_users = (0..20).any(|save| {
        stage.world.file("mine.txt", format!("mine too {save}\n"));
        let sent = run.does(&Does::Shell("true"));
        is_told |= sent.contains("\"mine.txt\"");
        is_told && stage.writers("mine.txt")[0] == "user"
    });
    assert!(is_users, "the user's save is put down to the command");
    run.ends();
    is_agents(stage, "late.txt");
    Ok(())
}

fn declined(stage: &Stage) -> Played {
    stage.world.file("f.txt", THREE);
    let mut run = stage.ask("Change f.txt.");
    run.does(&Does::Read("f.txt"));
    run.does(&Does::Edit("f.txt", "two", "TWO"));
    assert_eq!(stage.text("f.txt"), THREE, "it was not declined");
    stage.world.file("f.txt", "one\nmine\nthree\n");
    assert_eq!(stage.writers("f.txt")[0], "user");
    if stage.agent.tells_of_declined {
        // Exactly the bytes that the tool would have written.
        stage.world.file("f.txt", "one\nTWO\nthree\n");
    }
    let sent = run.does(&Does::Read("f.txt"));
    assert!(!sent.contains("by agent"), "{sent}");
    run.ends();
    assert_eq!(stage.writers("f.txt")[0], "user");
    Ok(())
}

fn formatter(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Change f.txt.");
    run.does(&Does::Read("f.txt"));
    let sent = run.does(&Does::Edit("f.txt", "line 5", "the   fifth"));
    assert!(!sent.contains("outside any agent"), "{sent}");
    assert_eq!(stage.text("f.txt"), ten().replace("line 5", "the fifth"));
    run.catches_up("f.txt");
    let sent = run.does(&Does::Edit("f.txt", "line 9", "the   ninth"));
    assert!(!sent.contains("outside any agent"), "{sent}");
    run.ends();
    let both = ten()
        .replace("line 5", "the fifth")
        .replace("line 9", "the ninth");
    assert_eq!(stage.text("f.txt"), both);
    let writers = stage.writers("f.txt");
    assert!(!writers.contains(&"user".to_owned()), "{writers:?}");
    Ok(())
}

fn sub_agent(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    stage.world.file("g.txt", THREE);
    let mut run = stage.ask("Have it done.");
    run.does(&Does::Read("f.txt"));
    let mut sent = run.delegates(|sub| {
        sub.does(&Does::Read("g.txt"));
        sub.does(&Does::Read("f.txt"));
        sub.does(&Does::Edit("f.txt", "line 5", "fifth"));
    });
    assert_eq!(stage.text("f.txt"), ten().replace("line 5", "fifth"));
    sent += &run.does(&Does::Shell("true"));
    assert!(sent.contains("\"f.txt\""), "{sent}");
    assert!(sent.contains("by your sub-agent"), "{sent}");
    run.ends();
    is_agents(stage, "f.txt");
    let sub = stage
        .sessions()
        .into_iter()
        .filter(|one| !one["parent"].is_null());
    assert_eq!(sub.count(), 1, "{:?}", stage.sessions());
    // Files that the sub-agent has read do not count as read by its parent.
    let files = stage.told(&["files", "--session", &stage.session()]);
    assert!(!files.to_string().contains("g.txt"), "{files}");
    Ok(())
}

fn resumption(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Read f.txt.");
    run.does(&Does::Read("f.txt"));
    run.ends();
    stage
        .world
        .file("f.txt", ten().replace("line 2\n", "LINE 2\n"));
    let mut run = stage.ask_further("Now change line 9.");
    let mut sent = run.sent();
    assert!(
        sent.contains("Read f.txt."),
        "the conversation is another: {sent}"
    );
    // An agent without an event for a prompt is told with its next tool.
    if stage.agent.by == By::Hooks && voice::of(stage.agent.name).get("prompt").is_none() {
        sent = run.does(&Does::Shell("true"));
    }
    assert!(sent.contains("\"f.txt\""), "{sent}");
    assert!(sent.contains("outside any agent"), "{sent}");
    run.catches_up("f.txt");
    run.does(&Does::Edit("f.txt", "line 9", "ninth"));
    run.ends();
    let both = ten()
        .replace("line 2\n", "LINE 2\n")
        .replace("line 9", "ninth");
    assert_eq!(stage.text("f.txt"), both);
    stage.session();
    Ok(())
}

fn compaction(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Change line 9 of f.txt.");
    run.does(&Does::Read("f.txt"));
    let resident = || {
        let files = stage.told(&["files", "--session", &stage.session()]);
        files["files"][0]["resident"] == true
    };
    assert!(resident());
    run.fills_up(&Does::Shell("true"));
    assert!(run.holds(ASIDE), "it has not compacted: {}", run.sent());
    assert!(!resident());
    // The right to edit survives compaction.
    run.catches_up("f.txt");
    run.does(&Does::Edit("f.txt", "line 9", "ninth"));
    assert_eq!(stage.text("f.txt"), ten().replace("line 9", "ninth"));
    run.ends();
    Ok(())
}

fn killed_daemon(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Change line 9 of f.txt.");
    run.does(&Does::Read("f.txt"));
    let daemon = stage.world.pid();
    signal(daemon, Signal::KILL);
    wait_gone(daemon);
    stage
        .world
        .file("f.txt", ten().replace("line 2\n", "LINE 2\n"));
    let mut sent = run.does(&Does::Shell("true"));
    // The hook may start the daemon in parallel with the agent's work.
    let answers = || stage.world.run(&["--no-start", "status"]).status.success();
    until("no daemon is started", answers);
    sent += &run.catches_up("f.txt");
    sent += &run.does(&Does::Edit("f.txt", "line 9", "ninth"));
    assert!(sent.contains("\"f.txt\""), "{sent}");
    run.ends();
    let both = ten()
        .replace("line 2\n", "LINE 2\n")
        .replace("line 9", "ninth");
    assert_eq!(stage.text("f.txt"), both);
    is_agents(stage, "f.txt");
    Ok(())
}

/// An undo removes the agent's lines and leaves the user's line.
fn undo(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    // Its store has the content before the agent comes.
    stage.told(&["history", "f.txt"]);
    let mut run = stage.ask("Change line 5 of f.txt.");
    match stage.agent.by {
        By::Hooks => {
            run.does(&Does::Read("f.txt"));
            run.does(&Does::Edit("f.txt", "line 5", "fifth"));
            run.ends();
        }
        By::Mcp => {
            run.does(&Does::Mcp("read_file", json!({"path": "f.txt"})));
            let edit = json!({"path": "f.txt", "oldString": "line 5", "newString": "fifth"});
            run.does(&Does::Mcp("edit_file", edit));
            run.ends();
        }
        By::Run => run.ends_with(&Does::Edit("f.txt", "line 5", "fifth")),
    }
    let fifth = ten().replace("line 5", "fifth");
    assert_eq!(stage.text("f.txt"), fifth);
    is_agents(stage, "f.txt");
    let both = fifth.replace("line 9\n", "line 9, by hand\n");
    stage.world.file("f.txt", both);
    let session = stage.session();
    let mut words = vec!["undo", session.as_str(), "--yes"];
    if stage.agent.by == By::Run {
        // What appears while a command runs may be the user's.
        words.push("--likely");
    }
    stage.touchmark(&words);
    let left = ten().replace("line 9\n", "line 9, by hand\n");
    assert_eq!(stage.text("f.txt"), left);
    Ok(())
}

/// With touchmark's server alone: its tools refuse what the agent's own would
/// overwrite.
fn mcp_alone(stage: &Stage) -> Played {
    stage.world.file("f.txt", ten());
    let mut run = stage.ask("Change f.txt.");
    let sent = run.does(&Does::Mcp("read_file", json!({"path": "f.txt"})));
    assert!(sent.contains("line 10"), "{sent}");
    let changed = ten().replace("line 5", "line 5 by somebody");
    stage.world.file("f.txt", &changed);
    let edit = json!({"path": "f.txt", "oldString": "line 5", "newString": "fifth"});
    run.does(&Does::Mcp("edit_file", edit));
    assert_eq!(stage.text("f.txt"), changed);
    let sent = run.does(&Does::Mcp("read_file", json!({"path": "f.txt"})));
    assert!(sent.contains("line 5 by somebody"), "{sent}");
    let edit = json!({"path": "f.txt", "oldString": "line 5 by somebody", "newString": "fifth"});
    run.does(&Does::Mcp("edit_file", edit));
    run.ends();
    assert_eq!(stage.text("f.txt"), ten().replace("line 5", "fifth"));
    is_agents(stage, "f.txt");
    stage.session();
    Ok(())
}

fn mcp(stage: &Stage) -> Played {
    if stage.agent.by == By::Mcp {
        return mcp_alone(stage);
    }
    stage.world.file("f.txt", ten());
    stage.world.file("g.txt", THREE);
    stage.world.file("h.txt", THREE);
    let mut run = stage.ask("Change f.txt.");
    run.does(&Does::Read("f.txt"));
    let edit = json!({"path": "f.txt", "oldString": "line 5", "newString": "fifth"});
    let sent = run.does(&Does::Mcp("edit_file", edit));
    assert_eq!(
        stage.text("f.txt"),
        ten().replace("line 5", "fifth"),
        "{sent}"
    );
    // The session's own edit is not reported as another agent's.
    let mut sent = run.does(&Does::Mcp("read_file", json!({"path": "g.txt"})));
    assert!(sent.contains("three"), "{sent}");
    run.does(&Does::Mcp("read_file", json!({"path": "h.txt"})));
    run.catches_up("f.txt");
    sent += &run.does(&Does::Edit("f.txt", "line 9", "ninth"));
    assert!(!sent.contains("by agent"), "{sent}");
    let both = ten().replace("line 5", "fifth").replace("line 9", "ninth");
    assert_eq!(stage.text("f.txt"), both, "{sent}");
    // A read by the MCP server counts for the hooks' session.
    stage.world.file("g.txt", "one\nTWO\nthree\n");
    let sent = run.does(&Does::Shell("true"));
    assert!(sent.contains("\"g.txt\""), "{sent}");
    // In one turn, a file's change is told once.
    stage.world.file("h.txt", "one\nTWO\nthree\n");
    let mut sent = run.does(&Does::Mcp(
        "read_file",
        json!({"path": "f.txt", "force": true}),
    ));
    sent += &run.does(&Does::Shell("true"));
    assert!(sent.contains("\"h.txt\""), "{sent}");
    run.ends();
    // There is exactly one session.
    stage.session();
    Ok(())
}
