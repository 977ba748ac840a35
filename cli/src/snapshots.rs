//! Every table at 60, 80 and 120 columns, with sessions whose ids are UUIDs,
//! with long and non-Latin names, and with hidden characters.
//!
//! The expected texts are in `snapshots/`. `TOUCHMARK_BLESS=1 cargo test -p
//! touchmark-cli snapshots` writes them; read them before you commit them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use anstream::adapter::strip_str;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use touchmark_client::proto::activity::Activity;
use touchmark_client::proto::{Author, Hash, LineCounts, RelPath, SessionId};

use crate::commands::fleet::DaemonState;
use crate::commands::{
    audit, checkpoint, config, files, fleet, history, modified, recovered, sessions, stats, status,
    worktrees,
};
use crate::daemon::config::{Configured, Whose};
use crate::feed::{Header, Layout, Now};
use crate::hunks;
use crate::table::View;
use crate::text::{is_hidden, width};
use crate::timeline::{self, LogRow, Timeline};

/// The current time: 2026-11-22, 12:00.
const NOW: u64 = 1_795_348_800_000;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

const CLAUDE: &str = "6f1c2d3e-8a4b-4c5d-9e6f-708192a3b4c5";
/// Two ids that begin alike, as those that contain the time do.
const CODEX: &str = "019a8f00-1111-7aaa-8bbb-0123456789ab";
const GEMINI: &str = "019a8f00-2222-7aaa-8bbb-0123456789ab";

const SHORT: &str = "src/a.rs";
const LONG: &str = "packages/service/src/components/navigation/sidebar/collapsed/panel_header.rs";
const WIDE: &str = "文档/设计/导航栏/侧边栏/折叠面板/标题组件的说明文档.md";
const COMBINED: &str = "Re\u{301}sume\u{301}s/e\u{301}te\u{301}.txt";
const HIDDEN: &str = "src/\u{1b}[2J\u{202e}name\nnew line.rs";

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn path(name: &str) -> RelPath {
    RelPath::new(name.as_bytes()).unwrap()
}

fn author(session: &str, label: &str) -> Author {
    Author {
        label: Some(label.to_owned()),
        ..Author::agent(SessionId::new(session).unwrap())
    }
}

fn claude() -> Author {
    author(CLAUDE, "claude-1")
}

fn hash(text: &str) -> Hash {
    Hash::of(text.as_bytes())
}

/// Compares what a command prints at each width with the expected text.
fn matches(name: &str, lines: impl Fn(&View) -> Vec<String>) {
    let mut text = String::new();
    for columns in [60, 80, 120] {
        let view = View {
            now: NOW,
            zone: TimeZone::UTC,
            columns: Some(columns),
        };
        text += &format!("--- {columns} columns\n");
        for line in lines(&view).join("\n").lines() {
            let line = strip_str(line).to_string();
            assert!(width(&line) <= columns, "{name}, {columns}: {line}");
            assert!(!line.chars().any(is_hidden), "{name}, {columns}: {line:?}");
            assert!(!line.ends_with(' '), "{name}, {columns}: {line:?}");
            text += &line;
            text.push('\n');
        }
    }
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshots");
    let file = place.join(format!("{name}.txt"));
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(&file, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, expected, "{}", file.display());
}

fn session(id: &str, label: &str, more: Value) -> Value {
    let mut row = json!({
        "session": id, "label": label, "agent": {"name": "claude-code", "version": "2.1.104"},
        "parent": null, "openedAt": NOW - HOUR, "lastActive": NOW - 3 * MINUTE, "open": true,
        "reads": 12, "edits": 3, "stale": 0, "modified": 0,
    });
    for (key, value) in more.as_object().unwrap() {
        row[key] = value.clone();
    }
    row
}

