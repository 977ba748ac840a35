//! What is watched and hinted: tracked paths only.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use touchmark_engine::{Hint, Input};
use touchmark_proto::RelPath;

use super::world::{World, rel};

#[test]
fn only_what_is_tracked_is_hinted() {
    let mut world = World::new();
    world.track(&["a"]);
    world.write("b", "x");
    assert_eq!(world.seen(), "");
    world.write("a", "x");
    assert_eq!(world.seen(), "Appeared(a) Written(a) Closed(a)");
    fs::read(world.at("a")).unwrap();
    assert_eq!(world.seen(), "", "reading is nobody's business");
    world.watcher.untrack(&rel("a"));
    world.write("a", "y");
    assert_eq!(world.seen(), "");
}

#[test]
fn one_watch_a_directory_and_none_when_nobody_needs_it() {
    let mut world = World::new();
    world.mkdir("a/b");
    assert_eq!(world.watcher.watched(), 1);
    for n in 0..50 {
        world.track(&[&format!("a/b/{n}")]);
    }
    assert_eq!(world.watcher.watched(), 3);
    for n in 0..50 {
        world.watcher.untrack(&rel(&format!("a/b/{n}")));
    }
    assert_eq!(world.watcher.watched(), 1);
}

#[test]
fn a_watch_nobody_needs_reports_once_at_most() {
    let mut world = World::new();
    let path = |n: usize| format!("d{n}/f");
    for n in 0..200 {
        world.mkdir(&format!("d{n}"));
    }
    world.inputs();
    for n in 0..200 {
        world.watcher.track(&rel(&path(n)));
    }
    for n in 0..200 {
        world.watcher.untrack(&rel(&path(n)));
    }
    assert_eq!(world.watcher.watched(), 1);
    // With many watches, unneeded ones stay until they report an event.
    world.write(&path(0), "1");
    assert_eq!(world.seen(), "");
    let events = |world: &mut World| {
        world.write(&path(0), "2");
        world.fences += 1;
        world.watcher.fence(world.fences).unwrap();
        let mut out = Vec::new();
        let mut heard = 0;
        while out.is_empty() {
            let raw = world.next_event();
            heard += usize::from(raw.path.ends_with("d0/f"));
            world.watcher.digest(raw, &mut out);
        }
        heard
    };
    assert_eq!(events(&mut world), 0);
    // When needed again, they report again, whether or not they were replaced
    // meanwhile.
    world.mv("d1", "old");
    world.mkdir("d1");
    world.track(&[&path(0), &path(1), &path(2)]);
    for n in 0..3 {
        world.write(&path(n), "3");
    }
    let inputs = world.inputs();
    for n in 0..3 {
        assert_eq!(World::last_hint(&inputs, &path(n)), Some(Hint::Closed));
    }
}

#[test]
fn files_written_at_once_into_new_directories_are_hinted() {
    let mut world = World::new();
    for n in 0..30 {
        world.track(&[&format!("d{n}/e/f"), &format!("d{n}/g")]);
    }
    assert_eq!(world.watcher.watched(), 1);
    for n in 0..30 {
        world.mkdir(&format!("d{n}/e"));
        world.write(&format!("d{n}/e/f"), "x");
        world.write(&format!("d{n}/g"), "x");
    }
    let inputs = world.inputs();
    for n in 0..30 {
        assert_eq!(
            World::last_hint(&inputs, &format!("d{n}/e/f")),
            Some(Hint::Closed)
        );
        assert_eq!(
            World::last_hint(&inputs, &format!("d{n}/g")),
            Some(Hint::Closed)
        );
    }
    assert_eq!(world.watcher.watched(), 61);
    world.write("d7/e/f", "y");
    assert_eq!(world.seen(), "Written(d7/e/f) Closed(d7/e/f)");
}

#[test]
fn tracking_in_a_directory_with_old_news_in_the_queue() {
    // The backend ends a watch by name when it reads that the name was removed.
    // A watch made meanwhile on a new directory of that name ends with it.
    let mut world = World::new();
    for round in 0..200 {
        world.mkdir("d");
        world.track(&["d/a"]);
        world.inputs();
        fs::remove_dir_all(world.at("d")).unwrap();
        world.mkdir("d");
        world.watcher.track(&rel("d/f"));
        world.write("d/f", "x");
        let inputs = world.inputs();
        assert_eq!(
            World::last_hint(&inputs, "d/f"),
            Some(Hint::Closed),
            "round {round}"
        );
        world.write("d/f", "y");
        assert_eq!(world.seen(), "Written(d/f) Closed(d/f)", "round {round}");
        world.watcher.untrack(&rel("d/f"));
        world.watcher.untrack(&rel("d/a"));
        fs::remove_dir_all(world.at("d")).unwrap();
    }
}

#[test]
fn names_that_are_not_utf8() {
    let mut world = World::new();
    let name = b"d\xff/f\xfe";
    let path = RelPath::new(name).unwrap();
    world.watcher.track(&path);
    fs::create_dir(world.at("").join(OsStr::from_bytes(b"d\xff"))).unwrap();
    fs::write(world.at("").join(OsStr::from_bytes(name)), "x").unwrap();
    let inputs = world.inputs();
    assert!(
        inputs.iter().any(
            |input| matches!(input, Input::Hint { path: on, hint: Hint::Closed } if *on == path)
        )
    );
}

#[test]
fn permissions_of_directories_touch_what_is_below() {
    let mut world = World::new();
    world.mkdir("d/e");
    world.write("d/e/f", "1");
    world.track(&["d/e/f"]);
    fs::set_permissions(world.at("d"), fs::Permissions::from_mode(0o700)).unwrap();
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Touched));
}
