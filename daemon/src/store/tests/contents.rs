//! Stored contents: readable immediately, limited, checked.

use sha2::{Digest as _, Sha256};

use super::super::contents::{Kept, Note, Said, read};
use super::super::schema::{self, int};
use super::*;
use touchmark_engine::ledger::stored::encode_fact;

/// Stores a fact without a writer.
fn insert(connection: &rusqlite::Connection, record: Record) {
    let Record { n, time, fact } = record;
    let (kind, path) = schema::row_of(&fact);
    let path = path.map(|path| path.as_bytes().to_vec());
    connection
        .execute(
            "INSERT INTO fact (n, time, kind, path, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            (
                int(n),
                int(time),
                kind,
                path,
                seal::close(n, time, encode_fact(fact)),
            ),
        )
        .unwrap();
}

fn content(seed: u8, size: usize) -> (Hash, Arc<[u8]>) {
    let bytes = vec![seed; size];
    (Hash(Sha256::digest(&bytes).into()), bytes.into())
}

#[test]
fn a_content_is_readable_at_once_and_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    let reader = world.opened.store.readers().open().unwrap();
    let (small, bytes) = content(1, 10);
    let (empty, nothing) = content(1, 0);
    let (large, much) = content(2, (8 << 20) + 1);
    world.opened.store.keep(small, Arc::clone(&bytes));
    world.opened.store.keep(empty, nothing);
    world.opened.store.keep(large, much);
    assert_eq!(reader.content(&small).unwrap(), Some(Arc::clone(&bytes)));
    drop(reader);
    world.close();

    let world = super::world(directory.path());
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(reader.content(&small).unwrap(), Some(bytes));
    assert_eq!(reader.content(&empty).unwrap().as_deref(), Some(&[][..]));
    assert_eq!(reader.content(&large).unwrap(), None, "larger than the cap");
    assert_eq!(reader.content(&hash(1)).unwrap(), None);
    let (done, told) = std::sync::mpsc::channel();
    world
        .opened
        .store
        .forget_contents(move || done.send(()).unwrap());
    told.recv().unwrap();
    drop(reader);
    world.close();

    let bytes = fs::read(directory.path().join("store.db")).unwrap();
    assert!(!bytes.windows(10).any(|window| window == [1; 10]), "purged");
    let world = super::world(directory.path());
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(reader.content(&small).unwrap(), None);
}

/// A table and its pending contents, without a writer thread.
struct Kit {
    _directory: tempfile::TempDir,
    connection: rusqlite::Connection,
    waiting: Waiting,
    table: Table,
    n: u64,
}

impl Kit {
    fn new(cap: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("store.db");
        Self {
            connection: super::super::schema::open(&file, Durability::Process, false).unwrap(),
            waiting: Waiting::new(1 << 20, [], Spool::default()),
            table: Table::new(cap),
            n: 0,
            _directory: directory,
        }
    }

