//! The disk of the stories, and the steps about names of files (FILE-1).

use std::collections::BTreeMap;

use touchmark_engine::{
    Comparison, Content, Fact, Found, Held, Hint, Input, Learned, Object, Prior, PriorFile,
    Question, ReadOrder, ReadOutcome, Saved, Stamp, Sweep, Swept, SweptFile,
};
use touchmark_proto::files::FileStatus;
use touchmark_proto::{ClientPath, Error, RelPath, Request};

use super::stage::{Stage, author, hash, id, path};

#[derive(Default)]
pub(crate) struct Disk {
    /// The number of the file with each name.
    names: BTreeMap<RelPath, u64>,
    /// The content of each file, and the time of the write.
    files: BTreeMap<u64, (String, u64)>,
    /// For each name that is a symlink: its target.
    links: BTreeMap<RelPath, RelPath>,
    pub(crate) stamps: u64,
    /// Whether no later write can have the time of the last one.
    settled: bool,
    /// Whether stats are not compared.
    slow: bool,
    /// What was read and compared since the last step that lists it.
    looks: Vec<String>,
    /// The changes of untracked files that the next look at the workspace finds.
    swept: Vec<SweptFile>,
    /// Whether looks at the workspace are cut short.
    cut: bool,
    /// Two names that change places after each read; `None` for none.
    restless: Option<(RelPath, RelPath)>,
}

impl Disk {
    /// Writes a file, or removes it.
    pub(crate) fn write(&mut self, name: &str, content: Option<&str>) {
        let Some(content) = content else {
            self.names.remove(&path(name));
            return;
        };
        let new = 1_000 + self.stamps;
        let inode = *self.names.entry(path(name)).or_insert(new);
        self.put(inode, content);
    }

    fn put(&mut self, inode: u64, content: &str) {
        self.stamps += 1;
        self.files.insert(inode, (content.into(), self.stamps));
    }

    /// Has two names change places, if they do so after each read.
    pub(crate) fn after_read(&mut self) {
        if let Some((one, other)) = self.restless.clone() {
            let inodes = (self.names[&one], self.names[&other]);
            self.names.insert(one, inodes.1);
            self.names.insert(other, inodes.0);
        }
    }

    /// Compares the stats of files. Returns `None` if that takes forever.
    pub(crate) fn compared(&mut self, order: Comparison) -> Option<Input> {
        let names = order.files.iter().map(|(name, _)| name.to_string_lossy());
        let names: Vec<String> = names.collect();
        let how = if order.track {
            "track and compare"
        } else {
            "compare"
        };
        self.looks.push(format!("{how} {}", names.join(" ")));
        let differs = |(name, stamp): &(RelPath, Stamp)| self.stamp(name) != Some(*stamp);
        let differ = order.files.iter().filter(|file| differs(file));
        (!self.slow).then(|| Input::Compared {
            number: order.number,
            differ: differ.map(|(name, _)| name.clone()).collect(),
        })
    }

    /// Answers a question for the engine.
    pub(crate) fn learned(&mut self, question: Question) -> Result<Learned, Error> {
        match question {
            Question::Sweep(Sweep::Opening(_)) => Ok(Learned::Swept(Swept::default())),
            Question::Sweep(_) => Ok(Learned::Swept(self.look())),
            _ => Err(Error::invalid("not in these stories")),
        }
    }

    /// Looks at the workspace.
    fn look(&mut self) -> Swept {
        Swept {
            changes: std::mem::take(&mut self.swept),
            partial: self.cut.then(|| "cut short".into()),
            ..Swept::default()
        }
    }

    /// Returns what a witness finds at a name.
    pub(crate) fn prior(&self, name: &RelPath) -> Prior {
        self.stamp(name).map_or(Prior::Absent, |stamp| {
            Prior::File(PriorFile {
                inode: stamp.inode,
                size: stamp.size,
                changed: stamp.changed,
                modified: stamp.changed,
                mode: None,
                stored: None,
            })
        })
    }

    fn stamp(&self, name: &RelPath) -> Option<Stamp> {
        let inode = self.names.get(name)?;
        let (content, time) = &self.files[inode];
        Some(Stamp {
            inode: *inode,
            size: content.len() as u64,
            modified: *time as i64,
            changed: *time as i64 * 1_000_000,
            ..Stamp::default()
        })
    }

    /// Returns the result of a read.
    pub(crate) fn outcome(&mut self, order: &ReadOrder) -> ReadOutcome {
        self.looks.push(format!("read {}", order.path));
        let real = self.links.get(&order.path);
        let name = real.unwrap_or(&order.path);
        let (Some(inode), Some(stamp)) = (self.names.get(name), self.stamp(name)) else {
            return ReadOutcome {
                real: real.cloned(),
                link: real.map(|real| real.as_bytes().into()),
                ..Found::Absent.into()
            };
        };
        let (content, time) = &self.files[inode];
        let found = Found::File(Content {
            hash: hash(content),
            size: content.len() as u64,
            lines: 1,
            mtime_ms: *time,
            mode: None,
            owner: None,
            stamp,
            settled: self.settled,
        });
        let beginning = |size: &u64| Some((*size, hash(content.get(..*size as usize)?)));
        let several = self.names.values().filter(|of| *of == inode).count() > 1;
        ReadOutcome {
            prefixes: order.prefixes.iter().filter_map(beginning).collect(),
            bytes: order.bytes.then(|| content.as_bytes().into()),
            real: real.cloned(),
            link: real.map(|real| real.as_bytes().into()),
            object: several.then_some(Object {
                device: 1,
                inode: *inode,
            }),
            ..found.into()
        }
    }
}

