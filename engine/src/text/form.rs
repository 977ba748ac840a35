//! How a file stores a text: the encoding, the byte order mark and the line
//! endings. A tool is given a text, and many tools keep the form that the file
//! has.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

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
        if memchr::memchr(0, file).is_some() {
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

    /// Returns the encoding's name, as the web's standards spell it (`UTF-8`,
    /// `windows-1252`).
    pub fn encoding(self) -> &'static str {
        self.encoding.name()
    }
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

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Windows => "\r\n",
            Self::Unix | Self::Mixed => "\n",
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
}
