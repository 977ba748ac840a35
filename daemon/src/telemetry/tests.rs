//! From facts to records.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use touchmark_engine::session_memory::Note;
use touchmark_engine::{Fact, Held, Passing, Record, Refusal, VersionFact};
use touchmark_proto::daemon::Savings;
use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::trust::{Me, Trust};
use touchmark_proto::{
    Author, BaseDirectories, Evidence, LineCounts, LineRange, Places, RelPath, SessionId,
    VersionKind,
};

use super::events::{Around, Attributes, record_of, session_of};
use super::identity::{Names, identify};
use super::is_exported;
use super::sessions::Described;
use crate::config::Paths;

fn session() -> SessionId {
    SessionId::new("s-1").unwrap()
}

fn path() -> RelPath {
    RelPath::new(b"src/a.rs").unwrap()
}

/// A workspace in a directory of its own.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["state/touchmark", "ws"] {
            std::fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    fn file(&self, name: &str, text: &str) {
        let file = self.directory.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn names(&self, below: &str, paths: Paths) -> (Names, BTreeMap<String, String>) {
        let base = self.directory.path().canonicalize().unwrap();
        let workspace = base.join(below);
        std::fs::create_dir_all(&workspace).unwrap();
        let base = BaseDirectories {
            runtime: None,
            state: base.join("state"),
            config: base.join("config"),
            cache: base.join("cache"),
        };
        let places = Places::new(&base, &workspace, None);
        let trust = Trust {
            me: Me::new(rustix::process::geteuid().as_raw()),
            list: Path::new("/nowhere").into(),
        };
        let mut resource = Attributes::default();
        let names = identify(&workspace, &places, &trust, paths, &mut resource);
        (names, texts(&resource.0))
    }
}

fn texts(
    attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue],
) -> BTreeMap<String, String> {
    let value = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        other => panic!("{other:?}"),
    };
    let all = attributes.iter().map(|attribute| {
        let inner = attribute.value.as_ref().unwrap().value.clone();
        (attribute.key.clone(), value(inner))
    });
    all.collect()
}

fn made(fact: Fact, lines: Option<LineCounts>) -> Option<LogRecord> {
    let place = Place::new();
    let (names, _) = place.names("ws", Paths::Plain);
    let known = Described {
        conversation: Some(SessionId::new("main").unwrap()),
        agent: Some("claude-code".into()),
        version: Some("2.1".into()),
        model: Some("m-1".into()),
        label: Some("claude-1".into()),
    };
    let record = Record {
        n: 7,
        time: 1_700_000_000_123,
        fact,
    };
    assert_eq!(is_exported(&record.fact), record_is_made(&record, &names));
    let around = Around {
        number: 9,
        uids: &|n| format!("3:{n}"),
        names: &names,
        session: session_of(&record.fact).map(|_| &known),
        lines,
    };
    record_of(&record, &around)
}

fn record_is_made(record: &Record, names: &Names) -> bool {
    let around = Around {
        number: 1,
        uids: &|n| n.to_string(),
        names,
        session: None,
        lines: None,
    };
    record_of(record, &around).is_some()
}

/// Returns an event's name and its attributes, without those of the session,
/// which are checked.
fn told(fact: Fact, lines: Option<LineCounts>) -> (String, Vec<(String, String)>) {
    let record = made(fact, lines).expect("a record");
    assert_eq!(record.time_unix_nano, 1_700_000_000_123_000_000);
    assert_eq!(record.body, None);
    let mut all = texts(&record.attributes);
    assert_eq!(all.len(), record.attributes.len(), "an attribute twice");
    assert_eq!(all.remove("log.record.uid").as_deref(), Some("3:7"));
    assert_eq!(all.remove("touchmark.record.number").as_deref(), Some("9"));
    if all.remove("session.id").is_some() {
        let session = [
            ("gen_ai.conversation.id", "main"),
            ("gen_ai.agent.name", "claude-code"),
            ("gen_ai.agent.version", "2.1"),
            ("gen_ai.request.model", "m-1"),
            ("touchmark.session.label", "claude-1"),
        ];
        for (key, value) in session {
            assert_eq!(all.remove(key).as_deref(), Some(value), "{key}");
        }
    }
    (record.event_name, all.into_iter().collect())
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    pairs.sort();
    pairs
}