#[test]
fn snapshots_of_sessions() {
    let rows: Vec<_> = [
        session(CLAUDE, "claude-1", json!({"stale": 1, "modified": 2})),
        session(
            CODEX,
            "codex-1",
            json!({"agent": {"name": "codex", "version": "0.99.0-alpha.12"}, "reads": 1204,
                "open": false, "lastActive": NOW - 3 * DAY}),
        ),
        session(
            GEMINI,
            "gemini-12",
            json!({"parent": CLAUDE, "lastActive": NOW - 12 * SECOND}),
        ),
        session(
            "助手会话",
            "助手-1",
            json!({"agent": null, "lastActive": NOW - 40 * DAY}),
        ),
    ]
    .into_iter()
    .map(of)
    .collect();
    matches("sessions", |view| sessions::lines(&rows, view));
}

fn state(name: &str, state: &str, by: Option<Vec<Author>>, unsaved: bool) -> Value {
    json!({
        "path": path(name), "state": state, "mayEdit": false, "resident": true, "hash": null,
        "seenHash": null, "readCount": 12, "readAt": NOW - HOUR, "lineCount": 1, "size": 1,
        "mtimeMs": 0, "changedBy": by, "unsaved": unsaved,
    })
}

#[test]
fn snapshots_of_files() {
    let codex = author(CODEX, "codex-1");
    let found = vec![
        (
            "claude-1".to_owned(),
            vec![
                of(state(SHORT, "fresh", None, false)),
                of(state(LONG, "stale", Some(vec![Author::USER, codex]), true)),
                of(state(WIDE, "stale", Some(vec![Author::UNKNOWN]), false)),
                of(state(HIDDEN, "deleted", Some(vec![Author::USER]), false)),
            ],
        ),
        (
            "codex-1".to_owned(),
            vec![of(state(COMBINED, "unreadable", None, false))],
        ),
    ];
    matches("files", |view| files::lines(&found, view));
    let one = vec![(String::new(), found[0].1.clone())];
    matches("files-of-one-session", |view| files::lines(&one, view));
}

fn version(n: u64, name: &str, by: &Author, more: Value) -> Value {
    let mut version = json!({
        "clock": format!("1795000000000:{n}"), "path": path(name), "kind": "modified",
        "hash": hash(name), "size": 4_200_000, "time": NOW - n * n * MINUTE, "author": by,
        "evidence": "declared",
    });
    for (key, value) in more.as_object().unwrap() {
        version[key] = value.clone();
    }
    version
}

fn versions() -> Vec<Value> {
    vec![
        version(2, SHORT, &claude(), json!({})),
        version(
            3,
            LONG,
            &Author::USER,
            json!({"evidence": "unmarked", "overwritten": true}),
        ),
        version(
            9,
            WIDE,
            &author(CODEX, "codex-1"),
            json!({"evidence": "command", "kind": "created", "formatted": true}),
        ),
        version(
            40,
            COMBINED,
            &author("助手会话", "助手会话-1234567"),
            json!({"kind": "renamed", "from": path(LONG), "amends": "1795000000000:7"}),
        ),
        version(
            400,
            HIDDEN,
            &Author::UNKNOWN,
            json!({"kind": "deleted", "hash": null, "evidence": "gap"}),
        ),
    ]
}

#[test]
fn snapshots_of_log() {
    let counts = json!({"added": 12, "removed": 3});
    let entries: Vec<_> = versions()
        .into_iter()
        .map(|version| of(json!({"version": version, "lines": counts})))
        .collect();
    let rows = entries.into_iter().map(LogRow::Version);
    let rows: Vec<LogRow> = rows.chain(done()).collect();
    matches("log", |view| timeline::lines(&rows, false, view));
    matches("log-stat", |view| timeline::lines(&rows, true, view));
}

