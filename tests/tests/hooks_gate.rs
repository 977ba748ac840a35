//! HOOK-4: a tool is denied only what would destroy something. The same test
//! for all agents; the truth is the file's final content.

use std::fs;

use serde_json::json;
use touchmark_tests::hooks::{Heard, Talk};
use touchmark_tests::{World, user};

pub(crate) const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "cursor", "opencode"];

/// Returns ten lines, `line 1` to `line 10`.
pub(crate) fn ten() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

/// Runs a test with each of these agents, which has started in a workspace with
/// the file `a.txt`.
pub(crate) fn each(test: impl Fn(&World, &mut Talk<'_>)) {
    for agent in AGENTS {
        let mut world = World::new();
        world.file("a.txt", ten());
        let mut talk = Talk::new(&world, agent, "s");
        talk.start().nothing();
        test(&world, &mut talk);
        world.healthy();
    }
}

/// Edits a file, and returns the text that the model receives afterwards: with
/// the tool's result, or where the agent accepts such a text, at the end of the
/// batch or turn.
fn told_after(talk: &mut Talk<'_>, path: &str, old: &str, new: &str) -> String {
    match talk.edit(path, old, new) {
        Heard::Told(text) => text,
        _ => match talk.voice.batch_end() {
            Some(batch_end) => talk.say(&batch_end).told(),
            None => talk.prompt("next", "go on").told(),
        },
    }
}

fn write(talk: &mut Talk<'_>, path: &str, text: &str) -> Heard {
    let (call, heard) = talk.before_write(path, text);
    if heard == Heard::Nothing {
        fs::write(talk.world.path(path), text).unwrap();
        let _told_of_changes_elsewhere = talk.say(&talk.voice.after_write(&call, path, text));
    }
    heard
}

#[test]
fn hook4_an_edit_beside_a_change_goes_through_and_is_told_of_it() {
    each(|world, talk| {
        talk.read("a.txt").nothing();
        let path = world.path("a.txt");
        user::replace(&path, &ten().replace("line 9", "line nine"));
        let told = told_after(talk, "a.txt", "line 2", "line two");
        assert!(
            told.contains("elsewhere than your edit. Line 9 is now:\n9: line nine"),
            "{told}"
        );
        // A token is four letters or fewer.
        assert!(told.len() <= 60 * 4, "{}: {told}", told.len());
        let expected = ten()
            .replace("line 9", "line nine")
            .replace("line 2", "line two");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        // It counts as seen: it is not told again, and is no more a reason.
        assert_eq!(world.session("s").state("a.txt"), "fresh");
        assert_eq!(talk.edit("a.txt", "line nine", "line 9"), Heard::Nothing);
    });
}

#[test]
fn hook4_an_edit_of_what_has_changed_is_denied_once_with_what_it_is() {
    each(|world, talk| {
        talk.read("a.txt").nothing();
        let path = world.path("a.txt");
        user::replace(&path, &ten().replace("line 5", "line 5 of the user's"));
        let (_, heard) = talk.before_edit("a.txt", "line 5", "line five");
        let reason = heard.denied();
        assert!(
            reason.contains("Line 5 is now:\n5: line 5 of the user's"),
            "{reason}"
        );
        assert!(fs::read_to_string(&path).unwrap().contains("of the user's"));
        talk.edit("a.txt", "line 5", "line five").nothing();
    });
}

#[test]
fn hook4_a_file_is_not_replaced_over_changes_unseen() {
    each(|world, talk| {
        talk.read("a.txt").nothing();
        user::append(&world.path("a.txt"), "mine\n");
        let reason = write(talk, "a.txt", "all new\n").denied();
        assert!(reason.contains("Line 11 is now:\n11: mine"), "{reason}");
        write(talk, "a.txt", "all new\nmine\n").nothing();
        // Who puts the same lines there again destroys none.
        user::append(&world.path("a.txt"), "more\n");
        write(talk, "a.txt", "other\nmine\nmore\n").nothing();
    });
}

#[test]
fn hook4_a_file_not_read_is_edited_by_its_words_and_not_replaced() {
    each(|world, talk| {
        world.file("b.txt", ten());
        talk.edit("b.txt", "line 3", "line three").nothing();
        // No text of it, or more than one: the tool would do something else.
        let (_, heard) = talk.before_edit("a.txt", "nowhere", "x");
        assert!(heard.denied().contains("has not been read"));
        let reason = write(talk, "a.txt", "all new\n").denied();
        assert!(reason.contains("(10 lines, 71 bytes)"), "{reason}");
        assert!(reason.contains("\n1: line 1\n"), "{reason}");
        write(talk, "a.txt", "all new\n").nothing();
    });
}

#[test]
fn hook4_no_line_of_a_secret_is_shown() {
    each(|world, talk| {
        world.file(".env", "KEY=abc\nOTHER=def\n");
        let reason = write(talk, ".env", "KEY=\n").denied();
        assert!(!reason.contains("abc"), "{reason}");
        talk.read(".env").nothing();
        user::replace(&world.path(".env"), "KEY=xyz\nOTHER=def\n");
        let (_, heard) = talk.before_edit(".env", "OTHER=def", "OTHER=x");
        let reason = heard.denied();
        assert!(
            reason.contains("read it again") && !reason.contains("xyz"),
            "{reason}"
        );
        // A token that came into a file that was none.
        let _told_of_the_other = talk.read("a.txt");
        let token = format!("ghp_{}", "a1B2".repeat(9));
        user::append(&world.path("a.txt"), &format!("{token}\n"));
        let (_, heard) = talk.before_edit("a.txt", "line 2", "line two");
        assert!(!heard.denied().contains(&token));
    });
}

#[test]
fn hook4_the_gate_is_the_users_to_set() {
    for (gate, denied) in [("strict", true), ("off", false)] {
        let mut world = World::asleep();
        world.configure(&format!("[hooks]\ngate = \"{gate}\"\n"));
        world.start();
        world.file("a.txt", ten());
        let mut talk = Talk::new(&world, "claude", "s");
        talk.start().nothing();
        let (_, heard) = talk.before_edit("a.txt", "line 2", "line two");
        assert_eq!(
            matches!(heard, Heard::Denied(_)),
            denied,
            "{gate}: {heard:?}"
        );
    }
    let mut world = World::asleep();
    world.configure("[hooks]\ngates = { codex = \"off\" }\n");
    world.start();
    world.file("a.txt", ten());
    for (agent, denied) in [("codex", false), ("claude", true)] {
        let mut talk = Talk::new(&world, agent, agent);
        talk.start().nothing();
        let heard = write(&mut talk, "a.txt", "other\n");
        assert_eq!(
            matches!(heard, Heard::Denied(_)),
            denied,
            "{agent}: {heard:?}"
        );
        world.file("a.txt", ten());
    }
}

/// Reports unsaved lines as an editor would, connected like any client.
fn types(world: &World, lines: serde_json::Value) -> touchmark_tests::Client {
    let mut editor = world.client();
    let dirty = json!({"path": "a.txt", "dirty": true, "lines": lines});
    editor.ok("editor/dirty", dirty);
    editor
}

#[test]
fn hook6_a_write_over_what_the_user_is_typing_is_asked_about_or_denied_once() {
    each(|world, talk| {
        let asks = ["claude", "cursor"].contains(&talk.voice.agent);
        talk.read("a.txt").nothing();
        let mut editor = types(world, json!({"start": 4, "end": 5}));
        // Elsewhere: only who can have his user ask says anything.
        if !asks {
            talk.edit("a.txt", "line 9", "line nine");
        }
        let (call, heard) = talk.before_edit("a.txt", "line 5", "line five");
        match (asks, heard) {
            (true, Heard::Asked(text)) => {
                assert!(
                    text.contains("unsaved changes in an editor (lines 4-5)"),
                    "{text}"
                );
                // The user has agreed: the write is the agent's.
                let path = world.path("a.txt");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(&path, text.replace("line 5", "line five")).unwrap();
                talk.say(&talk.voice.after_edit(&call, "a.txt", "line 5", "line five"));
                let history = world.client().ok("file/history", json!({"path": "a.txt"}));
                assert_eq!(
                    history["versions"][0]["author"]["kind"], "agent",
                    "{history}"
                );
            }
            (false, Heard::Denied(text)) => {
                assert!(
                    text.contains("(lines 4-5), where this tool would write"),
                    "{text}"
                );
            }
            (_, other) => panic!("{}: {other:?}", talk.voice.agent),
        }
        // Once, until it is saved.
        talk.edit("a.txt", "line 4", "line four").nothing();
        editor.ok("editor/dirty", json!({"path": "a.txt", "dirty": false}));
        talk.edit("a.txt", "line 3", "line three").nothing();
        let _editor = types(world, json!({"start": 1, "end": 2}));
        let (_, heard) = talk.before_edit("a.txt", "line 2", "line two");
        assert_ne!(heard, Heard::Nothing, "{}", talk.voice.agent);
    });
}

#[test]
fn hook6_what_an_editor_has_not_said_denies_nothing() {
    each(|world, talk| {
        world.client().ok("ping", json!({}));
        talk.read("a.txt").nothing();
        let _editor = types(world, serde_json::Value::Null);
        let (_, heard) = talk.before_edit("a.txt", "line 5", "line five");
        match heard {
            Heard::Asked(text) => assert!(text.contains("in an editor. Save"), "{text}"),
            other => other.nothing(),
        }
    });
}

#[test]
fn hook4_lines_that_were_never_shown_are_not_replaced_unasked() {
    each(|world, talk| {
        let lines: String = (1..=100).map(|n| format!("value {n}\n")).collect();
        world.file("b.txt", &lines);
        // One line of a hundred is read, by a client of the same session.
        let range = json!({"start": 50, "end": 50});
        let mut session = world.session("s");
        session.ok("file/read", json!({"path": "b.txt", "range": range}));
        let reason = write(talk, "b.txt", "value 50\n").denied();
        assert!(reason.contains("99 lines"), "{reason}");
        assert!(reason.contains("\n1: value 1\n"), "{reason}");
        write(talk, "b.txt", "value 50\n").nothing();
        // What was seen before the context was cut still counts.
        world.file("c.txt", &lines);
        talk.read("c.txt").nothing();
        let _no_such_event = talk.say(&talk.voice.compacted());
        write(talk, "c.txt", "new\n").nothing();
    });
}

#[test]
fn hook4_a_secret_is_not_replaced_before_it_was_read() {
    each(|world, talk| {
        world.file(".env", "ONE=1\nTWO=2\n");
        let range = json!({"start": 1, "end": 1});
        let mut session = world.session("s");
        session.ok("file/read", json!({"path": ".env", "range": range}));
        for _ in 0..2 {
            let reason = write(talk, ".env", "ONE=2\n").denied();
            assert!(reason.contains("1 line"), "{reason}");
            assert!(!reason.contains("TWO"), "{reason}");
        }
        session.ok("file/read", json!({"path": ".env"}));
        write(talk, ".env", "ONE=2\n").nothing();
    });
}

#[test]
fn hook4_an_edit_that_quotes_what_has_changed_goes_through() {
    each(|world, talk| {
        talk.read("a.txt").nothing();
        let _own = talk.shell("sed -i s/5$/five/ a.txt");
        let heard = talk.edit("a.txt", "line five\n", "line 50\n");
        assert!(!matches!(heard, Heard::Denied(_)), "{heard:?}");
        assert!(
            fs::read_to_string(world.path("a.txt"))
                .unwrap()
                .contains("line 50")
        );
        // A part of a line may have been known before.
        user::replace(
            &world.path("a.txt"),
            &ten().replace("line 7", "line 7, mine"),
        );
        let (_, heard) = talk.before_edit("a.txt", "line 7", "line seven");
        let _reason = heard.denied();
        // A repeated call would fail, so it is not proposed.
        user::replace(&world.path("a.txt"), &ten().replace("line 8", "eight"));
        let (_, heard) = talk.before_edit("a.txt", "line 8", "line eight");
        let reason = heard.denied();
        assert!(reason.contains("adapt your edit"), "{reason}");
    });
}

#[test]
fn hook4_a_file_that_others_removed_is_not_created_again_unasked() {
    each(|world, talk| {
        talk.read("a.txt").nothing();
        fs::rename(world.path("a.txt"), world.path("b.txt")).unwrap();
        world.client().ok("sync", json!({}));
        let reason = write(talk, "a.txt", "new\n").denied();
        assert!(
            reason.contains("was moved to \"b.txt\" outside any agent"),
            "{reason}"
        );
        let again = write(talk, "a.txt", "new\n");
        assert!(!matches!(again, Heard::Denied(_)), "{again:?}");
        // A session that was told of the removal is asked, too.
        fs::remove_file(world.path("a.txt")).unwrap();
        talk.read("b.txt");
        fs::remove_file(world.path("b.txt")).unwrap();
        let _told_where_the_agent_takes_text = talk.prompt("next", "go on");
        let reason = write(talk, "b.txt", "new\n").denied();
        assert!(reason.contains("was deleted outside any agent"), "{reason}");
    });
    // What the session's own command removed is its own.
    each(|world, talk| {
        talk.read("a.txt").nothing();
        let _own = talk.shell("rm a.txt");
        assert!(!world.path("a.txt").exists());
        let heard = write(talk, "a.txt", "new\n");
        assert!(!matches!(heard, Heard::Denied(_)), "{heard:?}");
    });
}

#[test]
fn hook5_a_file_that_keeps_changing_is_told_once_in_a_turn() {
    each(|world, talk| {
        talk.prompt("first", "x").nothing();
        talk.read("a.txt").nothing();
        let mut told = 0;
        for n in 0..8 {
            user::replace(
                &world.path("a.txt"),
                &ten().replace("line 9", &format!("{n} mine")),
            );
            let heard = talk.shell("true");
            told += usize::from(format!("{heard:?}").contains("a.txt"));
        }
        assert!(told <= 1, "{told} times");
        let next = format!("{:?}", talk.prompt("next", "go on"));
        // Not every agent takes a text with a prompt.
        assert!(
            talk.voice.batch_end().is_none() || next.contains("times"),
            "{next}"
        );
    });
}
