//! The architecture's invariants: which crates and modules may depend on which.
//! Reads manifests and sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Returns every file below a directory, without build outputs, with its path
/// from the root.
fn files(below: &str) -> Vec<(String, PathBuf)> {
    fn walk(dir: &Path, root: &Path, found: &mut Vec<(String, PathBuf)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if !matches!(
                    name.as_str(),
                    "target" | ".git" | "node_modules" | "corpus" | "__pycache__"
                ) {
                    walk(&path, root, found);
                }
            } else if name != ".git" {
                let relative = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.push((relative, path));
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    let dir = root.join(below);
    if dir.is_dir() {
        walk(&dir, &root, &mut found);
    }
    found.sort();
    found
}

/// Returns the numbered lines of a source, without comment lines.
fn code(path: &Path) -> Vec<(usize, String)> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number + 1, line.to_owned()))
        .collect()
}

fn sources(below: &str) -> Vec<(String, PathBuf)> {
    let mut files = files(below);
    files.retain(|(name, _)| name.ends_with(".rs"));
    files
}

/// Returns whether `word` occurs in `line` without a letter, digit or
/// underscore next to it.
fn has_word(line: &str, word: &str) -> bool {
    let around = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(around)
            && !line[at + word.len()..].chars().next().is_some_and(around)
    })
}

/// Returns the names of a manifest's dependencies, from all tables whose header
/// `wanted` accepts.
fn dependencies(crate_dir: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(crate_dir).join("Cargo.toml")).unwrap();
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            inside = wanted(header.trim_end_matches(']'));
        } else if inside && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or("");
            if !name.is_empty() {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

const CRATES: &[&str] = &[
    "proto", "engine", "daemon", "client", "hook", "witness", "cli", "tests", "bench",
];

#[test]
fn arrows_run_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        // Its own tests switch its schemas on.
        ("proto", &["proto"]),
        ("engine", &["proto"]),
        // Their own tests say with `tests` what a machine lacks.
        ("daemon", &["engine", "proto", "tests", "witness"]),
        ("client", &["proto"]),
        ("hook", &["client", "daemon"]),
        ("witness", &[]),
        ("cli", &["client", "daemon", "hook", "proto"]),
        ("tests", &["client", "proto"]),
        // A search for secrets has no request of its own.
        ("bench", &["client", "engine", "proto", "tests"]),
    ];
    for (name, may) in allowed {
        let own = dependencies(name, |header| header.ends_with("dependencies"));
        for dependency in own {
            if let Some(other) = dependency.strip_prefix("touchmark-") {
                assert!(may.contains(&other), "{name} may not depend on {other}");
            }
        }
    }
}

#[test]
fn the_command_reaches_the_daemon_through_one_file() {
    let naming: Vec<String> = sources("cli/src")
        .into_iter()
        .filter(|(_, path)| {
            code(path)
                .iter()
                .any(|(_, line)| has_word(line, "touchmark_daemon"))
        })
        .map(|(name, _)| name)
        .collect();
    assert_eq!(naming.len(), 1, "{naming:?}");
}

/// Checks that these words occur only in the allowed place.
fn only(below: &[&str], words: &[&str], allowed: &str) {
    for dir in below {
        for (name, path) in sources(dir) {
            if name.starts_with(allowed) {
                continue;
            }
            for (number, line) in code(&path) {
                for word in words {
                    assert!(
                        !has_word(&line, word),
                        "{name}:{number} names {word}, which only {allowed} may: {line}"
                    );
                }
            }
        }
    }
}

const SOURCES: &[&str] = &[
    "proto/src",
    "engine/src",
    "daemon/src",
    "client/src",
    "cli/src",
    "bench/src",
    "tests/src",
];

#[test]
fn only_the_codec_names_bincode() {
    only(SOURCES, &["bincode"], "proto/src/codec");
    for name in CRATES.iter().filter(|name| **name != "proto") {
        let has = dependencies(name, |header| header.ends_with("dependencies"));
        assert!(!has.contains("bincode"), "{name}");
    }
}

#[test]
fn only_watch_names_notify() {
    only(
        SOURCES,
        &["notify::", "use notify", "extern crate notify"],
        "daemon/src/watch",
    );
    for name in CRATES.iter().filter(|name| **name != "daemon") {
        let has = dependencies(name, |header| header.ends_with("dependencies"));
        assert!(!has.contains("notify"), "{name}");
    }
}

