//! Finds which lines of one text are in another (SEEN-8). It is slow, since it
//! looks at every longest correspondence in order.

use std::collections::BTreeSet;

use touchmark_engine::{Difference, Hunk, TextPair};

/// For each line of the older text its index in the newer one; `None` if it is
/// not there. Both count from 0.
pub type Match = Vec<Option<usize>>;

/// The maximum number of correspondences that are looked at. With more, the
/// texts repeat one line too often.
const MOST: usize = 100;

pub fn matches(old: &[u32], new: &[u32]) -> Vec<Match> {
    let mut longest = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i][j] = match old[i] == new[j] {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let mut all = Vec::new();
    let mut begun = vec![(vec![None; old.len()], 0, 0)];
    while let Some((done, i, j)) = begun.pop() {
        if longest[i][j] == 0 {
            all.push(done);
            if all.len() == MOST {
                break;
            }
            continue;
        }
        for a in i..old.len() {
            for b in j..new.len() {
                if old[a] == new[b] && longest[a + 1][b + 1] + 1 == longest[i][j] {
                    let mut next: Match = done.clone();
                    next[a] = Some(b);
                    begun.push((next, a + 1, b + 1));
                }
            }
        }
    }
    all
}

/// Returns whether the lines on record, counted from 1, are in the newer text
/// by this correspondence, and lines next to each other still are.
pub fn unchanged(held: &BTreeSet<u32>, found: &Match) -> bool {
    let place = |line: u32| found.get(line as usize - 1).copied().flatten();
    held.iter().all(|line| {
        let here = place(*line);
        let next = held.contains(&(line + 1)).then(|| place(line + 1));
        here.is_some() && next.is_none_or(|next| next == here.map(|here| here + 1))
    })
}

/// Returns what a shell answers about two texts: one of the right
/// correspondences.
pub fn difference(pair: TextPair, old: &[u32], new: &[u32]) -> Difference {
    let found = matches(old, new).pop().unwrap_or_default();
    let mut hunks = Vec::new();
    let (mut i, mut j) = (0, 0);
    let ends = found.iter().enumerate();
    let ends = ends.filter_map(|(a, b)| Some((a, (*b)?)));
    for (a, b) in ends.chain([(old.len(), new.len())]) {
        if (i, j) != (a, b) {
            hunks.push(Hunk {
                old_start: i as u32 + 1,
                old_lines: (a - i) as u32,
                new_start: j as u32 + 1,
                new_lines: (b - j) as u32,
            });
        }
        (i, j) = (a + 1, b + 1);
    }
    Difference {
        pair,
        old_lines: old.len() as u32,
        hunks,
    }
}
