//! The limits of the project's sources: circles of imports, lengths of files,
//! first sentences, words, subjects of commits, and the number of places in
//! which a method, an agent or a stored field is named.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use touchmark_tests::house::{CRATES, Source, count, imports, largest_circle, sources};
use touchmark_tests::messages::{page, texts};
use touchmark_tests::words::prose;

/// The most modules that may import each other in a circle.
const CIRCLE: usize = 12;

/// The most lines of a source file, without its tests.
const LENGTH: usize = 600;

/// The most characters of a commit's subject.
const SUBJECT: usize = 72;

/// The last commit with a longer subject, from before there was a limit.
const LAST_LONG: &str = "cdf6f11d631f2a07005f94b2c46de98eff66bc42";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn the_counts_are_within_their_limits() {
    let house = count(root());
    if let Some(file) = env::var_os("TOUCHMARK_TEST_HOUSE") {
        fs::write(file, house.to_string()).unwrap();
    }
    for krate in CRATES {
        let circle = largest_circle(&imports(root(), krate));
        assert!(circle.len() <= CIRCLE, "{krate}: {circle:#?}");
    }
    assert!(house.loop_fields <= 15, "{house}");
    assert!(house.engine_files <= 5, "{house}");
}

#[test]
fn a_file_can_be_read_in_a_sitting() {
    let long = |krate: &str| -> Vec<String> {
        let files = sources(root(), &format!("{krate}/src"));
        let long = files.iter().filter(|file| file.production.len() > LENGTH);
        long.map(|file| format!("{} {}", file.path, file.production.len()))
            .collect()
    };
    let long: Vec<String> = CRATES.iter().flat_map(|krate| long(krate)).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// The documents have no list of the files: each says itself what it is for.
#[test]
fn each_file_begins_with_what_it_is_for() {
    for krate in CRATES {
        for file in sources(root(), &format!("{krate}/src")) {
            let mut lines = file.production.iter();
            let is_before = |line: &&String| line.is_empty() || line.starts_with("#![");
            // A file of tests alone is named after what it tests.
            let Some(first) = lines.find(|line| !is_before(line)) else {
                continue;
            };
            let is_first = first.starts_with("//! ");
            assert!(is_first, "{}: {first}", file.path);
        }
    }
}

#[test]
fn prose_is_plain() {
    let prose = prose(root());
    let found = prose.iter().flat_map(|one| {
        let rejected = one.rejected().into_iter();
        rejected.map(|(word, instead)| format!("{}: {word}: write {instead}", one.place))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns what git prints; `None` if it fails, as without a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    let output = command.current_dir(root()).args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(printed)
}

#[test]
fn subjects_of_commits_are_short() {
    // A clone without the whole history may not have this commit.
    let known = git(&["cat-file", "-e", LAST_LONG]).is_some();
    let newer = format!("^{LAST_LONG}");
    let mut arguments = vec!["log", "--format=%h %s", "HEAD"];
    arguments.extend(known.then_some(&*newer));
    let subjects = git(&arguments).unwrap_or_default();
    let is_long = |line: &&str| {
        let subject = line.split_once(' ').map_or("", |(_, subject)| subject);
        subject.chars().count() > SUBJECT
    };
    let long: Vec<&str> = subjects.lines().filter(is_long).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// Returns the places in the production code of these crates where one of these
/// words is, each as its file's path.
fn places(files: &[Source], words: &[String]) -> Vec<String> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let has = |line: &String, word: &String| {
        let mut found = line.match_indices(word.as_str());
        !line.starts_with("//")
            && found.any(|(at, _)| {
                let (before, after) = (&line[..at], &line[at + word.len()..]);
                !before.ends_with(is_name) && !after.starts_with(is_name)
            })
    };
    let mut found = Vec::new();
    for file in files {
        let lines = file.production.iter();
        let lines = lines.filter(|line| words.iter().any(|word| has(line, word)));
        found.extend(lines.map(|_| file.path.clone()));
    }
    found
}

/// A new agent is one row in one file, and its recorded events.
#[test]
fn an_agent_is_named_in_its_row_alone() {
    const ROWS: &str = "daemon/src/hooks/agent/rows";
    // A field of an answer has this name, too.
    // Editors whose processes are no agents', and fields of the same name.
    const FIELDS: [(&str, &str); 4] = [
        ("cursor", "daemon/src/off/processes.rs"),
        ("windsurf", "daemon/src/off/processes.rs"),
        ("cursor", "cli/src/mcp/changes.rs"),
        ("cursor", "cli/src/mcp/tools.rs"),
    ];
    let files: Vec<Source> = CRATES
        .iter()
        .flat_map(|krate| sources(root(), &format!("{krate}/src")))
        .collect();
    let list = fs::read_to_string(root().join(format!("{ROWS}.rs"))).unwrap();
    let rows = sources(root(), ROWS);
    assert!(rows.len() > 10, "the rows were not found");
    for row in rows {
        let name = row.path[ROWS.len() + 1..].trim_end_matches(".rs");
        assert_eq!(list.matches(&format!("&{name}::ROW,")).count(), 1, "{name}");
        let voice = root().join(format!("tests/voices/{name}.json"));
        assert!(voice.exists(), "{name} has no recorded events");
        let mut found = places(&files, &[format!("\"{name}\"")]);
        // A row names the agents that also run its hooks.
        found.retain(|path| !path.starts_with(ROWS) && !FIELDS.contains(&(name, path)));
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// A new method that the daemon answers outside the engine is a type and a row
/// in `proto`, a row in the engine's table, and a row with its function in the
/// daemon.
#[test]
fn a_method_has_one_row_in_each_table() {
    const ANSWERS: &str = "daemon/src/answers.rs";
    // The engine puts labels of sessions into answers; the loop looks up what
    // it passes on with a hook's event.
    const ALSO: [(&str, &str); 2] = [
        ("", "engine/src/ledger/labels.rs"),
        ("HookEvent", "daemon/src/run/tasks.rs"),
    ];
    let proto = sources(root(), "proto/src");
    let mut shell = sources(root(), "engine/src");
    shell.extend(sources(root(), "daemon/src"));
    let answers = fs::read_to_string(root().join(ANSWERS)).unwrap();
    let methods = fs::read_to_string(root().join("proto/src/methods.rs")).unwrap();
    let rows = answers.split("Ask::").skip(1);
    let rows = rows.filter_map(|row| row.split_once("(ask) =>"));
    let names: BTreeSet<&str> = rows.map(|(name, _)| name).collect();
    assert!(names.len() > 15, "the rows were not found: {names:?}");
    for name in names {
        assert_eq!(
            answers.matches(&format!("Ask::{name}(")).count(),
            1,
            "{name}"
        );
        let row = format!("    {name}: \"");
        assert_eq!(methods.matches(&row).count(), 1, "{name}");
        let kind = places(&proto, &[format!("struct {name}")]);
        assert_eq!(kind.len(), 1, "{name}: {kind:?}");
        let uses = ["Request", "Reply", "ForShell"].map(|of| format!("{of}::{name}"));
        let mut found = places(&shell, &uses);
        found.retain(|path| {
            path != ANSWERS
                && !ALSO
                    .iter()
                    .any(|(of, file)| path == file && name.ends_with(of))
        });
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// A new stored field is one line.
#[test]
fn a_stored_field_is_named_once() {
    let mut files = sources(root(), "engine/src/ledger/stored");
    // An earlier format, which has the fields of its time.
    files.retain(|file| !file.path.ends_with("v0.rs"));
    let mut defined: Vec<&str> = Vec::new();
    for line in files.iter().flat_map(|file| &file.production) {
        let field = line.split_once(' ').and_then(|(number, field)| {
            number.parse::<u32>().ok()?;
            Some(field.split_once(": ")?.0)
        });
        // A name of one word may mean something else elsewhere.
        defined.extend(field.filter(|name| name.contains('_')));
    }
    assert!(defined.len() > 20, "the fields were not found: {defined:?}");
    for name in &defined {
        let times = defined.iter().filter(|other| *other == name).count();
        let found = places(&files, &[(*name).to_owned()]);
        assert_eq!(found.len(), times, "{name}: {found:?}");
    }
}

/// `docs/messages.md` has every text that a model or a person can receive.
#[test]
fn the_list_of_messages_is_current() {
    let file = root().join("docs/messages.md");
    let page = page(root());
    if env::var_os("TOUCHMARK_BLESS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let listed = fs::read_to_string(&file).unwrap_or_default();
    let differs = page.lines().zip(listed.lines()).find(|(a, b)| a != b);
    assert!(
        page == listed,
        "{differs:?}: run `TOUCHMARK_BLESS=1 cargo test -p touchmark-tests house::`"
    );
}

/// The fewest words of a text that is in one place only. Shorter ones are parts
/// of sentences.
const SENTENCE: usize = 7;

/// A text that two places have is changed in one of them.
#[test]
fn a_message_is_in_one_place() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, texts) in texts(root()) {
        // It has the daemon's hints with what replaces them for people.
        if path == "cli/src/hints.rs" {
            continue;
        }
        let is_sentence = |text: &String| text.split_whitespace().count() >= SENTENCE;
        for text in texts.into_iter().filter(is_sentence) {
            places.entry(text).or_default().insert(path.clone());
        }
    }
    places.retain(|_, paths| paths.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}