#[test]
fn only_the_store_names_sql() {
    only(
        SOURCES,
        &[
            "rusqlite",
            "SELECT",
            "INSERT INTO",
            "CREATE TABLE",
            "PRAGMA",
        ],
        "daemon/src/store",
    );
    for name in CRATES.iter().filter(|name| **name != "daemon") {
        let has = dependencies(name, |header| header.ends_with("dependencies"));
        assert!(!has.contains("rusqlite"), "{name}");
    }
}

#[test]
fn only_telemetry_names_otlp() {
    only(
        SOURCES,
        &["opentelemetry_proto", "prost"],
        "daemon/src/telemetry",
    );
    for name in CRATES.iter().filter(|name| **name != "daemon") {
        let has = dependencies(name, |header| header.ends_with("dependencies"));
        assert!(!has.contains("opentelemetry-proto"), "{name}");
    }
}

/// A repository must not name what git runs (SEC-7). The function that makes
/// sure of that is in `daemon/src/git`, and no other code starts git: neither
/// by its name nor through a shell or a library.
#[test]
fn only_one_module_starts_git() {
    const SHIPPED: &[&str] = &[
        "proto/src",
        "engine/src",
        "daemon/src",
        "client/src",
        "hook/src",
        "cli/src",
    ];
    let starts = |line: &str| {
        let text = line.replace(' ', "");
        let quoted = |program: &str| {
            let begin = format!("\"{program}");
            text.match_indices(&begin).any(|(at, _)| {
                let rest = &text[at + begin.len()..];
                rest.starts_with(['"', '-', '\\'])
            })
        };
        // A list of programs' names starts none of them.
        let is_start = ["Command", "spawn", ".join(", "program", "exec"];
        quoted("git") && is_start.iter().any(|word| text.contains(word))
    };
    assert!(starts("Command::new(\"git\")") && starts("let git = directory.join(\"git\");"));
    for dir in SHIPPED {
        for (name, path) in sources(dir) {
            if name.starts_with("daemon/src/git/") {
                continue;
            }
            for (number, line) in code(&path) {
                assert!(!starts(&line), "{name}:{number} starts git: {line}");
                for crate_name in ["gix", "git2"] {
                    assert!(!has_word(&line, crate_name), "{name}:{number}: {line}");
                }
            }
        }
    }
    // Every line that starts a process, so that no other way to start git comes
    // up unnoticed. Those of the command start the user's own programs.
    let is_tested = |name: &str| name.ends_with("tests.rs") || name.contains("/tests/");
    let sources = SHIPPED.iter().flat_map(|dir| sources(dir));
    let sources = sources.filter(|(name, _)| !is_tested(name));
    let starts = sources.flat_map(|(name, path)| {
        let code = code(&path).into_iter();
        let code = code.take_while(|(_, line)| line != "#[cfg(test)]");
        let ways = [
            "Command::new",
            "Command::from",
            "fork(",
            "posix_spawn",
            "execv",
        ];
        let found = code.filter(move |(_, line)| ways.iter().any(|way| line.contains(way)));
        let found = found.map(|(_, line)| format!("{name}: {}", line.trim()));
        found.collect::<Vec<_>>()
    });
    let starts: Vec<String> = starts.collect();
    assert_eq!(starts, STARTS);
}

/// The lines that start a process, by file. Those of `table.rs` are a test's.
const STARTS: [&str; 17] = [
    "daemon/src/desktop.rs: let mut command = Command::new(PROGRAM);",
    "daemon/src/git/call.rs: let mut command = Command::new(program);",
    "daemon/src/hooks/shown/table.rs: let mut shell = Command::new(\"/bin/sh\");",
    "daemon/src/hooks/shown/table.rs: let look = Command::new(\"/bin/sh\")",
    "daemon/src/witness/probe.rs: let ran = Command::new(program)",
    "client/src/start.rs: let child = Command::new(&start.binary)",
    "client/src/witness.rs: let mut command = Command::new(witness);",
    "hook/src/witnessed.rs: let error = Command::new(program).args(arguments).exec();",
    "cli/src/commands/daemon/inherited.rs: let _failed = Command::new(program)",
    "cli/src/commands/logs.rs: let mut command = Command::new(\"journalctl\");",
    "cli/src/commands/run.rs: _ => Command::new(program),",
    "cli/src/commands/setup/prove.rs: let ran = Command::new(script).arg(\"exit 7\").output();",
    "cli/src/commands/setup/prove.rs: let mut child = Command::new(program)",
    "cli/src/commands/undo/check.rs: let mut shell = Command::new(\"sh\");",
    "cli/src/editor.rs: let status = Command::new(\"sh\")",
    "cli/src/pager.rs: Command::new(\"sh\")",
    "cli/src/service/manager.rs: let mut command = Command::new(program);",
];

