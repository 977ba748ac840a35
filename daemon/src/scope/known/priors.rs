//! What witnesses tell about files before the present sweep (ATTR-3).

use std::collections::BTreeMap;
use std::fs::File as Pack;

use touchmark_engine::ledger::wire_names::witness_name;
use touchmark_engine::witnesses::Seen;
use touchmark_engine::{Held, MarkedFile, Prior, PriorFile};
use touchmark_proto::{Places, RelPath};

use super::{File, Known as Content, Stat};

/// What had the marked names of a sweep before they were marked.
#[derive(Default)]
pub(super) struct Priors {
    of: BTreeMap<RelPath, Known>,
    packs: BTreeMap<Seen, Option<Pack>>,
}

/// What is known of a marked name.
struct Known {
    marked: MarkedFile,
    /// What the last sweep found.
    looked: Option<File>,
}

/// What a witness tells about a file's content.
pub(super) enum Told {
    /// Nothing.
    Nothing,
    /// Something had the name that is not known.
    Unknown,
    /// This content.
    Held(Held),
    /// These bytes, in a file with this stat.
    Bytes(Vec<u8>, Stat),
    /// What the last sweep found.
    AsLooked(File),
}

impl Priors {
    /// Keeps what is told about marked names. `looked` returns what the last
    /// sweep found, if its stat proves that the file did not change for a while
    /// after it.
    pub(super) fn new(
        marked: &[MarkedFile],
        places: &Places,
        looked: impl Fn(&RelPath) -> Option<File>,
    ) -> Self {
        let mut packs = BTreeMap::new();
        for file in marked {
            packs.entry(file.by).or_insert_with(|| {
                let ring = places.ring(&witness_name(file.by));
                Pack::open(touchmark_witness::pack(&ring)).ok()
            });
        }
        let known = |file: &MarkedFile| Known {
            marked: file.clone(),
            looked: looked(&file.path),
        };
        Self {
            of: { marked.iter() }
                .map(|file| (file.path.clone(), known(file)))
                .collect(),
            packs,
        }
    }

    /// Returns whether a witness tells what had a name.
    pub(super) fn has(&self, path: &RelPath) -> bool {
        let known = self.of.get(path);
        known.is_some_and(|known| known.marked.prior != Prior::Unknown)
    }

    /// Returns whether a file with this stat is what had the name before, as far
    /// as a stat tells: of what is stored, the content does.
    pub(super) fn is_unchanged(&self, path: &RelPath, now: &Stat) -> bool {
        let prior = self.of.get(path).map(|known| known.marked.prior);
        matches!(prior, Some(Prior::File(file)) if file.stored.is_none() && stat(file) == *now)
    }

    /// Returns the files that were there when they were marked.
    pub(super) fn files(&self) -> impl Iterator<Item = (&RelPath, PriorFile)> {
        self.all().filter_map(|(path, file)| Some((path, file?)))
    }

    /// Returns all marked names, each with the file that was there.
    pub(super) fn all(&self) -> impl Iterator<Item = (&RelPath, Option<PriorFile>)> {
        let all = self.of.iter();
        all.map(|(path, known)| match known.marked.prior {
            Prior::File(file) => (path, Some(file)),
            _ => (path, None),
        })
    }

    /// Returns what a witness tells about the content of a file.
    pub(super) fn tell(&self, path: &RelPath) -> Told {
        let Some(known) = self.of.get(path) else {
            return Told::Nothing;
        };
        let file = match known.marked.prior {
            Prior::Unknown => return Told::Nothing,
            Prior::Absent | Prior::New => return Told::Held(Held::ABSENT),
            Prior::Held(held) => return Told::Held(held),
            Prior::File(file) => file,
        };
        let stat = stat(file);
        let is_same = |was: &File| was.stat == stat && !matches!(was.known, Content::Nothing);
        if let Some(was) = known.looked.filter(is_same) {
            return Told::AsLooked(was);
        }
        let before = touchmark_witness::Before {
            size: file.size,
            stored: file.stored.map(|stored| touchmark_witness::Stored {
                at: stored.at,
                sum: stored.sum,
            }),
            ..Default::default()
        };
        let pack = self.packs.get(&known.marked.by).and_then(Option::as_ref);
        let bytes = pack.and_then(|pack| touchmark_witness::stored(pack, &before).ok()?);
        bytes.map_or(Told::Unknown, |bytes| Told::Bytes(bytes, stat))
    }
}

/// Returns the stat of a marked file.
pub(super) fn stat(file: PriorFile) -> Stat {
    Stat {
        inode: file.inode,
        size: file.size,
        modified: file.modified,
        changed: file.changed,
        mode: file.mode,
    }
}
