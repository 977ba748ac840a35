//! examples/fleet: many real daemons with scripted agents export to a real
//! collector that is killed, stopped, cut off from its store and restarted.
//! Every fact arrives, none twice after joining by id, and the nine queries of
//! the page give what the scripts have counted.
//!
//! `TOUCHMARK_FLEET="daemons seconds"` sets the size of the fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use touchmark_tests::fleet_export::instances::Instances;
use touchmark_tests::fleet_export::ledger::Fleet;
use touchmark_tests::fleet_export::line::{self, Answer, Line};
use touchmark_tests::fleet_export::load::Load;
use touchmark_tests::fleet_export::page;
use touchmark_tests::fleet_export::script::Place;
use touchmark_tests::mounts::apart;
use touchmark_tests::otlp::Collector;
use touchmark_tests::stop::SetsOnDrop;
use touchmark_tests::user::pause;
use touchmark_tests::{World, parts};

/// How long the last records may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// Work trees of each repository.
const WORKTREES: usize = 4;

/// How many threads act at the same time, each in its own workspaces.
const HANDS: usize = 16;

/// The size of a fleet.
struct Size {
    daemons: usize,
    seconds: u64,
}

impl Size {
    /// Returns the wanted size, or this one.
    fn or(daemons: usize, seconds: u64) -> Self {
        let wanted = std::env::var("TOUCHMARK_FLEET").unwrap_or_default();
        let mut words = wanted.split_whitespace().map(|word| word.parse().unwrap());
        match (words.next(), words.next()) {
            (Some(daemons), Some(seconds)) => Self {
                daemons: usize::try_from(daemons).unwrap(),
                seconds,
            },
            _ => Self { daemons, seconds },
        }
    }
}

fn settings(endpoint: &str) -> String {
    format!("[telemetry]\nenabled = true\nendpoint = {endpoint:?}\npaths = \"plain\"\n")
}

#[test]
fn the_page_and_the_dashboard_have_the_same_queries() {
    let page = page::read();
    assert_eq!(page.questions.len(), 9);
    let mut made = serde_json::to_string_pretty(&page::dashboard(&page)).unwrap();
    made.push('\n');
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        fs::write(page::dashboard_path(), &made).unwrap();
    }
    let stored = fs::read_to_string(page::dashboard_path()).unwrap();
    assert_eq!(
        stored, made,
        "examples/fleet/dashboard.json differs from its README.md: \
         TOUCHMARK_BLESS=1 cargo test -p touchmark-tests fleet_export::"
    );
}

#[test]
fn a_small_fleet_arrives() {
    if parts::heavy("a small fleet exports to rotel, and ClickHouse answers") {
        run(&Size::or(12, 45));
    }
}

#[test]
fn a_large_fleet_arrives() {
    if parts::long("200 daemons export to rotel for ten minutes, and ClickHouse answers") {
        run(&Size::or(200, 600));
    }
}

fn run(size: &Size) {
    let Some(python) = line::python("a fleet") else {
        return;
    };
    let Some(_limit) = Instances::for_daemons(size.daemons) else {
        parts::not_tested("a fleet: this user may not raise fs.inotify.max_user_instances");
        return;
    };
    // A file system of its own for the store, so that it can be full.
    apart(|| arrives(size, &python));
}

fn arrives(size: &Size, python: &Path) {
    let mut line = Line::new(python, true);
    let shared = tempfile::tempdir_in(touchmark_tests::world::target()).unwrap();
    let settings = settings(&line.endpoint());
    let places: Vec<Mutex<Place>> = (0..size.daemons)
        .map(|number| {
            let repository = number / WORKTREES;
            let directory = shared.path().join(repository.to_string());
            if number % WORKTREES == 0 {
                fs::create_dir(&directory).unwrap();
                let origin = format!("https://git.example/team/{repository}.git");
                Place::found(&directory, &origin);
            }
            Mutex::new(Place::new(number, repository, &directory, 18, &settings))
        })
        .collect();
    println!("{} daemons run", places.len());

    let began = Instant::now();
    let over = AtomicBool::new(false);
    let steps = std::thread::scope(|scope| {
        let end = SetsOnDrop(&over);
        let hands: Vec<_> = (0..HANDS)
            .map(|hand| {
                let (places, over) = (&places, &over);
                scope.spawn(move || act(places, hand, over))
            })
            .collect();
        disturb(&mut line, began, Duration::from_secs(size.seconds));
        drop(end);
        hands
            .into_iter()
            .map(|hand| hand.join().unwrap())
            .sum::<u64>()
    });
    println!("{steps} steps in {:.0} s", began.elapsed().as_secs_f32());

    let mut places: Vec<Place> = places
        .into_iter()
        .map(|place| place.into_inner().unwrap())
        .collect();
    compare(&mut line, &mut places);
    println!("rotel: {:?}", line.load());
    let daemons = places.iter().map(|place| Load::of(place.world.pid()));
    println!(
        "daemons: {:?}",
        daemons.fold(Load::default(), |sum, one| sum + one)
    );
}

