//! The scenarios of docs/scenarios.md, played on the engine alone. Each has a
//! known truth. Each is played once with every step brought to rest, and once
//! with nothing delivered before the request.

use std::collections::BTreeSet;

use touchmark_proto::Reply;

use crate::audit::Audit;
use crate::op::{Ask, Asking, How, Named, Op, Path};
use crate::world::{Outcome, Seen, World};

fn ask(session: usize, ask: Ask) -> Op {
    Op::Ask(Asking {
        session,
        connection: session as u64,
        within: None,
        sync: true,
        ask,
    })
}

fn read(session: usize, path: Path) -> Op {
    ask(
        session,
        Ask::Read {
            path,
            named: Named::No,
            range: None,
        },
    )
}

fn take(session: usize) -> Op {
    ask(
        session,
        Ask::Take {
            peek: false,
            explicit: false,
            paths: None,
        },
    )
}

fn mark(slot: usize, path: Path, expect: Named) -> Vec<Op> {
    let mark = Ask::Mark {
        slot,
        path,
        expect,
        ttl: None,
        bind: false,
    };
    vec![ask(0, mark), Op::Await { slot }]
}

fn begin(slot: usize, path: Path, expect: Named, force: bool) -> Vec<Op> {
    let begin = Ask::Begin {
        slot,
        files: vec![(path, expect)],
        require_read: true,
        force,
        wait: None,
        ttl: None,
        bind: false,
        call: false,
    };
    vec![ask(0, begin), Op::Await { slot }]
}

fn user(path: Path, content: u32, how: How) -> Op {
    Op::Write { path, content, how }
}

fn agent(slot: usize, how: How) -> Op {
    Op::AgentWrite { slot, file: 0, how }
}

fn commit(slot: usize) -> Op {
    ask(
        0,
        Ask::Commit {
            slot,
            files: Vec::new(),
            name_hash: false,
            by_call: false,
        },
    )
}

#[derive(Debug, PartialEq, Eq)]
struct Told {
    changed: BTreeSet<String>,
    lost: BTreeSet<String>,
}

fn told(changed: &[&str]) -> Told {
    Told {
        changed: changed.iter().map(|path| (*path).to_owned()).collect(),
        lost: BTreeSet::new(),
    }
}

/// Plays the steps. Returns what each `modified/take` reported.
fn play(steps: &[Op], at_rest: bool) -> Vec<Told> {
    let mut world = World::new(1, &[("a", 3), ("d/b", 6), ("d/c", 1)]);
    let mut audit = Audit::default();
    let mut all = Vec::new();
    let mut go = |world: &mut World, op: &Op| {
        world.step(op);
        audit.look(world).unwrap();
        for one in std::mem::take(&mut world.seen) {
            if let Seen::Answered {
                outcome: Outcome::Reply(Ok(answer)),
                ..
            } = one
                && let Reply::ModifiedTake(taken) = answer.reply
            {
                let paths = |lost: bool| {
                    taken
                        .changes
                        .iter()
                        .filter(|change| change.lost.is_some() == lost)
                        .map(|change| change.path.to_string_lossy())
                        .collect()
                };
                all.push(Told {
                    changed: paths(false),
                    lost: paths(true),
                });
            }
        }
    };
    for op in steps {
        go(&mut world, op);
        // The agent waits for its answers. Everything else may stay pending.
        let settles = matches!(
            op,
            Op::Ask(asking) if matches!(asking.ask, Ask::Read { .. } | Ask::Take { .. })
        );
        if at_rest || settles {
            go(&mut world, &Op::Drain);
        }
    }
    go(&mut world, &Op::Drain);
    all
}

fn both(steps: &[Op], wanted: &[Told]) {
    assert_eq!(play(steps, true), wanted, "every step at rest");
    assert_eq!(play(steps, false), wanted, "all under way");
}

fn steps(parts: Vec<Vec<Op>>) -> Vec<Op> {
    parts.concat()
}

