//! Names that become other names, of files and of directories.

use std::fs;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use touchmark_engine::{Hint, Input};

use super::CHOICE;
use super::world::{World, word};
use crate::watch::backend::RawKind;
use crate::watch::{Choice, RawEvent};

#[test]
fn a_move_to_where_nobody_looks_is_a_removal_before_the_fence() {
    let mut world = World::new();
    world.write("f", "a");
    world.mkdir("away");
    world.track(&["f"]);
    world.mv("f", "away/f");
    assert_eq!(world.seen(), "Removed(f)");
    world.mv("away/f", "f");
    assert_eq!(world.seen(), "Closed(f)");
}

#[test]
fn a_move_to_where_nobody_looks_needs_no_later_event() {
    let mut world = World::new();
    world.write("f", "a");
    world.mkdir("away");
    world.track(&["f"]);
    world.mv("f", "away/f");
    let mut out = Vec::new();
    while out.is_empty() {
        let raw = world.next_event();
        world.watcher.digest(raw, &mut out);
    }
    assert_eq!(word(&out[0]), "Removed(f)");
}

#[test]
fn renames_between_watched_directories() {
    let mut world = World::new();
    world.mkdir("a");
    world.mkdir("b");
    world.write("a/f", "1");
    world.write("b/g", "2");
    world.track(&["a/f", "b/g"]);
    world.mv("a/f", "b/new");
    assert_eq!(world.seen(), "Renamed(a/f,b/new)");
    world.write("a/f", "3");
    world.inputs();
    world.mv("a/f", "b/g");
    assert_eq!(world.seen(), "Renamed(a/f,b/g) Closed(b/g)");
}

#[test]
fn an_exchange_of_names_renames_nothing_away() {
    let mut world = World::new();
    world.write("f", "1");
    world.write("f.tmp", "2");
    world.track(&["f"]);
    let (f, tmp) = (world.at("f"), world.at("f.tmp"));
    renameat_with(CWD, &tmp, CWD, &f, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(world.seen(), "Closed(f)");
    // The other name works as well.
    world.track(&["f.tmp"]);
    renameat_with(CWD, &f, CWD, &tmp, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(world.seen(), "Closed(f.tmp) Closed(f)");
}

#[test]
fn a_fence_between_the_halves_of_an_exchange_has_the_first_taken_back() {
    let mut world = World::new();
    world.write("f", "1");
    world.write("f.tmp", "2");
    world.track(&["f", "f.tmp"]);
    let event = |kind, path: &str, cookie| RawEvent {
        kind,
        path: world.at(path),
        cookie: Some(cookie),
        by_directory: true,
        ..RawEvent::loss(0)
    };
    let halves = [
        event(RawKind::MovedFrom, "f", 7),
        event(RawKind::MovedTo, "f.tmp", 7),
        event(RawKind::MovedFrom, "f.tmp", 8),
        event(RawKind::MovedTo, "f", 8),
    ];
    let mut out = Vec::new();
    for (n, raw) in halves.into_iter().enumerate() {
        world.watcher.digest(raw, &mut out);
        if n == 1 {
            let fence = RawEvent {
                kind: RawKind::Fence(0),
                ..RawEvent::loss(0)
            };
            world.watcher.digest(fence, &mut out);
        }
    }
    let words: Vec<_> = out.iter().map(word).collect();
    assert_eq!(
        words.join(" "),
        "Renamed(f,f.tmp) Closed(f.tmp) Exchanged(f,f.tmp) Closed(f.tmp) Closed(f)"
    );
}

#[test]
fn a_name_renamed_and_made_anew_is_a_rename() {
    let mut world = World::new();
    world.write("f", "1");
    world.track(&["f"]);
    world.mv("f", "g");
    world.write("f", "2");
    assert_eq!(
        world.seen(),
        "Renamed(f,g) Appeared(f) Written(f) Closed(f)"
    );
    world.mv("f", "g");
    world.mv("g", "f");
    assert_eq!(world.seen(), "Renamed(f,g) Closed(f)");
}

#[test]
fn a_second_half_that_comes_late_still_names_the_rename() {
    let mut world = World::new();
    world.write("f", "1");
    world.track(&["f"]);
    fs::remove_file(world.at("f")).unwrap();
    let event = |kind, path: &str, cookie| RawEvent {
        kind,
        path: world.at(path),
        cookie,
        by_directory: true,
        ..RawEvent::loss(0)
    };
    let script = [
        event(RawKind::MovedFrom, "f", Some(7)),
        event(RawKind::Closed, "other", None),
        event(RawKind::MovedTo, "g", Some(7)),
    ];
    let mut out = Vec::new();
    for raw in script {
        world.watcher.digest(raw, &mut out);
    }
    let words: Vec<_> = out.iter().map(word).collect();
    assert_eq!(words, ["Removed(f)", "Renamed(f,g)"]);
}

#[test]
fn a_directory_moved_away_and_replaced() {
    let mut world = World::new();
    world.mkdir("d/e");
    world.write("d/e/f", "1");
    world.write("d/g", "1");
    world.track(&["d/e/f", "d/g"]);
    world.mv("d", "old");
    assert_eq!(world.seen(), "Renamed(d,old)");
    assert_eq!(world.watcher.watched(), 1);
    // Events in the moved directory do not concern the old path. The thread of
    // the `notify` crate may end the watch a moment later: an unnecessary hint
    // only costs a read.
    world.write("old/g", "2");
    let seen = world.seen();
    let late = CHOICE == Choice::Notify && seen == "Written(d/g) Closed(d/g)";
    assert!(seen.is_empty() || late, "{seen}");
    world.mkdir("d/e");
    world.write("d/e/f", "3");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Closed));
    world.write("d/e/f", "4");
    assert_eq!(world.seen(), "Written(d/e/f) Closed(d/e/f)");
    fs::remove_dir_all(world.at("d")).unwrap();
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Removed));
    world.mv("old", "d");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "d/g"), Some(Hint::Closed));
    world.write("d/g", "5");
    assert_eq!(world.seen(), "Written(d/g) Closed(d/g)");
    assert_eq!(world.watcher.watched(), 3);
}

