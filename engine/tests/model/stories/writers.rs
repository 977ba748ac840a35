//! Stories about who wrote a content.

use super::{CHECK, begin, commit, ends, holds, read, save, saves, writer};
use crate::op::{How, Kind, Op};
use crate::text::Make;

/// A tool that writes the content that is already there, and is overwritten,
/// has changed nothing.
#[test]
fn the_same_once_more_is_no_version() {
    holds(
        &[("b", Make::Whole(2, 3))],
        &[
            read(2, "b"),
            read(0, "b"),
            begin(9, 0, "b", Make::Same, true),
            saves(9),
            save("b", Make::Revise(1, 23), How::Replace),
            commit(9, true),
            CHECK,
        ],
    );
}

/// Once, the content that a session had named at its commit stayed another
/// session's, whose mark had only found it at its end.
#[test]
fn who_names_a_content_goes_before_who_found_it() {
    for named_first in [false, true] {
        let mut ends_of_both = [commit(1, false), commit(2, true)];
        if named_first {
            ends_of_both.reverse();
        }
        let mut steps = vec![
            begin(1, 0, "a", Make::Same, false),
            begin(2, 1, "a", Make::Revise(0, 5), false),
            saves(2),
            Op::Settle,
        ];
        steps.extend(ends_of_both);
        steps.push(CHECK);
        ends(&[("a", Make::Whole(1, 3))], &steps, |play| {
            assert_eq!(writer(play, "a"), Some(1), "named first: {named_first}");
        });
    }
}

/// Once, a mark that was open over a gap claimed nothing, and what its session
/// had written had no author.
#[test]
fn a_mark_that_was_open_over_a_gap_claims_what_came_in_it() {
    let steps = [
        begin(1, 0, "a", Make::Revise(0, 5), false),
        saves(1),
        Op::Overflow,
        Op::Settle,
        commit(1, false),
        CHECK,
    ];
    ends(&[("a", Make::Whole(1, 3))], &steps, |play| {
        assert_eq!(writer(play, "a"), Some(0));
    });
}

/// Once, a late mark claimed what came while another session had the file
/// marked.
#[test]
fn a_late_mark_is_refused_while_another_session_holds_the_file() {
    let edit = |slot, session, declared, kind| Op::Begin {
        slot,
        session,
        name: "a",
        make: if slot == 1 {
            Make::Revise(0, 5)
        } else {
            Make::Same
        },
        declared,
        kind,
        guarded: false,
    };
    let steps = [
        edit(1, 0, false, Kind::Edit),
        saves(1),
        Op::Settle,
        edit(2, 1, true, Kind::Flag),
        commit(1, false),
        CHECK,
    ];
    ends(&[("a", Make::Whole(1, 3))], &steps, |play| {
        assert_eq!(writer(play, "a"), Some(0));
    });
}

/// Once, a commit claimed what the user had saved before the edit began: it was
/// the same content, and the session's own write was never read.
#[test]
fn an_edit_claims_nothing_of_before_its_begin() {
    holds(
        &[("b", Make::Whole(5, 2))],
        &[
            begin(6, 0, "a", Make::Empty, false),
            save("a", Make::Same, How::InPlace),
            Op::Settle,
            Op::Abort { slot: 6 },
            Op::Remove { name: "a" },
            begin(10, 0, "a", Make::Back(1), true),
            Op::AgentSave {
                slot: 10,
                how: How::InPlace,
                alias: false,
            },
            Op::Rename { from: "b", to: "a" },
            commit(10, true),
            CHECK,
        ],
    );
}

/// Once, the user's deletion, which was held back since an edit was open, was
/// attributed to a mark that was made after it.
#[test]
fn a_deletion_of_before_a_mark_is_not_its_sessions() {
    for flag in [true, false] {
        let mark = Op::Begin {
            slot: 6,
            session: 0,
            name: "b",
            make: Make::Revise(0, 13),
            declared: false,
            kind: if flag { Kind::Flag } else { Kind::Edit },
            guarded: false,
        };
        let mut steps = vec![
            read(0, "b"),
            begin(5, 0, "b", Make::Append(12), true),
            Op::Remove { name: "b" },
            mark,
            Op::Settle,
        ];
        if !flag {
            steps.push(commit(6, false));
        }
        steps.push(Op::Check { order: 1 });
        ends(&[("b", Make::Whole(2, 2))], &steps, |play| {
            assert_eq!(writer(play, "b"), None, "by a one-call mark: {flag}");
        });
    }
}

/// Once, half of a save became a version. It was read while it replaced another
/// content that was closed.
#[test]
fn half_of_a_save_is_no_version_though_another_was_closed_before_it() {
    holds(
        &[("b", Make::Empty)],
        &[
            read(1, "b"),
            begin(7, 1, "b", Make::Append(23), false),
            Op::AgentSave {
                slot: 7,
                how: How::InPlace,
                alias: false,
            },
            Op::OpenPart {
                name: "b",
                make: Make::Whole(26, 2),
            },
            Op::Check { order: 2 },
            Op::ClosePart,
            Op::Remove { name: "b" },
            Op::Settle,
            CHECK,
        ],
    );
}

/// Once, a commit that named the content from its beginning put a version
/// between those of the user that the file never had.
#[test]
fn what_was_there_is_not_invented_between_two_saves() {
    holds(
        &[("b", Make::Whole(1, 3))],
        &[
            read(2, "b"),
            begin(8, 1, "b", Make::Same, true),
            Op::AgentSave {
                slot: 8,
                how: How::Recreate,
                alias: false,
            },
            save("b", Make::Revise(0, 23), How::InPlace),
            CHECK,
            save("b", Make::Drop(1), How::InPlace),
            commit(8, true),
            CHECK,
        ],
    );
}

/// Once, a commit that named its content claimed what another edit of the same
/// session had declared later, and its own content stayed the user's.
#[test]
fn a_named_commit_claims_its_own_of_two_that_are_the_same() {
    holds(
        &[("b", Make::Whole(2, 4))],
        &[
            begin(1, 1, "b", Make::Revise(3, 5), true),
            saves(1),
            Op::Settle,
            begin(3, 1, "b", Make::Back(1), false),
            saves(3),
            Op::Settle,
            save("b", Make::Whole(9, 2), How::Replace),
            Op::Settle,
            begin(4, 1, "b", Make::Back(1), true),
            saves(4),
            Op::Settle,
            commit(3, true),
            Op::Check { order: 2 },
        ],
    );
}

/// Once, lines that were still in the new content counted as read of it, so
/// that its writer could not mark it any more.
#[test]
fn a_late_mark_speaks_for_a_content_of_which_lines_were_known_before() {
    let some = Op::Read {
        session: 0,
        name: "a",
        range: Some((2, 2)),
        hash: true,
    };
    let late = Op::Late {
        session: 0,
        name: "a",
        make: Make::Revise(0, 21),
    };
    holds(&[("a", Make::Whole(1, 3))], &[some, late, CHECK]);
}

/// Once, the user's removal was attributed to a session whose mark was open,
/// although another session had created the file again.
#[test]
fn a_removal_is_no_marks_where_the_file_was_made_anew() {
    let steps = [
        begin(8, 1, "a", Make::Revise(1, 15), false),
        Op::Remove { name: "a" },
        Op::Settle,
        begin(9, 2, "a", Make::Append(16), true),
        saves(9),
        commit(8, false),
        CHECK,
    ];
    holds(&[("a", Make::Whole(1, 2))], &steps);
}
