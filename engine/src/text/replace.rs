//! The replacement for `file/edit`.

use std::borrow::Cow;

use touchmark_proto::writes::Matched;

use super::form::{Endings, Form, Lacks, in_endings_of};
use super::quotes;

/// The most bytes by which a replacement may make a file larger. A short text
/// that occurs everywhere, replaced by a long one, would fill the memory.
pub const GROWTH: usize = 16 << 20;

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

/// Why a text was not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReplaced {
    /// The file has the old text this number of times.
    Matches(u32),
    /// The file's encoding cannot store the new text.
    Lacks(Lacks),
    /// The file would grow by more than [`GROWTH`].
    TooLarge,
}

/// Replaces a text in a file. First looks for an exact match, then for one with
/// other line endings, then for one that differs in quotation marks. Each
/// occurrence is replaced once; text from a replacement is not replaced again.
/// A file in another encoding than UTF-8 stays in it.
///
/// # Errors
/// If there are no matches or too many, or if the file cannot store the result.
pub fn replace(file: &[u8], wanted: Wanted<'_>) -> Result<Replaced, NotReplaced> {
    if let Ok(text) = std::str::from_utf8(file) {
        return replace_in(text, wanted);
    }
    // The encoding is a guess, so the other lines must come back as they were.
    let decoded =
        Form::decode(file).filter(|(text, form)| form.encode(text).as_deref() == Some(file));
    let Some((text, form)) = decoded else {
        return replace_bytes(file, wanted);
    };
    let done = replace_in(&text, wanted)?;
    let result = String::from_utf8_lossy(&done.bytes);
    match form.encode(&result) {
        Some(bytes) => Ok(Replaced { bytes, ..done }),
        None => Err(NotReplaced::Lacks(form.lacks(&result))),
    }
}

fn replace_in(file: &str, wanted: Wanted<'_>) -> Result<Replaced, NotReplaced> {
    let (old, new) = wanted.without_marks();
    let all = wanted.all;
    if old.is_empty() {
        return Err(NotReplaced::Matches(0));
    }
    let endings = Endings::of(file.as_bytes());
    let exact = places(file.as_bytes(), old.as_bytes());
    if !exact.is_empty() {
        // Line endings within the match are those of the file already.
        let new = endings.adapt(new);
        return build(file.as_bytes(), &exact, all, Matched::Exact, |_| {
            new.clone()
        });
    }

    // Models write line feeds.
    let unix = |text: &str| text.replace("\r\n", "\n");
    let (plain_old, plain_new) = (unix(old), unix(new));
    let plain = Unix::of(file);
    let adapted: Vec<_> = places(plain.text.as_bytes(), plain_old.as_bytes());
    let adapted: Vec<_> = adapted
        .into_iter()
        .map(|place| plain.in_file(place))
        .collect();
    let in_endings = |(start, end): (usize, usize), new: &str| match endings {
        Endings::Mixed => in_endings_of(file.get(start..end).unwrap_or_default(), new),
        _ => endings.adapt(new),
    };
    let build = |places: &[_], new: &str| {
        build(
            file.as_bytes(),
            places,
            all,
            Matched::LineEndings,
            |place| in_endings(place, new),
        )
    };
    if !adapted.is_empty() {
        return build(&adapted, &plain_new);
    }
    // The file's last line has no newline, but the text to replace has one.
    if let Some(short) = plain_old.strip_suffix('\n').filter(|s| !s.is_empty())
        && plain.text.ends_with(short)
    {
        let new = plain_new.strip_suffix('\n').unwrap_or(&plain_new);
        let length = plain.text.len();
        let place = plain.in_file((length - short.len(), length));
        return build(&[place], new);
    }
    replace_quoted(file, &endings.adapt(old), &endings.adapt(new), all)
}

fn replace_quoted(file: &str, old: &str, new: &str, all: bool) -> Result<Replaced, NotReplaced> {
    let quoted = quotes::matches(old, file);
    build(
        file.as_bytes(),
        &quoted,
        all,
        Matched::Quotes,
        |(start, end)| quotes::adapt(file.get(start..end).unwrap_or_default(), old, new),
    )
}

/// Replaces a text in bytes that are no text as a whole.
fn replace_bytes(file: &[u8], wanted: Wanted<'_>) -> Result<Replaced, NotReplaced> {
    let (old, new) = wanted.without_marks();
    let places = places(file, old.as_bytes());
    build(file, &places, wanted.all, Matched::Exact, |_| {
        new.to_owned()
    })
}

impl<'a> Wanted<'a> {
    /// Returns both texts without a byte order mark: the file's own stays at its
    /// place, whether or not the model saw it.
    fn without_marks(self) -> (&'a str, &'a str) {
        let plain = |text: &'a str| text.trim_start_matches('\u{feff}');
        (plain(self.old), plain(self.new))
    }
}

/// A text with line feeds as line endings.
struct Unix<'a> {
    text: Cow<'a, str>,
    /// Where carriage returns were left out, in `text`.
    left_out: Vec<usize>,
}