#[test]
fn s1_and_s3_an_agents_marked_write_is_not_reported() {
    for how in [How::InPlace, How::Replace, How::Recreate, How::FromOutside] {
        for expect in [Named::No, Named::Content(50)] {
            let steps = steps(vec![
                vec![read(0, "a")],
                mark(1, "a", expect),
                vec![agent(1, how), take(0)],
            ]);
            both(&steps, &[told(&[])]);
        }
    }
}

#[test]
fn s4_a_mark_that_ends_unused_leaves_nothing_behind() {
    let aborted = steps(vec![
        vec![read(0, "a")],
        begin(1, "a", Named::Content(50), false),
        vec![
            ask(0, Ask::Abort { slot: 1 }),
            Op::Pass(1_000),
            user("a", 60, How::InPlace),
            take(0),
            take(0),
        ],
    ]);
    both(&aborted, &[told(&["a"]), told(&[])]);
    let unused = steps(vec![
        vec![read(0, "a")],
        mark(1, "a", Named::Content(50)),
        vec![Op::Pass(1_000), user("a", 60, How::InPlace), take(0)],
    ]);
    both(&unused, &[told(&["a"])]);
}

#[test]
fn s5_a_user_right_after_the_agent_is_reported() {
    let steps = steps(vec![
        vec![read(0, "a")],
        begin(1, "a", Named::Content(50), false),
        vec![
            agent(1, How::InPlace),
            commit(1),
            user("a", 60, How::InPlace),
            take(0),
        ],
    ]);
    both(&steps, &[told(&["a"])]);
}

#[test]
fn s6_what_an_agent_overwrites_unseen_is_reported_as_lost() {
    let steps = steps(vec![
        vec![read(0, "a"), user("a", 60, How::InPlace)],
        begin(1, "a", Named::Content(50), true),
        vec![agent(1, How::InPlace), commit(1), take(0), take(0)],
    ]);
    let lost = Told {
        changed: BTreeSet::new(),
        lost: ["a".to_owned()].into(),
    };
    both(&steps, &[lost, told(&[])]);
}

#[test]
fn s7_every_way_to_save_is_reported_and_the_next_edit_too() {
    for how in [How::InPlace, How::Replace, How::Recreate, How::FromOutside] {
        let steps = [
            read(0, "a"),
            user("a", 60, how),
            take(0),
            user("a", 61, How::InPlace),
            take(0),
            take(0),
        ];
        both(&steps, &[told(&["a"]), told(&["a"]), told(&[])]);
    }
}

#[test]
fn s8_deletions_and_renames_are_reported() {
    let gone = [read(0, "a"), Op::Unlink { path: "a" }, take(0), take(0)];
    both(&gone, &[told(&["a"]), told(&[])]);
    for pause in [1, 50, 500, 2_000] {
        let back = [
            read(0, "a"),
            Op::Unlink { path: "a" },
            Op::Pass(pause),
            user("a", 60, How::InPlace),
            take(0),
            take(0),
        ];
        both(&back, &[told(&["a"]), told(&[])]);
    }
    let renamed = [
        read(0, "d/b"),
        Op::Rename {
            from: "d/b",
            to: "d/e/f",
        },
        take(0),
        take(0),
    ];
    both(&renamed, &[told(&["d/b"]), told(&[])]);
    let there_and_back = [
        read(0, "a"),
        Op::MoveOut { path: "a" },
        Op::MoveBack { path: "a" },
        take(0),
    ];
    both(&there_and_back, &[told(&[])]);
    let directory = [
        read(0, "d/b"),
        Op::RenameDir { from: "d", to: "y" },
        user("d/b", 60, How::InPlace),
        take(0),
        user("d/b", 61, How::InPlace),
        take(0),
    ];
    both(&directory, &[told(&["d/b"]), told(&["d/b"])]);
}

#[test]
fn s11_what_happened_while_the_daemon_was_down_is_reported() {
    let steps = [
        read(0, "a"),
        Op::Down,
        user("a", 60, How::Replace),
        Op::Up { snapshot: false },
        take(0),
        take(0),
    ];
    both(&steps, &[told(&["a"]), told(&[])]);
}

