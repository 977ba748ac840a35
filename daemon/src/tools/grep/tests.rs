#![allow(clippy::unwrap_used, clippy::panic)]
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::found::{TEXT_BYTES, cut};
use super::*;

/// A workspace with some files.
struct Tree(TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            tree.file(name, text);
        }
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn search(&self, ask: &SearchGrep) -> Result<Matches, Error> {
        let stop = Stop::at(Instant::now() + Duration::from_secs(60));
        search(&self.root(), ask, |_| false, 1 << 20, &trust(), &stop)
    }

    /// Returns `path:line:column:text` of each match.
    fn hits(&self, ask: &SearchGrep) -> Vec<String> {
        let found = self.search(ask).unwrap();
        assert!(!found.truncated);
        lines(&found)
    }

    fn refused(&self, ask: &SearchGrep) -> (ErrorCode, String) {
        let error = self.search(ask).unwrap_err();
        (error.code, format!("{error}; {}", error.hint))
    }
}

fn trust() -> Trust {
    crate::system::open::trust(Path::new("/nonexistent"))
}

fn lines(found: &Matches) -> Vec<String> {
    let line = |hit: &touchmark_proto::search::Match| {
        format!("{}:{}:{}:{}", hit.path, hit.line, hit.column, hit.text)
    };
    found.matches.iter().map(line).collect()
}

fn ask(pattern: &str) -> SearchGrep {
    SearchGrep::new(pattern)
}

#[test]
fn by_path_and_line_with_columns_in_bytes() {
    let tree = Tree::new(&[
        ("b.txt", "x\nä one one\r\n"),
        ("a/z.txt", "one"),
        ("a/b/c.txt", "none\n\none\n"),
    ]);
    assert_eq!(
        tree.hits(&ask("one")),
        [
            "a/b/c.txt:1:2:none",
            "a/b/c.txt:3:1:one",
            "a/z.txt:1:1:one",
            "b.txt:2:4:ä one one"
        ]
    );
    let found = tree.search(&ask("one")).unwrap();
    assert_eq!(found.files_searched, 3);
}

#[test]
fn each_match_has_all_its_lines_around_even_where_matches_lie_close() {
    let tree = Tree::new(&[("f", "1\n2\nhit a\nhit b\n5\n6\n7\n8\nhit c\n")]);
    let around = |ask: &SearchGrep| -> Vec<(String, String)> {
        let found = tree.search(ask).unwrap();
        let one =
            |hit: &touchmark_proto::search::Match| (hit.before.join(","), hit.after.join(","));
        found.matches.iter().map(one).collect()
    };
    let pair = |before: &str, after: &str| (before.to_owned(), after.to_owned());
    let both = SearchGrep {
        context: Some(2),
        ..ask("hit")
    };
    assert_eq!(
        around(&both),
        [
            pair("1,2", "hit b,5"),
            pair("2,hit a", "5,6"),
            pair("7,8", "")
        ]
    );
    let own = SearchGrep {
        before_context: Some(0),
        ..both.clone()
    };
    assert_eq!(
        around(&own),
        [pair("", "hit b,5"), pair("", "5,6"), pair("", "")]
    );
    let before = SearchGrep {
        before_context: Some(1),
        ..ask("hit")
    };
    assert_eq!(
        around(&before),
        [pair("2", ""), pair("hit a", ""), pair("8", "")]
    );
}

#[test]
fn ignored_hidden_and_git_files_are_not_searched() {
    let tree = Tree::new(&[
        (".gitignore", "*.log\n/build/\n"),
        (".ignore", "vendor/\n"),
        ("a.log", "hit"),
        ("build/b", "hit"),
        ("vendor/c", "hit"),
        (".hidden", "hit"),
        (".git/config", "hit"),
        ("src/.gitignore", "generated\n"),
        ("src/generated", "hit"),
        ("src/kept", "hit"),
    ]);
    assert_eq!(tree.hits(&ask("hit")), ["src/kept:1:1:hit"]);
    // What is named is searched, as with `rg`; only git's own data is not.
    let named = |path: &str| SearchGrep {
        path: Some(path.into()),
        ..ask("hit")
    };
    assert_eq!(tree.hits(&named("build")), ["build/b:1:1:hit"]);
    assert_eq!(tree.hits(&named(".hidden")), [".hidden:1:1:hit"]);
    assert_eq!(tree.refused(&named(".git")).0, ErrorCode::NotFound);
    assert_eq!(tree.refused(&named(".git/config")).0, ErrorCode::NotFound);
    let everything = SearchGrep {
        glob: Some("**/*".into()),
        ..ask("hit")
    };
    let hits = tree.hits(&everything);
    assert!(!hits.iter().any(|hit| hit.starts_with(".git/")), "{hits:?}");
}

