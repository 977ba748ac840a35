//! SURV-1 against a plain simulation: each line is a number, so who wrote it
//! and whether it is still there needs no comparison of texts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, dead_code)] // the modules of other tests

#[path = "../../tests/src/dealt/mod.rs"]
mod dealt;
#[path = "../../tests/src/dice.rs"]
mod dice;

use std::collections::BTreeSet;
use std::path::Path;

use dealt::{Style, deal::script, histories};
use dice::Dice;
use touchmark_engine::history::{Left, Step, Weave};

/// A file's contents: the numbers of its lines; `None` for no file.
type Contents = Vec<Option<Vec<usize>>>;

fn weave(contents: &Contents, text: impl Fn(usize) -> String) -> Weave {
    let step = |lines: &Option<Vec<usize>>| match lines {
        Some(lines) => Step::Held(
            lines
                .iter()
                .map(|line| text(*line))
                .collect::<String>()
                .into_bytes()
                .into(),
        ),
        None => Step::Absent,
    };
    Weave::new(&contents.iter().map(step).collect::<Vec<_>>())
}

/// Counts by hand: the lines that no earlier version had, and those of them
/// that a later one has.
fn slow(contents: &Contents, version: usize, later: usize) -> Left {
    let of = |at: usize| {
        contents[at]
            .iter()
            .flatten()
            .copied()
            .collect::<BTreeSet<_>>()
    };
    let before: BTreeSet<usize> = (0..version).flat_map(of).collect();
    let added: BTreeSet<usize> = of(version).difference(&before).copied().collect();
    let count = |lines: usize| u32::try_from(lines).unwrap();
    Left {
        added: count(added.len()),
        alive: count(added.intersection(&of(later)).count()),
    }
}

fn check(what: &str, contents: &Contents, weave: &Weave) -> (u64, u64) {
    let last = contents.len();
    let pairs: Vec<(usize, usize)> = (0..last)
        .flat_map(|version| (version..last).map(move |later| (version, later)))
        .collect();
    let (mut added, mut alive) = (0, 0);
    for ((version, later), found) in pairs.iter().zip(weave.left(&pairs)) {
        let expected = slow(contents, *version, *later);
        assert_eq!(
            found,
            Some(expected),
            "{what}: {version} at {later} of {contents:?}"
        );
        added += u64::from(expected.added);
        alive += u64::from(expected.alive);
    }
    (added, alive)
}

/// Makes a history of a file in which lines are added, removed, moved, and
/// brought back.
fn random(dice: &mut Dice) -> Contents {
    let mut next = 0;
    let mut fresh = |count: usize| {
        next += count;
        next - count..next
    };
    let mut contents: Contents = vec![Some(fresh(dice.index(12)).collect())];
    // Lines that were removed, with the lines that were around them.
    let mut gone: Option<(Option<usize>, Option<usize>, Vec<usize>)> = None;
    for _ in 0..3 + dice.index(12) {
        let mut lines = contents.last().cloned().flatten().unwrap_or_default();
        let at = dice.index(lines.len() + 1);
        let end = at + dice.index(lines.len() - at + 1);
        match dice.below(10) {
            0..4 => drop(lines.splice(at..at, fresh(1 + dice.index(5)))),
            4 => drop(lines.splice(at..end, fresh(1 + dice.index(5)))),
            5 => {
                let run: Vec<usize> = lines.drain(at..end).collect();
                let around = |at: Option<usize>| at.and_then(|at| lines.get(at).copied());
                gone = Some((around(at.checked_sub(1)), around(Some(at)), run));
            }
            6 => {
                let run: Vec<usize> = lines.drain(at..end).collect();
                let to = dice.index(lines.len() + 1);
                lines.splice(to..to, run);
                // The place of what was removed may have moved with its
                // neighbours. What comes back there is a new line.
                gone = None;
            }
            7 => {
                // A restored version may have them already.
                let taken = gone
                    .take()
                    .filter(|(.., run)| !run.iter().any(|line| lines.contains(line)));
                if let Some((before, after, run)) = taken {
                    let at = match before {
                        Some(before) => lines
                            .iter()
                            .position(|line| *line == before)
                            .map(|at| at + 1),
                        None => Some(0),
                    };
                    if let Some(at) = at
                        && lines.get(at).copied() == after
                    {
                        lines.splice(at..at, run);
                    }
                }
            }
            8 => {
                let earlier = dice.index(contents.len());
                contents.push(contents[earlier].clone());
                continue;
            }
            _ => {
                if dice.percent(30) {
                    contents.push(None);
                    continue;
                }
            }
        }
        contents.push(Some(lines));
    }
    contents
}

#[test]
fn surv1_of_random_histories_each_line_is_counted_as_by_hand() {
    let (mut added, mut alive) = (0, 0);
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed, "survival");
        let contents = random(&mut dice);
        let weave = weave(&contents, |line| format!("line {line} of the file\n"));
        let sums = check(&format!("history {seed}"), &contents, &weave);
        added += sums.0;
        alive += sums.1;
    }
    println!("{added} lines, {alive} of them alive");
    assert!(alive > added / 4 && alive < added, "{alive} of {added}");
}

#[test]
fn surv1_of_sessions_that_are_dealt_out_each_line_is_counted_as_by_hand() {
    let histories = histories::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    for number in 0..60 {
        let script = script(&histories, number);
        for file in &script.files {
            let contents: Contents = file.versions.iter().map(|one| one.lines.clone()).collect();
            let steps: Vec<Step> = (0..contents.len())
                .map(|at| match file.text(at, Style::Marked) {
                    Some(text) => Step::Held(text.into_bytes().into()),
                    None => Step::Absent,
                })
                .collect();
            check(
                &format!("{} {}", script.name, file.path),
                &contents,
                &Weave::new(&steps),
            );
        }
    }
}

#[test]
fn surv2_what_is_not_kept_is_not_judged() {
    let held = |text: &str| Step::Held(text.as_bytes().into());
    let steps = [
        held("a one\n"),
        Step::NotKept,
        held("a one\nb two\nc three\n"),
        held("a one\nb two\nc three\nd four\n"),
        held("d four\n"),
    ];
    let left = Weave::new(&steps).left(&[(1, 4), (2, 4), (3, 4), (3, 1), (9, 4), (3, 9)]);
    let one = Left { added: 1, alive: 1 };
    assert_eq!(left, [None, None, Some(one), None, None, None]);
    let mixed = Weave::new(&steps).mixed([3]);
    assert_eq!(mixed.left(&[(3, 4)]), [None]);
}
