//! Rows of the scenarios' table about many files and git: S7git, S10, S10git,
//! S41.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use touchmark_tests::user::{self, git, pause};
use touchmark_tests::{Lane, authors, children, lanes, lanes_at_once, paths};

#[test]
fn s7git_checkout_of_one_file_and_two_edits() {
    lanes_at_once(3, |lane| {
        let dir = lane.dir();
        git(&dir, &["init", "-q"]);
        let (name, path) = lane.untracked("a.txt", "one\n");
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-q", "-m", "one"]);
        user::write(&path, "two\n");
        lane.agent.read(&name);
        git(&dir, &["checkout", "-q", "--", "a.txt"]);
        let change = lane.reported_one(&name);
        assert_eq!(authors(&change), ["user"], "{change}");
        user::write(&path, "three\n");
        lane.reported_one(&name);
        user::append(&path, "four\n");
        lane.reported_one(&name);
    });
}

/// Returns the names of the thousand files.
fn thousand(lane: &Lane) -> Vec<String> {
    (0..1000)
        .map(|number| lane.name(&format!("d{}/f{number}.txt", number % 10)))
        .collect()
}

#[test]
fn s10_a_thousand_files_rewritten_at_once() {
    lanes_at_once(1, |lane| {
        let names = thousand(lane);
        for name in &names {
            lane.world.file(name, format!("{name}\n"));
        }
        lane.agent.read_all(&names);
        let done = AtomicBool::new(false);
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for name in &names {
                    user::write(&lane.world.path(name), &format!("{name} again\n"));
                }
                done.store(true, Ordering::SeqCst);
            });
            let mut session = lane.world.session(&lane.agent.name);
            loop {
                let last = done.load(Ordering::SeqCst);
                for path in session.taken() {
                    *times.entry(path).or_default() += 1;
                }
                if last {
                    break;
                }
                pause(lane.rep as u64 % 5);
            }
        });
        let twice: Vec<_> = times.iter().filter(|(_, times)| **times != 1).collect();
        assert!(
            twice.is_empty(),
            "not once: {:?}",
            &twice[..twice.len().min(5)]
        );
        assert_eq!(times.len(), names.len(), "listed");
        lane.silent();
        let stale = lane
            .agent
            .ok("file/status", serde_json::json!({"state": ["stale"]}));
        assert_eq!(stale["files"].as_array().map(Vec::len), Some(1000));
    });
}

/// Returns a repository with 1,000 files that differ between `main` and `other`
/// and 100 that do not.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
    TEMPLATE
        .get_or_init(|| {
            let base = tempfile::tempdir().unwrap();
            let dir = base.path();
            git(dir, &["init", "-q", "-b", "main"]);
            let fill = |word: &str| {
                for number in 0..1000 {
                    let sub = dir.join(format!("d{}", number % 10));
                    fs::create_dir_all(&sub).unwrap();
                    fs::write(
                        sub.join(format!("f{number}.txt")),
                        format!("{word} {number}\n"),
                    )
                    .unwrap();
                }
            };
            fill("main");
            fs::create_dir(dir.join("same")).unwrap();
            for number in 0..100 {
                user::write(&dir.join(format!("same/f{number}.txt")), "same\n");
            }
            git(dir, &["add", "-A"]);
            git(dir, &["commit", "-q", "-m", "main"]);
            git(dir, &["checkout", "-q", "-b", "other"]);
            fill("other");
            git(dir, &["commit", "-q", "-a", "-m", "other"]);
            git(dir, &["checkout", "-q", "main"]);
            base
        })
        .path()
}

/// Copies the template into the lane. Returns the names of the files that
/// differ.
fn repository(lane: &mut Lane) -> Vec<String> {
    fs::remove_dir(lane.dir()).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-a").args([template(), &lane.dir()]);
    let copied = children::start(&mut copy).and_then(|mut copy| copy.wait());
    assert!(copied.unwrap().success());
    let differing = thousand(lane);
    let mut all = differing.clone();
    all.extend((0..100).map(|number| lane.name(&format!("same/f{number}.txt"))));
    lane.agent.read_all(&all);
    differing
}

fn exactly(lane: &mut Lane, expected: &[String], what: &str) {
    let listed = paths(&lane.agent.take());
    let mut expected = expected.to_vec();
    expected.sort();
    if listed != expected {
        let missing: Vec<_> = expected
            .iter()
            .filter(|path| !listed.contains(path))
            .collect();
        let extra: Vec<_> = listed
            .iter()
            .filter(|path| !expected.contains(path))
            .collect();
        panic!(
            "{what}: {} listed, {} should be; {} missing {:?}, {} extra {:?}; {:#?}",
            listed.len(),
            expected.len(),
            missing.len(),
            &missing[..missing.len().min(3)],
            extra.len(),
            &extra[..extra.len().min(3)],
            missing
                .first()
                .or(extra.first())
                .map(|path| lane.agent.history(path)),
        );
    }
}

#[test]
fn s10git_checkout_of_a_branch_that_differs_in_a_thousand_files() {
    // The template is made before the clock of any repetition runs.
    template();
    lanes_at_once(1, |lane| {
        let dir = lane.dir();
        let differing = repository(lane);
        git(&dir, &["checkout", "-q", "other"]);
        if lane.rep.is_multiple_of(2) {
            exactly(lane, &differing, "at once");
        } else {
            lane.settle();
            exactly(lane, &differing, "settled");
        }
        exactly(lane, &[], "again");
        // There and back.
        lane.agent.read_all(&differing);
        git(&dir, &["checkout", "-q", "main"]);
        git(&dir, &["checkout", "-q", "other"]);
        exactly(lane, &[], "there and back");
        lane.settle();
        exactly(lane, &[], "there and back, settled");
        // One more rewrite.
        for name in &differing {
            user::write(&lane.world.path(name), "once more\n");
        }
        exactly(lane, &differing, "one more rewrite");
        lane.settle();
        exactly(lane, &[], "and no more");
    });
}

/// Without a query in between, a checkout to the other branch and back leaves
/// no change.
#[test]
fn s41_checkout_of_another_branch_under_the_agent() {
    lanes(|lane| {
        let dir = lane.dir();
        git(&dir, &["init", "-q", "-b", "main"]);
        let names: Vec<String> = (0..20).map(|n| lane.name(&format!("f{n}.txt"))).collect();
        for name in &names {
            lane.world.file(name, "main\n");
        }
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-q", "-m", "main"]);
        git(&dir, &["checkout", "-q", "-b", "other"]);
        for name in &names[..10] {
            lane.world.file(name, "other\n");
        }
        fs::remove_file(lane.world.path(&names[10])).unwrap();
        git(&dir, &["commit", "-q", "-a", "-m", "other"]);
        git(&dir, &["checkout", "-q", "main"]);
        lane.agent.read_all(&names);
        git(&dir, &["checkout", "-q", "other"]);
        let differing: Vec<&str> = names[..11].iter().map(String::as_str).collect();
        for change in lane.reported(&differing) {
            assert_eq!(authors(&change), ["user"], "{change}");
        }
        git(&dir, &["checkout", "-q", "main"]);
        lane.silent();
        for name in &names {
            assert_eq!(lane.agent.state(name), "fresh", "{name}");
        }
    });
}
