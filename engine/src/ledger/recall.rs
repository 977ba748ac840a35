//! Builds answers from the records that the store found in the log.

use std::collections::BTreeMap;

use touchmark_proto::changes::Changes;
use touchmark_proto::events::{EditPhase, Happening, SessionPhase};
use touchmark_proto::files::Versions;
use touchmark_proto::{
    Author, Change, Clock, Evidence, Hash, Millis, RelPath, Reply, SessionId, Version, VersionKind,
};

use crate::cursor::write_path;
use crate::effect::{Answer, LinesWanted, Marks};
use crate::ledger::fold::{Folded, kind_between};
use crate::ledger::record::{Fact, Held, Record, VersionFact};
pub use crate::ledger::wire_names::{
    checkpoint_name, command_name, command_number, edit_name, edit_number, undo_name,
};

/// What the state says about a version beyond its fact.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionMarks {
    /// The version was overwritten before any session had seen it.
    pub overwritten: bool,
    /// The version rests on a mark that is still open.
    pub provisional: bool,
}

/// Returns a version in the form of the protocol.
pub fn version_of(
    epoch: u64,
    n: u64,
    time: Millis,
    fact: &VersionFact,
    marks: VersionMarks,
) -> Version {
    let yes = |flag: bool| flag.then_some(true);
    Version {
        clock: Clock { epoch, n },
        path: fact.path.clone(),
        kind: fact.kind,
        from: fact.from.clone(),
        hash: fact.held.hash,
        size: fact.held.size,
        time,
        author: fact.author.clone(),
        evidence: fact.evidence,
        amends: fact.amends.map(|n| Clock { epoch, n }),
        overwritten: yes(marks.overwritten),
        unobserved: yes(fact.unobserved),
        provisional: yes(marks.provisional),
        late: yes(fact.late),
        formatted: yes(fact.formatted),
        candidates: (!fact.candidates.is_empty()).then(|| fact.candidates.clone()),
        edit: fact
            .edit
            .filter(|_| matches!(fact.evidence, Evidence::Declared | Evidence::Marked))
            .map(edit_name),
        command: fact.command.map(command_name),
        mode: fact.held.mode,
        mode_before: fact.mode_before,
        before_unknown: yes(fact.is_before_unknown()),
        real: fact.real.clone(),
    }
}

/// Returns the names whose facts belong to a file's history (FILE-2), each with
/// an exclusive lower and an exclusive upper fact number. An earlier name
/// counts from the end of the one before it; the file's own name counts from
/// the end of the last one. What a name contained before it became another
/// file's is not part of that file's history.
pub fn spans<'a>(
    path: &'a RelPath,
    earlier: &'a [(RelPath, u64)],
) -> impl Iterator<Item = (&'a RelPath, u64, u64)> {
    let ends = earlier.iter().map(|(name, last)| (name, last + 1));
    ends.chain([(path, u64::MAX)])
        .scan(0, |after, (name, end)| {
            let from = std::mem::replace(after, end - 1);
            Some((name, from, end))
        })
}

/// Answers `file/history` from the path's baselines and versions, newest first.
/// `records` has one more than `limit` if there are more.
pub fn history(epoch: u64, records: &[Record], limit: usize, marks: &Marks) -> Versions {
    let held = |record: &Record| record.fact.held().copied();
    let older = records.iter().skip(1).map(Some).chain([None]);
    let versions: Vec<Version> = records
        .iter()
        .zip(older)
        .take(limit)
        .filter(|(record, older)| {
            // A baseline that repeats the previous content is left out.
            let again = matches!(record.fact, Fact::Baseline { .. });
            let the_same = |older| {
                let [older, newer] = [held(older)?, held(record)?];
                let changed = older.mode.is_some() && newer.mode != older.mode;
                Some(older.hash == newer.hash && !changed)
            };
            !(again && older.and_then(the_same).unwrap_or(false))
        })
        .filter_map(|(record, _)| match &record.fact {
            Fact::Version(fact) => Some(version_of(
                epoch,
                record.n,
                record.time,
                fact,
                VersionMarks {
                    overwritten: marks.overwritten.contains(&record.n),
                    provisional: matches!(fact.evidence, Evidence::Marked | Evidence::Unmarked)
                        && fact.amends.is_none()
                        && fact
                            .edit
                            .is_some_and(|edit| marks.open_edits.contains(&edit)),
                },
            )),
            Fact::Baseline {
                path, held, real, ..
            } => {
                let mut row = baseline(epoch, record.n, record.time, path, *held);
                row.real.clone_from(real);
                Some(row)
            }
            _ => None,
        })
        .collect();
    let more = (records.len() > limit)
        .then(|| records.get(limit.saturating_sub(1)))
        .flatten()
        .map(|last| Clock { epoch, n: last.n });
    Versions { versions, more }
}

/// Returns the row for a path's baseline. The daemon did not watch before it,
/// so it names no author.
fn baseline(epoch: u64, n: u64, time: Millis, path: &RelPath, held: Held) -> Version {
    let kind = if held.hash.is_some() {
        VersionKind::Created
    } else {
        VersionKind::Deleted
    };
    let fact = VersionFact::new(path.clone(), kind, held, Author::UNKNOWN, Evidence::Gap);
    version_of(epoch, n, time, &fact, VersionMarks::default())
}

/// The answer's row for one path while its versions are folded.
struct PathChanges {
    kind: VersionKind,
    from: Option<RelPath>,
    before: Option<Hash>,
    after: Option<Hash>,
    first: Millis,
    last: Millis,
    /// Number, author and evidence of each version; a correction replaces its
    /// version.
    versions: Vec<(u64, Author, Evidence)>,
}

