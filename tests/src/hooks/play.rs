//! A whole session, the same for all agents: read, edit, a save by the user,
//! denied edit, re-read, edit, shell command, compaction, end.

use serde_json::json;

use super::Talk;
use crate::{World, text, user};

/// The notice about the user's save of a file that the session has read.
const NOTICE: &str = "Changed since you last saw them: \"src/other.rs\" (modified outside any agent, 1 line added, 1 line removed, now:\n1: fn other() { 1 }\n).";

/// Plays the session of an agent.
pub fn whole_session(agent: &'static str) {
    let mut world = World::asleep();
    // What the other gates allow is tested elsewhere.
    world.configure("[hooks]\ngate = \"strict\"\n");
    world.start();
    world.file("src/a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    world.file("src/other.rs", "fn other() {}\n");
    let mut talk = Talk::new(&world, agent, "conversation-1");
    let mut session = world.session("conversation-1");
    let (a, other) = (world.path("src/a.rs"), world.path("src/other.rs"));

    talk.start().nothing();
    talk.prompt("p1", "rename a").nothing();

    // An edit of a file that was not read is denied, with one sentence.
    let (_, heard) = talk.before_edit("src/a.rs", "fn a() {}", "fn x() {}");
    let reason = heard.denied();
    assert!(
        reason.starts_with("\"src/a.rs\" exists and has not been read in this session"),
        "{reason}"
    );

    talk.read("src/a.rs").nothing();
    assert_eq!(session.state("src/a.rs"), "fresh");
    talk.edit("src/a.rs", "fn a() {}", "fn x() {}").nothing();
    assert_eq!(
        session.story("src/a.rs"),
        ["agent:conversation-1 declared"],
        "what the tool will write is declared before"
    );
    // The session's own edit counts as seen.
    talk.edit("src/a.rs", "fn b() {}", "fn y() {}").nothing();
    talk.read("src/other.rs").nothing();

    // The user saves both files.
    user::replace(&a, "fn x() {}\nfn y() {}\nfn c() {}\n// mine\n");
    user::write(&other, "fn other() { 1 }\n");
    let (_, heard) = talk.before_edit("src/a.rs", "fn c() {}", "fn z() {}");
    let reason = heard.denied();
    for part in [
        "\"src/a.rs\" was changed outside any agent at ",
        "(1 line added, 0 lines removed)",
        "read it again before changing it.",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    // One notice, once, of the files that are still out of date. An agent that
    // cannot receive a notice is denied the edits that would destroy something.
    let tells = talk.voice.has("told");
    let after = talk.read("src/a.rs");
    let told = match talk.voice.batch_end() {
        Some(batch_end) => {
            after.nothing();
            let told = talk.say(&batch_end).told();
            talk.say(&batch_end).nothing();
            Some(told)
        }
        None if tells => Some(after.told()),
        None => {
            after.nothing();
            None
        }
    };
    assert_eq!(told.as_deref().unwrap_or(NOTICE), NOTICE);
    talk.edit("src/a.rs", "fn c() {}", "fn z() {}").nothing();

    // A command's changes are the session's, and still make its copies stale.
    talk.read("src/other.rs").nothing();
    let after = talk.shell("sed -i s/1/2/ src/other.rs");
    if tells {
        let told = after.told();
        assert!(
            told.starts_with(
                "Changed while this command ran, by the command or by another author: \"src/other.rs\""
            ),
            "{told}"
        );
        assert!(told.contains("1 line added, 1 line removed"), "{told}");
    } else {
        after.nothing();
    }
    assert_eq!(session.state("src/other.rs"), "stale");
    assert_eq!(
        session.story("src/other.rs").last().map(String::as_str),
        Some("agent:conversation-1 command")
    );

    // The agent writes a new file.
    let call = talk.call();
    let content = "fn new() {}\n";
    talk.say(&talk.voice.before_write(&call, "src/deep/new.rs", content))
        .nothing();
    world.file("src/deep/new.rs", content);
    talk.say(&talk.voice.after_write(&call, "src/deep/new.rs", content))
        .nothing();
    assert_eq!(session.state("src/deep/new.rs"), "fresh");

    assert_eq!(session.status("src/a.rs")["mayEdit"], true);
    if talk.voice.has("compacted") {
        talk.say(&talk.voice.compacted()).nothing();
        assert_eq!(session.status("src/a.rs")["resident"], false);
        assert_eq!(session.status("src/a.rs")["mayEdit"], true);
    }
    talk.say(&talk.voice.stop()).nothing();
    let edits = session.client.ok("status", json!({}));
    assert_eq!(edits["openEdits"], 0);
    let stats = session.client.ok("stats", json!({}));
    assert_eq!(stats["unclearHooks"], 0, "all of it is understood");
    if !talk.voice.has("end") {
        world.healthy();
        return;
    }
    talk.say(&talk.voice.end()).nothing();

    let sessions = session.client.ok("session/list", json!({}));
    let row = &sessions["sessions"][0];
    assert_eq!(text(row, "session"), "conversation-1");
    assert_eq!(row["open"], false, "{row}");
    // A late event does not reopen the session.
    talk.say(&talk.voice.before_read("late", "src/a.rs"))
        .nothing();
    let sessions = session.client.ok("session/list", json!({}));
    assert_eq!(sessions["sessions"][0]["open"], false);
    world.healthy();
}
