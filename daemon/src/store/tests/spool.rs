//! The contents that agents' changes need, on disk before they are in the table
//! (KEEP-3).

use std::os::unix::fs::PermissionsExt as _;

use super::super::schema;
use super::contents::noise;
use super::*;

/// The bytes of a record before the content.
const HEADER: usize = 40;

/// A spool, and the writers that were killed.
struct Spooled(tempfile::TempDir);

impl Spooled {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("store.spool")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
    }

    /// Returns what a start finds.
    fn waiting(&self) -> Waiting {
        Waiting::new(1 << 20, [], Spool::open(&self.file(), true))
    }

    /// Spools contents of different sizes, each of which an agent put in place
    /// of the one before.
    fn with(contents: &[Vec<u8>]) -> (Self, Waiting) {
        let spooled = Self::new();
        let waiting = spooled.waiting();
        let mut before = None;
        for bytes in contents {
            before = Some(changed(&waiting, bytes, before));
        }
        (spooled, waiting)
    }
}

fn contents() -> Vec<Vec<u8>> {
    [50, 0, 300, 1]
        .map(|size| noise(size, size as usize))
        .into()
}

/// Keeps a content that an agent put in place of another, as a commit does.
fn changed(waiting: &Waiting, bytes: &[u8], before: Option<Hash>) -> Hash {
    let hash = Hash::of(bytes);
    waiting.keep(hash, bytes.into());
    waiting.heed(&[by_agent(1, hash, before)]);
    waiting.spool_needed();
    hash
}

fn by_agent(n: u64, hash: Hash, before: Option<Hash>) -> Record {
    let mut record = version(n, "a.txt");
    if let Fact::Version(version) = &mut record.fact {
        version.author = Author::agent(session());
        version.held.hash = Some(hash);
        version.before = before;
    }
    record
}

/// Returns which of the contents wait to be stored.
fn there(waiting: &Waiting, contents: &[Vec<u8>]) -> Vec<usize> {
    let is_there = |bytes: &[u8]| waiting.get(&Hash::of(bytes)).as_deref() == Some(bytes);
    (0..contents.len())
        .filter(|n| is_there(&contents[*n]))
        .collect()
}

fn holds(file: &[u8], bytes: &[u8]) -> bool {
    file.windows(bytes.len()).any(|window| window == bytes)
}

#[test]
fn keep3_what_agents_changed_is_there_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    let spool = |directory: &Path| fs::metadata(directory.join("store.spool")).unwrap();
    assert_eq!(spool(directory.path()).permissions().mode() & 0o777, 0o600);
    // An agent, a user, and the agent again.
    let contents: Vec<_> = (0..4).map(|seed| noise(seed, 1_000)).collect();
    let hashes: Vec<Hash> = contents.iter().map(|bytes| Hash::of(bytes)).collect();
    for (hash, bytes) in hashes.iter().zip(&contents) {
        world.opened.store.keep(*hash, bytes.as_slice().into());
    }
    let mut by_user = by_agent(2, hashes[2], Some(hashes[1]));
    if let Fact::Version(version) = &mut by_user.fact {
        version.author = Author::USER;
    }
    world.store(&[by_agent(1, hashes[1], Some(hashes[0])), by_user]);
    world.store(&[by_agent(3, hashes[3], Some(hashes[2]))]);

    let killed = tempfile::tempdir().unwrap();
    copy(directory.path(), killed.path());
    world.close();
    assert_eq!(spool(directory.path()).len(), 0, "all is stored");

    let world = super::world(killed.path());
    let reader = world.opened.store.readers().open().unwrap();
    for (hash, bytes) in hashes.iter().zip(&contents) {
        assert_eq!(reader.content(hash).unwrap().as_deref(), Some(&**bytes));
    }
    drop(reader);
    world.close();
    assert_eq!(spool(killed.path()).len(), 0, "all is stored");

    // With `contents.total = 0` there is no spool.
    fs::write(killed.path().join("store.spool"), b"x").unwrap();
    let world = world_with(&Options {
        contents_total: 0,
        ..options(killed.path())
    });
    world.opened.store.keep(hash(1), [1; 10].into());
    world.store(&[by_agent(4, hash(1), None)]);
    assert!(!killed.path().join("store.spool").exists());
}

#[test]
fn keep3_a_torn_tail_of_the_spool_costs_what_was_torn() {
    let contents = contents();
    let (spooled, waiting) = Spooled::with(&contents);
    drop(waiting);
    let whole = spooled.bytes();
    let ends: Vec<usize> = contents
        .iter()
        .scan(0, |end, bytes| {
            *end += HEADER + bytes.len();
            Some(*end)
        })
        .collect();
    assert_eq!(ends.last(), Some(&whole.len()));
    for length in 0..=whole.len() {
        fs::write(spooled.file(), &whole[..length]).unwrap();
        let waiting = spooled.waiting();
        let kept = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(there(&waiting, &contents), (0..kept).collect::<Vec<_>>());
        let expected = ends[..kept].last().copied().unwrap_or(0);
        assert_eq!(spooled.bytes().len(), expected, "cut at {length}");
        // A content that is added after the cut is found, like those before it.
        let more = noise(9, 20);
        changed(&waiting, &more, None);
        drop(waiting);
        let waiting = spooled.waiting();
        assert_eq!(there(&waiting, &contents).len(), kept);
        assert_eq!(there(&waiting, &[more]), [0]);
    }
}

