//! How a file stores a text: the encoding, the byte order mark and the line
//! endings. A tool is given a text, and many tools keep the form that the file
//! has.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::lines;

/// How a file stores a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    encoding: &'static Encoding,
    /// Whether the file begins with a byte order mark.
    has_mark: bool,
    endings: Endings,
}

impl Form {
    /// Decodes a file. Returns the text without its byte order mark and with the
    /// file's line endings; `None` for bytes that are no text.
    ///
    /// Bytes that are not UTF-8 and have no byte order mark have the encoding
    /// that browsers would assume.
    pub fn decode(file: &[u8]) -> Option<(Cow<'_, str>, Self)> {
        let form = |text: &str, encoding, has_mark| Self {
            encoding,
            has_mark,
            endings: Endings::of(text.as_bytes()),
        };
        let decoded = |encoding: &'static Encoding, bytes| {
            encoding.decode_without_bom_handling_and_without_replacement(bytes)
        };
        if let Some((encoding, length)) = Encoding::for_bom(file) {
            let text = decoded(encoding, file.get(length..)?)?;
            let form = form(&text, encoding, true);
            return Some((text, form));
        }
        if let Ok(text) = std::str::from_utf8(file) {
            return Some((Cow::Borrowed(text), form(text, UTF_8, false)));
        }
        if file.iter().any(|byte| is_no_text(*byte)) {
            return None;
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(file, true);
        let guessed = detector.guess(None, Utf8Detection::Deny);
        let (text, encoding) = match decoded(guessed, file) {
            Some(text) => (text, guessed),
            None => (decoded(WINDOWS_1252, file)?, WINDOWS_1252),
        };
        let form = form(&text, encoding, false);
        Some((text, form))
    }

    /// Returns a text as a file of this form stores it; `None` if the encoding
    /// lacks one of its characters.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        let text = text.trim_start_matches('\u{feff}');
        let text = self.endings.adapt(text);
        let mark = if self.has_mark { "\u{feff}" } else { "" };
        if self.encoding == UTF_8 {
            return Some([mark, &text].concat().into_bytes());
        }
        let units = mark.encode_utf16().chain(text.encode_utf16());
        if self.encoding == UTF_16LE {
            return Some(units.flat_map(u16::to_le_bytes).collect());
        }
        if self.encoding == UTF_16BE {
            return Some(units.flat_map(u16::to_be_bytes).collect());
        }
        let (bytes, _, lacks) = self.encoding.encode(&text);
        (!lacks).then(|| bytes.into_owned())
    }

    /// Returns whether every tool stores a text with line feeds in this form.
    pub fn is_plain(self) -> bool {
        self.encoding == UTF_8 && !self.has_mark && self.endings != Endings::Windows
    }

    /// Returns the first character of a text that the encoding lacks.
    pub(super) fn lacks(self, text: &str) -> Lacks {
        let mut one = [0; 4];
        let mut lacks = |c: &char| self.encoding.encode(c.encode_utf8(&mut one)).2;
        Lacks {
            character: text.chars().find(&mut lacks).unwrap_or_default(),
            encoding: self.encoding(),
        }
    }

    /// Returns the encoding's name, as the web's standards spell it (`UTF-8`,
    /// `windows-1252`).
    pub fn encoding(self) -> &'static str {
        self.encoding.name()
    }
}

/// Returns the text of a file in another encoding than UTF-8, and the
/// encoding's name; `None` for UTF-8, and for bytes that are no text.
pub fn decoded(file: &[u8]) -> Option<(Cow<'_, str>, &'static str)> {
    let (text, form) = Form::decode(file)?;
    (form.encoding != UTF_8).then(|| (text, form.encoding()))
}

/// A character that a file's encoding cannot store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacks {
    /// The first such character of the text.
    pub character: char,
    /// The encoding's name.
    pub encoding: &'static str,
}

/// Returns a new text as a file stores it that has this content now: with its
/// encoding, byte order mark and line endings. A file with both kinds of line
/// endings keeps them on the lines that stay. If the content is no text, the
/// new text is stored as UTF-8.
///
/// # Errors
/// If the file's encoding lacks a character of the text.
pub fn in_form_of(file: &[u8], text: &str) -> Result<Vec<u8>, Lacks> {
    let Some((old, form)) = Form::decode(file) else {
        return Ok(text.as_bytes().to_vec());
    };
    let text = match form.endings {
        Endings::Mixed if old.contains('\n') => Cow::Owned(in_endings_of(&old, text)),
        _ => Cow::Borrowed(text),
    };
    form.encode(&text).ok_or_else(|| form.lacks(&text))
}

/// Returns a new text with the line endings that the lines of the old text have.
/// A line that takes the place of another gets its ending, and an additional
/// line that of the line before.
pub(super) fn in_endings_of(old: &str, new: &str) -> String {
    let unix = |text: &str| text.replace("\r\n", "\n");
    let ending = |line: &str| match line {
        line if line.ends_with("\r\n") => "\r\n",
        line if line.ends_with('\n') => "\n",
        _ => "",
    };
    let endings: Vec<&str> = old.split_inclusive('\n').map(ending).collect();
    let (old, new) = (unix(old), unix(new));
    // Texts that are not compared are taken line by line.
    let hunks = lines::places(old.as_bytes(), new.as_bytes()).unwrap_or_default();
    let mut hunks = hunks.into_iter().peekable();
    let first = endings.iter().find(|ending| !ending.is_empty());
    let mut before = first.copied().unwrap_or("\n");
    let mut text = String::with_capacity(new.len() + endings.len());
    // Lines count from 0, the hunks' from 1.
    let mut in_old = 0;
    for (number, line) in (0_u32..).zip(new.split_inclusive('\n')) {
        while let Some(hunk) = hunks.next_if(|hunk| number + 1 >= hunk.new_start + hunk.new_lines) {
            in_old = hunk.old_start - 1 + hunk.old_lines;
        }
        let hunk = hunks.peek().filter(|hunk| number + 1 >= hunk.new_start);
        let place = match hunk {
            None => Some(in_old),
            Some(hunk) => {
                let within = number + 1 - hunk.new_start;
                (within < hunk.old_lines).then(|| hunk.old_start - 1 + within)
            }
        };
        in_old += u32::from(hunk.is_none());
        let own = place.and_then(|place| endings.get(usize::try_from(place).ok()?));
        let own = own.filter(|ending| !ending.is_empty());
        before = own.copied().unwrap_or(before);
        match line.strip_suffix('\n') {
            Some(line) => text.extend([line, before]),
            None => text.push_str(line),
        }
    }
    text
}

