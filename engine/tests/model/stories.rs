//! Runs that failed once, cut down, each under the name of what it showed.

use touchmark_proto::files::FileHistory;
use touchmark_proto::{Reply, Request};

use crate::disk::Name;
use crate::op::{How, Kind, Op, Script};
use crate::people::SESSIONS;
use crate::play::{self, Play, session};
use crate::text::Make;

fn holds(initial: &[(Name, Make)], ops: &[Op]) {
    ends(initial, ops, |_| ());
}

/// Where the model leaves open what came of it, the story says it.
fn ends(initial: &[(Name, Make)], ops: &[Op], so: impl Fn(&mut Play)) {
    for (tick, turned, texts) in [(1, false, false), (1_000, true, false), (1, false, true)] {
        let script = Script {
            tick,
            turned,
            texts,
            initial: initial.to_vec(),
            ops: ops.to_vec(),
        };
        so(&mut play::play(&script).unwrap());
    }
}

/// Who is told to have written what a file holds: a session, or nobody's.
fn writer(play: &mut Play, name: Name) -> Option<usize> {
    let history = Request::FileHistory(FileHistory {
        path: name.into(),
        limit: None,
        before: None,
        sync: None,
        verify: None,
    });
    let Ok(Reply::FileHistory(told)) = play.ask(0, history) else {
        panic!("no history");
    };
    let author = told
        .versions
        .first()
        .and_then(|row| row.author.session.clone());
    author.and_then(|id| (0..SESSIONS).find(|who| session(*who) == id))
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

/// The content that a session had named at its commit stayed another's, whose
/// mark had only found it at its end.
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

/// A mark that was open over a gap came to nothing: what its session had
/// written stayed nobody's.
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

/// A late mark took what came while another session held the file.
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

/// A commit claimed what the user had saved before the edit began, since it
/// was the same, and nobody had seen the session's own.
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

/// The user's deletion, waited with since an edit was open, was taken for that
/// of a mark that was made after it.
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

/// Half a minute later the session's last two edits counted as one, and the
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

/// Who had read some lines of what came after its edit was not told that the
/// edit was taken back.
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

/// After its context was cut, a content that the session had seen before
/// another was taken for the one it knew.
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

/// Who had known a file by the name that was renamed was told who had changed
/// what the new name held before.
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

/// Half of a save, read while it was written over another that was closed,
/// became a version.
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

/// A commit that named what was there at its begin put a version between those
/// of the user's that the file never held.
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

/// A commit that named what it wrote claimed what another edit of the same
/// session had declared later; its own stayed the user's.
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

/// What was seen by one of two hard links was seen by both; once one of them
/// was replaced, each goes on by itself.
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

/// Two lines of a content were shown that the file did not hold any more: the
/// rest of it was not, also when it is back.
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

/// Lines that stood in the new content still counted as read of it, so that its
/// writer could not mark it any more.
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
