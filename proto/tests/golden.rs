//! The exact bytes and JSON of messages. A failure here means that the protocol
//! has changed.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use serde_json::{Value, json};
use touchmark_proto::calls::{CallCheck, CallChecked, Duplicate, Validity};
use touchmark_proto::checkpoints::{CheckpointDetected, EditedFile, WarningTaken};
use touchmark_proto::codec::{
    ClientMessage, Encoder, Incoming, MAX_FRAME, MessageId, ReplyDecoder, ServerMessage, Wire,
    frames, json as codec_json,
};
use touchmark_proto::daemon::{Done, Initialize, Ping, Program};
use touchmark_proto::editors::EditorDidOpen;
use touchmark_proto::edits::{EditMark, EditMarked};
use touchmark_proto::events::{EditPhase, Event, Happening};
use touchmark_proto::files::{FileText, Snapshot, TextEncoding, Verdict};
use touchmark_proto::sessions::{SessionOpened, Warning};
use touchmark_proto::*;

const ROOT: &[u8] = b"/home/u/w s";

fn path(bytes: &[u8]) -> RelPath {
    RelPath::new(bytes).unwrap()
}

fn state(name: &[u8]) -> FileState {
    FileState {
        path: path(name),
        state: State::Unread,
        may_edit: false,
        resident: false,
        stale_ranges: None,
        hash: Some(Hash([0xab; 32])),
        seen_hash: None,
        assumed: None,
        read_count: 0,
        read_at: None,
        line_count: 2,
        size: 10,
        mtime_ms: 1000,
        unsaved: None,
        unsaved_lines: None,
        changed_by: None,
        since: None,
    }
}

fn ask(request: Request) -> ClientMessage {
    ClientMessage {
        id: Some(1.into()),
        within_ms: None,
        request,
    }
}

fn server_json(message: &ServerMessage) -> Value {
    codec_json::server_to_json(message, ROOT)
}

fn result_json(reply: Reply) -> Value {
    let message = ServerMessage::Reply {
        id: 1.into(),
        outcome: Ok(reply),
    };
    server_json(&message)["result"].take()
}

fn params(method: &str, params: Value) -> Result<Request, Error> {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    match codec_json::parse(text.as_bytes()) {
        Incoming::One(one) => one.map(|m| m.request).map_err(|rejected| rejected.error),
        Incoming::Batch(_) => panic!("a batch"),
    }
}