impl Stage {
    /// Plays a step about names.
    pub(super) fn names(&mut self, words: &[&str]) -> String {
        match *words {
            ["file", inode, content] => self.disk.put(inode.parse().unwrap(), content),
            ["name", name, inode] => {
                let inode = inode.parse().unwrap();
                self.disk.names.insert(path(name), inode);
            }
            ["symlink", name, target] => {
                self.disk.links.insert(path(name), path(target));
            }
            ["unlink", name] => {
                self.disk.links.remove(&path(name));
            }
            ["swept", name, changed] => self.disk.swept.push(SweptFile {
                changed_ms: Some(changed.parse().unwrap()),
                ..SweptFile::new(path(name), Some(held("before")), held("after"))
            }),
            ["cut", "looks", "short"] => self.disk.cut = true,
            ["looks", "go", "on"] => {
                self.disk.cut = false;
                let swept = self.disk.look();
                self.feed(Input::Swept(swept));
            }
            // What files are stamped with counts writes, unless this is said.
            ["clock", time] => self.disk.stamps = time.parse().unwrap(),
            ["settled"] => self.disk.settled = true,
            ["comparisons", "stall"] => self.disk.slow = true,
            ["snapshot"] => {
                self.kept = Saved {
                    state: self.engine.state().clone(),
                    stamps: self.engine.stamps().clone(),
                };
                self.disk.looks.clear();
            }
            // A backup with its old time.
            ["back", name, content, time] => {
                let inode = self.disk.names[&path(name)];
                let file = (content.to_owned(), time.parse().unwrap());
                self.disk.files.insert(inode, file);
            }
            ["looks"] => return std::mem::take(&mut self.disk.looks).join("; "),
            ["proven", name] => {
                let name = path(name);
                let proven = self.engine.stamps().of(&name);
                return (proven.is_some() && proven == self.disk.stamp(&name)).to_string();
            }
            ["restless", one, other] => self.disk.restless = Some((path(one), path(other))),
            ["rest"] => self.disk.restless = None,
            ["hint", hint, name] => self.feed(Input::Hint {
                path: path(name),
                hint: hint_named(hint),
            }),
            ["hint", hint, ref names @ ..] => self.feed(Input::Hints {
                paths: names.iter().map(|name| path(name)).collect(),
                hint: hint_named(hint),
            }),
            ["renamed", from, to] => self.feed(Input::Renamed {
                from: path(from),
                to: path(to),
            }),
            ["exchanged", from, to] => self.feed(Input::Exchanged {
                from: path(from),
                to: path(to),
            }),
            [session, how @ ("asks" | "verifies"), ref names @ ..] => {
                let paths = names.iter().map(|name| ClientPath::new(name.as_bytes()));
                self.asked = Some(self.send(Request::FileStatus(FileStatus {
                    paths: Some(paths.collect()),
                    verify: (how == "verifies").then_some(true),
                    ..FileStatus::new(id(session))
                })));
            }
            ["facts"] => return self.facts(),
            ["files", ref names @ ..] => {
                let state = self.engine.state();
                let file = |name: &&str| state.file_of(&path(name)).to_string_lossy();
                let files: Vec<String> = names.iter().map(file).collect();
                return files.join(" ");
            }
            ["inodes", ref names @ ..] => {
                let inodes = names.iter().map(|name| self.disk.names[&path(name)]);
                let inodes: Vec<String> = inodes.map(|inode| inode.to_string()).collect();
                return inodes.join(" ");
            }
            ["tracked", name] => {
                let paths = &self.engine.state().paths;
                return paths.contains_key(&path(name)).to_string();
            }
            _ => return self.request(words),
        }
        String::new()
    }

    /// Returns the facts about versions and names since the last such step.
    fn facts(&mut self) -> String {
        let new = self.records.iter().skip(self.seen);
        let facts = new.filter_map(|record| match &record.fact {
            Fact::Version(version) => Some(format!(
                "{} {:?} by {} {:?}",
                version.path,
                version.kind,
                author(&version.author),
                version.evidence
            )),
            Fact::NamesJoined { name, file } => Some(format!("{name} joined {file}")),
            Fact::NamesParted { .. } => Some("parted".into()),
            _ => None,
        });
        let facts: Vec<String> = facts.collect();
        self.seen = self.records.len();
        match facts.is_empty() {
            true => "nothing".into(),
            false => facts.join("; ").to_lowercase(),
        }
    }
}

fn held(content: &str) -> Held {
    Held {
        hash: Some(hash(content)),
        size: content.len() as u64,
        lines: 1,
        mtime_ms: 0,
        mode: None,
        owner: None,
    }
}

fn hint_named(name: &str) -> Hint {
    match name {
        "closed" => Hint::Closed,
        "written" => Hint::Written,
        "removed" => Hint::Removed,
        "touched" => Hint::Touched,
        "written-and-closed" => Hint::WrittenAndClosed,
        _ => panic!("not a hint: {name}"),
    }
}