/// Each kind of thing that was done, as rows of the log.
fn done() -> Vec<LogRow> {
    let row = |n: u64, kind: &str, more: Value| {
        let mut row = json!({
            "clock": format!("1795000000000:{n}"), "time": NOW - n * MINUTE, "kind": kind,
        });
        for (key, value) in more.as_object().unwrap() {
            row[key] = value.clone();
        }
        LogRow::Action(of::<Activity>(row).into())
    };
    let by_claude = |name: &str, text: &str| json!({"session": CLAUDE, "label": "claude-1", "name": name, "text": text});
    let command =
        "sed -i 's/x = /y = /' lib/*.py && cargo test --workspace\n--all-targets -- --nocapture";
    vec![
        row(1, "command", by_claude("c5", command)),
        row(2, "command", by_claude("c1204", "ls")),
        row(
            3,
            "prompt",
            by_claude("k2", "rename the settings panel and fix the imports please"),
        ),
        row(
            4,
            "undo",
            json!({"name": "u1", "text": "claude-1, prompt k2", "files": 61}),
        ),
        row(5, "redo", json!({"name": "u2", "text": "u1", "files": 1})),
        row(
            6,
            "restore",
            json!({"path": path(LONG), "text": "17", "files": 1}),
        ),
        row(
            7,
            "keep",
            json!({"text": "3 changes by claude-1", "files": 2}),
        ),
        row(8, "git", json!({"text": "pull, main 1a2b3c4..4d5e6f7"})),
        row(
            9,
            "git",
            json!({"text": "commit, main 1a2b3c4..4d5e6f7 (while c5 ran)", "doubt": true}),
        ),
        row(10, "claim", json!({"path": path(SHORT), "text": "you"})),
    ]
}

#[test]
fn versions_are_folded_into_what_made_them() {
    let action = |n: u64, begun: u64, kind: &str, name: &str, more: Value| -> Activity {
        let mut row = json!({
            "clock": format!("1:{n}"), "begun": format!("1:{begun}"), "time": NOW,
            "kind": kind, "name": name,
        });
        for (key, value) in more.as_object().unwrap() {
            row[key] = value.clone();
        }
        of(row)
    };
    let entry = |n: u64, name: &str, by: &Author, more: Value| {
        let mut version = version(1, name, by, more);
        version["clock"] = json!(format!("1:{n}"));
        of(json!({"version": version, "lines": {"added": 2, "removed": 1}}))
    };
    let by_command = |n, name| {
        let more = json!({"evidence": "command", "command": "c1"});
        entry(n, name, &claude(), more)
    };
    let saved = |n, name| entry(n, name, &Author::USER, json!({"evidence": "editor"}));
    let actions = || {
        vec![
            action(
                30,
                25,
                "undo",
                "u1",
                json!({"files": 1, "paths": [path("b")]}),
            ),
            action(20, 10, "command", "c1", json!({"session": CLAUDE})),
        ]
    };
    let pages = || {
        [
            vec![
                saved(31, "b"),
                saved(28, "b"),
                saved(27, "c"),
                by_command(18, "a"),
            ],
            vec![by_command(15, "b"), by_command(12, "a"), saved(5, "b")],
        ]
    };
    let told = |rows: Vec<LogRow>| -> Vec<String> {
        let rows = rows.into_iter().map(|row| match row {
            LogRow::Version(entry) => entry.version.clock.n.to_string(),
            LogRow::Action(action) => {
                let name = action.row.name.unwrap();
                format!("{name}: {:?}", action.files.unwrap())
            }
        });
        rows.collect()
    };
    let mut timeline = Timeline::new(actions(), false);
    let [first, second] = pages();
    // The command began before the first page's oldest version.
    assert_eq!(told(timeline.take(first, false)), ["31", "u1: 1", "27"]);
    assert_eq!(told(timeline.take(second, true)), ["c1: 2", "5"]);
    let mut timeline = Timeline::new(actions(), true);
    let all = timeline.take(pages().into_iter().flatten().collect(), true);
    let expected = ["31", "u1: 1", "28", "27", "c1: 2", "18", "15", "12", "5"];
    assert_eq!(told(all), expected);
}

#[test]
fn snapshots_of_history() {
    let history = of(json!({"versions": versions(), "more": null}));
    matches("history", |view| history::lines(&history, view));
}

