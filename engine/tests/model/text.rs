//! Contents: lists of distinguishable lines.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use touchmark_proto::Hash;

/// A content. Each number is a line.
pub type Text = Arc<[u32]>;

/// How a content is made from the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Make {
    /// New lines only. The fields are the token that their numbers are made of,
    /// and the number of lines.
    Whole(u32, u32),
    /// A new line replaces this one.
    Revise(u32, u32),
    /// A new line is inserted above this one.
    Insert(u32, u32),
    /// The line with this number is removed.
    Drop(u32),
    /// A new last line is appended.
    Append(u32),
    /// The content that the file had this number of contents ago.
    Back(usize),
    /// The empty content.
    Empty,
    /// The current content.
    Same,
}

impl Make {
    /// Returns the new content. `past` are the file's contents so far, the
    /// newest last.
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
