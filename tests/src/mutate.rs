//! Messages that are almost valid: valid ones of every method, changed at
//! random from a seed.

use serde_json::{Map, Number, Value, json};

/// Random numbers from a seed (xorshift64*).
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `most`.
    pub fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).expect("31 bits") % most
    }

    /// Returns one of the items.
    pub fn one_of<'a, T>(&mut self, some: &'a [T]) -> &'a T {
        &some[self.below(some.len())]
    }
}

/// Returns a valid message of each method, with all parameters. Methods that
/// would end the daemon or block the connection are left out.
pub fn samples() -> Vec<(&'static str, Value)> {
    let hash = crate::sha256("one\n");
    let range = json!({"start": 1, "end": 2});
    vec![
        (
            "initialize",
            json!({"client": {"name": "m", "version": "1"}, "protocol": 2, "session": "m", "role": "agent"}),
        ),
        ("ping", json!({})),
        ("status", json!({})),
        ("sync", json!({})),
        (
            "subscribe",
            json!({"session": "m", "kinds": ["version", "stale"], "since": "1:1"}),
        ),
        ("unsubscribe", json!({"subscription": 1})),
        (
            "session/open",
            json!({"session": "m", "agent": {"name": "a", "version": "1"}, "parent": "p", "pid": 1}),
        ),
        ("session/close", json!({"session": "m", "forget": true})),
        ("session/list", json!({})),
        (
            "session/compacted",
            json!({"session": "m", "keep": ["a.txt"]}),
        ),
        (
            "session/truncated",
            json!({"session": "m", "items": [{"path": "a.txt", "range": range}]}),
        ),
        (
            "file/read",
            json!({"session": "m", "path": "a.txt", "hash": hash, "range": range, "totalLines": 1,
                "text": "one\n", "step": 1, "source": "read_tool", "sync": true, "verify": false}),
        ),
        (
            "file/readText",
            json!({"session": "m", "path": "a.txt", "range": range, "step": 1, "force": true,
                "track": true, "sync": true, "verify": true}),
        ),
        (
            "file/mention",
            json!({"session": "m", "path": "a.txt", "hash": hash, "range": range, "step": 2}),
        ),
        ("file/invalidate", json!({"session": "m", "path": "a.txt"})),
        (
            "file/status",
            json!({"session": "m", "paths": ["a.txt", "none"], "state": ["fresh", "stale"],
                "sync": true, "verify": true, "limit": 10, "cursor": "YQ"}),
        ),
        (
            "file/list",
            json!({"session": "m", "all": true, "sync": false, "verify": false, "limit": 1}),
        ),
        (
            "file/history",
            json!({"path": "a.txt", "limit": 5, "before": "1:1", "sync": true}),
        ),
        ("file/untrack", json!({"session": "m", "path": "a.txt"})),
        (
            "file/recent",
            json!({"session": "m", "step": 3, "maxAge": 2, "limit": 1, "cursor": "0"}),
        ),
        (
            "file/isStale",
            json!({"session": "m", "path": "a.txt", "step": 3, "maxAge": 2}),
        ),
        ("file/snapshot", json!({"path": "a.txt"})),
        (
            "file/detect",
            json!({"snapshot": {"path": "a.txt", "mtimeMs": 1, "size": 4, "hash": hash}}),
        ),
        (
            "search/grep",
            json!({"session": "m", "pattern": "o(n)e", "path": ".", "glob": "*.txt", "fileType": "txt",
                "beforeContext": 1, "afterContext": 1, "context": 1, "caseInsensitive": true,
                "multiline": true, "maxMatches": 3}),
        ),
        ("stats", json!({"session": "m"})),
        ("contents/forget", json!({})),
        (
            "hook/event",
            json!({"agent": "claude", "input": {"session_id": "m", "cwd": "/", "hook_event_name": "PreToolUse",
                "tool_name": "Edit", "tool_use_id": "t", "tool_input": {"file_path": "a.txt",
                "old_string": "one", "new_string": "two", "replace_all": true}}}),
        ),
        (
            "hook/event",
            json!({"agent": "codex", "input": {"session_id": "m", "turn_id": "u", "hook_event_name": "PostToolUse",
                "tool_name": "apply_patch", "tool_input": {"command":
                "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch"}}}),
        ),
        (
            "hook/event",
            json!({"agent": "gemini", "input": {"session_id": "m", "hook_event_name": "BeforeTool",
                "tool_name": "run_shell_command", "tool_input": {"command": "cat a.txt"}}}),
        ),
        (
            "hook/event",
            json!({"agent": "cursor", "input": {"conversation_id": "m", "hook_event_name": "beforeSubmitPrompt",
                "prompt": "see @a.txt", "workspace_roots": ["/"]}}),
        ),
        (
            "hook/event",
            json!({"agent": "opencode", "input": {"phase": "after", "sessionID": "m", "tool": "read", "callID": "c",
                "args": {"filePath": "a.txt", "offset": 0, "limit": 2}, "output": "one"}}),
        ),
        (
            "hook/event",
            json!({"agent": "windsurf", "input": {"agent_action_name": "post_write_code",
                "trajectory_id": "m", "execution_id": "e", "tool_info": {"file_path": "a.txt",
                "edits": [{"old_string": "one", "new_string": "two"}]}}}),
        ),
        ("hook/ack", json!({"ack": "w 1:1 m"})),
        ("hook/allow", json!({"path": "a.txt"})),
        ("hook/shell", json!({"line": "eval 'make'"})),
        ("command/witness", json!({"command": "c1"})),
        ("agent/witness", json!({"pid": 1})),
        (
            "hook/join",
            json!({"session": "m", "client": "c", "tool": "read_file",
                "arguments": {"path": "a.txt"}}),
        ),
        (
            "claim",
            json!({"session": "m", "command": "c1", "paths": ["a.txt"],
                "lines": {"start": 1, "end": 1}}),
        ),
        (
            "checkpoint/create",
            json!({"session": "m", "label": "l", "message": "m1", "step": 1, "text": "t"}),
        ),
        (
            "checkpoint/list",
            json!({"session": "m", "limit": 1, "cursor": "0"}),
        ),
        (
            "checkpoint/delete",
            json!({"session": "m", "checkpoint": "k1"}),
        ),
        (
            "checkpoint/detect",
            json!({"session": "m", "clock": "1:1", "paths": ["a.txt"], "storeWarning": true,
                "deleted": [{"path": "a.txt", "operation": "edit_file", "time": 1}], "sync": true}),
        ),
        (
            "warning/store",
            json!({"session": "m", "files": ["a.txt"], "note": "n"}),
        ),
        ("warning/take", json!({"session": "m"})),
        ("warning/cleanup", json!({"live": ["m"]})),
        (
            "call/check",
            json!({"session": "m", "tool": "grep", "args": {"pattern": "x", "path": "a.txt"}, "verify": true}),
        ),
        (
            "call/record",
            json!({"session": "m", "tool": "grep", "args": {"pattern": "x", "path": "a.txt"},
                "result": ["a", null], "paths": ["a.txt"]}),
        ),
        ("call/stats", json!({"session": "m"})),
        ("call/clear", json!({"session": "m"})),
        (
            "retention/rank",
            json!({"session": "m", "step": 9, "maxAge": 2, "items": [{"id": "1", "tool": "read_file",
                "path": "a.txt", "step": 1, "lines": 1, "mentioned": true}]}),
        ),
        (
            "task/save",
            json!({"session": "m", "task": {"id": "t", "type": "shell", "command": "c", "pid": 1,
                "startTime": 1, "workingDirectory": "/"}}),
        ),
        ("task/list", json!({"session": "m", "limit": 1})),
        ("task/remove", json!({"id": "t", "session": "m"})),
        ("task/cleanup", json!({})),
        (
            "model/record",
            json!({"session": "m", "modelId": "a", "providerId": "b", "mode": "c", "messageId": "d"}),
        ),
        (
            "model/list",
            json!({"session": "m", "limit": 1, "cursor": "0"}),
        ),
        (
            "edit/begin",
            json!({"session": "m", "files": [{"path": "a.txt", "expect": hash, "base": hash}],
                "bind": true, "callId": "c", "requireRead": false, "force": true, "ttlMs": 50,
                "tool": "t", "step": 1}),
        ),
        (
            "edit/commit",
            json!({"session": "m", "callId": "c", "files": [{"path": "a.txt", "hash": hash}]}),
        ),
        ("edit/abort", json!({"session": "m", "callId": "c"})),
        (
            "edit/mark",
            json!({"session": "m", "path": "a.txt", "expect": "absent", "requireRead": false,
                "bind": true, "ttlMs": 50, "step": 1}),
        ),
        (
            "modified/list",
            json!({"session": "m", "sync": true, "limit": 10}),
        ),
        (
            "modified/take",
            json!({"session": "m", "peek": false, "ack": "explicit", "paths": ["a.txt"]}),
        ),
        ("modified/ack", json!({"session": "m", "cursor": "1:1"})),
        ("editor/didOpen", json!({"path": "a.txt"})),
        ("editor/didClose", json!({"path": "a.txt"})),
        (
            "editor/dirty",
            json!({"path": "a.txt", "dirty": true, "hash": hash}),
        ),
        (
            "editor/didSave",
            json!({"path": "a.txt", "hash": hash, "time": 1, "formatted": true}),
        ),
        (
            "command/begin",
            json!({"session": "m", "label": "l", "paths": ["**/*.rs"], "bind": true,
                "callId": "c", "ttlMs": 50, "formatter": true}),
        ),
        ("command/end", json!({"session": "m", "callId": "c"})),
        ("command/list", json!({"session": "m", "limit": 3})),
        ("audit", json!({})),
        (
            "file/write",
            json!({"session": "m", "path": "w.txt", "text": "one\n", "force": true,
                "requireRead": false, "createDirectories": true, "step": 1}),
        ),
        (
            "file/edit",
            json!({"session": "m", "path": "a.txt", "oldString": "one", "newString": "two",
                "replaceAll": true, "force": true, "step": 1}),
        ),
        ("recovery/list", json!({"id": "x"})),
        (
            "undo",
            json!({"session": "m", "prompt": "k1", "since": "k1", "command": "c1", "edit": "e1", "last": true,
                "path": "a.txt", "at": "1", "paths": ["a.txt"], "dryRun": true, "now": true,
                "conflicts": "keep"}),
        ),
        ("redo", json!({"undo": "u1", "dryRun": true})),
        ("undo/list", json!({})),
        ("worktree/list", json!({"limit": 3})),
        (
            "review/list",
            json!({"session": "m", "paths": ["a.txt"], "limit": 3, "command": "c1"}),
        ),
        (
            "review/keep",
            json!({"hunks": [{"path": "a.txt", "id": "0123456789abcdef"}]}),
        ),
        (
            "review/view",
            json!({"hunks": [{"path": "a.txt", "id": "0123456789abcdef"}], "viewed": true}),
        ),
        (
            "review/comment",
            json!({"path": "a.txt", "id": "0123456789abcdef", "text": "why?"}),
        ),
        (
            "review/undo",
            json!({"hunks": [{"path": "a.txt", "id": "0123456789abcdef"}]}),
        ),
        ("file/content", json!({"path": "a.txt", "at": "now"})),
        (
            "file/diff",
            json!({"path": "a.txt", "paths": ["a.txt"], "from": "@10m", "to": "now",
                "context": 3, "limit": 3, "cursor": "a.txt"}),
        ),
        (
            "file/blame",
            json!({"path": "a.txt", "at": "now", "range": range}),
        ),
        (
            "file/log",
            json!({"paths": ["a.txt"], "since": "@10m", "until": "@1m", "lines": true, "limit": 3, "before": "1:1"}),
        ),
        ("fleet/yield", json!({"idleMs": 60_000})),
        (
            "activity/list",
            json!({"session": "m", "since": "@10m", "until": "@1m", "limit": 3, "before": "1:1",
                "kinds": ["read", "git"]}),
        ),
        ("survival/list", json!({"session": "m"})),
        ("file/restore", json!({"path": "a.txt", "at": "now"})),
        ("recovery/show", json!({"id": "x"})),
        ("recovery/restore", json!({"id": "x"})),
        ("recovery/delete", json!({"id": "x"})),
        ("quotes/normalize", json!({"text": "\u{201c}a\u{201d}"})),
        (
            "quotes/match",
            json!({"needle": "\"a\"", "haystack": "\u{201c}a\u{201d}"}),
        ),
    ]
}