#[test]
fn snapshots_of_modified() {
    let change = |name: &str, by: Vec<Author>, lost: Value| {
        json!({
            "path": path(name), "kind": "modified", "hash": null, "changedBy": by,
            "evidence": ["declared"], "firstTime": NOW - HOUR, "lastTime": NOW - 90 * SECOND,
            "versions": 3, "lines": {"added": 1200, "removed": 37}, "lost": lost,
            "writing": true,
        })
    };
    let lost = version(7, LONG, &Author::USER, json!({}));
    let changes: Vec<_> = [
        change(SHORT, vec![claude()], Value::Null),
        change(
            LONG,
            vec![Author::USER, claude(), author(CODEX, "codex-1")],
            lost,
        ),
        change(WIDE, vec![Author::USER], Value::Null),
        change(HIDDEN, vec![Author::UNKNOWN], Value::Null),
    ]
    .into_iter()
    .map(of)
    .collect();
    matches("modified", |view| modified::lines(&changes, view));
}

#[test]
fn snapshots_of_checkpoints() {
    let row = |n: u64, label: Option<&str>, text: Option<&str>| checkpoint::Prompt {
        session: SessionId::new(CLAUDE).unwrap(),
        label: Some("claude-1".to_owned()),
        row: of(json!({
            "checkpoint": format!("k{n}"), "clock": format!("1795000000000:{n}"),
            "time": NOW - n * HOUR, "label": label, "text": text,
        })),
        files: [SHORT, LONG]
            .map(path)
            .into_iter()
            .take(n as usize % 3)
            .collect(),
        lines: LineCounts {
            added: 120,
            removed: 3,
        },
    };
    let rows = [
        row(
            1,
            Some("before the refactoring of the parser and of all its callers"),
            None,
        ),
        row(
            2,
            None,
            Some("rename the settings panel and fix the imports please, then run all the tests"),
        ),
        row(
            12,
            Some("重构之前：解析器和所有调用者，以及它们的测试和文档"),
            Some(GEMINI),
        ),
        row(300, Some("hidden \u{1b}[2J\n"), None),
    ];
    matches("checkpoint-list", |view| {
        checkpoint::list_lines(&rows, view)
    });
    let file = |name: &str, by: Vec<Author>, differs: Option<bool>| {
        of(json!({
            "path": path(name), "editedBy": by, "firstEdit": NOW - DAY, "lastEdit": NOW - HOUR,
            "versions": 7, "differs": differs, "fromDeletedMessages": false,
        }))
    };
    let files = [
        file(SHORT, vec![claude()], Some(false)),
        file(
            LONG,
            vec![Author::USER, claude(), author(CODEX, "codex-1")],
            Some(true),
        ),
        file(WIDE, vec![Author::USER], None),
    ];
    matches("checkpoint-detect", |view| {
        checkpoint::detected_lines(&files, view)
    });
}

#[test]
fn snapshots_of_recovered() {
    let item = |id: &str, name: &str, size: u64, by: Option<Author>| {
        of(json!({
            "id": id, "path": path(name), "hash": hash(name), "author": by,
            "time": NOW - 5 * HOUR, "size": size, "file": "/kept",
        }))
    };
    let items = [
        item("1795330800000-1", SHORT, 1, Some(Author::USER)),
        item("1795330800000-2", LONG, 4_200_000, Some(claude())),
        item("1795330800000-3", WIDE, 999_999, None),
    ];
    matches("recovered", |view| recovered::lines(&items, view));
}

