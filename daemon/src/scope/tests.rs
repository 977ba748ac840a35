#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use touchmark_engine::patterns::Patterns;
use touchmark_engine::{Sweep, Swept};
use touchmark_proto::{BaseDirectories, Places, RelPath};

use super::Settings;
use super::index::milliseconds;
use super::known::Workspace;
use super::rules::Everywhere;
use super::walk::moment;
use crate::content::Met;
use crate::content::{MAX_BYTES, Reader};
use crate::system::open::trust;
use crate::witness::Fences;

const LONG: Duration = Duration::from_secs(60);

/// Returns places in a directory that is not swept.
fn places(root: &Path) -> Places {
    let own = root.join(".git/touchmark");
    let base = BaseDirectories {
        runtime: None,
        state: own.clone(),
        config: own.clone(),
        cache: own,
    };
    Places::new(&base, root, None)
}

fn settings(root: &Path) -> Settings {
    let secrets = Patterns::new(["*.secret"]).unwrap();
    Settings {
        root: root.to_owned(),
        reader: Reader::new(root, secrets, 1 << 20, MAX_BYTES),
        places: places(root),
        exclude: Patterns::default(),
        keep_file: 1 << 20,
        keep_total: 64 << 20,
        fences: Fences::default(),
        guard: None,
    }
}

/// Any number of directories may have ignore files.
#[test]
fn patterns_are_limited_in_all_directories_together() {
    let world = tempfile::tempdir().unwrap();
    let rules: String = (0..4_500).map(|n| format!("{n}\n")).collect();
    let trust = trust(world.path());
    let all = Everywhere::new(world.path(), trust, Patterns::default());
    let rules_of = |name: &str| {
        let directory = world.path().join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(".gitignore"), format!("{rules}hidden\n")).unwrap();
        let rules = all.of(&directory, None, false);
        let path = RelPath::new(format!("{name}/hidden").as_bytes()).unwrap();
        (all.ignore(&rules, &path, false), rules)
    };
    let mut held = ["a", "b", "c"].map(rules_of).to_vec();
    let ignored: Vec<bool> = held.iter().map(|(ignored, _)| *ignored).collect();
    assert_eq!(ignored, [true, true, false]);
    // A directory that is gone leaves room.
    held.remove(0);
    assert!(rules_of("d").0);
}

/// Returns the changes since the last sweep.
fn changes(workspace: &mut Workspace<'_>) -> Vec<String> {
    names(workspace.sweep(true, &|| false).0)
}

/// Completes a sweep that had no time. Returns the changes that it finds.
fn go_on(workspace: &mut Workspace<'_>) -> Vec<String> {
    let (swept, _) = workspace.go_on(true, &|| false);
    assert_eq!(swept.partial, None);
    names(swept)
}

fn names(swept: Swept) -> Vec<String> {
    let changes = swept.changes.iter();
    changes.map(|file| file.path.to_string_lossy()).collect()
}

/// Each sweep is cut short after a few directories. Together they reach every
/// directory, and the rest of the last one returns the remaining changes.
#[test]
fn sweeps_that_never_have_time_reach_all_directories_in_turn() {
    let world = tempfile::tempdir().unwrap();
    let root = world.path().canonicalize().unwrap();
    let all: Vec<String> = (0..40).map(|number| format!("d{number}/f")).collect();
    for name in &all {
        fs::create_dir(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), "one").unwrap();
    }
    let settings = settings(&root);
    let mut workspace = Workspace::new(&settings);
    assert_eq!(changes(&mut workspace), [""; 0]);
    let mut seen = BTreeSet::new();
    for round in 0..20 {
        for name in &all {
            fs::write(root.join(name), format!("round {round}")).unwrap();
        }
        let asked = AtomicUsize::new(0);
        let few = || asked.fetch_add(1, Ordering::Relaxed) > 15;
        let (swept, _) = workspace.sweep(true, &few);
        assert!(swept.partial.is_some(), "round {round}");
        seen.extend(names(swept));
    }
    assert_eq!(seen.len(), all.len());
    let mut rest = go_on(&mut workspace);
    rest.dedup();
    assert!(!rest.is_empty());
    assert_eq!(changes(&mut workspace), [""; 0]);
}

