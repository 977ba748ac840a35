//! The replacement for `file/edit`.

use touchmark_proto::writes::Matched;

use super::form::Endings;
use super::quotes;

/// The replacement that an edit requests.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The text to replace.
    pub old: &'a str,
    /// The text that replaces `old`.
    pub new: &'a str,
    /// Replace every occurrence; else `old` must occur exactly once.
    pub all: bool,
}

/// A file after the replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The content of the file after the replacement.
    pub bytes: Vec<u8>,
    /// How the old text was found.
    pub matched: Matched,
    /// The number of replacements.
    pub count: u32,
    /// The line of the first replacement, from 1.
    pub line: u32,
}

/// Replaces a text in a file. First looks for an exact match, then for one with
/// the file's line endings, then for one that differs in quotation marks. Each
/// occurrence is replaced once; text from a replacement is not replaced again.
///
/// # Errors
/// The number of matches, if there are none or too many.
pub fn replace(file: &[u8], wanted: Wanted<'_>) -> Result<Replaced, u32> {
    // The byte order mark stays at its place, whether or not the model saw it.
    let old = wanted.old.trim_start_matches('\u{feff}');
    let new = wanted.new.trim_start_matches('\u{feff}');
    let all = wanted.all;
    if old.is_empty() {
        return Err(0);
    }
    let endings = Endings::of(file);
    let exact = places(file, old.as_bytes());
    if !exact.is_empty() {
        // Line endings within the match are those of the file already.
        let new = endings.adapt(new);
        return build(file, &exact, all, Matched::Exact, |_| new.clone());
    }

    // Models write line feeds.
    let (old, new) = (endings.adapt(old), endings.adapt(new));
    let adapted = places(file, old.as_bytes());
    if !adapted.is_empty() {
        return build(file, &adapted, all, Matched::LineEndings, |_| new.clone());
    }
    // The file's last line has no newline, but the text to replace has one.
    if let Some(short) = old.strip_suffix(endings.text()).filter(|s| !s.is_empty())
        && file.ends_with(short.as_bytes())
    {
        let new = new.strip_suffix(endings.text()).unwrap_or(&new).to_owned();
        let place = (file.len() - short.len(), file.len());
        return build(file, &[place], all, Matched::LineEndings, |_| new.clone());
    }

    // Quotation marks are characters, and bytes that are not UTF-8 have none.
    let Ok(text) = std::str::from_utf8(file) else {
        return Err(0);
    };
    let quoted = quotes::matches(&old, text);
    build(file, &quoted, all, Matched::Quotes, |(start, end)| {
        quotes::adapt(text.get(start..end).unwrap_or_default(), &old, &new)
    })
}

fn build(
    file: &[u8],
    places: &[(usize, usize)],
    all: bool,
    matched: Matched,
    new: impl Fn((usize, usize)) -> String,
) -> Result<Replaced, u32> {
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let Some(first) = places.first() else {
        return Err(0);
    };
    if count > 1 && !all {
        return Err(count);
    }
    let before = &file[..first.0];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let mut bytes = Vec::with_capacity(file.len());
    let mut copied = 0;
    for &(start, end) in places {
        bytes.extend_from_slice(&file[copied..start]);
        bytes.extend_from_slice(new((start, end)).as_bytes());
        copied = end;
    }
    bytes.extend_from_slice(&file[copied..]);
    Ok(Replaced {
        bytes,
        matched,
        count,
        line: u32::try_from(line).unwrap_or(u32::MAX),
    })
}

