//! Wrapped tools of the Rust client: a call is not repeated needlessly, and no
//! result that is out of date is returned.

use std::cell::Cell;
use std::convert::Infallible;
use std::fs;

use serde_json::{Value, json};
use touchmark_client::blocking::Client;
use touchmark_client::tools::{Answer, Output, Rules, Tools};
use touchmark_client::{Error, Hello, Session, aio};
use touchmark_tests::{World, on_tokio, user};

fn session(world: &World, name: &str) -> Session {
    let client = Client::connect(world.socket(), &Hello::new("tests", "1")).unwrap();
    Session::open(&client, name).unwrap()
}

/// Returns a tool that reads a file and counts its runs.
fn reader<'a>(
    world: &'a World,
    ran: &'a Cell<u32>,
) -> impl Fn(&Value) -> Result<Output, Infallible> + 'a {
    move |args| {
        ran.set(ran.get() + 1);
        let path = args["path"].as_str().expect("a path");
        let text = fs::read_to_string(world.path(path)).unwrap_or_default();
        Ok(Output::from(text))
    }
}

fn call<T>(tool: &touchmark_client::tools::Tool<T>, args: Value) -> Answer
where
    T: Fn(&Value) -> Result<Output, Infallible>,
{
    tool.call(&args).unwrap()
}

#[test]
fn a_repeated_call_is_answered_with_the_earlier_result() {
    let world = World::new();
    world.file("package.json", "{}\n");
    let ran = Cell::new(0);
    let session = session(&world, "s");
    let read = Tools::of(&session).wrap("readFile", reader(&world, &ran));
    let first = call(&read, json!({"path": "package.json", "limit": 5}));
    assert_eq!((first.text().as_str(), first.cached), ("{}\n", false));
    assert_eq!((first.message, first.notice), (None, None));
    // The same arguments in another order.
    let again = call(&read, json!({"limit": 5, "path": "package.json"}));
    assert!(again.cached);
    let (message, text) = again.text().split_once("\n\n").map_or_else(
        || panic!("{}", again.text()),
        |(message, text)| (message.to_owned(), text.to_owned()),
    );
    assert!(message.starts_with("[Cached result from "), "{message}");
    assert_eq!(text, "{}\n");
    assert_eq!(ran.get(), 1);
    let counts = session.call_stats().unwrap();
    assert_eq!((counts.hits, counts.calls), (1, 1));
    assert_eq!(session.stats().unwrap().duplicate_calls, 1);
}

#[test]
fn a_result_whose_files_changed_is_not_served() {
    let world = World::new();
    world.file("a.rs", "one\n");
    world.file("b.rs", "two\n");
    let ran = Cell::new(0);
    let tools = Tools::of(&session(&world, "s"));
    let read = tools.wrap("readFile", reader(&world, &ran));
    call(&read, json!({"path": "a.rs"}));
    user::write(&world.path("a.rs"), "three\n");
    let now = call(&read, json!({"path": "a.rs"}));
    assert_eq!((now.text().as_str(), ran.get()), ("three\n", 2));
    // A file that only the result names.
    let counted = Cell::new(0);
    let count = tools.wrap("countLines", |_: &Value| {
        counted.set(counted.get() + 1);
        Ok::<_, Infallible>(Output::from(counted.get()).rests_on(["b.rs"]))
    });
    assert_eq!(call(&count, json!({})).result, 1);
    assert_eq!(call(&count, json!({})).result, 1);
    user::write(&world.path("b.rs"), "four\n");
    assert_eq!(call(&count, json!({})).result, 2);
}

#[test]
fn sessions_commands_and_failures_are_not_mixed_up() {
    let world = World::new();
    world.file("a", "x");
    let ran = Cell::new(0);
    let (one, two) = (session(&world, "one"), session(&world, "two"));
    for session in [&one, &two] {
        let read = Tools::of(session).wrap("readFile", reader(&world, &ran));
        assert!(!call(&read, json!({"path": "a"})).cached);
    }
    // A tool whose calls are never kept.
    let shell = Tools::of(&one).wrap("bash", reader(&world, &ran));
    for _ in 0..2 {
        assert!(!call(&shell, json!({"path": "a"})).cached);
    }
    assert_eq!(ran.get(), 4);
    // A failure is the tool's own, and tried again.
    let tries = Cell::new(0);
    let failing = Tools::of(&one).wrap("webFetch", |_: &Value| {
        tries.set(tries.get() + 1);
        Err::<Output, _>("no network")
    });
    for _ in 0..2 {
        assert_eq!(failing.call(&json!({"url": "x"})), Err("no network"));
    }
    assert_eq!(tries.get(), 2);
}

#[test]
fn what_is_merely_alike_is_served_only_if_wanted_and_nothing_when_switched_off() {
    let world = World::new();
    world.file("a", "x");
    let ran = Cell::new(0);
    let tools = Tools::of(&session(&world, "s"));
    let calls = |rules: Rules| {
        let read = tools
            .clone()
            .with(rules)
            .wrap("readFile", reader(&world, &ran));
        call(&read, json!({"path": "a", "offset": ran.get()}))
    };
    assert!(!calls(Rules::default()).cached);
    assert!(!calls(Rules::default()).cached);
    let similar = Rules {
        similar: true,
        ..Rules::default()
    };
    assert!(calls(similar).cached);
    assert_eq!(ran.get(), 2);
    let off = Rules {
        enabled: false,
        similar: true,
    };
    assert!(!calls(off).cached);
    assert_eq!(ran.get(), 3);
}

