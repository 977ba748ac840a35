//! Ways to read in a shell, each executed by a real shell: compares what is
//! recorded with what a person would say was shown.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use touchmark_tests::parts;

use super::super::named::{self, Place};
use super::{Held, plain, seen};

/// The maximum number of ways that show lines and of which no line is recorded.
const MISSED: usize = 2;

/// A command, and the lines that it shows: `a.txt 1-3 7`, one file after the
/// other.
type Row = (&'static str, &'static str);

const ROWS: [Row; 76] = [
    ("cat poem.txt", "poem.txt 1-30"),
    ("cat < poem.txt", "poem.txt 1-30"),
    ("< poem.txt cat", "poem.txt 1-30"),
    ("cat poem.txt src/lib.rs", "poem.txt 1-30 src/lib.rs 1-40"),
    ("cat poem.txt | head -n 7", "poem.txt 1-7"),
    ("cat poem.txt | tail -n 4", "poem.txt 27-30"),
    (
        "head -n 5 poem.txt src/lib.rs",
        "poem.txt 1-5 src/lib.rs 1-5",
    ),
    ("tail -n +26 poem.txt && echo done", "poem.txt 26-30"),
    ("head -20 src/lib.rs | tail -5", "src/lib.rs 16-20"),
    (
        "sed -n '11,17p' src/lib.rs; echo ---; sed -n '3,6p' poem.txt",
        "src/lib.rs 11-17 poem.txt 3-6",
    ),
    ("sed -n '11,17p' src/lib.rs | cat -n", "src/lib.rs 11-17"),
    ("awk 'NR>=4 && NR<=9' poem.txt", "poem.txt 4-9"),
    (
        "awk '{print NR\": \"$0}' poem.txt | sed -n 8,12p",
        "poem.txt 8-12",
    ),
    ("nl -ba src/lib.rs | sed -n '20,30p'", "src/lib.rs 20-30"),
    ("nl src/lib.rs", "src/lib.rs 1-40"),
    ("cat -n poem.txt | tail -3", "poem.txt 28-30"),
    (
        "cat -n poem.txt src/lib.rs",
        "poem.txt 1-30 src/lib.rs 1-40",
    ),
    ("cd src && cat lib.rs", "src/lib.rs 1-40"),
    ("(cd src; cat lib.rs | head -3)", "src/lib.rs 1-3"),
    (
        "pushd src >/dev/null 2>&1 || cd src; cat ./lib.rs",
        "src/lib.rs 1-40",
    ),
    ("cat src/../poem.txt | cat", "poem.txt 1-30"),
    ("cat \"$PWD/poem.txt\"", "poem.txt 1-30"),
    ("f=src/lib.rs; cat $f", "src/lib.rs 1-40"),
    ("D=src; cat \"$D/lib.rs\"", "src/lib.rs 1-40"),
    ("cat 'my file.txt' | cat", "my~file.txt 1-5"),
    ("cat src/*.rs", "src/lib.rs 1-40 src/main.rs 1-12"),
    (
        "for f in src/*.rs; do echo \"== $f\"; cat $f; done",
        "src/lib.rs 1-40 src/main.rs 1-12",
    ),
    ("git show HEAD:poem.txt", "poem.txt 1-30"),
    (
        "git show HEAD:./src/lib.rs | sed -n 1,10p",
        "src/lib.rs 1-10",
    ),
    ("git diff", "changed.txt 3-9 15-21"),
    ("git diff -U0", "changed.txt 6 18"),
    ("git diff --color=always", "changed.txt 3-9 15-21"),
    ("git show", "poem.txt 9-15"),
    ("git grep -n 'line of the poem' -- poem.txt", "poem.txt 12"),
    ("rg -n 'line of the poem'", "poem.txt 12 poem2.txt 12"),
    ("rg 'line of the poem' poem.txt", "poem.txt 12"),
    (
        "grep -n -C2 'line of the poem' poem.txt | cat",
        "poem.txt 10-14",
    ),
    (
        "grep -rn -C2 'line of the poem' .",
        "poem.txt 10-14 poem2.txt 10-14",
    ),
    (
        "grep -rn 'fn ' src",
        "src/lib.rs 1 6 11 16 21 26 31 36 src/main.rs 1",
    ),
    ("grep 'line of the poem' poem.txt src/lib.rs", "poem.txt 12"),
    ("grep 'line of the poem' poem.txt", "poem.txt 12"),
    (
        "python3 - <<'END'\nprint(open('poem.txt').read())\nEND",
        "poem.txt 1-30",
    ),
    (
        "python3 -c \"print(open('src/lib.rs').read())\"",
        "src/lib.rs 1-40",
    ),
    (
        "python3 - <<'END'\nfor n, l in enumerate(open('poem.txt'), 1):\n    if 5 <= n <= 9: print(n, l, end='')\nEND",
        "poem.txt 5-9",
    ),
    ("perl -ne 'print if 3..8' poem.txt", "poem.txt 3-8"),
    (
        "node -e \"console.log(require('fs').readFileSync('poem.txt', 'utf8'))\"",
        "poem.txt 1-30",
    ),
    ("less poem.txt", "poem.txt 1-30"),
    ("more poem.txt", "poem.txt 1-30"),
    (
        "bat --style=numbers --color=always poem.txt",
        "poem.txt 1-30",
    ),
    ("echo poem.txt | xargs cat", "poem.txt 1-30"),
    (
        "git ls-files 'src/*' | xargs cat",
        "src/lib.rs 1-40 src/main.rs 1-12",
    ),
    (
        "find src -name '*.rs' -exec cat {} +",
        "src/lib.rs 1-40 src/main.rs 1-12",
    ),
    (
        "find . -name lib.rs -exec head -n 6 {} \\;",
        "src/lib.rs 1-6",
    ),
    (
        "while IFS= read -r line; do printf '%s\\n' \"$line\"; done < poem.txt",
        "poem.txt 1-30",
    ),
    ("cat poem.txt | tee copy.txt", "poem.txt 1-30"),
    ("tee copy.txt < poem.txt | wc -l", ""),
    ("diff -u poem.txt poem2.txt", "poem.txt 7-13 poem2.txt 7-13"),
    ("diff poem.txt poem2.txt", "poem.txt 10 poem2.txt 10"),
    ("sed 's/night/day/' poem.txt", "poem.txt 1-9 11-30"),
    ("sed 's/number 5 /number 6 /' poem.txt | sed -n 5p", ""),
    ("cat poem.txt | wc -l", ""),
    ("echo \"$(cat poem.txt)\"", "poem.txt 1-30"),
    ("cat <<END\n$(cat poem.txt)\nEND", "poem.txt 1-30"),
    ("paste poem.txt src/lib.rs", ""),
    ("cut -c1-3 poem.txt", ""),
    ("tr a-z A-Z < poem.txt", ""),
    ("sort src/lib.rs", ""),
    ("tac poem.txt", ""),
    ("jq . data.json", "data.json 1-8"),
    ("xxd poem.txt", ""),
    ("base64 poem.txt", ""),
    ("sha256sum poem.txt src/lib.rs; ls -l", ""),
    ("cat poem.txt > /dev/null; cat src/lib.rs >&2", ""),
    (
        "sed -i 's/night/dawn/' poem.txt && cat poem.txt",
        "poem.txt 1-30",
    ),
    (
        "echo more >> poem.txt; tail -n 3 poem.txt",
        "poem.txt 29-31",
    ),
    (
        "set -e; test -f poem.txt && { echo start; dd if=poem.txt 2>/dev/null; }",
        "poem.txt 1-30",
    ),
];

