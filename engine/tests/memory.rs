//! The memory that tracked files cost, measured with as many files as a large
//! workspace has. The bounds leave a margin for the allocator.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod tracked;

use std::fs;

use tracked::Disk;

const FILES: u64 = 20_000;

/// Returns the bytes of this process in memory.
fn resident() -> i64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<i64>().unwrap() * 4_096
}

#[test]
fn a_tracked_file_costs_so_many_bytes_and_writes_add_little() {
    let before = resident();
    let mut disk = Disk::new(FILES);
    let each = |now: i64| (now - before) / i64::try_from(FILES).unwrap();
    disk.read_all();
    assert_eq!(disk.engine.counts().tracked, FILES);
    let read = each(resident());
    let mut rounds = Vec::new();
    for _ in 0..6 {
        disk.write_all();
        disk.read_all();
        rounds.push(each(resident()));
    }
    println!("bytes a file: {read} just read, {rounds:?} after rounds of writes");
    assert!(read < 760, "{read} bytes a file that was read");
    assert!(rounds.iter().all(|now| *now < 2_300), "{rounds:?}");
    assert_eq!(disk.engine.counts().versions, 6 * FILES);
}
