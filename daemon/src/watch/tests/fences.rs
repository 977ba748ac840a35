//! Fences, and lost events.

use std::fs;

use touchmark_engine::{Hint, Input};

use super::CHOICE;
use super::world::{World, one_by_one, rel, word};
use crate::watch::{Choice, RawEvent};

#[test]
fn no_fence_overtakes_a_write() {
    let mut world = World::new();
    for n in 0..40 {
        world.mkdir(&format!("d{n}"));
        world.track(&[&format!("d{n}/f")]);
    }
    let mut fences = Vec::new();
    for n in 0..2000_u64 {
        let name = format!("d{}/f", n % 40);
        world.write(&name, "x");
        world.watcher.fence(n).unwrap();
        fences.push((n, name));
    }
    let mut out = Vec::new();
    while !matches!(out.last(), Some(Input::FenceReached { fence: 1999 })) {
        let raw = world.next_event();
        world.watcher.digest(raw, &mut out);
    }
    let out = one_by_one(out);
    // Each write was closed between the previous fence and its own.
    let mut at = 0;
    for (number, name) in fences {
        let end = at
            + out[at..]
                .iter()
                .position(
                    |input| matches!(input, Input::FenceReached { fence } if *fence == number),
                )
                .expect("fences come in order");
        assert_eq!(
            World::last_hint(&out[at..end], &name),
            Some(Hint::Closed),
            "fence {number}"
        );
        at = end + 1;
    }
}

#[test]
fn after_a_loss_all_is_compared_and_the_fences_end() {
    let mut world = World::new();
    world.mkdir("d");
    world.write("d/f", "1");
    world.track(&["d/f"]);
    world.inputs();
    world.watcher.fence(101).unwrap();
    world.watcher.fence(102).unwrap();
    // Not observed: the directory was replaced.
    world.mv("d", "old");
    world.mkdir("d");
    let lost = RawEvent::loss(0);
    let mut out = Vec::new();
    world.watcher.digest(lost, &mut out);
    let words: Vec<_> = out.iter().map(word).collect();
    assert_eq!(words, ["Overflow", "Fence(101)", "Fence(102)"]);
    // Each name is watched again; late events of the old backend are dropped.
    world.write("d/f", "2");
    assert_eq!(world.seen(), "Appeared(d/f) Written(d/f) Closed(d/f)");
    world.write("old/f", "3");
    assert_eq!(world.seen(), "");
    assert!(!world.watcher.root_gone());
}

#[test]
fn the_fence_mends_itself() {
    let mut world = World::new();
    world.track(&["f"]);
    // Only a backend without fences of its own needs a directory.
    let removed = fs::remove_dir_all(world.watcher.fence.dir());
    assert_eq!(removed.is_ok(), CHOICE == Choice::Notify);
    world.write("f", "1");
    assert_eq!(world.seen(), "Appeared(f) Written(f) Closed(f)");
    assert!(world.watcher.degraded().is_empty());
}

#[test]
fn the_roots_end_is_noticed() {
    let mut world = World::new();
    world.write("f", "1");
    world.track(&["f"]);
    let elsewhere = world.base.path().join("moved");
    fs::rename(world.at(""), &elsewhere).unwrap();
    world.inputs();
    assert!(world.watcher.root_gone());

    let mut world = World::new();
    fs::remove_dir_all(world.at("")).unwrap();
    world.inputs();
    assert!(world.watcher.root_gone());
}

#[test]
fn without_a_backend_everything_is_blind() {
    let mut world = World::with(Choice::Off);
    world.mkdir("d");
    world.track(&["d/f"]);
    assert!(world.watcher.blind(&rel("d/f")));
    assert!(world.watcher.fence(1).is_err());
    assert_eq!(world.watcher.degraded()[0].path, None);
    assert_eq!(world.watcher.backend(), "none");
    assert!(!World::new().watcher.blind(&rel("d/f")));
}
