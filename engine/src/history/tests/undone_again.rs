//! Undos after undos, and what git brings between them.

use super::carried::*;
use super::*;

/// A generator of numbers that is the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

#[test]
fn going_to_another_state_and_back_changes_nothing() {
    for seed in 1..=2_000 {
        let mut dice = Dice(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let mut next = 0;
        let mut edited = |text: &str, dice: &mut Dice| -> String {
            let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
            for _ in 0..=dice.below(2) {
                next += 1;
                let at = dice.below(lines.len() + 1);
                match dice.below(3) {
                    0 if at < lines.len() => drop(lines.remove(at)),
                    1 if at < lines.len() => lines[at] = format!("line {next}\n"),
                    _ => lines.insert(at, format!("line {next}\n")),
                }
            }
            lines.concat()
        };
        let base: String = (0..6).map(|line| format!("base {line}\n")).collect();
        let mut all = vec![base.clone()];
        for _ in 0..2 + dice.below(5) {
            let last = all.last().unwrap().clone();
            all.push(edited(&last, &mut dice));
        }
        let undone: Vec<usize> = (1..all.len()).filter(|_| dice.below(2) == 0).collect();
        // The same, with a way to another branch and back somewhere.
        let place = 1 + dice.below(all.len());
        let mut away = all.clone();
        away.insert(place, edited(&base, &mut dice));
        away.insert(place + 1, all[place - 1].clone());
        let shifted: Vec<usize> = undone
            .iter()
            .map(|step| if *step >= place { step + 2 } else { *step })
            .collect();
        fn texts(all: &[String]) -> Vec<&str> {
            all.iter().map(String::as_str).collect()
        }
        let straight = without_carried(&texts(&all), &[], &undone);
        let (text, conflicts) = without_carried(&texts(&away), &[place, place + 1], &shifted);
        assert_eq!(text, straight.0, "seed {seed}: {away:#?} {shifted:?}");
        assert_eq!(conflicts.len(), straight.1.len(), "seed {seed}");
    }
}

#[test]
fn upstreams_changes_of_other_lines_change_no_undo() {
    for seed in 1..=2_000 {
        let mut dice = Dice(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let base: Vec<String> = (0..20).map(|line| format!("base {line}\n")).collect();
        // The agent and the user change the first half, upstream the other.
        let mut lines = base.clone();
        let mut all = vec![base.concat()];
        let mut undone = Vec::new();
        for at in 0..1 + dice.below(4) {
            let line = dice.below(9);
            lines[line] = match dice.below(3) {
                0 => format!("one {at}\n"),
                1 => format!("one {at}\ntwo {at}\n"),
                _ => String::new(),
            };
            if dice.below(2) == 0 {
                undone.push(all.len());
            }
            all.push(lines.concat());
        }
        let left = without_carried(
            &all.iter().map(String::as_str).collect::<Vec<_>>(),
            &[],
            &undone,
        );
        let up = |text: &str| text.replace("base 15\n", "upstream\nupstream too\n");
        let merged = up(all.last().unwrap());
        let mut carried = Vec::new();
        if dice.below(2) == 0 {
            // Over upstream's state, as a rebase or stash, pull and pop.
            carried.push(all.len());
            all.push(up(&base.concat()));
        }
        carried.push(all.len());
        all.push(merged);
        let texts: Vec<&str> = all.iter().map(String::as_str).collect();
        let (text, conflicts) = without_carried(&texts, &carried, &undone);
        assert_eq!(
            text,
            left.0.map(|text| up(&text)),
            "seed {seed}: {all:#?} {undone:?}"
        );
        assert_eq!(conflicts.len(), left.1.len(), "seed {seed}");
    }
}

#[test]
fn a_decision_stays_one_after_an_undo_and_a_redo() {
    // A file is removed, the agent makes it again without a line, and another
    // author puts the line back, which is undone and done again.
    let (base, less) = (held("a\nb\nc\n"), held("a\nc\n"));
    let steps = [&base, &Step::Absent, &base, &less, &base, &less, &base].map(Clone::clone);
    let undos = Undos {
        undos: vec![5, 6],
        redos: vec![(5, 6)],
        ..Undos::default()
    };
    let found = Weave::with_undos(&steps, &undos).without(|step| matches!(step, 2 | 3));
    assert_eq!(found.bytes.unwrap(), b"a\nb\nc\n");
}

#[test]
fn lines_are_only_by_versions_that_alone_wrote_them() {
    let steps = [
        "user 1\nboth 2\n",
        "agent 3\nuser 1\n  both 2\n{\nagent 3\nboth 2\n",
    ];
    let steps = [steps[0], steps[1], "user 1\nuser 4\n"].map(held);
    let weave = Weave::new(&steps);
    let by = |step: usize| {
        let lines = weave.only_by(|at| at == step);
        let lines = lines.iter().map(|line| String::from_utf8_lossy(line));
        lines.collect::<String>()
    };
    assert_eq!([by(0), by(1), by(2)], ["user 1\n", "agent 3\n", "user 4\n"]);
}

#[test]
fn a_file_that_git_brings_back_as_it_was_is_the_same_file() {
    let base = "a\nb\nc\n";
    let agent = "a\nB\n";
    // The removal may be the user's, or git's and seen too late. Git may have
    // made an empty file first.
    for carried in [vec![2, 3, 4], vec![3, 4]] {
        let steps = [held(base), held(agent), Step::Absent, held(""), held(agent)];
        let undos = Undos {
            carried,
            ..Undos::default()
        };
        let found = Weave::with_undos(&steps, &undos).without(|step| step == 1);
        assert_eq!(found.bytes.unwrap(), base.as_bytes());
    }
    let versions = [base, agent, "", agent];
    let back = (Some(base.to_owned()), vec![]);
    assert_eq!(without_carried(&versions, &[3], &[1]), back);
    // Another file of that name, which the user has made.
    assert_eq!(without_carried(&versions, &[], &[1]).0.unwrap(), agent);
}

#[test]
fn what_others_have_brought_back_since_stays() {
    // The user removes the file, an agent brings it back, the user removes it
    // again, and another agent brings it back.
    let base = "a\nb\nc\n";
    let [first, second] = [held(base), held("x\na\nb\nc\n")];
    let steps = [&first, &Step::Absent, &first, &Step::Absent, &first].map(Clone::clone);
    let found = Weave::new(&steps).without(|step| step == 2);
    assert_eq!(found.bytes.as_deref(), Some(base.as_bytes()));
    // With a line of its own, which it removes, and the user changes a line.
    let removed = [&first, &Step::Absent, &first, &Step::Absent];
    let mut steps = removed.map(Clone::clone).to_vec();
    steps.extend([second, first, held("a\nb\nC\n")]);
    let found = Weave::new(&steps).without(|step| step == 2);
    assert_eq!(found.bytes.as_deref(), Some(&b"a\nb\nC\n"[..]));
    assert_eq!(found.decided, []);
}

#[test]
fn an_undo_after_a_redo_does_the_same_in_what_git_brought() {
    // The agent changes a file that the user changes too, and git brings the
    // agent's content back.
    let base = "1\n2\n3\n4\n5\n6\n7\n";
    let agents = "1\n3\n4\n8\n7\n";
    let first = [base, agents, "a\nb\n", agents, "1\n3\n4\n9\nx\ny\n", agents];
    let again = [&first[..], &[base, agents]].concat();
    let undos = Undos {
        carried: vec![2, 3, 5],
        undos: vec![6],
        redos: vec![(6, 7)],
        ..Undos::default()
    };
    let back = (Some(base.to_owned()), vec![]);
    assert_eq!(without_carried(&first, &undos.carried, &[1]), back);
    let steps: Vec<Step> = again.iter().map(|text| held(text)).collect();
    let found = Weave::with_undos(&steps, &undos).without(|step| step == 1);
    assert_eq!(found.bytes.unwrap(), base.as_bytes());
    assert_eq!(found.conflicts, []);
}

#[test]
fn what_a_merge_put_beside_a_change_is_not_doubled() {
    // The agent replaces two lines, another branch one of them, and the user
    // keeps both sides of the conflict.
    let base = "one\ntwo\nthree\nfour\nfive\n";
    let agents = "one\nA\nfour\nfive\n";
    let merged = "one\n<<<<<<< HEAD\nA\nfour\n=======\ntwo\nthree\nT\n>>>>>>> b\nfive\n";
    let both = "one\nA\nfour\ntwo\nthree\nT\nfive\n";
    let rest = "one\nfour\ntwo\nthree\nT\nfive\n";
    let undone = without_carried(&[base, agents, merged, both], &[2], &[1]);
    assert_eq!(undone, (Some(rest.to_owned()), vec![]));
    // The user keeps the agent's side.
    let own = without_carried(&[base, agents, merged, agents], &[2], &[1]);
    assert_eq!(own, (Some(base.to_owned()), vec![]));
}

/// An undo brings back a file that the undone version had replaced. Both have
/// lines like those of many files, between which the others stood.
#[test]
fn a_file_that_an_undo_brings_back_has_its_authors() {
    let versions = [
        "b 1\nb 2\n}\nb 3\n#\nb 4\n#\nb 5\n}\nb 6\n#\n",
        "one\ntwo\nthree\n",
        "one\ntwo\n#\nfour\n#\nfive\nthree\n",
        "one\ntwo\n#\nfour\n#\nfive\nsix\n",
        "b 1\nb 2\n}\nb 3\n#\nb 4\n#\nb 5\n}\nb 6\n#\n",
        "one\ntwo\n#\nfour\n#\nfive\nthree\n",
        "one\ntwo\n#\nfour\n#\nfive\nthree\nsix\n",
    ];
    let by = |last: usize| {
        let mut steps: Vec<Step> = versions[..5].iter().map(|text| held(text)).collect();
        steps.push(held(versions[last]));
        let undos = Undos {
            undos: vec![5],
            ..Undos::default()
        };
        let weave = Weave::with_undos(&steps, &undos);
        let blame = weave.blame(5);
        blame.iter().map(|(step, _)| *step).collect::<Vec<_>>()
    };
    assert_eq!(by(5), [1, 1, 2, 2, 2, 2, 1]);
    assert_eq!(by(6), [1, 1, 2, 2, 2, 2, 1, 3]);
}

#[test]
fn lines_that_an_undo_brought_back_with_their_file_stay() {
    // Another author removed the file, an undo brought it back without a line,
    // and the agent adds a line.
    let versions = ["a\nb\nc\nd\n", "", "a\nb\nc\n", "a\nb\nc\nnew\n"];
    let steps = versions.map(|text| match text {
        "" => Step::Absent,
        text => held(text),
    });
    let undos = Undos {
        undos: vec![2],
        ..Undos::default()
    };
    let found = Weave::with_undos(&steps, &undos).without(|step| step == 3);
    assert_eq!(found.bytes.as_deref(), Some(versions[2].as_bytes()));
    assert_eq!(found.conflicts, []);
}

#[test]
fn an_undo_takes_back_also_what_git_has_repeated() {
    // The agent removes `x`, a stash and its return carry that away and back, it
    // is undone, and a switch goes to a branch without `x`.
    let (with, without) = ("a\nx\nb\n", "a\nb\n");
    let versions = [with, without, with, without, with, "side\na\nb\n"];
    let undos = Undos {
        undos: vec![4],
        carried: vec![2, 3, 5],
        ..Undos::default()
    };
    let found = Weave::with_undos(&versions.map(held), &undos).without(|step| step == 1);
    assert_eq!(found.bytes.as_deref(), Some(versions[5].as_bytes()));
}
