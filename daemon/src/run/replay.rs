//! What a subscriber missed, out of the log.

use std::collections::HashMap;

use touchmark_engine::{Fact, Record, State, VersionFact};
use touchmark_proto::events::{EditPhase, Happening, SessionPhase};
use touchmark_proto::{Clock, Error, ErrorCode, ErrorData, RelPath, SessionId, Version};

use crate::store::Reader;

/// Facts replayed at most; who missed more is better served by a list.
const MOST: usize = 20_000;

/// One missed event, and the contents to count lines between.
pub(super) struct Missed {
    pub(super) clock: Clock,
    pub(super) happening: Happening,
    pub(super) before: Option<touchmark_proto::Hash>,
}

/// The clock cannot be gone on from (DUR-2).
pub(super) fn unknown_clock(clock: Clock, reason: &str) -> Error {
    Error::new(ErrorCode::UnknownClock, format!("{clock}: {reason}")).with(ErrorData {
        clock: Some(clock),
        ..ErrorData::default()
    })
}

/// Checks that everything since a clock can be told.
///
/// # Errors
/// `unknownClock` for another epoch, a clock that has not been, or one before
/// what was pruned away.
pub(super) fn check(since: Clock, state: &State, pruned: u64) -> Result<(), Error> {
    if since.epoch != state.epoch {
        return Err(unknown_clock(since, "of another life of the state"));
    }
    if since.n > state.n {
        return Err(unknown_clock(since, "has not been yet"));
    }
    if since.n < pruned {
        return Err(unknown_clock(since, "before what is still kept"));
    }
    Ok(())
}

/// The events of all facts after `since` up to `until`, in order. Those about
/// a copy going stale are not among them: they rest on no fact of their own.
///
/// # Errors
/// `unknownClock` where too much was missed, `storage`.
pub(super) fn missed(
    reader: &Reader,
    since: Clock,
    until: u64,
    state: &State,
) -> Result<Vec<Missed>, Error> {
    let records = reader.facts_after(since.n, MOST + 1).map_err(Error::from)?;
    if records.len() > MOST {
        return Err(unknown_clock(since, "too much has happened since"));
    }
    let mut edits: HashMap<u64, SessionId> = HashMap::new();
    let mut events = Vec::new();
    for record in records.iter().take_while(|record| record.n <= until) {
        if let Fact::EditBegun(edit) = &record.fact {
            edits.insert(edit.edit, edit.session.clone());
        }
        let happening = happening(record, state, |edit| {
            edits.get(&edit).cloned().or_else(|| session_of(edit, state))
        });
        events.extend(happening.map(|happening| Missed {
            clock: state.clock(record.n),
            happening,
            before: match &record.fact {
                Fact::Version(version) => version.before,
                _ => None,
            },
        }));
    }
    Ok(events)
}

fn session_of(edit: u64, state: &State) -> Option<SessionId> {
    let open = state.edits.get(&edit).map(|edit| &edit.fact.session);
    let ended = || state.ended.iter().find(|ended| ended.edit == edit);
    open.or_else(|| ended().map(|ended| &ended.session)).cloned()
}

/// The event of a fact, if subscribers are told of such facts. Line counts
/// are left open.
fn happening(
    record: &Record,
    state: &State,
    session_of: impl Fn(u64) -> Option<SessionId>,
) -> Option<Happening> {
    let session = |session: &SessionId, phase| Happening::Session {
        session: session.clone(),
        phase,
    };
    let edit = |edit: u64, session, phase, paths: Vec<RelPath>| Happening::Edit {
        session,
        edit: format!("e{edit}"),
        phase,
        paths,
    };
    Some(match &record.fact {
        Fact::SessionOpened { session: id, .. } => session(id, SessionPhase::Opened),
        Fact::SessionClosed { session: id } => session(id, SessionPhase::Closed),
        Fact::SessionForgotten { session: id } => session(id, SessionPhase::Forgotten),
        Fact::Version(fact) => Happening::Version {
            version: version(record, fact, state),
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
        },
        Fact::EditBegun(fact) => edit(
            fact.edit,
            fact.session.clone(),
            EditPhase::Begun,
            fact.files.iter().map(|file| file.path.clone()).collect(),
        ),
        Fact::EditEnded {
            edit: number,
            paths,
            phase,
        } => edit(*number, session_of(*number)?, *phase, paths.clone()),
        _ => return None,
    })
}

fn version(record: &Record, fact: &VersionFact, state: &State) -> Version {
    let flag = |set: bool| set.then_some(true);
    let open = fact.edit.is_some_and(|edit| state.edits.contains_key(&edit));
    Version {
        clock: state.clock(record.n),
        path: fact.path.clone(),
        kind: fact.kind,
        from: fact.from.clone(),
        hash: fact.held.hash,
        size: fact.held.size,
        time: record.time,
        author: fact.author.clone(),
        evidence: fact.evidence,
        amends: fact.amends.map(|n| state.clock(n)),
        overwritten: None,
        unobserved: flag(fact.unobserved),
        provisional: flag(open && fact.evidence == touchmark_proto::Evidence::Marked),
        late: flag(fact.late),
        formatted: flag(fact.formatted),
        candidates: (!fact.candidates.is_empty()).then(|| fact.candidates.clone()),
    }
}
