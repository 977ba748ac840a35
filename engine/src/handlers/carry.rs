//! Lines that are unchanged between an older and a newer content (SEEN-8).
//!
//! The shell has both texts and compares them. It is asked only if an answer
//! depends on the result.

use touchmark_proto::{Hash, RelPath, Request, SessionId};

use crate::base::Base;
use crate::effect::Question;
use crate::input::Learned;
use crate::ledger::record::Fact;
use crate::ranges::RangeSet;
use crate::requests::pending::Pending;
use crate::requests::pending::Texts;
use crate::requests::scope::Scope;
use crate::requests::table::session;
use crate::text::lines::Difference;
use crate::text::lines::Hunk;
use crate::text::lines::TextPair;
use crate::view::View;

/// The maximum number of pairs of texts that are compared for one request. The
/// files of further pairs count as stale as a whole in its answer.
const PAIRS: usize = 64;

/// Returns the lines of the newer text to show to a session that has the older
/// lines on record. If the newer text has none here, these are the lines around
/// the place.
fn place(hunk: Hunk) -> RangeSet {
    let (start, end) = match hunk.new_lines {
        0 => (hunk.new_start.saturating_sub(1).max(1), hunk.new_start),
        lines => (hunk.new_start, hunk.new_start + (lines - 1)),
    };
    RangeSet::default().with(start, end)
}

/// The result of carrying some lines of an older text over to a newer one.
/// Lines are counted in the newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Carried {
    /// The lines that are still there.
    kept: RangeSet,
    /// The lines that replaced others, or that are new between them.
    changed: RangeSet,
}

/// Carries lines of an older text over to a newer one. New lines between two
/// lines on record are a change. New lines above the first or below the last
/// are none, unless the whole text is on record: then its beginning and end are
/// known too.
fn carry(believed: &RangeSet, difference: &Difference) -> Carried {
    let mut changed = RangeSet::default();
    let all = *believed == RangeSet::whole();
    let held = |start, end| !believed.between(start, end).is_empty();
    for hunk in &difference.hunks {
        let (start, before) = (hunk.old_start, hunk.old_start.saturating_sub(1));
        let at_an_end = before == 0 || start > difference.old_lines;
        let last = start.saturating_add(hunk.old_lines.saturating_sub(1));
        if hunk.old_lines == hunk.new_lines {
            // Each line took the place of one.
            let by = i64::from(hunk.new_start) - i64::from(start);
            changed.add(&believed.between(start, last).shifted(by));
            continue;
        }
        let touched = match hunk.old_lines {
            0 if at_an_end => all,
            0 => held(start, start) && held(before, before),
            _ => held(start, last),
        };
        if touched {
            changed.add(&place(*hunk));
        }
    }
    Carried {
        kept: believed.carried(&difference.hunks),
        changed,
    }
}

/// A session's copy that may be carried over to another content.
struct Copy {
    path: RelPath,
    to: Hash,
    from: Vec<(Hash, RangeSet)>,
    /// Whether the session has lines of unknown content on record. They stay
    /// out of date, whatever the comparison shows.
    is_unsure: bool,
}

/// Returns the question where the texts of some copies differ from the contents
/// that they may be carried over to, or `None` if there is nothing to compare.
fn question(copies: &[Copy]) -> Option<Question> {
    let pairs = copies.iter().flat_map(|copy| {
        let pair = |old| TextPair { old, new: copy.to };
        copy.from.iter().map(move |(old, _)| pair(*old))
    });
    let pairs: Vec<TextPair> = pairs.take(PAIRS).collect();
    (!pairs.is_empty()).then_some(Question::Differences(pairs))
}

