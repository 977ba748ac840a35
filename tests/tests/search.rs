//! `search/grep` with a real daemon. What is found, skipped and cut is tested
//! next to the code. These tests need a workspace, a wire or a client.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use touchmark_tests::{World, text};

/// Returns `path:line:text` of each match.
fn hits(found: &Value) -> Vec<String> {
    let rows = found["matches"].as_array().expect("matches");
    rows.iter()
        .map(|row| {
            format!(
                "{}:{}:{}",
                text(row, "path"),
                row["line"],
                text(row, "text")
            )
        })
        .collect()
}

/// Creates many names of one large file, which take minutes to search and no
/// disk space.
fn endless(world: &World) {
    let line = "the quick bröwn fox jumps over the lazy dog and runs away\n";
    world.file("much/0.txt", line.repeat((4 << 20) / line.len()));
    for number in 1..2_000 {
        let name = world.path(format!("much/{number}.txt"));
        fs::hard_link(world.path("much/0.txt"), name).unwrap();
    }
}

/// A pattern that matches nothing, slowly: it has no literal text, and the fast
/// engines do not support word boundaries that are not ASCII.
const SLOW: &str = r"(\b\w+\b\s){8}\d$";

#[test]
fn each_option() {
    let world = World::new();
    world.file("src/lib.rs", "// one\nfn find() {}\n// two\nfn FIND() {}\n");
    world.file("src/lib.ts", "function find() {}\n");
    world.file("notes.md", "find it\nnowhere\n");
    let mut session = world.session("s");
    let mut grep = |params: Value| hits(&session.ok("search/grep", params));
    assert_eq!(
        grep(json!({"pattern": "find"})),
        [
            "notes.md:1:find it",
            "src/lib.rs:2:fn find() {}",
            "src/lib.ts:1:function find() {}"
        ]
    );
    assert_eq!(
        grep(
            json!({"pattern": "find", "path": "src", "fileType": "rust", "caseInsensitive": true})
        ),
        ["src/lib.rs:2:fn find() {}", "src/lib.rs:4:fn FIND() {}"]
    );
    assert_eq!(
        grep(json!({"pattern": "find", "glob": "*.{md,ts}"})),
        ["notes.md:1:find it", "src/lib.ts:1:function find() {}"]
    );
    assert_eq!(
        grep(json!({"pattern": r"it\nno", "multiline": true})),
        ["notes.md:1:find it\nnowhere"]
    );
    let path = world.path("notes.md").to_string_lossy().into_owned();
    assert_eq!(
        grep(json!({"pattern": "no.*e", "path": path})),
        ["notes.md:2:nowhere"]
    );
    let found = session.ok(
        "search/grep",
        json!({"pattern": "two", "beforeContext": 1, "afterContext": 2, "context": 9}),
    );
    let hit = &found["matches"][0];
    assert_eq!(hit["before"], json!(["fn find() {}"]));
    assert_eq!(hit["after"], json!(["fn FIND() {}"]));
    assert_eq!(hit["column"], 4);
    assert_eq!(found["truncated"], false);
    assert_eq!(found["filesSearched"], 3);
    // A search tracks nothing, and needs no session.
    let status = session.client.ok("status", json!({}));
    assert_eq!(status["trackedFiles"], 0);
    let found = session
        .client
        .ok("search/grep", json!({"pattern": "f.nd", "maxMatches": 1}));
    assert_eq!(hits(&found), ["notes.md:1:find it"]);
    assert_eq!(found["truncated"], true);
}

#[test]
fn what_cannot_be_searched_says_so() {
    let world = World::new();
    world.file("a", "x\n");
    symlink(world.outside(), world.path("out")).unwrap();
    let mut client = world.client();
    let mut refused = |params: Value, name: &str| {
        let error = client.refused("search/grep", params, name);
        assert!(
            error.data["hint"]
                .as_str()
                .is_some_and(|hint| !hint.is_empty())
        );
        error
    };
    refused(json!({"pattern": "("}), "invalidParams");
    refused(json!({"pattern": "x\ny"}), "invalidParams");
    refused(
        json!({"pattern": "x", "fileType": "nothing"}),
        "invalidParams",
    );
    refused(json!({"pattern": "x", "glob": "{"}), "invalidParams");
    refused(json!({"pattern": "x", "path": "missing"}), "notFound");
    refused(json!({"pattern": "x", "path": "../.."}), "outsideWorkspace");
    refused(json!({"pattern": "x", "path": "out"}), "outsideWorkspace");
    refused(json!({"pattern": "x", "path": ".git"}), "notFound");
    // What would take the memory, or for ever, is refused at once.
    let error = refused(json!({"pattern": r"((\w{500}){500}){500}"}), "tooLarge");
    assert!(error.data["limit"].is_u64());
    refused(json!({"pattern": "x".repeat(1 << 20)}), "tooLarge");
    assert_eq!(
        hits(&client.ok("search/grep", json!({"pattern": "(x+x+)+y|x"}))),
        ["a:1:x"]
    );
}

