//! Whether lines of a version are lost that a session replaced unseen: decided
//! from the contents, for each answer (ATTR-10).

use std::sync::Arc;

use touchmark_engine::ranges::RangeSet;
use touchmark_engine::text::missing::{SeenText, missing};
use touchmark_engine::{Fact, State};
use touchmark_proto::{Hash, LineRange, RelPath};

use crate::store::Reader;

/// A version that was replaced, and the contents that decide what of it is
/// lost.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    /// The contents that the session had seen, with the lines of each.
    pub(crate) seen: Vec<(Hash, RangeSet)>,
    /// The content that was replaced; `None` for a removal of the file.
    pub(crate) version: Option<Hash>,
    /// The content that replaced it, `None` in it for no file; `None` if that is
    /// not known.
    pub(crate) by: Option<Option<Hash>>,
    /// The file's current content; `None` for no file.
    pub(crate) now: Option<Hash>,
    /// The lines that may be lost; `None` for all.
    pub(crate) lines: Option<RangeSet>,
}

/// What is lost of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    Nothing,
    /// These lines, counted in the version.
    Lines(Vec<LineRange>),
    /// The contents are not at hand, are no texts, or are too large to be
    /// compared. The version counts as lost.
    Unknown,
}

impl Replacement {
    /// Returns what the state has of a version that was replaced unseen; `None`
    /// if it has no such version.
    pub(crate) fn of(state: &State, path: &RelPath, version: u64) -> Option<Self> {
        let path = state.paths.get(state.names.file_of(path))?;
        let kept = path.versions.iter().find(|kept| kept.n == version)?;
        if !kept.lost {
            return None;
        }
        let replaced = kept.replaced();
        Some(Self {
            seen: match (replaced, kept.before) {
                (Some(replaced), _) => replaced.seen.clone(),
                (None, before) => before
                    .map(|before| (before, RangeSet::whole()))
                    .into_iter()
                    .collect(),
            },
            version: kept.hash,
            by: replaced.map(|replaced| replaced.content),
            now: path.held.hash,
            lines: None,
        })
    }

    /// Returns what the log has of a version that a command took away; `None`
    /// for other facts, and for a version that it has no more.
    pub(crate) fn of_fact(log: &Reader, fact: &Fact) -> Option<Self> {
        let Fact::Lost {
            path,
            version,
            by,
            seen,
            lines: Some(lines),
            ..
        } = fact
        else {
            return None;
        };
        let held = |end: Option<u64>| {
            let newest = log.history(path, end, 1).ok()?;
            Some(newest.first()?.fact.held()?.hash)
        };
        Some(Self {
            seen: seen.clone(),
            version: held(Some(version + 1))?,
            by: Some(held(Some(by + 1))?),
            now: held(None)?,
            lines: Some(lines.clone()),
        })
    }

    /// Decides what is lost. A line is, if the session had not seen it, and if
    /// both the write that replaced the version and the current content lack it.
    pub(crate) fn lost(&self, mut content: impl FnMut(&Hash) -> Option<Arc<[u8]>>) -> Lost {
        let Some(version) = self.version else {
            return Lost::Unknown;
        };
        if self.now == Some(version) || self.by == Some(Some(version)) {
            return Lost::Nothing;
        }
        let seen = self.seen.iter();
        let seen: Vec<(Arc<[u8]>, &RangeSet)> = seen
            .filter_map(|(hash, lines)| Some((content(hash)?, lines)))
            .collect();
        let seen: Vec<SeenText<'_>> = seen
            .iter()
            .map(|(text, lines)| SeenText { text, lines })
            .collect();
        let by = self.by.flatten().and_then(|by| content(&by));
        let now = match self.now.map(|now| content(&now)) {
            None => None,
            Some(Some(now)) => Some(now),
            Some(None) => return Lost::Unknown,
        };
        let later: Vec<&[u8]> = [&by, &now]
            .into_iter()
            .filter_map(Option::as_deref)
            .collect();
        let found = content(&version).and_then(|version| missing(&seen, &version, &later));
        let found = found.map(|lines| match &self.lines {
            None => lines,
            Some(only) => lines
                .iter()
                .flat_map(|range| only.between(range.start, range.end).ranges(range.end))
                .collect(),
        });
        match found {
            None => Lost::Unknown,
            Some(lines) if lines.is_empty() => Lost::Nothing,
            Some(lines) => Lost::Lines(lines),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn lost(seen: &[&str], by: &str, now: Option<&str>) -> Lost {
        let version = "a\nmine\nb\n";
        let all: Vec<&str> = seen
            .iter()
            .copied()
            .chain([version, by])
            .chain(now)
            .collect();
        let hash = |text: &str| Hash::of(text.as_bytes());
        let replacement = Replacement {
            seen: seen
                .iter()
                .map(|text| (hash(text), RangeSet::whole()))
                .collect(),
            version: Some(hash(version)),
            by: Some(Some(hash(by))),
            now: now.map(hash),
            lines: None,
        };
        replacement.lost(|wanted| {
            let found = all.iter().find(|text| hash(text) == *wanted);
            found.map(|text| text.as_bytes().into())
        })
    }

    #[test]
    fn the_write_and_the_current_content_decide() {
        let line = |start, end| Lost::Lines(vec![LineRange { start, end }]);
        let seen = ["a\nb\n"];
        assert_eq!(lost(&seen, "a\nB\n", Some("a\nB\n")), line(2, 2));
        assert_eq!(lost(&seen, "a\nB\n", None), line(2, 2));
        assert_eq!(lost(&[], "a\nB\n", Some("a\nB\n")), line(2, 3));
        // The write kept it; who removed it later is another matter.
        assert_eq!(lost(&seen, "a\nmine\nB\n", Some("a\n")), Lost::Nothing);
        // It is there again.
        assert_eq!(lost(&seen, "a\nB\n", Some("mine\n")), Lost::Nothing);
        assert_eq!(lost(&["mine\n"], "a\nb\n", Some("a\n")), Lost::Nothing);
        assert_eq!(lost(&seen, "a\0\n", Some("a\0\n")), Lost::Unknown);
    }
}
