//! What stored contents add to answers: line counts, previews, and which of the
//! versions that were replaced unseen are lost.

use std::collections::HashMap;

use touchmark_engine::ranges::RangeSet;
use touchmark_engine::{Answer, Difference, LinesWanted, State, TextPair};
use touchmark_proto::edits::{EditCommitted, Outcome};
use touchmark_proto::{Change, Hash, LineCounts, LineRange, RelPath, Reply, Version};

use crate::losses::{Lost, Replacement};
use crate::store::Reader;
use touchmark_engine::text::lines;

/// The most bytes compared for one answer, so that a long list cannot block the
/// loop. The changes after that have no counts.
const MOST: usize = 8 << 20;

/// An answer that lacks what the stored contents add to it. Any thread can add
/// it.
pub(crate) struct Unfilled {
    answer: Answer,
    /// What the state has of the versions in the answer that were replaced
    /// unseen.
    replaced: HashMap<(RelPath, u64), Option<Replacement>>,
    /// For each file of a commit, the version that it replaced unseen.
    clobbered: Vec<Option<u64>>,
}

impl Unfilled {
    pub(crate) fn new(answer: Answer, state: &State) -> Self {
        let mut found = Self {
            replaced: HashMap::new(),
            clobbered: Vec::new(),
            answer,
        };
        let mut versions: Vec<(RelPath, u64)> = Vec::new();
        let reply = &found.answer.reply;
        if let Reply::EditCommit(EditCommitted { files, .. }) = reply {
            for file in files {
                let version = file.version.as_ref().map(|version| version.clock.n);
                let replaced = version.and_then(|n| replaced_by(state, &file.path, n));
                versions.extend(replaced.map(|n| (file.path.clone(), n)));
                found.clobbered.push(replaced);
            }
        }
        if let Reply::FileHistory(all) = reply {
            let marked = all.versions.iter().filter(|version| is_marked(version));
            versions.extend(marked.map(|version| (version.path.clone(), recorded(version))));
        }
        let rows = changes_of(reply).iter();
        let lost = rows.filter_map(|row| row.lost.as_deref());
        versions.extend(lost.map(|lost| (lost.path.clone(), lost.clock.n)));
        for (path, n) in versions {
            let replacement = Replacement::of(state, &path, n);
            found.replaced.insert((path, n), replacement);
        }
        found
    }

    /// Returns the number of comparisons and reads that filling it needs.
    pub(crate) fn work(&self) -> usize {
        self.answer.lines.len() + self.answer.previews.len() + self.replaced.len()
    }

    /// Returns the answer as it is.
    pub(crate) fn reply(&self) -> &Reply {
        &self.answer.reply
    }

    /// Returns the answer as it is.
    pub(crate) fn into_reply(self) -> Reply {
        self.answer.reply
    }
}

/// Reads stored contents, within a budget of bytes to compare.
pub(crate) struct Contents<'a> {
    reader: Option<&'a Reader>,
    left: usize,
}

impl<'a> Contents<'a> {
    pub(crate) fn new(reader: Option<&'a Reader>) -> Self {
        Self { reader, left: MOST }
    }

    /// Returns the answer with its line counts and previews, and without the
    /// versions of which nothing is lost.
    pub(crate) fn fill(&mut self, unfilled: Unfilled) -> Reply {
        let Unfilled {
            answer:
                Answer {
                    mut reply,
                    lines,
                    previews,
                },
            replaced,
            clobbered,
        } = unfilled;
        if !lines.is_empty() {
            let changes = changes_of_mut(&mut reply);
            for LinesWanted {
                index,
                old,
                new,
                own,
            } in lines
            {
                let Some(change) = changes.get_mut(index) else {
                    continue;
                };
                change.lines = self.lines(old, new);
                change.reverted_lines = match (change.lines, &change.reverts, own.as_slice()) {
                    (Some(_), Some(_), own) => self.removed(old, new, own),
                    (Some(_), None, [.., (base, mine)]) => self.taken_back(*base, *mine, new),
                    _ => None,
                };
            }
        }
        if let Reply::FileList(records) | Reply::FileRecent(records) = &mut reply {
            for (index, hash) in previews {
                if let (Some(record), Some(bytes)) =
                    (records.files.get_mut(index), self.content(Some(hash)))
                {
                    record.preview = lines::preview(&bytes);
                }
            }
        }
        let mut lost = |path: &RelPath, n: u64| {
            let replacement = replaced.get(&(path.clone(), n));
            self.loses(replacement.and_then(Option::as_ref))
        };
        leave_out(&mut reply, &clobbered, &mut lost);
        reply
    }

