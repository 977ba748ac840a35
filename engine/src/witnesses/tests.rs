//! Witnesses alone.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::input::{Prior, PriorFile};

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
    witnesses.mark(Seen::Window(window), mark, file, 0, None);
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

fn mark_at(witnesses: &mut Witnesses, seen: Seen, text: &str, at: Millis) {
    let mark = Mark::new(name(text));
    let file = mark.name.clone();
    witnesses.mark(seen, mark, file, at, None);
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

const CHANGE: Change = Change {
    closes: 1,
    is_removal: false,
    inode: Some(7),
    open: false,
    is_contested: false,
    now: 2_000 + PROMPT,
};

/// Returns a witness of a file with this many marks of a process that began
/// with the window, at 1,000.
fn counted(marks: u32) -> Witnesses {
    let mut witnesses = Witnesses::default();
    witnesses.announce(1);
    witnesses.began(Seen::Window(1));
    for _ in 0..marks {
        add(&mut witnesses, Some((1_000, None)), false);
    }
    witnesses
}

/// Returns the mark of a write in place of `f`, whose process is not known.
fn in_place() -> Mark {
    Mark {
        made: 2_000,
        inode: Some(7),
        ..Mark::new(name("f"))
    }
}

fn add(witnesses: &mut Witnesses, process: Option<(Millis, Option<Millis>)>, removes: bool) {
    let process = process.map(|(began, typed)| Marker { began, typed });
    let mark = Mark {
        removes,
        process,
        ..in_place()
    };
    witnesses.mark(Seen::Window(1), mark, name("f"), 2_000, Some(true));
}

fn judge(witnesses: &Witnesses, change: Change) -> Verdict {
    witnesses.judge(1, 1_000, &[&name("f")], change)
}

#[test]
fn a_file_is_followed_from_before_its_first_mark() {
    let mark = |made, changed| Mark {
        made,
        process: Some(Marker {
            began: 1_000,
            typed: None,
        }),
        prior: Prior::File(PriorFile {
            inode: 7,
            size: 1,
            changed,
            modified: 0,
            mode: None,
            stored: None,
        }),
        events: Some(vec![NameEvent::Closed]),
        ..Mark::new(name("f"))
    };
    // When the content before the second mark was changed, in milliseconds.
    for (changed, is_certain) in [(2_001, true), (2_000 + PROMPT + 1, false)] {
        let mut witnesses = Witnesses::default();
        witnesses.announce(1);
        witnesses.began(Seen::Window(1));
        for mark in [mark(2_000, 0), mark(2_500, changed as i64 * 1_000_000)] {
            witnesses.mark(Seen::Window(1), mark, name("f"), 2_000, None);
            witnesses.happened(Seen::Window(1), &name("f"), NameEvent::Closed);
        }
        let change = SweptFile {
            changed_ms: Some(2_501),
            ..SweptFile::new(name("f"), None, Held::ABSENT)
        };
        let held = Held {
            hash: Some(touchmark_proto::Hash::of(b"new")),
            ..Held::ABSENT
        };
        let change = SweptFile {
            after: held,
            ..change
        };
        let judged = witnesses.judge_untracked(1, 1_000, &change);
        assert_eq!(judged == Verdict::Written, is_certain, "{judged:?}");
        // What was there is asked for once.
        let [file] = &witnesses.marked(1).unwrap()[..] else {
            panic!("one file")
        };
        assert!(matches!(file.prior, Prior::File(_)));
        witnesses.recorded(&name("f"), held);
        assert_eq!(witnesses.marked(1).unwrap()[0].prior, Prior::Held(held));
    }
}

#[test]
fn changes_use_marks_up() {
    let mut witnesses = counted(2);
    let twice = Change {
        closes: 2,
        ..CHANGE
    };
    let thrice = Change {
        closes: 3,
        ..CHANGE
    };
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Written);
    assert_eq!(judge(&witnesses, twice), Verdict::Written);
    assert_eq!(judge(&witnesses, thrice), Verdict::Unknown);
    witnesses.written(&name("f"), 1, true);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Written);
    assert_eq!(judge(&witnesses, twice), Verdict::Unknown);
    witnesses.written(&name("f"), 1, true);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::NotWritten);
    let open = Change {
        open: true,
        ..CHANGE
    };
    assert_eq!(judge(&witnesses, open), Verdict::Unknown);
    assert_eq!(judge(&counted(1), open), Verdict::Unknown);
    let unclosed = Change {
        closes: 0,
        ..CHANGE
    };
    assert_eq!(judge(&counted(1), unclosed), Verdict::Unknown);
}