#[test]
fn s12_what_changes_no_content_is_not_reported() {
    let steps = [
        read(0, "a"),
        user("a", 3, How::InPlace),
        Op::Touch { path: "a" },
        take(0),
        user("a", 60, How::InPlace),
        user("a", 3, How::Replace),
        take(0),
    ];
    both(&steps, &[told(&[]), told(&[])]);
}

#[test]
fn s13_the_other_session_is_told() {
    let steps = steps(vec![
        vec![read(0, "a"), read(1, "a")],
        begin(1, "a", Named::Content(50), false),
        vec![agent(1, How::Replace), commit(1), take(0), take(1)],
    ]);
    both(&steps, &[told(&[]), told(&["a"])]);
}

#[test]
fn s16_late_marks_speak_for_their_writes() {
    let mut steps = vec![read(0, "a")];
    for n in 0..5 {
        let id = 50 + n;
        steps.push(user("a", id, How::InPlace));
        steps.extend(mark(n as usize + 1, "a", Named::Content(id)));
        steps.push(Op::Pass(300));
    }
    steps.extend([take(0), user("a", 90, How::InPlace), take(0)]);
    both(&steps, &[told(&[]), told(&["a"])]);
}

#[test]
fn s21n_bytes_read_before_the_users_edit_are_stale() {
    let old = Ask::Read {
        path: "a",
        named: Named::Content(3),
        range: None,
    };
    let steps = [user("a", 60, How::InPlace), ask(0, old), take(0), take(0)];
    both(&steps, &[told(&["a"]), told(&[])]);
}

#[test]
fn s22_what_was_read_again_is_not_reported() {
    let steps = [
        read(0, "a"),
        user("a", 60, How::InPlace),
        read(0, "a"),
        take(0),
    ];
    both(&steps, &[told(&[])]);
}

#[test]
fn s34_two_marked_edits_close_together() {
    for expect in [Named::No, Named::Content(51)] {
        let steps = steps(vec![
            vec![read(0, "a")],
            mark(1, "a", Named::Content(50)),
            vec![agent(1, How::InPlace), Op::Pass(100)],
            mark(2, "a", expect),
            vec![agent(2, How::InPlace), take(0)],
        ]);
        both(&steps, &[told(&[])]);
    }
}

#[test]
fn s42_an_editor_that_saves_the_agents_bytes_again_is_no_edit() {
    let saved = Ask::Saved {
        path: "a",
        named: Named::Content(50),
    };
    let steps = steps(vec![
        vec![read(0, "a")],
        begin(1, "a", Named::Content(50), false),
        vec![
            agent(1, How::InPlace),
            commit(1),
            user("a", 50, How::Replace),
            ask(0, saved),
            take(0),
        ],
    ]);
    both(&steps, &[told(&[])]);
}

#[test]
fn s43_an_overflow_hides_nothing() {
    let steps = [
        read(0, "a"),
        read(0, "d/b"),
        user("a", 60, How::InPlace),
        Op::Overflow,
        take(0),
        take(0),
    ];
    both(&steps, &[told(&["a"]), told(&[])]);
}

#[test]
fn a_deletion_after_a_save_told_in_its_middle_is_reported() {
    let steps = [
        read(0, "a"),
        Op::WOpen {
            writer: 1,
            path: "a",
            truncate: true,
            content: 60,
        },
        Op::WChunk { writer: 1, part: 2 },
        take(0),
        Op::WClose { writer: 1 },
        take(0),
        Op::Unlink { path: "a" },
        take(0),
        take(0),
    ];
    both(&steps, &[told(&["a"]), told(&[]), told(&["a"]), told(&[])]);
}

#[test]
fn a_file_gone_under_another_sessions_edit_is_told_once() {
    let steps = steps(vec![
        vec![read(1, "a"), read(0, "a")],
        begin(1, "a", Named::Content(50), false),
        vec![
            Op::Unlink { path: "a" },
            take(1),
            take(1),
            Op::Pass(70_000),
            take(1),
        ],
    ]);
    both(&steps, &[told(&["a"]), told(&[]), told(&[])]);
}
