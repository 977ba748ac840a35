//! Where the lines of a version are placed among all lines that the file has
//! ever contained.

use std::sync::Arc;

use imara_diff::Algorithm;

use super::indents;
use super::weave::{Entry, How, Hunk, Line, Weave};
use crate::text::align::{Aligned, Region};
use crate::text::differences::{self, Differences, Middle};
use crate::text::lines;

impl Weave {
    /// Returns which lines were replaced by which between two texts, the old and
    /// the new one. New lines are inserted into the order. Lines of which only
    /// the white space changed get their new text.
    pub(super) fn hunks(
        &mut self,
        on: &mut Vec<bool>,
        [old, new]: [Option<&[u8]>; 2],
        how: How,
    ) -> Vec<Hunk> {
        let found = differences(old.unwrap_or_default(), new.unwrap_or_default());
        // The places of the lines that are on, in order, and one after the
        // last.
        let mut places: Vec<usize> = (0..self.order.len())
            .filter(|place| on[self.order[*place]])
            .collect();
        places.push(self.order.len());
        let mut hunks = Vec::new();
        let mut order = Vec::with_capacity(self.order.len());
        let mut copied = 0;
        let mut all = found.places.clone();
        if !how.exact {
            all = all
                .into_iter()
                .flat_map(|(place, is_compared)| {
                    let rest = self.recast(&place, &places, &found, how);
                    rest.into_iter().map(move |place| (place, is_compared))
                })
                .collect();
        }
        for ((before, after), is_compared) in all {
            let added = found.new_lines(after.clone());
            // The region includes the removed lines between these lines and
            // their neighbours, since some of them may be back.
            let from = before.start.checked_sub(1).map_or(0, |one| places[one] + 1);
            let to = places[before.end];
            order.extend_from_slice(&self.order[copied..from]);
            copied = to;
            let region = self.order[from..to].to_vec();
            let off: Vec<Line> = region.iter().copied().filter(|line| on[*line]).collect();
            let back = self.back(&region, on, added, how.puts_back);
            let mut on_now = Vec::with_capacity(after.len());
            let mut rest = region.iter().copied().peekable();
            // For each new line, the next line that comes back.
            let mut coming: Vec<Option<Line>> = back.clone();
            for at in (1..coming.len()).rev() {
                coming[at - 1] = coming[at - 1].or(coming[at]);
            }
            // The line before which all replaced lines are placed already.
            let mut placed = None;
            for ((text, back), next_back) in added.iter().zip(back).zip(coming) {
                let line = match back {
                    Some(line) => {
                        while let Some(passed) = rest.next_if(|next| *next != line) {
                            order.push(passed);
                        }
                        rest.next();
                        line
                    }
                    None => {
                        // A new line is placed after the lines that it
                        // replaces, with the removed lines among them, and
                        // after lines that had replaced the line before it and
                        // were removed. So all of these keep their place if
                        // they come back.
                        let is_next = |line: &Line| Some(*line) == next_back;
                        if placed != Some(next_back) {
                            let until = rest.clone().take_while(|line| !is_next(line));
                            let replaced = until.enumerate().filter(|(_, line)| on[*line]);
                            let passed = replaced.last().map_or(0, |(at, _)| at + 1);
                            order.extend(rest.by_ref().take(passed));
                            placed = Some(next_back);
                        }
                        let before = order.last().copied();
                        while let Some(gone) = rest.next_if(|next| {
                            !is_next(next) && before.is_some_and(|line| self.replaced(*next, line))
                        }) {
                            order.push(gone);
                        }
                        self.lines.push(Entry {
                            text: Arc::from(*text),
                            later: Vec::new(),
                            step: how.at,
                            made: self.hunks,
                        });
                        self.lines.len() - 1
                    }
                };
                order.push(line);
                on_now.push(line);
            }
            order.extend(rest);
            if !on_now.is_empty() {
                let replaced = off.iter().map(|line| (*line, self.hunks));
                self.replaced_by.extend(replaced);
            }
            self.hunks += 1;
            hunks.push(Hunk {
                off,
                on: on_now,
                is_unclear: !is_compared,
            });
        }
        order.extend_from_slice(&self.order[copied..]);
        self.order = order;
        on.resize(self.lines.len(), false);
        for hunk in &hunks {
            for line in &hunk.off {
                on[*line] = false;
            }
            for line in &hunk.on {
                on[*line] = true;
            }
        }
        hunks
    }

    /// Gives the lines of which only the white space differs their new text.
    /// Returns the places between them. `places` has the place of each line of
    /// the old text.
    fn recast(
        &mut self,
        place: &Region,
        places: &[usize],
        found: &Differences<'_>,
        how: How,
    ) -> Vec<Region> {
        let (before, after) = place;
        let old: Vec<Line> = places[before.clone()]
            .iter()
            .map(|at| self.order[*at])
            .collect();
        let new = found.new_lines(after.clone());
        let texts = old.iter().map(|line| &**self.lines[*line].last_text());
        let pairs = indents::pairs(&texts.collect::<Vec<_>>(), new);
        for (was, is) in &pairs {
            self.lines[old[*was]].recast(how.at, &Arc::from(new[*is]), how.repeats);
        }
        indents::split(place, &pairs)
    }

    /// Returns whether the version that first contained `line` replaced `other`
    /// by it.
    fn replaced(&self, line: Line, other: Line) -> bool {
        let of = self.replaced_by.range((other, 0)..(other + 1, 0));
        let made = self.lines[line].made;
        of.into_iter().any(|(_, by)| *by == made)
    }

    /// Determines which of the new lines were in the file earlier and had been
    /// removed. Runs of lines with almost no letters or digits are not enough
    /// to tell, unless the version is an undo or a redo (`puts_back`).
    fn back(
        &self,
        region: &[Line],
        on: &[bool],
        new: &[&[u8]],
        puts_back: bool,
    ) -> Vec<Option<Line>> {
        let gone: Vec<Line> = region.iter().copied().filter(|line| !on[*line]).collect();
        let mut back = vec![None; new.len()];
        if gone.is_empty() || new.is_empty() {
            return back;
        }
        let old = gone.iter().map(|line| &**self.lines[*line].last_text());
        let old: Vec<&[u8]> = old.collect();
        for (line, at) in Aligned::of(Algorithm::Myers, &old, new).pairs() {
            back[at] = Some(gone[line]);
        }
        let mut at = 0;
        while at < back.len() {
            let run = back[at..].iter().take_while(|one| one.is_some()).count();
            let says = puts_back
                || new[at..at + run]
                    .iter()
                    .any(|text| indents::has_words(text));
            if !says {
                back[at..at + run].fill(None);
            }
            at += run.max(1);
        }
        back
    }
}

/// Returns which lines of the old text are replaced by which of the new one. A
/// binary content is one line. If one of them is binary, all lines are replaced.
fn differences<'a>(old: &'a [u8], new: &'a [u8]) -> Differences<'a> {
    if !lines::is_binary(old) && !lines::is_binary(new) {
        return Differences::of(&Middle::of(old, new));
    }
    let split = |text: &'a [u8]| -> Vec<&'a [u8]> {
        match lines::is_binary(text) {
            true => vec![text],
            false => differences::lines(text).collect(),
        }
    };
    Differences::all(&split(old), split(new))
}
