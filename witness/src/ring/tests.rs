#![allow(clippy::unwrap_used, clippy::panic)]
use std::os::unix::fs::FileExt as _;

use super::reader::Reader;
use super::writer::{Lane, Ring};
use crate::marks::{
    Before, Event, Gap, Identity, Mark, Operation, Process, ProcessId, Record, Refusal, Stored,
};

fn mark(name: &str) -> Record {
    Record::Mark(Mark {
        realtime: 1,
        boottime: 2,
        process: ProcessId { pid: 3, started: 4 },
        operation: Operation::RenamedTo,
        directory: Identity {
            device: 5,
            inode: 6,
            born: 7,
            mode: 8,
        },
        path: b"/a/b".to_vec(),
        name: name.into(),
        object: Some(Identity::default()),
        chance: crate::marks::Chance::IfNew,
        before: Some(Before {
            stored: Some(Stored { at: 9, sum: 10 }),
            ..Before::default()
        }),
        is_watched: false,
    })
}

fn ring() -> (tempfile::TempDir, std::path::PathBuf, Ring) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    Ring::create(&path, 0).unwrap();
    let ring = Ring::open(&path).unwrap();
    (directory, path, ring)
}

#[test]
fn records_of_both_lanes_come_in_their_order_and_once() {
    let (_directory, path, ring) = ring();
    let lanes = [Lane::default(), Lane::default()];
    let mut reader = Reader::open(&path).unwrap();
    // Several times around, with lengths that leave every rest at the end.
    for seq in 0..3000_u64 {
        let record = mark(&"x".repeat((seq % 97) as usize));
        let lane = usize::from(seq % 3 == 0);
        ring.append(lane, &lanes[lane], seq, &record);
        if seq % 50 == 49 {
            for expected in seq - 49..=seq {
                let record = mark(&"x".repeat((expected % 97) as usize));
                assert_eq!(reader.next().unwrap(), Some((expected, record)));
            }
            assert_eq!(reader.next().unwrap(), None);
            // Another one continues where this one was.
            reader = Reader::open(&path).unwrap();
        }
    }
    assert!(reader.runs().unwrap());
    drop(ring);
    assert!(!reader.runs().unwrap());
}

#[test]
fn overflow_is_a_gap_and_the_writer_continues() {
    let (_directory, path, ring) = ring();
    let lane = Lane::default();
    for seq in 0..2000 {
        ring.append(0, &lane, seq, &mark("name"));
    }
    let mut reader = Reader::open(&path).unwrap();
    let mut read = 0;
    let lost = loop {
        match reader.next().unwrap().unwrap().1 {
            Record::Mark(_) => read += 1,
            Record::Gap {
                why: Gap::Overflow,
                calls,
                ..
            } => break calls,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read + lost, 2000);
    assert!(read > 100 && lost > 100);
    // The reader has made room.
    ring.append(0, &lane, 2000, &mark("kept"));
    assert_eq!(reader.next().unwrap(), Some((2000, mark("kept"))));
}

#[test]
fn a_reader_that_waits_is_woken() {
    let (_directory, path, ring) = ring();
    let lane = Lane::default();
    let mut reader = Reader::open(&path).unwrap();
    let is_rung = |reader: &Reader| {
        let bell = reader.bell().unwrap();
        let mut waits = [rustix::event::PollFd::new(
            &bell,
            rustix::event::PollFlags::IN,
        )];
        let now = rustix::event::Timespec::default();
        rustix::event::poll(&mut waits, Some(&now)).unwrap() == 1
    };
    ring.append(0, &lane, 0, &mark("one"));
    ring.announce(0, &lane);
    assert!(!is_rung(&reader));
    reader.waits(true).unwrap();
    ring.append(0, &lane, 1, &mark("two"));
    ring.announce(0, &lane);
    assert!(is_rung(&reader));
    reader.waits(false).unwrap();
    assert!(!is_rung(&reader));
}

#[test]
fn another_writer_continues_a_lane_that_was_not_counted() {
    let (_directory, path, ring) = ring();
    ring.append(1, &Lane::default(), 1, &mark("one"));
    // The first writer was killed before it counted its record.
    let lane = Lane::default();
    ring.adopt(1, &lane);
    ring.append(1, &lane, 2, &mark("two"));
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.next().unwrap(), Some((1, mark("one"))));
    assert_eq!(reader.next().unwrap(), Some((2, mark("two"))));
}

#[test]
fn a_hostile_ring_ends() {
    let process = Record::Process(Process::default());
    let holders = Record::Holders {
        holders: [1, 2],
        target: ProcessId { pid: 3, started: 4 },
    };
    let inherited = Record::Inherited {
        object: Identity::default(),
        path: b"/a".to_vec(),
    };
    let refused = Record::Refused(Refusal::Nested);
    let ended = Record::Ended;
    let happened = Record::Happened {
        realtime: 1,
        path: b"/a".to_vec(),
        events: vec![(Event::Closed, b"b".to_vec()), (Event::MovedTo, Vec::new())],
    };
    let watched = [happened, Record::Missed];
    let others = [mark("name"), process, ended, holders, inherited, refused];
    for record in watched.into_iter().chain(others) {
        let mut bytes = Vec::new();
        record.encode(9, &mut bytes);
        assert_eq!(Record::decode(&bytes), Some((9, record)));
        for end in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..end]), None);
        }
    }
    let mut state = 88172645463325252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..300 {
        let (_directory, path, ring) = ring();
        for seq in 0..20 {
            ring.append(0, &Lane::default(), seq, &mark("name"));
        }
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for _ in 0..random() % 40 {
            let at = [0, 256, 1024, 4096][(random() % 4) as usize] + random() % 300;
            file.write_all_at(&random().to_le_bytes()[..(random() % 9) as usize], at)
                .unwrap();
        }
        if random() % 3 == 0 {
            file.set_len(random() % 5000).unwrap();
        }
        let Ok(mut reader) = Reader::open(&path) else {
            continue;
        };
        for _ in 0..1000 {
            if !matches!(reader.next(), Ok(Some(_))) {
                break;
            }
        }
    }
}
