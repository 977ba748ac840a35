//! The contents of the files. Each line has a place number, so that
//! corresponding lines of two contents are known without guessing.
//!
//! A line is `PLACE rREVISION`. In every content the places ascend. So the
//! common lines of two contents have the same order in both, and every line
//! diff pairs the same ones.

/// How a file's new content is made from its current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// A content that does not depend on the current one.
    Whole(u32),
    /// Gives the line at an index another revision. The size stays the same.
    Revise(usize, u32),
    /// Inserts a line.
    Insert(usize, u32),
    /// Removes a line.
    Drop(usize),
    /// Appends a line.
    Append(u32),
    /// Keeps the bytes.
    Same,
    /// Removes all bytes.
    Empty,
    /// Restores the content that the file had this number of contents ago.
    Back(usize),
}

/// Returns the place number of a line.
fn place(line: &str) -> u32 {
    line.split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

fn line(place: u32, revision: u32) -> String {
    format!("{place:03} r{revision:03}\n")
}

/// Returns the lines of a text, each with its line feed.
pub fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

impl Make {
    /// Returns the new content of a file with these past contents, the oldest
    /// first and the current one last. `Back` takes one of them.
    pub fn among(self, past: &[String]) -> String {
        match self {
            Self::Back(count) if past.len() > count => past[past.len() - 1 - count].clone(),
            _ => self.of(past.last().map_or("", |text| text)),
        }
    }

    /// Returns the new content of a file whose content is `text`. An index
    /// beyond the last line wraps around.
    pub fn of(self, text: &str) -> String {
        let mut lines = lines(text);
        let count = lines.len();
        match self {
            Self::Same | Self::Back(_) => {}
            Self::Empty => lines.clear(),
            Self::Whole(revision) => lines = (1..=6).map(|n| line(n * 100, revision)).collect(),
            Self::Append(revision) => {
                let last = lines.last().map_or(0, |last| place(last));
                lines.push(line(last + 10, revision));
            }
            // Without a line to change, the content is replaced by a new one.
            Self::Revise(_, revision) | Self::Insert(_, revision) if count == 0 => {
                return Self::Whole(revision).of(text);
            }
            Self::Drop(_) if count == 0 => {}
            Self::Revise(index, revision) => {
                lines[index % count] = line(place(&lines[index % count]), revision);
            }
            Self::Drop(index) => {
                lines.remove(index % count);
            }
            Self::Insert(index, revision) => {
                let index = index % count;
                let after = place(&lines[index]);
                let before = index.checked_sub(1).map_or(0, |i| place(&lines[i]));
                if after - before > 1 {
                    lines.insert(index, line(before + (after - before) / 2, revision));
                } else {
                    lines[index] = line(after, revision);
                }
            }
        }
        lines.concat()
    }
}

/// Returns the pairs of corresponding lines of two contents, in order: the
/// equal lines, and the changed lines between them where both sides have the
/// same number.
pub fn corresponding(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut from = (0, 0);
    let ends = equal(old, new).into_iter().chain([(old.len(), new.len())]);
    for to in ends {
        if to.0 - from.0 == to.1 - from.1 {
            pairs.extend((from.0..to.0).zip(from.1..to.1));
        }
        if to.0 < old.len() && to.1 < new.len() {
            pairs.push(to);
        }
        from = (to.0 + 1, to.1 + 1);
    }
    pairs
}

/// Returns the pairs of equal lines. Since the places ascend, the first match
/// is the only one.
pub fn equal(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut next = 0;
    for (i, text) in old.iter().enumerate() {
        if let Some(at) = new[next..].iter().position(|other| other == text) {
            pairs.push((i, next + at));
            next += at + 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::{Make, corresponding, lines};

    #[test]
    fn lines_correspond_by_place() {
        let one = Make::Whole(1).of("");
        let two = Make::Revise(1, 2).of(&one);
        let three = Make::Insert(0, 3).of(&two);
        let pairs = corresponding(&lines(&one), &lines(&three));
        assert_eq!(pairs, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
        let four = Make::Insert(1, 4).of(&Make::Revise(1, 5).of(&one));
        let pairs = corresponding(&lines(&one), &lines(&four));
        assert_eq!(
            pairs,
            [(0, 0), (2, 3), (3, 4), (4, 5), (5, 6)]
                .map(|(a, b)| (a, b))
                .as_slice()[..5]
        );
    }
}
