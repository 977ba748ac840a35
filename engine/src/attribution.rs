//! Attribution: decides who wrote a content. One pure function over the
//! evidence, in the order of the rules.

use touchmark_proto::{Author, Evidence, Hash, HashOrAbsent, Millis, RelPath, SessionId};

use crate::disk::Stamp;
use crate::input::SweptFile;
use crate::ledger::state::{Command, KeptVersion, State};
use crate::witnesses::{Change, Verdict, Witnesses};

/// How long after a session's declared version a formatter's change still
/// belongs to that session (ATTR-17). In milliseconds.
const FORMATTER_WINDOW: Millis = 5_000;

/// A new content of a path, and what was observed with it.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The path whose content changed.
    pub path: &'a RelPath,
    /// The new content; `None` if there is no file.
    pub hash: Option<Hash>,
    /// When the content was read.
    pub now: Millis,
    /// A writer may still have the file open (ATTR-5).
    pub writing: bool,
    /// The number of closed changes since the path was last read, including one
    /// that is still being written. A one-call mark claims the first of them
    /// (ATTR-8).
    pub changes: u32,
    /// The path was not watched when the content came (ATTR-13).
    pub gap: bool,
    /// The longest time between an editor's report and the version that it
    /// explains (ATTR-2). In milliseconds.
    pub editor_window: Millis,
    /// Whether the content may be held back for a declared writer that has not
    /// finished (ATTR-5). False when its edit is ending.
    pub hold: bool,
    /// What commands are known to have written, and not to have (ATTR-3).
    pub witnesses: &'a Witnesses,
    /// Whether any process may have the file open for writing.
    pub open: bool,
    /// The file's stamp; `None` if there is no file, or if it is not known any
    /// more.
    pub stamp: Option<Stamp>,
}

/// Who wrote a content, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The content is a version.
    By {
        /// Who wrote the content.
        author: Author,
        /// The evidence for the author.
        evidence: Evidence,
        /// The edit that the evidence is from; `None` if it is from no edit.
        edit: Option<u64>,
        /// A formatter changed the text (ATTR-17).
        formatted: bool,
        /// The sessions whose command windows cover the path, if there are
        /// several (ATTR-6).
        candidates: Vec<SessionId>,
    },
    /// A declared writer may not have finished, so the content is no version
    /// yet (ATTR-5).
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

    /// Returns the decision for a content that the processes of a session's command
    /// wrote, as the kernel told it (ATTR-3).
    pub(crate) fn by_process(session: SessionId) -> Self {
        Self::by(Author::agent(session), Evidence::Process, None)
    }

    /// Returns whether no evidence claims the content.
    pub fn is_unmarked(&self) -> bool {
        let Self::By { evidence, .. } = self else {
            return false;
        };
        *evidence == Evidence::Unmarked
    }

    /// Returns whether a version already has this author and evidence.
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

    /// Returns the decision for a content that an editor reported (ATTR-2).
    pub(crate) fn by_editor() -> Self {
        Self::by(Author::USER, Evidence::Editor, None)
    }

    /// Returns the decision for a content written in command windows of these
    /// sessions, given with the one that opened last first (ATTR-6). Without
    /// any, no evidence claims it (ATTR-7).
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

    /// Returns the decision for a formatter's change after a session's edit
    /// (ATTR-17).
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

/// Decides who wrote a content. The first rule that applies decides.
pub fn decide(state: &State, seen: Observation<'_>) -> Decision {
    // This applies after a gap too: every edit that is open now was open when
    // the gap began (ATTR-13).
    if let Some(declared) = declared(state, seen.path, seen.hash) {
        return declared;
    }

    // ATTR-13: the path was not watched, so no author is named.
    if seen.gap {
        return Decision::by(Author::UNKNOWN, Evidence::Gap, None);
    }

    // ATTR-2: an editor reported this save.
    if let Some(reported) = reported(state, seen.path, seen.hash, seen.now, seen.editor_window) {
        return reported;
    }

    // ATTR-5: a session with an edit of the path may not have finished.
    if seen.hold && awaited(state, seen) {
        return Decision::Hold;
    }

    // ATTR-8: a one-call mark is used up by the first closed change. The
    // content that was read is the result of the last one.
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

    by_the_kernel(state, seen)
        .unwrap_or_else(|| undeclared(state, seen.witnesses, seen.path, seen.hash, seen.now))
}

/// ATTR-3: returns the decision for a change of which witnesses tell whose it
/// is. `None` if a mark of a tool may explain it, or if no witness is certain.
fn by_the_kernel(state: &State, seen: Observation<'_>) -> Option<Decision> {
    if state.edits_on(seen.path).next().is_some() {
        return None;
    }
    let change = Change {
        is_removal: seen.hash.is_none(),
        inode: seen.stamp.map(|stamp| stamp.inode),
        changed: { seen.stamp }.and_then(|stamp| u64::try_from(stamp.changed / 1_000_000).ok()),
        open: seen.open || seen.writing,
        is_contested: false,
    };
    let mut windows = state.windows_on(seen.path).peekable();
    windows.peek()?;
    let names: Vec<&RelPath> = state
        .names
        .others_of(seen.path)
        .chain([seen.path])
        .collect();
    let mut wrote: Option<&Command> = None;
    for window in windows {
        let number = window.fact.command;
        let began = state.past_command(number).map_or(0, |past| past.begun.1);
        let recorded = state.paths.get(seen.path);
        let versions = recorded.map(|recorded| recorded.versions.iter().rev());
        let mut lately = { versions.into_iter().flatten() }.take_while(|kept| kept.n > window.n);
        let change = Change {
            is_contested: lately.any(|kept| !kept.is_by(&window.fact.session)),
            ..change
        };
        match seen.witnesses.judge(number, began, &names, change) {
            Verdict::NotWritten => {}
            // Of several windows over the same processes, the last is theirs.
            Verdict::Written if wrote.is_none() => wrote = Some(window),
            Verdict::Written if wrote.is_some_and(|it| same_writer(seen.witnesses, it, window)) => {
            }
            Verdict::Written | Verdict::Unknown => return None,
        }
    }
    Some(match wrote {
        Some(window) => Decision::by_process(window.fact.session.clone()),
        None => Decision::by(Author::USER, Evidence::Unmarked, None),
    })
}