#[test]
fn snapshots_of_worktrees() {
    let row = |at: &str, branch: Value, more: Value| {
        let mut row = json!({
            "path": at, "branch": branch, "head": "0123456789abcdef0123456789abcdef01234567",
            "daemon": true, "overlaps": [],
        });
        let more = more.as_object().unwrap().clone();
        row.as_object_mut().unwrap().extend(more);
        of(row)
    };
    let overlap = |name: &str, more: Value| {
        let mut overlap = json!({
            "path": path(name), "lines": [{"start": 3, "end": 7}, {"start": 19, "end": 19}],
            "ownLines": [{"start": 4, "end": 4}], "authors": [claude()],
        });
        let more = more.as_object().unwrap().clone();
        overlap.as_object_mut().unwrap().extend(more);
        overlap
    };
    let rows = [
        row("/home/user/shop", json!("main"), json!({"current": true})),
        row(
            "/home/user/shop/.claude/worktrees/navigation-sidebar-collapsed",
            json!("feature/navigation-sidebar-collapsed-panel"),
            json!({"changed": 12, "overlaps": [
                overlap(SHORT, json!({})), overlap(LONG, json!({})), overlap(WIDE, json!({})),
                overlap(HIDDEN, json!({"lines": [], "removed": true, "authors": []})),
            ]}),
        ),
        row(
            "/home/user/文档",
            json!(null),
            json!({"changed": 5000, "moreFiles": true}),
        ),
        row(
            "/mnt/gone",
            json!("old"),
            json!({"problem": "missing", "daemon": false}),
        ),
        row(
            "/srv/site",
            json!("gh-pages"),
            json!({"problem": "noCommonCommit"}),
        ),
        row("/net/hangs", json!("x"), json!({"problem": "noAnswer"})),
        row("/home/user/done", json!("done"), json!({"changed": 0})),
    ];
    matches("worktrees", |view| worktrees::lines(&rows, view));
}

#[test]
fn snapshots_of_stats() {
    let saved = of(json!({
        "repeats": 12, "bytesNotSent": 4_200_000, "staleRefused": 3, "notReadRefused": 0,
        "conflicts": 1, "duplicateCalls": 1_234_567, "duplicateBytes": 12, "notices": 99,
        "unansweredHooks": 2, "unclearHooks": 0,
    }));
    matches("stats", |view| stats::lines(&saved, view));
}

#[test]
fn snapshots_of_survival() {
    let sums = |added, alive, waiting| json!({"added": added, "alive": alive, "waiting": waiting});
    let list = of(json!({"rows": [
        {"agent": "claude-code", "model": "claude-opus-4-8-20260901-with-extended-context",
         "versions": 1234, "added": 56_789, "commit": sums(50_000, 45_123, 12),
         "day": sums(56_789, 40_000, 100), "week": sums(12_345, 0, 900)},
        {"agent": null, "model": null, "versions": 1, "added": 3, "commit": sums(0, 0, 0),
         "day": sums(3, 3, 0), "week": sums(0, 0, 1)},
    ]}));
    matches("survival", |view| stats::survival(&list, view));
}

fn report(workspace: &str, degraded: Value) -> Value {
    json!({
        "pid": 1_234_567, "version": "0.1.0", "protocol": 2, "workspace": workspace,
        "clock": "1795000000000:1234", "uptimeMs": 90_061_000, "trackedFiles": 1234,
        "watchedDirectories": 1, "sessions": 12, "connections": 1, "openEdits": 2,
        "backend": "inotify", "rssBytes": 42_000_000,
        "counters": {"events": 1_234_567, "versions": 12_345, "fences": 1_234_567, "overflows": 0,
                     "rescans": 1, "requests": 1_234_567},
        "store": {"path": format!("/var/state/touchmark/{}/store.db", "0".repeat(32)),
                  "sizeBytes": 512_000_000, "durability": "process",
                  "contents": {"bytes": 100_000_000, "originalBytes": 4_200_000_000_u64,
                               "pinnedBytes": 0, "since": NOW - 3 * DAY}},
        "configuration": {"refused": ".touchmark.toml:3: `guard.protect` is not for a repository to set", "atRestart": []},
        "degraded": degraded,
        "agents": [],
        "telemetry": {"endpoint": "http://127.0.0.1:4318/v1/logs", "acknowledged": "1795000000000:1200",
                      "unsent": 34, "pruned": 1, "rejected": 0,
                      "lastError": "no connection to the collector: Connection refused (os error 111)"},
        "startedBy": "client", "idleMs": 540_000, "idleExitMs": 1_800_000, "openCommands": 1,
        "subscriptions": 3, "privateBytes": 5_200_000,
    })
}

