//! Witnesses alone.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::input::PriorFile;
use watched::PROMPT;

fn name(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn mark(witnesses: &mut Witnesses, window: u64, text: &str) {
    mark_tree(witnesses, window, text, Subtree::Same);
}

fn mark_tree(witnesses: &mut Witnesses, window: u64, text: &str, subtree: Subtree) {
    let mark = Mark {
        in_place: false,
        subtree,
        ..Mark::new(name(text))
    };
    let file = mark.name.clone();
    witnesses.mark(Seen::Window(window), mark, file, at(0), true);
}

fn at(now: Millis) -> Reported {
    Reported { now, next_read: 1 }
}

fn rules_out(witnesses: &Witnesses, window: u64, text: &str) -> bool {
    witnesses.rules_out(window, [name(text)].iter())
}

#[test]
fn only_a_whole_witness_rules_out() {
    let mut witnesses = Witnesses::default();
    assert!(!rules_out(&witnesses, 1, "a"));
    witnesses.announce(1);
    assert!(!rules_out(&witnesses, 1, "a"));
    assert!(witnesses.why_incomplete(1).is_some());
    witnesses.began(Seen::Window(1));
    mark(&mut witnesses, 1, "d/b");
    assert!(rules_out(&witnesses, 1, "a"));
    assert!(rules_out(&witnesses, 1, "d"));
    assert!(!rules_out(&witnesses, 1, "d/b"));
    assert!(rules_out(&witnesses, 1, "d/b/c"));
    for (at, subtree) in [Subtree::Redirected, Subtree::Moved]
        .into_iter()
        .enumerate()
    {
        let tree = format!("t{at}");
        mark_tree(&mut witnesses, 1, &tree, subtree);
        assert!(!rules_out(&witnesses, 1, &format!("{tree}/b/c")));
    }
    assert_eq!(witnesses.why_incomplete(1), None);
    for why in ["first", "second"] {
        witnesses.lose(Seen::Window(1), why.to_owned(), true);
        witnesses.began(Seen::Window(1));
    }
    assert!(!rules_out(&witnesses, 1, "a"));
    assert_eq!(witnesses.why_incomplete(1).as_deref(), Some("first"));
}

#[test]
fn a_window_below_another_has_its_witness() {
    let mut witnesses = Witnesses::default();
    witnesses.announce(1);
    witnesses.began(Seen::Window(1));
    witnesses.is_below(2, Seen::Window(1), 0);
    witnesses.is_below(3, Seen::Window(2), 0);
    witnesses.is_below(5, Seen::Window(4), 0);
    for (window, is_seen) in [(1, true), (2, true), (3, true), (4, false), (5, false)] {
        assert_eq!(rules_out(&witnesses, window, "a"), is_seen, "{window}");
    }
    witnesses.retain(|window| window == 3);
    assert!(rules_out(&witnesses, 3, "a"));
    assert!(!rules_out(&witnesses, 2, "a"));
    assert!(witnesses.has(Seen::Window(1)));
    witnesses.retain(|window| window == 4);
    assert!(!rules_out(&witnesses, 3, "a"));
    assert!(!witnesses.has(Seen::Window(1)));
}

/// An agent with two windows, which began at 1,000 and at 2,000.
fn of_agent() -> (Witnesses, Seen) {
    let mut witnesses = Witnesses::default();
    let seen = witnesses.announce_agent(77, 500);
    witnesses.began(seen);
    witnesses.is_below(1, seen, 1_000);
    mark_at(&mut witnesses, seen, "early", 1_000);
    witnesses.is_below(2, seen, 2_000);
    (witnesses, seen)
}

fn mark_at(witnesses: &mut Witnesses, seen: Seen, text: &str, now: Millis) {
    let mark = Mark::new(name(text));
    let file = mark.name.clone();
    witnesses.mark(seen, mark, file, at(now), true);
}

#[test]
fn an_agents_mark_counts_for_the_commands_that_ran_then() {
    let (mut witnesses, seen) = of_agent();
    mark_at(&mut witnesses, seen, "late", 2_000);
    for (window, file, is_ruled_out) in [
        (1, "early", false),
        (1, "late", false),
        (2, "early", true),
        (2, "late", false),
        (2, "other", true),
    ] {
        let found = rules_out(&witnesses, window, file);
        assert_eq!(found, is_ruled_out, "{window} {file}");
    }
    // What goes on after its command has the marks of its command.
    witnesses.is_below(3, Seen::Window(1), 3_000);
    assert!(!rules_out(&witnesses, 3, "early"));
    witnesses.announce(4);
    witnesses.began(Seen::Window(4));
    mark_at(&mut witnesses, Seen::Window(4), "early", 1_000);
    witnesses.is_below(5, Seen::Window(4), 3_000);
    assert!(!rules_out(&witnesses, 5, "early"));
}

#[test]
fn an_agents_gap_concerns_the_commands_that_run() {
    let (mut witnesses, seen) = of_agent();
    witnesses.lose(seen, "once".to_owned(), false);
    witnesses.is_below(3, Seen::Window(1), 3_000);
    witnesses.is_below(4, seen, 3_000);
    for window in [1, 2, 3] {
        assert!(!rules_out(&witnesses, window, "a"), "{window}");
        assert_eq!(witnesses.why_incomplete(window).as_deref(), Some("once"));
    }
    assert!(rules_out(&witnesses, 4, "a"));
    assert_eq!(witnesses.why_incomplete(4), None);
    witnesses.lose(seen, "for good".to_owned(), true);
    witnesses.is_below(5, seen, 4_000);
    assert!(!rules_out(&witnesses, 5, "a"));
    assert_eq!(witnesses.why_incomplete(5).as_deref(), Some("for good"));
}

#[test]
fn an_agents_witness_ends_with_the_agent_and_its_commands() {
    let (mut witnesses, seen) = of_agent();
    let another = witnesses.announce_agent(78, 500);
    assert_ne!(another, seen);
    witnesses.retain(|_| false);
    assert!(witnesses.has(seen) && witnesses.has(another));
    let (mut witnesses, seen) = of_agent();
    witnesses.process_ended(77);
    witnesses.retain(|window| window == 2);
    assert!(witnesses.has(seen));
    witnesses.retain(|_| false);
    assert!(!witnesses.has(seen));
}

#[test]
fn of_too_many_names_an_agents_earlier_ones_are_forgotten() {
    let (mut witnesses, seen) = of_agent();
    witnesses.retain(|window| window == 2);
    for n in 0..NAMES {
        mark_at(&mut witnesses, seen, &format!("{n}"), 1_000);
    }
    mark_at(&mut witnesses, seen, "late", 2_000);
    assert!(rules_out(&witnesses, 2, "0"));
    assert!(!rules_out(&witnesses, 2, "late"));
    assert_eq!(witnesses.why_incomplete(2), None);
    for n in 0..=NAMES {
        mark_at(&mut witnesses, seen, &format!("{n}"), 2_000);
    }
    assert!(!rules_out(&witnesses, 2, "other"));
    assert!(witnesses.why_incomplete(2).is_some());
}

#[test]
fn too_many_names_are_all_names() {
    let mut witnesses = Witnesses::default();
    witnesses.announce(1);
    witnesses.began(Seen::Window(1));
    for n in 0..=NAMES {
        mark(&mut witnesses, 1, &format!("{n}"));
    }
    assert!(!rules_out(&witnesses, 1, "a"));
}

/// A change in place of `f`, at 2,000.
const CHANGE: Change = Change {
    is_removal: false,
    inode: Some(7),
    changed: Some(2_000),
    open: false,
    is_contested: false,
};

/// A witness of `f`, whose marks are made by a process that began with the
/// window, at 1,000.
struct Stage {
    witnesses: Witnesses,
    /// The number of the next read.
    next_read: u64,
}

impl Stage {
    fn new() -> Self {
        let mut witnesses = Witnesses::default();
        witnesses.announce(1);
        witnesses.began(Seen::Window(1));
        Self {
            witnesses,
            next_read: 1,
        }
    }

    /// Orders a read. Returns its number.
    fn read(&mut self) -> u64 {
        self.next_read += 1;
        self.next_read - 1
    }

    /// Records what a read has found.
    fn records(&mut self, read: u64, content: &str) -> &mut Self {
        self.witnesses.read(&name("f"), read);
        self.witnesses.recorded(&name("f"), held(content));
        self
    }

    /// A read has found what is recorded.
    fn finds(&mut self, read: u64) -> &mut Self {
        self.witnesses.read(&name("f"), read);
        self.witnesses.unchanged(&name("f"));
        self
    }

    /// Marks `f`, at 2,000. `is_recorded`: it holds what is recorded.
    fn mark(&mut self, mark: Mark, is_recorded: bool) -> &mut Self {
        let seen = Seen::Window(1);
        let at = Reported {
            now: 2_000,
            next_read: self.next_read,
        };
        { &mut self.witnesses }.mark(seen, mark, name("f"), at, is_recorded);
        self
    }

    fn event(&mut self, event: NameEvent, at: Millis) -> &mut Self {
        let next_read = self.next_read;
        { &mut self.witnesses }.happened(Seen::Window(1), (&name("f"), event), at, next_read);
        self
    }

    /// Writes in place.
    fn writes(&mut self) -> &mut Self {
        self.mark(in_place(), true).event(NameEvent::Closed, 2_000)
    }

    fn judge(&self, change: Change) -> Verdict {
        self.witnesses.judge(1, 1_000, &[&name("f")], change)
    }
}

/// Returns the mark of a write in place of `f`, by a process of the command.
fn in_place() -> Mark {
    Mark {
        made: 2_000,
        inode: Some(7),
        process: Some(Marker {
            began: 1_000,
            typed: None,
        }),
        prior: prior(0),
        events: Some(vec![NameEvent::Closed]),
        ..Mark::new(name("f"))
    }
}

/// Returns a file that was changed then, in milliseconds.
fn prior(changed: Millis) -> Prior {
    Prior::File(PriorFile {
        inode: 7,
        size: 1,
        changed: changed as i64 * 1_000_000,
        modified: 0,
        mode: None,
        stored: None,
    })
}

fn held(text: &str) -> Held {
    Held {
        hash: Some(touchmark_proto::Hash::of(text.as_bytes())),
        ..Held::ABSENT
    }
}

#[test]
fn a_change_is_the_commands_if_its_marks_explain_all_that_happened() {
    let closed = NameEvent::Closed;
    assert_eq!(Stage::new().judge(CHANGE), Verdict::NotWritten);
    assert_eq!(Stage::new().writes().judge(CHANGE), Verdict::Written);
    let twice = Stage::new().writes().writes().judge(CHANGE);
    assert_eq!(twice, Verdict::Written);
    let mut more = Stage::new();
    assert_eq!(
        more.writes().event(closed, 2_000).judge(CHANGE),
        Verdict::Unknown
    );
    let mut less = Stage::new();
    assert_eq!(less.mark(in_place(), true).judge(CHANGE), Verdict::Unknown);
    let mut moved = Stage::new();
    moved
        .mark(in_place(), true)
        .event(NameEvent::MovedTo, 2_000);
    assert_eq!(moved.judge(CHANGE), Verdict::Unknown);
    let mut late = Stage::new();
    late.mark(in_place(), true).event(closed, 2_300);
    assert_eq!(late.judge(CHANGE), Verdict::Unknown);
    let mut missed = Stage::new();
    missed.writes().witnesses.missed(Seen::Window(1));
    assert_eq!(missed.judge(CHANGE), Verdict::Unknown);
    let mut other = Stage::new();
    other.mark(in_place(), false).event(closed, 2_000);
    assert_eq!(
        other.judge(CHANGE),
        Verdict::Unknown,
        "it was changed before"
    );
}

#[test]
fn a_change_must_be_what_the_last_mark_leaves() {
    let cases = [
        Change {
            is_removal: true,
            ..CHANGE
        },
        Change {
            inode: Some(8),
            ..CHANGE
        },
        Change {
            changed: Some(2_001 + PROMPT),
            ..CHANGE
        },
        Change {
            open: true,
            ..CHANGE
        },
        Change {
            is_contested: true,
            ..CHANGE
        },
    ];
    for change in cases {
        let judged = Stage::new().writes().judge(change);
        assert_eq!(judged, Verdict::Unknown, "{change:?}");
    }
    let gone = Mark {
        removes: true,
        in_place: false,
        events: Some(vec![NameEvent::Removed]),
        ..in_place()
    };
    let mut removed = Stage::new();
    removed.mark(gone, true).event(NameEvent::Removed, 2_000);
    assert_eq!(removed.judge(Change::GONE), Verdict::Written);
    assert_eq!(removed.judge(CHANGE), Verdict::Unknown);
    let open = Change {
        open: true,
        ..CHANGE
    };
    assert_eq!(Stage::new().judge(open), Verdict::NotWritten, "no mark");
}

#[test]
fn a_write_in_place_that_took_long_is_not_certain_after_another_one() {
    for (changed, expected) in [
        (2_001, Verdict::Written),
        (2_001 + PROMPT, Verdict::Unknown),
    ] {
        let second = Mark {
            made: 2_100,
            prior: prior(changed),
            ..in_place()
        };
        let mut stage = Stage::new();
        stage
            .writes()
            .mark(second, true)
            .event(NameEvent::Closed, 2_100);
        let change = Change {
            changed: Some(2_101),
            ..CHANGE
        };
        assert_eq!(stage.judge(change), expected, "{changed}");
    }
}

#[test]
fn what_was_recorded_is_explained_no_more() {
    let mut stage = Stage::new();
    let read = stage.writes().read();
    stage.records(read, "own");
    assert_eq!(stage.judge(CHANGE), Verdict::NotWritten, "another author's");
    let open = Change {
        open: true,
        ..CHANGE
    };
    assert_eq!(stage.judge(open), Verdict::Unknown);
    let read = stage.writes().read();
    assert_eq!(stage.judge(CHANGE), Verdict::Written);
    // A read that finds the recorded content makes no version.
    stage.finds(read);
    assert_eq!(stage.judge(CHANGE), Verdict::NotWritten);
}

#[test]
fn what_comes_after_a_read_is_not_what_it_found() {
    // Before the result of the read comes, the command writes again.
    let mut stage = Stage::new();
    let read = stage.writes().read();
    stage.writes().records(read, "own");
    assert_eq!(stage.judge(CHANGE), Verdict::Written);
    // The mark comes before the read, and its event after it.
    let mut stage = Stage::new();
    stage.mark(in_place(), true);
    let read = stage.read();
    stage
        .event(NameEvent::Closed, 2_000)
        .records(read, "another's");
    assert_eq!(stage.judge(CHANGE), Verdict::Written);
    // So may the event of another author.
    stage.event(NameEvent::Closed, 2_000);
    assert_eq!(stage.judge(CHANGE), Verdict::Unknown);
    let read = stage.read();
    stage.records(read, "both");
    assert_eq!(stage.judge(CHANGE), Verdict::NotWritten);
    // What has happened before the first mark has left what is recorded, or not.
    for (is_recorded, expected) in [(true, Verdict::Written), (false, Verdict::Unknown)] {
        let mut stage = Stage::new();
        let read = stage.writes().read();
        stage.records(read, "own").event(NameEvent::Closed, 2_000);
        stage.mark(in_place(), is_recorded);
        stage.event(NameEvent::Closed, 2_000);
        assert_eq!(stage.judge(CHANGE), expected);
    }
    // A content that was read at a time that is not known.
    let mut stage = Stage::new();
    stage.writes().witnesses.recorded(&name("f"), held("own"));
    assert_eq!(stage.judge(CHANGE), Verdict::Written);
}

#[test]
fn a_call_that_may_still_come_is_not_forgotten() {
    let mut stage = Stage::new();
    let read = stage.mark(in_place(), true).read();
    stage.records(read, "another author's");
    let read = stage.read();
    stage.finds(read).event(NameEvent::Closed, 2_001);
    assert_eq!(stage.judge(CHANGE), Verdict::Unknown);
    let read = stage.read();
    stage.records(read, "own");
    assert_eq!(stage.judge(CHANGE), Verdict::NotWritten);
}

#[test]
fn a_mark_without_effect_ends_after_a_look() {
    let mut stage = Stage::new();
    stage.mark(in_place(), true);
    assert!(!stage.witnesses.has_old(&name("f"), 2_000 + UNUSED - 1));
    assert!(stage.witnesses.has_old(&name("f"), 2_000 + UNUSED));
    stage.witnesses.count_until(&name("f"), 2_000 + UNUSED, 3);
    stage.witnesses.looked(&name("f"), 2);
    assert_eq!(stage.judge(CHANGE), Verdict::Unknown);
    stage.witnesses.looked(&name("f"), 3);
    assert_eq!(stage.judge(CHANGE), Verdict::NotWritten);
}

#[test]
fn a_call_that_will_fail_explains_nothing() {
    let poor = Mark {
        is_poor: true,
        prior: Prior::Absent,
        ..in_place()
    };
    let mut stage = Stage::new();
    assert_eq!(stage.mark(poor, true).judge(CHANGE), Verdict::NotWritten);
    assert_eq!(stage.writes().judge(CHANGE), Verdict::Written);
    // The content before is that of the call which may succeed.
    assert_eq!(stage.witnesses.marked(1).unwrap()[0].prior, prior(0));
}

#[test]
fn the_processes_must_be_the_commands() {
    let cases = [
        Some((1_000, None)),
        None,
        Some((900, None)),
        Some((1_000, Some(1_000))),
        Some((1_000, Some(900))),
    ];
    let certain = [true, false, false, false, true];
    for (process, is_certain) in cases.into_iter().zip(certain) {
        let process = process.map(|(began, typed)| Marker { began, typed });
        let mark = Mark {
            process,
            ..in_place()
        };
        let mut stage = Stage::new();
        stage.mark(mark, true).event(NameEvent::Closed, 2_000);
        let judged = stage.judge(CHANGE);
        assert_eq!(judged == Verdict::Written, is_certain, "{process:?}");
    }
}

#[test]
fn what_an_untracked_file_held_is_asked_for_from_its_first_mark() {
    let mut stage = Stage::new();
    let second = Mark {
        prior: prior(2_000),
        ..in_place()
    };
    let writes = |stage: &mut Stage, mark| {
        stage.mark(mark, true).event(NameEvent::Closed, 2_000);
    };
    writes(&mut stage, in_place());
    writes(&mut stage, second.clone());
    let asked = |stage: &Stage| stage.witnesses.marked(1).unwrap()[0].prior;
    assert_eq!(asked(&stage), prior(0));
    let swept = SweptFile {
        inode: Some(7),
        changed_ms: Some(2_001),
        ..SweptFile::new(name("f"), None, held("own"))
    };
    let judged = stage.witnesses.judge_untracked(1, 1_000, &swept);
    assert_eq!(judged, Verdict::Written);
    stage.witnesses.swept(&name("f"), held("own"));
    assert_eq!(asked(&stage), Prior::Held(held("own")));
    writes(&mut stage, second);
    assert_eq!(asked(&stage), prior(2_000));
    // A name that was to be new, and was not made.
    let new = Mark {
        prior: Prior::New,
        events: Some(vec![NameEvent::Created, NameEvent::Closed]),
        ..in_place()
    };
    let mut stage = Stage::new();
    stage.mark(new, true);
    assert_eq!(asked(&stage), Prior::Unknown);
    stage.event(NameEvent::Created, 2_000);
    assert_eq!(asked(&stage), Prior::Absent);
}
