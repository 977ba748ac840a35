//! Runs that have failed once, shrunk. Each test is named after what it showed.
//! Each run is audited as it is, and with each step brought to rest. If the
//! result is known, the test states it.

use touchmark_engine::{Fact, VersionFact};

use crate::chaos;
use crate::content::content;
use crate::op::{Ask, Asking, How, Named, Op, Path};
use crate::world::World;

fn ask(session: usize, connection: u64, ask: Ask) -> Op {
    Op::Ask(Asking {
        session,
        connection,
        within: None,
        sync: true,
        ask,
    })
}

fn mark(slot: usize, path: Path, expect: Named) -> Ask {
    Ask::Mark {
        slot,
        path,
        expect,
        ttl: None,
        bind: false,
    }
}

/// The request that an agent sends before each of its turns.
const TAKE: Ask = Ask::Take {
    peek: false,
    explicit: false,
    paths: None,
};

fn begin(slot: usize, files: &[(Path, Named)], guarded: bool) -> Ask {
    Ask::Begin {
        slot,
        files: files.to_vec(),
        require_read: guarded,
        force: false,
        wait: None,
        ttl: None,
        bind: false,
        call: false,
    }
}

/// Plays a run as it is, and with each step at rest. Returns the versions that
/// the second one recorded, with their corrections.
fn holds(tick: u64, initial: &[(Path, u32)], ops: Vec<Op>) -> Vec<String> {
    let script = crate::script::Script {
        tick,
        initial: initial.to_vec(),
        ops,
    };
    chaos::run(&script).unwrap();
    let script = script.at_rest();
    chaos::run(&script).unwrap();
    recorded(&script)
}

/// Plays a run as it is. Returns the versions that it recorded, with their
/// corrections.
fn recorded(script: &crate::script::Script) -> Vec<String> {
    let mut world = World::new(script.tick, &script.initial);
    let end = [Op::Pass(1_000), Op::Drain];
    for op in script.ops.iter().chain(&end) {
        world.step(op);
    }
    let versions = world
        .records
        .iter()
        .filter_map(|record| match &record.fact {
            Fact::Version(version) => Some(version),
            _ => None,
        });
    versions.map(told).collect()
}

fn told(version: &VersionFact) -> String {
    let known = version.held.hash.map(|hash| {
        let mut all = 0..100;
        all.find(|id| crate::content::hash(&content(*id)) == hash)
    });
    let what = match known {
        Some(Some(id)) => id.to_string(),
        Some(None) => "something".to_owned(),
        None => "nothing".to_owned(),
    };
    let who = match &version.author.session {
        Some(session) => session.as_str().to_owned(),
        None => format!("{:?}", version.author.kind),
    };
    let unseen = if version.unobserved {
        ", unobserved"
    } else {
        ""
    };
    let amends = if version.amends.is_some() { " is" } else { "" };
    let path = version.path.to_string_lossy();
    format!(
        "{path}{amends} {what} by {who}, {:?}{unseen}",
        version.evidence
    )
}

#[test]
fn an_older_read_still_under_way_holds_nothing_up() {
    let told = holds(
        4,
        &[("x/b", 4)],
        vec![
            ask(0, 0, mark(4, "x/b", Named::Content(14))),
            Op::Hints(3),
            Op::Write {
                path: "x/b",
                content: 15,
                how: How::Recreate,
            },
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::Hints(2),
            Op::Pass(18),
            Op::GiveRead { which: 2 },
            ask(
                0,
                1,
                Ask::Read {
                    path: "x/b",
                    named: Named::Disk,
                    range: None,
                },
            ),
            Op::Hints(1),
            Op::Hints(1),
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
            Op::GiveRead { which: 0 },
            Op::Hints(3),
        ],
    );
    assert_eq!(told, ["x/b 15 by User, Unmarked"]);
}

#[test]
fn a_request_that_waited_for_an_edit_is_answered() {
    let told = holds(
        1,
        &[],
        vec![
            ask(0, 1, mark(1, "a", Named::No)),
            Op::Ask(Asking {
                session: 1,
                connection: 3,
                within: None,
                sync: false,
                ask: Ask::Begin {
                    slot: 3,
                    files: vec![("a", Named::Content(5))],
                    require_read: false,
                    force: false,
                    wait: Some(300),
                    ttl: None,
                    bind: false,
                    call: false,
                },
            }),
        ],
    );
    assert_eq!(told, [""; 0], "nothing that anybody holds has changed");
}

