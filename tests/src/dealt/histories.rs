//! Successive contents of files, read from the repository that contains this
//! test. Without a repository, or with a shallow one, the files of the tree are
//! changed at random instead, and [`Histories::made_up`] reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::dice::Dice;

/// A file's lines in successive versions; `None` for no file.
pub type History = Vec<Option<Vec<String>>>;

/// The largest file that is used, in bytes. Larger ones only take time.
const LARGEST: usize = 16 << 10;

/// The maximum number of versions in a history.
const LONGEST: usize = 6;

/// The number of histories to collect.
const WANTED: usize = 600;

/// Later commits are not used, so that each commit is tested with the same
/// histories.
const BEFORE: &str = "--before=2026-11-25T00:00:00Z";

/// Histories and their origin.
pub struct Histories {
    /// The histories, each of one file with at least two versions.
    pub all: Vec<History>,
    /// The message that says why the histories are not from commits; `None` if
    /// they are.
    pub made_up: Option<String>,
}

/// Returns the histories of the repository that contains `inside`.
pub fn of(inside: &Path) -> Histories {
    let all = from_commits(inside).unwrap_or_default();
    if all.len() >= 100 {
        return Histories { all, made_up: None };
    }
    let why = format!(
        "histories of real commits: {} has {} of them (no repository, no git, or a shallow clone); \
         the tree's files are changed by chance instead",
        inside.display(),
        all.len()
    );
    Histories {
        all: from_tree(inside),
        made_up: Some(why),
    }
}

fn git(inside: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(inside);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    git.stderr(Stdio::null());
    git
}

/// Successive git objects of a file; `None` for no file.
type Chain = Vec<Option<String>>;

fn from_commits(inside: &Path) -> Option<Vec<History>> {
    let log = git(inside)
        .args(["log", "--no-merges", "--no-renames", "--reverse", "--raw"])
        .args(["--no-abbrev", "--format=", "-n", "3000", BEFORE])
        .output()
        .ok()?;
    // Each row is `:OLDMODE NEWMODE OLDOBJECT NEWOBJECT STATUS\tPATH`.
    let mut open: BTreeMap<String, Chain> = BTreeMap::new();
    let mut chains: Vec<Chain> = Vec::new();
    for row in String::from_utf8_lossy(&log.stdout).lines() {
        let Some((head, path)) = row.split_once('\t') else {
            continue;
        };
        let words: Vec<&str> = head.split(' ').collect();
        let [_, _, old, new, _] = words[..] else {
            continue;
        };
        let object = |name: &str| (name.bytes().any(|byte| byte != b'0')).then(|| name.to_owned());
        let (old, new) = (object(old), object(new));
        let chain = open.entry(path.to_owned()).or_default();
        // The log interleaves branches. Only rows whose old object is the last
        // new one continue a history.
        if chain.last() != Some(&old) || chain.len() >= LONGEST {
            chains.push(std::mem::replace(chain, vec![old]));
        }
        chain.push(new);
    }
    chains.extend(open.into_values());
    chains.retain(|chain| chain.len() >= 3);
    Dice::new(15, "histories").shuffle(&mut chains);
    chains.truncate(2 * WANTED);
    let texts = objects(inside, chains.iter().flatten().flatten().cloned().collect())?;
    let history = |chain: &Chain| -> Option<History> {
        let version = |object: &Option<String>| match object {
            Some(object) => texts.get(object).map(|lines| Some(lines.clone())),
            None => Some(None),
        };
        chain.iter().map(version).collect()
    };
    let mut all: Vec<History> = chains.iter().filter_map(history).collect();
    all.truncate(WANTED);
    Some(all)
}

/// Returns the lines of the objects that are text and small.
fn objects(inside: &Path, names: BTreeSet<String>) -> Option<BTreeMap<String, Vec<String>>> {
    let mut cat = git(inside)
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let (mut ask, told) = (cat.stdin.take()?, cat.stdout.take()?);
    let asked: String = names.iter().map(|name| format!("{name}\n")).collect();
    let asking = std::thread::spawn(move || ask.write_all(asked.as_bytes()));
    let mut told = BufReader::new(told);
    let mut texts = BTreeMap::new();
    for name in names {
        let mut head = String::new();
        told.read_line(&mut head).ok()?;
        let Some(size) = head.trim_end().rsplit(' ').next()?.parse::<usize>().ok() else {
            continue; // missing
        };
        let mut bytes = vec![0; size + 1];
        told.read_exact(&mut bytes).ok()?;
        bytes.truncate(size);
        if size <= LARGEST
            && let Some(lines) = lines(bytes)
        {
            texts.insert(name, lines);
        }
    }
    asking.join().ok()?.ok()?;
    cat.wait().ok()?;
    Some(texts)
}

fn lines(bytes: Vec<u8>) -> Option<Vec<String>> {
    let text = String::from_utf8(bytes).ok()?;
    let is_text = !text.contains(['\0', '\r']);
    is_text.then(|| text.lines().map(str::to_owned).collect())
}

/// Returns histories of the tree's files in which lines are removed, and lines
/// from other places are inserted.
fn from_tree(inside: &Path) -> Vec<History> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut directories = vec![inside.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if path.is_dir() && !matches!(&*name, ".git" | "target" | "node_modules") {
                directories.push(path);
            } else if name.ends_with(".rs") || name.ends_with(".md") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut dice = Dice::new(15, "tree");
    let texts: Vec<Vec<String>> = files
        .iter()
        .filter_map(|file| std::fs::read(file).ok())
        .filter(|bytes| bytes.len() <= LARGEST && !bytes.is_empty())
        .filter_map(lines)
        .collect();
    assert!(!texts.is_empty(), "no files below {}", inside.display());
    let history = |_| {
        let mut now = dice.pick(&texts).clone();
        let mut history = vec![Some(now.clone())];
        for _ in 0..2 + dice.below(LONGEST as u64 - 2) {
            for _ in 0..1 + dice.below(4) {
                let at = dice.index(now.len() + 1);
                let until = (at + dice.index(6)).min(now.len());
                let other = dice.pick(&texts);
                let from = dice.index(other.len());
                let to = (from + dice.index(8)).min(other.len());
                now.splice(at..until, other[from..to].iter().cloned());
            }
            history.push(Some(now.clone()));
        }
        history
    };
    (0..WANTED).map(history).collect()
}