#[test]
fn directories_replaced_again_and_again_without_a_look_between() {
    let mut world = World::new();
    world.track(&["d/e/f"]);
    for round in 0..200 {
        if round % 3 == 2 {
            let _ = fs::remove_dir_all(world.at("gone"));
            world.mv("d", "gone");
        } else {
            let _ = fs::remove_dir_all(world.at("d"));
        }
        world.mkdir("d/e");
        world.write("d/e/f", "x");
        if round % 7 == 0 {
            let inputs = world.inputs();
            assert_eq!(
                World::last_hint(&inputs, "d/e/f"),
                Some(Hint::Closed),
                "round {round}"
            );
            world.write("d/e/f", "y");
            let inputs = world.inputs();
            assert_eq!(
                World::last_hint(&inputs, "d/e/f"),
                Some(Hint::Closed),
                "after round {round}"
            );
        }
    }
}

#[test]
fn after_a_crowd_of_events_a_name_is_looked_at() {
    let mut world = World::new();
    world.mkdir("d");
    world.write("d/f", "1");
    world.track(&["d/f"]);
    world.inputs();
    world.mv("d", "old");
    world.mkdir("d");
    world.write("d/f", "2");
    // None of these events was passed on, only that there were too many.
    world.watcher.fence(100).unwrap();
    let mut out = Vec::new();
    loop {
        let raw = world.next_event();
        if is_fence(&world, &raw) {
            break world.watcher.digest(raw, &mut out);
        }
    }
    out.clear();
    let crowd = RawEvent::written(0, &world.at("d")).into_crowd();
    world.watcher.digest(crowd, &mut out);
    let words: Vec<_> = out.iter().map(word).collect();
    assert_eq!(words, ["Gap(d)"]);
    // The current directory is watched, and the previous one is not.
    world.write("d/f", "3");
    assert_eq!(World::last_hint(&world.inputs(), "d/f"), Some(Hint::Closed));
    world.write("old/f", "3");
    assert_eq!(World::last_hint(&world.inputs(), "d/f"), None);
}

fn is_fence(world: &World, raw: &RawEvent) -> bool {
    let fences = world.base.path().canonicalize().unwrap().join("fence");
    matches!(raw.kind, RawKind::Fence(_))
        || raw.kind == RawKind::MovedTo && raw.path.starts_with(fences)
}

/// LIM-6. Each fence reads what the system has queued.
#[test]
fn a_storm_of_exchanges_makes_no_fence_for_each() {
    let mut world = World::new();
    world.write("f", "1");
    world.write("g", "2");
    world.track(&["f", "g"]);
    for _ in 0..20 {
        renameat_with(
            CWD,
            world.at("f"),
            CWD,
            world.at("g"),
            RenameFlags::EXCHANGE,
        )
        .unwrap();
    }
    world.watcher.fence(100).unwrap();
    let (mut out, mut halves) = (Vec::new(), 0);
    loop {
        let raw = world.next_event();
        halves += usize::from(raw.kind == RawKind::MovedFrom);
        world.watcher.digest(raw, &mut out);
        if matches!(out.last(), Some(Input::FenceReached { fence: 100 })) {
            break;
        }
    }
    assert!(halves >= 20, "{halves}");
    let later: Vec<_> = world.events.try_iter().collect();
    let more = later.iter().filter(|raw| is_fence(&world, raw)).count();
    assert_eq!(more, 0, "{later:?}");
}

#[test]
fn a_directory_in_a_storm_is_looked_at_once() {
    let mut world = World::new();
    let names: Vec<String> = (0..600).map(|number| format!("d/{number}")).collect();
    world.mkdir("d");
    world.mkdir("e");
    for name in &names {
        world.write(name, "1");
    }
    let tracked: Vec<&str> = names.iter().map(String::as_str).collect();
    world.track(&tracked);
    world.inputs();
    for _ in 0..50 {
        let (d, e) = (world.at("d"), world.at("e"));
        renameat_with(CWD, d, CWD, e, RenameFlags::EXCHANGE).unwrap();
    }
    let mut told: Vec<String> = world.inputs().iter().map(word).collect();
    // A query after the fence has the current files read.
    assert_eq!(told.pop().unwrap(), format!("Unwatched({})", names.len()));
    assert!(told.len() < 10 * names.len(), "{} inputs", told.len());
    let due = world.watcher.next_look().unwrap();
    let mut out = Vec::new();
    world.watcher.look_at_busy(due, &mut out);
    let words: Vec<_> = out.iter().map(word).collect();
    assert_eq!(words, ["Gap(d)"]);
    assert_eq!(world.watcher.next_look(), None);
    // The current directory is watched.
    world.inputs();
    world.write("d/5", "2");
    assert_eq!(World::last_hint(&world.inputs(), "d/5"), Some(Hint::Closed));
}
