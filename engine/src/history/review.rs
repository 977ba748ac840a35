//! Computes what some versions have changed and the user has not reviewed yet
//! (REV-1): where the file differs from its content without them.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::LineRange;

use super::weave::{ChangeKind, Line, Weave};

/// One change of a line by one version, named by properties that stay the same
/// as the file's history grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineName {
    /// The index of the version that added or removed the line, or of the claim
    /// that names its author.
    pub by: usize,
    /// The index of the version that first contained the line.
    pub of: usize,
    /// The line's index among the lines that the version `of` added.
    pub place: usize,
}

/// Adjacent lines that differ from the file's content without the versions
/// under review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewed {
    /// The lines of the file's current content where the change is. If it has no
    /// lines there, this is the line before its place.
    pub lines: LineRange,
    /// The bytes there without the versions under review.
    pub before: Vec<u8>,
    /// The bytes there now.
    pub after: Vec<u8>,
    /// The indexes of the versions and claims under review that changed these
    /// lines.
    pub steps: BTreeSet<usize>,
    /// The names of these lines' changes. If they are given to
    /// [`Weave::review`], it does not return them again.
    pub names: Vec<LineName>,
    /// The lines that are switched on or off to undo the change.
    turned: Vec<Line>,
    /// The lines of which only the white space changed, each with its text
    /// without the versions under review.
    recast: Vec<(Line, Vec<u8>)>,
}

impl Weave {
    /// Returns what the selected versions have changed, except for the changes
    /// of lines that `given` names.
    pub fn review(
        &self,
        asked: impl Fn(usize) -> bool,
        given: &BTreeSet<LineName>,
    ) -> Vec<Reviewed> {
        let names = self.names();
        let given: BTreeSet<(usize, Line)> = names
            .iter()
            .enumerate()
            .flat_map(|(line, own)| own.iter().map(move |name| (line, name)))
            .filter(|(_, name)| given.contains(name))
            .map(|(line, name)| (name.by, line))
            .collect();
        let (asked, _) = self.asked(asked);
        let kept = self.kept(&asked, &given);
        let (without, _) = self.state(&asked, &kept);
        let last = self.changes.len().saturating_sub(1);
        let now = self.on_after(last);
        let mut found: Vec<Reviewed> = Vec::new();
        let (mut number, mut goes_on) = (0, false);
        for line in &self.order {
            let (is, was) = (now[*line], without.on[*line]);
            number += u32::from(is);
            if !is && !was {
                continue;
            }
            let text = &**self.lines[*line].last_text();
            let old = self.text_without(*line, &asked, &kept);
            if is == was && text == old {
                goes_on = false;
                continue;
            }
            if !goes_on {
                found.push(Reviewed {
                    lines: LineRange {
                        start: number,
                        end: number,
                    },
                    before: Vec::new(),
                    after: Vec::new(),
                    steps: BTreeSet::new(),
                    names: Vec::new(),
                    turned: Vec::new(),
                    recast: Vec::new(),
                });
                goes_on = true;
            }
            let Some(hunk) = found.last_mut() else {
                continue;
            };
            if is {
                hunk.after.extend_from_slice(text);
                // The line before an empty place does not belong to the change.
                if hunk.lines.start < number && hunk.after.len() == text.len() {
                    hunk.lines.start = number;
                }
                hunk.lines.end = number;
            }
            if was {
                hunk.before.extend_from_slice(old);
            }
            match is == was {
                true => hunk.recast.push((*line, old.to_vec())),
                false => hunk.turned.push(*line),
            }
            for name in names[*line].iter().filter(|name| asked.contains(&name.by)) {
                hunk.steps.insert(name.by);
                hunk.names.push(*name);
            }
        }
        found
    }

    /// Returns the file's content without some of the changes that
    /// [`review`](Self::review) returned, or `None` if no file remains.
    /// `existed` says whether there was a file before agents changed it.
    pub fn without_reviewed<'a>(
        &self,
        hunks: impl IntoIterator<Item = &'a Reviewed>,
        existed: bool,
    ) -> Option<Vec<u8>> {
        let last = self.changes.len().saturating_sub(1);
        let mut on = self.on_after(last);
        let mut recast: BTreeMap<Line, &[u8]> = BTreeMap::new();
        for hunk in hunks {
            for line in &hunk.turned {
                on[*line] = !on[*line];
            }
            recast.extend(hunk.recast.iter().map(|(line, text)| (*line, &**text)));
        }
        let is_empty = !on.iter().any(|on| *on);
        let now = |line: Line| &**self.lines[line].last_text();
        let text = |line| recast.get(&line).copied().unwrap_or_else(|| now(line));
        (existed || !is_empty).then(|| self.text(&on, text))
    }

    /// Returns the names of the changes that the content of a version has. If
    /// they are given to [`review`](Self::review), it returns only what that
    /// content does not have.
    pub fn names_at(&self, step: usize) -> BTreeSet<LineName> {
        let on = self.on_after(step);
        let has = |line: Line, adds| on[line] == adds;
        // The content has nothing of what was taken back before it.
        let mut steps = BTreeSet::new();
        let mut next = Some(step);
        while let Some(at) = next {
            steps.insert(at);
            next = match self.changes.get(at).map(|change| &change.what) {
                Some(ChangeKind::Restored(of)) => Some(*of),
                _ => at.checked_sub(1),
            };
        }
        let names = self.names_by(|by| steps.contains(&by), has);
        names.into_iter().flatten().collect()
    }

    /// Returns for each line its changes: by which versions it was added and
    /// removed.
    fn names(&self) -> Vec<Vec<LineName>> {
        self.names_by(|_| true, |_, _| true)
    }

    /// Returns for each line its changes by some versions. `has` selects among
    /// those that added (`true`) or removed the line. A change of its white space
    /// alone is always returned.
    fn names_by(
        &self,
        is_meant: impl Fn(usize) -> bool,
        has: impl Fn(Line, bool) -> bool,
    ) -> Vec<Vec<LineName>> {
        let own = self.line_places();
        let mut names = vec![Vec::new(); self.lines.len()];
        let mut add = |line: Line, by| {
            let (of, place) = own[line];
            names[line].push(LineName { by, of, place });
        };
        let meant = self.changes.iter().enumerate();
        for (by, change) in meant.filter(|(by, _)| is_meant(*by)) {
            for line in change.on.iter().filter(|line| has(**line, true)) {
                add(*line, self.author_of(by, *line));
            }
            for line in change.off.iter().filter(|line| has(**line, false)) {
                add(*line, by);
            }
        }
        for (line, entry) in self.lines.iter().enumerate() {
            for cast in entry.later.iter().filter(|cast| is_meant(cast.by)) {
                add(line, cast.by);
            }
        }
        names
    }
}
