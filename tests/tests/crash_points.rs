//! `kill -9` at every failpoint between two effects (DUR-1, GUARD-1): before
//! and after each commit of the store, each effect, each answer, each step of a
//! guarded write, of a snapshot, of a start and of a shutdown.
//!
//! A fixed sequence of requests is run once without a kill, and the visible
//! state is recorded after each step. Then it is run repeatedly, and the daemon
//! is killed at the n-th failpoint, started again, killed at some failpoint of
//! that start, and started once more. The visible state must then be the one
//! recorded for the last answered step, or for the one in progress.
//!
//! With `TOUCHMARK_PARTS=1` (`tests/run --parts`) every failpoint is tried,
//! otherwise some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use touchmark_tests::{Client, World, author, parts, sha256, text, user};

/// The number of failpoints in a quick run.
const QUICK: u64 = 36;

/// The number of worlds in parallel.
const LANES: usize = 4;

const SESSIONS: &[&str] = &["a", "b"];

/// All files that the sequence writes.
const FILES: &[&str] = &["f", "g", "h", "linked", "made", "moved", "own"];

/// One step: its change on disk, if any, then a request.
struct Step {
    save: Option<fn(&World)>,
    method: &'static str,
    params: Value,
}

fn ask(method: &'static str, params: Value) -> Step {
    Step {
        save: None,
        method,
        params,
    }
}

/// Returns a step in which a user saves, and a query of a session that has read
/// the file settles it.
fn saved_for(session: &str, save: fn(&World)) -> Step {
    Step {
        save: Some(save),
        method: "file/status",
        params: json!({"session": session}),
    }
}

fn saved(save: fn(&World)) -> Step {
    saved_for("a", save)
}

impl Step {
    /// Returns whether the step writes a file without a declaration.
    fn writes_undeclared(&self) -> bool {
        self.save.is_some()
    }

    /// Returns the file that the daemon writes in this step; `None` for no
    /// file.
    fn written(&self) -> Option<&str> {
        match self.method {
            "file/write" | "file/edit" => self.params["path"].as_str(),
            // The one that is restored.
            _ if self.save.is_some() => Some("g"),
            _ => None,
        }
    }
}

/// Returns the sequence of steps. It has every kind of request that changes
/// stored state.
fn steps() -> Vec<Step> {
    let hash = |content: &str| json!(sha256(content));
    vec![
        ask(
            "session/open",
            json!({"session": "a", "agent": {"name": "t", "version": "1"}, "pid": 1}),
        ),
        ask("session/open", json!({"session": "b", "parent": "a"})),
        ask(
            "file/read",
            json!({"session": "a", "path": "f", "hash": hash("f 0\n")}),
        ),
        ask("file/readText", json!({"session": "a", "path": "g"})),
        ask("file/readText", json!({"session": "a", "path": "linked"})),
        ask("file/mention", json!({"session": "b", "path": "f"})),
        ask(
            "file/read",
            json!({"session": "b", "path": "g", "hash": hash("g 0\n")}),
        ),
        // The agent's own writes.
        ask(
            "edit/begin",
            json!({"session": "a", "callId": "1",
                   "files": [{"path": "f", "expect": hash("f 1\n")}]}),
        ),
        saved(|world| user::write(&world.path("f"), "f 1\n")),
        ask(
            "edit/commit",
            json!({"session": "a", "callId": "1", "files": [{"path": "f", "hash": hash("f 1\n")}]}),
        ),
        ask(
            "edit/mark",
            json!({"session": "a", "path": "own", "expect": hash("own 1\n")}),
        ),
        saved(|world| user::replace(&world.path("own"), "own 1\n")),
        ask("edit/mark", json!({"session": "a", "path": "own"})),
        saved(|world| user::write(&world.path("own"), "own 2\n")),
        ask(
            "edit/begin",
            json!({"session": "b", "callId": "2", "force": true, "files": [{"path": "f"}]}),
        ),
        saved(|world| user::write(&world.path("f"), "f 2\n")),
        ask("edit/abort", json!({"session": "b", "callId": "2"})),
        // People.
        ask("editor/didOpen", json!({"path": "g"})),
        ask("editor/dirty", json!({"path": "g", "dirty": true})),
        saved(|world| user::replace(&world.path("g"), "g 1\n")),
        ask(
            "editor/didSave",
            json!({"path": "g", "hash": hash("g 1\n")}),
        ),
        ask("editor/didClose", json!({"path": "g"})),
        saved(|world| user::write(&world.path("h"), "h 1\n")),
        ask("file/mention", json!({"session": "b", "path": "h"})),
        saved_for("b", |world| {
            fs::rename(world.path("h"), world.path("moved")).unwrap();
        }),
        // What changed.
        ask("modified/take", json!({"session": "b", "peek": true})),
        ask("modified/take", json!({"session": "a", "ack": "explicit"})),
        ask("modified/ack", json!({"session": "a"})),
        ask("modified/take", json!({"session": "b"})),
        // Guarded writes: exchanged, refused, forced, in place, new.
        ask(
            "file/write",
            json!({"session": "a", "path": "f", "text": "no\n"}),
        ),
        ask(
            "file/read",
            json!({"session": "a", "path": "f", "hash": hash("f 2\n")}),
        ),
        ask(
            "file/write",
            json!({"session": "a", "path": "f", "text": "f 3\n"}),
        ),
        ask(
            "file/edit",
            json!({"session": "a", "path": "f", "oldString": "3", "newString": "4"}),
        ),
        ask(
            "file/write",
            json!({"session": "a", "path": "g", "text": "g 2\n", "force": true}),
        ),
        ask(
            "file/write",
            json!({"session": "a", "path": "linked", "text": "linked, and longer, 1\n"}),
        ),
        ask(
            "file/write",
            json!({"session": "b", "path": "linked", "text": "l 2\n", "force": true}),
        ),
        ask(
            "file/write",
            json!({"session": "b", "path": "made", "text": "made 1\n"}),
        ),
        // What was kept.
        saved(restore),
        ask("recovery/delete", json!({"id": "r1"})),
        // A command.
        ask(
            "command/begin",
            json!({"session": "b", "callId": "3", "label": "make"}),
        ),
        saved_for("b", |world| user::write(&world.path("made"), "made 2\n")),
        ask("command/end", json!({"session": "b", "callId": "3"})),
        // The context.
        ask(
            "session/truncated",
            json!({"session": "a", "items": [{"path": "f"}]}),
        ),
        ask("file/readText", json!({"session": "a", "path": "f"})),
        ask("session/compacted", json!({"session": "a", "keep": ["f"]})),
        ask("file/invalidate", json!({"session": "a", "path": "g"})),
        ask("file/untrack", json!({"session": "b", "path": "moved"})),
        ask("audit", json!({})),
        ask("session/close", json!({"session": "b"})),
        ask("session/open", json!({"session": "b"})),
        ask("session/close", json!({"session": "b", "forget": true})),
        // Snapshot, end.
        ask("shutdown", json!({})),
    ]
}

