//! Cuts whole lines out of a file: as many as were requested and fit.

use base64::Engine as _;
use touchmark_proto::files::TextEncoding;
use touchmark_proto::{Error, ErrorCode, LineRange};

/// Returns the number of lines of a text: of line feeds, and one more if the
/// last line has none.
pub fn count_lines(text: &str) -> u32 {
    let feeds = text.bytes().filter(|byte| *byte == b'\n').count();
    let open = usize::from(!text.is_empty() && !text.ends_with('\n'));
    u32::try_from(feeds + open).unwrap_or(u32::MAX)
}

/// A part of a file, as an answer contains it.
pub struct Cut {
    /// The text, or base64 if the bytes are not UTF-8.
    pub text: String,
    /// The lines in `text`; `None` if there are none.
    pub range: Option<LineRange>,
    /// The number of bytes of the file in `text`.
    pub bytes: u64,
    /// More lines were requested than fit.
    pub truncated: bool,
    /// The encoding of `text`.
    pub encoding: TextEncoding,
}

/// Cuts whole lines out of a file with `lines` lines: those of `range`, as many
/// as fit in `limit` bytes. `bytes` are the file's bytes from the beginning of
/// line `first` to its end, or to one byte more than `limit`.
///
/// # Errors
///
/// `invalidParams` if the range begins after the file's end, `tooLarge` if its
/// first line alone does not fit.
pub fn cut(
    bytes: &[u8],
    first: u32,
    range: Option<LineRange>,
    lines: u32,
    limit: u64,
) -> Result<Cut, Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let wanted = range.unwrap_or(LineRange::ALL);
    if range.is_some() && wanted.start > lines.max(1) {
        return Err(Error::invalid(format!(
            "the range starts at line {}, the file has {lines}",
            wanted.start
        )));
    }
    let (mut start, mut end) = (None, bytes.len());
    let (mut line, mut at, mut last) = (first, 0usize, 0u32);
    let mut truncated = false;
    while at < bytes.len() && line <= wanted.end {
        let length = bytes[at..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(bytes.len() - at, |feed| feed + 1);
        if line >= wanted.start {
            let from = *start.get_or_insert(at);
            if at + length - from > limit {
                if last == 0 {
                    return Err(Error::new(
                        ErrorCode::TooLarge,
                        format!("line {line} alone is longer than one answer may be"),
                    )
                    .hint("read the file itself and record it with `file/read`"));
                }
                truncated = true;
                end = at;
                break;
            }
            last = line;
        }
        at += length;
        end = at;
        line = line.saturating_add(1);
    }
    let start = start.unwrap_or(end);
    let part = &bytes[start..end];
    let (text, encoding) = match std::str::from_utf8(part) {
        Ok(text) => (text.to_owned(), TextEncoding::Utf8),
        Err(_) => (
            base64::engine::general_purpose::STANDARD.encode(part),
            TextEncoding::Base64,
        ),
    };
    Ok(Cut {
        text,
        bytes: part.len() as u64,
        range: (last > 0).then_some(LineRange {
            start: wanted.start,
            end: last,
        }),
        truncated,
        encoding,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn part(
        text: &str,
        range: Option<(u32, u32)>,
        limit: u64,
    ) -> (String, Option<(u32, u32)>, bool) {
        let range = range.map(|(start, end)| LineRange { start, end });
        match cut(text.as_bytes(), 1, range, count_lines(text), limit) {
            Ok(cut) => (
                cut.text,
                cut.range.map(|range| (range.start, range.end)),
                cut.truncated,
            ),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn whole_lines_are_cut() {
        let text = "a\nbb\nccc";
        assert_eq!(part(text, None, 99), (text.into(), Some((1, 3)), false));
        assert_eq!(
            part(text, Some((2, 2)), 99),
            ("bb\n".into(), Some((2, 2)), false)
        );
        assert_eq!(
            part(text, Some((2, 9)), 99),
            ("bb\nccc".into(), Some((2, 3)), false)
        );
        assert_eq!(part(text, None, 5), ("a\nbb\n".into(), Some((1, 2)), true));
        assert_eq!(part("", None, 5), (String::new(), None, false));
        assert!(
            cut(
                text.as_bytes(),
                1,
                Some(LineRange { start: 4, end: 4 }),
                3,
                9
            )
            .is_err()
        );
        assert!(cut(text.as_bytes(), 1, None, 3, 1).is_err());
    }

    #[test]
    fn lines_are_cut_out_of_a_part_as_out_of_the_whole() {
        let text = "a\nbb\nccc\ndd\n";
        let range = Some(LineRange { start: 2, end: 3 });
        for limit in [0, 2, 3, 6, 7, 99] {
            let most = usize::try_from(limit).unwrap() + 1;
            let part = &text.as_bytes()[2..];
            let part = &part[..part.len().min(most)];
            let whole = cut(text.as_bytes(), 1, range, 4, limit);
            let cut = cut(part, 2, range, 4, limit);
            assert_eq!(
                cut.map(|cut| (cut.text, cut.range, cut.truncated)).ok(),
                whole.map(|cut| (cut.text, cut.range, cut.truncated)).ok(),
                "{limit}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_travel_as_base64() {
        let cut = cut(&[0xff, b'\n'], 1, None, 1, 9).unwrap();
        assert_eq!(
            (cut.text.as_str(), cut.encoding),
            ("/wo=", TextEncoding::Base64)
        );
    }
}
