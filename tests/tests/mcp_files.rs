//! What a model reads of files by MCP, and what its writes leave of their form
//! (GUARD-1).

use std::fs;

use serde_json::{Value, json};
use touchmark_tests::mcp::Era;
use touchmark_tests::{Mcp, World};

fn mcp(world: &World) -> Mcp {
    Mcp::start(world.command(&["mcp"]), Era::Handshake)
}

/// Calls a tool, which must succeed. Returns what the model reads.
fn said(mcp: &mut Mcp, tool: &str, arguments: Value) -> String {
    let result = mcp.call(tool, arguments);
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16();
    [
        b"\xff\xfe".to_vec(),
        units.flat_map(u16::to_le_bytes).collect(),
    ]
    .concat()
}

#[test]
fn a_whole_write_keeps_the_form_of_the_file() {
    let world = World::new();
    let mut mcp = mcp(&world);
    for (name, before, text, after) in [
        (
            "bom.cs",
            b"\xef\xbb\xbfint a;\r\nint b;\r\n".to_vec(),
            "int a;\nint c;\n",
            b"\xef\xbb\xbfint a;\r\nint c;\r\n".to_vec(),
        ),
        (
            "latin.ini",
            b"Stra\xdfe = 1\nkey = 1\n".to_vec(),
            "Stra\u{df}e = 2\n",
            b"Stra\xdfe = 2\n".to_vec(),
        ),
        (
            "utf16.ps1",
            utf16("a = 8\r\nb = 2\r\n"),
            "a = 9\nb = 2\n",
            utf16("a = 9\r\nb = 2\r\n"),
        ),
        (
            "mixed.txt",
            b"one\r\ntwo\nthree\r\n".to_vec(),
            "one\n2\nthree\nfour\n",
            b"one\r\n2\nthree\r\nfour\r\n".to_vec(),
        ),
        (
            "plain.txt",
            b"one\n".to_vec(),
            "one\r\ntwo\n",
            b"one\ntwo\n".to_vec(),
        ),
    ] {
        fs::write(world.path(name), before).unwrap();
        said(&mut mcp, "read_file", json!({"path": name}));
        said(&mut mcp, "write_file", json!({"path": name, "text": text}));
        let now = fs::read(world.path(name)).unwrap();
        assert_eq!(now, after, "{name}: {}", String::from_utf8_lossy(&now));
        // The session has written it, so nothing is news.
        let again = json!({"path": name, "oldString": "e", "newString": "e"});
        let _no_match = mcp.call("edit_file", again);
    }
    let changed = mcp.done("changed_files", json!({}));
    assert_eq!(changed["changes"], json!([]));
    // A new file has the text as it was given.
    let new = json!({"path": "new.txt", "text": "a\r\nb\n"});
    assert_eq!(
        said(&mut mcp, "write_file", new),
        "\"new.txt\" was created: 2 lines. It need not be read again before the next edit."
    );
    assert_eq!(fs::read(world.path("new.txt")).unwrap(), b"a\r\nb\n");
    // A character that the encoding lacks is not replaced by another.
    let kanji = json!({"path": "latin.ini", "text": "\u{6f22}\n"});
    let refused = mcp.call("write_file", kanji);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "\"latin.ini\" is stored as windows-1252, which has no \"\u{6f22}\" (U+6F22)"
        ),
        "{text}"
    );
    assert_eq!(
        fs::read(world.path("latin.ini")).unwrap(),
        b"Stra\xdfe = 2\n"
    );
}

#[test]
fn an_edit_keeps_the_form_of_the_file_and_says_what_changed() {
    let world = World::new();
    let mut mcp = mcp(&world);
    for (name, before, old, new, after) in [
        (
            "mixed.txt",
            b"one\r\ntwo\nthree\r\nfour".to_vec(),
            "two\nthree\n",
            "2\n3\n",
            b"one\r\n2\n3\r\nfour".to_vec(),
        ),
        (
            "latin.ini",
            b"gr\xfc\xdfe\nkey = 1\n\xe9t\xe9\n".to_vec(),
            "gr\u{fc}\u{df}e\nkey = 1",
            "\u{fc}\nkey = 2",
            b"\xfc\nkey = 2\n\xe9t\xe9\n".to_vec(),
        ),
        (
            "utf16.ps1",
            utf16("a = 1\r\nb = 2\r\n"),
            "a = 1\nb",
            "a = 9\nb",
            utf16("a = 9\r\nb = 2\r\n"),
        ),
    ] {
        fs::write(world.path(name), before).unwrap();
        said(&mut mcp, "read_file", json!({"path": name}));
        let edit = json!({"path": name, "oldString": old, "newString": new});
        let told = said(&mut mcp, "edit_file", edit);
        assert!(
            told.starts_with(&format!("\"{name}\" was edited: lines ")),
            "{told}"
        );
        assert!(
            !told.contains("exchange") && !told.contains("hash"),
            "{told}"
        );
        let now = fs::read(world.path(name)).unwrap();
        assert_eq!(now, after, "{name}: {}", String::from_utf8_lossy(&now));
    }
}

#[test]
fn a_read_names_another_encoding_and_base64() {
    let world = World::new();
    fs::write(world.path("latin.ini"), b"Stra\xdfe = 1\nkey = 1\n").unwrap();
    fs::write(world.path("utf16.ps1"), utf16("a = 1\r\nb = 2\r\n")).unwrap();
    fs::write(world.path("a.bin"), b"\x00\x01\xff").unwrap();
    let mut mcp = mcp(&world);
    assert_eq!(
        said(&mut mcp, "read_file", json!({"path": "latin.ini"})),
        "Stra\u{df}e = 1\nkey = 1\n\n[\"latin.ini\" is stored as windows-1252; edit_file and write_file keep that.]"
    );
    let second = json!({"path": "utf16.ps1", "startLine": 2});
    let text = said(&mut mcp, "read_file", second);
    assert!(
        text.starts_with("b = 2\r\n\n[\"utf16.ps1\" is stored as UTF-16LE"),
        "{text}"
    );
    assert_eq!(
        said(&mut mcp, "read_file", json!({"path": "a.bin"})),
        "[\"a.bin\" is no text. Its bytes follow as base64.]\nAAH/"
    );
    // For programs, bytes are base64 unless they ask for the text.
    let read = world.client().ok(
        "file/readText",
        json!({"session": "s", "path": "latin.ini"}),
    );
    assert_eq!(read["encoding"], "base64");
}
