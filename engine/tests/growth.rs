//! How the time of one event grows with the number of tracked files. The bound
//! leaves a margin for other programs.
#![allow(clippy::unwrap_used)]

mod tracked;

use tracked::Disk;

/// Four times as many files take four times as long, not sixteen times.
#[test]
fn the_time_of_a_rename_grows_with_the_files() {
    let second = |files: u64| {
        let mut disk = Disk::new(files);
        disk.read_all();
        disk.rename("once");
        let took = disk.rename("again");
        assert!(disk.engine.counts().tracked >= files);
        took
    };
    let few = (0..3).map(|_| second(1_500)).max().unwrap();
    let many = (0..3).map(|_| second(6_000)).min().unwrap();
    println!("1,500 files: {few:?}, 6,000 files: {many:?}");
    assert!(
        many < few * 9,
        "1,500 files: {few:?}, 6,000 files: {many:?}"
    );
}