#[test]
fn tel_5_a_version_says_who_changed_how_much() {
    let mut version = VersionFact::new(
        path(),
        VersionKind::Modified,
        Held::ABSENT,
        Author::agent(session()),
        Evidence::Command,
    );
    version.command = Some(4);
    version.amends = Some(5);
    let lines = LineCounts {
        added: 2,
        removed: 1,
    };
    let (event, attributes) = told(Fact::Version(version.clone()), Some(lines));
    assert_eq!(event, "touchmark.version");
    let all = [
        ("touchmark.amends", "3:5"),
        ("touchmark.author.kind", "agent"),
        ("touchmark.change", "modified"),
        ("touchmark.command", "4"),
        ("touchmark.evidence", "command"),
        ("touchmark.lines.added", "2"),
        ("touchmark.lines.removed", "1"),
        ("touchmark.path", "src/a.rs"),
    ];
    assert_eq!(attributes, expected(&all));
    // What is not known is left out.
    version.author = Author::USER;
    (version.command, version.amends) = (None, None);
    version.evidence = Evidence::Unmarked;
    let record = made(Fact::Version(version), None).unwrap();
    let keys: Vec<String> = texts(&record.attributes).into_keys().collect();
    assert_eq!(
        keys,
        [
            "log.record.uid",
            "touchmark.author.kind",
            "touchmark.change",
            "touchmark.evidence",
            "touchmark.path",
            "touchmark.record.number",
        ]
    );
}

#[test]
fn tel_5_other_facts_have_one_record_or_none() {
    let lost = Fact::Lost {
        session: session(),
        path: path(),
        version: 2,
        by: 3,
        seen: Vec::new(),
        lines: None,
    };
    let all = [
        ("touchmark.path", "src/a.rs"),
        ("touchmark.lost.version", "3:2"),
        ("touchmark.lost.by", "3:3"),
    ];
    assert_eq!(told(lost, None), ("touchmark.lost".into(), expected(&all)));

    let read = |range| Fact::Read {
        session: session(),
        path: path(),
        hash: None,
        lines: 10,
        range,
        verdict: Verdict::Changed,
        source: Source::ReadTool,
        step: None,
    };
    for (range, lines) in [
        (None, "10"),
        (Some(LineRange { start: 4, end: 6 }), "3"),
        (Some(LineRange { start: 4, end: 99 }), "7"),
        (Some(LineRange { start: 40, end: 99 }), "0"),
        (
            Some(LineRange {
                start: 1,
                end: u32::MAX,
            }),
            "10",
        ),
    ] {
        let all = [
            ("touchmark.read.verdict", "changed"),
            ("touchmark.read.source", "read_tool"),
            ("touchmark.read.lines", lines),
        ];
        assert_eq!(
            told(read(range), None),
            ("touchmark.read".into(), expected(&all))
        );
    }

    let refused = |cause| Fact::Refused {
        session: session(),
        path: Some(path()),
        cause,
    };
    let file = ("touchmark.path", "src/a.rs");
    for (cause, reason) in [(Refusal::Stale, "stale"), (Refusal::NotRead, "not_read")] {
        let all = [file, ("touchmark.refused.reason", reason)];
        let told = told(refused(cause), None);
        assert_eq!(told, ("touchmark.refused".into(), expected(&all)));
    }
    let conflict = told(refused(Refusal::Conflict), None);
    assert_eq!(conflict, ("touchmark.conflict".into(), expected(&[file])));
    let passed = Fact::Passed {
        session: session(),
        path: path(),
        cause: Passing::Beside,
    };
    let all = [file, ("touchmark.passed.reason", "beside")];
    assert_eq!(
        told(passed, None),
        ("touchmark.passed".into(), expected(&all))
    );
    let brought_back = Fact::BroughtBack {
        session: None,
        path: path(),
        version: Some(2),
    };
    let all = [file, ("touchmark.brought_back.version", "3:2")];
    let told_back = told(brought_back, None);
    assert_eq!(told_back, ("touchmark.brought_back".into(), expected(&all)));
    let undone = Fact::Undone {
        session: Some(session()),
        undo: 9,
        redo: true,
        files: 1,
        hunks: 2,
        conflicts: 3,
    };
    let all = [
        ("touchmark.undo", "9"),
        ("touchmark.undo.redo", "true"),
        ("touchmark.undo.files", "1"),
        ("touchmark.undo.hunks", "2"),
        ("touchmark.undo.conflicts", "3"),
    ];
    assert_eq!(
        told(undone, None),
        ("touchmark.undone".into(), expected(&all))
    );
    let repeat = Fact::Noted {
        session: session(),
        note: Note::Saved(Savings {
            repeats: 1,
            ..Savings::default()
        }),
    };
    assert_eq!(made(repeat, None), None);
    let closed = Fact::SessionClosed { session: session() };
    assert_eq!(made(closed, None), None);
}

