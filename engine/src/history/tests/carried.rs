//! What git carried, and what others have decided.

use super::*;

/// Returns the file's last content without the versions in `undone`, and the
/// conflicts' authors, if git carried the versions in `carried`. An empty text
/// stands for no file.
pub(super) fn without_carried(
    versions: &[&str],
    carried: &[usize],
    undone: &[usize],
) -> (Option<String>, Vec<(usize, usize)>) {
    let found = carried_weave(versions, carried).without(|step| undone.contains(&step));
    let conflicts = found.conflicts.iter().map(|one| (one.step, one.by));
    let text = found.bytes.map(|bytes| String::from_utf8(bytes).unwrap());
    (text, conflicts.collect())
}

pub(super) fn carried_weave(versions: &[&str], carried: &[usize]) -> Weave {
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
    // The versions that git carried have no author, no matter who ran it.
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
pub(super) fn without_decided(
    versions: &[&str],
    undos: &[usize],
) -> (String, Vec<(usize, bool, String)>) {
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
pub(super) fn left(versions: &[&str], undos: &[usize], undone: &[usize]) -> (String, Vec<String>) {
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