#[test]
fn a_claimed_write_over_a_deletion_is_recorded_once() {
    let told = holds(
        4,
        &[("a", 2), ("d/b", 3), ("d/c", 4)],
        vec![
            ask(
                0,
                1,
                Ask::Begin {
                    slot: 3,
                    files: vec![("d/b", Named::Content(12))],
                    require_read: true,
                    force: true,
                    wait: None,
                    ttl: None,
                    bind: false,
                    call: false,
                },
            ),
            Op::Unlink { path: "d/b" },
            ask(
                0,
                0,
                Ask::Commit {
                    slot: 3,
                    files: vec![],
                    name_hash: true,
                    by_call: true,
                },
            ),
        ],
    );
    assert_eq!(
        told,
        [
            "d/b 12 by s0, Declared, unobserved",
            "d/b nothing by User, Unmarked"
        ]
    );
}

#[test]
fn a_commit_of_an_untracked_path_reads_it() {
    let told = holds(
        1,
        &[("d/e/f", 5)],
        vec![
            ask(
                1,
                2,
                Ask::Begin {
                    slot: 6,
                    files: vec![("x/b", Named::Content(15)), ("d/e/f", Named::Content(16))],
                    require_read: true,
                    force: true,
                    wait: None,
                    ttl: None,
                    bind: false,
                    call: false,
                },
            ),
            ask(1, 2, Ask::Untrack { path: "d/e/f" }),
            ask(
                1,
                2,
                Ask::Commit {
                    slot: 6,
                    files: vec![],
                    name_hash: true,
                    by_call: true,
                },
            ),
        ],
    );
    assert_eq!(
        told,
        [
            "x/b 15 by s1, Declared, unobserved",
            "x/b nothing by User, Unmarked",
            "d/e/f 16 by s1, Declared, unobserved",
            "d/e/f 5 by User, Unmarked"
        ]
    );
}

#[test]
fn what_was_held_back_is_gone_with_the_file() {
    let told = holds(
        1,
        &[("a", 5)],
        vec![
            ask(1, 3, mark(12, "a", Named::Content(18))),
            ask(
                0,
                0,
                begin(13, &[("a", Named::Content(19)), ("y/b", Named::No)], true),
            ),
            Op::Hints(2),
            Op::Write {
                path: "a",
                content: 6,
                how: How::FromOutside,
            },
            Op::Await { slot: 13 },
            ask(
                1,
                3,
                Ask::Read {
                    path: "a",
                    named: Named::No,
                    range: None,
                },
            ),
            ask(
                1,
                2,
                Ask::Begin {
                    slot: 14,
                    files: vec![("y/e/f", Named::Absent), ("a", Named::No)],
                    require_read: true,
                    force: true,
                    wait: None,
                    ttl: None,
                    bind: false,
                    call: false,
                },
            ),
            Op::Hints(3),
            Op::WOpen {
                writer: 2,
                path: "a",
                truncate: true,
                content: 5,
            },
            Op::Hints(2),
            Op::Await { slot: 14 },
            Op::Unlink { path: "a" },
            ask(
                1,
                2,
                Ask::Read {
                    path: "a",
                    named: Named::Disk,
                    range: None,
                },
            ),
        ],
    );
    assert_eq!(
        told,
        ["a 6 by User, Unmarked", "a nothing by User, Unmarked"]
    );
}