/// Returns whether a byte is in no text of an encoding that has ASCII in it.
fn is_no_text(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b)
}

/// Returns a file's text without a byte order mark, and with line feeds as line
/// endings; `None` for bytes that are no text. Two files with the same result
/// differ in their form alone. Lines keep their numbers.
pub fn plain(file: &[u8]) -> Option<Cow<'_, str>> {
    let (text, _) = Form::decode(file)?;
    Some(match memchr::memmem::find(text.as_bytes(), b"\r\n") {
        None => text,
        Some(_) => Cow::Owned(text.replace("\r\n", "\n")),
    })
}

/// The line endings of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endings {
    /// Line feeds, or no line ending at all.
    Unix,
    /// Carriage return and line feed, everywhere.
    Windows,
    /// Both kinds of line endings. Texts are not adapted to such a file.
    Mixed,
}

impl Endings {
    pub(super) fn of(file: &[u8]) -> Self {
        let mut counts = (0_usize, 0_usize);
        for at in memchr::memchr_iter(b'\n', file) {
            if at > 0 && file[at - 1] == b'\r' {
                counts.1 += 1;
            } else {
                counts.0 += 1;
            }
        }
        match counts {
            (0, 0) => Self::Mixed,
            (_, 0) => Self::Unix,
            (0, _) => Self::Windows,
            _ => Self::Mixed,
        }
    }

    /// Returns a text with the file's line endings.
    pub(super) fn adapt(self, text: &str) -> String {
        match self {
            Self::Unix => text.replace("\r\n", "\n"),
            Self::Windows => text.replace("\r\n", "\n").replace('\n', "\r\n"),
            Self::Mixed => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_text_goes_back_into_the_form_it_came_from() {
        let utf16 = |text: &str| -> Vec<u8> {
            let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        for (file, name) in [
            (b"a\nb\n".to_vec(), "UTF-8"),
            ("\u{feff}a\r\nb\r\n".into(), "UTF-8"),
            (b"Stra\xdfe = 1\r\nTest\r\n".to_vec(), "windows-1252"),
            (utf16("a\r\nb"), "UTF-16LE"),
        ] {
            let (text, form) = Form::decode(&file).unwrap();
            assert_eq!(form.encoding(), name);
            assert_eq!(form.encode(&text).unwrap(), file, "{name}");
            // Models write line feeds.
            let text = plain(&file).unwrap();
            assert!(!text.contains('\r') && !text.contains('\u{feff}'));
            assert_eq!(form.encode(&text).unwrap(), file, "{name}");
            assert_eq!(form.is_plain(), file == b"a\nb\n");
        }
    }

    #[test]
    fn what_is_no_text_or_cannot_be_stored_is_none() {
        assert!(Form::decode(b"\x89PNG\x00\xff").is_none());
        let (_, form) = Form::decode(b"Stra\xdfe").unwrap();
        assert_eq!(form.encode("\u{6f22}"), None);
        let (text, form) = Form::decode(b"a\r\nb\nc").unwrap();
        // Mixed line endings stay.
        assert_eq!(form.encode(&text).unwrap(), b"a\r\nb\nc");
    }

    #[test]
    fn a_new_text_takes_the_form_of_the_old_one() {
        let of = |file: &[u8], text| in_form_of(file, text);
        assert_eq!(
            of("\u{feff}a\r\nb\r\n".as_bytes(), "a\nc\n"),
            Ok("\u{feff}a\r\nc\r\n".into())
        );
        assert_eq!(
            of(b"Stra\xdfe\n", "Stra\u{df}e 2\n"),
            Ok(b"Stra\xdfe 2\n".to_vec())
        );
        let lacks = Lacks {
            character: '\u{6f22}',
            encoding: "windows-1252",
        };
        assert_eq!(of(b"Stra\xdfe\n", "a \u{6f22}\n"), Err(lacks));
        // A file that is no text has no form.
        assert_eq!(of(b"\x89PNG\x00\xff", "\u{e9}"), Ok("\u{e9}".into()));
        assert_eq!(of(b"\x01\xff", "\u{e9}"), Ok("\u{e9}".into()));
    }

    #[test]
    fn lines_that_stay_keep_their_endings() {
        let mixed = b"one\r\ntwo\nthree\r\nfour\nfive";
        let of = |text: &str| String::from_utf8(in_form_of(mixed, text).unwrap()).unwrap();
        assert_eq!(
            of("one\ntwo\nthree\nfour\nfive"),
            "one\r\ntwo\nthree\r\nfour\nfive"
        );
        assert_eq!(
            of("0\none\nTWO\nthree\nmore\nfour\nfive\n"),
            "0\r\none\r\nTWO\nthree\r\nmore\r\nfour\nfive\n"
        );
        assert_eq!(of("three\nx\n"), "three\r\nx\n");
        assert_eq!(of(""), "");
        assert_eq!(in_endings_of("", "a\nb"), "a\nb");
    }
}
