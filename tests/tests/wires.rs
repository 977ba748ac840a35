//! The three wires: the same answers on each, and what each does with
//! messages that are none (LIM-1).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_client::Hello;
use touchmark_client::blocking;
use touchmark_proto::Request;
use touchmark_tests::wire::{Answer, PATIENCE, answer};
use touchmark_tests::{Client, World, sha256, user};

/// The `Content-Length` wire, by hand.
struct Framed {
    stream: BufReader<UnixStream>,
    next: u64,
}

impl Framed {
    fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream: BufReader::new(stream),
            next: 1,
        }
    }

    fn send(&mut self, body: &str) {
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(message.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = None;
        loop {
            let mut line = String::new();
            assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "closed");
            let line = line.strip_suffix("\r\n").expect("a header ends in CR LF");
            if line.is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("Content-Length: ") {
                length = Some(number.parse::<usize>().unwrap());
            }
        }
        let mut body = vec![0; length.expect("a Content-Length")];
        self.stream.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn call(&mut self, method: &str, params: &Value) -> Answer {
        let id = self.next;
        self.next += 1;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        let message = self.receive();
        assert_eq!(message["id"], id, "{message}");
        answer(&message)
    }
}

/// The same question on each wire, asked in turn, of a session each.
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

/// An answer without what must differ: the session's name, clocks, times.
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
        .subscribe(touchmark_proto::daemon::Subscribe {
            kinds: vec!["version".into()],
            ..Default::default()
        })
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

#[test]
fn lim1_wrong_messages_get_clear_errors() {
    let world = World::new();
    let mut client = world.client();
    for (text, code) in [
        ("{\"jsonrpc\":\"2.0\",\"id\":1,", -32700),
        ("{}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}",
            -32601,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sync\",\"params\":{\"x\":1}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sync\",\"params\":[1]}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":\"s\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":5,\"path\":\"a\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":\"\",\"path\":\"a\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":\"s\",\"path\":\"\"}}",
            -32015,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"edit/mark\",\"params\":{\"session\":\"s\",\"path\":\"a\",\"expect\":\"xyz\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"modified/list\",\"params\":{\"since\":\"yesterday\"}}",
            -32602,
        ),
    ] {
        client.raw(text.as_bytes()).unwrap();
        client.raw(b"\n").unwrap();
        let line: Value = serde_json::from_str(&client.raw_line().expect("an answer")).unwrap();
        assert_eq!(line["error"]["code"], code, "{text}: {line}");
        assert!(line["error"]["data"]["code"].is_string(), "{line}");
        assert!(line["error"]["data"]["hint"].is_string(), "{line}");
    }
    let long_id = "i".repeat(257);
    client.refused(
        "file/mention",
        json!({"session": long_id, "path": "a"}),
        "invalidParams",
    );
    let long_path = "p/".repeat(4096);
    let error = client
        .call("file/mention", json!({"session": "s", "path": long_path}))
        .unwrap_err();
    assert!(error.code < 0, "{error}");
    // The connection goes on.
    client.ok("ping", json!({}));
    // Invalid UTF-8.
    client
        .raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n")
        .unwrap();
    let line: Value = serde_json::from_str(&client.raw_line().expect("an answer")).unwrap();
    assert_eq!(line["error"]["code"], -32700, "{line}");
    // Deep nesting.
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let mut nested = world.client();
    nested.raw(deep.as_bytes()).unwrap();
    let _ = nested.raw_line();
    world.client().ok("ping", json!({}));
}

/// Sends bytes and waits for the end of the connection or for an answer.
fn outcome(world: &World, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(world.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // A daemon that has seen enough may close while more is being sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&part[..length]),
        }
    }
    answer
}