#[test]
fn types_and_globs() {
    let tree = Tree::new(&[("a.rs", "hit"), ("b.ts", "hit"), ("src/c.rs", "hit")]);
    let rust = SearchGrep {
        file_type: Some("rust".into()),
        ..ask("hit")
    };
    assert_eq!(tree.hits(&rust), ["a.rs:1:1:hit", "src/c.rs:1:1:hit"]);
    let glob = |glob: &str| {
        tree.hits(&SearchGrep {
            glob: Some(glob.into()),
            ..ask("hit")
        })
    };
    assert_eq!(glob("src/**"), ["src/c.rs:1:1:hit"]);
    assert_eq!(glob("!*.rs"), ["b.ts:1:1:hit"]);
    for (wrong, what) in [
        (
            SearchGrep {
                file_type: Some("klingon".into()),
                ..ask("hit")
            },
            "fileType: ",
        ),
        (
            SearchGrep {
                glob: Some("{".into()),
                ..ask("hit")
            },
            "glob: ",
        ),
        (ask("("), "the pattern: "),
        (ask("a\nb"), "multiline"),
    ] {
        let (code, text) = tree.refused(&wrong);
        assert_eq!(code, ErrorCode::InvalidParams);
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn case_and_lines() {
    let tree = Tree::new(&[("f", "fn one(\n    two: u8,\n) {\nONE\n")]);
    let insensitive = SearchGrep {
        case_insensitive: true,
        ..ask("one")
    };
    assert_eq!(tree.hits(&insensitive), ["f:1:4:fn one(", "f:4:1:ONE"]);
    let over = SearchGrep {
        multiline: true,
        context: Some(1),
        ..ask(r"one\([^)]*\)")
    };
    assert_eq!(tree.hits(&over), ["f:1:4:fn one(\n    two: u8,\n) {"]);
    let found = tree.search(&over).unwrap();
    assert_eq!(found.matches[0].after, ["ONE"]);
}

#[test]
fn binary_files_are_passed_over_wherever_their_first_nul_lies() {
    let tree = Tree::new(&[("text", "hit")]);
    tree.file("early", b"\0hit\n");
    let mut late = b"hit\n".to_vec();
    late.extend(b"nothing\n".repeat(100_000));
    late.push(0);
    tree.file("late", &late);
    assert_eq!(tree.hits(&ask("hit")), ["text:1:1:hit"]);
    tree.file("latin", b"hit \xe4\xff\n");
    assert_eq!(
        tree.hits(&ask("hit")),
        ["latin:1:1:hit \u{fffd}\u{fffd}", "text:1:1:hit"]
    );
}

#[test]
fn patterns_that_would_take_too_much_are_refused() {
    let tree = Tree::new(&[("f", "aaaa")]);
    for pattern in [r"(\w{1000}){1000}", &"a".repeat(PATTERN_BYTES + 1)] {
        let error = tree.search(&ask(pattern)).unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge, "{error}");
        assert!(error.data.limit.is_some());
    }
    // Nested groups have a separate limit.
    let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
    assert_eq!(tree.refused(&ask(&deep)).0, ErrorCode::InvalidParams);
    // Patterns on which other engines take forever have a result immediately.
    assert_eq!(tree.hits(&ask("(a+)+$")), ["f:1:1:aaaa"]);
    assert!(tree.hits(&ask("(a|a|a?)+b")).is_empty());
}

#[test]
fn huge_lines_are_cut_around_the_match() {
    let mut line = "ä".repeat(500_000);
    line.push_str("hit");
    line.push_str(&"ö".repeat(500_000));
    let tree = Tree::new(&[("f", &format!("{line}\n{line}\nend\n"))]);
    let found = tree
        .search(&SearchGrep {
            context: Some(1),
            ..ask("hit")
        })
        .unwrap();
    let first = &found.matches[0];
    assert_eq!((first.line, first.column), (1, 1_000_001));
    assert!(first.text.contains("ähitö"));
    for text in [&first.text, &first.after[0], &found.matches[1].before[0]] {
        assert!(text.len() <= TEXT_BYTES + 2 * '…'.len_utf8());
        assert!(!text.contains('\u{fffd}'), "cut within a character");
    }
}

#[test]
fn cuts_say_so_and_lose_no_short_line() {
    assert_eq!(cut(b"short\r\n", 0), "short");
    assert_eq!(cut(b"two\nlines\n", 0), "two\nlines");
    let long = vec![b'x'; TEXT_BYTES + 1];
    assert_eq!(cut(&long, 0).chars().last(), Some('…'));
    assert_eq!(cut(&long, TEXT_BYTES).chars().next(), Some('…'));
    assert_eq!(
        cut(&vec![0x80; 2 * TEXT_BYTES], TEXT_BYTES).chars().next(),
        Some('…')
    );
}

#[test]
fn answers_are_bounded_in_number_and_bytes() {
    let tree = Tree::new(&[("a", &"hit\nx\n".repeat(3)), ("b", "hit\n")]);
    let most = |number: u32| {
        let found = tree
            .search(&SearchGrep {
                max_matches: Some(number),
                after_context: Some(1),
                ..ask("hit")
            })
            .unwrap();
        let last = found.matches.last().map(|hit| hit.after.join(","));
        (found.matches.len(), found.truncated, last)
    };
    assert_eq!(most(0), (0, true, None));
    assert_eq!(most(2), (2, true, Some("x".into())));
    assert_eq!(most(3), (3, true, Some("x".into())));
    // The limit is the number of matches: nothing is missing.
    assert_eq!(most(4), (4, false, Some(String::new())));

    let tree = Tree::new(&[("f", &"\u{1}\"hit\"\n".repeat(1000))]);
    let stop = Stop::at(Instant::now() + Duration::from_secs(60));
    let all = SearchGrep {
        context: Some(3),
        ..ask("hit")
    };
    for room in [0, 1_000, 10_000, 100_000] {
        let found = search(&tree.root(), &all, |_| false, room, &trust(), &stop).unwrap();
        let size = serde_json::to_vec(&found.matches).unwrap().len();
        assert!(found.truncated);
        assert!(size <= room.max(2), "{size} bytes of {room}");
        assert!(size * 2 > room || room < 1000, "{size} bytes of {room}");
    }
}

#[test]
fn nothing_outside_and_no_link_is_followed() {
    let outside = Tree::new(&[("secret", "hit"), ("dir/secret", "hit")]);
    let tree = Tree::new(&[("in", "hit"), ("dir/file", "hit")]);
    let link = |to: &Path, name: &str| symlink(to, tree.root().join(name)).unwrap();
    link(&outside.root().join("secret"), "out");
    link(&outside.root().join("dir"), "outdir");
    link(Path::new("in"), "twice");
    link(Path::new("dir"), "again");
    link(Path::new("circle"), "circle");
    assert_eq!(tree.hits(&ask("hit")), ["dir/file:1:1:hit", "in:1:1:hit"]);
    let named = |path: &str| SearchGrep {
        path: Some(path.into()),
        ..ask("hit")
    };
    for path in ["out", "outdir", "outdir/secret", "../x", "/etc/passwd"] {
        let code = tree.refused(&named(path)).0;
        assert_eq!(code, ErrorCode::OutsideWorkspace, "{path}");
    }
    for path in ["no", "in/no", "circle"] {
        assert_eq!(tree.refused(&named(path)).0, ErrorCode::NotFound, "{path}");
    }
    // A link that is named is followed; files have their real names.
    assert_eq!(tree.hits(&named("again")), ["dir/file:1:1:hit"]);
    for everything in [".", "./", "", "dir/.."] {
        assert_eq!(tree.hits(&named(everything)).len(), 2, "{everything:?}");
    }
    let fifo = tree.root().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!(tree.hits(&ask("hit")).len(), 2);
    assert_eq!(tree.refused(&named("fifo")).0, ErrorCode::NotAFile);
}

#[test]
fn a_search_ends_when_it_is_told_or_its_time_is_over() {
    let tree = Tree::new(&[("a", "hit"), ("b", "hit")]);
    let stop = Stop::at(Instant::now() + Duration::from_secs(60));
    stop.clone().say();
    let error = search(
        &tree.root(),
        &ask("hit"),
        |_| false,
        1 << 20,
        &trust(),
        &stop,
    )
    .unwrap_err();
    assert_eq!(error.code, ErrorCode::TooLate);
    let stop = Stop::at(Instant::now());
    assert!(
        search(
            &tree.root(),
            &ask("hit"),
            |_| false,
            1 << 20,
            &trust(),
            &stop
        )
        .is_err()
    );

    // The signal comes in the middle of a file.
    let stop = Stop::at(Instant::now() + Duration::from_secs(60));
    let mut file = Stoppable::new(std::io::repeat(b'x'), &stop);
    let mut buffer = [0; 8];
    assert_eq!(std::io::Read::read(&mut file, &mut buffer).unwrap(), 8);
    stop.say();
    assert!(std::io::Read::read(&mut file, &mut buffer).is_err());
}

/// SEC-7: whatever an ignore file is, it affects only its own rules.
#[test]
fn sec7_an_ignore_file_that_is_no_file_or_has_no_end_does_not_count() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("rules"), "kept\n").unwrap();
    for way in 0..6 {
        let tree = Tree::new(&[
            ("kept", "hit"),
            ("gone.log", "hit"),
            (".gitignore", "*.log\n"),
        ]);
        let ignore = tree.root().join(".ignore");
        match way {
            0 => symlink("/dev/zero", &ignore).unwrap(),
            1 => rustix::fs::mknodat(
                rustix::fs::CWD,
                &ignore,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::from_raw_mode(0o666),
                0,
            )
            .unwrap(),
            2 => symlink(outside.path().join("rules"), &ignore).unwrap(),
            3 => fs::write(&ignore, format!("#{}\nkept\n", "x".repeat(2 << 20))).unwrap(),
            4 => fs::write(&ignore, "kept\n".repeat(30_000)).unwrap(),
            _ => fs::create_dir(&ignore).unwrap(),
        }
        assert_eq!(tree.hits(&ask("hit")), ["kept:1:1:hit"], "{way}");
    }
    // A link inside the workspace is followed, and its target's rules count.
    let tree = Tree::new(&[("a", "hit"), ("b", "hit"), ("rules", "b\nrules\n")]);
    symlink("rules", tree.root().join(".ignore")).unwrap();
    assert_eq!(tree.hits(&ask("hit")), ["a:1:1:hit"]);
}