/// Answers `modified/list` without a session or with `since`: from all versions
/// after a clock, oldest first.
pub fn since(
    records: &[Record],
    clock: Clock,
    cursor: Option<&RelPath>,
    limit: usize,
    session: Option<&SessionId>,
) -> Answer {
    let mut rows: BTreeMap<RelPath, PathChanges> = BTreeMap::new();
    for record in records {
        let Fact::Version(fact) = &record.fact else {
            continue;
        };
        // If the corrected version is older than the requested clock, the
        // correction still counts as a change.
        if let Some(amended) = fact.amends
            && let Some(row) = rows.get_mut(&fact.path)
            && let Some(version) = row.versions.iter_mut().find(|(n, ..)| *n == amended)
        {
            version.1 = fact.author.clone();
            version.2 = fact.evidence;
            continue;
        }
        let row = rows
            .entry(fact.path.clone())
            .or_insert_with(|| PathChanges {
                kind: fact.kind,
                from: None,
                before: fact.before,
                after: None,
                first: record.time,
                last: record.time,
                versions: Vec::new(),
            });
        row.last = record.time;
        row.after = fact.held.hash;
        if fact.from.is_some() {
            row.from.clone_from(&fact.from);
        }
        row.versions
            .push((record.n, fact.author.clone(), fact.evidence));
    }
    let mut changes = Vec::new();
    let mut lines = Vec::new();
    let mut more = None;
    for (path, row) in rows {
        if cursor.is_some_and(|cursor| path <= *cursor) {
            continue;
        }
        let others: Vec<_> = row
            .versions
            .iter()
            .filter(|(_, author, evidence)| {
                session.is_none_or(|session| !author.is(session) || evidence.is_of_command())
            })
            .collect();
        let Some(_) = others.first() else { continue };
        if changes.len() == limit {
            more = changes
                .last()
                .map(|change: &Change| write_path(&change.path));
            break;
        }
        let mut folded = Folded::at(row.first);
        for (_, author, grounds) in &others {
            folded.add(row.last, author, *grounds);
        }
        folded.first = row.first;
        folded.from = row.from;
        let kind = match kind_between(row.before, row.after) {
            VersionKind::Modified | VersionKind::Created if folded.from.is_some() => {
                VersionKind::Renamed
            }
            VersionKind::Modified if row.kind == VersionKind::Created => VersionKind::Created,
            kind => kind,
        };
        lines.push(LinesWanted {
            index: changes.len(),
            ..LinesWanted::between(row.before, row.after)
        });
        changes.push(folded.change(path, kind, row.after));
    }
    Answer {
        reply: Reply::ModifiedList(Changes {
            changes,
            clock,
            more,
            pending: None,
        }),
        lines,
        previews: Vec::new(),
    }
}

/// Returns the event that a subscriber gets for a fact that it missed, or
/// `None` if the fact causes no event. Events about stale copies are not
/// replayed: a query returns the current state.
pub fn happening(epoch: u64, record: &Record) -> Option<Happening> {
    let session_phase = |session: &SessionId, phase| Happening::Session {
        session: session.clone(),
        phase,
        label: None,
    };
    Some(match &record.fact {
        Fact::Version(fact) => Happening::Version {
            version: version_of(epoch, record.n, record.time, fact, VersionMarks::default()),
            lines: None,
        },
        Fact::Read {
            session,
            path,
            range,
            verdict,
            ..
        } => Happening::Read {
            session: session.clone(),
            path: path.clone(),
            verdict: *verdict,
            range: *range,
            label: None,
        },
        Fact::EditBegun(edit) => Happening::Edit {
            session: edit.session.clone(),
            edit: edit_name(edit.edit),
            phase: EditPhase::Begun,
            paths: edit.files.iter().map(|file| file.path.clone()).collect(),
            label: None,
        },
        Fact::EditEnded {
            edit,
            session,
            paths,
            phase,
        } => Happening::Edit {
            session: session.clone(),
            edit: edit_name(*edit),
            phase: *phase,
            paths: paths.clone(),
            label: None,
        },
        Fact::SessionOpened { session, .. } => session_phase(session, SessionPhase::Opened),
        Fact::SessionClosed { session } => session_phase(session, SessionPhase::Closed),
        Fact::SessionForgotten { session } => session_phase(session, SessionPhase::Forgotten),
        other => return undone(other),
    })
}

/// Returns the event for an undo or a redo, or `None` for any other fact.
pub(crate) fn undone(fact: &Fact) -> Option<Happening> {
    let Fact::Undone {
        session,
        undo,
        redo,
        files,
        ..
    } = fact
    else {
        return None;
    };
    Some(Happening::Undone {
        session: session.clone(),
        undo: undo_name(*undo),
        redo: redo.then_some(true),
        files: *files,
        label: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_history_leaves_out_what_a_name_was_before() {
        let [a, b, c] = ["a", "b", "c"].map(|name| RelPath::new(name.as_bytes()).unwrap());
        let alone: Vec<_> = spans(&c, &[]).collect();
        assert_eq!(alone, [(&c, 0, u64::MAX)]);
        // Name `b` left `a` after fact 5, and `c` left `b` after fact 9.
        let earlier = [(a.clone(), 5), (b.clone(), 9)];
        let all: Vec<_> = spans(&c, &earlier).collect();
        assert_eq!(all, [(&a, 0, 6), (&b, 5, 10), (&c, 9, u64::MAX)]);
    }
}
