#![allow(clippy::unwrap_used, clippy::panic)]
//! Adding and removing hooks, for all the ways in which people write settings.

mod back;
mod packages;

use clap::ValueEnum as _;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use super::Agent;
use super::hooks::Hooks;
use super::made::Made;

/// Returns the hooks of all agents that have them in settings.
fn agents() -> Vec<Hooks> {
    let all = Agent::value_variants().iter();
    let hooks = all.map(|agent| Hooks::of(*agent, "/a path/touchmark"));
    hooks.filter(|hooks| !hooks.events.is_empty()).collect()
}

fn of(name: &str, program: &str) -> Hooks {
    Hooks::of(Agent::from_str(name, false).unwrap(), program)
}

/// Settings as people write them. `EVENT` stands for an event of the agent.
const TEXTS: &[&str] = &[
    "",
    "\n",
    "// nothing yet",
    "// {} is nothing\n",
    "/* a */\n\n",
    "{}",
    "{ }\n",
    "{\n}\n",
    "{\n\n}",
    "{ /* nothing */ }",
    "{ // nothing\n}\n",
    "{\n  // nothing\n}\n",
    "{\"a\":1}",
    "{ \"a\": 1, \"b\": [1, 2], }",
    "{\n  \"a\": 1\n}\n",
    "{\n  \"a\": 1,\n}\n",
    "{\n    \"a\": {\n        \"b\": 2\n    }\n}",
    "{\n\t\"a\": 1, // why\n\t\"b\": 2 // why not\n\t// the end\n}\n",
    "{\n  \"a\": 1 /* one */, /* two\n lines */\n  // three\n}\n",
    "{\"a\": 1,\n \"b\": 2}",
    "{\n  \"a\": 1   \n\n\n}\n\n\n",
    "// head\n{\n  \"a\": \"// { no comment, \\\" }\" // tail\n}\n// end\n",
    "{\"hooks\": {}}",
    "{\n  \"hooks\": {},\n  \"z\": 1\n}\n",
    "{\n  \"hooks\": {\n    // none\n  }\n}\n",
    "{\"hooks\":{\"EVENT\":[]}}",
    "{\n  \"hooks\": {\n    \"EVENT\": []\n  }\n}\n",
    "{\n  \"hooks\": {\n    \"EVENT\": [ // mine\n      {\"command\": \"x\"} // last\n    ],\n  },\n}\n",
    "{\"hooks\":{\"EVENT\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"their touchmark hook other\"}]}]},\"version\":1}",
    "{\n  \"version\": 1,\n  \"hooks\": {\n    \"other\": [{\"command\": \"y\"}],\n    \"EVENT\": [\n      {\n        \"command\": \"x\",\n      },\n    ],\n  }\n}",
    "{\n  \"hooks\": {\"EVENT\": [{\"command\": \"x\"}, {\"command\": \"y\"}]} }\n",
];

/// Returns all texts for an agent, with each kind of line end.
fn texts(hooks: &Hooks) -> Vec<String> {
    let event = hooks.events[1].0;
    let plain = TEXTS.iter().map(|text| text.replace("EVENT", event));
    plain
        .flat_map(|text| {
            let dos = text.replace('\n', "\r\n");
            let tabs = text.replace("\n  ", "\n\t");
            let mixed = text.replacen('\n', "\r\n", 1);
            [text, dos, tabs, mixed]
        })
        .collect()
}

fn parsed(text: &str) -> Value {
    parse_to_serde_value::<Option<Value>>(text, &ParseOptions::default())
        .unwrap_or_else(|error| panic!("{error} in {text}"))
        .unwrap_or_default()
}

/// Returns the value without the agent's hooks.
fn others(text: &str, hooks: &Hooks) -> Value {
    let taken = hooks.take(text, None).unwrap();
    parsed(&taken)
}

#[test]
fn taking_out_undoes_putting_in_to_the_byte() {
    for hooks in agents() {
        for text in texts(&hooks) {
            let mut made = Made::default();
            let with = hooks.put(&text, &mut made).unwrap();
            assert!(hooks.are_in(&with).unwrap(), "{with}");
            assert!(!hooks.are_in(&text).unwrap(), "{text}");
            let root = parsed(&with);
            for (event, item) in &hooks.events {
                let list = root["hooks"][event].as_array().unwrap();
                assert_eq!(list.last().unwrap(), &parsed(&item.to_string()), "{with}");
            }
            let without = hooks.take(&with, Some(&made)).unwrap();
            assert_eq!(without, text, "after {with}");
            let mut again = Made::default();
            assert_eq!(hooks.put(&without, &mut again).unwrap(), with);
            assert_eq!(again, made);
        }
    }
}