fn files() -> BTreeMap<&'static str, String> {
    let poem: String = (1..=30)
        .map(|n| match n {
            4 | 14 | 24 => "\n".to_owned(),
            10 => "it was a dark and stormy night\n".to_owned(),
            12 => "this line of the poem is its twelfth\n".to_owned(),
            _ => format!("verse number {n} of many\n"),
        })
        .collect();
    let lib: String = (1..=8)
        .map(|n| format!("fn number_{n}() {{\n    let x = compute({n});\n    show(x);\n}}\n\n"))
        .collect();
    let changed: String = (1..=24)
        .map(|n| format!("entry {n} in the list\n"))
        .collect();
    BTreeMap::from([
        ("poem2.txt", poem.replace("stormy night", "quiet evening")),
        ("poem.txt", poem),
        ("src/lib.rs", lib),
        ("src/main.rs", "fn main() {\n    // first\n    one();\n    // second\n    two();\n    // third\n    three();\n    // fourth\n    four();\n    // fifth\n    five();\n}\n".to_owned()),
        ("my file.txt", "a file\nwith a blank\nin its name\nand no more\nthan that\n".to_owned()),
        ("data.json", "{\n  \"name\": \"touch\",\n  \"list\": [\n    1,\n    2\n  ],\n  \"end\": true\n}\n".to_owned()),
        ("changed.txt", changed),
    ])
}