#[test]
fn five_thousand_files_in_order() {
    let world = World::new();
    for number in 0..5_000 {
        let content = format!("file {number}\nneedle {}\n", number % 7);
        world.file(&format!("d{:02}/f{number:04}.txt", number % 50), content);
    }
    world.file(".gitignore", "/d49/\n");
    world.file("d00/binary", b"needle 3\0\n");
    let mut client = world.client();
    let found = client.ok(
        "search/grep",
        json!({"pattern": "^needle 3$", "maxMatches": 5000, "context": 1}),
    );
    let mut expected: Vec<String> = (0..5_000)
        .filter(|number| number % 7 == 3 && number % 50 != 49)
        .map(|number| format!("d{:02}/f{number:04}.txt:2:needle 3", number % 50))
        .collect();
    expected.sort();
    assert_eq!(hits(&found), expected);
    assert_eq!(found["truncated"], false);
    assert_eq!(found["filesSearched"], 4_901);
    // The same again, cut after the first thousand.
    let first = client.ok("search/grep", json!({"pattern": "^file", "path": "./"}));
    assert_eq!(first["matches"].as_array().unwrap().len(), 1_000);
    assert_eq!(first["truncated"], true);
}

#[test]
fn an_answer_fits_into_a_message() {
    let world = World::asleep();
    world.configure("[limits]\nframe = \"64 KiB\"\n");
    let mut world = world;
    world.start();
    world.file(
        "wide",
        format!("{}\n", "\u{1}\"x".repeat(1_000)).repeat(500),
    );
    world.file("huge", format!("{}needle", "y".repeat(30 << 20)));
    let mut client = world.client();
    let found = client.ok("search/grep", json!({"pattern": "x", "context": 2}));
    assert_eq!(found["truncated"], true);
    let size = found.to_string().len();
    assert!((16 << 10..64 << 10).contains(&size), "{size} bytes");
    let found = client.ok("search/grep", json!({"pattern": "needle"}));
    let hit = &found["matches"][0];
    assert_eq!(hit["column"], (30 << 20) + 1);
    assert!(text(hit, "text").ends_with("needle"));
    assert!(text(hit, "text").len() < 8 << 10);
}

#[test]
fn a_search_ends_in_time_and_with_its_client() {
    let world = World::new();
    endless(&world);
    let mut client = world.client();
    // What was found in time is told, and that there may be more.
    let found = client.ok("search/grep", json!({"pattern": SLOW, "withinMs": 300}));
    assert_eq!(found["truncated"], true);
    assert!(found["filesSearched"].as_u64().unwrap() < 2_000);
    // Two searches at a time, and more that wait, of a client that goes away:
    // another's would wait for minutes if they went on.
    for _ in 0..5 {
        client
            .try_send("search/grep", &json!({"pattern": SLOW}))
            .unwrap();
    }
    // Other requests do not wait for them.
    let mut other = world.client();
    other.ok("sync", json!({}));
    drop(client);
    let found = other.ok(
        "search/grep",
        json!({"pattern": "quick", "path": "much/7.txt", "maxMatches": 1, "withinMs": 20_000}),
    );
    assert_eq!(found["matches"].as_array().unwrap().len(), 1);
}

#[test]
fn the_end_of_the_daemon_is_the_end_of_its_searches() {
    let mut world = World::new();
    endless(&world);
    let mut client = world.client();
    client
        .try_send("search/grep", &json!({"pattern": SLOW}))
        .unwrap();
    let mut other = world.client();
    other.ok("sync", json!({}));
    assert_eq!(world.stop(), Some(0));
}