#[test]
fn reads_are_full_once_and_again_after_a_write() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let tools = Tools::of(&session(&world, "s"));
    assert_eq!(tools.read_file("a.txt").unwrap().text(), "one\n");
    let again = tools.read_file("a.txt").unwrap();
    assert!(again.cached);
    assert_eq!(
        again.text(),
        "[File previously read: a.txt. Content unchanged since last read.]"
    );
    let written = tools.write_file("a.txt", b"two\n").unwrap();
    assert_eq!(written.text(), "File written: a.txt");
    let full = tools.read_file("a.txt").unwrap();
    assert!(!full.cached && full.text().ends_with("two\n"), "{full:?}");
    // Another author's change is told with the text.
    user::write(&world.path("a.txt"), "three\n");
    let changed = tools.read_file("a.txt").unwrap();
    assert!(!changed.cached && changed.text().ends_with("three\n"));
    // Switched off: full every time, and still on record.
    let off = tools.clone().with(Rules {
        enabled: false,
        similar: false,
    });
    assert!(off.read_file("a.txt").unwrap().text().ends_with("three\n"));
    assert!(tools.read_file("a.txt").unwrap().cached);
    // The daemon's refusals are the tool's errors.
    let refused = tools.read_file("missing").unwrap_err();
    assert_eq!(refused.code(), "notFound");
    user::write(&world.path("a.txt"), "four\n");
    let refused = tools.write_file("a.txt", b"five\n").unwrap_err();
    assert_eq!(refused.code(), "stale");
    assert_eq!(fs::read(world.path("a.txt")).unwrap(), b"four\n");
}

#[test]
fn an_edit_is_computed_from_what_was_read_and_overwrites_no_save() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let tools = Tools::of(&session(&world, "s"));
    let refused = tools.edit_file("a.txt", str::to_uppercase).unwrap_err();
    assert_eq!(refused.code(), "notRead");
    tools.read_file("a.txt").unwrap();
    tools.edit_file("a.txt", str::to_uppercase).unwrap();
    assert_eq!(fs::read(world.path("a.txt")).unwrap(), b"ONE\n");
    // Saved while the new text is made.
    let saved = tools.edit_file("a.txt", |text| {
        user::write(&world.path("a.txt"), "user\n");
        text.to_lowercase()
    });
    assert_eq!(saved.unwrap_err().code(), "stale");
    assert_eq!(fs::read(world.path("a.txt")).unwrap(), b"user\n");
}

#[test]
fn without_a_daemon_tools_run_and_say_so_once() {
    let mut world = World::new();
    world.file("a", "x");
    let ran = Cell::new(0);
    let root = world.workspace().to_owned();
    let socket = world.socket().to_owned();
    let tools = Tools::over(Some(root), move || {
        let client = Client::connect(&socket, &Hello::new("tests", "1"))?;
        Session::open(&client, "s")
    });
    assert!(!tools.read_file("a").unwrap().cached);
    // A daemon that was replaced is found again, and has the session on record.
    world.restart();
    assert!(tools.read_file("a").unwrap().cached);
    world.kill();
    let notices: Vec<bool> = {
        let read = tools.wrap("readFile", reader(&world, &ran));
        (0..3)
            .map(|_| {
                let answer = call(&read, json!({"path": "a"}));
                assert_eq!((answer.text().as_str(), answer.cached), ("x", false));
                answer.notice.is_some()
            })
            .collect()
    };
    assert_eq!(notices, [true, false, false]);
    assert_eq!(ran.get(), 3);
    let read = tools.read_file("a").unwrap();
    assert_eq!((read.text().as_str(), read.notice), ("x", None));
    tools.write_file("a", b"y").unwrap();
    assert_eq!(fs::read(world.path("a")).unwrap(), b"y");
    tools.edit_file("a", |text| text.replace('y', "z")).unwrap();
    assert_eq!(fs::read(world.path("a")).unwrap(), b"z");
    assert!(matches!(tools.read_file("missing"), Err(Error::Io { .. })));
}

#[test]
fn the_same_for_tokio() {
    let world = World::new();
    world.file("a", "x");
    on_tokio(async {
        let client = aio::Client::connect(world.socket(), &Hello::new("tests", "1"))
            .await
            .unwrap();
        let session = aio::Session::open(&client, "s").await.unwrap();
        let ran = Cell::new(0);
        let tools = aio::Tools::of(&session);
        let read = tools.wrap("readFile", async |_: &Value| {
            ran.set(ran.get() + 1);
            Ok::<_, Infallible>(Output::from("x").rests_on(["a"]))
        });
        let args = json!({"path": "a"});
        assert!(!read.call(&args).await.unwrap().cached);
        assert!(read.call(&args).await.unwrap().cached);
        user::write(&world.path("a"), "y");
        assert!(!read.call(&args).await.unwrap().cached);
        assert_eq!(ran.get(), 2);
        client
            .call(touchmark_client::proto::daemon::Shutdown {})
            .await
            .unwrap();
        let told: Vec<bool> = [
            read.call(&args).await.unwrap(),
            read.call(&args).await.unwrap(),
        ]
        .map(|answer| answer.notice.is_some())
        .to_vec();
        assert_eq!(told, [true, false]);
    });
}
