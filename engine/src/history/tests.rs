#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;

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

/// Returns the file's last content without the versions in `undone`, and the
/// conflicts' authors, if git carried the versions in `carried`. An empty text
/// stands for no file.
fn without_carried(
    versions: &[&str],
    carried: &[usize],
    undone: &[usize],
) -> (Option<String>, Vec<(usize, usize)>) {
    let found = carried_weave(versions, carried).without(|step| undone.contains(&step));
    let conflicts = found.conflicts.iter().map(|one| (one.step, one.by));
    let text = found.bytes.map(|bytes| String::from_utf8(bytes).unwrap());
    (text, conflicts.collect())
}

fn carried_weave(versions: &[&str], carried: &[usize]) -> Weave {
    let steps = versions.iter().map(|text| match *text {
        "" => Step::Absent,
        text => held(text),
    });
    let undos = Undos {
        carried: carried.to_vec(),
        ..Undos::default()
    };
    Weave::with_undos(&steps.collect::<Vec<_>>(), &undos)
}

#[test]
fn what_git_carried_keeps_its_authors() {
    let base = "a\nb\nc\nd\ne\nf\n";
    let agent = "a\nb\nc\nd\nE1\nE2\nf\n";
    let upstream = "a\nB\nc\nd\ne\nf\n";
    let both = "a\nB\nc\nd\nE1\nE2\nf\n";
    let left = (Some(upstream.to_owned()), vec![]);
    // A merge or a rebase; stash, merge and pop; a switch and a cherry-pick.
    assert_eq!(without_carried(&[base, agent, both], &[2], &[1]), left);
    let popped = [base, agent, base, upstream, both];
    assert_eq!(without_carried(&popped, &[2, 3, 4], &[1]), left);
    let picked = [base, agent, upstream, both];
    assert_eq!(without_carried(&picked, &[2, 3], &[1]), left);
    // Without the record the lines are those of the last version.
    let stays = (Some(both.to_owned()), vec![]);
    assert_ne!(without_carried(&picked, &[], &[1]), left);
    // What another author decided about a line stays decided.
    let changed = [
        base,
        agent,
        "a\nb\nc\nd\nE1\nmine\nf\n",
        base,
        "a\nB\nc\nd\nE1\nmine\nf\n",
    ];
    assert_eq!(
        without_carried(&changed, &[3, 4], &[1]),
        (Some(changed[4].to_owned()), vec![(1, 2)])
    );
    // The versions that git carried are nobody's, whoever ran it.
    assert_eq!(without_carried(&[base, both], &[1], &[]), stays);
    // A forced switch of the agent's destroyed the user's text, and it is on the
    // first branch again.
    let forced = [
        "a1\nb1\nc1\n",
        "a1\nb1\nmine\n",
        "up\nb1\nc1\n",
        "a1\nb1\nc1\n",
    ];
    let back = (Some(forced[1].to_owned()), vec![]);
    assert_eq!(without_carried(&forced, &[3], &[2]), back);
    // On the other branch nothing of the agent's is left, and nothing comes
    // back to it.
    let away = [base, agent, "a\nb\nc\nd\nother\nf\n"];
    let unchanged = (Some(away[2].to_owned()), vec![]);
    assert_eq!(without_carried(&away, &[2], &[1]), unchanged);
}

#[test]
fn a_file_that_git_took_away_and_brought_back_is_its_authors() {
    let versions = ["", "a1\na2\n", "", "a1\na2\nB\n"];
    let left = (Some("B\n".to_owned()), vec![]);
    assert_eq!(without_carried(&versions, &[2, 3], &[1]), left);
    let same = ["", "a1\na2\n", "", "a1\na2\n"];
    assert_eq!(without_carried(&same, &[2, 3], &[1]).0, None);
}

