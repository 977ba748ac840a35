//! Positions in a text, in the encodings of the protocol, and changes of a text.
//! Line ends are line feeds here, whatever the file has.

use super::messages::{Change, Position, Range};

/// The unit of the characters of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// Returns the encoding to use with an editor that offers these.
    pub(super) fn choose<'a>(mut offered: impl Iterator<Item = &'a str>) -> Self {
        match offered.any(|one| one == "utf-8") {
            true => Self::Utf8,
            false => Self::Utf16,
        }
    }

    /// Returns the encoding's name in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
        }
    }

    fn units(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
        }
    }

    /// Returns the length of a line.
    pub(super) fn length(self, line: &str) -> u32 {
        let units = line.chars().map(|one| self.units(one)).sum::<usize>();
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Returns the number of bytes before a character of a line. A place within
    /// a character is the one before it, one after the line is its end.
    fn bytes(self, line: &str, character: u32) -> usize {
        let mut left = character as usize;
        for (at, one) in line.char_indices() {
            match left.checked_sub(self.units(one)) {
                Some(rest) if left > 0 => left = rest,
                _ => return at,
            }
        }
        line.len()
    }
}

/// Returns a text with line feeds as its only line ends, and without a byte
/// order mark.
pub(super) fn normal(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.replace("\r\n", "\n")
}

/// Returns a line of a text, counted from 0, without its line feed; `None` if
/// the text has fewer lines.
pub(super) fn line(text: &str, number: u32) -> Option<&str> {
    text.split('\n').nth(number as usize)
}

/// Returns the number of bytes before a position. A position after the text is
/// its end.
fn offset(text: &str, position: Position, encoding: Encoding) -> usize {
    let start = match position.line {
        0 => Some(0),
        line => {
            let mut ends = text.match_indices('\n');
            ends.nth(line as usize - 1).map(|(at, _)| at + 1)
        }
    };
    let Some(start) = start else {
        return text.len();
    };
    let line = text[start..].split('\n').next().unwrap_or_default();
    start + encoding.bytes(line, position.character)
}

/// Applies changes, each to the result of the one before it.
pub(super) fn apply(text: &mut String, changes: &[Change], encoding: Encoding) {
    for change in changes {
        let new = normal(&change.text);
        let Some(Range { start, end }) = change.range else {
            *text = new;
            continue;
        };
        let start = offset(text, start, encoding);
        let end = offset(text, end, encoding).max(start);
        text.replace_range(start..end, &new);
        join_line_end(text, start + new.len());
        join_line_end(text, start);
    }
}

/// Makes one line end of a carriage return and a line feed on the two sides of a
/// place. Some editors insert the carriage returns alone when they load a file
/// again whose line ends another program has converted.
fn join_line_end(text: &mut String, at: usize) {
    if text[..at].ends_with('\r') && text[at..].starts_with('\n') {
        text.remove(at - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn characters_are_counted_in_the_agreed_unit() {
        // One, two, three and four bytes; the last one is two units of UTF-16.
        let text = "aé\n€𝄞b\n";
        let byte = |position, encoding| offset(text, position, encoding);
        assert_eq!(byte(at(0, 2), Encoding::Utf16), 3);
        assert_eq!(byte(at(0, 3), Encoding::Utf8), 3);
        assert_eq!(byte(at(1, 1), Encoding::Utf16), 7);
        assert_eq!(byte(at(1, 3), Encoding::Utf16), 11);
        assert_eq!(byte(at(1, 3), Encoding::Utf8), 7);
        assert_eq!(byte(at(1, 7), Encoding::Utf8), 11);
        assert_eq!(Encoding::Utf16.length("€𝄞b"), 4);
        assert_eq!(Encoding::Utf8.length("€𝄞b"), 8);
    }

    #[test]
    fn a_place_that_is_none_is_the_one_before_it() {
        let text = "𝄞\nab";
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            assert_eq!(offset(text, at(0, 1), encoding), 0);
            assert_eq!(offset(text, at(0, 99), encoding), 4);
            assert_eq!(offset(text, at(1, 99), encoding), 7);
            assert_eq!(offset(text, at(9, 0), encoding), 7);
            assert_eq!(offset("", at(0, 0), encoding), 0);
        }
    }

    #[test]
    fn each_change_begins_with_the_result_of_the_last() {
        let mut text = "one\ntwo\n".to_owned();
        let change = |range: Option<(Position, Position)>, text: &str| Change {
            range: range.map(|(start, end)| Range { start, end }),
            text: text.to_owned(),
        };
        let changes = [
            change(Some((at(0, 3), at(1, 0))), " and "),
            change(Some((at(0, 8), at(0, 11))), "2\r\n3"),
            change(Some((at(5, 5), at(0, 0))), "end"),
        ];
        apply(&mut text, &changes, Encoding::Utf16);
        assert_eq!(text, "one and 2\n3\nend");
        apply(
            &mut text,
            &[change(None, "\u{feff}new\r\n")],
            Encoding::Utf8,
        );
        assert_eq!(text, "new\n");
    }

    #[test]
    fn a_carriage_return_before_a_line_feed_is_no_text() {
        let insert = |text: &str, (line, character), new: &str| {
            let (mut text, place) = (text.to_owned(), at(line, character));
            let range = Some(Range {
                start: place,
                end: place,
            });
            let new = new.to_owned();
            apply(&mut text, &[Change { range, text: new }], Encoding::Utf8);
            text
        };
        assert_eq!(insert("a\nb\n", (0, 1), "\r"), "a\nb\n");
        assert_eq!(insert("a\nb\n", (1, 1), "c\r"), "a\nbc\n");
        // Not before a line feed it is text.
        assert_eq!(insert("a\rb\n", (0, 2), "\n"), "a\nb\n");
        assert_eq!(insert("ab\n", (0, 1), "\r"), "a\rb\n");
    }

    #[test]
    fn utf_8_is_chosen_if_the_editor_knows_it() {
        let choose = |offered: &[&str]| Encoding::choose(offered.iter().copied());
        assert_eq!(choose(&["utf-16", "utf-8"]), Encoding::Utf8);
        assert_eq!(choose(&["utf-32", "utf-16"]), Encoding::Utf16);
        assert_eq!(choose(&[]), Encoding::Utf16);
    }
}