    fn settle(&mut self) {
        while self.table.is_pending() || !self.waiting.is_empty() {
            self.table
                .step(&mut self.connection, &self.waiting)
                .unwrap();
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Hash {
        let hash = Hash::of(bytes);
        self.waiting.keep(hash, bytes.into());
        self.settle();
        hash
    }

    /// Adds a version that replaced another.
    fn version(&mut self, bytes: &[u8], before: Option<Hash>, agent: bool) -> Hash {
        let hash = Hash::of(bytes);
        self.waiting.keep(hash, bytes.into());
        self.say(Said::Holds {
            hash: Some(hash),
            before,
            agent,
        });
        hash
    }

    fn say(&mut self, said: Said) {
        self.n += 1;
        self.table.note(Note {
            n: self.n,
            time: self.n * 10,
            said,
        });
        self.settle();
    }

    fn ask(&mut self, asked: Asked) {
        self.table.ask(asked);
        self.settle();
    }

    fn read(&self, hash: &Hash) -> Kept {
        read(&self.connection, hash, None).unwrap()
    }

    fn has(&self, hash: &Hash) -> bool {
        matches!(self.read(hash), Kept::Whole(_))
    }

    fn number(&self, sql: &str) -> i64 {
        self.connection
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }

    /// Checks that the sums are those of the rows, and that every base exists.
    fn check(&self) {
        let extent = self.table.shown().lock().unwrap().unwrap();
        let sum = |of: &str| self.number(&format!("SELECT coalesce(sum({of}), 0) FROM content"));
        assert_eq!(int(extent.bytes), sum("length(body)"));
        assert_eq!(int(extent.unpacked), sum("size"));
        assert_eq!(int(extent.pinned), sum("length(body) * (pinned > 0)"));
        let dangling = "SELECT count(*) FROM content AS one WHERE base IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM content WHERE hash = one.base)";
        assert_eq!(self.number(dangling), 0);
    }
}

/// Returns bytes that cannot be compressed.
pub(super) fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(size)
    .collect()
}

#[test]
fn the_least_recently_used_go_when_the_cap_is_reached() {
    let mut kit = Kit::new(101_000);
    let contents: Vec<_> = (0..20).map(|seed| noise(seed, 20_000)).collect();
    let hashes: Vec<Hash> = contents.iter().map(|bytes| Hash::of(bytes)).collect();
    let kept = |kit: &Kit| -> Vec<usize> { (0..20).filter(|i| kit.has(&hashes[*i])).collect() };
    for bytes in &contents[..5] {
        kit.keep(bytes);
    }
    assert_eq!(kept(&kit), [0, 1, 2, 3, 4]);
    // The oldest was just used, so the second oldest is removed. A table that
    // is opened again has the same order.
    kit.ask(Asked::Used(hashes[0]));
    kit.table = Table::new(101_000);
    kit.keep(&contents[5]);
    assert_eq!(kept(&kit), [0, 2, 3, 4, 5]);
    // A content that is added again is marked as used, not stored twice.
    kit.keep(&contents[2]);
    kit.keep(&contents[6]);
    assert_eq!(kept(&kit), [0, 2, 4, 5, 6]);
    for bytes in &contents {
        kit.keep(bytes);
        kit.check();
        assert!(kit.number("SELECT sum(length(body)) FROM content") <= 101_000);
    }
    assert_eq!(kept(&kit), [15, 16, 17, 18, 19]);
}

/// Returns a text, then the same with one line changed, and so on.
fn texts(count: u64) -> Vec<Vec<u8>> {
    let mut lines = super::storm::lines(0);
    (0..count)
        .map(|n| {
            let at = usize::try_from(n * 37).unwrap() % lines.len();
            lines[at] = super::storm::line(1_000_000 + n);
            lines.concat().into_bytes()
        })
        .collect()
}

/// Adds the texts as versions, each replacing the one before.
fn chain(kit: &mut Kit, texts: &[Vec<u8>], agent: bool) -> Vec<Hash> {
    let mut before = None;
    let mut hashes = Vec::new();
    for text in texts {
        let hash = kit.version(text, before, agent);
        before = Some(hash);
        hashes.push(hash);
    }
    hashes
}

#[test]
fn keep1_what_others_rest_on_goes_after_they_were_packed_anew() {
    let texts = texts(100);
    let mut kit = Kit::new(1 << 30);
    let hashes = chain(&mut kit, &texts, false);
    kit.check();
    let whole = kit.number("SELECT max(length(body)) FROM content");
    assert_eq!(
        kit.number("SELECT count(*) FROM content WHERE base IS NULL"),
        4
    );
    let sum = kit.number("SELECT sum(length(body)) FROM content");
    assert!(sum < 4 * whole + 100 * 200, "{sum}");
    // Another version replaced one of them as well, and its content is based on
    // that one.
    let mut branch = texts[50].clone();
    branch.extend(b"and more\n");
    let branched = kit.version(&branch, Some(hashes[50]), false);
    kit.say(Said::Holds {
        hash: Some(hashes[50]),
        before: Some(branched),
        agent: false,
    });
    // There is space for two contents without a base, those based on the first,
    // and the branch.
    kit.table = Table::new(u64::try_from(whole).unwrap() * 7 / 2);
    kit.settle();
    kit.check();
    let left = kit.number("SELECT count(*) FROM content");
    assert!(left > 10 && left < 40, "{left}");
    for (text, hash) in texts.iter().zip(&hashes) {
        match kit.read(hash) {
            Kept::Whole(bytes) => assert!(bytes == *text),
            Kept::Not => {}
            Kept::Damaged => panic!("{hash:?}"),
        }
    }
    assert!(kit.has(&branched));
    assert!(kit.has(&hashes[99]) && !kit.has(&hashes[0]));
}

#[test]
fn keep1_a_version_that_is_told_late_is_packed_then() {
    let texts = texts(2);
    let mut kit = Kit::new(1 << 30);
    let first = kit.keep(&texts[0]);
    let second = kit.keep(&texts[1]);
    assert_eq!(
        kit.number("SELECT count(*) FROM content WHERE base IS NULL"),
        2
    );
    let says = |hash, before| Said::Holds {
        hash: Some(hash),
        before: Some(before),
        agent: false,
    };
    kit.say(says(second, first));
    assert_eq!(
        kit.number("SELECT count(*) FROM content WHERE base IS NULL"),
        1
    );
    // And in the other direction: two contents cannot have each other as base.
    kit.say(says(first, second));
    kit.check();
    assert_eq!(kit.read(&first), Kept::Whole(texts[0].clone()));
    assert_eq!(kit.read(&second), Kept::Whole(texts[1].clone()));
}

#[test]
fn keep1_large_contents_see_all_of_the_one_before() {
    let mut kit = Kit::new(1 << 30);
    kit.waiting = Waiting::new(8 << 20, [], Spool::default());
    let mut bytes = noise(1, 3 << 20);
    let mut before = None;
    for n in 0..4 {
        bytes[1_000 * n] ^= 1;
        before = Some(kit.version(&bytes, before, false));
    }
    assert_eq!(kit.read(&before.unwrap()), Kept::Whole(bytes));
    let sum = kit.number("SELECT sum(length(body)) FROM content");
    assert!(sum < (3 << 20) + 30_000, "{sum}");
}

#[test]
fn keep2_what_is_pinned_stays_until_it_is_let_go() {
    let mut kit = Kit::new(50_000);
    let contents: Vec<_> = (0..30).map(|seed| noise(seed, 10_000)).collect();
    let user = kit.version(&contents[0], None, false);
    // An agent overwrites the user's content, and then its own.
    let agent = kit.version(&contents[1], Some(user), true);
    let again = kit.version(&contents[2], Some(agent), true);
    let lost = kit.version(&contents[3], None, false);
    let mut record = version(4, "a");
    if let Fact::Version(version) = &mut record.fact {
        version.held.hash = Some(lost);
    }
    insert(&kit.connection, record);
    kit.say(Said::Lost { version: 4 });
    let pinned = [user, agent, again, lost];
    let fill = |kit: &mut Kit| {
        for bytes in &contents[4..] {
            kit.keep(bytes);
        }
        kit.check();
    };
    fill(&mut kit);
    assert!(pinned.iter().all(|hash| kit.has(hash)));
    // It stays even if nothing else can.
    kit.table = Table::new(15_000);
    kit.settle();
    assert!(pinned.iter().all(|hash| kit.has(hash)));
    assert_eq!(kit.number("SELECT count(*) FROM content"), 4);
    kit.ask(Asked::Unpin(vec![user, agent, lost]));
    assert!(!kit.has(&user) && !kit.has(&agent), "kept or undone");
    assert!(kit.has(&again) && kit.has(&lost), "lost is another matter");
    let extent = kit.table.shown().lock().unwrap().unwrap();
    assert_eq!(extent.bytes, extent.pinned);
    kit.check();
    // After their time they are removed like other contents.
    kit.table = Table::new(6_000);
    kit.ask(Asked::Expire(kit.n * 10));
    assert!(
        !kit.has(&again) && kit.has(&lost),
        "the later one is not due"
    );
    kit.ask(Asked::Expire(kit.n * 10 + 1));
    assert!(!kit.has(&lost));
    kit.check();
}

#[test]
fn keep2_a_content_that_came_again_is_let_go_too() {
    let mut kit = Kit::new(1 << 20);
    let user = kit.version(&noise(1, 10_000), None, false);
    kit.version(&noise(2, 10_000), Some(user), true);
    // An undo writes the previous content, which is then pending again.
    kit.waiting.keep(user, noise(1, 10_000).into());
    kit.ask(Asked::Unpin(vec![user]));
    assert_eq!(
        kit.number("SELECT count(*) FROM content WHERE pinned > 0"),
        1
    );
    kit.check();
}

#[test]
fn keep2_an_agent_that_writes_without_end_fills_no_disk() {
    let mut kit = Kit::new(10_000);
    let mut before = None;
    for seed in 0..30 {
        before = Some(kit.version(&noise(seed, 10_000), before, true));
    }
    kit.settle();
    let sum = kit.number("SELECT sum(length(body)) FROM content");
    assert!(sum <= 4 * 10_000, "{sum}");
    assert!(before.is_some_and(|newest| kit.has(&newest)));
    kit.check();
}

#[test]
fn keep2_the_newest_checkpoints_of_a_session_pin_what_they_name() {
    let mut kit = Kit::new(25_000);
    let contents: Vec<_> = (0..9).map(|seed| noise(seed, 10_000)).collect();
    let create = |kit: &mut Kit, session: &str, checkpoint, oldest, hashes: &[Hash]| {
        kit.ask(Asked::Pin(hashes.to_vec(), 5));
        kit.ask(Asked::Checkpoint(CheckpointContents {
            session: SessionId::new(session).unwrap(),
            checkpoint,
            oldest,
            time: 5,
            hashes: hashes.to_vec(),
        }));
    };
    let (a, b) = (kit.keep(&contents[0]), kit.keep(&contents[1]));
    create(&mut kit, "s", 1, 0, &[a, b]);
    create(&mut kit, "s", 2, 0, &[b]);
    create(&mut kit, "other", 3, 0, &[b]);
    let fill = |kit: &mut Kit| {
        for bytes in &contents[2..] {
            kit.keep(bytes);
        }
        kit.check();
    };
    fill(&mut kit);
    assert!(kit.has(&a) && kit.has(&b));
    create(&mut kit, "s", 4, 2, &[]);
    fill(&mut kit);
    assert!(
        !kit.has(&a) && kit.has(&b),
        "the second one and the other's"
    );
    create(&mut kit, "s", 5, 5, &[]);
    fill(&mut kit);
    assert!(kit.has(&b), "the other's");
    let session = SessionId::new("other").unwrap();
    kit.say(Said::by(&Fact::SessionForgotten { session }).unwrap());
    fill(&mut kit);
    assert!(!kit.has(&b));
    assert_eq!(
        kit.number("SELECT count(*) FROM checkpoint"),
        1,
        "the newest of `s`"
    );
}

#[test]
fn sec3_a_secret_found_later_stays_in_no_chain() {
    const TOKEN: &[u8] = b"a token that nobody should have seen 0123456789";
    let mut kit = Kit::new(1 << 30);
    let mut texts = texts(5);
    // The token was in the second text, and is in no later one.
    texts[1].extend(TOKEN);
    let hashes = chain(&mut kit, &texts, true);
    let rests = "SELECT count(*) FROM content WHERE base IS NOT NULL";
    assert_eq!(kit.number(rests), 4);
    assert!(kit.waiting.keep_out(hashes[1]));
    kit.table
        .keep_out(&mut kit.connection, &kit.waiting)
        .unwrap();
    kit.check();
    for (n, hash) in hashes.iter().enumerate() {
        let expected = if n == 1 {
            Kept::Not
        } else {
            Kept::Whole(texts[n].clone())
        };
        assert!(kit.read(hash) == expected, "{n}");
    }
    assert_eq!(kit.table.shown().lock().unwrap().unwrap().since, None);
    let _: i64 = kit
        .connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    let file = fs::read(kit._directory.path().join("store.db")).unwrap();
    let part = &TOKEN[..16];
    assert!(!file.windows(part.len()).any(|window| window == part));
}

#[test]
fn dur2_a_damaged_link_costs_what_rests_on_it_and_nothing_else() {
    let mut kit = Kit::new(1 << 30);
    let texts = texts(10);
    let hashes = chain(&mut kit, &texts, false);
    let other = kit.keep(b"another content, by itself");
    let damage = |kit: &Kit, hash: &Hash| {
        kit.connection
            .execute(
                "UPDATE content SET body = zeroblob(length(body)) WHERE hash = ?1",
                [&hash.0[..]],
            )
            .unwrap();
    };
    damage(&kit, &hashes[4]);
    let there = |kit: &Kit| -> Vec<usize> { (0..10).filter(|n| kit.has(&hashes[*n])).collect() };
    assert_eq!(there(&kit), [0, 1, 2, 3]);
    assert_eq!(kit.read(&hashes[7]), Kept::Damaged);
    // A content that is met again is stored again, and is a base as before.
    for hash in &hashes[4..] {
        kit.ask(Asked::Damaged(*hash));
    }
    kit.check();
    assert_eq!(kit.number("SELECT count(*) FROM content"), 5);
    assert_eq!(
        kit.table.shown().lock().unwrap().unwrap().since,
        Some(100),
        "the last version that cannot be had any more"
    );
    chain(&mut kit, &texts, false);
    assert_eq!(there(&kit).len(), 10);
    assert!(kit.has(&other));
    // The base of all others is removed when it is damaged: no row stays that
    // cannot be read.
    damage(&kit, &hashes[0]);
    kit.table = Table::new(0);
    kit.settle();
    assert_eq!(kit.number("SELECT count(*) FROM content"), 0);
    // Bases in a circle, or missing ones.
    kit.table = Table::new(1 << 30);
    let hashes = chain(&mut kit, &texts, false);
    for to in [hashes[9], hash(1)] {
        kit.connection
            .execute(
                "UPDATE content SET base = ?1 WHERE hash = ?2",
                [&to.0[..], &hashes[3].0[..]],
            )
            .unwrap();
        assert_eq!(kit.read(&hashes[8]), Kept::Damaged);
        assert!(kit.has(&hashes[2]));
    }
}

#[test]
fn what_waits_in_memory_is_bounded() {
    let waiting = Waiting::new(1 << 20, [], Spool::default());
    for seed in 0..40 {
        let (hash, bytes) = content(seed, 1 << 20);
        waiting.keep(hash, bytes);
    }
    let there = |seed| waiting.get(&content(seed, 1 << 20).0).is_some();
    assert!(there(39) && there(24), "the newest sixteen");
    assert!(!there(23) && !there(0));
}

#[test]
fn keep3_what_agents_changed_is_not_dropped_while_it_waits() {
    let waiting = Waiting::new(1 << 20, [], Spool::default());
    let hash_of = |seed| content(seed, 1 << 20).0;
    for seed in 0..40 {
        let (hash, bytes) = content(seed, 1 << 20);
        waiting.keep(hash, bytes);
        if let Some(before) = u8::checked_sub(seed, 1)
            && seed < 10
        {
            let mut record = version(u64::from(seed), "a");
            if let Fact::Version(version) = &mut record.fact {
                version.author = Author::agent(session());
                version.held.hash = Some(hash);
                version.before = Some(hash_of(before));
            }
            waiting.heed(&[record]);
        }
    }
    let there = |seed| waiting.get(&hash_of(seed)).is_some();
    assert!(
        (0..10).all(there),
        "changes by an agent, and what was there before"
    );
    assert!(there(39) && there(24), "the newest sixteen of the others");
    assert!(!there(23) && !there(10));
    assert!(waiting.is_urgent());
}

#[test]
fn a_content_says_why_it_cannot_be_had() {
    let directory = tempfile::tempdir().unwrap();
    let world = world_with(&Options {
        contents_file: 1_000,
        ..options(directory.path())
    });
    let reader = world.opened.store.readers().open().unwrap();
    let secret = content(1, 10).0;
    world.opened.store.keep_out(secret);
    assert_eq!(reader.why_not(&secret, 10).name(), "excluded");
    assert_eq!(reader.why_not(&hash(1), 1_001).name(), "tooLarge");
    assert_eq!(reader.why_not(&hash(1), 1_000).name(), "noLongerKept");
}

#[test]
fn keep2_a_killed_daemon_pins_what_it_had_stored() {
    let directory = tempfile::tempdir().unwrap();
    let contents: Vec<_> = (0..3).map(|seed| noise(seed, 10_000)).collect();
    let hashes: Vec<Hash> = contents.iter().map(|bytes| Hash::of(bytes)).collect();
    let first = world(directory.path());
    first
        .opened
        .store
        .keep(hashes[0], contents[0].clone().into());
    first.store(&[baseline(1, "a")]);
    first.close();

    // The daemon was killed between the commit of this fact and what its writer
    // does with contents. A writer that is alive could do that first.
    let mut killed = version(2, "a");
    if let Fact::Version(version) = &mut killed.fact {
        version.author = Author::agent(session());
        version.before = Some(hashes[0]);
        version.held.hash = Some(hashes[1]);
        version.held.size = 10_000;
    }
    let file = directory.path().join("store.db");
    let mut kit = Kit::new(5_000);
    kit.connection = schema::open(&file, Durability::Process, false).unwrap();
    insert(&kit.connection, killed);
    kit.settle();
    kit.keep(&contents[2]);
    assert!(kit.has(&hashes[0]), "the base of an agent's change");
    assert!(!kit.has(&hashes[2]));
    let since = kit.table.shown().lock().unwrap().unwrap().since;
    assert_eq!(since, Some(20), "what it held was never written");
}

#[test]
fn a_content_that_changed_on_disk_is_not_returned() {
    let directory = tempfile::tempdir().unwrap();
    let (hash, bytes) = content(1, 100);
    let world = world(directory.path());
    world.opened.store.keep(hash, bytes);
    world.close();
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).unwrap();
    connection
        .execute("UPDATE content SET body = zeroblob(100)", [])
        .unwrap();
    connection.close().unwrap();
    let world = super::world(directory.path());
    let reader = world.opened.store.readers().open().unwrap();
    assert_eq!(reader.content(&hash).unwrap(), None);
}
