//! Changes of white space alone. Such a change makes no new line: the line has
//! another text, and keeps its author (HIST-10).

use std::collections::BTreeSet;
use std::sync::Arc;

use imara_diff::Algorithm;

use super::kept::Kept;
use super::weave::{Entry, Line, Weave};
use super::without::LinesOn;
use crate::text::align::{Aligned, Region};

/// A later text of a line.
#[derive(Clone, Debug)]
pub(super) struct Recast {
    /// The version that gave the line this text.
    pub(super) at: usize,
    /// The version whose change it is: `at`, or the first one that gave the
    /// line this text, where an undo, a redo or git repeats it.
    pub(super) by: usize,
    pub(super) text: Arc<[u8]>,
}

impl Entry {
    /// Returns the line's text after a version that contains it.
    pub(super) fn text_at(&self, step: usize) -> &Arc<[u8]> {
        let cast = self.later.iter().rfind(|cast| cast.at <= step);
        cast.map_or(&self.text, |cast| &cast.text)
    }

    /// Returns the line's last text.
    pub(super) fn last_text(&self) -> &Arc<[u8]> {
        self.text_at(usize::MAX)
    }

    /// Gives the line another text. With `repeats`, the change is that of the
    /// version that gave the line this text first.
    pub(super) fn recast(&mut self, at: usize, text: &Arc<[u8]>, repeats: bool) {
        let first = match self.text == *text {
            true => Some(self.step),
            false => {
                let same = self.later.iter().find(|cast| cast.text == *text);
                same.map(|cast| cast.by)
            }
        };
        self.later.push(Recast {
            at,
            by: first.filter(|_| repeats).unwrap_or(at),
            text: Arc::clone(text),
        });
    }
}

impl Weave {
    /// Gives the lines that are on the texts that they had after an earlier
    /// version.
    pub(super) fn recast_as(&mut self, of: usize, at: usize, on: &[bool], repeats: bool) {
        let lines = self.lines.iter_mut().zip(on);
        let lines = lines.filter(|(entry, on)| **on && !entry.later.is_empty());
        for (entry, _) in lines {
            let text = Arc::clone(entry.text_at(of));
            if text != *entry.last_text() {
                entry.recast(at, &text, repeats);
            }
        }
    }

    /// Returns a line's text without the versions to be undone.
    pub(super) fn text_without(&self, line: Line, asked: &BTreeSet<usize>, kept: &Kept) -> &[u8] {
        let entry = &self.lines[line];
        let mut stay = entry.later.iter().rev();
        let last = stay.find(|cast| !asked.contains(&cast.by) || kept.has(cast.by, line));
        last.map_or(&entry.text, |cast| &cast.text)
    }

    /// Returns the versions to be undone that gave a line its present white
    /// space, which the undo takes back.
    pub(super) fn recasts_undone(
        &self,
        asked: &BTreeSet<usize>,
        kept: &Kept,
        state: &LinesOn,
    ) -> BTreeSet<usize> {
        let now = self.on_after(self.changes.len());
        let both = |line: &Line| now[*line] && state.on[*line];
        let lines = (0..self.lines.len()).filter(|line| !self.lines[*line].later.is_empty());
        let differs =
            |line: &Line| **self.lines[*line].last_text() != *self.text_without(*line, asked, kept);
        let casts = lines.filter(both).filter(differs);
        let casts = casts.filter_map(|line| self.lines[line].later.last());
        casts.map(|cast| cast.by).collect()
    }
}

/// Returns the pairs of an old and a new line, by their indexes, that differ in
/// white space alone. Runs of lines with almost no letters or digits are not
/// enough to tell.
pub(super) fn pairs(old: &[&[u8]], new: &[&[u8]]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let bare =
        |lines: &[&[u8]]| -> Vec<Vec<u8>> { lines.iter().map(|text| bare(text.iter())).collect() };
    let (old, new) = (bare(old), bare(new));
    let [was, is] = [&old, &new].map(|lines| -> Vec<&[u8]> {
        let lines = lines.iter().map(|text| &**text);
        lines.collect()
    });
    let all = Aligned::of(Algorithm::Myers, &was, &is).pairs();
    let follows = |a: &(usize, usize), b: &(usize, usize)| (a.0 + 1, a.1 + 1) == *b;
    let says = |run: &&[(usize, usize)]| run.iter().any(|(at, _)| has_words(&old[*at]));
    let runs = all.chunk_by(follows).filter(says).flatten();
    runs.copied()
        .filter(|(at, _)| !old[*at].is_empty())
        .collect()
}

/// Returns a text without its white space.
pub(super) fn bare<'a>(text: impl Iterator<Item = &'a u8>) -> Vec<u8> {
    let bytes = text.filter(|byte| !byte.is_ascii_whitespace());
    bytes.copied().collect()
}

/// Returns whether a text has at least two letters or digits.
pub(super) fn has_words(text: &[u8]) -> bool {
    let letters = text.iter().filter(|byte| byte.is_ascii_alphanumeric());
    letters.take(2).count() == 2
}

