#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;
use carried::{carried_weave, without_carried};

mod carried;
mod undone_again;

fn held(text: &str) -> Step {
    Step::Held(text.as_bytes().into())
}

/// Returns the file's last content without the versions in `undone`, and the
/// number of conflicts.
fn without(versions: &[&str], undone: &[usize]) -> (String, usize) {
    let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
    let without = Weave::new(&steps).without(|step| undone.contains(&step));
    let text = String::from_utf8(without.bytes.unwrap()).unwrap();
    (text, without.conflicts.len())
}

#[test]
fn only_the_lines_of_that_version_go_and_come_back() {
    let base = "a\nb\nc\nd\n";
    // An agent changes `b`, a user changes `d`, then the agent adds a line.
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
    // The user's line is next to the agent's.
    let versions = ["a\nb\nc\n", "a\nB\nc\n", "a\nB\nmine\nc\n"];
    assert_eq!(without(&versions, &[1]), ("a\nb\nmine\nc\n".into(), 0));
}

#[test]
fn a_line_added_behind_a_replaced_line_stays_behind_the_one_that_comes_back() {
    // The author replaced the last line twice.
    let versions = ["a\nb\n", "a\n1\n", "a\n2\n", "a\n2\nmine\n"];
    assert_eq!(without(&versions, &[1, 2]), ("a\nb\nmine\n".into(), 0));
    // In the middle of a file.
    let versions = ["a\nb\nc\n", "a\n1\nc\n", "a\n2\nc\n", "a\n2\nmine\nc\n"];
    assert_eq!(without(&versions, &[1, 2]), ("a\nb\nmine\nc\n".into(), 0));
    // A line in front of it had been removed.
    let versions = ["a\ngone\nb\n", "a\nb\n", "a\nB\n", "a\nB\nmine\n"];
    assert_eq!(without(&versions, &[2]), ("a\nb\nmine\n".into(), 0));
}

/// Returns the file's last content without the versions in `undone`, and the
/// conflicts' authors, if `redos` took back undos.
fn without_redone(
    versions: &[&str],
    redos: &[(usize, usize)],
    undone: &[usize],
) -> (String, Vec<(usize, usize)>) {
    let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
    let undos = Undos {
        undos: redos.iter().map(|(undo, _)| *undo).collect(),
        redos: redos.to_vec(),
        ..Undos::default()
    };
    let found = Weave::with_undos(&steps, &undos).without(|step| undone.contains(&step));
    let conflicts = found.conflicts.iter().map(|one| (one.step, one.by));
    let text = String::from_utf8(found.bytes.unwrap()).unwrap();
    (text, conflicts.collect())
}

#[test]
fn an_undo_is_taken_back_once() {
    let (base, agents) = ("a\nb\nc\n", "a\nB\nc\n");
    // An editor takes back the undo, its user takes the file back, and the
    // editor takes back that.
    let (text, decided) = {
        let steps = [base, agents, base, agents, base, agents].map(held);
        let undos = Undos {
            undos: vec![2],
            ..Undos::default()
        };
        let found = Weave::with_undos(&steps, &undos).without(|step| step == 1);
        (found.bytes.unwrap(), found.decided)
    };
    assert_eq!(text, agents.as_bytes());
    let decided: Vec<_> = decided.iter().map(|one| (one.by, &*one.text)).collect();
    assert_eq!(decided, [(5, &b"B\n"[..])]);
}