/// Returns every place of `needle`. No two overlap.
fn places(file: &[u8], needle: &[u8]) -> Vec<(usize, usize)> {
    if needle.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(file, needle)
        .map(|start| (start, start + needle.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn edit(file: &str, old: &str, new: &str) -> Result<(String, Matched, u32, u32), u32> {
        run(file.as_bytes(), old, new, false)
    }

    fn run(
        file: &[u8],
        old: &str,
        new: &str,
        all: bool,
    ) -> Result<(String, Matched, u32, u32), u32> {
        let done = replace(file, Wanted { old, new, all })?;
        Ok((
            String::from_utf8(done.bytes).unwrap(),
            done.matched,
            done.count,
            done.line,
        ))
    }

    #[test]
    fn one_match_is_replaced_once() {
        // A naive implementation replaces twice if the new text contains the
        // old one.
        assert_eq!(
            edit("a\nfoo\n", "foo", "foofoo"),
            Ok(("a\nfoofoo\n".into(), Matched::Exact, 1, 2))
        );
        // `$&` has no special meaning.
        assert_eq!(edit("x", "x", "$&").unwrap().0, "$&");
        assert_eq!(edit("a", "b", "c"), Err(0));
        assert_eq!(edit("a", "", "c"), Err(0));
    }

    #[test]
    fn several_matches_need_replace_all() {
        assert_eq!(edit("a a a", "a", "b"), Err(3));
        assert_eq!(
            run(b"a a a", "a", "b", true),
            Ok(("b b b".into(), Matched::Exact, 3, 1))
        );
        assert_eq!(edit("“a” “a”", "\"a\"", "b"), Err(2));
        assert_eq!(
            run("“a” “a”".as_bytes(), "\"a\"", "\"b\"", true),
            Ok(("“b” “b”".into(), Matched::Quotes, 2, 1))
        );
    }

    #[test]
    fn line_endings_stay() {
        assert_eq!(
            edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz"),
            Ok(("x\r\ny\r\nz\r\nc\r\n".into(), Matched::LineEndings, 1, 1))
        );
        // An exact match within one line; the new text has several lines.
        assert_eq!(
            edit("a\r\nb\r\n", "b", "b\nc"),
            Ok(("a\r\nb\r\nc\r\n".into(), Matched::Exact, 1, 2))
        );
        assert_eq!(edit("a\nb\n", "a\r\nb", "x\r\ny").unwrap().0, "x\ny\n");
        // A file with both kinds of line endings is left as it is.
        assert_eq!(edit("a\r\nb\nc", "b", "b\nd").unwrap().0, "a\r\nb\nd\nc");
    }

    #[test]
    fn the_mark_and_the_missing_newline_stay() {
        assert_eq!(
            edit("\u{feff}first\nlast", "\u{feff}first\n", "1\n")
                .unwrap()
                .0,
            "\u{feff}1\nlast"
        );
        assert_eq!(
            edit("\u{feff}first\nlast", "first", "1").unwrap().0,
            "\u{feff}1\nlast"
        );
        assert_eq!(
            edit("first\nlast", "\u{feff}first", "1").unwrap().0,
            "1\nlast"
        );
        assert_eq!(
            edit("a\nlast", "last\n", "end\n"),
            Ok(("a\nend".into(), Matched::LineEndings, 1, 2))
        );
    }

    #[test]
    fn quotation_marks_come_last() {
        assert_eq!(
            edit("x\nsay “hi”\n", "say \"hi\"", "say \"bye\""),
            Ok(("x\nsay “bye”\n".into(), Matched::Quotes, 1, 2))
        );
        // An exact match elsewhere is preferred.
        assert_eq!(edit("“a” \"a\"", "\"a\"", "b").unwrap().0, "“a” b");
        // Quotation marks and line endings differ at the same time.
        assert_eq!(
            edit("“a”\r\n“b”\r\n", "\"a\"\n\"b\"", "\"c\"").unwrap().0,
            "“c”\r\n"
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_matched_as_bytes() {
        let file = b"\xff\xfe foo \xe2\x80\x9cbar\xe2\x80\x9d";
        let wanted = |old| Wanted {
            old,
            new: "x",
            all: false,
        };
        assert_eq!(
            replace(file, wanted("foo")).unwrap().bytes,
            b"\xff\xfe x \xe2\x80\x9cbar\xe2\x80\x9d"
        );
        assert_eq!(replace(file, wanted("\"bar\"")), Err(0));
    }
}
