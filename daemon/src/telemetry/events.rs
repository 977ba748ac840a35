//! From a fact to a record (TEL-5). A fact has at most one.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use touchmark_engine::{Fact, Passing, Record, Refusal, VersionFact};
use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::{AuthorKind, Evidence, LineCounts, Millis, RelPath, SessionId, VersionKind};

use super::identity::Names;
use super::sessions::Described;

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Version,
    Refused,
    Conflict,
    Passed,
    Lost,
    BroughtBack,
    Undone,
    Read,
}

impl Event {
    /// Returns the kind of the record of a fact; `None` if the fact has none.
    pub(super) fn of(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::Version(_) => Some(Self::Version),
            Fact::Lost { .. } => Some(Self::Lost),
            Fact::Read { .. } => Some(Self::Read),
            Fact::Refused { cause, .. } => Some(match cause {
                Refusal::Stale | Refusal::NotRead => Self::Refused,
                Refusal::Conflict => Self::Conflict,
            }),
            Fact::Passed { .. } => Some(Self::Passed),
            Fact::BroughtBack { .. } => Some(Self::BroughtBack),
            Fact::Undone { .. } => Some(Self::Undone),
            _ => None,
        }
    }

    /// Returns the name of the event.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Version => "touchmark.version",
            Self::Refused => "touchmark.refused",
            Self::Conflict => "touchmark.conflict",
            Self::Passed => "touchmark.passed",
            Self::Lost => "touchmark.lost",
            Self::BroughtBack => "touchmark.brought_back",
            Self::Undone => "touchmark.undone",
            Self::Read => "touchmark.read",
        }
    }

    fn severity(self) -> SeverityNumber {
        match self {
            Self::Lost => SeverityNumber::Warn,
            _ => SeverityNumber::Info,
        }
    }
}

/// What a record is made with, in addition to its fact.
pub(super) struct Around<'a> {
    /// The number of the record, from 1 since telemetry was switched on.
    pub(super) number: u64,
    /// The identities of facts.
    pub(super) uids: &'a dyn Fn(u64) -> String,
    /// How files are named.
    pub(super) names: &'a Names,
    /// What is known of the session; `None` if the fact has no session, or it
    /// was forgotten.
    pub(super) session: Option<&'a Described>,
    /// The lines of a version; `None` if a text is not kept.
    pub(super) lines: Option<LineCounts>,
}

/// Returns the session to which a record belongs: the one that acted, or whose
/// lines the record is about.
pub(super) fn session_of(fact: &Fact) -> Option<&SessionId> {
    match fact {
        Fact::Version(version) => version.author.session.as_ref(),
        Fact::BroughtBack { session, .. } | Fact::Undone { session, .. } => session.as_ref(),
        Fact::Lost { session, .. } => Some(session),
        other => other.session(),
    }
}

/// Returns the record of a fact; `None` if the fact has none.
pub(super) fn record_of(record: &Record, around: &Around<'_>) -> Option<LogRecord> {
    let event = Event::of(&record.fact)?;
    let mut attributes = Attributes::default();
    attributes.text("log.record.uid", (around.uids)(record.n));
    attributes.number("touchmark.record.number", around.number);
    if let Some(session) = session_of(&record.fact) {
        attributes.session(session, around.session);
    }
    match &record.fact {
        Fact::Version(version) => attributes.version(version, around),
        Fact::Lost {
            path, version, by, ..
        } => {
            attributes.path(path, around.names);
            attributes.text("touchmark.lost.version", (around.uids)(*version));
            attributes.text("touchmark.lost.by", (around.uids)(*by));
        }
        Fact::Read {
            verdict,
            source,
            range,
            lines,
            ..
        } => {
            attributes.text("touchmark.read.verdict", verdict_name(*verdict));
            attributes.text("touchmark.read.source", source_name(*source));
            let read = range.map_or(*lines, |range| {
                let end = range.end.min(*lines);
                (end + 1).saturating_sub(range.start)
            });
            attributes.number("touchmark.read.lines", read.into());
        }
        Fact::Refused { path, cause, .. } => {
            if let Some(path) = path {
                attributes.path(path, around.names);
            }
            match cause {
                Refusal::Stale => attributes.text("touchmark.refused.reason", "stale"),
                Refusal::NotRead => attributes.text("touchmark.refused.reason", "not_read"),
                Refusal::Conflict => {}
            }
        }
        Fact::Passed { path, cause, .. } => {
            attributes.path(path, around.names);
            let reason = match cause {
                Passing::Beside => "beside",
                Passing::Unread => "unread",
                Passing::Late => "late",
            };
            attributes.text("touchmark.passed.reason", reason);
        }
        Fact::BroughtBack { path, version, .. } => {
            attributes.path(path, around.names);
            if let Some(version) = version {
                attributes.text("touchmark.brought_back.version", (around.uids)(*version));
            }
        }
        Fact::Undone {
            undo,
            redo,
            files,
            hunks,
            conflicts,
            ..
        } => {
            attributes.number("touchmark.undo", *undo);
            attributes.put("touchmark.undo.redo", Value::BoolValue(*redo));
            attributes.number("touchmark.undo.files", u64::from(*files));
            attributes.number("touchmark.undo.hunks", u64::from(*hunks));
            attributes.number("touchmark.undo.conflicts", u64::from(*conflicts));
        }
        _ => {}
    }
    let time = nanos(record.time);
    Some(LogRecord {
        time_unix_nano: time,
        observed_time_unix_nano: time,
        severity_number: event.severity().into(),
        attributes: attributes.0,
        event_name: event.name().into(),
        ..LogRecord::default()
    })
}