#[test]
fn snapshots_of_status() {
    let cause = "the limit of watches is reached: raise fs.inotify.max_user_watches";
    let degraded = json!([{"path": path(LONG), "cause": cause}]);
    let workspace = "/srv/projects/with/a/very/long/name/of/a/workspace/shop";
    let mut status = report(workspace, degraded);
    let why = "it connected to /run/build.sock: the program there may write for it";
    let gap = json!({"command": "c1204", "at": NOW - MINUTE, "why": why});
    let seen = |name: &str, commands: u64, incomplete: u64, gap: Value| {
        json!({"session": name, "sessionLabel": name, "since": NOW - DAY, "commands": commands,
               "incomplete": incomplete, "gap": gap})
    };
    status["witnessed"] = json!([
        seen("claude-1", 1204, 0, Value::Null),
        seen("codex-1", 12, 2, gap.clone()),
        seen("gemini-12", 1, 1, gap),
    ]);
    let status = of(status);
    matches("status", |view| status::screen(&status, view));
}

#[test]
fn snapshots_of_the_fleet() {
    let cause = "the limit of inotify instances is reached (fs.inotify.max_user_instances)";
    let with = |workspace: &str, fields: Value, degraded: Value| {
        let mut status = report(workspace, degraded);
        for (name, value) in fields.as_object().unwrap() {
            status[name] = value.clone();
        }
        status
    };
    let idle = json!({"connections": 1, "openEdits": 0, "openCommands": 0, "subscriptions": 0});
    let short = "/srv/shop";
    let long = "/srv/projects/with/a/very/long/name/of/a/workspace/shop";
    let wide = "/srv/文档/设计/导航栏/侧边栏/折叠面板/标题组件的说明文档";
    let all = fleet::rows(vec![
        (
            short,
            DaemonState::Running,
            with(short, idle.clone(), json!([])),
        ),
        (
            long,
            DaemonState::Running,
            with(
                long,
                json!({"connections": 3, "startedBy": "socket", "idleExitMs": null}),
                json!([{"path": null, "cause": cause}]),
            ),
        ),
        (wide, DaemonState::Running, with(wide, idle, json!([]))),
        ("/srv/hangs", DaemonState::Silent, json!({"pid": 4711})),
        ("/srv/asleep", DaemonState::Asleep, Value::Null),
        ("/srv/gone", DaemonState::None, Value::Null),
    ]);
    matches("fleet", |view| fleet::lines(&all, view));
}

#[test]
fn snapshots_of_config() {
    let mut configured = Configured::default();
    for (file, whose, text) in [
        (
            "/srv/ann/.config/touchmark/config.toml",
            Whose::User,
            "idle_exit = \"2 h\"\n[calls]\nkeep = 20\n",
        ),
        (
            "/srv/shop/.touchmark.toml",
            Whose::Repository,
            "[calls]\nkeep = 5\n",
        ),
    ] {
        let applied = configured
            .config
            .apply(Path::new(file), text.as_bytes(), whose);
        configured.set.extend(applied.set);
    }
    let root = Path::new("/srv/shop");
    matches("config", |view| config::lines(&configured, root, view));
}

#[test]
fn snapshots_of_audit() {
    let difference = |name: &str| {
        let believed = json!({"file": hash("one")});
        of(json!({"path": path(name), "believed": believed, "disk": "absent"}))
    };
    let all = [SHORT, LONG, WIDE, HIDDEN].map(difference);
    matches("audit", |view| audit::lines(&all, view));
}

#[test]
fn snapshots_of_undo() {
    let file = |name: &str, outcome: &str, cause: Option<&str>, to: Option<&str>| {
        of(json!({
            "path": path(name), "outcome": outcome, "hunks": 2, "conflicts": null,
            "to": to.map(path), "cause": cause,
        }))
    };
    let files = [
        file(SHORT, "undone", None, None),
        file(LONG, "renamed", None, Some(COMBINED)),
        file(
            WIDE,
            "notKept",
            Some("its content was larger than `contents.file`"),
            None,
        ),
        file(HIDDEN, "conflict", None, None),
    ];
    matches("undo", |view| {
        crate::undone::lines(&files, false, false, view)
    });
}