/// SEC-7: a pattern costs no more than a path, no matter who wrote it. Without
/// a limit, this many nested alternatives would overflow the stack.
#[test]
fn sec7_a_pattern_has_bounds() {
    let nested = format!("{}a{}", "{".repeat(60_000), "}".repeat(60_000));
    let rules = format!("{nested}\n*.log\n");
    let tree = Tree::new(&[("a", "hit"), ("b.log", "hit"), (".gitignore", &rules)]);
    assert_eq!(tree.hits(&ask("hit")), ["a:1:1:hit"]);
    let asked = SearchGrep {
        glob: Some(nested),
        ..ask("hit")
    };
    assert_eq!(tree.refused(&asked).0, ErrorCode::InvalidParams);
}

/// SEC-7: any number of directories may have ignore files.
#[test]
fn sec7_patterns_are_limited_in_all_directories_together() {
    let rules: String = (0..4_500).map(|n| format!("{n}\n")).collect();
    let rules = rules + "hidden\n";
    let names: Vec<[String; 2]> = (0..4)
        .map(|n| [format!("d{n}/.gitignore"), format!("d{n}/hidden")])
        .collect();
    let files = names
        .iter()
        .flat_map(|[ignore, hidden]| [(ignore.as_str(), rules.as_str()), (hidden.as_str(), "hit")]);
    let tree = Tree::new(&files.collect::<Vec<_>>());
    assert_eq!(
        tree.hits(&ask("hit")),
        ["d2/hidden:1:1:hit", "d3/hidden:1:1:hit"]
    );
}