/// Returns a value that is invalid almost everywhere.
fn odd(random: &mut Random) -> Value {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(u64::from(u32::MAX) + 1),
        json!(""),
        json!("\0"),
        json!("\u{1b}[2J\n\u{202e}"),
        json!("../../etc/passwd"),
        json!("/"),
        json!("a.txt/"),
        json!("./a/../a.txt"),
        json!("x".repeat(5_000)),
        json!("x/".repeat(1_500)),
        json!(f64::MAX),
        json!([]),
        json!({}),
        json!(["a.txt", 1, null]),
        json!({"start": 0, "end": -1}),
        json!({"start": u32::MAX, "end": u32::MAX}),
        json!({"start": 9, "end": 2}),
        json!("absent"),
        json!("e".repeat(64)),
        json!("18446744073709551615:18446744073709551615"),
        json!("0:0"),
        json!("[{**"),
    ];
    random.one_of(&odd).clone()
}

/// Changes one place in a value.
fn change(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) if !fields.is_empty() && random.below(8) > 0 => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = random.one_of(&names).clone();
            match random.below(6) {
                0 => {
                    fields.remove(&name);
                }
                1 => {
                    let moved = fields.remove(&name).unwrap_or_default();
                    fields.insert(format!("{name}x"), moved);
                }
                2 => {
                    fields.insert(name, odd(random));
                }
                _ => change(fields.entry(name).or_insert(Value::Null), random),
            }
        }
        Value::Array(items) if !items.is_empty() && random.below(8) > 0 => {
            let place = random.below(items.len());
            match random.below(4) {
                0 => {
                    items.remove(place);
                }
                1 => {
                    let item = items[place].clone();
                    items.extend(std::iter::repeat_n(item, 1 + random.below(50)));
                }
                _ => change(&mut items[place], random),
            }
        }
        Value::Number(number) if random.below(2) == 0 => {
            *number = Number::from(number.as_u64().unwrap_or(1).wrapping_sub(2));
        }
        _ => *value = odd(random),
    }
}

