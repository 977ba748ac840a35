//! Text for people: escaped names (SEC-4), sizes and times.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
pub(crate) use touchmark_client::proto::quoting::{escaped, is_hidden, without_hidden};
use touchmark_client::proto::{
    Author, AuthorKind, LineCounts, LineRange, Millis, RelPath, SessionId,
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The longest name printed, in characters.
pub(crate) const MAX_NAME: usize = 300;

/// Returns the columns that a text without styles takes on a terminal. Chinese,
/// Japanese and Korean characters take two each, combining ones none.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the text in at most `most` columns. A wider text loses its middle,
/// since both ends of a path say more than its middle.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let keep = most.saturating_sub(1);
    let front = keep / 3;
    let head = bytes_within(text.chars(), front);
    let tail = bytes_within(text.chars().rev(), keep - front);
    format!("{}…{}", &text[..head], &text[text.len() - tail..])
}

/// Returns the beginning of a text, in at most `most` columns.
pub(crate) fn start(text: &str, most: usize) -> &str {
    &text[..bytes_within(text.chars(), most)]
}

/// Returns the number of bytes of the first characters that fit into a number of
/// columns.
fn bytes_within(characters: impl Iterator<Item = char>, columns: usize) -> usize {
    let taken = characters.scan(0, |taken, one| {
        *taken += one.width().unwrap_or_default();
        (*taken <= columns).then_some(one.len_utf8())
    });
    taken.sum()
}

/// Returns a path for people.
pub(crate) fn path(path: &RelPath) -> String {
    escaped(&path.to_string_lossy(), MAX_NAME)
}

/// Returns a directory for display, with `~` for the home directory.
pub(crate) fn directory(path: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let short = home
        .as_deref()
        .filter(|home| home.parent().is_some())
        .and_then(|home| path.strip_prefix(home).ok())
        .map(|rest| match rest.as_os_str() == OsStr::new("") {
            true => PathBuf::from("~"),
            false => Path::new("~").join(rest),
        });
    escaped(
        &short.as_deref().unwrap_or(path).to_string_lossy(),
        MAX_NAME,
    )
}

/// Returns a session's id for people.
pub(crate) fn session(session: &SessionId) -> String {
    escaped(session.as_str(), 60)
}

/// Returns a session's label for people, or its id if it has none.
pub(crate) fn called(id: &SessionId, label: Option<&str>) -> String {
    label.map_or_else(|| session(id), |label| escaped(label, 60))
}

/// Returns an author for people. `you` is everyone who is not a declared agent.
pub(crate) fn author(author: &Author) -> String {
    match (author.kind, &author.session) {
        (AuthorKind::Agent, Some(name)) => called(name, author.label.as_deref()),
        (AuthorKind::Agent, None) => "an agent".into(),
        (AuthorKind::User, _) => "you".into(),
        (AuthorKind::Unknown, _) => "unknown".into(),
        (AuthorKind::Committed, _) => "committed".into(),
    }
}

/// Returns several authors for people, in order.
pub(crate) fn authors(authors: &[Author]) -> String {
    let names: Vec<String> = authors.iter().map(author).collect();
    names.join(", ")
}

/// Returns the text in lines of at most `columns`, broken between words.
/// All but the first begin with `indent`. A wider word is on a separate line.
pub(crate) fn wrapped(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let start = text.len() - text.trim_start().len();
    let mut line = text[..start].to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let length = width(&line) + width(word) + usize::from(!is_empty);
        if !is_empty && length > columns {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// Returns the text in at most `most` columns. A wider text loses words at its
/// end; a single word that is wider loses its middle.
pub(crate) fn phrase(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for word in text.split_whitespace() {
        let gap = usize::from(!kept.is_empty());
        if width(&kept) + gap + width(word) + 2 > most {
            break;
        }
        if gap > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    match kept.is_empty() {
        true => cut(text, most),
        false => kept + " …",
    }
}

/// Returns the text in lines of at most `columns`, all but the first with
/// `indent`. They break after blanks, which stay; a wider word is broken where
/// the line ends.
pub(crate) fn folded(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let before = if lines.is_empty() { "" } else { indent };
        let room = columns.saturating_sub(width(before)).max(1);
        if width(rest) <= room {
            lines.push(format!("{before}{rest}"));
            return lines;
        }
        let fits = start(rest, room);
        let after_blank = fits.rfind(' ').map(|at| at + 1);
        // Blanks at the beginning are an indentation.
        let at = after_blank.filter(|at| !fits[..*at].trim().is_empty());
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (line, next) = rest.split_at(at.unwrap_or(fits.len()).max(first));
        lines.push(format!("{before}{}", line.trim_end()));
        rest = next;
    }
}

/// Returns a number of things: `1 file`, `2 files`.
pub(crate) fn count(number: u64, one: &str) -> String {
    plural(number, one, &format!("{one}s"))
}

/// Returns a number of things with another plural: `2 copies`.
pub(crate) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Returns numbers of things: `1 file, 2 hints`.
pub(crate) fn list(counts: &[(u64, &str)]) -> String {
    let counts = counts.iter().map(|(number, one)| count(*number, one));
    counts.collect::<Vec<_>>().join(", ")
}

/// Returns a range of lines: `5`, `5-7`.
pub(crate) fn range(lines: LineRange) -> String {
    match lines.start >= lines.end {
        true => lines.start.to_string(),
        false => format!("{}-{}", lines.start, lines.end),
    }
}

/// Returns a range of lines in words: `line 5`, `lines 5-7`.
pub(crate) fn lines(lines: LineRange) -> String {
    let plural = if lines.start >= lines.end { "" } else { "s" };
    format!("line{plural} {}", range(lines))
}

/// Returns how many lines were added and removed: `+3 -1`; nothing if that is
/// not known.
pub(crate) fn counts(lines: Option<LineCounts>) -> String {
    lines.map_or_else(String::new, |lines| {
        format!("+{} -{}", lines.added, lines.removed)
    })
}

/// Returns a number of bytes in the largest decimal unit, such as `4.2 MB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if number < 1000 {
        return count(number, "byte");
    }
    let mut tenths = number / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Returns how long ago a time was in its largest unit, such as `3 min`. A time
/// of more than a week ago is a date.
pub(crate) fn age(time: Millis, now: Millis, zone: &TimeZone) -> String {
    let seconds = now.saturating_sub(time) / 1000;
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min", seconds / 60),
        3600..=86_399 => format!("{} h", seconds / 3600),
        86_400..=604_799 => format!("{} d", seconds / 86_400),
        _ => zoned(time, zone, "%Y-%m-%d"),
    }
}

