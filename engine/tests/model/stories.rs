//! Runs that failed once, cut down, each under the name of what it showed.

use crate::disk::Name;
use crate::op::{How, Kind, Op, Script};
use crate::play;
use crate::text::Make;

fn holds(initial: &[(Name, Make)], ops: &[Op]) {
    for (tick, turned) in [(1, false), (1_000, true)] {
        let script = Script {
            tick,
            turned,
            initial: initial.to_vec(),
            ops: ops.to_vec(),
        };
        play::run(&script).unwrap();
    }
}

fn read(session: usize, name: Name) -> Op {
    Op::Read {
        session,
        name,
        range: None,
        hash: false,
    }
}

fn save(name: Name, make: Make, how: How) -> Op {
    Op::Save { name, make, how }
}

fn begin(slot: usize, session: usize, name: Name, make: Make, declared: bool) -> Op {
    Op::Begin {
        slot,
        session,
        name,
        make,
        declared,
        kind: Kind::Hook,
        guarded: false,
    }
}

fn saves(slot: usize) -> Op {
    Op::AgentSave {
        slot,
        how: How::Replace,
        alias: false,
    }
}

fn commit(slot: usize, named: bool) -> Op {
    Op::Commit { slot, named }
}

const CHECK: Op = Op::Check { order: 0 };

/// What was known of the old name went to nobody where the new one had been
/// spoken of.
#[test]
fn a_rename_to_a_name_that_another_session_has_spoken_of_tells_what_was_known() {
    holds(
        &[("a", Make::Whole(1, 1)), ("b", Make::Whole(2, 2))],
        &[
            read(0, "a"),
            read(1, "b"),
            Op::Remove { name: "a" },
            Op::Settle,
            Op::Rename { from: "b", to: "a" },
            CHECK,
        ],
    );
}

#[test]
fn what_was_gone_does_not_move_with_its_directory() {
    holds(
        &[("d/a", Make::Whole(1, 2)), ("d/b", Make::Whole(2, 2))],
        &[
            read(0, "d/a"),
            read(0, "d/b"),
            Op::Remove { name: "d/a" },
            Op::Settle,
            Op::RenameDirectory { from: "d", to: "k" },
            save("k/a", Make::Whole(3, 2), How::InPlace),
            CHECK,
        ],
    );
}

/// A change was listed by the name that the session had used before.
#[test]
fn a_mention_uses_the_name_it_speaks() {
    holds(
        &[("k/a", Make::Whole(1, 3))],
        &[
            read(1, "k/a"),
            Op::Symlink {
                name: "ld",
                to: "k",
                atomic: true,
            },
            save("ld/a", Make::Revise(2, 2), How::InPlace),
            Op::Mention {
                session: 1,
                name: "ld/a",
                hash: false,
            },
            CHECK,
        ],
    );
}

/// The file's removal was told as one that takes an edit back: what the first
/// version of a path took the place of was not known, and no file is not that.
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

/// The writer of a content that nobody had seen, named at the commit, was told
/// as one who changed the file after it was read.
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

/// A tool that writes what is there already, and is written over, has changed
/// nothing.
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

/// The content of one edit was claimed again at the end of another of the same
/// session's, and what had been read since was forgotten.
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

/// The user's second save half a minute later let go of the agent's version,
/// and a third that took it back did not say so.
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

fn link(name: Name, to: Name) -> Op {
    Op::Symlink {
        name,
        to,
        atomic: true,
    }
}

/// What was read under the old name after a rename was copied to the new one:
/// the copy is recorded late, for an editor's backup is mostly gone by then.
#[test]
fn what_is_read_under_the_old_name_after_a_rename_stays_there() {
    holds(
        &[("d/b", Make::Whole(1, 3))],
        &[
            read(0, "d/b"),
            Op::Rename {
                from: "d/b",
                to: "b",
            },
            save("d/b", Make::Whole(2, 3), How::InPlace),
            read(1, "d/b"),
            CHECK,
        ],
    );
}

/// The session was told of the new name by a symlink that it never used:
/// asking by that one made it a name of the session's.
#[test]
fn a_question_by_a_link_does_not_use_it() {
    holds(
        &[("d/a", Make::Whole(1, 3)), ("k/b", Make::Whole(2, 3))],
        &[
            read(0, "d/a"),
            link("la", "k/a"),
            save("d/a", Make::Whole(3, 3), How::InPlace),
            Op::Rename {
                from: "d/a",
                to: "k/a",
            },
            CHECK,
        ],
    );
}

/// A link that was spoken of while it led to nothing, and then came to lead to
/// a name that a rename had just made, stayed a stranger to it.
#[test]
fn a_link_to_what_was_just_renamed_joins_it() {
    holds(
        &[("d/b", Make::Whole(1, 3))],
        &[
            begin(0, 0, "lb", Make::Whole(2, 3), true),
            read(0, "d/b"),
            Op::RenameDirectory { from: "d", to: "k" },
            link("lb", "k/b"),
            CHECK,
        ],
    );
}