fn run(at: &Path, command: &str) -> String {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .current_dir(at)
        .stdin(Stdio::null());
    shell
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C.UTF-8");
    for who in ["AUTHOR", "COMMITTER"] {
        shell
            .env(format!("GIT_{who}_NAME"), "n")
            .env(format!("GIT_{who}_EMAIL"), "e@x");
    }
    String::from_utf8_lossy(&shell.output().unwrap().stdout).into_owned()
}

/// Returns a repository with a change in its last commit, and one that is not
/// committed.
fn repository() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    fs::create_dir(at.join("src")).unwrap();
    for (name, text) in files() {
        fs::write(at.join(name), text).unwrap();
    }
    let poem = fs::read_to_string(at.join("poem.txt")).unwrap();
    fs::write(at.join("poem.txt"), poem.replace("is its twelfth", "was")).unwrap();
    run(at, "git init -q && git add . && git commit -qm one");
    fs::write(at.join("poem.txt"), poem).unwrap();
    run(at, "git commit -qam two");
    let changed = fs::read_to_string(at.join("changed.txt")).unwrap();
    let changed = changed
        .replace("entry 6 ", "item 6 ")
        .replace("entry 18 ", "item 18 ");
    fs::write(at.join("changed.txt"), changed).unwrap();
    place
}

fn copy(of: &Path) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    run(of, &format!("cp -a . '{}'", place.path().display()));
    place
}

/// Returns what is recorded of a command, found in the way that the rules find
/// it.
fn recorded(at: &Path, command: &str) -> (BTreeSet<(String, usize)>, String) {
    let place = Place {
        root: at,
        cwd: at,
        trusted: at,
    };
    let mut named = named::in_command(place, command);
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let mut before: Vec<String> = named.iter().map(|one| read(&one.path)).collect();
    // Nothing but the command itself changes a file here.
    let was = copy(at);
    let output = plain(&run(at, command)).into_owned();
    for one in named::in_output(place, command, &output, &named) {
        let old = was.path().join(one.path.strip_prefix(at).unwrap());
        if fs::read(&old).ok() == fs::read(&one.path).ok() {
            before.push(read(&one.path));
            named.push(one);
        }
    }
    let now: Vec<String> = named.iter().map(|one| read(&one.path)).collect();
    let held: Vec<Held<'_>> = named
        .iter()
        .zip(before.iter().zip(&now))
        .map(|(one, (before, now))| Held {
            names: &one.names,
            before,
            now,
        })
        .collect();
    let mut lines = BTreeSet::new();
    for (one, seen) in named
        .iter()
        .zip(seen(&output, &held, named::shortest(command)))
    {
        let name = one
            .path
            .strip_prefix(at)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        for range in seen.ranges.iter().filter(|_| seen.of_now) {
            lines.extend((range.start..=range.end).map(|line| (name.clone(), line as usize)));
        }
    }
    (lines, output)
}

fn expected(shown: &str) -> BTreeSet<(String, usize)> {
    let mut file = String::new();
    let mut lines = BTreeSet::new();
    for word in shown.split(' ').filter(|word| !word.is_empty()) {
        let (start, end) = word.split_once('-').unwrap_or((word, word));
        match (start.parse::<usize>(), end.parse::<usize>()) {
            (Ok(start), Ok(end)) => lines.extend((start..=end).map(|line| (file.clone(), line))),
            _ => file = word.replace('~', " "),
        }
    }
    lines
}