#[test]
fn what_a_redo_put_back_is_its_authors_again() {
    // An agent changes the last line and adds one, the user undoes it, saves,
    // and redoes it.
    let versions = [
        "a\nb\n",
        "}\na\none\n",
        "a\nb\n",
        "a\nb\nmine\n",
        "}\na\none\nmine\n",
    ];
    let redos = [(2, 4)];
    let left = ("a\nb\nmine\n".into(), vec![]);
    assert_eq!(without_redone(&versions, &redos, &[1]), left);
    // Without the undo's record the lines are those of the last version.
    let stays = (versions[4].into(), vec![]);
    assert_eq!(without_redone(&versions, &[], &[1]), stays);
    // Undone, saved and redone once more.
    let mut more = versions.to_vec();
    more.extend([
        "a\nb\nmine\n",
        "a\nb\nmine\ntoo\n",
        "}\na\none\nmine\ntoo\n",
    ]);
    let redos = [(2, 4), (5, 7)];
    let left = ("a\nb\nmine\ntoo\n".into(), vec![]);
    assert_eq!(without_redone(&more, &redos, &[1]), left);
    // The user has changed a line of it since: that change stays.
    let mut changed = versions.to_vec();
    changed.push("}\na\nuno\nmine\n");
    let stays = ("a\nuno\nmine\n".into(), vec![(1, 5)]);
    assert_eq!(without_redone(&changed, &[(2, 4)], &[1]), stays);
    // Lines that the agent had removed, and those of another agent.
    let versions = [
        "a\nb\nc\nd\n",
        "a\nc\nd\n",
        "a\nc\nD\n",
        "a\nb\nc\nd\n",
        "mine\na\nb\nc\nd\n",
        "mine\na\nc\nD\n",
    ];
    let redos = [(3, 5)];
    let one = ("mine\na\nb\nc\nD\n".into(), vec![]);
    assert_eq!(without_redone(&versions, &redos, &[1]), one);
    let other = ("mine\na\nc\nd\n".into(), vec![]);
    assert_eq!(without_redone(&versions, &redos, &[2]), other);
    // What is kept in a review stays kept.
    let steps = versions.map(held);
    let undos = Undos {
        undos: vec![3],
        redos: redos.to_vec(),
        ..Undos::default()
    };
    let weave = Weave::with_undos(&steps, &undos);
    let agents = |step: usize| step == 1 || step == 2;
    let found = weave.review(agents, &BTreeSet::new());
    assert_eq!(found.len(), 2);
    let kept = found[0].names.iter().copied().collect();
    assert_eq!(weave.review(agents, &kept), found[1..]);
}