/// A file that comes with its directory keeps its own times.
#[test]
fn a_file_that_was_moved_with_its_directory_was_changed_then() {
    let world = tempfile::tempdir().unwrap();
    let root = world.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/f"), "x").unwrap();
    let settings = settings(&root);
    let mut workspace = Workspace::new(&settings);
    changes(&mut workspace);
    read_all(&mut workspace);
    let_stats_settle();
    let before = moment();
    fs::rename(root.join("a"), root.join("c")).unwrap();
    let (swept, _) = workspace.sweep(true, &|| false);
    assert_eq!(swept.changes.len(), 2, "{swept:?}");
    let (gone, came) = (&swept.changes[0], &swept.changes[1]);
    assert_eq!(
        (gone.changed_ms, came.from.as_ref()),
        (None, Some(&gone.path))
    );
    // The clock of files goes by the system's ticks.
    let since = milliseconds(before - 20_000_000);
    assert!(came.changed_ms >= since, "{came:?}, since {since:?}");
}

fn read_all(workspace: &mut Workspace<'_>) -> Vec<Met> {
    let mut met = Vec::new();
    while !workspace.has_read_all() {
        met.extend(workspace.read_on(64));
    }
    met
}

/// Waits until every stat proves its file's content.
fn let_stats_settle() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Returns the least of several measured times.
fn least(mut measured: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let began = Instant::now();
        measured();
        began.elapsed()
    });
    times.min().unwrap()
}

/// Reads all names and stats below a directory, in the ordinary way.
fn stats_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => stats_below(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

#[test]
fn a_look_at_ten_thousand_unchanged_files_costs_what_their_stats_cost() {
    let files: usize =
        std::env::var("TOUCHMARK_SCOPE_FILES").map_or(10_000, |told| told.parse().unwrap());
    let world = tempfile::tempdir().unwrap();
    let root = world.path().canonicalize().unwrap();
    for number in 0..files {
        let directory = root.join(format!("d{}/e{}", number % 50, number % 500));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("file-{number}.rs")), "x").unwrap();
    }
    let_stats_settle();
    let settings = settings(&root);
    let mut workspace = Workspace::new(&settings);
    let first = Instant::now();
    assert_eq!(changes(&mut workspace), [""; 0]);
    let first = first.elapsed();
    read_all(&mut workspace);
    changes(&mut workspace);
    let floor = least(|| assert!(stats_below(&root) > 0));
    let own = least(|| assert_eq!(changes(&mut workspace), [""; 0]));
    println!("{files} files: {own:?}, the first {first:?}, a plain walk {floor:?}");
    assert!(own < floor * 2, "{own:?}, a plain walk {floor:?}");
}

#[test]
fn secrets_are_told_apart_and_only_so_much_is_kept_of_what_nobody_changed() {
    let world = tempfile::tempdir().unwrap();
    let root = world.path().canonicalize().unwrap();
    fs::write(root.join("a.secret"), "hidden").unwrap();
    fs::write(root.join("b"), "x".repeat(600)).unwrap();
    fs::write(root.join("c"), "y".repeat(600)).unwrap();
    let_stats_settle();
    let mut settings = settings(&root);
    settings.keep_total = 1_000;
    let mut workspace = Workspace::new(&settings);
    assert_eq!(changes(&mut workspace), [""; 0]);
    let met = read_all(&mut workspace);
    let kept = |met: &[Met]| met.iter().filter(|(_, bytes)| bytes.is_some()).count();
    assert_eq!((met.len(), kept(&met)), (2, 1));
    fs::write(root.join("a.secret"), "shown").unwrap();
    fs::write(root.join("c"), "changed").unwrap();
    let (swept, met) = workspace.sweep(true, &|| false);
    assert!(swept.changes.iter().all(|file| file.before.is_some()));
    assert_eq!((swept.changes.len(), kept(&met)), (2, 1));
}