#[test]
fn a_stash_that_was_popped_takes_nothing_away_any_more() {
    // One agent's line; another agent stashes it, merges and pops; the user goes
    // to a branch without the line.
    let (base, agent) = ("a\nb\nc\none\ntwo\nthree\n", "a\nb\nc\nred\ngreen\nblue\n");
    let [merged, other] = [agent, base].map(|text| format!("up\n{text}"));
    let versions = [base, agent, base, &merged, &other];
    let undos = Undos {
        carried: vec![3, 4],
        wiped: [2].into(),
        ..Undos::default()
    };
    let weave = Weave::with_undos(&versions.map(held), &undos);
    let found = weave.without(|step| step == 2);
    assert_eq!(found.bytes.unwrap(), other.as_bytes());
}

#[test]
fn a_content_has_nothing_of_what_an_undo_had_taken_back() {
    // An agent replaces two lines, and another one its line. Both are undone,
    // which gives the committed content, and done again.
    let steps = ["a\nb\nc\nd\n", "a\nB\nd\n", "a\nX\nd\n"].map(held);
    let [base, first, second] = steps;
    let steps = [base.clone(), first, second.clone(), base, second];
    let undos = Undos {
        undos: vec![3, 4],
        redos: vec![(3, 4)],
        ..Undos::default()
    };
    let weave = Weave::with_undos(&steps, &undos);
    let committed = weave.names_at(3);
    let found = weave.review(|step| matches!(step, 1 | 2), &committed);
    let told: Vec<_> = found
        .iter()
        .map(|one| (&*one.before, &*one.after))
        .collect();
    assert_eq!(told, [(&b"b\nc\n"[..], &b"X\n"[..])]);
}

#[test]
fn a_review_has_lines_that_git_carried() {
    let (base, agent) = ("a\nb\nc\nd1\n", "a\nb\nc\nD1\n");
    let weave = carried_weave(
        &[base, agent, base, "A\nb\nc\nd1\n", "A\nb\nc\nD1\n"],
        &[2, 3, 4],
    );
    let found = weave.review(|step| step == 1, &BTreeSet::new());
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].before, &*found[0].after),
        (&b"d1\n"[..], &b"D1\n"[..])
    );
    // What was kept before stays kept.
    let kept: BTreeSet<LineName> = found[0].names.iter().copied().collect();
    assert_eq!(weave.review(|step| step == 1, &kept), []);
}

#[test]
fn what_the_user_took_back_last_stays_so() {
    let (base, mine) = ("a\nb\nc\nd\n", "a\nB1\nB2\nc\nd\n");
    // The agent takes the file back, the user brings the text back and takes it
    // back as well.
    let text = |versions: &[&str]| without_carried(versions, &[], &[2]).0.unwrap();
    assert_eq!(text(&[base, mine, base, mine, base]), base);
    let typed = "a\nb\nc\nmine\n";
    assert_eq!(text(&[base, mine, base, mine, base, typed]), typed);
    // Or removes the file and makes it again.
    assert_eq!(text(&[base, mine, base, "", base]), base);
    assert_eq!(text(&[base, mine, base, "", "x\ny\n"]), "x\ny\n");
    // What only the agent took back comes back.
    assert_eq!(text(&[base, mine, base]), mine);
    // A switch decides nothing.
    let switched = without_carried(&[base, mine, base, mine, base], &[3, 4], &[2]);
    assert_eq!(switched.0.unwrap(), mine);
}

/// Returns the file's last content without version 1, and the texts about which
/// others have decided, each with the version and whether it is there.
fn without_decided(versions: &[&str], undos: &[usize]) -> (String, Vec<(usize, bool, String)>) {
    let steps = versions.iter().map(|text| match *text {
        "" => Step::Absent,
        text => held(text),
    });
    let undos = Undos {
        undos: undos.to_vec(),
        ..Undos::default()
    };
    let weave = Weave::with_undos(&steps.collect::<Vec<_>>(), &undos);
    let found = weave.without(|step| step == 1);
    assert_eq!(found.conflicts, []);
    let text = String::from_utf8(found.bytes.unwrap_or_default()).unwrap();
    let decided = found.decided.into_iter();
    let decided = decided.map(|one| (one.by, one.is_there, String::from_utf8(one.text).unwrap()));
    let taken = weave.without_sparing(|step| step == 1, |_| false, false);
    assert_eq!(taken.decided, []);
    (text, decided.collect())
}