#[test]
fn without_a_record_nothing_of_others_goes() {
    for hooks in agents() {
        for text in texts(&hooks) {
            let with = hooks.put(&text, &mut Made::default()).unwrap();
            let mut left = others(&with, &hooks);
            let mut before = parsed(&text);
            // Empty values do not count, and `version` may belong to any
            // program.
            for value in [&mut left, &mut before] {
                if let Some(object) = value.as_object_mut() {
                    object.remove("version");
                    if let Some(events) = object.get_mut("hooks").and_then(Value::as_object_mut) {
                        events.retain(|_, list| list != &serde_json::json!([]));
                    }
                    object.retain(|_, member| member != &serde_json::json!({}));
                } else {
                    *value = serde_json::json!({});
                }
            }
            assert_eq!(left, before, "{with}");
        }
    }
}

#[test]
fn what_others_add_meanwhile_stays() {
    for hooks in agents() {
        for text in texts(&hooks) {
            let mut made = Made::default();
            let with = hooks.put(&text, &mut made).unwrap();
            // Another program's hooks, added after touchmark's in the same way.
            let theirs = Hooks {
                agent: "theirs",
                beside: Vec::new(),
                events: vec![(
                    hooks.events[0].0,
                    super::json::Json::Object(vec![("command", "touchmark hook theirs".into())]),
                )],
            };
            let mut made_by_them = Made::default();
            let both = theirs.put(&with, &mut made_by_them).unwrap();
            let left = hooks.take(&both, Some(&made)).unwrap();
            assert!(theirs.are_in(&left).unwrap(), "{left}");
            assert!(!hooks.are_in(&left).unwrap(), "{left}");
            let alone = theirs.put(&text, &mut Made::default()).unwrap();
            let (mut left, mut alone) = (parsed(&left), parsed(&alone));
            for value in [&mut left, &mut alone] {
                value.as_object_mut().unwrap().remove("version");
            }
            assert_eq!(left, alone, "{both}");
        }
    }
}

#[test]
fn ours_are_known_in_every_shape() {
    let hooks = of("claude", "/elsewhere/touchmark");
    let text = r#"{"hooks": {
        "Stop": [{"hooks": [
            {"type": "command", "command": "theirs"},
            {"type": "command", "command": "'/x y/touchmark' hook claude", "timeout": 9},
            {"type": "command", "command": "'/x y/touchmark-hook' claude"},
            {"type": "command", "command": "touchmark-hook", "args": ["claude"]},
            {"type": "command", "command": "not-touchmark-hook claude"},
            {"type": "command", "command": "not-touchmark hook claude"},
            {"type": "command", "command": "touchmark", "args": ["hook", "codex"]}
        ]}],
        "OldEvent": [{"hooks": [{"type": "command", "command": "touchmark hook claude"}]}]
    }}"#;
    let left = parsed(&hooks.take(text, None).unwrap());
    assert!(left["hooks"].get("OldEvent").is_none(), "{left}");
    let handlers = left["hooks"]["Stop"][0]["hooks"].as_array().unwrap();
    let commands: Vec<_> = handlers
        .iter()
        .map(|one| one["command"].as_str().unwrap())
        .collect();
    assert_eq!(
        commands,
        [
            "theirs",
            "not-touchmark-hook claude",
            "not-touchmark hook claude",
            "touchmark"
        ]
    );
    // The small program takes the agent's name alone.
    let small = of("claude", "/a b/touchmark-hook");
    let put = small.put("{}", &mut Made::default()).unwrap();
    assert!(put.contains("\"'/a b/touchmark-hook' claude\""), "{put}");
    assert!(small.are_in(&put).unwrap() && hooks.any_in(&put).unwrap());
    assert!(!hooks.are_in(&put).unwrap());
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    let hooks = of("cursor", "touchmark");
    let cases = [
        ("{\n  \"a\": \n}", 3),
        ("{\n  a: 1\n}", 2),
        ("[1]", 1),
        ("\n\"hooks\"", 2),
        ("{\n  \"hooks\": []\n}", 2),
        ("{\n  \"hooks\": {\n    \"stop\": {}\n  }\n}", 3),
        ("{\n  \"hooks\": {},\n  \"hooks\": {}\n}", 3),
        ("{} {}", 1),
    ];
    for (text, line) in cases {
        let wrong = hooks.put(text, &mut Made::default()).unwrap_err();
        assert_eq!(wrong.line, line, "{text}: {}", wrong.reason);
    }
    let deep = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert!(hooks.put(&deep, &mut Made::default()).is_err());
}
