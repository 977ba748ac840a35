//! Quotation marks: a model may write straight ones where the file has curly
//! ones, or the other way round. Each mark is one character in both, so
//! positions in code points are the same.

use touchmark_proto::writes::QuotesFound;

/// Returns the straight mark for a curly or low one, or `None` for another
/// character.
pub(crate) fn straight(c: char) -> Option<char> {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201A}' | '\u{201B}' => Some('\''),
        '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{201F}' => Some('"'),
        _ => None,
    }
}

/// Returns the text with straight quotation marks.
pub fn normalize(text: &str) -> String {
    text.chars().map(|c| straight(c).unwrap_or(c)).collect()
}

/// Returns where `needle` is in `haystack`, ignoring the kind of quotation
/// marks. An exact match is preferred, wherever it is.
pub fn find(needle: &str, haystack: &str) -> Option<QuotesFound> {
    let (start, end) = match haystack.find(needle) {
        Some(start) => (start, start + needle.len()),
        None => matches(needle, haystack).into_iter().next()?,
    };
    let original = haystack.get(start..end)?;
    Some(QuotesFound {
        matched: true,
        position: u32::try_from(haystack.get(..start)?.chars().count()).unwrap_or(u32::MAX),
        original_match: original.to_owned(),
        normalized_match: normalize(original),
    })
}

/// Returns every place of `needle` in `haystack` as byte positions, ignoring
/// the kind of quotation marks. No two overlap. Returns none for an empty
/// needle.
pub(crate) fn matches(needle: &str, haystack: &str) -> Vec<(usize, usize)> {
    let needle = normalize(needle);
    if needle.is_empty() {
        return Vec::new();
    }
    // A curly mark has three bytes and a straight one has one. So each curly
    // mark before a place moves it two bytes further in the original than in
    // the straight text.
    let plain = normalize(haystack);
    let mut widened: Vec<usize> = Vec::new();
    let mut at = 0;
    for c in haystack.chars() {
        let narrow = straight(c).unwrap_or(c).len_utf8();
        if narrow != c.len_utf8() {
            widened.push(at);
        }
        at += narrow;
    }
    let original = |place: usize| place + 2 * widened.partition_point(|mark| *mark < place);
    plain
        .match_indices(needle.as_str())
        .map(|(start, found)| (original(start), original(start + found.len())))
        .collect()
}

/// The opening and closing marks of one kind in a text.
#[derive(Clone, Copy)]
struct Style {
    open: char,
    close: char,
}

/// Returns `new` in the form in which it replaces `original`, which matched
/// `old` except for quotation marks. What `new` has in common with `old` at its
/// beginning and end stays as in the file. Marks in between follow the file's
/// own.
pub(crate) fn adapt(original: &str, old: &str, new: &str) -> String {
    let (original, old, new): (Vec<char>, Vec<char>, Vec<char>) = (
        original.chars().collect(),
        old.chars().collect(),
        new.chars().collect(),
    );
    let shorter = old.len().min(new.len());
    let same = |(a, b): (&char, &char)| straight(*a).unwrap_or(*a) == straight(*b).unwrap_or(*b);
    let head = old.iter().zip(&new).take_while(|pair| same(*pair)).count();
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(shorter - head)
        .take_while(|pair| same(*pair))
        .count();
    let single = style(&original, '\'');
    let double = style(&original, '"');
    let mut text: Vec<char> = original.iter().take(head).copied().collect();
    for &c in &new[head..new.len() - tail] {
        let style = match straight(c).unwrap_or(c) {
            '\'' => single,
            '"' => double,
            _ => None,
        };
        let opens = opens(text.last().copied());
        text.push(match style {
            Some(style) if opens => style.open,
            Some(style) => style.close,
            None => c,
        });
    }
    text.extend(&original[original.len() - tail..]);
    text.into_iter().collect()
}

/// Returns how a text writes the marks that `mark` stands for, or `None` if it
/// has none.
fn style(text: &[char], mark: char) -> Option<Style> {
    let mut open = None;
    let mut close = None;
    let mut before = None;
    for &c in text {
        if straight(c).unwrap_or(c) == mark {
            if opens(before) {
                open.get_or_insert(c);
            } else {
                close.get_or_insert(c);
            }
        }
        before = Some(c);
    }
    let partner = |c: char| match c {
        '\u{2018}' | '\u{201B}' => '\u{2019}',
        '\u{201C}' | '\u{201F}' => '\u{201D}',
        '\u{201A}' => '\u{2018}',
        '\u{201E}' => '\u{201C}',
        '\u{2019}' => '\u{2018}',
        '\u{201D}' => '\u{201C}',
        c => c,
    };
    match (open, close) {
        (Some(open), Some(close)) => Some(Style { open, close }),
        (Some(open), None) => Some(Style {
            open,
            close: partner(open),
        }),
        (None, Some(close)) => Some(Style {
            open: partner(close),
            close,
        }),
        (None, None) => None,
    }
}

/// Returns whether a mark after this character is an opening one.
fn opens(before: Option<char>) -> bool {
    before.is_none_or(|c| {
        c.is_whitespace() || matches!(c, '(' | '[' | '{' | '<' | '=' | ',' | ':' | '-')
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_marks_become_straight() {
        assert_eq!(
            normalize("‘a’ “b” ‚c‘ „d“ 'e' \"f\""),
            "'a' \"b\" 'c' \"d\" 'e' \"f\""
        );
    }

    #[test]
    fn positions_count_code_points_of_the_original() {
        let found = find("\"Hello\"", "größe “x” “Hello”!").unwrap();
        assert_eq!(found.position, 10);
        assert_eq!(found.original_match, "“Hello”");
        assert_eq!(found.normalized_match, "\"Hello\"");
        assert!(find("\"no\"", "“yes”").is_none());
        // A curly needle in a straight text.
        assert_eq!(find("it’s", "so it's").unwrap().position, 3);
    }

    #[test]
    fn an_exact_match_elsewhere_wins() {
        let found = find("\"a\"", "“a” and \"a\"").unwrap();
        assert_eq!(
            (found.position, found.original_match.as_str()),
            (8, "\"a\"")
        );
    }

    #[test]
    fn every_match_is_found_once() {
        let text = "“a”“a”é“a”";
        let found = matches("\"a\"", text);
        let texts: Vec<&str> = found.iter().map(|(a, b)| &text[*a..*b]).collect();
        assert_eq!(texts, ["“a”", "“a”", "“a”"]);
        assert!(matches("", text).is_empty());
    }

    #[test]
    fn the_replacement_keeps_the_files_own_marks() {
        assert_eq!(adapt("say “hi”", "say \"hi\"", "say \"bye\""), "say “bye”");
        assert_eq!(
            adapt("say “hi”", "say \"hi\"", "she said \"hi\" and \"no\""),
            "she said “hi” and “no”"
        );
        assert_eq!(adapt("it’s", "it's", "they're"), "they’re");
        assert_eq!(adapt("„ja“", "\"ja\"", "x \"nein\" y"), "x „nein“ y");
        // The file has straight marks, and the model wrote curly ones.
        assert_eq!(adapt("a \"b\"", "a “b”", "c “d”"), "c \"d\"");
        // Marks of a kind that the match does not have stay as given.
        assert_eq!(adapt("“a”", "\"a\"", "\"a's\""), "“a's”");
        assert_eq!(adapt("“a”", "\"a\"", ""), "");
    }
}