#[test]
fn what_others_have_decided_about_stays_and_is_listed() {
    let (base, agent) = ("a\nb\nc\n", "a\nx\ny\nb\n");
    let told = |by: usize, is_there, text: &str| (by, is_there, text.to_owned());
    // The user takes the agent's lines away and puts them back.
    let found = without_decided(&[base, "a\nx\ny\nb\nc\n", base, "a\nx\ny\nb\nc\n"], &[]);
    let put_back = told(3, true, "x\ny\n");
    assert_eq!(found, ("a\nx\ny\nb\nc\n".into(), vec![put_back]));
    // Only one of them.
    let found = without_decided(&[base, agent, "a\nx\nb\n", agent], &[]);
    assert_eq!(found.1, [told(3, true, "y\n")]);
    assert_eq!(found.0, "a\ny\nb\nc\n");
    // The agent removed a line. The user put it back, then removed it, too.
    let found = without_decided(&[base, "a\nc\n", base, "a\nc\n"], &[]);
    assert_eq!(found, ("a\nc\n".into(), vec![told(3, false, "b\n")]));
    // A whole file, as from a backup.
    let found = without_decided(&["", "x\n", "", "x\n"], &[]);
    assert_eq!(found, ("x\n".into(), vec![told(3, true, "x\n")]));
    // An undo of another author's change decides nothing.
    let found = without_decided(&[base, agent, "a\nx\nB\nb\n", agent], &[3]);
    assert_eq!(found, (base.into(), vec![]));
    // Nor does an agent's own change, nor what is still as the user left it.
    assert_eq!(without_decided(&[base, agent, base], &[]).1, []);
}

/// Returns the file's last content without the versions in `undone`, and the
/// texts that stay by a decision. An empty text is no file.
fn left(versions: &[&str], undos: &[usize], undone: &[usize]) -> (String, Vec<String>) {
    let steps = versions.iter().map(|text| match *text {
        "" => Step::Absent,
        text => held(text),
    });
    let undos = Undos {
        undos: undos.to_vec(),
        ..Undos::default()
    };
    let weave = Weave::with_undos(&steps.collect::<Vec<_>>(), &undos);
    let found = weave.without(|step| undone.contains(&step));
    let decided = found.decided.into_iter();
    let decided = decided.map(|one| String::from_utf8(one.text).unwrap());
    let text = String::from_utf8(found.bytes.unwrap_or_default()).unwrap();
    (text, decided.collect())
}

#[test]
fn a_file_with_a_decided_line_stays() {
    // The user removes the file, the agent makes it again, and the user puts
    // back a line that the user had removed.
    let (mine, less) = ("aa\none\n", "aa\n");
    let versions = ["aa\nbb\n", mine, "", mine, less, mine];
    let (text, decided) = left(&versions, &[], &[1, 3]);
    let wanted = vec!["aa\n".into(), "one\n".into()];
    assert_eq!((text.as_str(), decided), (mine, wanted));
}

#[test]
fn lines_of_others_stay_in_a_file_that_others_have_built_on() {
    // The user removes the file, the agent brings it back and adds a line, and
    // the user goes on with it.
    let base = "aa\nbb\n";
    let versions = [base, "", base, "aa\nbb\none\n", "aa\nbb\none\nmine\n"];
    let (text, decided) = left(&versions, &[], &[2, 3]);
    assert_eq!(
        (text.as_str(), decided),
        ("aa\nbb\nmine\n", vec![base.into()])
    );
    // Without the last version, no other author has changed the file since.
    assert_eq!(left(&versions[..4], &[], &[2, 3]).0, "");
}