#[test]
fn bytes_of_frames() {
    let initialize = ask(Request::Initialize(Initialize::new(
        Program {
            name: "tm".into(),
            version: "1".into(),
        },
        PROTOCOL,
    )));
    let mark = ClientMessage {
        id: Some(MessageId::Text("a".into())),
        within_ms: Some(300),
        request: Request::EditMark(
            EditMark::new(
                SessionId::new("s").unwrap(),
                ClientPath::new(b"\xff".as_slice()),
            )
            .expect(HashOrAbsent::Absent)
            .require_read(true)
            .step(2),
        ),
    };
    for (message, bytes) in [
        (&initialize, "01010100000274 6d013102 0000"),
        (&ask(Request::Ping(Ping {})), "0101010001"),
        (&mark, "01030161 01fb2c01 17 0173 01ff 0100 01 00 00 0102"),
    ] {
        let bytes = hex(bytes);
        assert_eq!(frames::encode(message).unwrap(), bytes);
        assert_eq!(frames::decode_client(&bytes).as_ref(), Ok(message));
    }
    let done = ServerMessage::Reply {
        id: MessageId::Negative(-1),
        outcome: Ok(Reply::Ping(Done {})),
    };
    let event = ServerMessage::Event(Event {
        subscription: 3,
        clock: Clock { epoch: 1, n: 9 },
        happening: Happening::Overflow {},
    });
    for (message, bytes) in [(&done, "00 02 01 00 01"), (&event, "01 03 01 09 07")] {
        let bytes = hex(bytes);
        assert_eq!(frames::encode(message).unwrap(), bytes);
        assert_eq!(frames::decode_server(&bytes).as_ref(), Ok(message));
    }
    let mut framed = Vec::new();
    Encoder::new(Wire::Frames, MAX_FRAME, ROOT)
        .encode(&done, &mut framed)
        .unwrap();
    assert_eq!(framed, hex("05000000 0002010001"));
    // This pins the number of this method: a method inserted before it would
    // change the number.
    let last = Request::EditorDidOpen(EditorDidOpen { path: "a".into() });
    assert_eq!(frames::encode(&last).unwrap(), hex("1b0161"));
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn every_code_and_every_kind_has_its_number() {
    for (number, code) in ErrorCode::ALL.iter().enumerate() {
        assert_eq!(
            frames::encode(code).unwrap(),
            [u8::try_from(number).unwrap()]
        );
        assert_eq!(serde_json::to_value(code).unwrap(), code.name());
    }
}

#[test]
fn text_of_lines_and_headers() {
    let done = ServerMessage::Reply {
        id: MessageId::Text("a\"b".into()),
        outcome: Ok(Reply::Ping(Done {})),
    };
    let text = r#"{"id":"a\"b","jsonrpc":"2.0","result":{}}"#;
    let mut out = Vec::new();
    Encoder::new(Wire::Lines, MAX_FRAME, ROOT)
        .encode(&done, &mut out)
        .unwrap();
    assert_eq!(out, format!("{text}\n").into_bytes());
    out.clear();
    Encoder::new(Wire::ContentLength, MAX_FRAME, ROOT)
        .encode(&done, &mut out)
        .unwrap();
    assert_eq!(
        out,
        format!("Content-Length: 41\r\n\r\n{text}").into_bytes()
    );
}

#[test]
fn ids_come_back_as_they_were() {
    for id in [
        "null",
        "0",
        "18446744073709551615",
        "-9223372036854775808",
        "\"\"",
        "\"é\"",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let Incoming::One(one) = codec_json::parse(text.as_bytes()) else {
            panic!("a batch");
        };
        let message = ServerMessage::Reply {
            id: one.unwrap().id.unwrap(),
            outcome: Ok(Reply::Ping(Done {})),
        };
        assert_eq!(server_json(&message)["id"].to_string(), id);
    }
}

#[test]
fn null_is_absent_in_requests() {
    let with = json!({"session": "s", "files": [{"path": "a", "expect": null}], "step": null,
        "withinMs": null, "bind": null});
    let without = json!({"session": "s", "files": [{"path": "a"}]});
    assert_eq!(params("edit/begin", with), params("edit/begin", without));
    let text = r#"{"jsonrpc":"2.0","method":"sync","params":{"withinMs":250}}"#;
    let Incoming::One(one) = codec_json::parse(text.as_bytes()) else {
        panic!("a batch");
    };
    let message = one.unwrap();
    assert_eq!((message.id, message.within_ms), (None, Some(250)));
    let null = r#"{"jsonrpc":"2.0","id":null,"method":"sync","params":null}"#;
    let Incoming::One(one) = codec_json::parse(null.as_bytes()) else {
        panic!("a batch");
    };
    assert_eq!(one.unwrap().id, Some(MessageId::Null));
}

#[test]
fn a_uri_stands_for_a_path() {
    let opened = |bytes: &[u8]| {
        let path = ClientPath::new(bytes);
        Ok(Request::EditorDidOpen(EditorDidOpen { path }))
    };
    let open = |value: Value| params("editor/didOpen", value);
    assert_eq!(
        open(json!({"uri": "file:///a%20b/%FF"})),
        opened(b"/a b/\xff")
    );
    assert_eq!(open(json!({"uri": "file://localhost/a"})), opened(b"/a"));
    assert_eq!(open(json!({"uri": "FILE:///%2e"})), opened(b"/."));
    assert_eq!(open(json!({"path": "file:///a%20b"})), opened(b"/a b"));
    assert_eq!(open(json!({"path": "a%20b"})), opened(b"a%20b"));
    for bad in [
        json!({"uri": "http://h/a"}),
        json!({"uri": "file://host/a"}),
        json!({"uri": "file:a"}),
        json!({"uri": "file:///a%2"}),
        json!({"uri": "file:///a%zz"}),
        json!({"uri": "file:///a#b"}),
        json!({"uri": "file:///a?b"}),
        json!({"uri": 1}),
        json!({"uri": "file:///a", "path": "a"}),
        json!({"path": "\u{0}a%41"}),
    ] {
        let error = open(bad.clone()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams, "{bad}");
    }
    let many = json!({"session": "s", "keep": ["file:///%FF", "b"]});
    let Ok(Request::SessionCompacted(compacted)) = params("session/compacted", many) else {
        panic!("refused");
    };
    assert_eq!(compacted.keep[0].as_bytes(), b"/\xff");
    assert_eq!(compacted.keep[1].as_bytes(), b"b");
}

#[test]
fn a_relative_name_that_is_not_utf8_is_sent_as_an_absolute_uri() {
    let message = ask(Request::EditorDidOpen(EditorDidOpen {
        path: ClientPath::new(b"d/\xff".as_slice()),
    }));
    assert_eq!(
        codec_json::client_to_json(&message, ROOT),
        json!({"jsonrpc": "2.0", "id": 1, "method": "editor/didOpen",
            "params": {"uri": "file:///home/u/w%20s/d/%FF"}})
    );
}

#[test]
fn a_file_state_with_nothing_seen() {
    let json = result_json(Reply::FileMention(state(b"src/a.rs")));
    assert_eq!(
        json,
        json!({"path": "src/a.rs", "state": "unread", "mayEdit": false, "resident": false,
            "hash": "ab".repeat(32), "seenHash": null, "readCount": 0, "readAt": null,
            "lineCount": 2, "size": 10, "mtimeMs": 1000})
    );
}

#[test]
fn a_late_mark_says_null_where_it_has_no_edit() {
    let json = result_json(Reply::EditMark(EditMarked {
        edit: None,
        deadline: None,
        file: state(b"a"),
        late: Some(true),
    }));
    assert_eq!(json["edit"], Value::Null);
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["deadline", "edit", "file", "late"]);
}