/// Splits a place at pairs of lines, of which the indexes count from its start.
pub(super) fn split(place: &Region, pairs: &[(usize, usize)]) -> Vec<Region> {
    let (before, after) = place;
    let (mut old, mut new) = (before.start, after.start);
    let mut places = Vec::with_capacity(pairs.len() + 1);
    let end = (before.len(), after.len());
    for (at, to) in pairs.iter().chain([&end]) {
        let (at, to) = (before.start + at, after.start + to);
        if old < at || new < to {
            places.push((old..at, new..to));
        }
        (old, new) = (at + 1, to + 1);
    }
    places
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Kind, Step, Undos};
    use super::*;

    fn weave(versions: &[&str], undos: &Undos) -> Weave {
        let steps = versions
            .iter()
            .map(|text| Step::Held(text.as_bytes().into()));
        Weave::with_undos(&steps.collect::<Vec<_>>(), undos)
    }

    fn without(versions: &[&str], undone: &[usize]) -> String {
        let weave = weave(versions, &Undos::default());
        let found = weave.without(|step| undone.contains(&step));
        assert_eq!(found.conflicts, []);
        String::from_utf8(found.bytes.unwrap()).unwrap()
    }

    fn blame(versions: &[&str], undos: &Undos) -> Vec<usize> {
        let weave = weave(versions, undos);
        let all = weave.blame(versions.len() - 1);
        all.iter().map(|(step, _)| *step).collect()
    }

    /// The agent adds two calls, the user puts the second of them into a block
    /// and adds a line.
    const BLOCK: [&str; 3] = [
        "begin\nend\n",
        "begin\nfirst();\nsecond();\nend\n",
        "begin\nfirst();\nif ready {\n    second();\n}\nend\n",
    ];

    #[test]
    fn an_indented_line_keeps_its_author() {
        assert_eq!(blame(&BLOCK, &Undos::default()), [0, 1, 2, 1, 2, 0]);
        let exact = Undos {
            exact: true,
            ..Undos::default()
        };
        assert_eq!(blame(&BLOCK, &exact), [0, 1, 2, 2, 2, 0]);
        // CRLF, and no line end at the end.
        let versions = ["one\ntwo\n", "one\r\ntwo\r\n", "one\r\ntwo"];
        assert_eq!(blame(&versions, &Undos::default()), [0, 0]);
    }

    #[test]
    fn undo_takes_the_indented_line() {
        assert_eq!(without(&BLOCK, &[1]), "begin\nif ready {\n}\nend\n");
        assert_eq!(without(&BLOCK, &[2]), BLOCK[1]);
        assert_eq!(without(&BLOCK, &[1, 2]), BLOCK[0]);
        // The last white space counts, whoever is undone before it.
        let versions = ["one\n", "\tone\n", "  one\n"];
        assert_eq!(without(&versions, &[1]), versions[2]);
        assert_eq!(without(&versions, &[2]), versions[1]);
        assert_eq!(without(&versions, &[1, 2]), versions[0]);
        // Another author went back to the earlier white space.
        let versions = ["one\n", "\tone\n", "one\n"];
        assert_eq!(without(&versions, &[1]), versions[2]);
        assert_eq!(without(&versions, &[2]), versions[1]);
    }

    #[test]
    fn what_is_undone_and_redone_is_its_first_authors() {
        let versions = ["one\ntwo\n", "\tone\ntwo\n", "one\ntwo\n", "\tone\ntwo\n"];
        let undos = Undos {
            undos: vec![2],
            redos: vec![(2, 3)],
            ..Undos::default()
        };
        let weave = weave(&versions, &undos);
        let found = weave.without(|step| step == 1);
        assert_eq!(found.bytes.as_deref(), Some(versions[0].as_bytes()));
        assert_eq!(found.hunks, 1);
        let carried = Undos {
            carried: vec![2, 3],
            ..Undos::default()
        };
        let weave = super::tests::weave(&versions, &carried);
        let found = weave.without(|step| step == 1);
        assert_eq!(found.bytes.as_deref(), Some(versions[0].as_bytes()));
    }

    #[test]
    fn a_difference_shows_both() {
        let weave = weave(&BLOCK, &Undos::default());
        let changed: Vec<_> = weave
            .compare(1, 2)
            .into_iter()
            .filter(|line| line.kind != Kind::Context)
            .map(|line| (line.kind, line.text, line.step))
            .collect();
        let added = |text: &'static str| (Kind::Added, text.as_bytes(), 2);
        let removed = (Kind::Removed, &b"second();\n"[..], 2);
        let wanted = [
            added("if ready {\n"),
            removed,
            added("    second();\n"),
            added("}\n"),
        ];
        assert_eq!(changed, wanted);
    }

    #[test]
    fn a_review_lists_it_and_undoes_it() {
        let versions = ["one\ntwo\n", "one\n\ttwo\n"];
        let weave = weave(&versions, &Undos::default());
        let found = weave.review(|step| step == 1, &BTreeSet::new());
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&*found[0].before, &*found[0].after),
            (&b"two\n"[..], &b"\ttwo\n"[..])
        );
        assert_eq!(found[0].steps, BTreeSet::from([1]));
        let text = weave.without_reviewed(&found, true);
        assert_eq!(text.as_deref(), Some(versions[0].as_bytes()));
        let given = found[0].names.iter().copied().collect();
        assert_eq!(weave.review(|step| step == 1, &given), []);
    }

    #[test]
    fn braces_alone_do_not_tell() {
        let versions = ["a\n}\nz\n", "a\nnew\n  }\nz\n"];
        assert_eq!(blame(&versions, &Undos::default()), [0, 1, 1, 0]);
    }
}
