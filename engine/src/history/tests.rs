#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn held(text: &str) -> Step {
    Step::Held(text.as_bytes().into())
}

/// A file's versions, and what it would hold without those named.
fn without(versions: &[&str], undone: &[usize]) -> (String, usize) {
    let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
    let without = Weave::new(&steps).without(|step| undone.contains(&step));
    let text = String::from_utf8(without.bytes.unwrap()).unwrap();
    (text, without.conflicts.len())
}

#[test]
fn only_the_lines_of_that_version_go_and_come_back() {
    let base = "a\nb\nc\nd\n";
    // An agent changes `b`, a user `d`, then the agent adds a line.
    let versions = [base, "a\nB\nc\nd\n", "a\nB\nc\nD\n", "new\na\nB\nc\nD\n"];
    assert_eq!(without(&versions, &[1, 3]), ("a\nb\nc\nD\n".into(), 0));
    assert_eq!(without(&versions, &[2]), ("new\na\nB\nc\nd\n".into(), 0));
    assert_eq!(without(&versions, &[]), (versions[3].into(), 0));
    assert_eq!(without(&versions, &[1, 2, 3]), (base.into(), 0));
}

#[test]
fn lines_that_others_put_among_theirs_stay() {
    let versions = ["a\nz\n", "a\n1\n2\n3\nz\n", "a\n1\nmine\n2\n3\nz\n"];
    assert_eq!(without(&versions, &[1]), ("a\nmine\nz\n".into(), 0));
    // Beside theirs.
    let versions = ["a\nb\nc\n", "a\nB\nc\n", "a\nB\nmine\nc\n"];
    assert_eq!(without(&versions, &[1]), ("a\nb\nmine\nc\n".into(), 0));
}

#[test]
fn where_others_changed_the_same_lines_the_change_stays() {
    let versions = ["a\nb\nc\nd\ne\n", "a\nB\nc\nd\nE\n", "a\nmine\nc\nd\nE\n"];
    assert_eq!(without(&versions, &[1]), ("a\nmine\nc\nd\ne\n".into(), 1));
    let steps = versions.map(held);
    let found = Weave::new(&steps).without(|step| step == 1);
    let conflict = &found.conflicts[0];
    assert_eq!((conflict.lines.start, conflict.lines.end), (2, 2));
    assert_eq!((conflict.step, conflict.by), (1, 2));
    assert_eq!(conflict.before, b"b\n");
    // Removed with others beside it: it does not come back as it was.
    let versions = ["a\nb\nc\n", "a\nB\nc\n", "a\n"];
    assert_eq!(without(&versions, &[1]), ("a\n".into(), 1));
    // Also what the version had changed before, which another of the same
    // author's has changed again.
    let versions = ["a\nb\nc\n", "a\n1\nc\n", "a\n2\nc\n", "a\nmine\nc\n"];
    assert_eq!(without(&versions, &[1, 2]), ("a\nmine\nc\n".into(), 2));
}

#[test]
fn what_others_have_taken_back_already_is_no_conflict() {
    // By hand, with work of their own.
    let versions = ["a\nb one\nc\n", "a\nB two\nc\n", "a\nb one\nc\nmine\n"];
    assert_eq!(without(&versions, &[1]), (versions[2].into(), 0));
    // A line that was removed, and typed again.
    let versions = ["a\nb one\nc\n", "a\nc\n", "mine\na\nb one\nc\n"];
    assert_eq!(without(&versions, &[1]), (versions[2].into(), 0));
    // Changed, and changed back.
    let versions = ["a\nb\n", "a\nB\n", "a\nmine\n", "a\nB\n"];
    assert_eq!(without(&versions, &[1]), ("a\nb\n".into(), 0));
    // All of it, as by `git stash`, and then back.
    let versions = ["a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n", "a\nB\nmine\n"];
    assert_eq!(without(&versions, &[1]), ("a\nb\nmine\n".into(), 0));
}