#[test]
fn snapshots_of_diff_stat() {
    let file = |name: &str, added: u32, cause: Option<&str>| {
        let file = of(json!({
            "path": path(name), "kind": "modified", "fromClock": null, "fromHash": null,
            "toClock": null, "toHash": null, "lines": {"added": added, "removed": 7},
            "binary": null, "cause": cause, "hunks": null,
        }));
        (file, Vec::new())
    };
    let files = [
        file(SHORT, 3, None),
        file(LONG, 400, None),
        file(WIDE, 1, Some("its content is not kept")),
    ];
    matches("diff-stat", |view| hunks::stat_lines(&files, view));
}

#[test]
fn snapshots_of_watch() {
    let header = Header {
        directory: "~/projects/with/a/long/name/of/a/workspace/shop".into(),
        files: 1234,
        sessions: 12,
        stale: 1,
        review: Some((1000, true)),
    };
    let short = Header {
        directory: "~/shop".into(),
        ..Header::default()
    };
    let entries = crate::feed::sample(CLAUDE, CODEX, [SHORT, LONG, WIDE, COMBINED, HIDDEN], NOW);
    matches("watch", |view| {
        let layout = Layout::new(view.clone());
        let headers = [&header, &short].map(|header| header.line(view.columns));
        let lines = entries.iter().enumerate();
        let lines = lines.map(|(number, entry)| {
            let time = match number < 3 {
                true => crate::feed::Time::OfDay,
                false => crate::feed::Time::Age,
            };
            layout.line(entry, time)
        });
        headers.into_iter().chain(lines).collect()
    });
}

#[test]
fn snapshots_of_what_is_the_case_now() {
    let of = |value: Value| serde_json::from_value(value).unwrap();
    let sessions = [
        session(CLAUDE, "claude-1", json!({"stale": 12})),
        session(CODEX, "codex-1", json!({"lastActive": NOW - DAY})),
        session(GEMINI, "gemini-12", json!({"lastActive": NOW - 9 * SECOND})),
        session("old", "old-1", json!({"lastActive": NOW - DAY})),
        session("closed", "closed-1", json!({"open": false})),
    ];
    let mut now = Now::default();
    now.sessions(sessions.into_iter().map(&of).collect());
    let command = |session: &str, label: &str, ended: Option<u64>| {
        serde_json::from_value(json!({
            "command": "c1", "session": session, "sessionLabel": null, "label": label,
            "begun": "1:1", "begunAt": NOW - 80 * SECOND, "ended": ended.map(|_| "1:2"),
            "endedAt": ended, "versions": 0,
        }))
        .unwrap()
    };
    let long = "cargo test --workspace --all-targets -- --include-ignored\necho done";
    now.commands(&[command(CODEX, long, None), command(CLAUDE, "ls", Some(NOW))]);
    let did = |session: &str, kind: &str, path: &str, lost: Option<&str>| {
        serde_json::from_value(json!({
            "clock": "1:9", "time": NOW - 3 * MINUTE, "session": session, "label": "claude-1",
            "kind": kind, "path": path, "lost": lost,
        }))
        .unwrap()
    };
    now.activity(&[
        did(GEMINI, "stale", LONG, None),
        did(CLAUDE, "read", SHORT, None),
    ]);
    let lost = [SHORT, LONG, WIDE].map(|path| did(CLAUDE, "overwrote", path, Some("1:4")));
    now.lost(lost.to_vec(), 2);
    matches("watch-now", |view| now.lines(view, 40));
    let view = View {
        now: NOW,
        zone: TimeZone::UTC,
        columns: Some(80),
    };
    assert_eq!(now.lines(&view, 16).len(), 8, "the feed has the other half");
    assert!(
        now.lines(&view, 15).is_empty(),
        "a small screen has the feed alone"
    );
}