#[test]
fn a_warning_that_is_not_there_is_absent() {
    let opened = |warning| {
        result_json(Reply::SessionOpen(SessionOpened {
            session: SessionId::new("s").unwrap(),
            resumed: false,
            clock: Clock { epoch: 4, n: 2 },
            warning,
            modified: vec![],
            label: None,
            pending: None,
        }))
    };
    assert_eq!(
        opened(None),
        json!({"session": "s", "resumed": false, "clock": "4:2", "modified": []})
    );
    let warning = Warning {
        files: vec![path(b"a"), path(b"b\xff")],
        note: None,
        created_at: 5,
    };
    assert_eq!(
        opened(Some(warning))["warning"],
        json!({"files": ["a", "file:///home/u/w%20s/b%FF"], "createdAt": 5})
    );
}

#[test]
fn names_that_are_not_utf8_have_a_uri() {
    let version = Version {
        clock: Clock { epoch: 1, n: 1 },
        path: path(b"n\xffw"),
        kind: VersionKind::Renamed,
        from: Some(path(b"o\xfe")),
        hash: None,
        size: 0,
        time: 7,
        author: Author::USER,
        evidence: Evidence::Unmarked,
        amends: None,
        overwritten: None,
        unobserved: None,
        provisional: None,
        late: None,
        formatted: None,
        candidates: None,
        edit: None,
        command: None,
        mode: None,
        mode_before: None,
        before_unknown: None,
        real: None,
    };
    let event = ServerMessage::Event(Event {
        subscription: 2,
        clock: version.clock,
        happening: Happening::Version {
            version,
            lines: None,
        },
    });
    assert_eq!(
        server_json(&event),
        json!({"jsonrpc": "2.0", "method": "event", "params": {
            "subscription": 2, "clock": "1:1", "type": "version",
            "version": {"clock": "1:1", "path": "n\u{fffd}w", "uri": "file:///home/u/w%20s/n%FFw",
                "kind": "renamed", "from": "o\u{fffd}", "fromUri": "file:///home/u/w%20s/o%FE",
                "hash": null, "size": 0, "time": 7, "author": {"kind": "user"},
                "evidence": "unmarked"}}})
    );
    let edit = ServerMessage::Event(Event {
        subscription: 2,
        clock: Clock { epoch: 1, n: 1 },
        happening: Happening::Edit {
            session: SessionId::new("s").unwrap(),
            edit: "e1".into(),
            phase: EditPhase::Begun,
            paths: vec![path(b"a"), path(b"\xff")],
            label: Some("claude-1".into()),
        },
    });
    assert_eq!(
        server_json(&edit)["params"]["paths"],
        json!(["a", "file:///home/u/w%20s/%FF"])
    );
}

#[test]
fn a_text_that_begins_with_nul_is_left_alone() {
    let text = "\0%41";
    let json = result_json(Reply::FileReadText(FileText {
        verdict: Verdict::First,
        text: Some(text.into()),
        message: None,
        hash: None,
        line_count: 1,
        range: None,
        truncated: false,
        encoding: TextEncoding::Utf8,
        charset: None,
    }));
    assert_eq!(json["text"], text);
    assert_eq!(json.get("uri"), None);
}

