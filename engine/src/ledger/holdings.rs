//! What one session knows of each file that it holds, in little room.
//!
//! A session mostly has read a file once or more, whole, and has seen one
//! content of it: there are as many of these as files and sessions, so that
//! case is kept small. All others are kept as they are.

use std::borrow::Cow;

use touchmark_proto::files::Source;
use touchmark_proto::{Hash, Millis, RelPath};

use crate::by_name::ByName;
use crate::ledger::knowledge::{Knowledge, PastRecord, Seen};
use crate::ranges::RangeSet;

/// A session's files, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings(ByName<Box<Holding>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Holding {
    Whole(Whole),
    // In a box of its own, so that it does not widen the ordinary case.
    Other(Box<Knowledge>),
}

/// All of a file was read, and nothing else was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Whole {
    hash: Hash,
    at: u64,
    told: u64,
    time: Millis,
    /// `u64::MAX` for none.
    step: u64,
    lines: u32,
    reads: u32,
    source: Source,
    earlier: Option<Box<Earlier>>,
}

/// The file held something else when the session began to hold it, or it came
/// into the context before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Earlier {
    baseline: Option<Hash>,
    past: Box<[Past]>,
}

/// A record of a read in an agent that names no steps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Past {
    time: Millis,
    hash: Hash,
    lines: u32,
    source: Source,
}

impl Past {
    fn of(record: &PastRecord) -> Option<Self> {
        record.step.is_none().then_some(Self {
            time: record.time,
            hash: record.hash?,
            lines: record.lines,
            source: record.source,
        })
    }

    fn record(&self) -> PastRecord {
        PastRecord {
            source: self.source,
            step: None,
            time: self.time,
            lines: self.lines,
            hash: Some(self.hash),
        }
    }
}

impl Whole {
    /// What is known, if it is no more than this.
    fn of(known: &Knowledge) -> Option<Self> {
        let Knowledge {
            baseline,
            seen,
            uncertain: false,
            at,
            foreign: false,
            behind: 0,
            told,
            read_count,
            read_at,
            edit_at: None,
            copied: false,
            record,
            past,
            unsure,
            displaced: None,
            brought: None,
        } = known
        else {
            return None;
        };
        let [last] = seen.as_slice() else {
            return None;
        };
        let hash = last.hash?;
        let whole = *last == seen_whole(hash) && unsure.is_empty();
        let last_read = *read_at == Some(record.time) && record.hash == Some(hash);
        if !whole || !last_read || record.step == Some(u64::MAX) {
            return None;
        }
        let past: Option<Box<[Past]>> = past.iter().map(Past::of).collect();
        let (past, baseline) = (past?, *baseline);
        let plain = past.is_empty() && baseline == Some(hash);
        Some(Self {
            hash,
            at: *at,
            told: *told,
            time: record.time,
            step: record.step.unwrap_or(u64::MAX),
            lines: record.lines,
            reads: *read_count,
            source: record.source,
            earlier: (!plain).then(|| Box::new(Earlier { baseline, past })),
        })
    }

    fn knowledge(&self) -> Knowledge {
        let record = PastRecord {
            source: self.source,
            step: (self.step != u64::MAX).then_some(self.step),
            time: self.time,
            lines: self.lines,
            hash: Some(self.hash),
        };
        let mut known = Knowledge::new(self.at, Some(self.hash), record);
        known.seen = vec![seen_whole(self.hash)];
        known.told = self.told;
        known.read_count = self.reads;
        known.read_at = Some(self.time);
        if let Some(earlier) = &self.earlier {
            known.baseline = earlier.baseline;
            known.past = earlier.past.iter().map(Past::record).collect();
        }
        known
    }
}

/// A content that was read whole.
fn seen_whole(hash: Hash) -> Seen {
    Seen {
        hash: Some(hash),
        ranges: RangeSet::whole(),
        resident: RangeSet::whole(),
        assumed: false,
        read: true,
        written: false,
        moved: false,
    }
}

impl Holding {
    fn of(known: Knowledge) -> Box<Self> {
        Box::new(match Whole::of(&known) {
            Some(whole) => Self::Whole(whole),
            None => Self::Other(Box::new(known)),
        })
    }

    fn knowledge(&self) -> Cow<'_, Knowledge> {
        match self {
            Self::Whole(whole) => Cow::Owned(whole.knowledge()),
            Self::Other(known) => Cow::Borrowed(known),
        }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Knowledge) -> T) -> T {
        let mut known = match self {
            Self::Whole(whole) => whole.knowledge(),
            Self::Other(known) => {
                let done = change(known);
                if let Some(whole) = Whole::of(known) {
                    *self = Self::Whole(whole);
                }
                return done;
            }
        };
        let done = change(&mut known);
        *self = *Self::of(known);
        done
    }
}

impl Holdings {
    /// What it knows of a file.
    pub fn get(&self, path: &RelPath) -> Option<Cow<'_, Knowledge>> {
        Some(self.0.get(path)?.knowledge())
    }

    /// The fact up to which its copy speaks.
    pub(crate) fn at(&self, path: &RelPath) -> Option<u64> {
        Some(match self.0.get(path)?.as_ref() {
            Holding::Whole(whole) => whole.at,
            Holding::Other(known) => known.at,
        })
    }

    /// Whether it has read all of a file, and seen nothing else of it.
    pub(crate) fn is_whole(&self, path: &RelPath) -> bool {
        let holding = self.0.get(path).map(Box::as_ref);
        matches!(holding, Some(Holding::Whole(_)))
    }

    /// Whether it holds a file.
    pub fn contains_key(&self, path: &RelPath) -> bool {
        self.0.contains_key(path)
    }

    /// The files that it holds.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &RelPath> {
        self.0.keys()
    }

    /// How many these are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = (&RelPath, Cow<'_, Knowledge>)> {
        self.0
            .iter()
            .map(|(path, holding)| (path, holding.knowledge()))
    }

    pub(crate) fn insert(&mut self, path: RelPath, known: Knowledge) {
        self.0.insert(path, Holding::of(known));
    }

    pub(crate) fn remove(&mut self, path: &RelPath) -> Option<Knowledge> {
        Some(self.0.remove(path)?.knowledge().into_owned())
    }

    /// Changes what it knows of a file, if it holds that.
    pub(crate) fn change<T>(
        &mut self,
        path: &RelPath,
        change: impl FnOnce(&mut Knowledge) -> T,
    ) -> Option<T> {
        Some(self.0.get_mut(path)?.change(change))
    }

    /// The same of every file.
    pub(crate) fn change_all(&mut self, mut change: impl FnMut(&RelPath, &mut Knowledge)) {
        for (path, holding) in self.0.iter_mut() {
            holding.change(|known| change(path, known));
        }
    }
}

impl FromIterator<(RelPath, Knowledge)> for Holdings {
    fn from_iter<I: IntoIterator<Item = (RelPath, Knowledge)>>(files: I) -> Self {
        let files = files.into_iter();
        Self(
            files
                .map(|(path, known)| (path, Holding::of(known)))
                .collect(),
        )
    }
}
