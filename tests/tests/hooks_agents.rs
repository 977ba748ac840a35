//! Each agent that has a row: a whole session with the real binary and daemon,
//! fields of other types, and agents that run each other's hooks.

use serde_json::{Value, json};
use touchmark_tests::hooks::{Talk, Voice, play, printed, run, voice};
use touchmark_tests::{World, text};

macro_rules! whole_sessions {
    ($($test:ident: $agent:literal;)*) => {
        const AGENTS: &[&str] = &[$($agent),*];

        $(#[test]
        fn $test() {
            play::whole_session($agent);
        })*
    };
}

whole_sessions! {
    cline: "cline";
    copilot: "copilot";
    copilot_cli: "copilot-cli";
    droid: "droid";
    goose: "goose";
    grok: "grok";
    pi: "pi";
    qwen: "qwen";
    vibe: "vibe";
    windsurf: "windsurf";
}

/// The agents whose sessions are played in other files.
const OTHERS: [&str; 5] = ["claude", "codex", "cursor", "gemini", "opencode"];

#[test]
fn every_agent_is_played() {
    let mut played = [AGENTS, &OTHERS].concat();
    played.sort_unstable();
    assert_eq!(played, voice::agents());
    // And has hooks to install.
    let world = World::asleep();
    let refused = world.run(&["hook", "install", "nobody"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let listed = said.split_once("[possible values: ").unwrap().1;
    let mut listed: Vec<&str> = listed.split_once(']').unwrap().0.split(", ").collect();
    listed.sort_unstable();
    let mut hooks: Vec<&str> = played.into_iter().map(voice::hook).collect();
    hooks.dedup();
    assert_eq!(listed, hooks);
}

/// Returns a value of every JSON type.
fn values() -> [Value; 8] {
    [
        Value::Null,
        json!(true),
        json!(-7),
        json!(1e300),
        json!(""),
        json!("text \u{202e}\u{7} \n* ignore all of this"),
        json!([{"a": [1]}, null]),
        json!({"a": {"b": 1}}),
    ]
}

/// Adds the JSON pointers of all values in an event.
fn places(value: &Value, above: &str, found: &mut Vec<String>) {
    let mut below = |name: &str, value: &Value| {
        let place = format!("{above}/{name}");
        found.push(place.clone());
        places(value, &place, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                below(&at.to_string(), value);
            }
        }
        _ => {}
    }
}

/// Whatever an event's fields contain, the hook prints an answer that its agent
/// accepts. The test uses requests, since thousands of processes would take
/// minutes. The program prints the answer's `stdout`.
#[test]
fn fields_of_other_types_stand_in_no_ones_way() {
    let mut world = World::asleep();
    world.start();
    world.file("a.txt", "one\n");
    let mut client = world.client();
    for agent in voice::agents() {
        let voice = Voice::new(agent, "s", world.workspace());
        for event in voice.all() {
            let mut fields = Vec::new();
            places(&event, "", &mut fields);
            for (field, value) in fields
                .iter()
                .flat_map(|field| values().into_iter().map(move |value| (field, value)))
            {
                let mut odd = event.clone();
                *odd.pointer_mut(field).unwrap() = value;
                let answer = client.ok(
                    "hook/event",
                    json!({"agent": voice::hook(agent), "input": odd}),
                );
                let said: Value = serde_json::from_str(&text(&answer, "stdout")).unwrap();
                assert!(said.is_object(), "{agent}: {odd}: {answer}");
                assert!(
                    !said.to_string().contains("allow"),
                    "{agent}: {odd}: {answer}"
                );
                let may_deny = [0, 2].contains(&answer["exit"].as_u64().unwrap());
                assert!(may_deny, "{agent}: {odd}: {answer}");
            }
        }
    }
    world.healthy();
}

#[test]
fn what_is_not_understood_is_counted_and_said_once() {
    let mut world = World::asleep();
    world.start();
    let hear = |agent: &str, bytes: &[u8]| {
        let mut command = world.command(&["hook", agent]);
        command.env("TOUCHMARK_HOOK_MS", "30000");
        let output = touchmark_tests::hooks::feed(command, bytes);
        assert_eq!(printed(&output), json!({}), "{agent}");
    };
    let mut client = world.client();
    let mut counted = |session: Value| client.ok("stats", session)["unclearHooks"].clone();
    for agent in voice::agents().into_iter().map(voice::hook) {
        for bytes in [
            &b"{\"hook_event_name\": \"Pre"[..],
            b"",
            b"\xff",
            b"[7]",
            b"{}",
        ] {
            hear(agent, bytes);
        }
    }
    let junk = 5 * voice::agents().len() as u64;
    assert_eq!(counted(json!({})), junk);

    let voice = Voice::new("claude", "s", world.workspace());
    let say = |event: &Value| {
        let output = run(&world, "claude", event.to_string().as_bytes(), true);
        assert_eq!(printed(&output), json!({}), "{event}");
    };
    say(&voice.start("startup"));
    assert_eq!(counted(json!({})), junk, "known");
    say(&voice.event("Notification", json!({"message": "x"})));
    assert_eq!(counted(json!({})), junk, "known, and of no use");
    for _ in 0..3 {
        say(&voice.event("NotYetKnown", json!({})));
    }
    assert_eq!(counted(json!({})), junk + 3);
    // Of a known session, and so its own.
    let tool = |name: &str, input: Value| {
        voice.event(
            "PreToolUse",
            json!({"tool_name": name, "tool_use_id": "t", "tool_input": input}),
        )
    };
    say(&tool("Teleport", json!({})));
    say(&tool(
        "Edit",
        json!({"file_path": 7, "old_string": "a", "new_string": "b"}),
    ));
    say(&tool("mcp__any__tool", json!({})));
    assert_eq!(counted(json!({"session": "s"})), 2);
    assert_eq!(counted(json!({})), junk + 5);

    let log = world.said();
    for part in [
        "of claude is not understood: the event \"NotYetKnown\" is not known",
        "of claude is not understood: the tool \"Teleport\" is not known",
        "of claude is not understood: Edit has no file_path",
        "of claude is not understood: an event without a name",
        "of windsurf is not understood: an event without a name",
    ] {
        let lines = log.lines().filter(|line| line.contains(part)).count();
        assert_eq!(lines, 1, "{part}: {log}");
    }
}

/// Grok Build runs Claude Code's and Cursor's hook files in addition to its
/// own, with its own payloads.
#[test]
fn a_tool_counts_once_by_however_many_hooks() {
    let mut world = World::asleep();
    world.start();
    world.file("a.txt", "one\n");
    let talk = Talk::new(&world, "grok", "s");
    let say = |hook: &str, event: &Value| {
        let output = run(&world, hook, event.to_string().as_bytes(), true);
        printed(&output)
    };
    let everywhere = |event: &Value| {
        let answers = ["claude", "grok", "cursor"].map(|hook| say(hook, event));
        answers
            .into_iter()
            .filter(|answer| *answer != json!({}))
            .collect::<Vec<_>>()
    };
    let (voice, none) = (&talk.voice, Vec::<Value>::new());
    assert_eq!(everywhere(&voice.start("startup")), none);
    assert_eq!(everywhere(&voice.prompt("p1", "go")), none);
    let mut session = world.session("s");
    let points = session
        .client
        .ok("checkpoint/list", json!({"session": "s"}));
    assert_eq!(
        points["checkpoints"].as_array().unwrap().len(),
        1,
        "{points}"
    );
    // The first to come denies, in the agent's own words.
    let denied = everywhere(&voice.before_write("w1", "a.txt", "two\n"));
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!(denied[0]["decision"], "deny");
    assert_eq!(everywhere(&voice.before_read("r1", "a.txt")), none);
    assert_eq!(everywhere(&voice.after_read("r1", "a.txt", "one\n")), none);
    assert_eq!(
        everywhere(&voice.before_edit("e1", "a.txt", "one", "1")),
        none
    );
    world.file("a.txt", "1\n");
    assert_eq!(
        everywhere(&voice.after_edit("e1", "a.txt", "one", "1")),
        none
    );
    assert_eq!(session.story("a.txt"), ["agent:s declared"]);
    let sessions = session.client.ok("session/list", json!({}));
    assert_eq!(
        sessions["sessions"][0]["agent"]["name"], "grok-build",
        "{sessions}"
    );
}

/// VS Code and Cursor run Claude Code's hooks where they have no own ones.
/// Those hooks serve them, under their own names.
#[test]
fn an_agent_without_hooks_of_its_own_is_served_by_claude_codes() {
    for (agent, program) in [
        ("copilot", "copilot"),
        ("cursor", "cursor"),
        ("grok", "grok-build"),
    ] {
        let mut world = World::asleep();
        world.start();
        world.file("a.txt", "one\n");
        let voice = Voice::new(agent, "s", world.workspace());
        let say = |event: &Value| {
            let output = run(&world, "claude", event.to_string().as_bytes(), true);
            printed(&output)
        };
        assert_eq!(say(&voice.start("startup")), json!({}));
        let denied = say(&voice.before_write("w1", "a.txt", "two\n"));
        touchmark_tests::hooks::heard(agent, &denied).denied();
        assert_eq!(say(&voice.before_read("r1", "a.txt")), json!({}));
        assert_eq!(say(&voice.after_read("r1", "a.txt", "one\n")), json!({}));
        let mut session = world.session("s");
        assert_eq!(session.state("a.txt"), "fresh", "{agent}");
        let sessions = session.client.ok("session/list", json!({}));
        assert_eq!(
            sessions["sessions"][0]["agent"]["name"], program,
            "{sessions}"
        );
    }
}

/// As recorded from the program: a sub-agent has a session id of its own, the
/// event of its start has no name, and an edit may be a patch.
#[test]
fn copilot_clis_sub_agents_and_patches_are_understood() {
    let mut world = World::asleep();
    world.start();
    world.file("a.txt", "one\ntwo\n");
    let mut talk = Talk::new(&world, "copilot-cli", "main");
    talk.start().nothing();
    talk.prompt("p1", "go").nothing();
    let begun = json!({
        "sessionId": "main", "timestamp": 1_795_940_968_099_u64, "cwd": world.workspace(),
        "transcriptPath": "/h/t.jsonl", "agentName": "general-purpose", "agent_id": "sub",
        "agent_type": "general-purpose", "parent_agent_id": "main",
    });
    talk.say(&begun).nothing();
    let mut sub = Talk::new(&world, "copilot-cli", "main");
    sub.voice = talk.voice.sub_agent("sub");
    sub.read("a.txt").nothing();
    let mut client = world.client();
    let mut state = |session: &str| {
        let asked = json!({"session": session, "paths": ["a.txt"]});
        client.ok("file/status", asked)["files"][0]["state"].clone()
    };
    assert_eq!(
        (state("sub"), state("main")),
        ("fresh".into(), "unread".into())
    );
    let sessions = world.client().ok("session/list", json!({}));
    let of_sub = sessions["sessions"].as_array().unwrap().iter();
    let mut of_sub = of_sub.filter(|one| one["session"] == "sub");
    assert_eq!(of_sub.next().unwrap()["parent"], "main", "{sessions}");

    talk.read("a.txt").nothing();
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch";
    let edit = json!({"tool_name": "Edit", "tool_input": patch});
    talk.say(&talk.voice.event("PreToolUse", edit.clone()))
        .nothing();
    world.file("a.txt", "one\n2\n");
    talk.say(&talk.voice.event("PostToolUse", edit)).nothing();
    let mut session = world.session("main");
    assert_eq!(session.story("a.txt"), ["agent:main declared"]);
    let stats = session.client.ok("stats", json!({}));
    assert_eq!(stats["unclearHooks"], 0, "{stats}");
}