#[test]
fn a_read_that_comes_late_takes_nothing_back() {
    let told = holds(
        1,
        &[("d/b", 3), ("d/c", 3)],
        vec![
            ask(2, 5, mark(2, "d/c", Named::Content(1))),
            Op::Write {
                path: "a",
                content: 4,
                how: How::FromOutside,
            },
            Op::Hints(3),
            ask(
                0,
                1,
                Ask::Status {
                    paths: Some(vec!["a"]),
                },
            ),
            Op::ExecRead {
                which: 1,
                unstable: false,
            },
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
            Op::Hints(2),
            Op::Write {
                path: "a",
                content: 7,
                how: How::Recreate,
            },
            Op::GiveRead { which: 1 },
            Op::Hints(3),
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::Pass(34),
            ask(
                1,
                3,
                Ask::Read {
                    path: "d/c",
                    named: Named::No,
                    range: None,
                },
            ),
            Op::Hints(1),
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::Touch { path: "d/c" },
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
            Op::GiveRead { which: 2 },
            Op::Hints(3),
            Op::Write {
                path: "a",
                content: 1,
                how: How::InPlace,
            },
            Op::GiveRead { which: 2 },
            Op::ExecRead {
                which: 3,
                unstable: false,
            },
            Op::GiveRead { which: 0 },
            Op::GiveRead { which: 1 },
            ask(1, 3, mark(3, "d/b", Named::Content(14))),
            ask(
                1,
                2,
                Ask::Read {
                    path: "a",
                    named: Named::No,
                    range: Some((2, 3)),
                },
            ),
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
            Op::ExecRead {
                which: 3,
                unstable: false,
            },
            ask(
                1,
                2,
                Ask::Take {
                    peek: false,
                    explicit: true,
                    paths: None,
                },
            ),
            Op::GiveRead { which: 2 },
        ],
    );
    assert_eq!(told, [""; 0], "nothing that anybody holds has changed");
}

#[test]
fn a_gap_before_a_copy_says_nothing_of_later_changes() {
    let told = holds(
        1000,
        &[("d/b", 1)],
        vec![
            ask(
                2,
                4,
                Ask::Begin {
                    slot: 1,
                    files: vec![("d/b", Named::Content(9))],
                    require_read: false,
                    force: false,
                    wait: None,
                    ttl: Some(1000),
                    bind: false,
                    call: false,
                },
            ),
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
            Op::GiveRead { which: 3 },
            Op::RenameDir { from: "d", to: "y" },
            Op::Hints(2),
            Op::Gap { below: "y" },
        ],
    );
    assert_eq!(
        told,
        ["d/b nothing by User, Unmarked", "y/b 1 by User, Unmarked"]
    );
}

#[test]
fn a_file_first_held_unreadable_is_not_absent() {
    let told = holds(
        1,
        &[("a", 5)],
        vec![
            ask(
                0,
                1,
                Ask::Read {
                    path: "a",
                    named: Named::Disk,
                    range: None,
                },
            ),
            Op::Write {
                path: "a",
                content: 10,
                how: How::FromOutside,
            },
            Op::Chmod { path: "a" },
            Op::Hints(3),
            ask(
                0,
                0,
                Ask::Begin {
                    slot: 1,
                    files: vec![("a", Named::No)],
                    require_read: true,
                    force: false,
                    wait: None,
                    ttl: Some(1000),
                    bind: false,
                    call: false,
                },
            ),
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
        ],
    );
    assert_eq!(told, ["a 10 by User, Unmarked"]);
}

#[test]
fn a_path_let_go_while_a_status_waits_is_read() {
    let told = holds(
        1000,
        &[("a", 3), ("d/b", 0)],
        vec![
            ask(
                0,
                0,
                Ask::Read {
                    path: "a",
                    named: Named::No,
                    range: None,
                },
            ),
            ask(
                0,
                0,
                Ask::Read {
                    path: "d/b",
                    named: Named::No,
                    range: None,
                },
            ),
            Op::ExecRead {
                which: 1,
                unstable: false,
            },
            Op::GiveRead { which: 0 },
            Op::Write {
                path: "d/b",
                content: 2,
                how: How::Recreate,
            },
            Op::ExecRead {
                which: 3,
                unstable: true,
            },
            Op::Ask(Asking {
                session: 0,
                connection: 1,
                within: None,
                sync: false,
                ask: Ask::Close { forget: true },
            }),
            Op::GiveRead { which: 1 },
            Op::Hints(3),
            ask(
                2,
                4,
                Ask::Status {
                    paths: Some(vec!["a"]),
                },
            ),
        ],
    );
    assert_eq!(told, ["d/b 2 by User, Unmarked"]);
}

#[test]
fn a_rename_consumes_the_mark_of_its_target() {
    let told = holds(
        1,
        &[("a", 6), ("d/c", 7)],
        vec![
            ask(2, 5, mark(1, "d/b", Named::No)),
            ask(
                1,
                2,
                Ask::Read {
                    path: "a",
                    named: Named::Disk,
                    range: None,
                },
            ),
            Op::Rename {
                from: "a",
                to: "d/b",
            },
            Op::Rename {
                from: "d/c",
                to: "d/b",
            },
        ],
    );
    assert_eq!(
        told,
        [
            "d/b 6 by s2, Marked",
            "d/b 7 by User, Unmarked",
            "a nothing by User, Unmarked"
        ]
    );
}