/// Returns how long ago a time was, such as `3 min ago`, or a date.
pub(crate) fn ago(time: Millis, now: Millis, zone: &TimeZone) -> String {
    let age = age(time, now, zone);
    match age.contains(' ') {
        true => age + " ago",
        false => age,
    }
}

/// Returns a length of time in its largest unit or two.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Returns the time of day in a time zone.
pub(crate) fn time_of_day(time: Millis, zone: &TimeZone) -> String {
    zoned(time, zone, "%H:%M:%S")
}

/// Returns the hour and minute in a time zone, or the month and day.
pub(crate) fn time_or_day(time: Millis, day: bool, zone: &TimeZone) -> String {
    zoned(time, zone, if day { "%m-%d" } else { "%H:%M" })
}

/// Returns the date and the time of day in a time zone.
pub(crate) fn date(time: Millis, zone: &TimeZone) -> String {
    zoned(time, zone, "%Y-%m-%d %H:%M:%S")
}

fn zoned(time: Millis, zone: &TimeZone, format: &str) -> String {
    i64::try_from(time)
        .ok()
        .and_then(|time| Timestamp::from_millisecond(time).ok())
        .map(|time| time.to_zoned(zone.clone()).strftime(format).to_string())
        .unwrap_or_else(|| "?".into())
}

/// Returns the user's time zone.
pub(crate) fn zone() -> TimeZone {
    TimeZone::system()
}

/// Returns the current time.
pub(crate) fn now() -> Millis {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        let cut = cut(&"x".repeat(1000), 31);
        assert_eq!(cut.chars().count(), 31);
        assert!(cut.starts_with("xxxxxxxxxx…"));
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("e\u{301}目録"), 5);
        assert_eq!(cut("目録/目録/目録.rs", 10), "目…録.rs");
        assert_eq!(cut("目録/a.rs", 9), "目録/a.rs");
        assert_eq!(wrapped("目録 目録", 8, ""), ["目録", "目録"]);
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("  a bb ccc", 6, "> "), ["  a bb", "> ccc"]);
        assert_eq!(wrapped("abcdefgh i", 4, "-"), ["abcdefgh", "-i"]);
        assert_eq!(wrapped("", 4, "-"), [""]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1536), "1.5 kB");
        assert_eq!(bytes(4_200_000), "4.2 MB");
        assert_eq!(bytes(999_999), "999.9 kB");
        assert_eq!(bytes(3_000_000_000_000_000), "3000.0 TB");
        assert_eq!(duration(12), "12 ms");
        assert_eq!(duration(61_000), "1 min 1 s");
        assert_eq!(duration(90_000_000), "1 d 1 h");
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(0, "file"), "0 files");
        assert_eq!(date(0, &TimeZone::UTC), "1970-01-01 00:00:00");
        let now = 700_000_000;
        let ago = |seconds: u64| ago(now - seconds * 1000, now, &TimeZone::UTC);
        assert_eq!(ago(0), "0 s ago");
        assert_eq!(ago(59), "59 s ago");
        assert_eq!(ago(200), "3 min ago");
        assert_eq!(ago(86_399), "23 h ago");
        assert_eq!(ago(604_799), "6 d ago");
        assert_eq!(ago(604_800), "1970-01-02");
        assert_eq!(super::ago(now + 1, now, &TimeZone::UTC), "0 s ago");
    }
}
