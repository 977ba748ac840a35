//! Checks what the documents say about the tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use touchmark_proto::METHODS;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Adds the names of all tests below a directory: of functions, and of the cases
/// that a test reads from a text file (`= NAME`).
fn tests_below(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            tests_below(&path, names);
        } else if name.ends_with(".txt") && directory.starts_with(format!("{TOP}/engine/tests")) {
            let text = fs::read_to_string(&path).unwrap();
            let cases = text.lines().filter_map(|line| line.strip_prefix("= "));
            names.extend(cases.map(str::to_owned));
        } else if name.ends_with(".rs") {
            let mut marked = false;
            for line in fs::read_to_string(&path).unwrap().lines() {
                let line = line.trim();
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    marked = true;
                } else if let Some((_, function)) = line.split_once("fn ")
                    && marked
                {
                    names.insert(function.split('(').next().unwrap().to_owned());
                    marked = false;
                }
            }
        }
    }
}

#[test]
fn the_tests_that_hold_promises_exist() {
    let document = fs::read_to_string(format!("{TOP}/tests/reliability.md")).unwrap();
    let mut tests = BTreeSet::new();
    tests_below(Path::new(TOP), &mut tests);
    let mut named = 0;
    for line in document.lines().filter(|line| line.starts_with("| ")) {
        let Some(cell) = line.split(" | ").nth(1) else {
            continue;
        };
        if let Some(name) = cell
            .strip_prefix('`')
            .and_then(|name| name.strip_suffix('`'))
        {
            named += 1;
            assert!(tests.contains(name), "there is no test {name}: {line}");
        }
    }
    assert!(named > 30, "the tables were not understood");
}

/// Returns the first cells of a table's rows, without the heads.
fn rows(table: &str) -> Vec<String> {
    table
        .lines()
        .filter_map(|line| line.strip_prefix("| S"))
        .map(|line| format!("S{}", line.split(" | ").next().unwrap()))
        .collect()
}

/// Returns the table of scenarios and the table of their results.
fn scenarios() -> (String, String) {
    let document = fs::read_to_string(format!("{TOP}/tests/scenarios.md")).unwrap();
    let (told, rest) = document.split_once("<!-- results -->").unwrap();
    let (results, _) = rest.split_once("<!-- end of results -->").unwrap();
    (told.to_owned(), results.to_owned())
}

#[test]
fn every_scenario_has_a_test_by_its_name() {
    let mut tests = BTreeSet::new();
    tests_below(&Path::new(TOP).join("tests/tests"), &mut tests);
    let rows = rows(&scenarios().0);
    assert!(rows.len() > 30, "the table was not understood: {rows:?}");
    for row in &rows {
        let prefix = format!("{}_", row.to_lowercase());
        assert!(
            tests.iter().any(|test| test.starts_with(&prefix)),
            "no test for {row}"
        );
    }
    let known: BTreeSet<String> = rows.iter().map(|row| row.to_lowercase()).collect();
    for test in tests {
        let row = test.split('_').next().unwrap();
        let numbered = row
            .strip_prefix('s')
            .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
        assert!(!numbered || known.contains(row), "no row for {test}");
    }
}

#[test]
fn every_scenario_came_to_nothing_wrong() {
    let (told, results) = scenarios();
    assert_eq!(
        rows(&results),
        rows(&told),
        "run `cargo run --profile dist -p touchmark-bench -- scenarios`"
    );
    for line in results.lines().filter(|line| line.starts_with("| S")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        assert!(cells[1].parse::<u32>().unwrap() >= 30, "too few: {line}");
        assert_eq!(cells[2], "0", "wrong: {line}");
    }
}

#[test]
fn the_readme_quotes_what_was_measured() {
    let readme = fs::read_to_string(format!("{TOP}/README.md")).unwrap();
    let page = fs::read_to_string(format!("{TOP}/docs/performance.md")).unwrap();
    let (_, rest) = readme
        .split_once("<!-- measured: written by the bench -->")
        .unwrap();
    let (quoted, _) = rest.split_once("<!-- end of measured -->").unwrap();
    let rows: Vec<&str> = quoted
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"))
        .collect();
    assert_eq!(rows.len(), 1 + 3, "the heading and three rows: {quoted}");
    for row in rows {
        // The page's rows go on with the goals.
        let row = row.strip_suffix('|').unwrap();
        let found = page.lines().any(|line| line.starts_with(row));
        assert!(found, "not as on docs/performance.md: {row}");
    }
}

/// Returns whether a cell of a table is a time or a size.
fn is_measured(cell: &str) -> bool {
    let mut words = cell.trim().split(' ');
    let number = words.next().unwrap_or_default();
    let is_number = number.starts_with(|first: char| first.is_ascii_digit());
    let unit = matches!(words.next(), Some("us" | "ms" | "s" | "KB" | "MB"));
    is_number && unit && words.next().is_none()
}

