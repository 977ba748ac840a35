//! What a text itself tells of how it came about.

use std::borrow::Cow;

use super::PAGE;
use crate::past::converted::converted;

/// Returns whether a text may have been seen while `whole` was written: it is
/// empty, or consists of the first pages.
pub(super) fn is_begun(text: &[u8], whole: &[u8]) -> bool {
    text.len().is_multiple_of(PAGE) && text.len() < whole.len() && whole.starts_with(text)
}

/// Returns a text with what git itself converts as git stores it.
pub(super) fn as_stored(bytes: &[u8]) -> Cow<'_, [u8]> {
    let stored = converted(bytes).pop();
    stored.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Returns the lines of a text, without white space at their ends.
pub(super) fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end)
}

/// Returns whether a text has the marks of a conflict.
pub(super) fn is_conflict(text: &[u8]) -> bool {
    let marks: [&[u8]; 3] = [b"<<<<<<< ", b"=======", b">>>>>>> "];
    let mut left = marks.iter().peekable();
    for line in text.split(|byte| *byte == b'\n') {
        left.next_if(|mark| line.starts_with(mark));
    }
    left.peek().is_none()
}