#[test]
fn what_a_save_over_an_undo_put_back_is_its_authors_again() {
    let without_by = |versions: &[&str], undone: usize, by_agents: &[usize]| {
        let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
        let undos = Undos {
            undos: vec![3],
            redos: Vec::new(),
            by_agents: by_agents.to_vec(),
            ..Undos::default()
        };
        let weave = Weave::with_undos(&steps, &undos);
        let bytes = weave.without(|step| step == undone).bytes.unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let without = |versions: &[&str], undone| without_by(versions, undone, &[]);
    // An editor had read the file before the undo, and saves it with a line
    // more.
    let mut versions = vec![
        "a\nb\n",
        "top one\na\nB one\n",
        "top one\na\nmine\nB one\n",
        "a\nmine\nb\n",
        "top one\na\ntoo\nmine\nB one\n",
    ];
    assert_eq!(without(&versions, 1), "a\ntoo\nmine\nb\n");
    // Another agent has written all of it again: it is that agent's.
    assert_eq!(without_by(&versions, 1, &[1, 4]), versions[4]);
    // The user has put back one of the lines: that line is the user's.
    versions[4] = "top one\na\ntoo\nmine\nb\n";
    assert_eq!(without(&versions, 1), versions[4]);
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
    // The change was removed together with adjacent lines. It does not come
    // back.
    let versions = ["a\nb\nc\n", "a\nB\nc\n", "a\n"];
    assert_eq!(without(&versions, &[1]), ("a\n".into(), 1));
    // The author changed the line twice. The later change stays, so the earlier
    // one stays too.
    let versions = ["a\nb\nc\n", "a\n1\nc\n", "a\n2\nc\n", "a\nmine\nc\n"];
    assert_eq!(without(&versions, &[1, 2]), ("a\nmine\nc\n".into(), 2));
}

#[test]
fn a_removed_line_comes_back_beside_what_others_put_in_its_place() {
    let steps = ["a\nb\nc\n", "a\nB\nc\n", "a\nmine\nc\n"].map(held);
    let weave = Weave::new(&steps);
    let undone = |step| step == 1;
    assert_eq!(weave.without(undone).bytes.unwrap(), b"a\nmine\nc\n");
    let both = b"a\nb\nmine\nc\n";
    assert_eq!(weave.without_any(undone).bytes.unwrap(), both);
    // Git may have brought what is in its place.
    let carried = carried_weave(&["a\nb\nc\n", "a\nB\nc\n", "a\nmine\nc\n"], &[0, 2]);
    assert_eq!(carried.without_any(undone).bytes.unwrap(), both);
}

#[test]
fn what_others_have_taken_back_already_is_no_conflict() {
    // The user has restored the line, with other changes.
    let versions = ["a\nb one\nc\n", "a\nB two\nc\n", "a\nb one\nc\nmine\n"];
    assert_eq!(without(&versions, &[1]), (versions[2].into(), 0));
    // A line was removed, and typed again.
    let versions = ["a\nb one\nc\n", "a\nc\n", "mine\na\nb one\nc\n"];
    assert_eq!(without(&versions, &[1]), (versions[2].into(), 0));
    // The user has changed the line, and changed it back: it is to be as it is.
    let versions = ["a\nb\n", "a\nB\n", "a\nmine\n", "a\nB\n"];
    assert_eq!(without(&versions, &[1]), (versions[3].into(), 0));
    // All of it was taken back and restored, by `git stash` or by the user.
    let versions = ["a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n", "a\nB\nmine\n"];
    let stashed = without_carried(&versions, &[2, 3], &[1]);
    assert_eq!(stashed, (Some("a\nb\nmine\n".into()), vec![]));
    assert_eq!(without(&versions, &[1]), (versions[4].into(), 0));
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
    // Another author has removed the file since: nothing is left to undo.
    let gone = [held("1\n2\n3\n"), held("1\n2\nthree\n"), Step::Absent];
    assert_eq!(without(&gone), None);
}

#[test]
fn lines_do_not_come_back_into_another_text() {
    let conflicts = |versions: &[&str]| {
        let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
        let found = Weave::new(&steps).without(|step| step == 1);
        let text = String::from_utf8(found.bytes.unwrap()).unwrap();
        let befores = found.conflicts.iter();
        let befores = befores.map(|one| String::from_utf8_lossy(&one.before).into_owned());
        (text, befores.collect::<Vec<_>>())
    };
    let (all, less) = ("a1\nb2\nc3\nd4\ne5\nf6\n", "a1\nb2\ne5\nf6\n");
    let other = "completely\nother\n";
    let stays = (other.to_owned(), vec!["c3\nd4\n".to_owned()]);
    assert_eq!(conflicts(&[all, less, other]), stays);
    // One line is left, or only white space changed.
    let one = conflicts(&[all, less, "completely\nb2\nother\n"]);
    assert_eq!(one, ("completely\nb2\nc3\nd4\nother\n".into(), vec![]));
    let indented = conflicts(&[all, less, " a1\n b2\n e5\n f6\n"]);
    assert_eq!(indented.1, Vec::<String>::new());
    // A short text is easily changed as a whole.
    let short = conflicts(&["a1\nb2\n", "a1\n", "A1\n"]);
    assert_eq!(short, ("A1\nb2\n".into(), vec![]));
    // The lines were back in between.
    let back = conflicts(&[all, less, all, other]);
    assert_eq!(back.1, Vec::<String>::new());
}

#[test]
fn ends_of_lines_and_other_bytes_stay_as_they_are() {
    let versions = ["a\r\nb\r\nc", "a\r\nB\r\nc", "a\r\nB\r\nc\r\nmine"];
    assert_eq!(without(&versions, &[1]), ("a\r\nb\r\nc\r\nmine".into(), 0));
    // A line without a line end comes back before another line.
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
    // The second change is kept. Then the agent makes another change.
    let kept: BTreeSet<LineName> = found[1].names.iter().copied().collect();
    let more = [&versions[..], &["new\na\nB\nc\nD\ne\n"]].concat();
    let steps: Vec<Step> = more.iter().map(|text| held(text)).collect();
    let weave = Weave::new(&steps);
    let left = weave.review(mine, &kept);
    let told: Vec<_> = left.iter().map(|hunk| &*hunk.after).collect();
    assert_eq!(told, [&b"new\n"[..], b"D\ne\n"]);
    // One of the remaining changes is undone.
    let text = weave.without_reviewed([&left[1]], true).unwrap();
    assert_eq!(text, b"new\na\nB\nc\nd\n");
}

/// Returns the file's last content without version 1, whose author is only
/// likely, and the texts that stay.
fn without_likely(versions: &[&str]) -> (String, Vec<String>) {
    let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
    let found = Weave::new(&steps).without_sparing(|step| step == 1, |step| step == 1, true);
    let text = String::from_utf8(found.bytes.unwrap_or_default()).unwrap();
    let stays = found.likely.into_iter();
    let stays = stays.map(|one| String::from_utf8(one.text).unwrap());
    (text, stays.collect())
}

#[test]
fn text_that_first_appeared_in_a_likely_version_stays() {
    let stays = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let base = "a\nb\nc\n";
    // What was added or replaced stays, what was removed comes back.
    let found = without_likely(&[base, "a\nmine\nb\nc\n"]);
    assert_eq!(found, ("a\nmine\nb\nc\n".into(), stays(&["mine\n"])));
    let found = without_likely(&[base, "a\nB\nc\n"]);
    assert_eq!(found, ("a\nB\nc\n".into(), stays(&["B\n"])));
    let found = without_likely(&[base, "b\nc\nmine\n"]);
    assert_eq!(found, ("a\nb\nc\nmine\n".into(), stays(&["mine\n"])));
    assert_eq!(without_likely(&[base, "b\n"]), (base.into(), stays(&[])));
    assert_eq!(without_likely(&[base, ""]), (base.into(), stays(&[])));
    // Known lines and white space are no new text.
    let found = without_likely(&[base, "c\nb\na\n"]);
    assert_eq!(found, (base.into(), stays(&[])));
    let found = without_likely(&[base, "a\n    b\nc\n"]);
    assert_eq!(found, (base.into(), stays(&[])));
    // A known line next to a new one may be a part of the same text.
    let found = without_likely(&[base, "a\nmine\nb\nb\nc\n"]);
    assert!(found.0.contains("mine\n"), "{found:?}");
    // A new file stays with what may be the user's.
    let steps = [Step::Absent, held("mine\n")];
    let found = Weave::new(&steps).without_sparing(|step| step == 1, |step| step == 1, true);
    assert_eq!(found.bytes.as_deref(), Some(&b"mine\n"[..]));
    // What others have removed since is not listed.
    let found = without_likely(&[base, "a\nmine\nb\nc\n", base]);
    assert_eq!(found, (base.into(), stays(&[])));
}

#[test]
fn text_that_a_likely_version_brought_back_stays() {
    let all = "a\nb\nc\n";
    for (removed, stays) in [("a\nc\n", "b\n"), ("x\n", all), ("a\nx\nc\n", "b\n")] {
        let steps = [all, removed, all].map(held);
        let found = Weave::new(&steps).without_sparing(|step| step == 2, |step| step == 2, true);
        assert_eq!(found.bytes.as_deref(), Some(all.as_bytes()), "{removed:?}");
        assert_eq!(found.hunks, 0);
        let texts: Vec<&[u8]> = found.likely.iter().map(|one| &*one.text).collect();
        assert_eq!(texts, [stays.as_bytes()]);
    }
    // Also of a file that was gone.
    let steps = [held(all), Step::Absent, held(all)];
    let found = Weave::new(&steps).without_sparing(|step| step == 2, |step| step == 2, true);
    assert_eq!(found.bytes.as_deref(), Some(all.as_bytes()));
    // Lines that others added later stay next to it.
    let steps = [held(all), held("c\n"), held(all), held("a\nb\nc\nd\n")];
    let found = Weave::new(&steps).without_sparing(|step| step == 2, |step| step == 2, true);
    assert_eq!(found.bytes.as_deref(), Some(&b"a\nb\nc\nd\n"[..]));
    // What the same author had removed comes back anyway, and is not listed.
    let steps = [all, "a\n", all].map(held);
    let found = Weave::new(&steps).without_sparing(|step| step > 0, |step| step > 0, true);
    assert_eq!(found.bytes.as_deref(), Some(all.as_bytes()));
    assert_eq!(found.likely, []);
    // Lines that were removed come back.
    let steps = [all, "a\nb\nc\nd\n", all].map(held);
    let found = Weave::new(&steps).without_sparing(|step| step == 2, |step| step == 2, true);
    assert_eq!(found.bytes.as_deref(), Some(&b"a\nb\nc\nd\n"[..]));
}

#[test]
fn text_that_may_be_anothers_comes_back_where_an_edit_replaced_it() {
    let likely = "a\nmine\nb\nc\n";
    let steps = ["a\nb\nc\n", likely, "a\nTHE AGENT\nb\nc\n"].map(held);
    let weave = Weave::new(&steps);
    let found = weave.without_sparing(|step| step > 0, |step| step == 1, true);
    assert_eq!(found.bytes.as_deref(), Some(likely.as_bytes()));
    let stays: Vec<&[u8]> = found.likely.iter().map(|one| &*one.text).collect();
    assert_eq!(stays, [b"mine\n"]);
    // So does a file that a second command removed.
    let steps = [held("a\nb\nc\n"), held(likely), Step::Absent];
    let found = Weave::new(&steps).without_sparing(|step| step > 0, |step| step > 0, true);
    assert_eq!(found.bytes.as_deref(), Some(likely.as_bytes()));
    assert_eq!(found.likely.len(), 1);
}

#[test]
fn a_claimed_line_has_the_author_that_the_user_named() {
    let versions = ["a\n", "a\nx\ny\nz\n", "a\nx\ny\nz\nu\nv\n"];
    let claim = |step, line: &str, place| Claim {
        step,
        lines: vec![(place, Weave::mark(line.as_bytes()))],
    };
    // Line `y` is not version 1's, line `v` is not version 2's.
    let claims = [claim(1, "y\n", 1), claim(2, "v\n", 1)];
    let weave = Weave::new(&versions.map(held)).claimed(&claims);
    let of: Vec<usize> = weave.blame(2).iter().map(|line| line.0).collect();
    assert_eq!(of, [0, 1, 3, 1, 2, 4]);
    let text = |undone: &[usize]| {
        let found = weave.without(|step| undone.contains(&step));
        String::from_utf8(found.bytes.unwrap()).unwrap()
    };
    assert_eq!(text(&[1]), "a\ny\nu\nv\n");
    assert_eq!(text(&[2]), "a\nx\ny\nz\nv\n");
    assert_eq!(text(&[1, 4]), "a\ny\nu\n");
    assert_eq!(
        weave
            .name_lines(2, touchmark_proto::LineRange { start: 3, end: 3 })
            .len(),
        1
    );
    // A line that is another by now is not meant.
    let weave = Weave::new(&versions.map(held)).claimed(&[claim(1, "other\n", 1)]);
    assert_eq!(weave.blame(2)[2].0, 1);
    // The line that replaced another removed it, too.
    let weave = Weave::new(&["a\nb\nm\nc\n", "a\nB\nm\nC\n"].map(held));
    let weave = weave.claimed(&[claim(1, "B\n", 0)]);
    let found = weave.without(|step| step == 1);
    assert_eq!(found.bytes.unwrap(), b"a\nB\nm\nc\n");
}
