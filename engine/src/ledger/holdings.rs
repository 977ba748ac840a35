//! What one session has seen of each file that it tracks, in a compact form.
//!
//! Mostly, a session has read a file once or more, whole, and has seen one
//! content of it. There is one such entry for each file and session, so this
//! case is stored compactly. All other cases are stored as [`Knowledge`].

use std::borrow::Cow;

use touchmark_proto::files::Source;
use touchmark_proto::{Hash, Millis, RelPath};

use crate::by_name::ByName;
use crate::ledger::knowledge::{Knowledge, PastRecord, Seen};
use crate::ranges::RangeSet;

/// The files that a session tracks, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings(ByName<Box<Holding>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Holding {
    Whole(Whole),
    // Boxed, so that this rare case does not make the common one larger.
    Other(Box<Knowledge>),
}

/// The common case: the whole file was read, and nothing else of it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Whole {
    hash: Hash,
    at: u64,
    told: u64,
    time: Millis,
    /// The agent's step; `u64::MAX` if there is none.
    step: u64,
    lines: u32,
    reads: u32,
    source: Source,
    earlier: Option<Box<Earlier>>,
}

/// Set if the file had another content when the session began to track it, or
/// if it was in the context before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Earlier {
    baseline: Option<Hash>,
    past: Box<[Past]>,
}

/// A superseded record of a read that names no step.
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
    /// Returns the compact form, or `None` if `known` has more than fits in it.
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

/// Returns the entry of a content that was read whole.
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
    /// Returns what the session has seen of a file, or `None` if it does not
    /// track the file.
    pub fn get(&self, path: &RelPath) -> Option<Cow<'_, Knowledge>> {
        Some(self.0.get(path)?.knowledge())
    }

    /// Returns the number of the fact up to which its copy includes changes.
    pub(crate) fn at(&self, path: &RelPath) -> Option<u64> {
        Some(match self.0.get(path)?.as_ref() {
            Holding::Whole(whole) => whole.at,
            Holding::Other(known) => known.at,
        })
    }

    /// Returns whether the session has read the whole file and has seen nothing
    /// else of it.
    pub(crate) fn is_whole(&self, path: &RelPath) -> bool {
        let holding = self.0.get(path).map(Box::as_ref);
        matches!(holding, Some(Holding::Whole(_)))
    }

    /// Returns whether the session tracks a file.
    pub fn contains_key(&self, path: &RelPath) -> bool {
        self.0.contains_key(path)
    }

    /// Returns the files that the session tracks.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &RelPath> {
        self.0.keys()
    }

    /// Returns the number of files that the session tracks.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the session tracks no file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over all files with what the session has seen of each.
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

    /// Changes what the session has seen of a file. Returns `None` if it does
    /// not track the file.
    pub(crate) fn change<T>(
        &mut self,
        path: &RelPath,
        change: impl FnOnce(&mut Knowledge) -> T,
    ) -> Option<T> {
        Some(self.0.get_mut(path)?.change(change))
    }

    /// Changes what the session has seen of each file.
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