/// SEC-6 for ignore files. The test needs root, to create files of another
/// user.
#[test]
fn sec6_ignore_files_of_others_do_not_count() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let tree = Tree::new(&[("a/.ignore", "*\n"), ("a/b", "hit")]);
    assert!(tree.hits(&ask("hit")).is_empty());
    let inner = tree.root().join("a");
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(tree.hits(&ask("hit")), ["a/b:1:1:hit"]);
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(tree.hits(&ask("hit")).is_empty());
    if rustix::process::geteuid().is_root() {
        chown(inner.join(".ignore"), Some(1002), None).unwrap();
        assert_eq!(tree.hits(&ask("hit")), ["a/b:1:1:hit"]);
    } else {
        touchmark_tests::parts::not_tested("another user's ignore file: it takes root");
    }
}

/// Above the workspace, ignore files count up to the repository's top.
#[test]
fn ignore_files_above_count_within_the_repository() {
    let outer = Tree::new(&[
        (".ignore", "a\n"),
        ("w/a", "hit"),
        ("w/b", "hit"),
        ("w/c", "hit"),
    ]);
    let root = outer.root().join("w");
    let hits = || {
        let stop = Stop::at(Instant::now() + Duration::from_secs(60));
        lines(&search(&root, &ask("hit"), |_| false, 1 << 20, &trust(), &stop).unwrap())
    };
    assert_eq!(hits().len(), 3, "in no repository");
    outer.file(".git/info/exclude", "b\n");
    assert_eq!(hits(), ["c:1:1:hit"]);
    outer.file("w/.git/HEAD", "");
    assert_eq!(hits().len(), 3, "in one of its own");
}

