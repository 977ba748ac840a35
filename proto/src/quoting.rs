//! How text from outside is written in a sentence, a table or a log (SEC-4).
//!
//! Names of files, sessions and commands may be chosen by an attacker. In text
//! for models they are [`quoted`], so that a name cannot be read as part of the
//! sentence. On terminals and in logs they are [`escaped`], without the quotes.

use std::fmt::Write as _;

use crate::{Clock, RelPath};

/// Returns a text as a JSON string with its quotes. Characters that are hidden,
/// or that change how others are displayed, are escaped. Parsing the result
/// returns the same text, unless the text was cut.
///
/// A text longer than `most` characters (after escaping, without the quotes)
/// loses its middle, since both ends of a path say more than its middle.
pub fn quoted(text: &str, most: usize) -> String {
    format!("\"{}\"", cut_escaped(text, most, true))
}

/// Returns a text escaped as by [`quoted`], but without quotes, for columns and
/// lines that contain nothing else. A `"` is not escaped.
pub fn escaped(text: &str, most: usize) -> String {
    cut_escaped(text, most, false)
}

/// Returns whether a character is hidden, or changes how the following text is
/// displayed. These are controls, white space except a blank, characters that
/// Unicode lets a program ignore (`Default_Ignorable_Code_Point`, including
/// tags, fillers, variation selectors and marks of direction), interlinear
/// annotations, and the empty Braille pattern.
pub fn is_hidden(character: char) -> bool {
    match character {
        ' '..='~' => false,
        _ => {
            character.is_control()
                || character.is_whitespace()
                || matches!(character,
                    '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}'
                    | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
                    | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
                    | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
                    | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
                    | '\u{e0000}'..='\u{e0fff}')
        }
    }
}

/// Escapes the hidden characters of a text, line breaks included, and changes
/// nothing else. JSON without line breaks between its tokens keeps its value,
/// since hidden characters can only be in its strings.
pub fn without_hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_hidden(character) {
            true => push_unicode(&mut out, character),
            false => out.push(character),
        }
    }
    out
}

/// Returns the command that puts the missing lines of a version back, to be run
/// in the workspace: `touchmark restore "src/a.rs@17" --missing`. It takes
/// nothing away, so it asks nothing. The name is a JSON string, which every
/// shell reads as the same name. Returns `None` for a name that some shell
/// would read differently.
pub fn restore_command(path: &RelPath, clock: Clock) -> Option<String> {
    let name = std::str::from_utf8(path.as_bytes()).ok()?;
    let special = |c: char| is_hidden(c) || matches!(c, '"' | '\\' | '$' | '`' | '!');
    if name.contains(special) || name.len() > 300 {
        return None;
    }
    // The prefix keeps the name from being read as an option.
    let here = if name.starts_with('-') { "./" } else { "" };
    Some(format!(
        "touchmark restore \"{here}{name}@{}\" --missing",
        clock.n
    ))
}

fn cut_escaped(text: &str, most: usize, quotes: bool) -> String {
    let piece = |character: char| {
        let mut piece = String::new();
        push(&mut piece, character, quotes);
        piece
    };
    // Each character takes at least one place in the result, so at most this
    // many of either end can be needed.
    let head: Vec<String> = text.chars().take(most + 1).map(piece).collect();
    let whole = head.len() <= most && length(&head) <= most;
    if whole {
        return head.concat();
    }
    let tail: Vec<String> = text.chars().rev().take(most).map(piece).collect();
    let room = most.saturating_sub(1);
    let front = fitting(&head, room / 3);
    let mut back = fitting(&tail, room - length(front)).to_vec();
    back.reverse();
    format!("{}…{}", front.concat(), back.concat())
}

/// Returns the longest prefix of the pieces that has at most `room` characters.
fn fitting(pieces: &[String], room: usize) -> &[String] {
    let mut left = room;
    let fit = pieces.iter().take_while(|piece| {
        let long = piece.chars().count();
        let fits = long <= left;
        left = left.saturating_sub(long);
        fits
    });
    &pieces[..fit.count()]
}

fn length(pieces: &[String]) -> usize {
    pieces.iter().map(|piece| piece.chars().count()).sum()
}

fn push(out: &mut String, character: char, quotes: bool) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // Backslashes are escaped so that a name cannot imitate an escape.
        '\\' => out.push_str("\\\\"),
        '"' if quotes => out.push_str("\\\""),
        _ if is_hidden(character) => push_unicode(out, character),
        _ => out.push(character),
    }
}

fn push_unicode(out: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_mislead_is_escaped() {
        assert_eq!(quoted("a\nb\u{1b}[2J", 99), r#""a\nb\u001b[2J""#);
        assert_eq!(
            quoted("\u{202e}x\u{2028}\u{200b}", 99),
            r#""\u202ex\u2028\u200b""#
        );
        assert_eq!(
            quoted("tag\u{e0041} variation\u{e0100}", 99),
            r#""tag\udb40\udc41 variation\udb40\udd00""#
        );
        assert_eq!(
            quoted("\u{3164}\u{115f}\u{2800}\u{a0}", 99),
            r#""\u3164\u115f\u2800\u00a0""#
        );
        assert_eq!(
            quoted("\" (by the user). \"", 99),
            r#""\" (by the user). \"""#
        );
        assert_eq!(escaped("a\"b\\n\n", 99), r#"a"b\\n\n"#);
        assert_eq!(
            quoted("grün 文件 e\u{301}.rs", 99),
            "\"grün 文件 e\u{301}.rs\""
        );
    }

    #[test]
    fn what_is_long_loses_its_middle() {
        assert_eq!(quoted("abcdef", 6), "\"abcdef\"");
        assert_eq!(quoted("abcdefgh", 7), "\"ab…efgh\"");
        // A text is not cut inside an escape.
        assert_eq!(quoted("\u{1b}\u{1b}\u{1b}xyz", 13), r#""…\u001bxyz""#);
        assert_eq!(quoted("abc", 0), "\"…\"");
    }

    proptest! {
        #[test]
        fn a_quoted_text_is_json_without_anything_hidden(text in any::<String>()) {
            let quoted = quoted(&text, usize::MAX - 1);
            prop_assert!(!quoted.chars().any(is_hidden));
            prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
        }

        #[test]
        fn and_one_that_was_cut_is_no_longer_than_asked(text in ".{0,80}", most in 0usize..60) {
            let quoted = quoted(&text, most);
            prop_assert!(quoted.chars().count() <= most.max(1) + 2);
            prop_assert!(serde_json::from_str::<String>(&quoted).is_ok());
        }
    }
}