#[test]
fn lim1_frames_that_are_none_end_the_connection() {
    let mut world = World::new();
    // Anything else: one line of error, closed.
    let answer = outcome(&world, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(
        answer.iter().filter(|byte| **byte == b'\n').count(),
        1,
        "{answer:?}"
    );
    // A wrong preface, a frame over the limit, junk in a frame.
    outcome(&world, b"TMK9\0\0\0\0");
    outcome(&world, b"TMK1\xff\xff\xff\xff");
    let mut junk = b"TMK1".to_vec();
    junk.extend(64_u32.to_le_bytes());
    junk.extend([0xff; 64]);
    let mut stream = UnixStream::connect(world.socket()).unwrap();
    stream.write_all(&junk).unwrap();
    drop(stream);
    // Lengths that are none, or too much.
    for header in [
        "Content-Length: 99999999999\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: x\r\n\r\n",
        "Content-Type: none\r\n\r\n{}",
    ] {
        outcome(&world, header.as_bytes());
    }
    outcome(
        &world,
        format!("Content-Length: 5\r\n{}", "X: y\r\n".repeat(100_000)).as_bytes(),
    );
    // A line over 16 MiB.
    let mut endless = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"".to_vec();
    endless.resize(17 << 20, b'a');
    let answer = outcome(&world, &endless);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("tooLarge"), "{answer:.300}");
    // A frame just below it is a message like any other.
    let mut client = world.client();
    let long = "a".repeat(15 << 20);
    let error = client.call(&long, json!({})).unwrap_err();
    assert_eq!(error.code, -32601, "{error}");
    world.healthy();
    let rss = client.ok("status", json!({}))["rssBytes"].as_u64().unwrap();
    assert!(rss < 512 << 20, "{rss} bytes after big frames");
}

#[test]
fn lim1_half_frames_hold_nobody_up() {
    let mut world = World::new();
    let halves: &[&[u8]] = &[
        b"",
        b"T",
        b"TMK1\x10",
        b"TMK1\x10\0\0\0abc",
        b"{\"jsonrpc\"",
        b"C",
        b"Content-Length: 10\r\n\r\n{}",
        b"Content-Length: 10\r\n",
    ];
    let mut open = Vec::new();
    for half in halves {
        let mut stream = UnixStream::connect(world.socket()).unwrap();
        stream.write_all(half).unwrap();
        // Closed at once, by halves, or left open.
        let mut closed = UnixStream::connect(world.socket()).unwrap();
        closed.write_all(half).unwrap();
        drop(closed);
        let mut shut = UnixStream::connect(world.socket()).unwrap();
        shut.write_all(half).unwrap();
        shut.shutdown(std::net::Shutdown::Write).unwrap();
        open.push((stream, shut));
    }
    world.client().ok("ping", json!({}));
    world.healthy();
}

#[test]
fn lim1_a_thousand_idle_connections() {
    let world = World::new();
    let mut client = world.client();
    let rss = |client: &mut Client| client.ok("status", json!({}))["rssBytes"].as_u64().unwrap();
    let before = rss(&mut client);
    let idle: Vec<Client> = (0..1000)
        .map(|_| {
            let mut idle = world.client();
            idle.ok("ping", json!({}));
            idle
        })
        .collect();
    let status = client.ok("status", json!({}));
    assert_eq!(status["connections"], 1001, "{status}");
    let after = rss(&mut client);
    assert!(
        after.saturating_sub(before) < 32 << 20,
        "1,000 idle connections cost {} bytes",
        after - before
    );
    drop(idle);
    let end = Instant::now() + PATIENCE;
    while client.ok("status", json!({}))["connections"] != 1 {
        assert!(Instant::now() < end, "connections stay");
    }
}

/// A subscriber that never reads is disconnected; one that asks and never
/// reads is not listened to any more, or disconnected. Nobody else notices.
#[test]
fn lim1_a_reader_that_never_reads() {
    let mut world = World::new();
    let mut agent = world.session("s");
    // A long name makes large events.
    let name = format!("{}a.txt", format!("{}/", "d".repeat(200)).repeat(10));
    world.file(&name, "start\n");
    agent.read(&name);
    let mut deaf = UnixStream::connect(world.socket()).unwrap();
    deaf.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\"}\n")
        .unwrap();
    // And one that only asks.
    let mut asking = UnixStream::connect(world.socket()).unwrap();
    asking
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let question = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n".repeat(1000);
    for _ in 0..200 {
        if asking.write_all(&question).is_err() {
            break;
        }
    }
    let mut number = 0;
    // 16 MiB of events and answers at the most stay in the daemon for one
    // reader: it must be gone long before this ends.
    while agent.client.ok("status", json!({}))["connections"].as_u64() > Some(2) {
        for _ in 0..100 {
            number += 1;
            user::write(&world.path(&name), &format!("{number}\n"));
            agent.read(&name);
        }
        assert!(number < 100_000, "deaf readers stay after {number} changes");
    }
    let rss = agent.client.ok("status", json!({}))["rssBytes"]
        .as_u64()
        .unwrap();
    assert!(rss < 512 << 20, "{rss} bytes for deaf readers");
    world.healthy();
}
