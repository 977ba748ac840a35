//! Stories about names that were given to other files.

use super::{CHECK, begin, commit, holds, read, save, saves};
use crate::op::{How, Op};
use crate::text::Make;

/// Once, what was seen of the old name was lost if another session had named
/// the new one.
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

/// Once, a change was listed by the name that the session had used before.
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

/// Once, what was read under the old name after a rename was copied to the new
/// one. The copy is recorded late, since an editor's backup is mostly removed
/// soon.
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

/// Once, a session that had used a file by the renamed name was told who had
/// changed the previous content of the new name.
#[test]
fn a_renamed_files_changes_are_those_of_its_old_name() {
    holds(
        &[("b", Make::Whole(1, 2))],
        &[
            read(1, "b"),
            save("b", Make::Insert(1, 9), How::InPlace),
            begin(3, 2, "a", Make::Append(10), true),
            saves(3),
            Op::Settle,
            Op::Remove { name: "a" },
            Op::Settle,
            Op::Rename { from: "b", to: "a" },
            Op::Check { order: 1 },
        ],
    );
}

/// What was seen by one of two hard links is seen by both. Once one of them is
/// replaced, each continues separately.
#[test]
fn hard_links_are_one_file_until_one_is_replaced() {
    holds(
        &[("d/a", Make::Whole(1, 3))],
        &[
            read(0, "d/a"),
            Op::HardLink {
                from: "d/a",
                to: "b",
            },
            Op::Settle,
            read(0, "b"),
            read(1, "b"),
            save("d/a", Make::Revise(0, 4), How::InPlace),
            Op::Settle,
            CHECK,
            read(0, "b"),
            read(1, "b"),
            save("b", Make::Whole(2, 3), How::Replace),
            Op::Settle,
            CHECK,
            save("d/a", Make::Revise(1, 5), How::InPlace),
            Op::Settle,
            Op::Check { order: 1 },
        ],
    );
}

/// Once, a removed file was copied when its directory was renamed before the
/// file had been read.
#[test]
fn what_was_removed_a_moment_ago_does_not_move_with_its_directory() {
    holds(
        &[("d/a", Make::Whole(2, 4))],
        &[
            begin(1, 2, "k/a", Make::Append(3), false),
            read(0, "d/a"),
            Op::Remove { name: "d/a" },
            Op::RenameDirectory { from: "d", to: "k" },
            CHECK,
        ],
    );
}

/// Once, the commit of an edit was answered with another name than the edit was
/// begun with.
#[test]
fn an_edit_is_answered_by_the_name_it_was_begun_by() {
    holds(
        &[("k/a", Make::Whole(5, 2))],
        &[
            read(0, "k/a"),
            begin(10, 0, "k/a", Make::Revise(1, 26), true),
            Op::HardLink {
                from: "k/a",
                to: "d/a",
            },
            read(0, "d/a"),
            commit(10, false),
        ],
    );
}

/// Once, each read of one of two links overlapped the last read of the other
/// and ordered another read of it: the engine read both without end.
#[test]
fn two_links_that_are_read_in_turn_are_found_to_be_one() {
    holds(
        &[("b", Make::Whole(1, 1))],
        &[
            read(0, "b"),
            save("la", Make::Revise(0, 10), How::Replace),
            read(0, "la"),
            Op::HardLink {
                from: "b",
                to: "la",
            },
            Op::ReadBefore {
                session: 0,
                name: "b",
                make: Make::Empty,
                range: Some((3, 4)),
            },
            CHECK,
        ],
    );
}

/// Once, three links, and a symlink to the directory of one of them, were read
/// in turn without end.
#[test]
fn three_links_that_are_read_in_turn_are_found_to_be_one() {
    holds(
        &[("a", Make::Whole(1, 1))],
        &[
            Op::Symlink {
                name: "ld",
                to: "d",
                atomic: false,
            },
            Op::HardLink {
                from: "a",
                to: "d/a",
            },
            Op::HardLink {
                from: "a",
                to: "la",
            },
            CHECK,
        ],
    );
}
