//! Files of 200,000 lines.
#![allow(clippy::unwrap_used)]

use super::*;

const LINES: usize = 200_000;

/// A line of a real file's length: the file has 8 MB.
fn line(at: usize, by: &str) -> String {
    format!("{by} {at:06} {}\n", "x".repeat(30))
}

/// Returns a file in which the lines that a table names are by others.
fn text(by: impl Fn(usize) -> &'static str) -> String {
    (0..LINES).map(|at| line(at, by(at))).collect()
}

fn held(text: &str) -> Step {
    Step::Held(text.as_bytes().into())
}

/// The agent changes every hundredth line, the user every thousandth of the
/// others and adds a line at both ends, and the agent removes a line and adds
/// one.
fn versions() -> Vec<String> {
    let agent = |at: usize| at % 100 == 50;
    let user = |at: usize| at % 1_000 == 7;
    let base = text(|_| "base");
    let by_agent = text(|at| if agent(at) { "agent" } else { "base" });
    let both = text(|at| match (agent(at), user(at)) {
        (true, _) => "agent",
        (_, true) => "user",
        _ => "base",
    });
    let by_user = format!("user first\n{both}user last\n");
    let gone = line(199_990, "base");
    let last = by_user.replace(&gone, "agent instead\n");
    vec![base, by_agent, by_user, last]
}

#[test]
fn each_line_has_its_author() {
    let versions = versions();
    let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
    let weave = Weave::new(&steps);
    let blame = weave.blame(3);
    assert_eq!(blame.len(), LINES + 2);
    for (step, text) in blame {
        let by = match text {
            [b'b', ..] => 0,
            [b'u', ..] => 2,
            b"agent instead\n" => 3,
            _ => 1,
        };
        assert_eq!(step, by, "{:?}", std::str::from_utf8(text));
    }
    let changed = weave.compare(2, 3);
    let changed = changed.iter().filter(|line| line.kind != Kind::Context);
    assert_eq!(changed.count(), 2);
    assert_eq!(weave.review(|step| step == 3, &Default::default()).len(), 1);
}

#[test]
fn only_the_authors_lines_go() {
    let versions = versions();
    let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
    let found = Weave::new(&steps).without(|step| step == 1 || step == 3);
    assert_eq!(found.conflicts, []);
    let user = |at: usize| at % 1_000 == 7;
    let left = text(|at| if user(at) { "user" } else { "base" });
    let left = format!("user first\n{left}user last\n");
    assert!(found.bytes.as_deref() == Some(left.as_bytes()));
}

#[test]
fn a_reindented_file_keeps_its_authors_also_if_half_of_it_is_taken_back() {
    let versions = versions();
    let indented: String = versions[2]
        .split_inclusive('\n')
        .map(|line| format!("    {line}"))
        .collect();
    let lines = versions[2].split_inclusive('\n').zip(0..);
    let half: String = lines
        .map(|(line, at)| match at % 2 {
            0 => line.to_owned(),
            _ => format!("    {line}"),
        })
        .collect();
    let steps = [&versions[0], &versions[1], &versions[2], &indented, &half];
    let steps: Vec<Step> = steps.iter().map(|text| held(text)).collect();
    let weave = Weave::new(&steps);
    let blame = weave.blame(4);
    assert!(blame.iter().all(|(step, _)| *step < 3));
    let found = weave.without(|step| step == 3);
    assert!(found.bytes.as_deref() == Some(versions[2].as_bytes()));
}

#[test]
fn a_rewritten_file_stays_as_a_conflict() {
    let mut versions = versions();
    versions.push(format!("{}and one more\n", text(|_| "rewritten")));
    let steps: Vec<Step> = versions.iter().map(|text| held(text)).collect();
    let weave = Weave::new(&steps);
    let found = weave.without(|step| step == 1 || step == 3);
    assert!(found.bytes.as_deref() == Some(versions[4].as_bytes()));
    assert!(!found.conflicts.is_empty());
    // Every other line of the rewritten file is taken back.
    let lines = versions[3].split_inclusive('\n');
    let mixed = lines.zip(versions[4].split_inclusive('\n')).zip(0..);
    let mixed: String = mixed
        .map(|((old, new), at)| if at % 2 == 0 { old } else { new })
        .collect();
    let steps: Vec<Step> = steps.into_iter().chain([held(&mixed)]).collect();
    let found = Weave::new(&steps).without(|step| step == 4);
    let others = |line: &&str| !line.starts_with("rewritten");
    let left = String::from_utf8(found.bytes.unwrap()).unwrap();
    let kept: Vec<&str> = left.split_inclusive('\n').filter(others).collect();
    let there = mixed.split_inclusive('\n').filter(others);
    let mut kept = kept.into_iter();
    assert!(there.into_iter().all(|line| kept.any(|one| one == line)));
}

#[test]
fn lines_that_could_not_be_compared_are_undone_together_or_not_at_all() {
    // Lines in no order, of which none is unique.
    let mut state = 1_u64;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{}\n", (state >> 33) % 1_000)
    };
    let old: Vec<String> = (0..LINES).map(next).collect();
    let mut new = old.clone();
    new.reverse();
    let mut since = new.clone();
    since.insert(100_000, "mine\n".into());
    let mut changed = new.clone();
    changed[50_000] = "eight\n".into();
    let [old, new, since, changed] = [old, new, since, changed].map(|lines| lines.concat());
    let steps = [held(&old), held(&new)];
    let found = Weave::new(&steps).without(|step| step == 1);
    assert!(found.bytes.as_deref() == Some(old.as_bytes()));
    // The user has added a line in it since: it stays.
    let steps = [held(&old), held(&new), held(&since)];
    let found = Weave::new(&steps).without(|step| step == 1);
    let left = String::from_utf8(found.bytes.unwrap()).unwrap();
    assert!(left.contains("mine\n"));
    // The user has changed a line of it since: all of it stays.
    let steps = [held(&old), held(&new), held(&changed)];
    let found = Weave::new(&steps).without(|step| step == 1);
    assert!(found.bytes.as_deref() == Some(changed.as_bytes()));
    assert_eq!(found.conflicts.len(), 1);
}
