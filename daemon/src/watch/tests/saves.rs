//! The hints that saves make.

use std::fs;
use std::io::Write as _;

use touchmark_engine::Hint;

use super::world::World;

#[test]
fn atomic_replacement_is_a_closed_change() {
    let mut world = World::new();
    world.write("f", "old");
    world.track(&["f"]);
    world.write("f.tmp", "new");
    world.mv("f.tmp", "f");
    assert_eq!(world.seen(), "Closed(f)");
}

#[test]
fn saving_like_vim_and_like_sed() {
    let mut world = World::new();
    world.write("f", "old");
    world.track(&["f"]);
    world.mv("f", "f~");
    world.write("f", "new");
    fs::remove_file(world.at("f~")).unwrap();
    assert_eq!(
        world.seen(),
        "Renamed(f,f~) Appeared(f) Written(f) Closed(f)"
    );
    let mut sed = std::process::Command::new("sed");
    sed.args(["-i", "s/new/newer/"]).arg(world.at("f"));
    let mut sed = touchmark_tests::children::start(&mut sed).unwrap();
    assert!(sed.wait().unwrap().success());
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), Some(Hint::Closed));
}

#[test]
fn removed_and_created_anew_twice() {
    // The new file often gets the old inode (S7git). Directories are watched,
    // so nothing depends on it.
    let mut world = World::new();
    world.write("f", "a");
    world.track(&["f"]);
    for text in ["b", "c"] {
        fs::remove_file(world.at("f")).unwrap();
        world.write("f", text);
        assert_eq!(world.seen(), "Removed(f) Appeared(f) Written(f) Closed(f)");
    }
}

#[test]
fn a_file_kept_open_is_written_and_then_closed() {
    let mut world = World::new();
    world.track(&["f"]);
    let mut file = fs::File::create(world.at("f")).unwrap();
    file.write_all(b"1").unwrap();
    assert_eq!(world.seen(), "Appeared(f) Written(f)");
    drop(file);
    assert_eq!(world.seen(), "Closed(f)");
}