/// A time on any other page was measured once, and would not be measured again.
#[test]
fn tables_of_times_are_measured_again() {
    let mut all = Vec::new();
    pages(Path::new(TOP), &mut all);
    let mut found = BTreeSet::new();
    for page in all {
        let text = fs::read_to_string(&page).unwrap();
        let mut rows = text.lines().filter(|line| line.starts_with("| "));
        if rows.any(|row| row.split('|').any(is_measured)) {
            let name = page.strip_prefix(TOP).unwrap_or(&page);
            found.insert(name.to_string_lossy().trim_start_matches('/').to_owned());
        }
    }
    // The bench writes the first two, and a test compares them. The agents' costs
    // are those of all agents with hooks (`the_costs_are_those_of_all_agents`).
    let measured = ["README.md", "docs/agents/README.md", "docs/performance.md"];
    assert_eq!(found, measured.map(str::to_owned).into());
}

#[test]
fn the_page_of_measurements_has_its_drawings() {
    let page = fs::read_to_string(format!("{TOP}/docs/performance.md")).unwrap();
    let drawn: Vec<&str> = page
        .lines()
        .filter_map(|line| {
            line.strip_prefix("![")?
                .split_once("](")?
                .1
                .strip_suffix(')')
        })
        .collect();
    assert!(drawn.len() >= 6, "the drawings were not found: {drawn:?}");
    for drawing in drawn {
        let drawing = fs::read_to_string(format!("{TOP}/docs/{drawing}")).expect(drawing);
        assert!(drawing.starts_with("<svg ") && !drawing.contains("NaN"));
    }
}

#[test]
fn the_glossary_has_the_protocols_words() {
    let glossary = fs::read_to_string(format!("{TOP}/docs/glossary.md")).unwrap();
    let schema = fs::read_to_string(format!("{TOP}/docs/protocol.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let explained = [
        ("AuthorKind", "author"),
        ("CommandScope", "window"),
        ("Evidence", "evidence"),
        ("Guard", "guard"),
        ("Outcome", "outcome"),
        ("State", "state"),
        ("UndoOutcome", "outcome"),
        ("Verdict", "verdict"),
        ("VersionKind", "kind"),
    ];
    for (name, entry) in explained {
        let values = schema["$defs"][name]["oneOf"].as_array().expect(name);
        assert!(!values.is_empty());
        for value in values {
            let value = value["const"].as_str().expect(name);
            let said = glossary.lines().any(|line| {
                line.starts_with(&format!("**{entry}**")) && quoted(line).any(|one| one == value)
            });
            assert!(said, "{entry} does not say what {value} is");
        }
    }
}

/// Adds the Markdown pages of the repository. A symlink is in a package what it
/// leads to.
fn pages(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type().unwrap().is_dir() {
            if !["target", "node_modules", ".git"].contains(&&*name) {
                pages(&path, found);
            }
        } else if name.ends_with(".md") && !path.is_symlink() {
            found.push(path);
        }
    }
}

/// Returns the anchors of a page, as forges make them from its headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let heading = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        text.chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    page.lines()
        .filter(|line| {
            fenced ^= line.starts_with("```");
            !fenced && line.starts_with('#')
        })
        .map(heading)
        .collect()
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut all = Vec::new();
    pages(Path::new(TOP), &mut all);
    assert!(all.len() > 20, "the pages were not found: {all:?}");
    let mut dead = Vec::new();
    for page in all {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split([')', ' ']).next().unwrap();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let there = target.exists()
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !there {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Returns the parts of a line between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn the_map_of_the_five_trackers_leads_somewhere() {
    let document = fs::read_to_string(format!("{TOP}/tests/seeds.md")).unwrap();
    let mut tests = BTreeSet::new();
    tests_below(Path::new(TOP), &mut tests);
    let (mut methods, mut named) = (BTreeSet::new(), BTreeSet::new());
    for line in document.lines() {
        // Of a row, what is there is theirs.
        let ours = match line.strip_prefix("| ") {
            Some(row) => row.split_once(" | ").map_or("", |(_, ours)| ours),
            None => line,
        };
        for word in quoted(ours) {
            let lower = |c: char| c.is_ascii_lowercase();
            let family = word.split_once('/').map_or("", |(family, _)| family);
            if !family.is_empty() && family.chars().all(lower) && !word.contains('.') {
                assert!(METHODS.contains(&word), "there is no method {word}: {line}");
                methods.insert(word);
            } else if word.matches('_').count() > 1
                && word
                    .chars()
                    .all(|c| lower(c) || c.is_ascii_digit() || c == '_')
            {
                assert!(tests.contains(word), "there is no test {word}: {line}");
                named.insert(word);
            }
        }
    }
    assert!(named.len() > 60, "the tables were not understood");
    // All families that the documents speak of.
    for family in [
        "file/",
        "call/",
        "checkpoint/",
        "warning/",
        "task/",
        "model/",
    ] {
        for method in METHODS.iter().filter(|name| name.starts_with(family)) {
            let elsewhere = [
                "file/history",
                "file/content",
                "file/diff",
                "file/blame",
                "file/log",
                "file/restore",
            ];
            assert!(
                methods.contains(method) || elsewhere.contains(method),
                "{method} is not on the map"
            );
        }
    }
}
