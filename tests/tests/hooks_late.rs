//! HOOK-2 and SEEN-9: hooks that returned before the daemon had answered.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::hooks::{self, Heard, Talk, printed, run};
use touchmark_tests::process::Stopped;
use touchmark_tests::{World, user};

const AGENT: &str = "claude";
const TEXT: &str = "one\ntwo\nthree\n";

fn begun(world: &World) -> Talk<'_> {
    world.file("a.txt", TEXT);
    world.file("b.txt", TEXT);
    let mut talk = Talk::new(world, AGENT, "s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    talk
}

/// Runs a hook as the agent does, with the default time budget.
fn hurried(world: &World, event: &Value) -> Heard {
    let output = run(world, AGENT, event.to_string().as_bytes(), false);
    hooks::heard(AGENT, &printed(&output))
}

/// Runs a hook that waits for its answer.
fn say(world: &World, event: &Value) -> Heard {
    let output = run(world, AGENT, event.to_string().as_bytes(), true);
    hooks::heard(AGENT, &printed(&output))
}

/// Runs a hook while the daemon hangs.
fn unanswered(world: &World, event: &Value) {
    let _stopped = Stopped::new(world.pid());
    hurried(world, event).nothing();
}

/// Runs a hook where no daemon runs and none may be started.
fn unheard(world: &World, event: &Value) {
    let command = world.command(&["--no-start", "hook", AGENT]);
    let output = hooks::feed(command, event.to_string().as_bytes());
    hooks::heard(AGENT, &printed(&output)).nothing();
}

fn missed(world: &World) -> u64 {
    let stats = world.client().ok("stats", json!({}));
    stats["unansweredHooks"].as_u64().unwrap()
}

