//! Hooks that are installed twice, by a package and in settings, with different
//! command lines, so that the agent runs both: versions and denials are as with
//! one.

use std::fs;
use std::thread;

use serde_json::Value;
use touchmark_tests::hooks::{Heard, Talk, voice};
use touchmark_tests::{World, user};

/// Sends an event twice in parallel, as agents run hooks. Returns both answers.
fn twice(talk: &Talk<'_>, event: &Value) -> Vec<Heard> {
    let heard = thread::scope(|scope| {
        let other = scope.spawn(|| talk.say(event));
        [talk.say(event), other.join().unwrap()]
    });
    heard
        .into_iter()
        .filter(|heard| *heard != Heard::Nothing)
        .collect()
}

#[test]
fn an_event_that_is_told_twice_makes_one_version_and_stops_nothing() {
    for agent in voice::agents() {
        let world = World::new();
        world.file("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
        world.file("b.rs", "fn other() {}\n");
        let talk = Talk::new(&world, agent, "s");
        let mut session = world.session("s");
        let voice = &talk.voice;
        let nothing = |event: &Value| assert_eq!(twice(&talk, event), [], "{agent}: {event}");
        if voice.has("start") {
            nothing(&voice.start("startup"));
        }
        // Vibe and others report no prompt.
        let hears = voice.has("prompt");
        if hears {
            nothing(&voice.prompt("p1", "rename"));
        }
        for (call, path) in [("1", "a.rs"), ("2", "b.rs")] {
            let text = fs::read_to_string(world.path(path)).unwrap();
            nothing(&voice.before_read(call, path));
            nothing(&voice.after_read(call, path, &text));
        }
        nothing(&voice.before_edit("3", "a.rs", "fn a() {}", "fn x() {}"));
        user::replace(&world.path("a.rs"), "fn x() {}\nfn b() {}\nfn c() {}\n");
        nothing(&voice.after_edit("3", "a.rs", "fn a() {}", "fn x() {}"));
        assert_eq!(session.story("a.rs"), ["agent:s declared"], "{agent}");

        // The second has on record what the first reported of the command.
        nothing(&voice.before_shell("4", "true"));
        nothing(&voice.after_shell("4", "true", ""));

        // What others changed is told, by both if they ask at once.
        user::write(&world.path("b.rs"), "fn other() { 1 }\n");
        if hears {
            let told = twice(&talk, &voice.prompt("p2", "go on"));
            let takes =
                &voice::of(agent)["takes"][voice::event_name(agent, &voice.prompt("p", ""))];
            let place = voice::of(agent)["told"].as_str().unwrap_or_default();
            let tells = takes
                .get(place.trim_start_matches('/').replace('/', "."))
                .is_some();
            assert!(!tells || !told.is_empty(), "{agent}: {told:?}");
        }

        // One of them denies what would destroy, which is enough.
        user::write(&world.path("a.rs"), "fn x() {}\nfn mine() {}\nfn c() {}\n");
        let heard = twice(
            &talk,
            &voice.before_edit("5", "a.rs", "fn b() {}", "fn y() {}"),
        );
        assert!(
            heard.iter().any(|heard| matches!(heard, Heard::Denied(_))),
            "{agent}: {heard:?}"
        );
        assert_eq!(session.story("a.rs").len(), 2, "{agent}");
        if voice.has("end") {
            nothing(&voice.end());
        }
    }
}