/// Does one thing after another in each of its workspaces, until it is over.
/// Returns the number of things.
fn act(places: &[Mutex<Place>], hand: usize, over: &AtomicBool) -> u64 {
    let mut steps = 0;
    loop {
        for place in places.iter().skip(hand).step_by(HANDS) {
            if over.load(Ordering::Relaxed) {
                return steps;
            }
            place.lock().unwrap().step();
            steps += 1;
            // The pace of the scripts.
            pause(60);
        }
        if hand >= places.len() {
            return steps;
        }
    }
}

/// Disturbs the line to the store until the time is over.
fn disturb(line: &mut Line, began: Instant, whole: Duration) {
    let until = |percent: u32| {
        let moment = began + whole * percent / 100;
        std::thread::sleep(moment.saturating_duration_since(Instant::now()));
    };
    until(8);
    line.kill();
    until(14);
    line.start();
    until(22);
    line.stop();
    until(38);
    line.go_on();
    until(46);
    line.fill();
    until(58);
    line.make_room();
    until(66);
    line.end();
    line.start();
    until(72);
    line.stop();
    line.kill();
    line.start();
    until(80);
    line.fill();
    line.kill();
    until(84);
    line.start();
    until(88);
    line.make_room();
    until(100);
}

/// Compares the store with the daemons' logs and with the scripts' ledgers.
fn compare(line: &mut Line, places: &mut [Place]) {
    let mut recorded = Vec::new();
    for place in &mut *places {
        place.commit();
        recorded.push(place.finish());
    }
    let end = Instant::now() + PATIENCE;
    for place in &mut *places {
        loop {
            let telemetry = place.telemetry();
            assert_eq!(telemetry["pruned"], 0, "{telemetry}");
            assert_eq!(telemetry["rejected"], 0, "{telemetry}");
            if telemetry["unsent"] == 0 {
                break;
            }
            assert!(Instant::now() < end, "not everything is sent: {telemetry}");
            pause(200);
        }
    }
    loop {
        let counts = line.counts();
        if counts["reported"] == counts["acknowledged"] {
            println!("{counts:?}");
            assert_eq!(counts["lost"], 0);
            break;
        }
        assert!(Instant::now() < end, "records are missing: {counts:?}");
        pause(200);
    }

    let page = page::read();
    let mut queries: BTreeMap<String, String> = page
        .questions
        .iter()
        .map(|question| (question.name.clone(), question.query.clone()))
        .collect();
    // The whole answers of questions that list the first rows.
    for question in &page.questions {
        let whole = question.query.replace("\nLIMIT 1000", "");
        queries.insert(format!("=all {}", question.name), whole);
    }
    for (name, query) in OURS {
        queries.insert(name.into(), query.into());
    }
    let answers = line.ask(&queries);
    let repeated = &answers["=repeated"].plain()[0];
    println!("rows and facts: {repeated:?}");
    for row in answers["=sizes"].plain() {
        println!("table, rows, bytes: {row:?}");
    }
    let differ = &answers["=differ"].plain();
    assert!(differ.is_empty(), "one id, two facts: {differ:?}");
    every_fact(&answers["=facts"], places, &recorded);

    let ledgers = places.iter().map(|place| &place.ledger).collect();
    let fleet = Fleet {
        ledgers,
        repositories: repositories(&answers["=repositories"], places),
    };
    for question in &page.questions {
        let whole = &answers[&format!("=all {}", question.name)];
        let listed = &answers[&question.name].rows;
        assert_eq!(listed, &whole.rows[..listed.len()], "{}", question.title);
        assert!(listed.len() == whole.rows.len() || listed.len() == 1_000);
        let told = whole.plain();
        let mut expected = fleet.answer(&question.name);
        expected.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(told, expected, "{}", question.title);
        println!("{}: {} rows agree", question.name, told.len());
    }
}

/// Queries of this test.
const OURS: [(&str, &str); 5] = [
    (
        "=repeated",
        "SELECT count() AS records, \
         uniqExact(ResourceAttributes['service.instance.id'], LogAttributes['log.record.uid']) \
         AS facts FROM otel.otel_logs",
    ),
    (
        "=differ",
        "SELECT ResourceAttributes['service.instance.id'] AS instance, \
         LogAttributes['log.record.uid'] AS uid, uniqExact(Timestamp, EventName, \
         arrayFilter(pair -> pair.1 NOT IN ('gen_ai.request.model', 'gen_ai.agent.name', \
         'gen_ai.agent.version', 'touchmark.session.label'), \
         arraySort(arrayZip(mapKeys(LogAttributes), mapValues(LogAttributes))))) AS kinds \
         FROM otel.otel_logs GROUP BY instance, uid HAVING kinds > 1",
    ),
    (
        "=facts",
        "SELECT instance, session, event, uid, count() AS rows \
         FROM otel.touchmark_records FINAL GROUP BY instance, session, event, uid",
    ),
    (
        "=repositories",
        "SELECT DISTINCT repository, instance, session FROM otel.touchmark WHERE session != ''",
    ),
    (
        "=sizes",
        "SELECT table, sum(rows) AS rows, sum(bytes_on_disk) AS bytes FROM system.parts \
         WHERE active AND database = 'otel' GROUP BY table",
    ),
];

