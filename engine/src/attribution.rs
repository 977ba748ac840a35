//! Who wrote: one pure function over the evidence, in the order of the rules.

use touchmark_proto::{Author, Evidence, Hash, HashOrAbsent, Millis, RelPath};

use crate::state::State;

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
        /// An editor's formatter changed the text (ATTR-17).
        formatted: bool,
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
        }
    }
}

/// Decides who wrote. The first rule that applies decides.
pub fn decide(state: &State, seen: Observation<'_>) -> Decision {
    let wanted = HashOrAbsent::from(seen.hash);

    // ATTR-1: declared, once, and never what was there when the edit began.
    // After a gap too: every edit open now was open when it began (ATTR-13).
    let declared = state.edits_on(seen.path).find(|(_, file)| {
        file.expect == Some(wanted) && file.matched.is_none() && file.began != seen.hash
    });
    if let Some((edit, _)) = declared {
        let author = Author::agent(edit.fact.session.clone());
        return Decision::by(author, Evidence::Declared, Some(edit.fact.edit));
    }

    // ATTR-13: nobody watched, so nobody is named.
    if seen.gap {
        return Decision::by(Author::UNKNOWN, Evidence::Gap, None);
    }

    // ATTR-2: an editor reported this save.
    let report = state.reports.iter().find(|report| {
        report.path == *seen.path
            && Some(report.hash) == seen.hash
            && report.time.abs_diff(seen.now) <= seen.editor_window
    });
    if let Some(report) = report {
        return Decision::By {
            author: Author::USER,
            evidence: Evidence::Editor,
            edit: None,
            formatted: report.formatted,
        };
    }

    // ATTR-4: a mark without a declared content. A one-call mark is consumed
    // by the first closed change; what was read is the last one (ATTR-8).
    let mut changes = seen.changes;
    for (edit, file) in state.edits_on(seen.path) {
        if file.expect.is_some() {
            continue;
        }
        if edit.fact.one_shot && changes > 1 {
            changes -= 1;
            continue;
        }
        let author = Author::agent(edit.fact.session.clone());
        return Decision::by(author, Evidence::Marked, Some(edit.fact.edit));
    }

    // ATTR-5: a declared content that has not arrived yet.
    let awaited = state
        .edits_on(seen.path)
        .any(|(_, file)| file.expect.is_some() && file.matched.is_none());
    if seen.hold && awaited && (seen.writing || seen.hash.is_none()) {
        return Decision::Hold;
    }

    // ATTR-7: nothing claims it.
    Decision::by(Author::USER, Evidence::Unmarked, None)
}