#[test]
fn errors_have_code_hint_and_their_fields() {
    let mut error = Error::path(ErrorCode::Stale, &path(b"a"), "a is out of date");
    error.data.seen_hash = Some(Hash([1; 32]));
    error.files = vec![(*error.data).clone()];
    let message = ServerMessage::error(MessageId::Null, error);
    assert_eq!(
        server_json(&message),
        json!({"jsonrpc": "2.0", "id": null, "error": {
            "code": -32011, "message": "a is out of date", "data": {
                "code": "stale", "hint": "read the file again, then repeat the edit",
                "path": "a", "seenHash": "01".repeat(32),
                "files": [{"path": "a", "seenHash": "01".repeat(32)}]}}})
    );
    let outside = Error::new(ErrorCode::OutsideWorkspace, "no").with(ErrorData {
        spoken: Some("../x".into()),
        ..ErrorData::default()
    });
    let message = ServerMessage::error(3.into(), outside);
    let json = server_json(&message);
    assert_eq!(json["error"]["data"]["path"], "../x");
    assert_eq!(json["error"]["data"].get("spoken"), None);
    let back = codec_json::decode_server(json.to_string().as_bytes(), ROOT, |_| None).unwrap();
    assert_eq!(back, Some(message));
}

#[test]
fn a_client_passes_over_what_it_does_not_know() {
    let mut decoder = ReplyDecoder::new(Wire::Lines, MAX_FRAME, ROOT);
    decoder.push(
        br#"{"jsonrpc":"2.0","method":"event","params":{"type":"eclipse","subscription":1}}
{"jsonrpc":"2.0","id":8,"result":{}}
{"jsonrpc":"2.0","id":1,"result":{"since":"later","clock":"1:2"}}
{"jsonrpc":"2.0","id":1,"error":{"code":-32999,"message":"new"}}
"#,
    );
    let mut next = || {
        let method = |id: &MessageId| (*id == 1.into()).then_some("sync");
        decoder.next(method).unwrap()
    };
    let Some(ServerMessage::Reply {
        outcome: Ok(Reply::Sync(synced)),
        ..
    }) = next()
    else {
        panic!("not the answer");
    };
    assert_eq!(synced.clock, Clock { epoch: 1, n: 2 });
    let Some(ServerMessage::Reply {
        outcome: Err(error),
        ..
    }) = next()
    else {
        panic!("not the error");
    };
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::InternalError, "new")
    );
    assert_eq!(next(), None);
}

/// Returns JSON of any shape, with members that have a meaning elsewhere in the
/// protocol.
fn anything() -> Value {
    json!({"path": "../x", "uri": "file:///%zz", "paths": ["file:///a"], "hash": null,
        "from": 1, "files": null, "nested": [{"path": null, "uri": null}, null, 1.5]})
}

#[test]
fn free_json_travels_untouched() {
    let sent = json!({"session": "s", "tool": "t", "args": anything(), "result": anything(),
        "paths": null});
    let Ok(Request::CallRecord(record)) = params("call/record", sent.clone()) else {
        panic!("refused");
    };
    assert_eq!(record.args.0, anything());
    assert_eq!(record.result.0, anything());
    let message = ask(Request::CallRecord(record));
    let json = codec_json::client_to_json(&message, ROOT);
    assert_eq!(json["params"]["args"], anything());
    assert_eq!(json["params"]["result"], anything());
    let bytes = frames::encode(&message).unwrap();
    assert_eq!(frames::decode_client(&bytes).as_ref(), Ok(&message));
    let join = json!({"session": "s", "tool": "t", "arguments": anything()});
    let Ok(Request::HookJoin(join)) = params("hook/join", join) else {
        panic!("refused");
    };
    assert_eq!(join.arguments, Some(FreeJson(anything())));
    // In frames the value travels as a text.
    let check = ask(Request::CallCheck(
        CallCheck::new(SessionId::new("s").unwrap(), "t").args(FreeJson(json!([null, 1]))),
    ));
    let bytes = frames::encode(&check).unwrap();
    let text = b"[null,1]".as_slice();
    assert!(bytes.windows(text.len()).any(|window| window == text));
    let found = CallChecked {
        duplicate: Duplicate::Identical,
        cached: true,
        result: Some(FreeJson(anything())),
        message: Some("m".into()),
        age_ms: Some(5),
        call_id: Some("t1".into()),
        validity: Some(Validity::Verified),
    };
    assert_eq!(
        result_json(Reply::CallCheck(found)),
        json!({"duplicate": "identical", "cached": true, "result": anything(), "message": "m",
            "ageMs": 5, "callId": "t1", "validity": "verified"})
    );
}

