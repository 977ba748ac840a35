//! What a tool has written is its session's, in whatever form and from whatever
//! content the tool has written it (ATTR-4, ATTR-14).

use std::fs;

use serde_json::json;
use touchmark_tests::hooks::{Heard, Talk};
use touchmark_tests::{World, user};

use crate::hooks_gate::{AGENTS, each, ten};

/// Returns `author evidence` of a file's newest version, as it was corrected.
fn newest(world: &World, path: &str) -> String {
    let answer = world.client().ok("file/history", json!({"path": path}));
    let version = &answer["versions"][0];
    let author = &version["author"];
    let who = author["session"].as_str().or(author["kind"].as_str());
    format!("{} {}", who.unwrap(), version["evidence"].as_str().unwrap())
}

/// Returns a text as the bytes of a file with a byte order mark and CRLF.
fn windows(text: &str) -> Vec<u8> {
    format!("\u{feff}{}", text.replace('\n', "\r\n")).into()
}

/// Returns a text as the bytes of a file in Latin-1.
fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

#[test]
fn a_whole_write_may_keep_the_form_of_the_file() {
    let text = ten().replace("line 2", "ligne été");
    for form in [windows, latin] {
        for agent in AGENTS {
            let world = World::new();
            world.file("a.txt", form(&text));
            let mut talk = Talk::new(&world, agent, "s");
            talk.start().nothing();
            talk.read("a.txt").nothing();
            let mut text = text.clone();
            for line in ["line 5", "line 7"] {
                text = text.replace(line, &format!("{line} of the agent"));
                let (call, heard) = talk.before_write("a.txt", &text);
                heard.nothing();
                fs::write(world.path("a.txt"), form(&text)).unwrap();
                let _no_reason = talk.say(&talk.voice.after_write(&call, "a.txt", &text));
                assert!(newest(&world, "a.txt").starts_with("s "), "{agent}");
            }
            talk.prompt("next", "go on").nothing();
            // A line of the user's, in the file's form, is not overwritten.
            let users = text.replace("line 9", "line of the user");
            fs::write(world.path("a.txt"), form(&users)).unwrap();
            let (_, heard) = talk.before_write("a.txt", &text.replace("line 3", "three"));
            let reason = heard.denied();
            assert!(reason.contains("9: line of the user"), "{agent}: {reason}");
        }
    }
}

#[test]
fn a_tool_may_complete_the_last_line() {
    let world = World::new();
    let mut talk = Talk::new(&world, "gemini", "s");
    talk.start().nothing();
    let (call, heard) = talk.before_write("new.txt", "a\nb");
    heard.nothing();
    fs::write(world.path("new.txt"), "a\nb\n").unwrap();
    let _no_reason = talk.say(&talk.voice.after_write(&call, "new.txt", "a\nb"));
    assert!(newest(&world, "new.txt").starts_with("s "));
}

#[test]
fn a_tool_that_writes_from_what_its_session_saw_is_its_sessions() {
    each(|world, talk| {
        let agent = talk.voice.agent;
        talk.read("a.txt").nothing();
        let (call, heard) = talk.before_edit("a.txt", "line 2\n", "line two\n");
        heard.nothing();
        user::replace(&world.path("a.txt"), &ten().replace("line 9", "line nine"));
        world.client().ok("sync", json!({}));
        // The tool has the file in memory from before the user's save.
        user::replace(&world.path("a.txt"), &ten().replace("line 2", "line two"));
        let after = talk
            .voice
            .after_edit(&call, "a.txt", "line 2\n", "line two\n");
        let _told = talk.say(&after);
        assert!(newest(world, "a.txt").starts_with("s "), "{agent}");
        let undone = world.run(&["undo", "s", "--yes"]);
        assert!(undone.status.success(), "{agent}: {undone:?}");
        let left = fs::read_to_string(world.path("a.txt")).unwrap();
        assert!(left.contains("line 2\n"), "{agent}: {left}");
    });
}

#[test]
fn two_agents_edit_one_file_at_the_same_time() {
    for agent in AGENTS {
        let world = World::new();
        world.file("a.txt", ten());
        let (mut one, mut two) = (
            Talk::new(&world, agent, "one"),
            Talk::new(&world, agent, "two"),
        );
        for talk in [&mut one, &mut two] {
            talk.start().nothing();
            talk.read("a.txt").nothing();
        }
        let (first, heard) = one.before_edit("a.txt", "line 2\n", "line two\n");
        heard.nothing();
        let (second, heard) = two.before_edit("a.txt", "line 9\n", "line nine\n");
        heard.nothing();
        let path = world.path("a.txt");
        let text = ten().replace("line 2\n", "line two\n");
        user::replace(&path, &text);
        user::replace(&path, &text.replace("line 9\n", "line nine\n"));
        let after = one
            .voice
            .after_edit(&first, "a.txt", "line 2\n", "line two\n");
        let _told = one.say(&after);
        let after = two
            .voice
            .after_edit(&second, "a.txt", "line 9\n", "line nine\n");
        let _told = two.say(&after);
        assert!(newest(&world, "a.txt").starts_with("two "), "{agent}");
        let next = two.edit("a.txt", "line 5\n", "line five\n");
        assert!(!matches!(next, Heard::Denied(_)), "{agent}: {next:?}");
    }
}

#[test]
fn a_tool_whose_announcement_was_not_answered_is_claimed_by_its_report() {
    each(|world, talk| {
        let agent = talk.voice.agent;
        talk.read("a.txt").nothing();
        user::replace(&world.path("a.txt"), &ten().replace("line 2", "line two"));
        let call = talk.call();
        let after = talk
            .voice
            .after_edit(&call, "a.txt", "line 2\n", "line two\n");
        let _nothing = talk.say(&after);
        assert!(newest(world, "a.txt").starts_with("s "), "{agent}");
        talk.edit("a.txt", "line two\n", "line 2\n").nothing();
        // What the report does not explain stays the user's.
        user::replace(&world.path("a.txt"), &ten().replace("line 3", "the user's"));
        let call = talk.call();
        let after = talk
            .voice
            .after_edit(&call, "a.txt", "line 7\n", "line seven\n");
        let _told = talk.say(&after);
        assert_eq!(newest(world, "a.txt"), "user unmarked", "{agent}");
    });
}
