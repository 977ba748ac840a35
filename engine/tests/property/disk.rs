//! A simulated file system, as far as the engine can distinguish it from a real
//! one: names, bytes, inode numbers that are used again immediately (ATTR-15),
//! and stamps with a coarse clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use touchmark_engine::{Content, Found, ReadOutcome, Stamp};
use touchmark_proto::{Hash, Millis};

use crate::content::{hash, lines};

/// What a name resolves to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Absent,
    File(Hash),
    Unreadable,
}

impl At {
    pub fn hash(self) -> Option<Hash> {
        match self {
            Self::File(hash) => Some(hash),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

#[derive(Clone)]
struct Node {
    bytes: Arc<[u8]>,
    inode: u64,
    modified: i64,
    changed: i64,
    readable: bool,
    links: u32,
}

/// One change of a path.
#[derive(Clone, Copy)]
struct Past {
    moment: u64,
    at: At,
    writer: Option<usize>,
}

pub struct Disk {
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
    inodes: BTreeSet<u64>,
    tick: Millis,
    /// Increases with every operation. A moment is between two operations.
    pub moment: u64,
    /// The writer whose operation is in progress, if it keeps its file open.
    pub writer: Option<usize>,
    past: BTreeMap<String, Vec<Past>>,
}

impl Disk {
    pub fn new(tick: Millis) -> Self {
        Self {
            nodes: Vec::new(),
            names: BTreeMap::new(),
            inodes: BTreeSet::new(),
            tick,
            moment: 0,
            writer: None,
            past: BTreeMap::new(),
        }
    }

    fn stamp(&self, now: Millis) -> i64 {
        i64::try_from(now / self.tick * self.tick * 1_000_000).unwrap_or(i64::MAX)
    }

    /// Returns the current stat of a file, or `None` if it does not exist.
    pub fn stat(&self, path: &str) -> Option<Stamp> {
        let node = &self.nodes[*self.names.get(path)?];
        Some(Stamp {
            inode: node.inode,
            size: node.bytes.len() as u64,
            modified: node.modified,
            changed: node.changed,
            ..Stamp::default()
        })
    }

    pub fn at(&self, path: &str) -> At {
        match self.names.get(path).map(|node| &self.nodes[*node]) {
            None => At::Absent,
            Some(node) if !node.readable => At::Unreadable,
            Some(node) => At::File(hash(&node.bytes)),
        }
    }

    pub fn bytes(&self, path: &str) -> Option<Arc<[u8]>> {
        let node = &self.nodes[*self.names.get(path)?];
        node.readable.then(|| node.bytes.clone())
    }

    pub fn exists(&self, path: &str) -> bool {
        self.names.contains_key(path)
    }

    pub fn below(&self, directory: &str) -> Vec<String> {
        let prefix = format!("{directory}/");
        self.names
            .keys()
            .filter(|name| name.starts_with(&prefix))
            .cloned()
            .collect()
    }

    fn note(&mut self, path: &str) {
        let at = self.at(path);
        let past = self.past.entry(path.into()).or_default();
        if past.last().map_or(At::Absent, |last| last.at) != at {
            past.push(Past {
                moment: self.moment,
                at,
                writer: self.writer,
            });
        }
    }

    /// Returns everything that the path resolved to between two moments, both
    /// included.
    pub fn between(&self, path: &str, from: u64, to: u64) -> Vec<At> {
        let none = Vec::new();
        let past = self.past.get(path).unwrap_or(&none);
        let first = past.iter().rev().find(|change| change.moment <= from);
        let mut all = vec![first.map_or(At::Absent, |change| change.at)];
        all.extend(
            past.iter()
                .filter(|change| change.moment > from && change.moment <= to)
                .map(|change| change.at),
        );
        all
    }

    /// Returns the writer that made all changes since a moment and also the
    /// last one before it, or `None`.
    pub fn one_save(&self, path: &str, since: u64) -> Option<usize> {
        let past = self.past.get(path)?;
        let stood = past.iter().rposition(|change| change.moment <= since)?;
        let writer = past[stood].writer?;
        let same = past[stood..]
            .iter()
            .all(|change| change.writer == Some(writer));
        same.then_some(writer)
    }

    /// Returns the moment of the path's last change.
    pub fn changed_at(&self, path: &str) -> u64 {
        self.past
            .get(path)
            .and_then(|past| past.last())
            .map_or(0, |change| change.moment)
    }

    /// Creates a file without a name. Returns its index.
    pub fn create(&mut self, bytes: &[u8], now: Millis) -> usize {
        let inode = (1..).find(|n| !self.inodes.contains(n)).unwrap_or(0);
        self.inodes.insert(inode);
        let stamp = self.stamp(now);
        self.nodes.push(Node {
            bytes: bytes.into(),
            inode,
            modified: stamp,
            changed: stamp,
            readable: true,
            links: 0,
        });
        self.nodes.len() - 1
    }

    pub fn node(&self, path: &str) -> Option<usize> {
        self.names.get(path).copied()
    }

    pub fn name_of(&self, node: usize) -> Option<String> {
        let found = self.names.iter().find(|(_, n)| **n == node);
        found.map(|(name, _)| name.clone())
    }

    /// Puts a file under a name, in place of the previous one.
    pub fn link(&mut self, path: &str, node: usize) {
        self.drop_name(path);
        self.nodes[node].links += 1;
        self.names.insert(path.into(), node);
        self.note(path);
    }

    fn drop_name(&mut self, path: &str) -> Option<usize> {
        let node = self.names.remove(path)?;
        self.nodes[node].links -= 1;
        if self.nodes[node].links == 0 {
            self.inodes.remove(&self.nodes[node].inode);
        }
        Some(node)
    }

    pub fn unlink(&mut self, path: &str) -> Option<usize> {
        let node = self.drop_name(path)?;
        self.note(path);
        Some(node)
    }

    pub fn set(&mut self, node: usize, bytes: &[u8], now: Millis) {
        self.nodes[node].bytes = bytes.into();
        let stamp = self.stamp(now);
        self.nodes[node].modified = stamp;
        self.nodes[node].changed = stamp;
        if let Some(name) = self.name_of(node) {
            self.note(&name);
        }
    }

    pub fn append(&mut self, node: usize, more: &[u8], now: Millis) {
        let bytes = [&self.nodes[node].bytes, more].concat();
        self.set(node, &bytes, now);
    }

    pub fn touch(&mut self, path: &str, now: Millis, flip_readable: bool) {
        let stamp = self.stamp(now);
        if let Some(node) = self.names.get(path).copied() {
            self.nodes[node].changed = stamp;
            if flip_readable {
                self.nodes[node].readable = !self.nodes[node].readable;
                self.note(path);
            } else {
                self.nodes[node].modified = stamp;
            }
        }
    }

    /// Returns what a read finds now.
    pub fn read(&self, path: &str, prefixes: &[u64], with_bytes: bool, now: Millis) -> ReadOutcome {
        let Some(node) = self.names.get(path).map(|node| &self.nodes[*node]) else {
            return Found::Absent.into();
        };
        if !node.readable {
            return Found::Unreadable {
                cause: "permission denied".into(),
            }
            .into();
        }
        let size = node.bytes.len() as u64;
        ReadOutcome {
            open_for_writing: false,
            found: Found::File(Content {
                hash: hash(&node.bytes),
                size,
                lines: lines(&node.bytes),
                mtime_ms: (node.modified / 1_000_000) as Millis,
                mode: None,
                owner: None,
                stamp: self.stat(path).unwrap_or_default(),
                settled: node.modified.max(node.changed) < self.stamp(now),
            }),
            prefixes: prefixes
                .iter()
                .filter(|length| **length <= size)
                .map(|length| (*length, hash(&node.bytes[..*length as usize])))
                .collect(),
            bytes: with_bytes.then(|| node.bytes.clone()),
            secret: false,
            real: None,
            link: None,
            object: None,
            took: 0,
        }
    }
}