/// Returns a valid message's parameters with one to three changes.
pub fn changed_params(params: &Value, random: &mut Random) -> Value {
    let mut params = params.clone();
    for _ in 0..=random.below(3) {
        change(&mut params, random);
    }
    params
}

/// Returns a message as a line without its line feed: mostly valid except for
/// the parameters, sometimes invalid as a whole.
pub fn line(method: &str, params: &Value, random: &mut Random) -> Vec<u8> {
    let mut message = Map::new();
    message.insert("jsonrpc".into(), json!("2.0"));
    message.insert("id".into(), json!(random.below(3)));
    message.insert("method".into(), json!(method));
    message.insert("params".into(), changed_params(params, random));
    let mut message = Value::Object(message);
    if random.below(8) == 0 {
        change(&mut message, random);
    }
    if random.below(16) == 0 {
        message = json!([message, message]);
    }
    let mut bytes = message.to_string().into_bytes();
    if random.below(4) == 0 {
        changed_bytes(&mut bytes, random);
    }
    // The message stays one line.
    bytes.retain(|byte| *byte != b'\n');
    bytes
}

/// Changes, removes, doubles or cuts bytes.
pub fn changed_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let place = random.below(bytes.len());
        match random.below(5) {
            0 => {
                bytes.remove(place);
            }
            1 => bytes.truncate(place),
            2 => bytes.insert(place, bytes[place]),
            3 => bytes[place] ^= 1 << random.below(8),
            _ => bytes[place] = *random.one_of(&[0, 0xff, b'"', b'{', b'[', b'\\', 251, 252, 253]),
        }
    }
}
