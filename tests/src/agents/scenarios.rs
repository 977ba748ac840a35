//! What is played with each agent. What is true is taken from outside: bytes on
//! disk, what the model was sent, and touchmark's own word for who wrote.

use super::{Does, Setting, Stage};

/// What came of a scenario that did not fail: `Err` where the agent has no such
/// thing, and why.
pub type Played = Result<(), &'static str>;

/// One of them.
pub struct Scenario {
    /// As the documents' table calls it.
    pub name: &'static str,
    /// What the agent is set up for.
    pub setting: Setting,
    /// Plays it; panics where something is wrong.
    pub play: fn(&Stage) -> Played,
}

const PLAIN: Setting = Setting {
    mcp: false,
    formatter: None,
    declines: false,
    patches: false,
};

/// All of them, in the order of the documents' table.
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
];

const THREE: &str = "one\ntwo\nthree\n";

/// A file with ten lines, `line 1` to `line 10`.
fn ten() -> String {
    (1..=10).map(|line| format!("line {line}\n")).collect()
}

/// Who wrote a file last is an agent, and no one else was asked about.
fn is_agents(stage: &Stage, file: &str) {
    let writers = stage.writers(file);
    assert!(writers[0].starts_with("agent:"), "{file}: {writers:?}");
}

/// Nothing of touchmark's is in what a model was sent.
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
    // Told once.
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
