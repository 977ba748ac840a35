//! The programs on the pages for authors of agents (`docs/agents`) run, and
//! print what the pages say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use touchmark_tests::snippets::{AGENTS, Snippet, of, run_shell};
use touchmark_tests::world::{binary, finish};
use touchmark_tests::{World, fetched, parts};

fn project() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap()
}

/// A program of a page, and its output as the following block shows it.
struct Program {
    line: usize,
    text: String,
    prints: Option<String>,
}

/// Returns the blocks `LANGUAGE run` of a page.
fn programs(page: &str, language: &str) -> Vec<Program> {
    let mut found: Vec<Program> = Vec::new();
    for Snippet {
        language: info,
        line,
        text,
    } in of(&Path::new(AGENTS).join(page))
    {
        if info == format!("{language} run") {
            found.push(Program {
                line,
                text,
                prints: None,
            });
        } else if info == "text prints" {
            found.last_mut().expect("a program before").prints = Some(text);
        }
    }
    assert!(!found.is_empty(), "{page} has no program");
    found
}

/// Runs a program in a workspace with the files that the pages name.
fn runs(page: &str, snippet: &Program, mut program: Command) {
    let world = World::asleep();
    for name in ["src/parser.py", "src/parser.rs"] {
        world.file(name, "limit = 10\n");
    }
    world.file("notes.txt", "one\n");
    // This makes it one, for a client that looks for the innermost.
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
    for snippet in programs("python.md", "python") {
        let mut program = Command::new("python3");
        program.args(["-c", &snippet.text]);
        runs("python.md", &snippet, program);
    }
}

#[test]
fn shell() {
    for snippet in programs("shell.md", "sh") {
        let mut program = Command::new("sh");
        program.args(["-ec", &snippet.text]);
        runs("shell.md", &snippet, program);
    }
}

#[test]
fn rust() {
    let programs = programs("rust.md", "rust");
    let source = fs::read_to_string(project().join("client/examples/page.rs")).unwrap();
    assert_eq!(programs[0].text, source, "the page and its program differ");
    let program = binary().parent().unwrap().join("examples/page");
    assert!(
        program.exists(),
        "{} is not built: run `cargo build --profile test -p touchmark-client --examples`, or tests/run",
        program.display()
    );
    runs("rust.md", &programs[0], Command::new(program));
}

/// Returns the `sh` blocks of a page. There must be exactly one.
fn installs(page: &str) -> Vec<Snippet> {
    let mut snippets = of(&Path::new(AGENTS).join(page));
    snippets.retain(|snippet| snippet.language == "sh");
    assert_eq!(snippets.len(), 1, "{page}");
    snippets
}

/// The pages of agents to which a file is copied, each with the user's and the
/// project's place.
#[test]
fn the_pages_of_plug_ins_install_them() {
    for (agent, user, project) in [
        (
            "opencode",
            ".config/opencode/plugins/touchmark.js",
            ".opencode/plugins/touchmark.js",
        ),
        (
            "pi",
            ".pi/agent/extensions/touchmark.js",
            ".pi/extensions/touchmark.js",
        ),
        (
            "cline",
            ".cline/plugins/touchmark.js",
            ".cline/plugins/touchmark.js",
        ),
        ("vibe", ".vibe/hooks.toml", ".vibe/hooks.toml"),
    ] {
        let world = World::asleep();
        fs::create_dir(world.path(".git")).unwrap();
        let page = format!("{agent}.md");
        for mut snippet in installs(&page) {
            // There is no user to ask.
            let install = format!("hook install {agent} ");
            snippet.text = snippet.text.replace(&install, &format!("{install}--yes "));
            run_shell(&world, &page, &snippet);
        }
        let user = match user.strip_prefix(".config/") {
            Some(below) => world.config().join(below),
            None => world.outside().join(user),
        };
        assert_eq!(
            fs::read(&user).unwrap(),
            fs::read(world.path(project)).unwrap()
        );
    }
}

/// Copies a package's sources, without what was built from them.
fn copied(world: &World, package: &str) {
    let from = project().join("bindings").join(package);
    let to = world.path("bindings").join(package);
    fs::create_dir_all(&to).unwrap();
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(&from)
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    for name in String::from_utf8(listed.stdout)
        .unwrap()
        .split_terminator('\0')
    {
        fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn the_python_package_installs() {
    let world = World::asleep();
    copied(&world, "python");
    let Some(python) = fetched::python(
        "package",
        &["setuptools==80.9.0"],
        "the Python client's package",
    ) else {
        return;
    };
    for mut snippet in installs("python.md") {
        // Into a place of the test's, by the tools that were fetched.
        let pip = format!(
            "{} -m pip install --quiet --no-build-isolation --target=installed",
            python.display()
        );
        snippet.text = snippet.text.replace("pip install", &pip);
        run_shell(&world, "python.md", &snippet);
    }
    let mut program = Command::new("python3");
    program
        .args([
            "-c",
            "import touchmark_client; print(touchmark_client.__file__)",
        ])
        .env("PYTHONPATH", world.path("installed"))
        .current_dir(world.outside());
    let printed = program.output().unwrap();
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(text.contains("installed/touchmark_client"), "{printed:?}");
    assert!(world.path("installed/touchmark_client/py.typed").exists());
}

#[test]
fn the_typescript_package_installs() {
    let world = World::asleep();
    copied(&world, "typescript");
    let reachable = Command::new("npm")
        .args(["view", "typescript", "version", "--silent"])
        .output()
        .is_ok_and(|seen| seen.status.success());
    if !reachable {
        parts::not_tested("the TypeScript client's package: npm is not here or reaches nothing");
        return;
    }
    world.file("package.json", r#"{"name": "an-agent", "type": "module"}"#);
    for snippet in installs("typescript.md") {
        run_shell(&world, "typescript.md", &snippet);
    }
    let script = "import { Session } from 'touchmark-client'; console.log(typeof Session);";
    let imported = Command::new("node")
        .args(["--input-type=module", "-e", script])
        .current_dir(world.workspace())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&imported.stdout), "function\n");
}