impl Base {
    /// Returns the texts to compare before a request is answered: those of
    /// which its session has lines on record that may be unchanged in the file.
    /// Texts are compared once for each request, so that a file that changes
    /// all the time does not delay it forever.
    pub(crate) fn texts_to_compare(
        &mut self,
        pending: &mut Pending,
        ask: &Request,
    ) -> Option<Question> {
        let session = session(ask)?;
        match pending.texts {
            // A request that another session's edit blocks has left its queue.
            Texts::ToCompare if !pending.stage.has_left_queue() => {
                let copies = self.view().copies_to_carry(session, ask, pending);
                let question = question(&copies)?;
                pending.texts = Texts::Awaited;
                return Some(question);
            }
            Texts::Awaited => {
                pending.texts = Texts::Compared;
                if let Some(Ok(Learned::Differences(found))) = pending.learned.take() {
                    for copy in self.view().copies_to_carry(session, ask, pending) {
                        self.carry_copy(session, copy, &found, false);
                    }
                }
            }
            Texts::AwaitedToShow => {
                let found = match pending.learned.take() {
                    Some(Ok(Learned::Differences(found))) => found,
                    _ => Vec::new(),
                };
                pending.texts = Texts::ComparedToShow(found);
            }
            Texts::ToCompare | Texts::Compared | Texts::ComparedToShow(_) => {}
        }
        None
    }

    /// Carries a session's lines of other contents over to a content of which
    /// some lines are about to be shown. Unchanged lines count for this content
    /// from now on.
    pub(crate) fn carry_to(
        &mut self,
        session: &SessionId,
        path: &RelPath,
        to: Hash,
        found: &[Difference],
    ) {
        if let Some(copy) = self.view().copy(session, path, to) {
            self.carry_copy(session, copy, found, true);
        }
    }

    /// Carries a copy over to another content, as far as the texts were
    /// compared. Without `in_any_case`, only if nothing is out of date
    /// afterwards.
    fn carry_copy(
        &mut self,
        session: &SessionId,
        copy: Copy,
        found: &[Difference],
        in_any_case: bool,
    ) {
        let Copy { path, to, from, .. } = copy;
        let all = from.len();
        let carried: Vec<(Hash, Carried)> = from
            .into_iter()
            .filter_map(|(old, lines)| {
                let pair = TextPair { old, new: to };
                let difference = found.iter().find(|found| found.pair == pair)?;
                Some((old, carry(&lines, difference)))
            })
            .collect();
        let unchanged = |(_, lines): &(Hash, Carried)| lines.changed.is_empty();
        let fresh = carried.len() == all && carried.iter().all(unchanged);
        if !fresh && !in_any_case {
            return;
        }
        for (from, Carried { kept, changed }) in carried {
            self.record(Fact::Carried {
                session: session.clone(),
                path: path.clone(),
                from,
                to,
                kept,
                changed,
            });
        }
    }
}