#[test]
fn the_engine_is_pure() {
    const FORBIDDEN: &[&str] = &[
        "std::fs",
        "std::env",
        "std::thread",
        "std::net",
        "std::process",
        "std::io",
        "std::os",
        "Instant",
        "SystemTime",
        "tokio",
        "async fn",
        "await",
        "interprocess",
        "rustix",
        "println",
        "eprintln",
        "thread_rng",
        "HashMap",
        "HashSet",
    ];
    for (name, path) in sources("engine/src") {
        if name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let mut testing = false;
        for (number, line) in code(&path) {
            // A module of tests stands at the end of its file.
            testing |= line.trim() == "#[cfg(test)]";
            for word in FORBIDDEN.iter().filter(|_| !testing) {
                // The order of `std`'s maps would make outputs differ between
                // runs; those of this file have a fixed hash, and nothing goes
                // through them unsorted (a lint of clippy's, in `lib.rs`).
                let hashed = name == "engine/src/by_path.rs" && word.starts_with("Hash");
                assert!(
                    hashed || !has_word(&line, word),
                    "{name}:{number}: {word} in the engine: {line}"
                );
            }
        }
    }
    let own = dependencies("engine", |header| header == "dependencies");
    for name in [
        "tokio",
        "notify",
        "rusqlite",
        "rustix",
        "interprocess",
        "tracing",
    ] {
        assert!(!own.contains(name), "the engine depends on {name}");
    }
}

/// Returns the modules that have a counterpart for other Unix systems: the
/// prefixes of their files' names, and those of the counterparts.
fn with_counterpart() -> (Vec<String>, Vec<String>) {
    const CONDITION: &str = "#[cfg_attr(not(target_os = \"linux\"), path = \"";
    let (mut modules, mut counterparts) = (Vec::new(), Vec::new());
    for dir in PORTABLE {
        for (name, path) in sources(dir) {
            let text = fs::read_to_string(&path).unwrap();
            for attribute in text.split(CONDITION).skip(1) {
                let (counterpart, _) = attribute.split_once('"').unwrap();
                let place = Path::new(counterpart);
                // What it is, and no other name.
                let kind = place.file_stem().unwrap().to_str().unwrap();
                assert!(
                    ["unix", "fallback", "unsupported"].contains(&kind),
                    "{name}: {counterpart}"
                );
                assert!(path.with_file_name(counterpart).is_file(), "{name}");
                let beside = |path: &Path| {
                    let path = Path::new(&name).parent().unwrap().join(path);
                    path.to_str().unwrap().to_owned()
                };
                modules.push(beside(place.parent().unwrap()));
                counterparts.push(beside(place));
            }
        }
    }
    (modules, counterparts)
}

/// The directories that must type-check for other systems, too.
const PORTABLE: &[&str] = &[
    "proto/src",
    "engine/src",
    "daemon/src",
    "client/src",
    "cli/src",
];

/// Each module that uses Linux-only features has a counterpart for other Unix
/// systems, and no other file checks the system.
#[test]
fn what_linux_alone_has_stands_in_a_module_with_a_counterpart() {
    const LINUX: &[&str] = &[
        "os::linux",
        "/proc",
        "fs::inotify",
        "fanotify",
        "memfd_create",
        "openat2",
        "pidfd_open",
        "eventfd",
        "libc",
        "listenfd",
        "tracing_journald",
    ];
    let (modules, counterparts) = with_counterpart();
    assert!(modules.len() >= 10, "{modules:?}");
    for dir in PORTABLE {
        for (name, path) in sources(dir) {
            let is_own = modules.iter().any(|module| {
                let rest = name.strip_prefix(module.as_str());
                rest.is_some_and(|rest| rest.starts_with(['.', '/']))
            });
            let is_counterpart = counterparts.contains(&name);
            if (is_own && !is_counterpart) || name.ends_with("tests.rs") || name.contains("/tests/")
            {
                continue;
            }
            let code = code(&path);
            // A module of tests stands at the end of its file.
            let code = code
                .split(|(_, line)| line == "mod tests {")
                .next()
                .unwrap();
            for (number, line) in code {
                for word in LINUX {
                    assert!(
                        !has_word(line, word),
                        "{name}:{number}: {word} outside of a module with a counterpart: {line}"
                    );
                }
            }
        }
    }
}

