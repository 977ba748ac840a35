//! UNDO-4: an undo or redo by a daemon that is killed at each of its steps,
//! while an editor saves the same files, and on a full disk. The truth is the
//! files' content.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_tests::dice::Dice;
use touchmark_tests::{World, mounts, parts, repeat, text, user};

/// Returns ten lines, `line 1` to `line 10`.
fn ten() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

fn on_disk(world: &World, path: &str) -> Option<String> {
    fs::read_to_string(world.path(path)).ok()
}

/// Sends a request. The error is that the daemon was killed before its answer.
fn ask(world: &World, method: &str, params: &Value) -> std::io::Result<Value> {
    let mut client = world.client();
    let id = client.try_send(method, params)?;
    Ok(client.try_answer(id)?.unwrap())
}

/// Sends a request, and waits for its answer for as long as ten other answers
/// may take. An undo reads all versions of its files, and another test's work
/// may leave it a small part of the machine.
fn ask_patiently(world: &World, method: &str, params: &Value) -> Value {
    let mut client = world.client();
    let id = client.send(method, params);
    let is_late = |error: &std::io::Error| error.kind() == ErrorKind::TimedOut;
    for _ in 0..9 {
        match client.try_answer(id) {
            Err(error) if is_late(&error) => {}
            answer => return answer.unwrap().unwrap(),
        }
    }
    client.answer(id).unwrap()
}

/// Starts a daemon that is killed at the n-th step whose name begins with
/// `steps`; 0 for no kill.
fn start(world: &mut World, steps: &str, n: u64) {
    world.set_env("TOUCHMARK_CRASH_OF", steps);
    world.set_env("TOUCHMARK_CRASH_AT", &n.to_string());
    world.start();
}

/// Returns the progress of the recorded undos, the oldest first.
fn journal(world: &World) -> Vec<String> {
    let key = world.socket().file_stem().unwrap();
    let undos = world.state().join("touchmark").join(key).join("undo");
    let mut numbers: Vec<u64> = fs::read_dir(&undos)
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    numbers.sort_unstable();
    let state = |number: u64| {
        let entry = undos.join(number.to_string()).join("entry.json");
        // Under another name it is done.
        let Ok(entry) = fs::read(entry) else {
            return "done".to_owned();
        };
        let entry: Value = serde_json::from_slice(&entry).unwrap();
        text(&entry, "state")
    };
    numbers.into_iter().map(state).collect()
}

/// All names that the agent below changes.
const NAMES: &[&str] = &["changed", "gone", "made", "new name", "old name", "twice"];

fn held(world: &World) -> Vec<(&'static str, Option<String>, Option<u32>)> {
    let held = NAMES.iter().map(|name| {
        let mode = fs::metadata(world.path(name)).ok();
        let mode = mode.map(|metadata| metadata.permissions().mode() & 0o777);
        (*name, on_disk(world, name), mode)
    });
    held.collect()
}

