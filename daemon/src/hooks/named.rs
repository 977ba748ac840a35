//! Which files a command may print: those that it names, and those that its
//! output names. The functions look at the disk, within limits, and block for
//! nothing else.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::system::open::trust;
use crate::tools::unignored;

/// The maximum number of files for one command.
pub(super) const FILES: usize = 16;
/// The maximum size of one file, in bytes.
const BYTES: u64 = 1 << 20;

/// The maximum number of words of a command or an output that are tried as
/// names.
const WORDS: usize = 256;

/// The maximum length of a word, in bytes.
const WORD: usize = 1_024;
/// The maximum length of a command, in bytes.
const COMMAND: usize = 64 << 10;

/// The maximum number of directories to which names may be relative.
const BASES: usize = 8;

/// The maximum number of entries that are searched for a command that searches
/// directories itself.
const ENTRIES: usize = 2_000;
/// The maximum depth of directories in such a search.
const DEPTH: usize = 8;

/// Programs that print files which they find themselves.
const FINDERS: [&str; 6] = ["find", "fd", "xargs", "ls-files", "for", "while"];

/// Programs that change lines, so that a line of their output may only look
/// like the file's.
const CHANGING: [&str; 13] = [
    "tr", "cut", "sort", "uniq", "rev", "shuf", "tac", "fold", "column", "paste", "perl", "gsub",
    "sub",
];

/// A file that an output may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: PathBuf,
    /// The names by which an output may refer to it.
    pub(super) names: Vec<String>,
}

/// The directories to which names are relative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) root: &'a Path,
    pub(super) cwd: &'a Path,
    /// The list of trusted directories.
    pub(super) trusted: &'a Path,
}

/// Returns the files that a command names.
pub(super) fn in_command(place: Place<'_>, command: &str) -> Vec<Named> {
    let words = words(command);
    let bases = bases(place, &words);
    files(place, &bases, words.iter().map(String::as_str))
}

/// Returns the files that an output names before their lines, and those that a
/// command finds by patterns or by searching directories, without the files
/// that are known already.
pub(super) fn in_output(
    place: Place<'_>,
    command: &str,
    output: &str,
    known: &[Named],
) -> Vec<Named> {
    let words = words(command);
    let mut bases = bases(place, &words);
    for above in place.cwd.ancestors() {
        if above.starts_with(place.root) && !bases.iter().any(|base| base == above) {
            bases.push(above.to_owned());
        }
    }
    let mut found = files(place, &bases, spelled(output).into_iter());
    let named = !known.is_empty() || !found.is_empty();
    for path in looked_up(place, &bases, &words, named) {
        if found.len() < FILES && !found.iter().any(|known| known.path == path) {
            let names = names(place, &bases, &path, None);
            found.push(Named { path, names });
        }
    }
    found.retain(|found| !known.iter().any(|known| known.path == found.path));
    found
}

/// Returns the minimum number of consecutive lines that must be a file's: one,
/// unless the command changes lines.
pub(super) fn shortest(command: &str) -> usize {
    let changes = |word: &str| {
        CHANGING.contains(&word)
            || word.strip_prefix(['s', 'y']).is_some_and(|rest| {
                let mut letters = rest.chars();
                let sign = letters
                    .next()
                    .filter(|sign| !sign.is_alphanumeric() && !"-_.".contains(*sign));
                sign.is_some_and(|sign| letters.filter(|letter| *letter == sign).count() >= 2)
            })
    };
    let parts = words(command);
    match parts.iter().any(|word| changes(word)) {
        true => 3,
        false => 1,
    }
}

/// Returns the words of a command as a shell reads them, and the parts between
/// other separators of names: in a script within the command, after a `:` or a
/// `=`.
fn words(command: &str) -> Vec<String> {
    let mut cut = command.len().min(COMMAND);
    while !command.is_char_boundary(cut) {
        cut -= 1;
    }
    let command = command.get(..cut).unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    let mut add = |word: &str| {
        // What is before the first `/` may be a variable.
        let word = match word.starts_with('$') {
            true => word.split_once('/').map_or("", |(_, rest)| rest),
            false => word,
        };
        if (1..=WORD).contains(&word.len()) && words.len() < WORDS && known.insert(word.to_owned())
        {
            words.push(word.to_owned());
        }
    };
    let mut word = String::new();
    let mut quote = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            ('\\', None | Some('"')) => word.extend(letters.next()),
            (' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`', None) => {
                add(&word);
                word.clear();
            }
            (letter, _) => word.push(letter),
        }
    }
    add(&word);
    let parts = |signs: &'static str| command.split(move |letter| signs.contains(letter));
    parts(" \t\r\n'\"`;|&<>(),=").for_each(&mut add);
    parts(" \t\r\n'\"`;|&<>(){}[],=:").for_each(&mut add);
    words
}