#[test]
fn free_json_in_frames_is_bounded_like_any_other() {
    let many = format!("[{}0]", "0,".repeat(1 << 18));
    let message = ask(Request::CallCheck(
        CallCheck::new(SessionId::new("s").unwrap(), "t")
            .args(FreeJson(Value::from(many.as_str()))),
    ));
    let bytes = frames::encode(&message).unwrap();
    assert!(frames::decode_client(&bytes).is_ok());
    // The same length is tried as a text, and as an array with that number of
    // values.
    let quoted = serde_json::to_string(&many).unwrap();
    let place = bytes
        .windows(quoted.len())
        .position(|window| window == quoted.as_bytes())
        .unwrap();
    let mut array = bytes;
    array[place..place + quoted.len()].copy_from_slice(format!("{many}  ").as_bytes());
    assert!(frames::decode_client(&array).is_err());
}

#[test]
fn a_snapshot_is_given_back_as_it_was_answered() {
    let snapshot = Snapshot {
        path: ClientPath::new(b"n\xffw".as_slice()),
        mtime_ms: 7,
        size: 3,
        hash: None,
    };
    let answered = result_json(Reply::FileSnapshot(snapshot.clone()));
    assert_eq!(
        answered,
        json!({"path": "n\u{fffd}w", "uri": "file:///home/u/w%20s/n%FFw", "mtimeMs": 7,
            "size": 3, "hash": null})
    );
    let Ok(Request::FileDetect(detect)) = params("file/detect", json!({"snapshot": answered}))
    else {
        panic!("refused");
    };
    assert_eq!(detect.snapshot.path.as_bytes(), b"/home/u/w s/n\xffw");
}

#[test]
fn a_file_edited_after_a_checkpoint() {
    let detected = CheckpointDetected {
        files: vec![EditedFile {
            path: path(b"a"),
            edited_by: vec![],
            first_edit: None,
            last_edit: None,
            versions: 0,
            differs: None,
            from_deleted_messages: true,
        }],
        warning: None,
        more: None,
    };
    assert_eq!(
        result_json(Reply::CheckpointDetect(detected)),
        json!({"files": [{"path": "a", "editedBy": [], "firstEdit": null, "lastEdit": null,
            "versions": 0, "differs": null, "fromDeletedMessages": true}]})
    );
    let taken = Reply::WarningTake(WarningTaken { warning: None });
    assert_eq!(result_json(taken), json!({"warning": null}));
}

#[test]
fn json_of_worktrees() {
    use touchmark_proto::worktrees::{
        WorktreeList, WorktreeOverlap, WorktreeProblem, WorktreeRow, WorktreeRows,
    };
    let ask = params("worktree/list", json!({"limit": 3})).unwrap();
    assert_eq!(ask, Request::WorktreeList(WorktreeList { limit: Some(3) }));
    let row = WorktreeRow {
        path: "/w".into(),
        branch: None,
        head: None,
        current: None,
        daemon: false,
        problem: Some(WorktreeProblem::NoCommonCommit),
        changed: None,
        more_files: None,
        overlaps: Vec::new(),
    };
    let overlap = WorktreeOverlap {
        path: path(b"a"),
        renamed: Some(path(b"b")),
        removed: None,
        lines: vec![LineRange { start: 1, end: 2 }],
        own_lines: vec![LineRange { start: 3, end: 3 }],
        authors: vec![Author::USER],
    };
    let met = WorktreeRow {
        branch: Some("topic".into()),
        daemon: true,
        problem: None,
        changed: Some(1),
        overlaps: vec![overlap],
        ..row.clone()
    };
    let rows = WorktreeRows {
        worktrees: vec![row, met],
        more: None,
    };
    assert_eq!(
        result_json(Reply::WorktreeList(rows)),
        json!({"worktrees": [
            {"path": "/w", "daemon": false, "problem": "noCommonCommit", "overlaps": []},
            {
                "path": "/w", "branch": "topic", "daemon": true, "changed": 1,
                "overlaps": [{
                    "path": "a", "renamed": "b", "lines": [{"start": 1, "end": 2}],
                    "ownLines": [{"start": 3, "end": 3}], "authors": [{"kind": "user"}],
                }],
            },
        ]})
    );
}