#[test]
fn a_touch_of_what_is_held_back_is_no_version() {
    let told = holds(
        1,
        &[("a", 7)],
        vec![
            ask(2, 5, mark(4, "a", Named::Content(0))),
            Op::ExecRead {
                which: 3,
                unstable: false,
            },
            Op::GiveRead { which: 0 },
            Op::Write {
                path: "a",
                content: 13,
                how: How::InPlace,
            },
            Op::Hints(3),
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::GiveRead { which: 0 },
            Op::Pass(70_000),
            Op::Touch { path: "a" },
            Op::ExecRead {
                which: 3,
                unstable: false,
            },
            Op::AgentWrite {
                slot: 4,
                file: 0,
                how: How::FromOutside,
            },
        ],
    );
    assert_eq!(told, ["a 13 by User, Unmarked", "a 0 by User, Unmarked"]);
}

#[test]
fn a_loss_told_still_makes_the_commit_clobbered() {
    let told = holds(
        1,
        &[("a", 1)],
        vec![
            ask(2, 5, begin(1, &[("a", Named::Content(5))], false)),
            ask(2, 5, Ask::Abort { slot: 1 }),
            Op::Write {
                path: "a",
                content: 11,
                how: How::FromOutside,
            },
            ask(1, 2, begin(2, &[("a", Named::Content(5))], false)),
            Op::AgentWrite {
                slot: 2,
                file: 0,
                how: How::FromOutside,
            },
            ask(1, 3, TAKE),
            ask(
                1,
                2,
                Ask::Commit {
                    slot: 2,
                    files: vec![],
                    name_hash: true,
                    by_call: true,
                },
            ),
        ],
    );
    assert_eq!(told, ["a 11 by User, Unmarked", "a 5 by s1, Declared"]);
}

#[test]
fn a_change_read_in_part_keeps_its_author() {
    let told = holds(
        10,
        &[("a", 1)],
        vec![
            Op::Write {
                path: "d/b",
                content: 11,
                how: How::FromOutside,
            },
            ask(
                0,
                0,
                Ask::Read {
                    path: "d/b",
                    named: Named::Disk,
                    range: None,
                },
            ),
            Op::Write {
                path: "d/b",
                content: 19,
                how: How::Recreate,
            },
            ask(
                0,
                0,
                Ask::Read {
                    path: "d/b",
                    named: Named::Disk,
                    range: Some((1, 1)),
                },
            ),
            ask(
                0,
                1,
                Ask::Take {
                    peek: true,
                    explicit: false,
                    paths: None,
                },
            ),
        ],
    );
    assert_eq!(told, ["d/b 19 by User, Unmarked"]);
}

#[test]
fn a_late_report_does_not_renumber_its_version() {
    let told = holds(
        1,
        &[("a", 1)],
        vec![
            ask(2, 5, begin(1, &[("a", Named::Content(5))], false)),
            ask(2, 5, Ask::Abort { slot: 1 }),
            Op::Write {
                path: "a",
                content: 11,
                how: How::FromOutside,
            },
            ask(
                0,
                1,
                Ask::Saved {
                    path: "a",
                    named: Named::Content(11),
                },
            ),
            ask(1, 2, begin(2, &[("a", Named::Content(5))], false)),
            Op::AgentWrite {
                slot: 2,
                file: 0,
                how: How::FromOutside,
            },
        ],
    );
    assert_eq!(
        told,
        [
            "a 11 by User, Unmarked",
            "a is 11 by User, Editor",
            "a 5 by s1, Declared"
        ]
    );
}

