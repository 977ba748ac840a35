//! The three wires give the same answers.

use serde_json::{Value, json};
use touchmark_client::Hello;
use touchmark_client::blocking;
use touchmark_proto::Request;
use touchmark_tests::wire::{Answer, PATIENCE};
use touchmark_tests::{Framed, World, sha256, user};

/// Sends the same requests on each wire in turn, each with its own session.
fn on_each_wire(world: &World, questions: impl Fn(&str) -> Vec<(&'static str, Value)>) {
    let mut lines = world.client();
    let mut framed = Framed::connect(world.socket());
    let binary = blocking::Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    let ask_lines = questions("lines")
        .into_iter()
        .map(|(method, params)| lines.call(method, params));
    let lines: Vec<Answer> = ask_lines.collect();
    let framed: Vec<Answer> = questions("framed")
        .into_iter()
        .map(|(method, params)| framed.call(method, &params))
        .collect();
    let binary: Vec<Answer> = questions("binary")
        .into_iter()
        .map(|(method, params)| {
            let request = Request::from_json(method, params).expect("a request");
            match binary.request(request) {
                Ok(reply) => Ok(reply.to_json()),
                Err(error) => {
                    let error = error.daemon().expect("the daemon's own error");
                    Err(touchmark_tests::RpcError {
                        code: error.code.code().into(),
                        name: error.code.name().into(),
                        message: error.message.clone(),
                        data: Value::Null,
                    })
                }
            }
        })
        .collect();
    for (number, (method, _)) in questions("lines").iter().enumerate() {
        let told: Vec<String> = [("lines", &lines), ("framed", &framed), ("binary", &binary)]
            .into_iter()
            .map(|(wire, answers)| plain(&answers[number], wire))
            .collect();
        assert_eq!(told[0], told[1], "{method}");
        assert_eq!(told[0], told[2], "{method}");
    }
}

/// Returns an answer without what must differ: the session's name, clocks,
/// times.
fn plain(answer: &Answer, wire: &str) -> String {
    fn strip(value: &mut Value) {
        const PASSING: &[&str] = &[
            "clock",
            "time",
            "deadline",
            "edit",
            "cursor",
            "readAt",
            "mtimeMs",
            "firstTime",
            "lastTime",
            "since",
            "openedAt",
            "lastActive",
            "lastAccessTime",
            "agentReadDate",
            "agentEditDate",
            "userEditDate",
            "amends",
            "label",
        ];
        match value {
            Value::Object(fields) => {
                // Absent and null are the same.
                fields.retain(|name, value| !value.is_null() && !PASSING.contains(&name.as_str()));
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    match answer {
        Ok(result) => {
            let mut result = result.clone();
            strip(&mut result);
            result.to_string().replace(wire, "WIRE")
        }
        Err(error) => {
            format!("{} {} {}", error.code, error.name, error.message).replace(wire, "WIRE")
        }
    }
}

#[test]
fn the_three_wires_give_the_same_answers() {
    let world = World::new();
    for wire in ["lines", "framed", "binary"] {
        world.file(&format!("{wire}/a.txt"), "one\ntwo\n");
        world.file(&format!("{wire}/b.txt"), "one\n");
    }
    on_each_wire(&world, |wire| {
        let session = format!("s-{wire}");
        let path = |name: &str| format!("{wire}/{name}");
        vec![
            ("ping", json!({})),
            (
                "session/open",
                json!({"session": session, "agent": {"name": "a", "version": "1"}}),
            ),
            (
                "file/read",
                json!({"session": session, "path": path("a.txt")}),
            ),
            (
                "file/read",
                json!({"session": session, "path": path("a.txt"), "range": {"start": 1, "end": 1}}),
            ),
            (
                "file/readText",
                json!({"session": session, "path": path("b.txt"), "step": 4}),
            ),
            (
                "file/read",
                json!({"session": session, "path": path("none.txt")}),
            ),
            (
                "file/read",
                json!({"session": session, "path": "../out.txt"}),
            ),
            (
                "file/mention",
                json!({"session": session, "path": path("c.txt")}),
            ),
            ("file/status", json!({"session": session})),
            ("file/list", json!({"session": session})),
            (
                "edit/begin",
                json!({"session": session, "files": [{"path": path("b.txt"), "expect": "absent"}]}),
            ),
            (
                "edit/commit",
                json!({"session": session, "callId": "nobody"}),
            ),
            (
                "edit/mark",
                json!({"session": session, "path": path("a.txt"), "expect": sha256("x")}),
            ),
            ("file/history", json!({"path": path("a.txt")})),
            (
                "modified/take",
                json!({"session": session, "ack": "explicit"}),
            ),
            ("modified/list", json!({"since": "1:1"})),
            (
                "session/compacted",
                json!({"session": session, "keep": [path("a.txt")]}),
            ),
            ("file/invalidate", json!({"session": session})),
            (
                "file/untrack",
                json!({"session": session, "path": path("a.txt")}),
            ),
            (
                "initialize",
                json!({"client": {"name": "t", "version": "1"}, "protocol": 99}),
            ),
            ("session/close", json!({"session": session, "forget": true})),
        ]
    });
}

#[test]
fn events_come_on_each_wire() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let mut framed = Framed::connect(world.socket());
    framed
        .call("subscribe", &json!({"kinds": ["version"]}))
        .unwrap();
    let mut lines = world.client();
    lines.ok("subscribe", json!({"kinds": ["version"]}));
    let binary = blocking::Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    binary
        .subscribe(touchmark_proto::daemon::Subscribe::new().kinds(vec!["version".into()]))
        .unwrap();
    user::write(&world.path("a.txt"), "two\n");
    let from_lines = lines.event();
    let message = framed.receive();
    assert_eq!(message["method"], "event", "{message}");
    assert_eq!(message["params"]["version"], from_lines["version"]);
    assert_eq!(message["params"]["type"], "version", "{message}");
    let event = binary.next_event(PATIENCE).unwrap().expect("an event");
    assert_eq!(event.clock.to_string(), from_lines["clock"]);
}

#[test]
fn batches_ids_and_notifications() {
    let world = World::new();
    let mut client = world.client();
    // A batch, with a notification in it: answers for the others.
    client
        .raw(b"[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nope\"}]\n")
        .unwrap();
    let mut answers = Vec::new();
    // One array, or one message each: the protocol leaves it open.
    while answers.len() < 2 {
        let line: Value = serde_json::from_str(&client.raw_line().unwrap()).unwrap();
        match line {
            Value::Array(items) => answers.extend(items),
            one => answers.push(one),
        }
    }
    let id = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert!(id(json!("a"))["result"].is_object(), "{answers:?}");
    assert_eq!(id(json!(7))["error"]["code"], -32601, "{answers:?}");
    // Ids used twice get two answers.
    client
        .raw(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n")
        .unwrap();
    for _ in 0..2 {
        let line: Value = serde_json::from_str(&client.raw_line().unwrap()).unwrap();
        assert_eq!(line["id"], 5, "{line}");
    }
    // Absent and null are the same.
    client.ok("ping", Value::Null);
    client.ok(
        "session/open",
        json!({"session": "s", "agent": null, "pid": null}),
    );
}