/// A file that is not named there would not be compiled.
#[test]
fn every_end_to_end_test_is_in_the_program() {
    let program = fs::read_to_string(root().join("tests/tests/main.rs")).unwrap();
    let tests = sources("tests/tests").into_iter();
    for (name, _) in tests.filter(|(name, _)| name.matches('/').count() == 2) {
        let module = name
            .trim_start_matches("tests/tests/")
            .trim_end_matches(".rs");
        assert!(
            module == "main" || program.contains(&format!("\nmod {module};\n")),
            "{name} is not in tests/tests/main.rs"
        );
    }
}

#[test]
fn nothing_but_the_lease_is_unsafe_and_every_crate_has_the_lints() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"deny\""));
    let word = ["un", "safe"].concat();
    for name in CRATES {
        let text = fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{name} lacks the lints"
        );
        for (source, path) in sources(name) {
            // Leases have no safe interface, nor have filters of system calls,
            // what receives from them, and memory that processes share.
            if source.ends_with("system/lease.rs") || source == "witness/src/sys.rs" {
                continue;
            }
            for (number, line) in code(&path) {
                assert!(!has_word(&line, &word), "{source}:{number}: {line}");
            }
        }
    }
}

#[test]
fn a_library_never_prints() {
    for dir in ["proto/src", "engine/src", "client/src"] {
        for (name, path) in sources(dir) {
            if name.ends_with("tests.rs") || name.contains("/tests/") {
                continue;
            }
            for (number, line) in code(&path) {
                for word in ["println!", "eprintln!", "print!", "eprint!", "dbg!"] {
                    assert!(!line.contains(word), "{name}:{number}: {line}");
                }
            }
        }
    }
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    // Written apart, so that this file itself holds none of them.
    let own: Vec<String> = [
        ["/wo", "rk/"],
        ["/ro", "ot/"],
        ["/home/cloud", "sdk"],
        [".pye", "nv"],
    ]
    .iter()
    .map(|parts| parts.concat())
    .collect();
    for (name, path) in files("") {
        // Made by cargo, with the registry's name in it.
        if name == "Cargo.lock" || name == "fuzz/Cargo.lock" {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for part in &own {
                assert!(
                    !line.contains(part.as_str()),
                    "{name}:{}: {line}",
                    number + 1
                );
            }
        }
    }
}

/// A method is its row, its handler, and its place in `proto`. No other code
/// lists all requests, so that nothing is forgotten when one is added.
#[test]
fn only_the_table_goes_through_the_requests() {
    const TABLES: &[&str] = &[
        "proto/src/methods.rs",
        "proto/src/codec/",
        "engine/src/requests/table.rs",
    ];
    let mut arms = Vec::new();
    for dir in SOURCES {
        for (name, path) in sources(dir) {
            let tests = name.ends_with("tests.rs") || name.contains("/tests/");
            if tests || TABLES.iter().any(|table| name.starts_with(table)) {
                continue;
            }
            let lines = code(&path);
            let end = lines
                .iter()
                .position(|(_, line)| line.trim() == "#[cfg(test)]");
            for (number, line) in &lines[..end.unwrap_or(lines.len())] {
                let line = line.trim();
                let named = line.trim_start_matches("| ").starts_with("Request::");
                // One arm of several: `Request::A(_) =>`, `| Request::A(_)`.
                if named && (line.contains("=>") || line.starts_with('|')) {
                    arms.push(format!("{name}:{number}: {line}"));
                }
            }
        }
    }
    assert!(
        arms.is_empty(),
        "read these from the row:\n{}",
        arms.join("\n")
    );
}