#[test]
fn keep3_a_damaged_record_of_the_spool_costs_no_other() {
    let contents = contents();
    let (spooled, waiting) = Spooled::with(&contents);
    drop(waiting);
    let whole = spooled.bytes();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(spooled.file(), &damaged).unwrap();
        let left = there(&spooled.waiting(), &contents);
        // A length that is wrong hides what follows.
        let start = (0..=contents.len())
            .map(|n| contents[..n].iter().map(|c| HEADER + c.len()).sum())
            .rfind(|start: &usize| *start <= at)
            .unwrap();
        match at - start {
            0..8 => assert!(left.len() < contents.len(), "byte {at}: {left:?}"),
            _ => assert_eq!(left.len(), contents.len() - 1, "byte {at}: {left:?}"),
        }
    }
}

#[test]
fn sec3_a_secret_found_later_is_not_in_the_spool() {
    let contents = contents();
    let (spooled, waiting) = Spooled::with(&contents);
    assert!(holds(&spooled.bytes(), &contents[2]));
    waiting.keep_out(Hash::of(&contents[2]));
    assert!(!holds(&spooled.bytes(), &contents[2]));
    drop(waiting);
    let waiting = spooled.waiting();
    assert_eq!(there(&waiting, &contents), [0, 1, 3], "the others stay");

    // A loss of power brought back a secret that is in the table.
    let known = Hash::of(&contents[0]);
    let waiting = Waiting::new(1 << 20, [known], Spool::open(&spooled.file(), true));
    assert_eq!(there(&waiting, &contents), [1, 3]);
    assert!(!holds(&spooled.bytes(), &contents[0]));

    let (spooled, waiting) = Spooled::with(&contents);
    waiting.clear();
    assert_eq!(spooled.bytes(), b"", "contents were forgotten");
    assert_eq!(there(&spooled.waiting(), &contents), [0; 0]);
}

#[test]
fn keep3_the_spool_is_empty_once_its_contents_are_stored() {
    // More than one transaction takes.
    let contents: Vec<_> = (0..20).map(|seed| noise(seed, 100_000)).collect();
    let (spooled, waiting) = Spooled::with(&contents);
    let other = noise(99, 1_000);
    waiting.keep(Hash::of(&other), other.as_slice().into());
    waiting.spool_needed();
    assert!(!holds(&spooled.bytes(), &other), "no agent changed it");

    let file = spooled.0.path().join("store.db");
    let mut connection = schema::open(&file, Durability::Process, false).unwrap();
    let mut table = Table::new(1 << 30);
    let mut steps = 0;
    while !waiting.is_empty() {
        let killed = Spooled::new();
        fs::write(killed.file(), spooled.bytes()).unwrap();
        let left = there(&waiting, &contents);
        let found = there(&killed.waiting(), &contents);
        assert!(left.iter().all(|one| found.contains(one)), "{left:?}");
        table.step(&mut connection, &waiting).unwrap();
        steps += 1;
    }
    assert!(steps > 1);
    assert_eq!(spooled.bytes(), b"");
    changed(&waiting, &contents[0], None);
    assert_eq!(spooled.bytes().len(), HEADER + contents[0].len());
}

/// Where nothing can be written, contents wait in memory as before.
#[test]
fn keep3_a_spool_that_cannot_be_written_stops_nothing() {
    let spooled = Spooled::new();
    fs::create_dir(spooled.file()).unwrap();
    let waiting = spooled.waiting();
    changed(&waiting, &contents()[0], None);
    assert_eq!(there(&waiting, &contents()), [0]);
    waiting.keep_out(Hash::of(&contents()[0]));
    waiting.clear();
}

/// Turns that never pause let the spool grow, since it is emptied only when
/// nothing that is needed waits.
#[test]
fn keep3_a_large_spool_does_not_wait_for_a_pause() {
    let spooled = Spooled::new();
    let waiting = spooled.waiting();
    let file = spooled.0.path().join("store.db");
    let mut connection = schema::open(&file, Durability::Process, false).unwrap();
    let mut table = Table::new(1 << 30);
    let mut seed = 0;
    changed(&waiting, &noise(seed, 300_000), None);
    while !waiting.is_urgent() {
        seed += 1;
        assert!(seed < 100);
        changed(&waiting, &noise(seed, 300_000), None);
        // A step writes one of the two.
        table.step(&mut connection, &waiting).unwrap();
        assert!(!waiting.is_empty());
    }
    while !waiting.is_empty() {
        table.step(&mut connection, &waiting).unwrap();
    }
    assert!(!waiting.is_urgent());
    assert_eq!(spooled.bytes(), b"");
}

#[test]
#[ignore = "measures"]
fn measure_what_a_spooled_content_costs() {
    for size in [1 << 10, 64 << 10, 1 << 20] {
        let (mut alone, mut all) = (Duration::ZERO, Duration::ZERO);
        let spooled = Spooled::new();
        let waiting = spooled.waiting();
        let rounds = 2_000_u32;
        for round in 0..rounds {
            let bytes = noise(round.into(), size);
            let hash = Hash::of(&bytes);
            waiting.keep(hash, bytes.into());
            waiting.heed(&[by_agent(1, hash, None)]);
            let begun = std::time::Instant::now();
            waiting.spool_needed();
            alone += begun.elapsed();
            if round % 2 == 1 {
                waiting.clear();
            }
            all += begun.elapsed();
        }
        println!(
            "{size} bytes: {:?}, with the removal {:?}",
            alone / rounds,
            all / rounds
        );
    }
}