/// Restores recovered bytes under their name. For the files this is a save by
/// the user.
fn restore(world: &World) {
    if let Ok(mut client) = Client::connect(world.socket())
        && let Ok(id) = client.try_send("recovery/restore", &json!({"id": "r1"}))
        && let Ok(answer) = client.try_answer(id)
    {
        assert!(answer.is_ok(), "{answer:?}");
    }
}

fn world() -> World {
    let world = World::asleep();
    for name in ["f", "g", "h", "linked", "own"] {
        world.file(name, format!("{name} 0\n"));
    }
    fs::hard_link(world.path("linked"), world.path("other name")).unwrap();
    world
}

/// Runs the sequence until the daemon is killed. Returns the number of answered
/// steps. Calls `seen` after each.
fn play(world: &World, steps: &[Step], mut seen: impl FnMut(usize)) -> usize {
    let Ok(mut client) = Client::connect(world.socket()) else {
        return 0;
    };
    let mut cursor = Value::Null;
    for (index, step) in steps.iter().enumerate() {
        if let Some(save) = step.save {
            save(world);
        }
        let mut params = step.params.clone();
        if step.method == "modified/ack" {
            params["cursor"] = cursor.clone();
        }
        let answer = client
            .try_send(step.method, &params)
            .and_then(|id| client.try_answer(id));
        let Ok(answer) = answer else { return index };
        if let Ok(answer) = &answer {
            cursor = answer["cursor"].clone();
        } else {
            assert_eq!(
                params["text"], "no\n",
                "{} {params}: {answer:?}",
                step.method
            );
        }
        seen(index);
    }
    steps.len()
}

/// The visible state by name, without times and numbers.
type View = BTreeMap<String, Value>;