#[test]
fn a_file_they_made_goes_unless_others_wrote_in_it() {
    let without = |steps: &[Step]| Weave::new(steps).without(|step| step == 1).bytes;
    let made = [Step::Absent, held("1\n2\n")];
    assert_eq!(without(&made), None);
    let and_more = [Step::Absent, held("1\n2\n"), held("1\n2\nmine\n")];
    assert_eq!(without(&and_more), Some(b"mine\n".to_vec()));
    let and_less = [Step::Absent, held("1\n2\n"), held("1\n")];
    assert_eq!(without(&and_less), None);
    let deleted = [held("1\n"), Step::Absent];
    assert_eq!(without(&deleted), Some(b"1\n".to_vec()));
    let empty = [held(""), Step::Absent];
    assert_eq!(without(&empty), Some(Vec::new()));
    // Removed by somebody else since: there is nothing to do.
    let gone = [held("1\n2\n3\n"), held("1\n2\nthree\n"), Step::Absent];
    assert_eq!(without(&gone), None);
}

#[test]
fn ends_of_lines_and_other_bytes_stay_as_they_are() {
    let versions = ["a\r\nb\r\nc", "a\r\nB\r\nc", "a\r\nB\r\nc\r\nmine"];
    assert_eq!(without(&versions, &[1]), ("a\r\nb\r\nc\r\nmine".into(), 0));
    // A line without an end comes back before another.
    let versions = ["a\nb", "a\n", "a\nmine\n"];
    let (text, _) = without(&versions, &[1]);
    assert!(text == "a\nb\nmine\n" || text == "a\nmine\nb", "{text:?}");
    let steps = [
        Step::Held(b"\xff\n\x00".to_vec().into()),
        Step::Held(b"\xfe\n\x00".to_vec().into()),
    ];
    let found = Weave::new(&steps).without(|step| step == 1);
    assert_eq!(found.bytes.unwrap(), b"\xff\n\x00");
}

#[test]
fn versions_that_are_not_kept_count_with_the_next() {
    let steps = [
        held("a\n"),
        Step::NotKept,
        held("a\nb\nc\n"),
        held("a\nb\nc\nd\n"),
    ];
    let weave = Weave::new(&steps);
    let both = weave.without(|step| step == 1 || step == 2);
    assert_eq!(both.bytes.unwrap(), b"a\nd\n");
    assert_eq!(both.not_kept, [0; 0]);
    let one = weave.without(|step| step == 1 || step == 3);
    assert_eq!(one.bytes.unwrap(), b"a\nb\nc\n");
    assert_eq!(one.not_kept, [1]);
}

#[test]
fn each_line_is_of_the_version_that_brought_it() {
    let versions = ["a\nb\nc\n", "a\nB\nc\n", "new\na\nB\nc\n", "new\na\nb\nc\n"];
    let weave = Weave::new(&versions.map(held));
    let of = |step| -> Vec<usize> { weave.blame(step).iter().map(|line| line.0).collect() };
    assert_eq!(of(2), [2, 0, 1, 0]);
    let compared = weave.compare(0, 2);
    let told: Vec<_> = compared
        .iter()
        .map(|line| (line.kind, line.text, line.step))
        .collect();
    assert_eq!(
        told,
        [
            (Kind::Added, &b"new\n"[..], 2),
            (Kind::Context, b"a\n", 0),
            (Kind::Removed, b"b\n", 1),
            (Kind::Added, b"B\n", 1),
            (Kind::Context, b"c\n", 0),
        ]
    );
}

