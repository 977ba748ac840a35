//! The rows about changes that stay (UNDO-8).

use std::collections::BTreeSet;
use std::sync::PoisonError;

use touchmark_engine::history::{Conflict, Decided, Likely};
use touchmark_proto::quoting::quoted;
use touchmark_proto::undo::{LeftCause, UndoConflict, UndoLeft};
use touchmark_proto::{Author, Version};

use super::Undoer;
use crate::history::Chain;

/// The maximum number of bytes of lines that a reported change that stays
/// contains.
const SHOWN: usize = 4 << 10;

pub(super) fn told(conflict: &Conflict, by: Author) -> UndoConflict {
    UndoConflict {
        lines: conflict.lines,
        by,
        before: shown(&conflict.before),
    }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(SHOWN)]).into_owned()
}

/// Returns the row of a change whose text may be the user's (UNDO-7).
pub(super) fn left_likely(likely: &Likely, version: &Version) -> UndoLeft {
    UndoLeft {
        cause: LeftCause::Likely,
        why: "it appeared while a command ran, so it may be yours".into(),
        lines: Some(likely.lines),
        removed: likely.removed,
        text: shown(&likely.text),
        command: version.command.clone(),
    }
}

/// Returns the row of lines that another author has decided about with this
/// version (UNDO-9).
pub(super) fn left_decided(decided: &Decided, by: &Version) -> UndoLeft {
    let who = match &by.author.session {
        Some(session) => quoted(by.author.label.as_deref().unwrap_or(session.as_str()), 80),
        None => "you".to_owned(),
    };
    let what = match decided.is_there {
        true => "put it back",
        false => "took it away again",
    };
    UndoLeft {
        cause: LeftCause::Decided,
        why: format!("{who} {what} (version {})", by.clock.n),
        lines: Some(decided.lines),
        removed: decided.removed,
        text: shown(&decided.text),
        command: None,
    }
}

/// Returns the rows of changes whose contents are not stored, one for each
/// cause.
pub(super) fn left_not_kept(undoer: &Undoer, chain: &Chain, versions: &[usize]) -> Vec<UndoLeft> {
    let log = undoer.log.lock().unwrap_or_else(PoisonError::into_inner);
    let causes: BTreeSet<&str> = versions
        .iter()
        .flat_map(|at| chain.why_not_kept(*at, &log, undoer.cx.config.contents_file))
        .collect();
    let left = causes.into_iter().map(|why| UndoLeft {
        cause: LeftCause::NotKept,
        why: why.to_owned(),
        lines: None,
        removed: 0,
        text: String::new(),
        command: None,
    });
    left.collect()
}
