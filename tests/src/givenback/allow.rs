//! Where the rules leave a choice. Each function is one allowance; the rule
//! that leaves the choice stands beside it. Nothing else is allowed.
//!
//! The numbers "step 1.2" and so on are those of the task that this check was
//! written for; the rules of docs/semantics.md have the letters.

use serde_json::Value;

use super::step::Who;
use super::truth::{Known, Mark, Truth, Way};

/// Step 1.2: what was typed in a window may be the command's or the user's. An
/// undo with `--yes` leaves it and lists it; a program that has more
/// information may take the agent's.
pub fn may_stay_as_likely(known: &Known) -> bool {
    known.window.is_some()
}

/// Step 1.2: what was removed in a window comes back, also if the user removed
/// it there.
pub fn may_come_back_as_likely(
    known: &Known,
    whom: Who,
    windows: &dyn Fn(usize) -> Option<Who>,
) -> bool {
    let last = known.marks.last();
    last.is_some_and(|mark| !mark.on && windows(mark.step).is_some_and(|who| who.is_of(whom)))
}

/// UNDO-7: what was typed in a window, and was then removed by an edit or a
/// command of the chosen author, or by the user in its window, comes back, since
/// it may be the user's. So does what cannot be distinguished from other authors'
/// lines, since contents are lost (UNDO-2). It is listed then.
pub fn may_come_back_since_it_may_be_anothers(
    known: &Known,
    whom: Who,
    windows: &dyn Fn(usize) -> Option<Who>,
) -> bool {
    let last = known.removal();
    let is_removed = last.is_some_and(|mark| !mark.on && mark.who.is_of(whom))
        || may_come_back_as_likely(known, whom, windows);
    (known.window.is_some() || may_be_indistinguishable(known)) && is_removed
}

/// UNDO-1, steps 1.2 and 2.3: a line of another author that had been removed and
/// that the chosen author had brought back (its own checkout, its own retyping,
/// its own stash) may stay, or go as it was before.
pub fn may_go_since_it_was_brought_back(known: &Known, whom: Who) -> bool {
    let by_hand = known
        .last()
        .is_some_and(|mark| mark.on && mark.who.is_of(whom));
    // A removal that git has taken back since changed nothing.
    let mut marks = known.marks.as_slice();
    while let [earlier @ .., removal, back] = marks
        && !removal.on
        && back.on
        && back.way == Way::Carried
        && !back.who.is_of(whom)
    {
        marks = earlier;
    }
    let by_git = was_carried_back(known) && marks.last().is_some_and(|mark| mark.who.is_of(whom));
    // What was done since was carried away, or undone.
    let settled = known.settled();
    let is_on = |mark: &&Mark| mark.on && mark.who.is_of(whom);
    let earlier = settled.len() > 1 && settled.last().is_some_and(is_on);
    (by_hand && known.marks.len() > 1) || by_git || earlier
}

/// UNDO-1 and step 2.3 differ in what a save means that puts back what an undo
/// removed: the author's again, or a decision of the user who saved.
pub fn is_of_either_after_an_undo(known: &Known) -> bool {
    known.is_back_after_an_undo()
}

/// Step 2.3: a line that an author removed and that git then carried back
/// from another state: the removal concerned that other state.
pub fn was_carried_back(known: &Known) -> bool {
    known.last().is_some_and(|mark| !mark.on) && known.marks.last().is_some_and(|mark| mark.on)
}

/// HIST-2: a line that was removed, and that another author has typed again, is
/// theirs.
pub fn was_typed_again(known: &Known, whom: Who) -> bool {
    let mut typed = known.marks.iter().rev();
    let last = typed.find(|mark| mark.on && mark.way == Way::Hand);
    last.is_some_and(|mark| !mark.who.is_of(whom))
}

/// UNDO-1: a line that is not in the file without the chosen author: another
/// one had removed it, and the chosen author has put it back and removed it. Not
/// if git had brought it back for another one, as a side of a conflict.
pub fn was_there_only_by(known: &Known, whom: Who) -> bool {
    let before = known.marks.len().checked_sub(2).map(|at| &known.marks[at]);
    if before.is_some_and(|mark| mark.on && mark.way == Way::Carried && !mark.who.is_of(whom)) {
        return false;
    }
    let counts = |mark: &&Mark| !matches!(mark.way, Way::Carried | Way::Wiped);
    let is_own = known.removal().is_some_and(|mark| mark.who.is_of(whom));
    let settled = known.settled();
    let mut earlier = settled.into_iter().rev().filter(counts);
    let before = earlier.find(|mark| !mark.who.is_of(whom));
    is_own && before.is_some_and(|mark| !mark.on)
}

/// HIST-8: a line that another author had removed, and that the chosen author's
/// own git brought back: if that was a stash, an undo takes the stash back too.
pub fn may_stay_away_since_own_git_brought_it(known: &Known, whom: Who) -> bool {
    let Some(removal) = known.removal() else {
        return false;
    };
    let mut marks = known.marks.iter().rev();
    let before = marks.find(|mark| mark.step < removal.step);
    before.is_some_and(|mark| mark.on && mark.way == Way::Carried && mark.who.is_of(whom))
}

