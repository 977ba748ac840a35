//! A simulated file system, as far as the engine can distinguish it from a real
//! one: entries below one root, files whose inode numbers are used again, hard
//! links, symlinks at the end of a path and on the way, and one directory that
//! may be mounted in a second place.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::{Text, bytes};
use touchmark_engine::{Content, Found, Object, ReadOutcome, Stamp};
use touchmark_proto::{Hash, Millis, RelPath};

/// A path by which a file is reached.
pub type Name = &'static str;

/// All paths. `la` and `lb` may be symlinks to files, `ld` is a symlink to a
/// directory, and `v` shows a directory that is mounted there.
pub const NAMES: &[Name] = &[
    "a", "b", "c", "d/a", "d/b", "k/a", "k/b", "la", "lb", "ld/a", "ld/b", "v/a", "v/b",
];

/// How far in the past a stat's times have to be to prove a content (FILE-5).
/// In milliseconds.
const VOUCHES: Millis = 60_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    File(usize),
    Link(String),
    Directory,
}

#[derive(Clone)]
pub struct Node {
    pub text: Text,
    inode: u64,
    modified: Millis,
    changed: Millis,
    pub links: u32,
}

/// An event that the system reports for one step of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Written(usize),
    Closed(usize),
    Appeared(String),
    Removed(String),
    Moved { from: String, to: String },
    Exchanged(String, String),
    Mounted(String),
}

/// Where a path resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// The real name, also if there is no file.
    pub place: String,
    /// Every entry on the way, including the last one.
    pub way: BTreeSet<String>,
    /// Whether symlinks or a mount are on the way.
    pub by_link: bool,
    pub node: Option<usize>,
}

pub struct Disk {
    entries: BTreeMap<String, Entry>,
    pub nodes: Vec<Node>,
    inodes: BTreeSet<u64>,
    /// The directory that is mounted at `v`.
    mounted: Option<String>,
    tick: Millis,
    pub now: Millis,
    pub events: Vec<Event>,
}

fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |cut| &path[..cut])
}

fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    path.strip_prefix(directory)?.strip_prefix('/')
}

impl Disk {
    pub fn new(tick: Millis, now: Millis, files: &[(Name, Text)]) -> Self {
        let mut disk = Self {
            // `k` exists only with a file in it, so that `d` may be renamed to
            // it.
            entries: ["d", "k", "v"]
                .iter()
                .filter(|name| {
                    **name != "k" || files.iter().any(|(file, _)| file.starts_with("k/"))
                })
                .map(|name| ((*name).to_owned(), Entry::Directory))
                .collect(),
            nodes: Vec::new(),
            inodes: BTreeSet::new(),
            mounted: None,
            tick,
            now: now - 100_000,
            events: Vec::new(),
        };
        for (name, text) in files {
            let node = disk.create(text);
            disk.put(name, Entry::File(node));
        }
        disk.now = now;
        disk.events.clear();
        disk
    }