impl State {
    /// ATTR-3: returns whether the command of the newest of these windows is known
    /// to have changed an untracked file.
    pub(crate) fn wrote_untracked(
        &self,
        witnesses: &Witnesses,
        windows: &[&Command],
        change: &SweptFile,
    ) -> bool {
        let Some(newest) = windows.first() else {
            return false;
        };
        windows.iter().all(|window| {
            let number = window.fact.command;
            let began = self.past_command(number).map_or(0, |past| past.begun.1);
            let is_one = std::ptr::eq(*window, *newest) || same_writer(witnesses, newest, window);
            is_one && witnesses.judge_untracked(number, began, change) == Verdict::Written
        })
    }
}

/// Returns whether what one witness saw two windows' commands write is that of the
/// newer window: the older one is around it, or both are of one session.
fn same_writer(witnesses: &Witnesses, newer: &Command, older: &Command) -> bool {
    let (inner, outer) = (newer.fact.command, older.fact.command);
    let is_same_session = newer.fact.session == older.fact.session;
    witnesses.is_one(inner, outer) && (is_same_session || witnesses.is_around(outer, inner))
}

/// ATTR-1: returns the decision for a content that an open edit declared. An
/// edit matches once, and never the content that was there when it began.
fn declared(state: &State, path: &RelPath, hash: Option<Hash>) -> Option<Decision> {
    let wanted = HashOrAbsent::from(hash);
    let edit = state.edits.values().find(|edit| {
        edit.files.iter().any(|file| {
            file.may_have_written(path)
                && file.expect == Some(wanted)
                && file.matched.is_none()
                && file.began != hash
        })
    })?;
    let author = Author::agent(edit.fact.session.clone());
    Some(Decision::by(
        author,
        Evidence::Declared,
        Some(edit.fact.edit),
    ))
}

/// Returns who wrote a content that was there for some time and was replaced
/// since (ATTR-5).
pub fn passed(
    state: &State,
    witnesses: &Witnesses,
    path: &RelPath,
    hash: Option<Hash>,
    now: Millis,
    window: Millis,
) -> Decision {
    declared(state, path, hash)
        .or_else(|| reported(state, path, hash, now, window))
        .unwrap_or_else(|| undeclared(state, witnesses, path, hash, now))
}

/// ATTR-8: returns the decision for the session of a one-call mark.
pub fn marked(session: SessionId, edit: u64) -> Decision {
    Decision::by(Author::agent(session), Evidence::Marked, Some(edit))
}

/// Returns whether the writer of an open edit may be in the middle of a write:
/// the content was not closed, or the file is absent and may return soon. A
/// declared content may still come while another writer is writing.
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

/// ATTR-4: returns who wrote a content that no edit has declared. A mark
/// without a declared content does not claim it before the mark ends. Until
/// then the mark's session is only a candidate.
fn undeclared(
    state: &State,
    witnesses: &Witnesses,
    path: &RelPath,
    hash: Option<Hash>,
    now: Millis,
) -> Decision {
    let mut decision = unclaimed(state, witnesses, path, hash, now);
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

/// ATTR-2: returns the decision for a save that an editor has reported within
/// `window`, or `None`.
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

/// ATTR-2: returns the decision for an editor's report of `version`, or of the
/// next version if that is `None`. If the editor's formatter followed a
/// session's edit, it is that session's (ATTR-17).
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

/// Returns who wrote a content that no mark and no editor claims: ATTR-17,
/// ATTR-6, ATTR-7. A command that is known not to have written the file has not
/// (ATTR-3).
pub fn unclaimed(
    state: &State,
    witnesses: &Witnesses,
    path: &RelPath,
    hash: Option<Hash>,
    now: Millis,
) -> Decision {
    let mut windows = state.writing_windows(witnesses, path).peekable();

    // ATTR-7: no evidence claims it.
    if windows.peek().is_none() {
        return Decision::by(Author::USER, Evidence::Unmarked, None);
    }

    // ATTR-17: a formatter followed a session's edit, in that session's own
    // window or in a formatter's.
    if hash.is_some()
        && let Some(session) = edited_before(state, path, None, now)
        && state
            .writing_windows(witnesses, path)
            .any(|window| window.fact.formatter || window.fact.session == session)
    {
        return Decision::formatted(session);
    }

    // ATTR-6: the window that opened last. The sessions of the other windows
    // are candidates.
    let mut candidates: Vec<SessionId> = Vec::new();
    for window in windows {
        if !candidates.contains(&window.fact.session) {
            candidates.push(window.fact.session.clone());
        }
    }
    Decision::in_windows_of(candidates)
}

/// Returns the session whose edit a formatter has changed: the author of the
/// newest version before `version` that is not a formatter's, if that is
/// recent.
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