#[test]
fn tel_6_files_are_named_as_the_user_wants() {
    let place = Place::new();
    let of = |below: &str, paths| place.names(below, paths).0.of(&path());
    assert_eq!(of("ws", Paths::None), None);
    let plain = ("touchmark.path", "src/a.rs".to_owned());
    assert_eq!(of("ws", Paths::Plain), Some(plain));
    let (key, hash) = of("ws", Paths::Hash).unwrap();
    assert_eq!((key, hash.len()), ("touchmark.path.hash", 32));
    // The key stays; another user's is another one.
    assert_eq!(of("ws", Paths::Hash), Some((key, hash.clone())));
    let other = Place::new();
    assert_ne!(
        other.names("ws", Paths::Hash).0.of(&path()),
        Some((key, hash))
    );
    let stored = place.directory.path().join("state/touchmark/telemetry.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&stored.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn tel_6_all_work_trees_of_a_repository_are_one() {
    let place = Place::new();
    let origin = "[remote \"origin\"]\n\turl = https://u:secret@example.com/a/b.git\n";
    place.file("ws/.git/config", origin);
    place.file("ws/.git/worktrees/two/commondir", "../..\n");
    let two = place.directory.path().join("ws/.git/worktrees/two");
    place.file("two/.git", &format!("gitdir: {}\n", two.display()));
    place.file(
        "clone/.git/config",
        "[remote \"origin\"]\nurl = git@example.com:a/b\n",
    );
    place.file("alone/.git/config", "[core]\n");
    let (one, first) = place.names("ws", Paths::Hash);
    let (_, second) = place.names("two", Paths::Hash);
    let (below, third) = place.names("clone/src", Paths::Hash);
    let (_, alone) = place.names("alone", Paths::Hash);
    let repository = |found: &BTreeMap<String, String>| found["touchmark.repository"].clone();
    assert_eq!(repository(&first), repository(&second));
    assert_eq!(repository(&first), repository(&third));
    assert_ne!(repository(&first), repository(&alone));
    assert_ne!(first["touchmark.worktree"], second["touchmark.worktree"]);
    let all = format!("{first:?}{second:?}{third:?}{alone:?}");
    assert!(!all.contains("example") && !all.contains("secret"), "{all}");
    // A workspace below the top names its files from there.
    let inner = RelPath::new(b"a.rs").unwrap();
    assert_eq!(below.of(&inner), one.of(&path()));
    let (_, plain) = place.names("ws", Paths::Plain);
    assert_eq!(plain["vcs.repository.url.full"], "https://example.com/a/b");
    assert_eq!(plain["vcs.repository.name"], "b");
}