/// Creates a world in which an agent has changed, created, removed and renamed
/// files, and the user has changed some of them since.
fn worked() -> World {
    let world = World::new();
    let mut agent = world.session("a");
    for name in ["changed", "gone", "old name", "twice"] {
        world.file(name, ten());
        agent.read(name);
    }
    for name in ["gone", "old name"] {
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut edit = |path: &str, old: &str, new: &str| {
        let params = json!({"path": path, "oldString": old, "newString": new});
        agent.ok("file/edit", params);
    };
    edit("changed", "line 2\n", "two\n");
    edit("twice", "line 2\n", "two\n");
    edit("twice", "line 9\n", "");
    agent.ok("file/write", json!({"path": "made", "text": "1\n2\n"}));
    let begun = agent.ok("command/begin", json!({"label": "rm and mv"}));
    fs::remove_file(world.path("gone")).unwrap();
    fs::rename(world.path("old name"), world.path("new name")).unwrap();
    let command = json!({"command": begun["command"]});
    agent.client.ok("command/end", command);
    for name in ["changed", "new name"] {
        let now = on_disk(&world, name).unwrap();
        user::overwrite(&world.path(name), &now.replace("line 5", "mine"));
    }
    agent.sync();
    world
}

/// Kills the daemon at each of these steps of an undo, and of its redo.
fn cut(steps: &str) {
    let mut world = worked();
    let session = json!({"session": "a", "now": true});
    let worked = held(&world);
    ask(&world, "undo", &session).unwrap();
    let undone = held(&world);
    assert!(worked.iter().zip(&undone).all(|(was, is)| was != is));
    ask(&world, "redo", &json!({})).unwrap();
    let (mut before, mut after) = (worked, undone);
    assert_eq!(held(&world), before);
    for (method, params) in [("undo", session), ("redo", json!({}))] {
        let mut n = 1;
        loop {
            world.stop();
            start(&mut world, steps, n);
            let lived = ask(&world, method, &params).is_ok();
            let what = format!("{method} ended at step {n} of {steps:?}");
            if !lived {
                world.kill();
                start(&mut world, "", 0);
            }
            let now = held(&world);
            assert!(now == before || now == after, "{what}: {now:#?}");
            // No file is left under a temporary name.
            let all = fs::read_dir(world.workspace()).unwrap();
            let mut names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let other = names.find(|name| !NAMES.contains(&name.as_str()));
            assert_eq!(other, None, "{what}");
            assert!(!lived || now == after, "{what}");
            assert!(!journal(&world).contains(&"begun".to_owned()), "{what}");
            if now == after {
                let mut agent = world.session("a");
                let story = agent.story("changed");
                assert!(
                    story.last().unwrap().starts_with("user "),
                    "{what}: {story:?}"
                );
                if lived {
                    break;
                }
                let back = if method == "undo" { "redo" } else { "undo" };
                let params = match back {
                    "undo" => json!({"session": "a", "now": true}),
                    _ => json!({}),
                };
                ask(&world, back, &params).unwrap();
                assert_eq!(held(&world), before, "{what}, and taken back");
            }
            n += 1;
        }
        assert!(n > 5, "{n} steps of {method}");
        std::mem::swap(&mut before, &mut after);
    }
    world.healthy();
}

#[test]
fn undo4_ended_at_each_step_all_of_it_is_done_or_nothing() {
    cut("undo");
}

#[test]
fn undo4_ended_at_each_step_of_its_writes_all_of_it_is_done_or_nothing() {
    if parts::heavy("an undo that is ended at each step of its guarded writes") {
        cut("guard");
    }
}

#[test]
fn undo4_a_renamed_file_stays_where_its_old_name_is_taken_before_the_next_start() {
    let mut world = worked();
    let renamed = on_disk(&world, "new name");
    world.stop();
    // All is on record, and nothing is written.
    start(&mut world, "undo", 1);
    assert!(ask(&world, "undo", &json!({"session": "a", "now": true})).is_err());
    world.kill();
    world.file("old name", "mine\n");
    start(&mut world, "", 0);
    assert_eq!(on_disk(&world, "old name").unwrap(), "mine\n");
    assert_eq!(on_disk(&world, "new name"), renamed);
    assert_eq!(on_disk(&world, "gone").unwrap(), ten());
    world.healthy();
}

/// The number of files in the race.
const FILES: usize = 50;

/// The maximum number of saves during one undo. On a busy machine the undo is
/// slow, and there would be ever more versions, which make it slower.
const MOST_SAVES: u64 = 2_000;

/// How a daemon is killed in the middle of an undo.
enum End {
    /// After this number of milliseconds.
    After(u64),
    /// At the step with this number.
    At(u64),
}

/// Saves files as an editor. Returns what was saved in each, which must be
/// there at the end.
fn edit_at_random(files: &[PathBuf], stop: &AtomicBool, name: &str) -> Vec<Vec<String>> {
    let mut dice = Dice::new(7, name);
    let mut saved = vec![Vec::new(); files.len()];
    let mut number = 0_u64;
    while !stop.load(Ordering::SeqCst) {
        if number == MOST_SAVES {
            user::pause(1);
            continue;
        }
        let at = dice.index(files.len());
        let now = fs::read_to_string(&files[at]).unwrap();
        let mut lines: Vec<&str> = now.split_inclusive('\n').collect();
        number += 1;
        let line = format!("mine {name}.{number}\n");
        lines.insert(dice.index(lines.len() + 1), &line);
        user::replace(&files[at], &lines.concat());
        saved[at].push(line);
    }
    saved
}

/// Sends a request to a daemon that is killed in the meantime, while an editor
/// saves, and starts the next daemon. Returns what was saved.
fn in_the_middle(
    world: &mut World,
    (files, name): (&[PathBuf], &str),
    (method, params): (&'static str, &Value),
    end: &End,
) -> Vec<Vec<String>> {
    if let End::At(n) = end {
        world.stop();
        start(world, "undo", *n);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let editor = {
        let (files, stop, name) = (files.to_vec(), Arc::clone(&stop), name.to_owned());
        std::thread::spawn(move || edit_at_random(&files, &stop, &name))
    };
    match end {
        End::After(milliseconds) => {
            let mut client = world.client();
            let params = params.clone();
            // What the killed daemon does not answer, the next completes.
            let asked = std::thread::spawn(move || {
                let id = client.try_send(method, &params)?;
                client.try_answer(id)
            });
            user::pause(*milliseconds);
            world.kill();
            let _answered = asked.join().unwrap();
        }
        End::At(_) => {
            let _answered = ask(world, method, params);
            world.kill();
        }
    }
    start(world, "", 0);
    stop.store(true, Ordering::SeqCst);
    editor.join().unwrap()
}

/// Undoes the changes of many files that an editor saves at random, and redoes
/// them, each with a daemon that is killed.
fn race(ends: impl Iterator<Item = End>) {
    let mut world = World::new();
    let names: Vec<String> = (0..FILES).map(|n| format!("src/{n}.txt")).collect();
    for name in &names {
        world.file(name, ten());
    }
    let files: Vec<_> = names.iter().map(|name| world.path(name)).collect();
    let mut mine: Vec<Vec<String>> = vec![Vec::new(); FILES];
    let session = json!({"session": "a", "now": true});
    let mut rounds = 0;
    let mut longest = Duration::ZERO;
    for (round, end) in ends.enumerate() {
        rounds += 1;
        let mut agent = world.session("a");
        for name in &names {
            let now = on_disk(&world, name).unwrap();
            let with = format!("top by the agent {round}\n{now}end by the agent {round}\n");
            let params = json!({"path": name, "text": with, "force": true});
            agent.ok("file/write", params);
        }
        let all = |world: &World, mine: &[Vec<String>], what: &str| {
            let mut lines_of_the_agent = Vec::new();
            for (name, own) in names.iter().zip(mine) {
                let now = on_disk(world, name).unwrap();
                let lines: Vec<&str> = now.split_inclusive('\n').collect();
                let base = ten();
                let own = own.iter().map(String::as_str);
                for line in own.chain(base.split_inclusive('\n')) {
                    let times = lines.iter().filter(|other| **other == line).count();
                    assert_eq!(times, 1, "{what}: {line:?} in {name}: {now}");
                }
                let of_this = format!("by the agent {round}\n");
                let is_agents = |line: &&&str| line.ends_with(&of_this);
                lines_of_the_agent.push(lines.iter().filter(is_agents).count());
            }
            lines_of_the_agent
        };
        for method in ["undo", "redo"] {
            let what = format!("round {round}, {method}");
            let name = format!("{method}{round}");
            let params = if method == "undo" {
                session.clone()
            } else {
                json!({})
            };
            let saved = in_the_middle(&mut world, (&files, &name), (method, &params), &end);
            for (own, more) in mine.iter_mut().zip(saved) {
                own.extend(more);
            }
            let left = all(&world, &mine, &what);
            assert!(
                left.iter().all(|lines| [0, 2].contains(lines)),
                "{what}: {left:?}"
            );
            assert!(!journal(&world).contains(&"begun".to_owned()), "{what}");
            if method == "redo" {
                // Where a save came before it could be observed, what it
                // put back is the user's.
                continue;
            }
            let asked = Instant::now();
            let undone = ask_patiently(&world, "undo", &session);
            longest = longest.max(asked.elapsed());
            let left = all(&world, &mine, &what);
            let files = undone["files"].as_array().unwrap();
            // A daemon that is killed may not have kept yet what files held
            // (KEEP-3), and says so.
            let is_kept = |name: &str| {
                let row = files.iter().find(|row| row["path"] == *name);
                row.is_none_or(|row| row["outcome"] != "notKept")
            };
            // An editor that read the file before the undo and saves after it
            // writes the agent's lines again. They are not the agent's then.
            let is_by_the_agent = |at: usize| {
                let now = on_disk(&world, &names[at]).unwrap();
                let blame = world.client().ok("file/blame", json!({"path": names[at]}));
                let authors = blame["lines"].as_array().unwrap();
                let mut lines = now.lines().zip(authors);
                let of_this = format!("by the agent {round}");
                lines
                    .any(|(line, row)| line.ends_with(&of_this) && row["author"]["kind"] == "agent")
            };
            let is_left =
                |at: &usize| left[*at] > 0 && is_kept(&names[*at]) && is_by_the_agent(*at);
            if let Some(at) = (0..FILES).find(is_left) {
                let path = &names[at];
                let ask = json!({"path": path, "limit": 1_000});
                panic!(
                    "{what}, and undone again, {left:?} lines are left; {path}: {:?}\n{:#}\n{}",
                    files.iter().find(|row| row["path"] == **path),
                    world.client().ok("file/history", ask),
                    on_disk(&world, path).unwrap(),
                );
            }
        }
    }
    let saves = mine.iter().map(Vec::len).sum::<usize>();
    println!("{rounds} rounds, {saves} saves; the longest undo took {longest:?}");
    assert!(saves > 50, "the editor saved next to nothing");
    world.audit();
}

#[test]
fn undo5_a_race_of_undo_saves_and_kills_loses_nothing() {
    let rounds = repeat::repetitions().min(4);
    let mut dice = Dice::new(15, "moments");
    race((0..rounds).map(|_| End::After(dice.below(60))));
}

#[test]
fn undo5_a_race_of_undo_and_saves_loses_nothing_at_any_step() {
    // An intent, two steps for each file, and an end.
    let last = 2 + 2 * FILES as u64;
    let all = parts::long(&format!(
        "a race ended at each of {last} steps, every thirtieth here"
    ));
    let far = if all { 1 } else { 30 };
    race((1..=last).step_by(far).map(End::At));
}

#[test]
fn undo4_on_a_full_disk_a_file_is_undone_or_as_it_was() {
    const SIZE: usize = 300 << 10;
    mounts::apart(|| {
        let place = tempfile::tempdir().unwrap();
        mounts::mount("tmpfs", "tmpfs", "size=24m,mode=0700", place.path());
        let mut world = World::asleep_in(place.path());
        world.set_env("JOURNAL_STREAM", "test");
        world.start();
        let mut agent = world.session("a");
        let names: Vec<String> = (0..8).map(|n| format!("{n}.txt")).collect();
        let large = |name: &str| format!("{name}\n").repeat(SIZE / (name.len() + 1));
        for name in &names {
            world.file(name, large(name));
            agent.read(name);
            agent.ok("file/write", json!({"path": name, "text": "small\n"}));
        }
        // Files that were replaced are held for a while (GUARD-1).
        world.stop();
        world.start();
        // Room for what is recorded, and for half of the files.
        let room = (names.len() + names.len() / 2) * SIZE;
        let free = rustix::fs::statvfs(place.path()).unwrap();
        let free = usize::try_from(free.f_bavail * free.f_frsize).unwrap();
        let filling = world.outside().join("filling");
        fs::write(&filling, vec![0; free - room]).unwrap();
        let undone = world.client().call("undo", json!({"session": "a"}));
        fs::remove_file(filling).unwrap();
        let outcomes: Vec<String> = match &undone {
            Ok(undone) => {
                let files = undone["files"].as_array().unwrap().iter();
                files.map(|file| text(file, "outcome")).collect()
            }
            // The store had no space left either (LOSS-3).
            Err(error) => {
                assert_eq!(error.name, "storage", "{error}");
                let is_small = |name: &String| on_disk(&world, name).unwrap() == "small\n";
                let told = |name| if is_small(name) { "failed" } else { "undone" };
                names.iter().map(|name| told(name).to_owned()).collect()
            }
        };
        let is_as_told = |world: &World| {
            for (name, outcome) in names.iter().zip(&outcomes) {
                let now = on_disk(world, name).unwrap();
                match &**outcome {
                    "undone" => assert!(now == large(name), "{name} {}", now.len()),
                    "failed" => assert_eq!(now, "small\n", "{name}: {undone:?}"),
                    other => panic!("{name} {other}: {undone:?}"),
                }
            }
        };
        is_as_told(&world);
        let some = |wanted: &str| outcomes.iter().any(|outcome| outcome == wanted);
        let is_part = some("undone") && some("failed");
        assert!(is_part || undone.is_err(), "{outcomes:?}");
        // What could not be written is not written later, unasked.
        world.kill();
        world.start();
        is_as_told(&world);
        assert!(!journal(&world).contains(&"begun".to_owned()));
        ask(&world, "undo", &json!({"session": "a"})).unwrap();
        for name in &names {
            assert!(on_disk(&world, name).unwrap() == large(name), "{name}");
        }
        world.kill();
        drop(world);
        mounts::detach(place.path());
    });
}
