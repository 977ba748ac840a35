//! The programs on the pages about one's own agent (`docs/agents`) run, and
//! print what the pages say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use touchmark_tests::World;
use touchmark_tests::world::{binary, finish};

fn project() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap()
}

/// A program of a page, and what the block behind it says that it prints.
struct Snippet {
    line: usize,
    text: String,
    prints: Option<String>,
}

/// The blocks `LANGUAGE run` of a page.
fn snippets(page: &str, language: &str) -> Vec<Snippet> {
    let text = fs::read_to_string(project().join("docs/agents").join(page)).unwrap();
    let mut found: Vec<Snippet> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let block: String = lines
            .by_ref()
            .take_while(|(_, line)| *line != "```")
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        if info == format!("{language} run") {
            found.push(Snippet {
                line: number + 1,
                text: block,
                prints: None,
            });
        } else if info == "text prints" {
            found.last_mut().expect("a program before").prints = Some(block);
        }
    }
    assert!(!found.is_empty(), "{page} has no program");
    found
}

/// Runs a program in a workspace with the files that the pages speak of.
fn runs(page: &str, snippet: &Snippet, mut program: Command) {
    let world = World::asleep();
    for name in ["src/parser.py", "src/parser.rs"] {
        world.file(name, "limit = 10\n");
    }
    world.file("notes.txt", "one\n");
    // What makes it one, to whoever looks for the innermost.
    fs::create_dir(world.path(".git")).unwrap();
    world.dress(&mut program);
    let directory = binary().parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let child = program
        .current_dir(world.workspace())
        .env("PATH", format!("{}:{path}", directory.display()))
        .env("TOUCHMARK_BIN", binary())
        .env("PYTHONPATH", project().join("bindings/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let what = format!("{page}, line {}", snippet.line);
    let done = finish(child, &what);
    // The daemon that it started.
    world.run(&["stop"]);
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{what}: {}\n{told}{said}",
        done.status
    );
    assert!(
        !said.contains("Traceback") && !said.contains("Warning"),
        "{what}: {said}"
    );
    if let Some(prints) = &snippet.prints {
        assert_eq!(&told, prints, "{what}\n{said}");
    }
}

#[test]
fn python() {
    for snippet in snippets("python.md", "python") {
        let mut program = Command::new("python3");
        program.args(["-c", &snippet.text]);
        runs("python.md", &snippet, program);
    }
}

#[test]
fn shell() {
    for snippet in snippets("shell.md", "sh") {
        let mut program = Command::new("sh");
        program.args(["-ec", &snippet.text]);
        runs("shell.md", &snippet, program);
    }
}

#[test]
fn rust() {
    let snippets = snippets("rust.md", "rust");
    let source = fs::read_to_string(project().join("client/examples/page.rs")).unwrap();
    assert_eq!(snippets[0].text, source, "the page and its program differ");
    let program = binary().parent().unwrap().join("examples/page");
    assert!(
        program.exists(),
        "{} is not built: run `cargo build -p touchmark-client --examples`, or tests/run",
        program.display()
    );
    runs("rust.md", &snippets[0], Command::new(program));
}