/// Asserts that the store has every fact of the daemons' logs, and no other.
fn every_fact(
    facts: &Answer,
    places: &[Place],
    recorded: &[BTreeMap<&'static str, BTreeSet<String>>],
) {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    // The workspace of each instance, by its sessions.
    let owners: BTreeMap<String, usize> = places
        .iter()
        .enumerate()
        .flat_map(|(at, place)| place.sessions().into_iter().map(move |name| (name, at)))
        .collect();
    let mut instances: BTreeMap<String, usize> = BTreeMap::new();
    for row in &facts.rows {
        if let Some(&at) = owners.get(&word(&row[1])) {
            let known = instances.insert(word(&row[0]), at);
            assert!(known.is_none_or(|known| known == at), "{row:?}");
        }
    }
    let mut stored: Vec<BTreeMap<String, BTreeSet<String>>> = vec![BTreeMap::new(); places.len()];
    for row in &facts.rows {
        let of_place = &mut stored[instances[&word(&row[0])]];
        let of_event = of_place.entry(word(&row[2])).or_default();
        assert!(of_event.insert(word(&row[3])), "twice: {row:?}");
    }
    for (at, (recorded, stored)) in recorded.iter().zip(&stored).enumerate() {
        for (event, clocks) in recorded {
            let empty = BTreeSet::new();
            let stored = stored.get(*event).unwrap_or(&empty);
            let missing: Vec<_> = clocks.difference(stored).collect();
            let more: Vec<_> = stored.difference(clocks).collect();
            // Contents decide whether anything of such a version is lost. The
            // log compares them, a record of telemetry has none.
            let may_be_more = *event == "touchmark.lost";
            assert!(
                missing.is_empty() && (more.is_empty() || may_be_more),
                "workspace {at}, {event}: missing {missing:?}, unknown {more:?}"
            );
        }
    }
    let count: usize = stored
        .iter()
        .flat_map(BTreeMap::values)
        .map(BTreeSet::len)
        .sum();
    println!("{count} facts, each once");
}

/// Returns the names that daemons gave to repositories. Work trees of one
/// repository have the same, others have different ones.
fn repositories(rows: &Answer, places: &[Place]) -> BTreeMap<usize, String> {
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for row in &rows.rows {
        let (name, session) = (row[0].as_str().unwrap(), row[2].as_str().unwrap());
        let place = places
            .iter()
            .find(|place| place.sessions().iter().any(|own| own == session));
        let repository = place.unwrap().ledger.repository;
        let known = names.entry(repository).or_insert_with(|| name.into());
        assert_eq!(known, name, "{row:?}");
    }
    let different: BTreeSet<&String> = names.values().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    names
}

#[test]
fn a_daemon_at_rest_costs_nothing_more() {
    let collector = Collector::new();
    let mut worlds = [World::asleep(), World::asleep()];
    worlds[1].configure(&settings(&collector.endpoint()));
    for world in &mut worlds {
        world.start();
        let mut agent = world.session("a");
        for n in 0..50 {
            let path = format!("f{n}");
            world.file(&path, "one\n");
            agent.read(&path);
            world.file(&path, "two\n");
            agent.sync();
        }
    }
    collector.wait("the records", |collector| collector.joined().len() >= 100);
    // What follows from the changes has ended as well.
    for world in &worlds {
        world.client().ok("sync", serde_json::json!({}));
    }
    let rest = |world: &World| {
        let before = Load::of(world.pid());
        pause(5_000);
        Load::of(world.pid()) - before
    };
    let loads: Vec<Load> = worlds
        .iter()
        .zip(["off", "on"])
        .map(|(world, what)| {
            // Threads that have nothing to do end after ten seconds. A timer
            // would never leave it at rest for fifteen.
            let end = Instant::now() + PATIENCE;
            let (mut calm, mut load) = (0, Load::default());
            while calm < 3 {
                assert!(Instant::now() < end, "no rest with export {what}: {load:?}");
                load = rest(world);
                calm = if load.switches == 0 { calm + 1 } else { 0 };
            }
            println!(
                "export {what}: {} KiB, {:.2} s of processor and {} wake-ups in 5 s at rest; \
                 {:.2} s of processor since the start",
                load.private,
                load.processor,
                load.switches,
                Load::of(world.pid()).processor
            );
            load
        })
        .collect();
    let more = loads[1].private.saturating_sub(loads[0].private);
    assert!(more <= 2_048, "{more} KiB more with export");
}