    /// Leaves out of a version that it was replaced unseen, if nothing of it is
    /// lost.
    pub(crate) fn mark(&mut self, version: &mut Version, state: &State) {
        if is_marked(version) {
            let is_lost = self.is_lost(&version.path, recorded(version), state);
            version.overwritten = is_lost.then_some(true);
        }
    }

    /// Returns whether something is lost of a version that was replaced unseen.
    pub(crate) fn is_lost(&mut self, path: &RelPath, version: u64, state: &State) -> bool {
        self.loses(Replacement::of(state, path, version).as_ref())
    }

    fn loses(&mut self, replacement: Option<&Replacement>) -> bool {
        let Some(replacement) = replacement else {
            return true;
        };
        let lost = replacement.lost(|hash| {
            let content = self.content(Some(*hash))?;
            self.left = self.left.checked_sub(content.len())?;
            Some(content)
        });
        lost != Lost::Nothing
    }

    /// Returns the line counts between two contents; `None` if one of them is
    /// not stored or the budget is used up.
    pub(crate) fn lines(&mut self, old: Option<Hash>, new: Option<Hash>) -> Option<LineCounts> {
        let (old, new) = (self.content(old)?, self.content(new)?);
        self.left = self.left.checked_sub(old.len() + new.len())?;
        lines::count(&old, &new)
    }

    /// Returns where the texts of each pair differ. Pairs that cannot be
    /// compared are left out.
    pub(crate) fn differences(&mut self, pairs: Vec<TextPair>) -> Vec<Difference> {
        let mut found = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let texts = (self.content(Some(pair.old)), self.content(Some(pair.new)));
            let (Some(old), Some(new)) = texts else {
                continue;
            };
            match self.left.checked_sub(old.len() + new.len()) {
                Some(left) => self.left = left,
                None => break,
            }
            found.extend(lines::difference(pair, &old, &new));
        }
        found
    }

    /// Returns the lines of a session's own writes that were reverted.
    fn taken_back(
        &mut self,
        base: Option<Hash>,
        mine: Option<Hash>,
        now: Option<Hash>,
    ) -> Option<Vec<LineRange>> {
        let [base, mine, now] = [self.content(base)?, self.content(mine)?, self.content(now)?];
        self.left = self.left.checked_sub(base.len() + mine.len() + now.len())?;
        let back = lines::taken_back(&base, &mine, &now);
        (!back.is_empty()).then_some(back)
    }

    /// Returns the lines of the older content that a session wrote and that are
    /// not in the newer one. `own` has the contents before and after its writes.
    fn removed(
        &mut self,
        old: Option<Hash>,
        new: Option<Hash>,
        own: &[(Option<Hash>, Option<Hash>)],
    ) -> Option<Vec<LineRange>> {
        let (old, new) = (self.content(old)?, self.content(new)?);
        let mut written = RangeSet::default();
        for (base, mine) in own {
            let (base, mine) = (self.content(*base)?, self.content(*mine)?);
            let bytes = base.len() + mine.len() * 2 + old.len();
            self.left = self.left.checked_sub(bytes)?;
            let added: RangeSet = lines::added(&base, &mine)?.into_iter().collect();
            written.add(&added.carried(&lines::places(&mine, &old)?));
        }
        let removed = lines::removed(&old, &new)?;
        let removed: Vec<LineRange> = removed
            .into_iter()
            .flat_map(|range| written.between(range.start, range.end).ranges(range.end))
            .collect();
        (!removed.is_empty()).then_some(removed)
    }

    /// Returns a stored content. That of an absent file (`None`) is empty.
    pub(crate) fn content(&self, hash: Option<Hash>) -> Option<std::sync::Arc<[u8]>> {
        let Some(hash) = hash else {
            return Some([].into());
        };
        match self.reader?.content(&hash) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::debug!("a kept content: {error}");
                None
            }
        }
    }
}