#[test]
fn an_absence_is_not_fresh_once_the_file_was_written_anew() {
    let told = holds(
        4,
        &[("a", 7), ("d/e/f", 7), ("x/b", 0), ("n", 3)],
        vec![
            ask(
                0,
                0,
                Ask::Read {
                    path: "a",
                    named: Named::No,
                    range: None,
                },
            ),
            ask(
                0,
                0,
                Ask::Begin {
                    slot: 5,
                    files: vec![("d/b", Named::Content(5)), ("a", Named::Absent)],
                    require_read: true,
                    force: false,
                    wait: None,
                    ttl: None,
                    bind: false,
                    call: true,
                },
            ),
            Op::AgentWrite {
                slot: 5,
                file: 1,
                how: How::Recreate,
            },
            ask(
                0,
                0,
                Ask::Commit {
                    slot: 5,
                    files: vec![],
                    name_hash: false,
                    by_call: true,
                },
            ),
            ask(
                0,
                1,
                Ask::Mark {
                    slot: 9,
                    path: "a",
                    expect: Named::No,
                    ttl: Some(500),
                    bind: false,
                },
            ),
            Op::AgentWrite {
                slot: 9,
                file: 1,
                how: How::FromOutside,
            },
            Op::Unlink { path: "a" },
            ask(0, 0, Ask::Open),
        ],
    );
    assert_eq!(told, ["a nothing by s0, Declared"]);
}

#[test]
fn an_editors_report_decides_a_content_once() {
    let told = holds(
        1,
        &[("d/b", 0)],
        vec![
            ask(2, 5, begin(1, &[("a", Named::Content(9))], false)),
            Op::Write {
                path: "a",
                content: 4,
                how: How::InPlace,
            },
            Op::Hints(3),
            Op::Hints(2),
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
            Op::Write {
                path: "a",
                content: 3,
                how: How::InPlace,
            },
            Op::Pass(11),
            Op::Hints(2),
            ask(0, 1, mark(3, "d/b", Named::No)),
            ask(
                0,
                1,
                Ask::Saved {
                    path: "a",
                    named: Named::Disk,
                },
            ),
        ],
    );
    assert_eq!(
        told,
        [
            "a 4 by User, Unmarked",
            "a 3 by User, Unmarked",
            "a is 3 by User, Editor"
        ]
    );
}

/// A busy machine: the hints of the second half of a save arrive when the
/// absence in its middle has already reached its deadline (ATTR-12).
#[test]
fn a_name_that_is_back_by_then_is_not_recorded_as_gone() {
    let mut world = World::new(1, &[("a", 3)]);
    let read = Ask::Read {
        path: "a",
        named: Named::Disk,
        range: None,
    };
    world.step(&ask(0, 0, read));
    world.step(&Op::Drain);
    let before = world.records.len();
    world.step(&Op::Unlink { path: "a" });
    world.step(&Op::Drain);
    world.step(&Op::Write {
        path: "a",
        content: 9,
        how: How::InPlace,
    });
    world.step(&Op::Pass(150));
    world.step(&Op::ExecRead {
        which: 0,
        unstable: false,
    });
    world.step(&Op::GiveRead { which: 0 });
    world.step(&Op::Drain);
    let versions: Vec<_> = world.records[before..]
        .iter()
        .filter_map(|record| match &record.fact {
            Fact::Version(version) => Some(version.held.hash),
            _ => None,
        })
        .collect();
    assert_eq!(versions, [world.hash_of("a")], "{:#?}", world.records);
}

#[test]
fn an_old_cursor_acknowledges_no_save_that_began_after_it() {
    let told = holds(
        1000,
        &[("a", 2), ("d/b", 6), ("d/c", 1)],
        vec![
            ask(1, 2, mark(4, "a", Named::Content(0))),
            ask(0, 1, TAKE),
            ask(
                0,
                0,
                Ask::Read {
                    path: "a",
                    named: Named::No,
                    range: None,
                },
            ),
            Op::Unlink { path: "a" },
            ask(0, 1, Ask::Ack),
            ask(0, 1, Ask::ModList),
        ],
    );
    assert_eq!(told, ["a nothing by User, Unmarked"]);
}

/// Once, the close of a write was counted for an older content, which was read
/// later: each look at the empty file was the first, so that each request had
/// to wait.
#[test]
fn an_empty_file_that_was_looked_at_twice_is_not_doubted_again() {
    let told = holds(
        1000,
        &[("a", 7), ("x/b", 3)],
        vec![
            ask(
                0,
                0,
                Ask::Read {
                    path: "x/b",
                    named: Named::No,
                    range: Some((1, 2)),
                },
            ),
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::Write {
                path: "x/b",
                content: 0,
                how: How::FromOutside,
            },
            Op::Hints(2),
            ask(0, 1, mark(4, "a", Named::Content(18))),
            ask(0, 1, TAKE),
            ask(0, 1, TAKE),
            ask(0, 1, TAKE),
        ],
    );
    assert_eq!(told, ["x/b 0 by User, Unmarked"]);
}

