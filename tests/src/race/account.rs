//! Combines the logs with the daemon's answers and the disk's contents at the
//! end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::FILES;
use super::log::{Act, now, read_all};
use crate::{Client, World, author, sha256, text, user};

/// One version from the history, with its corrections applied.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its clock.
    pub clock: String,
    /// The content; `None` for no file.
    pub hash: Option<String>,
    /// The author, as [`author`] writes it.
    pub author: String,
    /// The evidence for the author.
    pub evidence: String,
    /// When the daemon recorded it, in nanoseconds since 1970.
    pub time: u64,
}

/// Everything that the oracle has on record of a round.
pub struct Account {
    /// All acts, sorted by their beginning.
    pub acts: Vec<Act>,
    /// Each file's versions, oldest first, without the baseline.
    pub history: BTreeMap<&'static str, Vec<Version>>,
    /// Each file's content at the end; `None` for no file.
    pub disk: BTreeMap<&'static str, Option<String>>,
    /// The hashes of all recovered contents.
    pub kept: HashSet<String>,
    /// The sessions.
    pub sessions: &'static [&'static str],
    /// For each line that a user added or a `file/edit` inserted: the hashes of
    /// the known contents with that line.
    lines: HashMap<String, HashSet<String>>,
    /// The contents that each session can have seen of each file (SEEN-1).
    seen: HashMap<(String, String), HashSet<String>>,
    /// The times when no daemon ran.
    pub gaps: Vec<(u64, u64)>,
    /// When the round was over.
    pub end: u64,
}

impl Account {
    /// Collects the account after every player has finished.
    pub fn take(
        world: &World,
        client: &mut Client,
        directory: &Path,
        sessions: &'static [&'static str],
    ) -> Self {
        // Marks of killed agents must lapse first. Until then, what they cover
        // is provisional.
        while client.ok("status", json!({}))["openEdits"] != 0 {
            user::pause(10);
        }
        client.ok("sync", json!({}));
        let end = now();
        let mut contents = HashMap::new();
        let mut disk = BTreeMap::new();
        for path in FILES {
            let bytes = fs::read(world.path(path)).ok();
            disk.insert(*path, bytes.as_ref().map(sha256));
            contents.extend(bytes.map(|bytes| (sha256(&bytes), bytes)));
        }
        let mut kept = HashSet::new();
        let items = client.ok("recovery/list", json!({}));
        let files = items["items"].as_array().expect("items").iter();
        let mut files: Vec<_> = files.map(|item| text(item, "file").into()).collect();
        for path in FILES {
            let place = world.path(path);
            let beside = fs::read_dir(place.parent().expect("a directory")).expect("a directory");
            for entry in beside.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                assert!(!name.starts_with(".touchmark-"), "{name} was left behind");
                if name.contains(".recovered-") {
                    files.push(entry.path());
                }
            }
        }
        for file in files {
            let bytes = fs::read(file).expect("kept bytes");
            let hash = sha256(&bytes);
            kept.insert(hash.clone());
            contents.insert(hash, bytes);
        }
        for entry in fs::read_dir(directory.join("contents")).expect("contents") {
            let path = entry.expect("a content").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            if name.len() == 64 {
                contents.insert(name.into_owned(), fs::read(&path).expect("a content"));
            }
        }
        let acts = read_all(directory);
        let gaps = acts
            .iter()
            .filter(|act| act.act == "down")
            .map(|act| (act.t0, act.t1.expect("the daemon was started again")))
            .collect();
        let history = FILES
            .iter()
            .map(|path| (*path, history(client, path)))
            .collect();
        Self {
            lines: lines(&acts, &contents),
            seen: seen(&acts),
            acts,
            history,
            disk,
            kept,
            sessions,
            gaps,
            end,
        }
    }

    /// Returns the acts on a file.
    pub fn of<'a>(&'a self, path: &'a str) -> impl DoubleEndedIterator<Item = &'a Act> {
        self.acts.iter().filter(move |act| act.path() == path)
    }

    /// Returns the known contents with a line.
    pub fn with_line(&self, line: &str) -> Option<&HashSet<String>> {
        self.lines.get(line)
    }

    /// Returns whether a session can have seen a content.
    pub fn may_have_seen(&self, session: &str, path: &str, hash: &str) -> bool {
        let of = (session.to_owned(), path.to_owned());
        self.seen.get(&of).is_some_and(|seen| seen.contains(hash))
    }

    /// Returns the hash of the content that a save made: the intended one, or,
    /// where a line was added to the previous content, the one that was found
    /// afterwards.
    pub fn made<'a>(&'a self, put: &'a Act) -> Option<&'a str> {
        if let Some(hash) = put.text("hash") {
            return Some(hash);
        }
        let line = put.text("line")?;
        let found = self
            .acts
            .iter()
            .find(|act| act.act == "found" && act.text("line") == Some(line) && act.t1.is_some())?;
        let hash = found.text("hash")?;
        // An agent may have edited the content before it was found.
        let agents = self.acts.iter().any(|act| {
            act.act == "guarded"
                && ["to", "hash", "written"]
                    .iter()
                    .any(|field| act.text(field) == Some(hash))
        });
        (!agents).then_some(hash)
    }

    /// Returns whether the daemon was down at some time between the two times.
    pub fn gap_between(&self, from: u64, to: u64) -> bool {
        self.gaps
            .iter()
            .any(|(down, up)| *up >= from && *down <= to)
    }

    /// Returns whether the history has a version of a file with this content.
    pub fn recorded(&self, path: &str, hash: &str) -> bool {
        self.history[path]
            .iter()
            .any(|version| version.hash.as_deref() == Some(hash))
    }

    /// Returns a one-line summary of the round.
    pub fn report(&self) -> String {
        let count = |act: &str| self.acts.iter().filter(|a| a.act == act).count();
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for act in self.acts.iter().filter(|act| act.act == "guarded") {
            let outcome = act.text("outcome").or(act.text("error"));
            *outcomes
                .entry(outcome.unwrap_or("unanswered").to_owned())
                .or_default() += 1;
        }
        let versions: usize = self.history.values().map(Vec::len).sum();
        format!(
            "{} saves, {} own writes, {} reads, guarded {outcomes:?}, {} kept, \
             {} reports, {} deaths of the daemon, {versions} versions",
            count("put"),
            count("own"),
            count("read") + count("readText") + count("status"),
            self.kept.len(),
            count("report"),
            self.gaps.len(),
        )
    }
}