/// Returns the directory in which the command runs, and the directories that it
/// names.
fn bases(place: Place<'_>, words: &[String]) -> Vec<PathBuf> {
    let mut bases = vec![place.cwd.to_owned()];
    for word in words {
        if bases.len() >= BASES || word.starts_with('-') {
            continue;
        }
        let below = bases.iter().map(|base| base.join(word));
        let found = below.into_iter().find(|path| {
            is_near(place, path) && fs::metadata(path).is_ok_and(|found| found.is_dir())
        });
        bases.extend(found.filter(|path| path != place.cwd));
    }
    bases
}

fn is_near(place: Place<'_>, path: &Path) -> bool {
    path.starts_with(place.root) || path.starts_with(place.cwd)
}

/// Returns the files that words name.
fn files<'a>(
    place: Place<'_>,
    bases: &[PathBuf],
    words: impl Iterator<Item = &'a str>,
) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    for word in words.take(WORDS) {
        for base in bases {
            if found.len() >= FILES {
                return found;
            }
            let path = plain(&base.join(word));
            let is_file =
                || fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= BYTES);
            let known = found.iter_mut().find(|known| known.path == path);
            match known {
                Some(known) if !known.names.iter().any(|name| name == word) => {
                    known.names.push(word.to_owned());
                }
                Some(_) => {}
                None if is_near(place, &path) && is_file() => {
                    let names = names(place, bases, &path, Some(word));
                    found.push(Named { path, names });
                }
                None => {}
            }
        }
    }
    found
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the names by which an output may refer to a file: relative to each
/// directory and to the root, as the command named it, and absolute.
fn names(place: Place<'_>, bases: &[PathBuf], path: &Path, word: Option<&str>) -> Vec<String> {
    let below = bases.iter().map(PathBuf::as_path).chain([place.root]);
    let below = below.filter_map(|base| path.strip_prefix(base).ok());
    let mut names: Vec<String> = below
        .chain([path])
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    names.extend(word.map(|word| word.strip_prefix("./").unwrap_or(word).to_owned()));
    names.sort();
    names.dedup();
    names
}

/// Returns the names that an output gives for lines: `a:3:`, `+++ b/a`, `==> a
/// <==`, `--> a:3:4`, and lines that may be a name.
fn spelled(output: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    for line in output.lines() {
        if found.len() >= WORDS {
            break;
        }
        let line = line.trim_end();
        let patch = ["+++ ", "--- "]
            .iter()
            .find_map(|side| line.strip_prefix(side))
            .map(|name| name.split('\t').next().unwrap_or_default());
        let name = if let Some(name) = patch {
            name.strip_prefix(
                ["a/", "b/", "c/", "i/", "o/", "w/"]
                    .iter()
                    .find(|side| name.starts_with(**side))
                    .copied()
                    .unwrap_or_default(),
            )
        } else if let Some(name) = line.strip_prefix("==> ") {
            name.strip_suffix(" <==")
        } else if let Some((_, name)) = line.split_once("--> ") {
            name.split(':').next()
        } else if let Some((name, rest)) = line.split_once(':') {
            rest.starts_with(|letter: char| letter.is_ascii_digit())
                .then_some(name)
        } else {
            (line.contains(['.', '/']) && !line.contains(' ')).then_some(line)
        };
        let name = name.filter(|name| (1..=WORD).contains(&name.len()));
        found.extend(name.filter(|name| known.insert(name)));
    }
    found
}