fn look(world: &World) -> View {
    let mut view = View::new();
    let mut client = world.client();
    for session in SESSIONS {
        client.ok("session/open", json!({"session": session}));
        let states = client.ok("file/status", json!({"session": session, "paths": FILES}));
        for state in states["files"].as_array().unwrap() {
            let fields = [
                "state",
                "mayEdit",
                "resident",
                "hash",
                "seenHash",
                "readCount",
            ];
            let fields: Vec<&Value> = fields.iter().map(|field| &state[*field]).collect();
            view.insert(
                format!("{session} holds {}", text(state, "path")),
                json!(fields),
            );
        }
        let taken = client.ok("modified/take", json!({"session": session, "peek": true}));
        for path in FILES {
            let rows: Vec<Value> = taken["changes"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|change| change["path"] == *path)
                .map(|change| json!([change["kind"], change["hash"], change["lost"]["hash"]]))
                .collect();
            view.insert(format!("{session} is told of {path}"), json!(rows));
        }
        view.insert(format!("{session} is reset"), taken["reset"].clone());
    }
    for path in FILES {
        let rows = client.ok("file/history", json!({"path": path, "limit": 1_000}));
        let rows: Vec<Value> = rows["versions"]
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .map(|row| {
                let by = format!("{} {}", author(&row["author"]), text(row, "evidence"));
                json!([row["kind"], row["hash"], by, row["amends"].is_null()])
            })
            .collect();
        view.insert(format!("history {path}"), json!(rows));
        view.insert(
            format!("disk {path}"),
            json!(fs::read_to_string(world.path(path)).ok()),
        );
    }
    let sessions = client.ok("session/list", json!({}));
    for row in sessions["sessions"].as_array().unwrap() {
        let fields = ["agent", "parent", "open", "reads", "stale"];
        let fields: Vec<&Value> = fields.iter().map(|field| &row[*field]).collect();
        view.insert(format!("session {}", text(row, "session")), json!(fields));
    }
    let kept = client.ok("recovery/list", json!({}));
    let kept: BTreeSet<String> = kept["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let bytes = fs::read_to_string(text(item, "file")).unwrap();
            assert_eq!(item["hash"], sha256(&bytes), "kept whole: {item}");
            format!("{} {bytes:?}", text(item, "path"))
        })
        .collect();
    view.insert("kept".into(), json!(kept));
    let mut names: Vec<String> = fs::read_dir(world.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    view.insert("names".into(), json!(names));
    view
}

/// The visible states of a run without a kill.
struct Whole {
    /// The states before the first step, and after each.
    views: Vec<View>,
    /// The names of the failpoints that were passed.
    failpoints: Vec<String>,
}