#[test]
fn what_was_not_looked_at_in_time_is_met_later_and_never_told_as_new() {
    let world = tempfile::tempdir().unwrap();
    let root = world.path().canonicalize().unwrap();
    for name in ["a/b/c/f", "a/g", "h"] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), name).unwrap();
    }
    let settings = settings(&root);
    let mut workspace = Workspace::new(&settings);
    let (swept, _) = workspace.sweep(true, &|| true);
    assert!(swept.partial.is_some());
    go_on(&mut workspace);
    read_all(&mut workspace);
    assert_eq!(changes(&mut workspace), [""; 0]);
    fs::write(root.join("a/b/c/f"), "changed").unwrap();
    let (swept, _) = workspace.sweep(true, &|| true);
    assert!(swept.partial.is_some());
    assert_eq!(
        changes(&mut workspace),
        ["a/b/c/f"],
        "it is told by the next"
    );
    // Also by one that is made for no command, since a command may have done
    // it, and by one that nothing asked for.
    fs::write(root.join("h"), "changed").unwrap();
    workspace.sweep(true, &|| true);
    let between = Sweep::Between(Vec::new());
    let (swept, _) = workspace.look(&between, Instant::now() + LONG);
    assert_eq!(names(swept), ["h"]);
    fs::write(root.join("a/g"), "changed").unwrap();
    workspace.sweep(false, &|| true);
    assert_eq!(go_on(&mut workspace), ["a/g"]);
    fs::remove_dir_all(root.join("a")).unwrap();
    let mut gone = changes(&mut workspace);
    gone.sort();
    assert_eq!(gone, ["a/b/c/f", "a/g"]);
}

/// A directory whose names are unchanged is compared in place.
#[test]
fn a_directory_with_the_same_names_is_looked_at_by_its_present_rules() {
    let world = tempfile::tempdir().unwrap();
    let root = world.path().canonicalize().unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    for name in ["sub/.gitignore", "sub/a.o", "sub/a.txt", "sub/gone"] {
        fs::write(root.join(name), "x").unwrap();
    }
    fs::write(root.join("sub/.gitignore"), "*.o\n").unwrap();
    let_stats_settle();
    let settings = settings(&root);
    let mut workspace = Workspace::new(&settings);
    workspace.sweep(false, &|| false);
    read_all(&mut workspace);
    let_stats_settle();
    assert_eq!(changes(&mut workspace), [""; 0]);
    // The name is the same, the file is another.
    fs::write(root.join("sub/a.txt"), "y").unwrap();
    fs::write(root.join("sub/a.o"), "y").unwrap();
    assert_eq!(changes(&mut workspace), ["sub/a.txt"]);
    let_stats_settle();
    // An ignore file that is written in place leaves the directory's times.
    fs::write(root.join("sub/.gitignore"), "*.txt\n").unwrap();
    assert_eq!(changes(&mut workspace), ["sub/.gitignore"]);
    let_stats_settle();
    fs::write(root.join("sub/a.txt"), "z").unwrap();
    fs::write(root.join("sub/a.o"), "z").unwrap();
    assert_eq!(changes(&mut workspace), ["sub/a.o"]);
    fs::remove_file(root.join("sub/gone")).unwrap();
    assert_eq!(changes(&mut workspace), ["sub/gone"]);
}

/// Runs git commands in a directory.
fn git(root: &Path, line: &str) {
    let output = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_git_vouches_for_is_not_read_and_is_known_once_it_has_changed() {
    let world = tempfile::tempdir().unwrap();
    let root = world.path().canonicalize().unwrap();
    for name in ["clean", "dirty"] {
        fs::write(root.join(name), format!("{name}\n")).unwrap();
    }
    git(
        &root,
        "git init -q && touch -d 2020-01-01 clean dirty && git add -A && \
         git -c user.name=a -c user.email=a commit -qm one && git pack-refs --all && git gc -q",
    );
    fs::write(root.join("dirty"), "edited\n").unwrap();
    let_stats_settle();
    let settings = settings(&root);
    let mut workspace = Workspace::new(&settings);
    assert_eq!(changes(&mut workspace), [""; 0]);
    let met: Vec<_> = read_all(&mut workspace)
        .into_iter()
        .map(|(hash, _)| hash)
        .collect();
    assert_eq!(
        met,
        [touchmark_proto::Hash::of(b"edited\n")],
        "one is dirty"
    );
    for name in ["clean", "dirty"] {
        fs::write(root.join(name), "changed\n").unwrap();
    }
    let (swept, met) = workspace.sweep(true, &|| false);
    let mut before: Vec<_> = swept.changes.iter().map(|file| file.before).collect();
    before.sort_by_key(|held| held.map(|held| held.size));
    let hash = |content: &str| Some(touchmark_proto::Hash::of(content.as_bytes()));
    let known: Vec<_> = before.iter().map(|held| held.unwrap().hash).collect();
    assert_eq!(known, [hash("clean\n"), hash("edited\n")]);
    let kept: Vec<_> = met.iter().map(|(kept, _)| Some(*kept)).collect();
    assert!(kept.contains(&hash("clean\n")), "git's bytes are kept");
}