#[test]
fn a_line_that_another_author_typed_again_is_listed() {
    let base = "aa\nbb\n";
    let versions = [base, "aa\none\ntwo\nbb\n", base, "aa\none\nbb\n"];
    let (text, decided) = left(&versions, &[], &[1]);
    assert_eq!(
        (text.as_str(), decided),
        (versions[3], vec!["one\n".into()])
    );
}

#[test]
fn a_change_that_stays_brings_no_own_line_back() {
    let versions = [
        "aa\nbb\ncc\ndd\n",
        "aa\none\ntwo\nthree\ncc\ndd\n",
        "aa\none\ntwo\nmine\ndd\n",
        "aa\none\nfour\ndd\n",
    ];
    let (text, _) = left(&versions, &[], &[1, 3]);
    assert!(!text.contains("two"), "{text}");
    assert!(text.contains("mine"), "{text}");
}

#[test]
fn what_an_undo_put_back_is_its_authors_again() {
    // Another agent had removed it, and is undone.
    let versions = ["aa\n", "aa\none\n", "aa\n", "mine\naa\n", "mine\naa\none\n"];
    assert_eq!(left(&versions, &[4], &[1]).0, "mine\naa\n");
}

#[test]
fn a_version_that_was_undone_is_not_the_one_that_is_repeated() {
    let (base, mine) = ("aa\nbb\n", "aa\nmine\n");
    // One agent resets the file and is undone; another one resets it.
    let versions = [base, mine, base, mine, base];
    assert_eq!(left(&versions, &[3], &[2]).0, base);
}

#[test]
fn a_stash_does_not_repeat_what_an_undo_has_taken_back() {
    let (base, mine) = ("aa\nbb\ncc\n", "aa\nmine\ncc\n");
    // One agent resets the file and is undone; the stash of another one takes
    // the user's line away, which the first one did not do again.
    let steps = [base, mine, base, mine, base].map(held);
    let undos = Undos {
        undos: vec![3],
        carried: vec![4],
        ..Undos::default()
    };
    let weave = Weave::with_undos(&steps, &undos);
    let found = weave.without(|step| step == 2);
    assert_eq!(found.bytes.unwrap(), base.as_bytes());
}

#[test]
fn a_line_that_the_author_removed_and_put_back_is_not_the_authors() {
    let base = "a1\nb2\nc3\n";
    // The agent's edit, its stash of it, the user's edit, and another stash.
    let versions = [base, "a1\nagent\nc3\n", base, "a1\nmine\nc3\n", base];
    let left = (Some(base.to_owned()), vec![]);
    assert_eq!(without_carried(&versions, &[4], &[1, 2]), left);
    // Without the agent's stash alone, its edit is there.
    let edited = Some("a1\nagent\nc3\n".to_owned());
    assert_eq!(without_carried(&versions, &[4], &[2]).0, edited);
}

#[test]
fn an_undo_takes_only_its_authors_changes_back() {
    let (base, mine) = ("a1\nb2\nc3\nd4\n", "mine\nb2\nc3\nd4\n");
    // Two agents reset what the user wrote before. The undo of the first one
    // gives a content that there was before the second one.
    let versions = [base, mine, base, "a1\nb2\nc3\nmore\n", base, mine];
    assert_eq!(left(&versions, &[5], &[4]).0, "mine\nb2\nc3\nmore\n");
    assert_eq!(left(&versions, &[5], &[2]).0, mine);
}

#[test]
fn a_removed_file_that_git_brought_and_took_away_comes_back() {
    let base = "a1\nb2\n";
    // A rebase that stopped at the agent's removal, and was called off.
    let versions = [base, "", "a1\nb2\nc3\n", ""];
    let back = Some(base.to_owned());
    assert_eq!(without_carried(&versions, &[2, 3], &[1]).0, back);
    // The user has removed it since.
    let versions = [base, "", "a1\nb2\nc3\n", "", base, ""];
    assert_eq!(without_carried(&versions, &[2, 3, 4], &[1]).0, None);
    // Git took away a file of which the agent had removed a line.
    let versions = [base, "a1\n", ""];
    assert_eq!(without_carried(&versions, &[2], &[1]).0, None);
}

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