/// A search ends in time within one long line too, and finds its matches.
#[test]
fn sec7_a_search_ends_within_one_long_line() {
    // A pattern that is slow at each of these bytes.
    let slow = "[a-d][a-z]{900}[e-h]{1,900}[a-z]{0,900}\\d";
    let mut seed = 1_u32;
    let mut line: Vec<u8> = Vec::new();
    while line.len() < 8 << 20 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        line.push(b'a' + (seed >> 24) as u8 % 8);
    }
    let tree = Tree::new(&[]);
    tree.file("long", &line);
    for multiline in [false, true] {
        let asked = SearchGrep {
            multiline,
            ..ask(slow)
        };
        let until = Instant::now() + Duration::from_millis(300);
        let stop = Stop::at(until);
        let found = search(&tree.root(), &asked, |_| false, 1 << 20, &trust(), &stop).unwrap();
        assert!(found.truncated && found.matches.is_empty());
        // Without the look at the clock the search would take minutes.
        assert!(until.elapsed() < Duration::from_secs(20));
    }
    let middle = line.len() / 2;
    line.splice(middle..middle, *b"xx Needle yy");
    tree.file(
        "long",
        [b"short\nNeedle\n".as_slice(), &line, b"\nlast Needle\n\n"].concat(),
    );
    for multiline in [false, true] {
        for pattern in ["N[e]+dle", "(?i)nEEDLE", "\\bNeedle\\b", "Needle(?-u:\\b)"] {
            let asked = SearchGrep {
                multiline,
                ..ask(pattern)
            };
            let found = tree.search(&asked).unwrap();
            assert!(!found.truncated, "{pattern}");
            let at: Vec<(u64, u64)> = found
                .matches
                .iter()
                .map(|hit| (hit.line, hit.column))
                .collect();
            assert_eq!(
                at,
                [(2, 1), (3, middle as u64 + 4), (4, 6)],
                "{pattern} {multiline}"
            );
        }
    }
    let empty = tree.search(&ask("^$")).unwrap();
    assert_eq!(empty.matches.len(), 1, "the last line");
    assert_eq!(empty.matches[0].line, 5);
}