/// Attributes of a record or of a resource.
#[derive(Default)]
pub(super) struct Attributes(pub(super) Vec<KeyValue>);

impl Attributes {
    pub(super) fn text(&mut self, key: &str, value: impl Into<String>) {
        self.put(key, Value::StringValue(value.into()));
    }

    fn number(&mut self, key: &str, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.put(key, Value::IntValue(value));
    }

    fn put(&mut self, key: &str, value: Value) {
        self.0.push(KeyValue {
            key: key.into(),
            value: Some(AnyValue { value: Some(value) }),
            ..KeyValue::default()
        });
    }

    fn session(&mut self, session: &SessionId, known: Option<&Described>) {
        self.text("session.id", session.as_str());
        let conversation = known.and_then(|known| known.conversation.as_ref());
        self.text(
            "gen_ai.conversation.id",
            conversation.unwrap_or(session).as_str(),
        );
        let Some(known) = known else { return };
        let texts = [
            ("gen_ai.agent.name", &known.agent),
            ("gen_ai.agent.version", &known.version),
            ("gen_ai.request.model", &known.model),
            ("touchmark.session.label", &known.label),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                self.text(key, value.as_str());
            }
        }
    }

    fn path(&mut self, path: &RelPath, names: &Names) {
        if let Some((key, name)) = names.of(path) {
            self.text(key, name);
        }
    }

    fn version(&mut self, version: &VersionFact, around: &Around<'_>) {
        self.text("touchmark.author.kind", author_name(version.author.kind));
        self.text("touchmark.evidence", evidence_name(version.evidence));
        self.text("touchmark.change", change_name(version.kind));
        self.path(&version.path, around.names);
        if let Some(lines) = around.lines {
            self.number("touchmark.lines.added", lines.added.into());
            self.number("touchmark.lines.removed", lines.removed.into());
        }
        if let Some(command) = version.command {
            self.number("touchmark.command", command);
        }
        if let Some(amends) = version.amends {
            self.text("touchmark.amends", (around.uids)(amends));
        }
    }
}

/// Returns a time in nanoseconds since 1970.
pub(super) fn nanos(time: Millis) -> u64 {
    time.saturating_mul(1_000_000)
}

/// Returns the name of a kind of authors.
pub(super) fn author_name(kind: AuthorKind) -> &'static str {
    match kind {
        AuthorKind::Agent => "agent",
        AuthorKind::User => "user",
        AuthorKind::Unknown => "unknown",
        AuthorKind::Committed => "committed",
    }
}

fn evidence_name(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Declared => "declared",
        Evidence::Marked => "marked",
        Evidence::Command => "command",
        Evidence::Editor => "editor",
        Evidence::Process => "process",
        Evidence::Unmarked => "unmarked",
        Evidence::Gap => "gap",
        Evidence::Claimed => "claimed",
        Evidence::Commit => "commit",
    }
}

fn change_name(kind: VersionKind) -> &'static str {
    match kind {
        VersionKind::Created => "created",
        VersionKind::Modified => "modified",
        VersionKind::Deleted => "deleted",
        VersionKind::Renamed => "renamed",
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::First => "first",
        Verdict::Repeat => "repeat",
        Verdict::Extends => "extends",
        Verdict::Changed => "changed",
    }
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::ReadTool => "read_tool",
        Source::AgentEdited => "agent_edited",
        Source::UserEdited => "user_edited",
        Source::FileMentioned => "file_mentioned",
        Source::ReadMissed => "read_missed",
    }
}
