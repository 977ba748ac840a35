//! Stories about what a session has seen of a file, and which changes are
//! reported to it.

use super::{CHECK, begin, commit, holds, read, save, saves};
use crate::op::{How, Kind, Op};
use crate::text::Make;

/// Once, the file's removal was reported as taking an edit back: the content
/// before the first version of a path was not known, and that was treated as no
/// file.
#[test]
fn a_removal_takes_nothing_back_that_was_marked_late() {
    holds(
        &[("a", Make::Whole(1, 3))],
        &[
            save("a", Make::Revise(1, 5), How::InPlace),
            Op::Begin {
                slot: 1,
                session: 0,
                name: "a",
                make: Make::Same,
                declared: true,
                kind: Kind::Flag,
                guarded: false,
            },
            begin(3, 0, "a", Make::Revise(4, 11), false),
            saves(3),
            commit(3, false),
            Op::Remove { name: "a" },
            CHECK,
        ],
    );
}

/// Once, the author of a content that was never read, named at the commit, was
/// reported as having changed the file after it was read.
#[test]
fn what_came_before_a_read_is_no_change_since() {
    holds(
        &[],
        &[
            begin(4, 1, "a", Make::Whole(13, 1), true),
            saves(4),
            save("a", Make::Whole(12, 1), How::InPlace),
            read(0, "a"),
            commit(4, true),
            save("a", Make::Whole(14, 2), How::InPlace),
            Op::Settle,
            CHECK,
        ],
    );
}

/// Once, the content of one edit was claimed again at the end of another edit
/// of the same session, and what had been read since was forgotten.
#[test]
fn the_end_of_one_edit_leaves_what_was_read_of_another() {
    holds(
        &[],
        &[
            begin(5, 0, "a", Make::Whole(14, 1), false),
            begin(6, 0, "a", Make::Whole(15, 1), true),
            saves(6),
            Op::Settle,
            read(0, "a"),
            commit(5, false),
            read(0, "a"),
        ],
    );
}

/// Once, the user's second save, half a minute later, made the engine drop the
/// agent's version. A third save that took it back did not report that.
#[test]
fn an_edit_that_is_taken_back_late_is_named() {
    holds(
        &[("b", Make::Whole(5, 1))],
        &[
            read(0, "b"),
            begin(2, 0, "b", Make::Revise(0, 10), true),
            saves(2),
            commit(2, true),
            Op::Settle,
            save("b", Make::Whole(11, 2), How::InPlace),
            Op::Settle,
            Op::Pass(40_000),
            save("b", Make::Whole(14, 2), How::InPlace),
            Op::Settle,
            Op::Pass(40_000),
            save("b", Make::Back(3), How::InPlace),
            Op::Settle,
            CHECK,
        ],
    );
}

/// Once, the session's last two edits were merged half a minute later, and the
/// content between them was forgotten.
#[test]
fn the_last_of_several_edits_is_named_when_it_is_taken_back_late() {
    let edit = |slot, make| [begin(slot, 0, "a", make, true), saves(slot), Op::Settle];
    let mut steps = vec![read(1, "a"), read(0, "a")];
    steps.extend(edit(3, Make::Append(13)));
    steps.extend(edit(4, Make::Insert(0, 14)));
    steps.push(Op::Pass(700_000));
    for make in [Make::Revise(0, 24), Make::Back(2)] {
        steps.extend([save("a", make, How::InPlace), Op::Settle]);
    }
    steps.push(Op::Check { order: 0 });
    holds(&[("a", Make::Whole(1, 3))], &steps);
}

/// Once, a session that had read some lines of what came after its edit got no
/// report that the edit was taken back.
#[test]
fn an_edit_that_was_partly_read_over_is_named_when_it_is_taken_back() {
    let some = Op::Read {
        session: 0,
        name: "b",
        range: Some((3, 3)),
        hash: false,
    };
    holds(
        &[("b", Make::Whole(2, 3))],
        &[
            begin(1, 0, "b", Make::Revise(0, 8), true),
            saves(1),
            commit(1, true),
            Op::Settle,
            save("b", Make::Back(1), How::InPlace),
            some,
            Op::Check { order: 0 },
        ],
    );
}