/// Leaves out the versions that were replaced unseen, and of which nothing is
/// lost.
fn leave_out(
    reply: &mut Reply,
    clobbered: &[Option<u64>],
    is_lost: &mut impl FnMut(&RelPath, u64) -> bool,
) {
    let mut kept = |lost: &Version| is_lost(&lost.path, lost.clock.n);
    match reply {
        Reply::EditCommit(EditCommitted { files, changes }) => {
            for change in changes.iter_mut() {
                change.lost = change.lost.take().filter(|lost| kept(lost));
            }
            for (file, replaced) in files.iter_mut().zip(clobbered) {
                if file.outcome == Outcome::Clobbered
                    && replaced.is_some_and(|n| !is_lost(&file.path, n))
                {
                    file.outcome = Outcome::Applied;
                }
            }
        }
        Reply::SessionOpen(opened) => opened.modified.retain(|row| tells(row, &mut kept)),
        Reply::CommandEnd(ended) => ended.changes.retain(|row| tells(row, &mut kept)),
        Reply::ModifiedList(list) => list.changes.retain(|row| tells(row, &mut kept)),
        Reply::ModifiedTake(taken) => taken.changes.retain(|row| tells(row, &mut kept)),
        Reply::FileHistory(all) => {
            for version in all.versions.iter_mut().filter(|version| is_marked(version)) {
                let is_lost = is_lost(&version.path, recorded(version));
                version.overwritten = is_lost.then_some(true);
            }
        }
        _ => {}
    }
}

/// Returns whether a version is marked as replaced unseen.
fn is_marked(version: &Version) -> bool {
    version.overwritten == Some(true)
}

/// Returns the number of the fact that recorded a version first.
fn recorded(version: &Version) -> u64 {
    version.amends.map_or(version.clock.n, |amended| amended.n)
}

/// Passes the changes that an answer lists, in the order to which
/// [`LinesWanted::index`] refers.
macro_rules! changes {
    ($reply:expr, $as_slice:ident, $($reference:tt)+) => {
        match $reply {
            Reply::SessionOpen(opened) => $($reference)+ opened.modified,
            Reply::FileRead(read) => read.change.$as_slice(),
            Reply::EditCommit(committed) => $($reference)+ committed.changes,
            Reply::CommandEnd(ended) => $($reference)+ ended.changes,
            Reply::ModifiedList(list) => $($reference)+ list.changes,
            Reply::ModifiedTake(taken) => $($reference)+ taken.changes,
            _ => $($reference)+ [],
        }
    };
}

fn changes_of(reply: &Reply) -> &[Change] {
    changes!(reply, as_slice, &)
}

fn changes_of_mut(reply: &mut Reply) -> &mut [Change] {
    changes!(reply, as_mut_slice, &mut)
}

/// Returns whether a row is no loss, or one of a version that is lost.
fn tells(row: &Change, is_lost: &mut impl FnMut(&Version) -> bool) -> bool {
    row.lost.as_deref().is_none_or(is_lost)
}

/// Returns the version that a version replaced unseen; `None` if it did not.
fn replaced_by(state: &State, path: &RelPath, by: u64) -> Option<u64> {
    let path = state.paths.get(state.names.file_of(path))?;
    let mut newest_first = path.versions.iter().rev();
    let replaced = newest_first.find(|kept| kept.lost && kept.n < by)?;
    Some(replaced.n)
}