impl View<'_> {
    /// Returns the texts to compare before some lines of a content are shown to
    /// a session, or `None`.
    pub(crate) fn texts_to_show(
        &self,
        pending: &mut Pending,
        session: &SessionId,
        path: &RelPath,
        to: Option<Hash>,
    ) -> Option<Question> {
        if matches!(pending.texts, Texts::ComparedToShow(_)) {
            return None;
        }
        let copy = self.copy(session, path, to?)?;
        let question = question(&[copy])?;
        pending.texts = Texts::AwaitedToShow;
        Some(question)
    }

    fn copies_to_carry(&self, session: &SessionId, ask: &Request, pending: &Pending) -> Vec<Copy> {
        let Some(known) = self.state.sessions.get(session) else {
            return Vec::new();
        };
        let copy = |path: &RelPath| {
            if known.files.is_whole(path) {
                return None;
            }
            let now = self
                .current(path, pending.reads.found.get(path))
                .held
                .hash?;
            let copy = self.copy(session, path, now)?;
            // If the whole text is on record, any other content is a change,
            // and stays one until some of it is shown.
            let whole = |(_, lines): &(Hash, RangeSet)| *lines == RangeSet::whole();
            (!copy.is_unsure && !copy.from.iter().any(whole)).then_some(copy)
        };
        match self.scope_of_request(ask) {
            Scope::Paths(paths) => paths.iter().filter_map(copy).collect(),
            // The session's pending paths include all that are out of date.
            Scope::Session(_) | Scope::Everything => {
                known.pending.iter().filter_map(copy).collect()
            }
        }
    }

    fn copy(&self, session: &SessionId, path: &RelPath, to: Hash) -> Option<Copy> {
        let knowledge = self.state.knowledge(session, path)?;
        let copy = Copy {
            path: path.clone(),
            to,
            from: knowledge.believed_of_others(to).collect(),
            is_unsure: knowledge.uncertain || !knowledge.unsure.is_empty(),
        };
        (!copy.from.is_empty()).then_some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use touchmark_proto::LineRange;

    fn lines(start: u32, end: u32) -> RangeSet {
        RangeSet::default().with(start, end)
    }

    fn hunk(old: (u32, u32), new: (u32, u32)) -> Hunk {
        Hunk {
            old_start: old.0,
            old_lines: old.1,
            new_start: new.0,
            new_lines: new.1,
        }
    }

    fn carried(believed: &RangeSet, hunks: &[Hunk]) -> (RangeSet, RangeSet) {
        let pair = TextPair {
            old: Hash::of(b"old"),
            new: Hash::of(b"new"),
        };
        let difference = Difference {
            pair,
            old_lines: 100,
            hunks: hunks.to_vec(),
        };
        let Carried { kept, changed } = carry(believed, &difference);
        (kept, changed)
    }

    const NONE: fn() -> RangeSet = RangeSet::default;

    #[test]
    fn lines_above_and_below_move_it_and_change_nothing() {
        let above = [hunk((5, 0), (5, 3))];
        assert_eq!(carried(&lines(10, 20), &above), (lines(13, 23), NONE()));
        let below = [hunk((21, 0), (21, 1))];
        assert_eq!(carried(&lines(10, 20), &below), (lines(10, 20), NONE()));
        let right_above = [hunk((10, 0), (10, 1))];
        let moved = (lines(11, 21), NONE());
        assert_eq!(carried(&lines(10, 20), &right_above), moved);
        let removed = [hunk((2, 3), (2, 0))];
        assert_eq!(carried(&lines(10, 20), &removed), (lines(7, 17), NONE()));
    }

    #[test]
    fn what_comes_between_its_lines_changes_it() {
        let between = [hunk((15, 0), (15, 2))];
        let kept = lines(10, 14).with(17, 22);
        assert_eq!(carried(&lines(10, 20), &between), (kept, lines(15, 16)));
        let replaced = [hunk((15, 1), (15, 1))];
        let kept = lines(10, 14).with(16, 20);
        assert_eq!(carried(&lines(10, 20), &replaced), (kept, lines(15, 15)));
        let removed = [hunk((15, 1), (15, 0))];
        assert_eq!(
            carried(&lines(10, 20), &removed),
            (lines(10, 19), lines(14, 15))
        );
        let each_replaced = [hunk((1, 20), (3, 20))];
        assert_eq!(carried(&lines(6, 7), &each_replaced), (NONE(), lines(8, 9)));
        let all_replaced = [hunk((1, 20), (1, 19))];
        assert_eq!(carried(&lines(6, 7), &all_replaced), (NONE(), lines(1, 19)));
    }

    #[test]
    fn who_believes_all_of_a_text_knows_where_it_begins_and_ends() {
        let (_, changed) = carried(&RangeSet::whole(), &[hunk((1, 0), (1, 1))]);
        assert_eq!(changed, lines(1, 1));
        let (_, changed) = carried(&RangeSet::whole(), &[hunk((101, 0), (101, 1))]);
        assert_eq!(changed, lines(101, 101));
        let (kept, changed) = carried(&lines(1, 8), &[hunk((1, 0), (1, 1))]);
        assert_eq!((kept, changed), (lines(2, 9), NONE()));
        let tail = RangeSet::of_read(
            Some(LineRange {
                start: 90,
                end: 100,
            }),
            100,
        );
        let (_, changed) = carried(&tail, &[hunk((101, 0), (101, 1))]);
        assert_eq!(changed, NONE());
    }
}
