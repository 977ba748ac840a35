//! Witnesses alone.

#![allow(clippy::unwrap_used)]

use super::*;

fn name(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn mark(witnesses: &mut Witnesses, window: u64, text: &str) {
    let mark = Mark {
        in_place: false,
        ..Mark::new(name(text))
    };
    let file = mark.name.clone();
    witnesses.mark(window, mark, file, 0, None);
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
    witnesses.began(1);
    mark(&mut witnesses, 1, "d/b");
    assert!(rules_out(&witnesses, 1, "a"));
    assert!(rules_out(&witnesses, 1, "d"));
    assert!(!rules_out(&witnesses, 1, "d/b"));
    assert!(!rules_out(&witnesses, 1, "d/b/c"));
    assert_eq!(witnesses.why_incomplete(1), None);
    for why in ["first", "second"] {
        witnesses.lose(1, why.to_owned());
        witnesses.began(1);
    }
    assert!(!rules_out(&witnesses, 1, "a"));
    assert_eq!(witnesses.why_incomplete(1).as_deref(), Some("first"));
}

#[test]
fn a_window_below_another_has_its_witness() {
    let mut witnesses = Witnesses::default();
    witnesses.announce(1);
    witnesses.began(1);
    witnesses.is_below(2, 1);
    witnesses.is_below(3, 2);
    witnesses.is_below(5, 4);
    for (window, is_seen) in [(1, true), (2, true), (3, true), (4, false), (5, false)] {
        assert_eq!(rules_out(&witnesses, window, "a"), is_seen, "{window}");
    }
    witnesses.retain(|window| window == 1 || window == 3, |_| false);
    assert!(rules_out(&witnesses, 3, "a"));
    assert!(!rules_out(&witnesses, 2, "a"));
    witnesses.retain(|window| window == 3, |window| window == 1);
    assert!(!rules_out(&witnesses, 3, "a"));
    assert!(witnesses.why_incomplete(3).is_some());
}

#[test]
fn too_many_names_are_all_names() {
    let mut witnesses = Witnesses::default();
    witnesses.announce(1);
    witnesses.began(1);
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
    witnesses.began(1);
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
    witnesses.mark(1, mark, name("f"), 2_000, Some(true));
}

fn judge(witnesses: &Witnesses, change: Change) -> Verdict {
    witnesses.judge(1, 1_000, &[&name("f")], change)
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
        witnesses.mark(1, mark, name("f"), 2_000, Some(true));
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
    witnesses.mark(1, mark, name("f"), 2_000, Some(true));
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
