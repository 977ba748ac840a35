//! Contents: lists of lines that can be told apart.

use std::sync::Arc;

use touchmark_proto::Hash;

/// A content; each number is a line.
pub type Text = Arc<[u32]>;

/// How somebody comes to a content from the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// New lines throughout, so many.
    Whole(u32, u32),
    /// A new line in the place of this one.
    Revise(u32, u32),
    /// A new line above this one.
    Insert(u32, u32),
    /// Without this line.
    Drop(u32),
    /// A new last line.
    Append(u32),
    /// What the file held so many contents ago.
    Back(usize),
    /// No line.
    Empty,
    /// The same once more.
    Same,
}

impl Make {
    /// `past` are the contents that were there, the newest last.
    pub fn of(self, there: Option<&Text>, past: &[Text]) -> Text {
        let mut lines = there.map_or_else(Vec::new, |text| text.to_vec());
        let at = |line: u32| line as usize % lines.len().max(1);
        match self {
            Self::Whole(token, count) => {
                return (0..count).map(|line| token * 10 + line).collect();
            }
            Self::Revise(line, token) if !lines.is_empty() => {
                let at = at(line);
                lines[at] = token * 10;
            }
            Self::Insert(line, token) => lines.insert(at(line), token * 10),
            Self::Drop(line) if !lines.is_empty() => {
                lines.remove(at(line));
            }
            Self::Append(token) | Self::Revise(_, token) => lines.push(token * 10),
            Self::Back(steps) => {
                if let Some(text) = past.len().checked_sub(steps + 1).map(|at| &past[at]) {
                    return text.clone();
                }
            }
            Self::Empty => lines.clear(),
            Self::Drop(_) | Self::Same => {}
        }
        lines.into()
    }
}

pub fn bytes(text: &[u32]) -> Vec<u8> {
    text.iter()
        .flat_map(|line| format!("l{line}\n").into_bytes())
        .collect()
}

pub fn hash(text: &[u32]) -> Hash {
    Hash::of(&bytes(text))
}