fn whole(steps: &[Step]) -> Whole {
    let mut world = world();
    let list = world.outside().join("failpoints");
    world.set_env("TOUCHMARK_FAILPOINTS", list.to_str().unwrap());
    world.start();
    let failpoints = |list: &Path| -> Vec<String> {
        let text = fs::read_to_string(list).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    assert!(
        !failpoints(&list).is_empty(),
        "the daemon was built without failpoints: use a debug build, or the feature `crash-points`"
    );
    let mut views = vec![look(&world)];
    let answered = play(&world, steps, |index| {
        if steps[index].method != "shutdown" {
            views.push(look(&world));
        }
    });
    assert_eq!(answered, steps.len());
    world.wait_end();
    world.set_env("TOUCHMARK_FAILPOINTS", "");
    world.start();
    views.push(look(&world));
    drop(world);
    // Once more without the looks, which pass failpoints of their own.
    let mut world = self::world();
    let list = world.outside().join("failpoints");
    world.set_env("TOUCHMARK_FAILPOINTS", list.to_str().unwrap());
    world.start();
    play(&world, steps, |_| {});
    world.wait_end();
    Whole {
        views,
        failpoints: failpoints(&list),
    }
}

/// Runs the sequence with a kill at the n-th failpoint, and compares. Returns
/// whether the sequence was completed without a kill.
fn cut(steps: &[Step], whole: &Whole, n: u64) -> bool {
    let mut world = world();
    world.set_env("TOUCHMARK_CRASH_AT", &n.to_string());
    let started = world.try_start().is_ok();
    let answered = if started {
        play(&world, steps, |_| {})
    } else {
        0
    };
    let lived = answered == steps.len();
    if lived {
        // The end itself may be cut short as well.
        world.wait_end();
    }
    world.kill();
    // A start is cut short, too.
    world.set_env("TOUCHMARK_CRASH_AT", &(1 + n % 40).to_string());
    let _ended_or_not = world.try_start();
    world.kill();
    world.set_env("TOUCHMARK_CRASH_AT", "");
    world.start();
    let now = look(&world);
    let what = format!("ended at failpoint {n}, {answered} steps answered");
    let before = &whole.views[answered];
    let after = whole.views.get(answered + 1).unwrap_or(before);
    let under_way = steps.get(answered);
    let keys: BTreeSet<&String> = before
        .keys()
        .chain(after.keys())
        .chain(now.keys())
        .collect();
    for key in keys {
        let (was, is, will) = (before.get(key), now.get(key), after.get(key));
        if is == was || is == will || between(key, was, is, will, under_way) {
            continue;
        }
        panic!(
            "{what}, {:?} under way: {key}\n  was  {was:?}\n  is   {is:?}\n  will {will:?}\n{}",
            under_way.map(|step| (step.method, &step.params)),
            world.log()
        );
    }
    kept_where_written(&what, before, &now, after);
    // Nothing stands in the way of what comes next, once the marks that were
    // open are given up.
    let mut client = world.client();
    client.ok("session/close", json!({"session": "b"}));
    for path in FILES {
        let params = json!({"session": "a", "path": path, "text": "next\n", "force": true});
        client.ok("file/write", params);
    }
    world.healthy();
    lived
}

/// Returns whether a visible value is between the previous and the next one.
fn between(
    key: &str,
    was: Option<&Value>,
    is: Option<&Value>,
    will: Option<&Value>,
    under_way: Option<&Step>,
) -> bool {
    let Some(under_way) = under_way else {
        return false;
    };
    let rows = |value: Option<&Value>| -> Vec<Value> {
        value.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (was, is, will) = (rows(was), rows(is), rows(will));
    // Facts of one request may reach the store in several turns: the history
    // is what was, and some of what will be. What was written while the daemon
    // was away has no known author (ATTR-13).
    if key.starts_with("history ") {
        let same = |(is, will): (&Value, &Value)| {
            let unseen = is[2] == "unknown gap" && under_way.writes_undeclared();
            is == will || (unseen && is[0] == will[0] && is[1] == will[1])
        };
        return is.starts_with(&was) && is.len() <= will.len() && is.iter().zip(&will).all(same);
    }
    // So a mark without a content does not reach over a gap: the copy is
    // stale, and that is told. Nothing whose author is unknown
    // has overwritten anything.
    if under_way.writes_undeclared() {
        if key.contains(" holds ") {
            return is[0] == "stale" && is[3] == will[3] && is[4] == was[4];
        }
        if key.starts_with("session ") {
            return is[..4] == will[..4];
        }
        if key.contains(" is told of ") {
            let told = |rows: &[Value]| -> Vec<Value> {
                let told = rows
                    .iter()
                    .filter(|row| row[2].is_null() || !row[1].is_null());
                told.map(|row| json!([row[0], row[1]])).collect()
            };
            return will.is_empty() && is.len() == 1 || told(&is) == told(&will);
        }
    }
    // What a write overwrites is copied before it is, and no copy is dropped
    // that may be the only one.
    if key == "kept"
        && let Some(path) = under_way.written()
    {
        let prefix = format!("{path} ");
        let known = |row: &Value| {
            was.contains(row)
                || will.contains(row)
                || row.as_str().is_some_and(|row| row.starts_with(&prefix))
        };
        return was.iter().all(|row| is.contains(row)) && is.iter().all(known);
    }
    false
}

/// Checks that the bytes that a write displaced are stored as soon as the write
/// has happened.
fn kept_where_written(what: &str, before: &View, now: &View, after: &View) {
    for path in FILES {
        let disk = format!("disk {path}");
        if now[&disk] != before[&disk] && now[&disk] == after[&disk] {
            let kept = |view: &View| -> BTreeSet<String> {
                let rows = view["kept"].as_array().unwrap();
                rows.iter().map(Value::to_string).collect()
            };
            assert!(
                kept(now).is_superset(&kept(after)),
                "{what}: {path} is written, and what it held is not kept: {now:?}"
            );
        }
    }
}

#[test]
fn dur1_kill_minus_nine_at_every_failpoint() {
    let steps = steps();
    let whole = whole(&steps);
    let count = whole.failpoints.len() as u64;
    let names: BTreeSet<&String> = whole.failpoints.iter().collect();
    println!(
        "{count} failpoints of {} kinds in a run: {names:?}",
        names.len()
    );
    let all = parts::heavy(&format!("kill -9 at all {count} failpoints, {QUICK} here"));
    let tried: Vec<u64> = if all {
        // Runs differ a little: until one comes to its end.
        (1..)
            .take(usize::try_from(count + count / 4).unwrap())
            .collect()
    } else {
        (0..QUICK).map(|part| 1 + part * count / QUICK).collect()
    };
    let next = AtomicU64::new(0);
    let lived = AtomicU64::new(0);
    let failed: Mutex<Vec<u64>> = Mutex::default();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(n) = tried.get(usize::try_from(index).unwrap()) else {
                return;
            };
            // Some twenty in a row have come to the end: so will all.
            if lived.load(Ordering::Relaxed) > 20 || failed.lock().unwrap().len() > 5 {
                return;
            }
            match catch_unwind(AssertUnwindSafe(|| cut(&steps, &whole, *n))) {
                Ok(true) => {
                    lived.fetch_add(1, Ordering::Relaxed);
                }
                Ok(false) => {}
                Err(_) => failed.lock().unwrap().push(*n),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(work);
        }
    });
    let done = next.load(Ordering::Relaxed).min(tried.len() as u64);
    println!("the daemon was ended at {done} failpoints");
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "wrong, ended at {failed:?}");
}