/// UNDO-1: a file that another author has removed since does not come back for
/// the lines that the chosen author had removed from it before, also if the
/// chosen author has made it again without them.
pub fn may_stay_away_with_its_file(truth: &Truth, known: &Known, whom: Who) -> bool {
    let Some(life) = truth.files.get(&known.file) else {
        return false;
    };
    let since = known.removal().map_or(0, |mark| mark.step);
    let mut removals = life.removals.iter();
    removals.any(|(step, who)| *step > since && !who.is_of(whom))
        || life.removed.is_some_and(|(_, way)| way == Way::Carried)
}

/// UNDO-2, HIST-8: where git has put another content in the place of all that a
/// change has added, nothing of the change is left to undo.
pub fn may_stay_away_since_git_went_elsewhere(truth: &Truth, known: &Known) -> bool {
    let Some(mark) = known.removal() else {
        return false;
    };
    let (at, who) = (mark.step, mark.who);
    let of_file = || {
        truth
            .lines
            .values()
            .filter(|other| other.file == known.file)
    };
    let is_carried = |other: &Known| {
        let mut marks = other.marks.iter();
        marks.any(|mark| mark.step > at && mark.way == Way::Carried)
    };
    let is_left = |other: &Known| {
        let is_of_change = |mark: &Mark| mark.on && mark.step == at && mark.who == who;
        other.marks.last().is_some_and(|mark| mark.on) && other.marks.iter().any(is_of_change)
    };
    of_file().any(is_carried) && !of_file().any(is_left)
}

/// UNDO-1, UNDO-9: another author has taken the file back to an earlier content
/// since the line was removed; the file counts as that content.
pub fn may_stay_away_since_a_return(truth: &Truth, known: &Known, whom: Who) -> bool {
    let Some(mark) = known.removal() else {
        return false;
    };
    let is_return = |other: &Mark| {
        let is_whole = matches!(other.way, Way::Decided | Way::Wiped);
        other.step > mark.step && is_whole && !other.who.is_of(whom)
    };
    let mut of_file = truth
        .lines
        .values()
        .filter(|other| other.file == known.file);
    of_file.any(|other| other.marks.iter().any(is_return))
}

/// UNDO-1: an undo takes back all that its author did, also lines that an
/// author else had removed before. They do not come back with who had removed
/// them.
pub fn may_stay_away_since_its_author_was_undone(truth: &Truth, known: &Known) -> bool {
    let Some(mark) = known.removal() else {
        return false;
    };
    let mut undone = truth.undone.iter();
    undone.any(|(step, whom, _)| *step > mark.step && known.by.is_of(*whom))
}

/// UNDO-1, UNDO-9: a line of the chosen author that another author had put back
/// before the chosen author removed it.
pub fn was_put_back_by_another(known: &Known, whom: Who) -> bool {
    let by_another = |mark: &Mark| {
        let is_theirs = matches!(mark.way, Way::Hand | Way::Decided);
        mark.on && is_theirs && !mark.who.is_of(whom)
    };
    known.marks.iter().skip(1).any(by_another)
}

/// UNDO-1: taking a file back to a content that it had several times means
/// the newest of these versions, so also one of the chosen author.
pub fn may_come_back_since_both_removed_it(known: &Known, whom: Who) -> bool {
    let mut off = known.marks.iter().filter(|mark| !mark.on);
    off.any(|mark| mark.who.is_of(whom) && matches!(mark.way, Way::Decided | Way::Wiped))
}

/// UNDO-10: who resolves a conflict takes one side of it whole, or mixes both.
/// A line that is on the side which was not taken was brought and removed by the
/// same merge: no author need have decided about the line itself.
pub fn may_come_back_since_a_resolution_left_it_out(known: &Known, whom: Who) -> bool {
    let is_own = |mark: &Mark| !mark.on && mark.who.is_of(whom);
    match known.marks.as_slice() {
        [earlier @ .., brought, left_out] => {
            let is_merge = brought.on && brought.way == Way::Carried && !left_out.on;
            is_merge && brought.step == left_out.step && earlier.last().is_some_and(is_own)
        }
        _ => false,
    }
}

/// HIST-2, step 2.4: a line that was typed again by another author is theirs, or
/// still its first author's where it was put back.
pub fn may_be_typed_again_by(known: &Known, shown: Who) -> bool {
    let typed = |mark: &Mark| mark.on && mark.who == shown;
    known.marks.iter().any(typed) && known.marks.len() > 1
}

/// HIST-2, ATTR-13, SCOPE-2, KEEP-3: what was typed while no daemon ran, in a
/// file that no session knew, or whose contents are lost, may be `unknown`.
pub fn may_be_unknown(known: &Known) -> bool {
    known.dim
}

/// Step 2.2: a line that a commit has and the history does not know is
/// `committed`; what cannot be known is `unknown`.
pub fn is_nobodys(author: &Value, evidence: &Value) -> bool {
    author["kind"] == "unknown" || author["kind"] == "committed" || evidence == "committed"
}

/// REV-1: a hunk that another author has changed since is left out, and so may
/// be everything that was replaced together with it.
pub fn may_be_left_out_of_the_queue(truth: &Truth, known: &Known) -> bool {
    let Some(mark) = known.last() else {
        return true;
    };
    let others = truth.touched_since(mark.step, |who| who.session().is_none());
    others.contains(&known.file) || known.dim
}

/// KEEP-3, UNDO-2: where contents are lost, changes of several authors may not
/// be distinguishable; they stay, and the answer says so.
pub fn may_be_indistinguishable(known: &Known) -> bool {
    known.dim
}