impl<'a> Unix<'a> {
    fn of(file: &'a str) -> Self {
        let returns = memchr::memmem::find_iter(file.as_bytes(), b"\r\n");
        let left_out: Vec<usize> = returns
            .enumerate()
            .map(|(before, at)| at - before)
            .collect();
        let text = match left_out.is_empty() {
            true => Cow::Borrowed(file),
            false => Cow::Owned(file.replace("\r\n", "\n")),
        };
        Self { text, left_out }
    }

    /// Returns a place of this text in the file. A line ending is in it as a
    /// whole, or not at all.
    fn in_file(&self, (start, end): (usize, usize)) -> (usize, usize) {
        let before = |at: usize| at + self.left_out.partition_point(|left_out| *left_out < at);
        (before(start), before(end))
    }
}

fn build(
    file: &[u8],
    places: &[(usize, usize)],
    all: bool,
    matched: Matched,
    new: impl Fn((usize, usize)) -> String,
) -> Result<Replaced, NotReplaced> {
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let Some(first) = places.first() else {
        return Err(NotReplaced::Matches(0));
    };
    if count > 1 && !all {
        return Err(NotReplaced::Matches(count));
    }
    let before = &file[..first.0];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let mut bytes = Vec::with_capacity(file.len());
    let mut copied = 0;
    for &(start, end) in places {
        if bytes.len() > file.len() + GROWTH {
            return Err(NotReplaced::TooLarge);
        }
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

    fn edit(file: &str, old: &str, new: &str) -> Result<(String, Matched, u32, u32), NotReplaced> {
        run(file.as_bytes(), old, new, false)
    }

    fn run(
        file: &[u8],
        old: &str,
        new: &str,
        all: bool,
    ) -> Result<(String, Matched, u32, u32), NotReplaced> {
        let done = replace(file, Wanted { old, new, all })?;
        Ok((
            String::from_utf8(done.bytes).unwrap(),
            done.matched,
            done.count,
            done.line,
        ))
    }

    #[test]
    fn a_result_that_would_fill_the_memory_is_refused() {
        let (file, new) = ("a".repeat(1 << 20), "b".repeat(1 << 20));
        assert_eq!(
            run(file.as_bytes(), "a", &new, true),
            Err(NotReplaced::TooLarge)
        );
        assert_eq!(run(b"aa", "a", &new, true).unwrap().2, 2);
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
        assert_eq!(edit("a", "b", "c"), Err(NotReplaced::Matches(0)));
        assert_eq!(edit("a", "", "c"), Err(NotReplaced::Matches(0)));
    }

    #[test]
    fn several_matches_need_replace_all() {
        assert_eq!(edit("a a a", "a", "b"), Err(NotReplaced::Matches(3)));
        assert_eq!(
            run(b"a a a", "a", "b", true),
            Ok(("b b b".into(), Matched::Exact, 3, 1))
        );
        assert_eq!(edit("“a” “a”", "\"a\"", "b"), Err(NotReplaced::Matches(2)));
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
        let mixed = "one\r\ntwo\nthree\r\nfour\nfive";
        assert_eq!(
            edit(mixed, "two\nthree\n", "2\n3\n").unwrap().0,
            "one\r\n2\n3\r\nfour\nfive"
        );
        assert_eq!(
            edit(mixed, "one\ntwo\nthree", "one\nnew\ntwo\nthree")
                .unwrap()
                .0,
            "one\r\nnew\r\ntwo\nthree\r\nfour\nfive"
        );
        assert_eq!(
            edit(mixed, "three\nfour\n", "3\n").unwrap().0,
            "one\r\ntwo\n3\r\nfive"
        );
        assert_eq!(
            edit("a\r\nb\nlast", "b\nlast\n", "B\nend\n").unwrap().0,
            "a\r\nB\nend"
        );
    }

    #[test]
    fn an_encoding_stays() {
        let utf16: Vec<u8> = "\u{feff}a = 1\r\nb = 2\r\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let wanted = |old, new| Wanted {
            old,
            new,
            all: false,
        };
        let done = replace(&utf16, wanted("a = 1\nb", "a = 9\nb")).unwrap();
        let (text, _) = Form::decode(&done.bytes).unwrap();
        assert_eq!(text, "a = 9\r\nb = 2\r\n");
        assert_eq!(done.bytes.len(), utf16.len());
        let latin = b"gr\xfc\xdfe\nkey = 1\n\xe9t\xe9\n";
        let done = replace(latin, wanted("gr\u{fc}\u{df}e\nkey = 1", "\u{fc}\nkey = 2")).unwrap();
        assert_eq!(done.bytes, b"\xfc\nkey = 2\n\xe9t\xe9\n");
        let lacks = replace(latin, wanted("key", "\u{6f22}"));
        assert!(matches!(lacks, Err(NotReplaced::Lacks(lacks)) if lacks.character == '\u{6f22}'));
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
        let file = b"\0\xff foo \xe2\x80\x9cbar\xe2\x80\x9d";
        let wanted = |old| Wanted {
            old,
            new: "x",
            all: false,
        };
        assert_eq!(
            replace(file, wanted("foo")).unwrap().bytes,
            b"\0\xff x \xe2\x80\x9cbar\xe2\x80\x9d"
        );
        assert_eq!(
            replace(file, wanted("\"bar\"")),
            Err(NotReplaced::Matches(0))
        );
    }
}