fn doctor(world: &World, check: &str) -> String {
    let output = world.run(&["--json", "doctor"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut checks = found["checks"].as_array().unwrap().iter();
    let finding = checks.find(|finding| finding["check"] == check);
    finding.map_or_else(String::new, |finding| finding["says"].to_string())
}

#[test]
fn hook2_a_denial_that_came_too_late_is_told_with_the_next_event() {
    let mut world = World::new();
    let talk = begun(&world);
    user::write(&world.path("a.txt"), "one\ntwo\nthree\nmine\n");
    world.client().ok("sync", json!({}));
    let content = "the agent's\n";
    unanswered(&world, &talk.voice.before_write("w", "a.txt", content));
    // The tool runs, and its end is reported.
    fs::write(world.path("a.txt"), content).unwrap();
    let told = talk
        .say(&talk.voice.after_write("w", "a.txt", content))
        .told();
    assert!(
        told.contains("touchmark could not answer in time at "),
        "{told}"
    );
    assert!(
        told.contains("Its answer would have been: \"a.txt\" was changed outside any agent at "),
        "{told}"
    );
    assert!(told.contains("read it again before changing it"), "{told}");
    // Once, and counted.
    let told = match talk.prompt("p1", "go on") {
        Heard::Told(told) => told,
        _ => String::new(),
    };
    assert!(!told.contains("could not answer"), "{told}");
    assert_eq!(missed(&world), 1);
    assert!(doctor(&world, "hooks in time").contains("1 hook"));
    assert!(doctor(&world, "hooks").contains("no missed hook event"));
    world.healthy();
}

#[test]
fn hook2_late_words_are_told_again_until_they_have_arrived() {
    let world = World::new();
    let talk = begun(&world);
    user::append(&world.path("a.txt"), "mine\n");
    world.client().ok("sync", json!({}));
    unanswered(&world, &talk.voice.before_edit("e", "a.txt", "one", "1"));
    // The daemon answers, and no client says that it has arrived.
    let event = talk.voice.prompt("p1", "go on");
    for _ in 0..2 {
        let answer = world
            .client()
            .ok("hook/event", json!({"agent": "claude", "input": event}));
        assert!(answer.to_string().contains("could not answer"), "{answer}");
    }
    assert!(talk.say(&event).told().contains("could not answer"));
    talk.say(&event).nothing();
}

#[test]
fn hook2_what_would_have_been_let_through_is_not_told() {
    let mut world = World::new();
    let mut talk = begun(&world);
    let (old, new) = ("one", "1");
    unanswered(&world, &talk.voice.before_edit("e", "a.txt", old, new));
    fs::write(world.path("a.txt"), TEXT.replace(old, new)).unwrap();
    talk.say(&talk.voice.after_edit("e", "a.txt", old, new))
        .nothing();
    // A new file, and one that was not read.
    unanswered(&world, &talk.voice.before_write("n", "new.txt", "new\n"));
    world.file("new.txt", "new\n");
    talk.say(&talk.voice.after_write("n", "new.txt", "new\n"))
        .nothing();
    let (_, heard) = talk.before_write("b.txt", "1\n");
    assert!(heard.denied().contains("has not been read"));
    assert_eq!(missed(&world), 2);
    world.healthy();
}

/// A read that the daemon missed does not cause a denial of an edit.
#[test]
fn seen9_a_read_that_was_missed_denies_nothing() {
    let mut world = World::new();
    let voice = begun(&world).voice;
    world.session("s").sync();
    user::append(&world.path("a.txt"), "mine\n");
    assert_eq!(world.session("s").state("a.txt"), "stale");
    world.kill();
    unheard(&world, &voice.before_read("r", "b.txt"));
    unheard(&world, &voice.after_read("r", "b.txt", TEXT));
    unheard(&world, &voice.before_read("q", "a.txt"));
    unheard(&world, &voice.after_read("q", "a.txt", "x\n"));
    assert!(doctor(&world, "hooks").contains("4 got no answer in time"));
    world.start();
    let mut talk = Talk::new(&world, AGENT, "s");
    talk.prompt("p1", "go on").nothing();
    let mut session = world.session("s");
    for name in ["a.txt", "b.txt"] {
        let status = session.status(name);
        assert_eq!(status["state"], "unknown", "{status}");
        assert_eq!(status["mayEdit"], true, "{status}");
    }
    // What changes from now on is told; nothing is denied.
    user::append(&world.path("b.txt"), "four\n");
    let told = talk.prompt("p2", "go on").told();
    assert!(told.contains("b.txt"), "{told}");
    assert_eq!(session.state("b.txt"), "unknown");
    talk.edit("b.txt", "one", "1").nothing();
    talk.edit("a.txt", "one", "1").nothing();
    // Its own writes are known again. What it may have read is not lost to
    // them; what came after that is.
    for name in ["a.txt", "b.txt"] {
        assert_eq!(session.state(name), "fresh", "{name}");
    }
    assert_eq!(session.taken(), ["b.txt"]);
    assert_eq!(missed(&world), 4);
    assert!(doctor(&world, "hooks").contains("no missed hook event"));
    world.healthy();
}

/// The missed read is remembered across a restart. Guarded writes still check
/// twice, since they promise never to destroy unseen content (GUARD-1).
#[test]
fn seen9_what_is_unknown_stays_so_over_a_restart_and_a_guarded_write_refuses_it() {
    let mut world = World::new();
    let voice = begun(&world).voice;
    world.kill();
    unheard(&world, &voice.after_read("r", "b.txt", TEXT));
    world.start();
    say(&world, &voice.prompt("p1", "go on")).nothing();
    for kill in [true, false] {
        match kill {
            true => world.kill(),
            false => assert_eq!(world.stop(), Some(0)),
        }
        world.start();
        assert_eq!(world.session("s").state("b.txt"), "unknown", "{kill}");
    }
    let mut session = world.session("s");
    let write = json!({"path": "b.txt", "text": "x\n"});
    session.refused("file/write", write, "notRead");
    session.read("b.txt");
    assert_eq!(session.state("b.txt"), "fresh");
    world.healthy();
}

/// An event that the daemon receives after its agent has continued takes
/// effect, and only once.
#[test]
fn hook2_a_read_that_was_heard_late_is_no_missed_one() {
    let mut world = World::new();
    let talk = begun(&world);
    unanswered(&world, &talk.voice.before_read("r", "b.txt"));
    unanswered(&world, &talk.voice.after_read("r", "b.txt", TEXT));
    talk.prompt("p1", "go on").nothing();
    let status = world.session("s").status("b.txt");
    assert_eq!(status["state"], "fresh", "{status}");
    assert_eq!(status["readCount"], 1, "{status}");
    assert_eq!(missed(&world), 2);
    world.healthy();
}

/// Events that the daemon missed take effect later: a tool's write is its
/// session's, a command's window ends, a compaction is recorded.
#[test]
fn hook2_what_happened_unheard_takes_effect_with_the_next_event() {
    let mut world = World::new();
    let (old, new) = ("one", "1");
    let (call, heard) = begun(&world).before_edit("a.txt", old, new);
    heard.nothing();
    fs::write(world.path("a.txt"), TEXT.replace(old, new)).unwrap();
    world.restart();
    let mut talk = Talk::new(&world, AGENT, "s");
    unanswered(&world, &talk.voice.after_edit(&call, "a.txt", old, new));
    talk.prompt("p1", "go on").nothing();
    let mut session = world.session("s");
    assert_eq!(session.story("a.txt"), ["agent:s declared"]);
    assert_eq!(session.status("a.txt")["resident"], false);
    talk.read("a.txt").nothing();
    assert_eq!(session.status("a.txt")["resident"], true);
    unanswered(&world, &talk.voice.compacted());
    talk.prompt("p2", "go on").nothing();
    assert_eq!(session.status("a.txt")["resident"], false);
    let status = world.client().ok("status", json!({}));
    assert_eq!(status["openEdits"], 0, "{status}");
    world.healthy();
}

/// A busy loop, until dropped.
struct Busy(Child);

impl Busy {
    fn new() -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]);
        Self(shell.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A write to a stale file, with the agent's time budget, on an overloaded
/// machine: it is denied, or reported with the next event. None passes
/// unreported.
#[test]
fn hook2_under_load_no_stale_write_passes_in_silence() {
    let mut world = World::new();
    let talk = begun(&world);
    let load: Vec<Busy> = (0..8).map(|_| Busy::new()).collect();
    let mut late = 0;
    for round in 0..20 {
        user::write(&world.path("a.txt"), &format!("user {round}\n"));
        let event = talk
            .voice
            .before_write(&format!("w{round}"), "a.txt", "zzz\n");
        match hurried(&world, &event) {
            Heard::Denied(reason) => assert!(reason.contains("counts as read now"), "{reason}"),
            Heard::Nothing => {
                late += 1;
                let told = talk.prompt(&format!("p{round}"), "go on").told();
                assert!(told.contains("could not answer in time"), "{told}");
            }
            other => panic!("{other:?}"),
        }
    }
    drop(load);
    assert_eq!(missed(&world), late);
    world.healthy();
}

/// The first hook of a day: no daemon runs, and the session has read the file
/// before.
#[test]
fn hook2_a_cold_start_denies_a_stale_write_or_tells_it_later() {
    let mut world = World::new();
    std::fs::create_dir(world.path(".git")).unwrap();
    let voice = begun(&world).voice;
    for kill in [false, true] {
        match kill {
            false => assert_eq!(world.stop(), Some(0)),
            true => world.kill(),
        }
        user::append(&world.path("a.txt"), "mine\n");
        match hurried(&world, &voice.before_write("w", "a.txt", "zzz\n")) {
            Heard::Denied(reason) => assert!(reason.contains("counts as read now"), "{reason}"),
            Heard::Nothing => {
                let told = say(&world, &voice.prompt(&format!("p{kill}"), "go on")).told();
                assert!(told.contains("could not answer in time"), "{told}");
            }
            other => panic!("{other:?}"),
        }
        world.client().ok("shutdown", json!({}));
        let gone = || !world.socket().exists();
        touchmark_tests::process::until("the daemon does not end", gone);
        world.start();
    }
}