/// Once, a read with the text was treated as the newest one, although a later
/// read had found that the file was removed: the removal was not reported.
#[test]
fn a_text_does_not_hide_what_a_later_read_found() {
    let read = |named, range| Ask::Read {
        path: "d/b",
        named,
        range,
    };
    let told = holds(
        1,
        &[("d/b", 0)],
        vec![
            ask(
                1,
                2,
                Ask::ReadText {
                    path: "d/b",
                    range: None,
                    force: false,
                },
            ),
            ask(1, 3, mark(1, "a", Named::Absent)),
            Op::Hints(3),
            ask(1, 3, read(Named::No, None)),
            Op::Await { slot: 1 },
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::GiveRead { which: 2 },
            Op::Overflow,
            ask(
                0,
                0,
                Ask::Mention {
                    path: "d/b",
                    named: Named::Disk,
                    range: Some((2, 3)),
                },
            ),
            Op::Hints(3),
            Op::ExecRead {
                which: 2,
                unstable: false,
            },
            Op::Unlink { path: "d/b" },
            ask(0, 0, Ask::Status { paths: None }),
            Op::Hints(2),
        ],
    );
    assert_eq!(told, ["d/b nothing by User, Unmarked"]);
}

/// Once, a content that was held back for an edit became a version after the
/// session had untracked the path, and the path stayed watched.
#[test]
fn what_is_held_back_goes_with_its_log() {
    let told = holds(
        1000,
        &[],
        vec![
            ask(0, 1, begin(1, &[("x/b", Named::Content(4))], false)),
            Op::Await { slot: 1 },
            Op::Write {
                path: "x/b",
                content: 14,
                how: How::InPlace,
            },
            Op::Hints(2),
            Op::ExecRead {
                which: 1,
                unstable: false,
            },
            Op::GiveRead { which: 0 },
            Op::Hints(1),
            ask(0, 0, Ask::Untrack { path: "x/b" }),
        ],
    );
    // With each step at rest, the version was recorded earlier.
    assert_eq!(told, ["x/b 14 by User, Unmarked"]);
}

/// Once, a path was untracked while a late mark waited for its read: what was
/// written until the answer was missed.
#[test]
fn a_path_stays_watched_for_whoever_has_had_it_read() {
    holds(
        10,
        &[],
        vec![
            ask(0, 0, mark(2, "d/b", Named::Content(6))),
            Op::ExecRead {
                which: 3,
                unstable: true,
            },
            Op::GiveRead { which: 3 },
            Op::Write {
                path: "d/b",
                content: 3,
                how: How::Recreate,
            },
            Op::Hints(2),
            ask(0, 0, mark(3, "d/b", Named::Content(3))),
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::Hints(3),
            ask(0, 1, Ask::Untrack { path: "d/b" }),
            Op::GiveRead { which: 3 },
            Op::ExecRead {
                which: 0,
                unstable: false,
            },
            Op::Write {
                path: "d/b",
                content: 5,
                how: How::InPlace,
            },
            ask(0, 0, Ask::Status { paths: None }),
        ],
    );
}

/// A save moved the file away and began to write the new one. The look at the
/// absence's deadline found a file that changed while it was read.
#[test]
fn a_file_that_changes_while_it_is_read_is_not_absent() {
    let read = |unstable| {
        [
            Op::ExecRead { which: 0, unstable },
            Op::GiveRead { which: 0 },
        ]
    };
    let mut ops = vec![
        ask(
            0,
            0,
            Ask::Read {
                path: "a",
                named: Named::No,
                range: None,
            },
        ),
        Op::Drain,
        Op::MoveOut { path: "a" },
        Op::Hints(9),
    ];
    ops.extend(read(false));
    // The file is there again before the deadline. No hint has arrived yet.
    ops.push(Op::WOpen {
        writer: 0,
        path: "a",
        truncate: true,
        content: 9,
    });
    ops.push(Op::Pass(150));
    ops.extend(read(true));
    ops.push(Op::WClose { writer: 0 });
    let script = crate::script::Script {
        tick: 1,
        initial: vec![("a", 5)],
        ops,
    };
    chaos::run(&script).unwrap();
    assert_eq!(recorded(&script), ["a 9 by User, Unmarked"]);
}
