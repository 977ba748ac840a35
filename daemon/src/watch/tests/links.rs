//! Several names of one file: symlinks and links.

use std::fs;
use std::os::unix::fs::symlink;

use touchmark_engine::Hint;

use super::world::{World, rel};

#[test]
fn a_symlinks_target_speaks_for_it() {
    let mut world = World::new();
    world.mkdir("real/deep");
    world.write("real/deep/f", "1");
    symlink("real/deep/f", world.at("link")).unwrap();
    symlink("real/deep", world.at("dir")).unwrap();
    world.track(&["link", "dir/f"]);
    assert_eq!(world.watcher.watched(), 3);
    world.write("real/deep/f", "2");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "link"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "dir/f"), Some(Hint::Closed));
    // S29: the target is replaced.
    world.write("real/deep/tmp", "3");
    world.mv("real/deep/tmp", "real/deep/f");
    assert_eq!(world.seen(), "Closed(link) Closed(dir/f)");
    // The link is replaced: events of the new target concern it, those of the
    // old one do not.
    world.write("other", "4");
    symlink("other", world.at("link.tmp")).unwrap();
    world.mv("link.tmp", "link");
    assert_eq!(world.seen(), "Closed(link)");
    world.write("other", "5");
    assert_eq!(world.seen(), "Written(link) Closed(link)");
    world.write("real/deep/f", "6");
    assert_eq!(world.seen(), "Written(dir/f) Closed(dir/f)");
    world.watcher.untrack(&rel("dir/f"));
    assert_eq!(world.watcher.watched(), 1);
}

#[test]
fn a_symlink_and_its_target_are_both_hinted() {
    let mut world = World::new();
    world.mkdir("real");
    symlink("real", world.at("dir")).unwrap();
    world.track(&["real/f", "dir/f"]);
    world.write("real/f", "1");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "real/f"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "dir/f"), Some(Hint::Closed));
    // The directory becomes a link, and a directory again.
    fs::remove_file(world.at("dir")).unwrap();
    world.mkdir("dir");
    world.write("dir/f", "2");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "dir/f"), Some(Hint::Closed));
    world.write("dir/f", "3");
    assert_eq!(world.seen(), "Written(dir/f) Closed(dir/f)");
    world.write("real/f", "4");
    assert_eq!(world.seen(), "Written(real/f) Closed(real/f)");
}

#[test]
fn a_new_link_is_complete_as_it_is() {
    let mut world = World::new();
    world.write("other", "1");
    world.track(&["soft", "hard"]);
    symlink("other", world.at("soft")).unwrap();
    assert_eq!(world.seen(), "Appeared(soft) Closed(soft)");
    fs::hard_link(world.at("other"), world.at("hard")).unwrap();
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "hard"), Some(Hint::Closed));
}

#[test]
fn a_write_through_another_name_of_the_file_is_seen() {
    let mut world = World::new();
    world.mkdir("away");
    world.write("f", "1");
    world.track(&["f"]);
    // The second name appears in a directory that is not watched. This makes no
    // event, and the next read finds it.
    fs::hard_link(world.at("f"), world.at("away/g")).unwrap();
    assert_eq!(world.seen(), "");
    assert!(world.watcher.watch_file(&rel("f")));
    assert!(!world.watcher.watch_file(&rel("f")));
    world.write("away/g", "2");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), Some(Hint::Closed));
    // Two tracked names share one watch: an event hints both.
    fs::hard_link(world.at("f"), world.at("h")).unwrap();
    world.track(&["h"]);
    world.inputs();
    world.write("away/g", "3");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "h"), Some(Hint::Closed));
    // The name is replaced by another file, so the other name does not concern
    // it.
    world.write("tmp", "4");
    world.mv("tmp", "f");
    world.inputs();
    world.write("away/g", "5");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), None);
    assert_eq!(World::last_hint(&inputs, "h"), Some(Hint::Closed));
}

#[test]
fn alias_asks_for_another_read_only_when_it_learned_something() {
    let mut world = World::new();
    world.mkdir("real");
    world.write("real/f", "1");
    symlink("real/f", world.at("link")).unwrap();
    world.track(&["link", "real/f"]);
    assert!(!world.watcher.alias(&rel("link"), Some(&rel("real/f"))));
    assert!(!world.watcher.alias(&rel("real/f"), None));
    // The link changed, and its event is not digested yet: the reader was
    // faster.
    world.write("other", "2");
    fs::remove_file(world.at("link")).unwrap();
    symlink("other", world.at("link")).unwrap();
    assert!(world.watcher.alias(&rel("link"), Some(&rel("other"))));
}

#[test]
fn one_name_given_up_does_not_blind_the_other() {
    // However one name is released, a write by a third name, in a directory
    // that is not watched, is reported for the remaining name (FILE-3).
    for how in ["untracked", "removed", "moved away", "replaced"] {
        for left in ["d/a", "e/b"] {
            let gone = if left == "d/a" { "e/b" } else { "d/a" };
            let mut world = World::new();
            for directory in ["d", "e", "away"] {
                world.mkdir(directory);
            }
            world.write("d/a", "1");
            fs::hard_link(world.at("d/a"), world.at("e/b")).unwrap();
            fs::hard_link(world.at("d/a"), world.at("away/c")).unwrap();
            world.track(&["d/a", "e/b"]);
            match how {
                "untracked" => world.watcher.untrack(&rel(gone)),
                "removed" => fs::remove_file(world.at(gone)).unwrap(),
                "moved away" => world.mv(gone, "away/elsewhere"),
                _ => {
                    world.write("tmp", "2");
                    world.mv("tmp", gone);
                }
            }
            world.inputs();
            world.write("away/c", "3");
            let inputs = world.inputs();
            let seen = World::last_hint(&inputs, left);
            assert_eq!(seen, Some(Hint::Closed), "{gone} {how}");
        }
    }
}

#[test]
fn a_directory_that_a_symlink_leads_to_may_come_and_go() {
    for moved in [true, false] {
        let mut world = World::new();
        world.mkdir("build");
        world.write("build/f", "1");
        symlink("build", world.at("out")).unwrap();
        world.track(&["out/f"]);
        if moved {
            world.mv("build", "old");
        } else {
            fs::remove_dir_all(world.at("build")).unwrap();
        }
        let inputs = world.inputs();
        assert_eq!(World::last_hint(&inputs, "out/f"), Some(Hint::Removed));
        // Another directory replaces it, with its files (FILE-4).
        world.mkdir("next");
        world.write("next/f", "2");
        world.inputs();
        world.mv("next", "build");
        let inputs = world.inputs();
        assert_eq!(World::last_hint(&inputs, "out/f"), Some(Hint::Closed));
        world.write("build/f", "3");
        let inputs = world.inputs();
        assert_eq!(World::last_hint(&inputs, "out/f"), Some(Hint::Closed));
    }
}