/// Returns, for each inserted line, the contents that have it.
fn lines(acts: &[Act], contents: &HashMap<String, Vec<u8>>) -> HashMap<String, HashSet<String>> {
    let wanted: HashSet<&str> = acts.iter().filter_map(|act| act.text("line")).collect();
    let mut lines: HashMap<String, HashSet<String>> = HashMap::new();
    for (hash, bytes) in contents {
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(line) = std::str::from_utf8(line)
                && wanted.contains(line)
            {
                let found = lines.entry(line.to_owned()).or_default();
                found.insert(hash.clone());
            }
        }
    }
    lines
}

/// The longest time between the kill of a reader and the write of the content
/// that the daemon read for it. In nanoseconds.
const AROUND: u64 = 5_000_000_000;

/// Returns the contents that each session was told of, has written, or has
/// declared.
fn seen(acts: &[Act]) -> HashMap<(String, String), HashSet<String>> {
    let mut seen: HashMap<(String, String), HashSet<String>> = HashMap::new();
    for act in acts {
        let told = ["tell", "readText", "guarded", "own", "declare", "finish"];
        if !told.contains(&act.act.as_str()) {
            continue;
        }
        let seen = seen
            .entry((act.who.clone(), act.path().to_owned()))
            .or_default();
        let fields = ["hash", "to", "written", "expect", "claim"];
        seen.extend(
            fields
                .iter()
                .filter_map(|field| act.text(field))
                .map(str::to_owned),
        );
        if act.act == "readText" && act.t1.is_none() {
            // The session was killed before it could log the answer.
            let near = acts
                .iter()
                .filter(|other| other.path() == act.path() && other.t0.abs_diff(act.t0) < AROUND);
            seen.extend(
                near.filter_map(|other| other.text("hash"))
                    .map(str::to_owned),
            );
        }
    }
    seen
}

fn history(client: &mut Client, path: &str) -> Vec<Version> {
    let mut rows: Vec<Value> = Vec::new();
    loop {
        let before = rows.last().map(|row| row["clock"].clone());
        let answer = client.ok(
            "file/history",
            json!({"path": path, "limit": 1_000, "before": before}),
        );
        let page = answer["versions"].as_array().expect("versions");
        if page.is_empty() {
            break;
        }
        rows.extend(page.iter().cloned());
    }
    // The last row is the baseline.
    rows.pop();
    rows.reverse();
    let mut versions: Vec<Version> = Vec::new();
    // The version that each row is, or corrects. A correction can be corrected.
    let mut of: HashMap<String, usize> = HashMap::new();
    for row in &rows {
        let version = Version {
            clock: text(row, "clock"),
            hash: row["hash"].as_str().map(str::to_owned),
            author: author(&row["author"]),
            evidence: text(row, "evidence"),
            time: row["time"].as_u64().expect("a time") * 1_000_000,
        };
        let corrects = row["amends"].as_str().and_then(|clock| of.get(clock));
        let index = match corrects.copied() {
            Some(index) => {
                versions[index].author = version.author;
                versions[index].evidence = version.evidence;
                index
            }
            None => {
                versions.push(version);
                versions.len() - 1
            }
        };
        of.insert(text(row, "clock"), index);
    }
    versions
}
