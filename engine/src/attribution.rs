//! Who wrote: one pure function over the evidence, in the order of the rules.

use touchmark_proto::{Author, Evidence, Hash, HashOrAbsent, Millis, RelPath, SessionId};

use crate::ledger::state::{KeptVersion, State};

/// How long after a session's declared version a formatter's change still
/// belongs to it (ATTR-17).
const FORMATTER_WINDOW: Millis = 5_000;

/// A new content state of a path, and what was observed around it.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Which path.
    pub path: &'a RelPath,
    /// What it holds now; `None` where it is gone.
    pub hash: Option<Hash>,
    /// When it was read.
    pub now: Millis,
    /// A writer may still have the file open (ATTR-5).
    pub writing: bool,
    /// Closed changes since the path was last read, the one still being
    /// written included: a one-call mark speaks for the first (ATTR-8).
    pub changes: u32,
    /// Nobody watched while it came to be (ATTR-13).
    pub gap: bool,
    /// How far an editor's report may lie from the version (ATTR-2).
    pub editor_window: Millis,
    /// Whether a declared writer that has not finished may still be waited
    /// for (ATTR-5); not when its edit is ending.
    pub hold: bool,
}

/// Who, on what grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This is a version.
    By {
        /// Who.
        author: Author,
        /// On what grounds.
        evidence: Evidence,
        /// The edit it rests on.
        edit: Option<u64>,
        /// A formatter changed the text (ATTR-17).
        formatted: bool,
        /// The sessions whose windows cover the path, where they are several
        /// (ATTR-6).
        candidates: Vec<SessionId>,
    },
    /// A declared writer is not done yet: no version so far (ATTR-5).
    Hold,
}

impl Decision {
    fn by(author: Author, evidence: Evidence, edit: Option<u64>) -> Self {
        Self::By {
            author,
            evidence,
            edit,
            formatted: false,
            candidates: Vec::new(),
        }
    }

    /// Whether nothing is known to claim it.
    pub fn is_unmarked(&self) -> bool {
        let Self::By { evidence, .. } = self else {
            return false;
        };
        *evidence == Evidence::Unmarked
    }

    /// Whether a version says so already.
    pub fn is_of(&self, kept: &KeptVersion) -> bool {
        match self {
            Self::By {
                author,
                evidence,
                formatted,
                ..
            } => (author, evidence, formatted) == (&kept.author(), &kept.evidence, &kept.formatted),
            Self::Hold => false,
        }
    }

    /// What was written in command windows of these sessions, the one that
    /// opened last first (ATTR-6); in none, nothing claims it (ATTR-7).
    pub(crate) fn in_windows_of(mut candidates: Vec<SessionId>) -> Self {
        let Some(newest) = candidates.first().cloned() else {
            return Self::by(Author::USER, Evidence::Unmarked, None);
        };
        if candidates.len() == 1 {
            candidates.clear();
        }
        Self::By {
            author: Author::agent(newest),
            evidence: Evidence::Command,
            edit: None,
            formatted: false,
            candidates,
        }
    }

    /// What a formatter did after a session's edit (ATTR-17).
    fn formatted(session: SessionId) -> Self {
        Self::By {
            author: Author::agent(session),
            evidence: Evidence::Command,
            edit: None,
            formatted: true,
            candidates: Vec::new(),
        }
    }
}

/// Decides who wrote. The first rule that applies decides.
pub fn decide(state: &State, seen: Observation<'_>) -> Decision {
    // After a gap too: every edit open now was open when it began (ATTR-13).
    if let Some(declared) = declared(state, seen.path, seen.hash) {
        return declared;
    }

    // ATTR-13: nobody watched, so nobody is named.
    if seen.gap {
        return Decision::by(Author::UNKNOWN, Evidence::Gap, None);
    }

    // ATTR-2: an editor reported this save.
    if let Some(reported) = reported(state, seen.path, seen.hash, seen.now, seen.editor_window) {
        return reported;
    }

    // ATTR-5: whoever has it marked may not be done.
    if seen.hold && awaited(state, seen) {
        return Decision::Hold;
    }

    // ATTR-8: a one-call mark is used up by the first closed change; what was
    // read is the last one.
    let mut changes = seen.changes;
    for (edit, file) in state.edits_on(seen.path) {
        if file.expect.is_some()
            || !edit.fact.one_shot
            || state.was_there(seen.path, edit, file, seen.hash)
        {
            continue;
        }
        if changes > 1 {
            changes -= 1;
            continue;
        }
        return marked(edit.fact.session.clone(), edit.fact.edit);
    }

    undeclared(state, seen.path, seen.hash, seen.now)
}

/// ATTR-1: declared, once, and never what was there when the edit began.
fn declared(state: &State, path: &RelPath, hash: Option<Hash>) -> Option<Decision> {
    let wanted = HashOrAbsent::from(hash);
    let (edit, _) = state.edits_on(path).find(|(_, file)| {
        file.expect == Some(wanted) && file.matched.is_none() && file.began != hash
    })?;
    let author = Author::agent(edit.fact.session.clone());
    Some(Decision::by(
        author,
        Evidence::Declared,
        Some(edit.fact.edit),
    ))
}