fn has(program: &str) -> bool {
    let look = Command::new("/bin/sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    look.is_ok_and(|look| look.status.success())
}

#[test]
fn ways_to_read_in_a_shell() {
    let repository = repository();
    let mut missed = Vec::new();
    let mut tried = 0;
    let mut failed: Vec<String> = vec![];
    for (command, shown) in ROWS {
        let needed = [
            "rg", "bat", "jq", "node", "perl", "python3", "xxd", "less", "more", "git",
        ];
        let mut words = command.split([' ', '(']);
        if let Some(program) = words
            .find(|word| needed.contains(word))
            .filter(|word| !has(word))
        {
            parts::not_tested(&format!(
                "a way to read in a shell, `{command}`: no {program}"
            ));
            continue;
        }
        let place = copy(repository.path());
        let (recorded, output) = recorded(place.path(), command);
        let expected = expected(shown);
        let wrong: Vec<_> = recorded.difference(&expected).collect();
        if !wrong.is_empty() {
            failed.push(format!("{command} shows no {wrong:?}:\n{output}"));
        }
        tried += usize::from(!expected.is_empty());
        let is_said = |(name, line): &&(String, usize)| {
            let text = fs::read_to_string(place.path().join(name)).unwrap();
            text.lines()
                .nth(line - 1)
                .unwrap()
                .chars()
                .filter(|letter| letter.is_alphanumeric())
                .count()
                > 1
        };
        let left: Vec<_> = expected.difference(&recorded).filter(is_said).collect();
        if !left.is_empty() {
            missed.push(format!("{command}: {left:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(tried >= 37, "{tried} ways");
    assert!(
        missed.len() <= MISSED,
        "{} of {tried} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

/// Returns a strategy for lists of lines of which many are the same.
fn repetitive() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        Just(String::new()),
        Just("}".to_owned()),
        Just("    return None;".to_owned()),
        (0..6_u8).prop_map(|n| format!("let value_{n} = {n};")),
        (0..90_u8).prop_map(|n| format!("    call number {n}")),
    ];
    proptest::collection::vec(line, 1..40)
}

/// Commands that show consecutive lines of `a.txt`, with or without numbers.
const CUTS: [&str; 6] = [
    "sed -n 'F,Tp' a.txt | cat",
    "cat a.txt b.txt > /dev/null; tail -n +F a.txt | head -n C",
    "cat -n a.txt | sed -n 'F,Tp'",
    "sed -n 'F,Tp' a.txt | cat -n",
    "sed -n 'F,Tp' a.txt | grep -n ''",
    "grep -n '' a.txt b.txt | grep '^a' | sed -n 'F,Tp'",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// However similar the lines are, none is recorded at a place where it was
    /// not shown.
    #[test]
    fn no_line_is_recorded_that_was_not_shown(
        a in repetitive(),
        b in repetitive(),
        shared in 0..8_usize,
        from in 1..40_usize,
        count in 1..20_usize,
        cut in 0..CUTS.len(),
    ) {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        let b: Vec<String> = a.iter().take(shared).chain(&b).cloned().collect();
        fs::write(at.join("a.txt"), a.join("\n") + "\n").unwrap();
        fs::write(at.join("b.txt"), b.join("\n") + "\n").unwrap();
        let (first, last) = (from.min(a.len()), (from + count - 1).min(a.len()));
        let command = CUTS[cut]
            .replace('F', &first.to_string())
            .replace('T', &last.to_string())
            .replace('C', &(last + 1 - first).to_string());
        let (recorded, output) = recorded(at, &command);
        let wrong: Vec<_> = recorded
            .iter()
            .filter(|(name, line)| name != "a.txt" || !(first..=last).contains(line))
            .collect();
        prop_assert!(wrong.is_empty(), "{command}\n{wrong:?}\n{output}\nof\n{}", a.join("\n"));
    }
}