#[test]
fn what_was_kept_is_not_looked_at_again() {
    let versions = ["a\nb\nc\nd\n", "a\nB\nc\nD\n", "new\na\nB\nc\nD\n"];
    let steps = versions.map(held);
    let weave = Weave::new(&steps);
    let mine = |step: usize| step > 0;
    let found = weave.review(mine, &BTreeSet::new());
    let told: Vec<_> = found
        .iter()
        .map(|hunk| {
            (
                hunk.lines.start,
                hunk.lines.end,
                &*hunk.before,
                &*hunk.after,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (1, 1, &b""[..], &b"new\n"[..]),
            (3, 3, b"b\n", b"B\n"),
            (5, 5, b"d\n", b"D\n"),
        ]
    );
    // The second is kept, then the agent goes on.
    let kept: BTreeSet<LineName> = found[1].names.iter().copied().collect();
    let more = [&versions[..], &["new\na\nB\nc\nD\ne\n"]].concat();
    let steps: Vec<Step> = more.iter().map(|text| held(text)).collect();
    let weave = Weave::new(&steps);
    let left = weave.review(mine, &kept);
    let told: Vec<_> = left.iter().map(|hunk| &*hunk.after).collect();
    assert_eq!(told, [&b"new\n"[..], b"D\ne\n"]);
    // And another is taken back.
    let text = weave.without_reviewed([&left[1]], true).unwrap();
    assert_eq!(text, b"new\na\nB\nc\nd\n");
}

/// What somebody does to a file: at a place, some lines go and some come.
#[derive(Clone, Debug)]
struct Doing {
    author: usize,
    at: usize,
    off: usize,
    on: usize,
    /// Instead of that, goes back so many versions.
    back: Option<usize>,
}

fn doing() -> impl Strategy<Value = Doing> {
    let back = prop_oneof![9 => Just(None), 1 => (0_usize..4).prop_map(Some)];
    (0_usize..3, 0_usize..40, 0_usize..4, 0_usize..4, back).prop_map(
        |(author, at, off, on, back)| Doing {
            author,
            at,
            off,
            on,
            back,
        },
    )
}

/// Plays on a list of lines that names their authors; no two lines are equal.
fn played(doings: &[Doing]) -> (Vec<Vec<String>>, Vec<usize>) {
    let mut versions = vec![(0..12).map(|line| format!("base {line}\n")).collect()];
    let mut authors = vec![9];
    for (number, doing) in doings.iter().enumerate() {
        let mut lines: Vec<String> = versions.last().cloned().unwrap();
        match doing.back {
            Some(back) if back < versions.len() => {
                lines.clone_from(&versions[versions.len() - 1 - back]);
            }
            _ => {
                let at = doing.at % (lines.len() + 1);
                let end = (at + doing.off).min(lines.len());
                let on = (0..doing.on).map(|line| format!("by {} {number}.{line}\n", doing.author));
                lines.splice(at..end, on);
            }
        }
        versions.push(lines);
        authors.push(doing.author);
    }
    (versions, authors)
}

fn is_in_order(some: &[&String], all: &[String]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == *one))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// What a person would say: nobody else loses a line, or gets one back that
    /// was not taken by that author; and that author's lines are gone but
    /// where a conflict is told.
    #[test]
    fn nobody_else_loses_a_line(doings in prop::collection::vec(doing(), 1..25), whose in 0_usize..3) {
        let (versions, authors) = played(&doings);
        let texts: Vec<String> = versions.iter().map(|lines| lines.concat()).collect();
        let steps: Vec<Step> = texts.iter().map(|text| held(text)).collect();
        let weave = Weave::new(&steps);
        let now = versions.last().unwrap();

        let nothing = weave.without(|_| false);
        prop_assert_eq!(nothing.bytes.unwrap(), texts.last().unwrap().as_bytes());
        let all = weave.without(|step| step > 0);
        prop_assert_eq!(all.bytes.unwrap(), texts[0].as_bytes());
        prop_assert!(all.conflicts.is_empty());

        let found = weave.without(|step| authors[step] == whose);
        let text = String::from_utf8(found.bytes.unwrap()).unwrap();
        let lines: Vec<String> = text.split_inclusive('\n').map(String::from).collect();
        let own = format!("by {whose} ");
        let is_back = |step: usize| doings[step - 1].back.is_some();
        let goes_back = (1..versions.len()).any(is_back);
        if !goes_back {
            let others: Vec<&String> = now.iter().filter(|line| !line.starts_with(&own)).collect();
            prop_assert!(is_in_order(&others, &lines), "{now:?} -> {lines:?}");
            // Of what others removed nothing comes back.
            for (step, pair) in versions.windows(2).enumerate() {
                if authors[step + 1] != whose {
                    let gone = pair[0].iter().filter(|line| !pair[1].contains(line));
                    for line in gone {
                        prop_assert!(!lines.contains(line), "{line:?} is back: {lines:?}");
                    }
                }
            }
        }
        if found.conflicts.is_empty() {
            let left: Vec<_> = lines.iter().filter(|line| line.starts_with(&own)).collect();
            prop_assert!(goes_back || left.is_empty(), "{left:?}");
        }
        if authors[1..].iter().all(|author| *author == whose) {
            prop_assert_eq!(text, texts[0].clone());
        }
        // Each line is told once, by its author.
        for (step, text) in weave.blame(versions.len() - 1) {
            let text = std::str::from_utf8(text).unwrap();
            let by = text.strip_prefix("by ").map(|rest| rest.split(' ').next().unwrap());
            prop_assert_eq!(by.unwrap_or("9").parse::<usize>().unwrap(), authors[step]);
        }
    }
}