/// Who wrote what stood there for a while and does no longer (ATTR-5).
pub fn passed(
    state: &State,
    path: &RelPath,
    hash: Option<Hash>,
    now: Millis,
    window: Millis,
) -> Decision {
    declared(state, path, hash)
        .or_else(|| reported(state, path, hash, now, window))
        .unwrap_or_else(|| undeclared(state, path, hash, now))
}

/// ATTR-8: a one-call mark's session.
pub fn marked(session: SessionId, edit: u64) -> Decision {
    Decision::by(Author::agent(session), Evidence::Marked, Some(edit))
}

/// Whether an open edit's writer may be in the middle: what nobody has closed,
/// or an absence that may end in a moment. A declared content may also come
/// while another writer is at it.
fn awaited(state: &State, seen: Observation<'_>) -> bool {
    let absent = seen.hash.is_none();
    state.edits_on(seen.path).any(|(edit, file)| {
        if file.expect.is_some() {
            return file.matched.is_none() && (seen.writing || absent);
        }
        match edit.fact.one_shot {
            true => !absent && seen.writing && seen.changes == 0,
            false => seen.writing || absent,
        }
    })
}

/// ATTR-4: who wrote what no edit has declared. A mark that says nothing in
/// particular does not make it its session's before the end; the session is
/// named beside who it would be without.
fn undeclared(state: &State, path: &RelPath, hash: Option<Hash>, now: Millis) -> Decision {
    let mut decision = unclaimed(state, path, hash, now);
    let Decision::By {
        author,
        edit,
        formatted: false,
        candidates,
        ..
    } = &mut decision
    else {
        return decision;
    };
    let marks = state
        .edits_on(path)
        .filter(|(edit, file)| file.expect.is_none() && !edit.fact.one_shot)
        .filter(|(edit, file)| !state.was_there(path, edit, file, hash));
    for (open, _) in marks {
        edit.get_or_insert(open.fact.edit);
        let session = &open.fact.session;
        if !author.is(session) && !candidates.contains(session) {
            candidates.extend(author.session.clone().filter(|_| candidates.is_empty()));
            candidates.push(session.clone());
        }
    }
    decision
}

/// ATTR-2: who wrote, if an editor has reported this save within `window`.
pub fn reported(
    state: &State,
    path: &RelPath,
    hash: Option<Hash>,
    now: Millis,
    window: Millis,
) -> Option<Decision> {
    let report = state.reports.iter().find(|report| {
        report.path == *path && Some(report.hash) == hash && report.time.abs_diff(now) <= window
    })?;
    Some(by_editor(state, path, None, now, report.formatted))
}

/// ATTR-2: an editor reported the save of `version`, or of the one that comes
/// next. Where its formatter followed a session's edit, it is that session's
/// (ATTR-17).
pub fn by_editor(
    state: &State,
    path: &RelPath,
    version: Option<u64>,
    now: Millis,
    formatted: bool,
) -> Decision {
    if let (true, Some(session)) = (formatted, edited_before(state, path, version, now)) {
        return Decision::formatted(session);
    }
    Decision::By {
        author: Author::USER,
        evidence: Evidence::Editor,
        edit: None,
        formatted,
        candidates: Vec::new(),
    }
}

/// Who wrote what no mark and no editor claims: ATTR-17, ATTR-6, ATTR-7.
pub fn unclaimed(state: &State, path: &RelPath, hash: Option<Hash>, now: Millis) -> Decision {
    let mut windows = state.windows_on(path).peekable();

    // ATTR-7: nothing claims it.
    if windows.peek().is_none() {
        return Decision::by(Author::USER, Evidence::Unmarked, None);
    }

    // ATTR-17: a formatter followed a session's edit, in that session's own
    // window or in a formatter's.
    if hash.is_some()
        && let Some(session) = edited_before(state, path, None, now)
        && state
            .windows_on(path)
            .any(|window| window.fact.formatter || window.fact.session == session)
    {
        return Decision::formatted(session);
    }

    // ATTR-6: the window that opened last; the others are named.
    let mut candidates: Vec<SessionId> = Vec::new();
    for window in windows {
        if !candidates.contains(&window.fact.session) {
            candidates.push(window.fact.session.clone());
        }
    }
    Decision::in_windows_of(candidates)
}

/// The session whose own version a formatter found: the newest one
/// before `version`, other formatters' left aside, and not long ago.
fn edited_before(
    state: &State,
    path: &RelPath,
    version: Option<u64>,
    now: Millis,
) -> Option<SessionId> {
    let found = state
        .paths
        .get(path)?
        .versions
        .iter()
        .rev()
        .filter(|kept| version.is_none_or(|version| kept.n < version))
        .find(|kept| !(kept.evidence == Evidence::Command && kept.formatted))?;
    let lately = now.saturating_sub(found.time) <= FORMATTER_WINDOW;
    let own = matches!(found.evidence, Evidence::Declared | Evidence::Marked);
    (own && lately && found.hash.is_some())
        .then(|| found.session().cloned())
        .flatten()
}