/// Once, after the session's context was cut, a content that it had seen before
/// another was treated as the current one.
#[test]
fn a_return_is_news_also_to_who_holds_no_line_of_it() {
    let some = Op::Read {
        session: 0,
        name: "b",
        range: Some((2, 4)),
        hash: true,
    };
    holds(
        &[("b", Make::Whole(1, 3))],
        &[
            read(0, "b"),
            begin(4, 0, "b", Make::Revise(3, 13), true),
            saves(4),
            commit(4, true),
            Op::Settle,
            save("b", Make::Back(1), How::InPlace),
            some,
            Op::Compacted {
                session: 0,
                keep: None,
            },
            save("b", Make::Back(1), How::InPlace),
            CHECK,
        ],
    );
}

/// Two lines of a content were shown that the file no longer had. The other
/// lines of that content were not shown, even if the file has it again later.
#[test]
fn what_a_tool_cut_off_was_not_shown() {
    let some = Op::ReadBefore {
        session: 0,
        name: "a",
        make: Make::Whole(2, 3),
        range: Some((1, 2)),
    };
    holds(
        &[("a", Make::Whole(1, 3))],
        &[
            Op::Mention {
                session: 0,
                name: "a",
                hash: false,
            },
            some,
            Op::Settle,
            save("a", Make::Back(1), How::InPlace),
            Op::Settle,
            CHECK,
            read(0, "a"),
        ],
    );
}

/// Once, a line that was shown of a content which was not the file's was shown
/// again, since the end of that content had not been shown.
#[test]
fn the_last_line_is_a_repeat_without_the_end() {
    let some = Op::ReadBefore {
        session: 2,
        name: "b",
        make: Make::Insert(4, 12),
        range: Some((2, 3)),
    };
    let again = Op::ReadText {
        session: 2,
        name: "b",
        range: Some((2, 2)),
        force: false,
    };
    holds(
        &[("b", Make::Whole(3, 2))],
        &[some, save("b", Make::Back(1), How::Vim), again],
    );
}

/// Once, older lines that were still in the user's version counted as seen of
/// that version, if a request came meanwhile. So the version was not reported
/// as lost.
#[test]
fn lines_that_have_not_changed_are_not_all_that_an_edit_destroys() {
    let some = Op::Read {
        session: 1,
        name: "b",
        range: Some((2, 2)),
        hash: true,
    };
    holds(
        &[("b", Make::Whole(2, 2))],
        &[
            some,
            begin(6, 1, "b", Make::Whole(17, 2), true),
            save("b", Make::Revise(0, 18), How::Replace),
            CHECK,
            saves(6),
            Op::Check { order: 1 },
        ],
    );
}

/// Once, the user was reported as having changed the file since, because
/// another mark of the session had already found the content that its commit
/// named.
#[test]
fn what_a_commit_names_is_known_though_another_mark_had_found_it() {
    holds(
        &[("b", Make::Whole(1, 2))],
        &[
            begin(7, 1, "b", Make::Revise(1, 19), false),
            begin(8, 1, "b", Make::Whole(20, 2), false),
            saves(7),
            Op::Settle,
            saves(8),
            read(2, "b"),
            begin(9, 2, "b", Make::Revise(1, 22), true),
            saves(9),
            commit(7, false),
            commit(8, true),
            Op::Check { order: 1 },
            save("b", Make::Back(2), How::InPlace),
            CHECK,
        ],
    );
}

/// Once, a line that was still in the file as it was shown did not count, so
/// that the next read was reported as the first.
#[test]
fn a_read_beside_a_line_that_has_moved_here_is_not_the_first() {
    let some = Op::Read {
        session: 1,
        name: "b",
        range: Some((1, 1)),
        hash: true,
    };
    holds(
        &[("b", Make::Whole(2, 1))],
        &[
            read(1, "b"),
            save("b", Make::Append(14), How::InPlace),
            Op::Compacted {
                session: 1,
                keep: None,
            },
            some,
            save("b", Make::Back(1), How::InPlace),
            read(1, "b"),
        ],
    );
}

/// Once, the session's own write was forgotten. Its commit named it after
/// another author had restored what the session had read before, and a request
/// came in between: lines that were found in the newer content counted as seen
/// of it.
#[test]
fn what_a_commit_names_is_believed_though_lines_were_found_elsewhere() {
    holds(
        &[("b", Make::Whole(2, 3))],
        &[
            read(1, "b"),
            begin(3, 1, "b", Make::Insert(0, 1), false),
            saves(3),
            Op::Truncated {
                session: 1,
                name: "b",
                range: Some((4, 5)),
            },
            CHECK,
            save("b", Make::Back(1), How::InPlace),
            commit(3, true),
            CHECK,
        ],
    );
}