#[test]
fn what_another_author_may_have_closed_too_is_not_certain() {
    let late = Change {
        now: 2_001 + PROMPT,
        ..CHANGE
    };
    assert_eq!(judge(&counted(1), late), Verdict::Unknown);
    let contested = Change {
        is_contested: true,
        ..CHANGE
    };
    assert_eq!(judge(&counted(1), contested), Verdict::Unknown);
    assert_eq!(judge(&counted(0), contested), Verdict::NotWritten);
}

#[test]
fn a_mark_whose_call_may_still_come_is_not_used_up() {
    let mut witnesses = counted(1);
    let other = Change {
        inode: Some(8),
        ..CHANGE
    };
    assert_eq!(judge(&witnesses, other), Verdict::Unknown);
    witnesses.written(&name("f"), 1, false);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Unknown);
    witnesses.count_until(&name("f"), 2_000 + UNUSED, 3);
    witnesses.looked(&name("f"), 3);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::NotWritten);
}

#[test]
fn removals_have_marks_of_their_own() {
    let mut witnesses = counted(1);
    let gone = Change {
        is_removal: true,
        closes: 0,
        ..CHANGE
    };
    assert_eq!(judge(&witnesses, gone), Verdict::NotWritten);
    add(&mut witnesses, Some((1_000, None)), true);
    assert_eq!(judge(&witnesses, gone), Verdict::Written);
    witnesses.removed(&name("f"));
    assert_eq!(judge(&witnesses, gone), Verdict::NotWritten);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Written);
}

#[test]
fn a_call_that_will_fail_explains_nothing() {
    let mut witnesses = counted(0);
    let process = |began| Some(Marker { began, typed: None });
    let mut may_write = |is_new, is_poor, began| {
        let mark = Mark {
            is_new,
            is_poor,
            process: process(began),
            ..in_place()
        };
        witnesses.mark(Seen::Window(1), mark, name("f"), 2_000, Some(true));
        judge(&witnesses, CHANGE)
    };
    assert_eq!(may_write(false, true, 1_000), Verdict::Unknown);
    assert_eq!(may_write(true, false, 1_001), Verdict::Unknown);
    assert_eq!(may_write(false, false, 1_000), Verdict::Written);
    witnesses.written(&name("f"), 1, true);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Unknown);
    // The same process goes on.
    add(&mut witnesses, Some((1_001, None)), false);
    witnesses.written(&name("f"), 1, true);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::NotWritten);
    // What replaces a file that the command removes.
    add(&mut witnesses, Some((1_000, None)), true);
    let mark = Mark {
        is_new: true,
        process: process(1_000),
        ..in_place()
    };
    witnesses.mark(Seen::Window(1), mark, name("f"), 2_000, Some(true));
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Written);
}

#[test]
fn a_mark_without_effect_ends() {
    let mut witnesses = counted(1);
    assert!(!witnesses.has_old(&name("f"), 2_000 + UNUSED - 1));
    assert!(witnesses.has_old(&name("f"), 2_000 + UNUSED));
    witnesses.count_until(&name("f"), 2_000 + UNUSED, 7);
    assert!(!witnesses.has_old(&name("f"), 9_000));
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Unknown);
    witnesses.looked(&name("f"), 6);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Unknown);
    witnesses.looked(&name("f"), 7);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::NotWritten);
}

#[test]
fn only_processes_of_the_command_that_no_person_types_into_are_certain() {
    let of = |process| {
        let mut witnesses = counted(0);
        add(&mut witnesses, process, false);
        judge(&witnesses, CHANGE)
    };
    assert_eq!(of(Some((2_000, None))), Verdict::Written);
    assert_eq!(of(None), Verdict::Unknown);
    // Before the window.
    assert_eq!(of(Some((900, None))), Verdict::Unknown);
    assert_eq!(of(Some((2_000, Some(900)))), Verdict::Written);
    assert_eq!(of(Some((2_000, Some(1_500)))), Verdict::Unknown);
}

#[test]
fn a_file_that_was_not_seen_at_first_is_never_certain() {
    let mut witnesses = counted(0);
    mark(&mut witnesses, 1, "f");
    add(&mut witnesses, Some((2_000, None)), false);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Unknown);
    witnesses.written(&name("f"), 2, true);
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Unknown);
    let mut witnesses = counted(1);
    mark(&mut witnesses, 1, "f");
    assert_eq!(judge(&witnesses, CHANGE), Verdict::Unknown);
}
