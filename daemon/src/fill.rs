//! Additions to answers from stored contents: line counts and previews.

use touchmark_engine::{Answer, Difference, LinesWanted, TextPair};
use touchmark_proto::{Change, Hash, LineCounts, LineRange, Reply};

use crate::store::Reader;
use touchmark_engine::text::lines;

/// The most bytes compared for one answer, so that a long list cannot block the
/// loop. The changes after that have no counts.
const MOST: usize = 8 << 20;

/// Reads stored contents, within a budget of bytes to compare.
pub(crate) struct Contents<'a> {
    reader: Option<&'a Reader>,
    left: usize,
}

impl<'a> Contents<'a> {
    pub(crate) fn new(reader: Option<&'a Reader>) -> Self {
        Self { reader, left: MOST }
    }

    /// Returns the answer with its line counts and previews.
    pub(crate) fn fill(&mut self, answer: Answer) -> Reply {
        let Answer {
            mut reply,
            lines,
            previews,
        } = answer;
        if !lines.is_empty() {
            let changes = changes_of(&mut reply);
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
                change.reverted_lines = match (change.lines, &change.reverts, own) {
                    (Some(_), Some(_), _) => self.removed(old, new),
                    (Some(_), None, Some((base, mine))) => self.taken_back(base, mine, new),
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
        reply
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

    /// Returns the lines of the older content that are not in the newer one.
    fn removed(&self, old: Option<Hash>, new: Option<Hash>) -> Option<Vec<LineRange>> {
        let removed = lines::removed(&self.content(old)?, &self.content(new)?)?;
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

/// Returns the changes that an answer lists, in the order to which
/// [`LinesWanted::index`] refers.
fn changes_of(reply: &mut Reply) -> &mut [Change] {
    match reply {
        Reply::SessionOpen(opened) => &mut opened.modified,
        Reply::FileRead(read) => read.change.as_mut_slice(),
        Reply::EditCommit(committed) => &mut committed.changes,
        Reply::CommandEnd(ended) => &mut ended.changes,
        Reply::ModifiedList(list) => &mut list.changes,
        Reply::ModifiedTake(taken) => &mut taken.changes,
        _ => &mut [],
    }
}