    /// Resolves a path to its end.
    pub fn lead(&self, name: &str) -> Led {
        let mut way = BTreeSet::new();
        let mut by_link = false;
        let mut here = String::new();
        let mut ahead: Vec<String> = name.rsplit('/').map(str::to_owned).collect();
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            if !here.is_empty() {
                here.push('/');
            }
            here.push_str(&part);
            way.insert(here.clone());
            match self.entries.get(&here) {
                Some(Entry::Link(target)) if links < 8 => {
                    links += 1;
                    by_link = true;
                    ahead.extend(target.rsplit('/').map(str::to_owned));
                    here.clear();
                }
                _ if here == "v" && self.mounted.is_some() => {
                    by_link = true;
                    here = self.mounted.clone().unwrap_or_default();
                    way.insert(here.clone());
                }
                _ => {}
            }
        }
        let node = match self.entries.get(&here) {
            Some(Entry::File(node)) => Some(*node),
            _ => None,
        };
        Led {
            place: here,
            way,
            by_link,
            node,
        }
    }

    /// Returns the place of the last entry of a path: symlinks on the way are
    /// followed, one at its end is not.
    fn entry_of(&self, name: &str) -> String {
        match name.rfind('/') {
            None => name.to_owned(),
            Some(cut) => format!("{}{}", self.lead(&name[..cut]).place, &name[cut..]),
        }
    }

    fn has_directory(&self, path: &str) -> bool {
        path.is_empty() || self.entries.get(path) == Some(&Entry::Directory)
    }

    pub fn text(&self, name: &str) -> Option<&Text> {
        Some(&self.nodes[self.lead(name).node?].text)
    }

    pub fn is_directory(&self, path: &str) -> bool {
        self.entries.get(path) == Some(&Entry::Directory)
    }

    pub fn is_link(&self, path: &str) -> bool {
        matches!(self.entries.get(&self.entry_of(path)), Some(Entry::Link(_)))
    }

    fn create(&mut self, text: &Text) -> usize {
        let inode = (1..).find(|n| !self.inodes.contains(n)).unwrap_or(0);
        self.inodes.insert(inode);
        self.nodes.push(Node {
            text: text.clone(),
            inode,
            modified: self.stamp(),
            changed: self.stamp(),
            links: 0,
        });
        self.nodes.len() - 1
    }

    fn stamp(&self) -> Millis {
        self.now / self.tick * self.tick
    }

    /// Removes an entry without an event.
    fn drop_entry(&mut self, entry: &str) -> Option<Entry> {
        let was = self.entries.remove(entry)?;
        if let Entry::File(node) = was {
            self.nodes[node].links -= 1;
            self.nodes[node].changed = self.stamp();
            if self.nodes[node].links == 0 {
                self.inodes.remove(&self.nodes[node].inode);
            }
        }
        Some(was)
    }

    /// Puts an entry in place of the previous one without an event.
    fn put(&mut self, path: &str, entry: Entry) {
        self.drop_entry(path);
        if let Entry::File(node) = entry {
            self.nodes[node].links += 1;
            self.nodes[node].changed = self.stamp();
            self.inodes.insert(self.nodes[node].inode);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    pub fn set(&mut self, node: usize, text: &Text) {
        self.nodes[node].text = text.clone();
        self.nodes[node].modified = self.stamp();
        self.nodes[node].changed = self.stamp();
        self.events.push(Event::Written(node));
    }

    pub fn close(&mut self, node: usize) {
        self.events.push(Event::Closed(node));
    }

    /// Writes a file in place, by any of its names. Creates it if it does not
    /// exist.
    pub fn write(&mut self, name: &str, text: &Text) -> bool {
        let led = self.lead(name);
        if let Some(node) = led.node {
            self.set(node, &Text::from([]));
            self.set(node, text);
            self.close(node);
            return true;
        }
        if self.entries.contains_key(&led.place) || !self.has_directory(parent(&led.place)) {
            return false;
        }
        let node = self.create(&Text::from([]));
        self.put(&led.place, Entry::File(node));
        self.events.push(Event::Appeared(led.place));
        self.set(node, text);
        self.close(node);
        true
    }

    /// Renames a new file onto the name.
    pub fn replace(&mut self, name: &str, text: &Text) -> bool {
        let node = self.create(text);
        self.arrive(name, Entry::File(node))
    }

    fn arrive(&mut self, name: &str, entry: Entry) -> bool {
        let path = self.entry_of(name);
        if !self.has_directory(parent(&path)) || self.is_directory(&path) {
            return false;
        }
        self.put(&path, entry);
        let from = format!("{path}.tmp");
        self.events.push(Event::Moved { from, to: path });
        true
    }

    pub fn remove(&mut self, name: &str) -> bool {
        let path = self.entry_of(name);
        if self.is_directory(&path) || self.drop_entry(&path).is_none() {
            return false;
        }
        self.events.push(Event::Removed(path));
        true
    }

    /// Renames a file or a symlink. Returns whether something was renamed.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        let (from, to) = (self.entry_of(from), self.entry_of(to));
        let Some(Entry::File(node)) = self.entries.get(&from).cloned() else {
            return false;
        };
        let same = self.entries.get(&to) == Some(&Entry::File(node));
        if same || !self.has_directory(parent(&to)) || self.is_directory(&to) {
            return false;
        }
        self.put(&to, Entry::File(node));
        self.drop_entry(&from);
        self.events.push(Event::Moved { from, to });
        true
    }

    pub fn exchange(&mut self, one: &str, other: &str) -> bool {
        let (one, other) = (self.entry_of(one), self.entry_of(other));
        let (Some(first), Some(second)) = (self.entries.get(&one), self.entries.get(&other)) else {
            return false;
        };
        let (first, second) = (first.clone(), second.clone());
        let directories = (first == Entry::Directory, second == Entry::Directory);
        if one == other || first == second && directories != (true, true) {
            return false;
        }
        match directories {
            (true, true) => self.exchange_directories(&one, &other),
            (false, false) => {
                self.entries.insert(one.clone(), second);
                self.entries.insert(other.clone(), first);
            }
            _ => return false,
        }
        self.events.push(Event::Exchanged(one, other));
        true
    }

    fn exchange_directories(&mut self, one: &str, other: &str) {
        let there = std::mem::take(&mut self.entries);
        for (path, entry) in there {
            let moved = below(&path, one)
                .map(|rest| format!("{other}/{rest}"))
                .or_else(|| below(&path, other).map(|rest| format!("{one}/{rest}")));
            self.entries.insert(moved.unwrap_or(path), entry);
        }
        if let Some(mounted) = &mut self.mounted {
            if mounted == one {
                *mounted = other.to_owned();
            } else if mounted == other {
                *mounted = one.to_owned();
            }
        }
    }

    pub fn rename_directory(&mut self, from: &str, to: &str) -> bool {
        if !self.is_directory(from) || self.entries.contains_key(to) {
            return false;
        }
        let there = std::mem::take(&mut self.entries);
        for (path, entry) in there {
            let moved = below(&path, from).map(|rest| format!("{to}/{rest}"));
            let path = if path == from { to.to_owned() } else { path };
            self.entries.insert(moved.unwrap_or(path), entry);
        }
        if self.mounted.as_deref() == Some(from) {
            self.mounted = Some(to.to_owned());
        }
        self.events.push(Event::Moved {
            from: from.to_owned(),
            to: to.to_owned(),
        });
        true
    }

    pub fn make_directory(&mut self, path: &str) -> bool {
        if self.entries.contains_key(path) {
            return false;
        }
        self.entries.insert(path.to_owned(), Entry::Directory);
        self.events.push(Event::Appeared(path.to_owned()));
        true
    }

    /// Replaces a directory by another one with other files, and removes the
    /// old one.
    pub fn replace_directory(&mut self, path: &str, files: &[(&str, Text)]) -> bool {
        if !self.is_directory(path) || self.mounted.as_deref() == Some(path) {
            return false;
        }
        let old: Vec<String> = self
            .entries
            .keys()
            .filter(|name| below(name, path).is_some())
            .cloned()
            .collect();
        for name in old {
            self.drop_entry(&name);
            self.events.push(Event::Removed(name));
        }
        self.entries.remove(path);
        self.events.push(Event::Removed(path.to_owned()));
        self.entries.insert(path.to_owned(), Entry::Directory);
        for (name, text) in files {
            let node = self.create(text);
            self.put(&format!("{path}/{name}"), Entry::File(node));
        }
        self.events.push(Event::Moved {
            from: format!("{path}.tmp"),
            to: path.to_owned(),
        });
        true
    }

    /// Makes a second name for a file, in place of the previous entry.
    pub fn hard_link(&mut self, from: &str, to: &str) -> bool {
        let from = self.entry_of(from);
        let Some(Entry::File(node)) = self.entries.get(&from).cloned() else {
            return false;
        };
        if self.entries.get(&self.entry_of(to)) == Some(&Entry::File(node)) {
            return false;
        }
        self.arrive(to, Entry::File(node))
    }

    pub fn symlink(&mut self, name: &str, target: &str, atomic: bool) -> bool {
        let entry = Entry::Link(target.to_owned());
        if self.is_directory(name) {
            return false;
        }
        if atomic {
            return self.arrive(name, entry);
        }
        self.remove(name);
        self.put(name, entry);
        self.events.push(Event::Appeared(name.to_owned()));
        true
    }

    pub fn mount(&mut self, from: Option<&str>) -> bool {
        if from.is_some_and(|from| !self.is_directory(from))
            || !self.is_directory("v")
            || from.is_some() == self.mounted.is_some()
        {
            return false;
        }
        self.mounted = from.map(str::to_owned);
        self.events.push(Event::Mounted("v".to_owned()));
        true
    }

    fn stat(&self, node: usize) -> Stamp {
        let node = &self.nodes[node];
        let nanos = |time: Millis| i64::try_from(time * 1_000_000).unwrap_or(i64::MAX);
        Stamp {
            inode: node.inode,
            size: bytes(&node.text).len() as u64,
            modified: nanos(node.modified),
            changed: nanos(node.changed),
            device: 1,
            mount: 0,
        }
    }

    /// Returns whether a comparison finds a path unchanged.
    pub fn is_as(&self, path: &RelPath, stamp: Stamp) -> bool {
        let led = self.lead(&path.to_string_lossy());
        led.node.is_some_and(|node| {
            !led.by_link && self.nodes[node].links == 1 && self.stat(node) == stamp
        })
    }

    /// Returns what a read finds now.
    pub fn read(&self, path: &RelPath, prefixes: &[u64], with_bytes: bool) -> ReadOutcome {
        let led = self.lead(&path.to_string_lossy());
        let real = led
            .by_link
            .then(|| RelPath::new(led.place.as_bytes()).ok())
            .flatten();
        let Some(node) = led.node else {
            let found = if self.is_directory(&led.place) {
                let file_type = "directory";
                Found::NotAFile { file_type }
            } else {
                Found::Absent
            };
            return ReadOutcome {
                real,
                link: None,
                ..found.into()
            };
        };
        let stamp = self.stat(node);
        let node = &self.nodes[node];
        let all = bytes(&node.text);
        ReadOutcome {
            open_for_writing: false,
            found: Found::File(Content {
                hash: Hash::of(&all),
                size: all.len() as u64,
                lines: node.text.len() as u32,
                mtime_ms: node.modified,
                mode: None,
                owner: None,
                stamp,
                settled: node.modified.max(node.changed) + VOUCHES < self.now,
            }),
            prefixes: prefixes
                .iter()
                .filter(|length| **length <= all.len() as u64)
                .map(|length| (*length, Hash::of(&all[..*length as usize])))
                .collect(),
            bytes: with_bytes.then(|| all.into()),
            secret: false,
            real,
            link: None,
            object: (node.links > 1).then_some(Object {
                device: stamp.device,
                inode: stamp.inode,
            }),
            took: 0,
        }
    }
}