/// Returns the files that a command finds by patterns, or by searching
/// directories.
fn looked_up(place: Place<'_>, bases: &[PathBuf], words: &[String], named: bool) -> Vec<PathBuf> {
    let is_pattern = |word: &str| {
        let sign = word.contains(['*', '?', '[']) || (word.contains('{') && word.contains(','));
        sign && !word.contains([' ', '$', '^', '"', '\''])
    };
    let patterns: Vec<&String> = words.iter().filter(|word| is_pattern(word)).collect();
    let is_finder = words.iter().any(|word| FINDERS.contains(&word.as_str()));
    if !is_finder && (patterns.is_empty() || named) {
        return Vec::new();
    }
    let by_name = |word: &&String| !word.starts_with('-') && word.contains('.');
    let wanted: Vec<&String> = match patterns.is_empty() {
        true => words.iter().filter(by_name).collect(),
        false => patterns,
    };
    let Some(set) = glob_set(&wanted) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = Vec::new();
    let Some(base) = bases.first() else {
        return found;
    };
    let root = match base.starts_with(place.root) {
        true => place.root,
        false => base,
    };
    let below = unignored(base, root, false, trust(place.trusted))
        .max_depth(Some(DEPTH))
        .max_filesize(Some(BYTES))
        .build();
    for entry in below.take(ENTRIES).filter_map(Result::ok) {
        if found.len() >= FILES {
            break;
        }
        let path = entry.path();
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let is_wanted = wanted.is_empty()
            || set.is_match(path.file_name().unwrap_or(OsStr::new("")))
            || bases.iter().any(|base| {
                path.strip_prefix(base)
                    .is_ok_and(|below| set.is_match(below))
            });
        if is_file && is_wanted {
            found.push(path.to_owned());
        }
    }
    found
}

fn glob_set(patterns: &[&String]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        if let Ok(glob) = glob {
            set.add(glob);
        }
    }
    set.build().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_in_commands_and_outputs() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("src")).unwrap();
        for name in ["a.txt", "src/b.rs", "my file"] {
            fs::write(root.path().join(name), "x").unwrap();
        }
        let place = Place {
            root: root.path(),
            cwd: root.path(),
            trusted: root.path(),
        };
        let below = |found: Vec<Named>| -> Vec<String> {
            let found = found
                .iter()
                .map(|one| one.path.strip_prefix(root.path()).unwrap());
            found
                .map(|path| path.to_str().unwrap().to_owned())
                .collect()
        };
        let named = |command: &str| below(in_command(place, command));
        assert_eq!(named("cat a.txt|head>/dev/null"), ["a.txt"]);
        assert_eq!(
            named("cd src && cat ./b.rs 'my file'"),
            ["src/b.rs", "my file"]
        );
        assert_eq!(named("python3 -c \"open('a.txt')\""), ["a.txt"]);
        assert_eq!(named("git show HEAD:src/b.rs"), ["src/b.rs"]);
        assert_eq!(named("cat \"$D/src/../a.txt\""), ["a.txt"]);
        assert_eq!(named("cat src none /etc/passwd"), Vec::<String>::new());
        let said = |command: &str, output: &str| below(in_output(place, command, output, &[]));
        assert_eq!(said("rg x", "src/b.rs:1:x\nc.rs:1:x\n"), ["src/b.rs"]);
        assert_eq!(said("git diff", "--- a/a.txt\n+++ b/a.txt\n"), ["a.txt"]);
        assert_eq!(said("cat src/*.rs", "x\n"), ["src/b.rs"]);
        assert_eq!(
            said("find . -name b.rs -exec cat {} +", "x\n"),
            ["src/b.rs"]
        );
        assert_eq!(said("make", "x\n"), Vec::<String>::new());
    }

    /// A repository may have anything in place of an ignore file.
    #[test]
    fn an_ignore_file_that_blocks_or_has_no_end_does_not_count() {
        for is_fifo in [true, false] {
            let root = tempfile::tempdir().unwrap();
            fs::write(root.path().join("b.rs"), "x").unwrap();
            let ignore = root.path().join(".gitignore");
            match is_fifo {
                true => {
                    let made = std::process::Command::new("mkfifo").arg(&ignore).status();
                    assert!(made.unwrap().success());
                }
                false => std::os::unix::fs::symlink("/dev/zero", ignore).unwrap(),
            }
            let (found, is_found) = std::sync::mpsc::channel();
            let at = root.path().to_owned();
            std::thread::spawn(move || {
                let place = Place {
                    root: &at,
                    cwd: &at,
                    trusted: &at,
                };
                let command = "find . -name b.rs -exec cat {} +";
                let _too_late = found.send(in_output(place, command, "x\n", &[]).len());
            });
            let found = is_found.recv_timeout(std::time::Duration::from_secs(10));
            assert_eq!(found, Ok(1), "{is_fifo}");
        }
    }

    #[test]
    fn commands_that_make_other_lines_of_lines() {
        for command in [
            "sort a",
            "cat a | tr x y",
            "sed 's/a/b/' x",
            "sed -e s,a,b,g x",
        ] {
            assert_eq!(shortest(command), 3, "{command}");
        }
        for command in ["cat a", "sed -n '1,5p' a", "cat src/a/b.rs"] {
            assert_eq!(shortest(command), 1, "{command}");
        }
    }
}
