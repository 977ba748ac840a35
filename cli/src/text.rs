//! Text for people: escaped names (SEC-4), sizes and times.

use jiff::Timestamp;
use jiff::tz::TimeZone;
pub(crate) use touchmark_client::proto::quoting::{escaped, is_hidden, without_hidden};
use touchmark_client::proto::{Author, AuthorKind, Millis, RelPath, SessionId};

/// The longest name printed, in characters.
pub(crate) const MAX_NAME: usize = 300;

/// Cuts the middle out of what is longer than `most` characters: the ends
/// tell more about a path.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let keep = most.saturating_sub(1);
    let front = keep / 3;
    let back = keep - front;
    let head: String = text.chars().take(front).collect();
    let tail: String = text.chars().skip(length - back).collect();
    format!("{head}…{tail}")
}

/// A path for people.
pub(crate) fn path(path: &RelPath) -> String {
    escaped(&path.to_string_lossy(), MAX_NAME)
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
    }
}

/// Returns several authors for people, in order.
pub(crate) fn authors(authors: &[Author]) -> String {
    let names: Vec<String> = authors.iter().map(author).collect();
    names.join(", ")
}

/// The text in lines of at most so many characters, broken between words; all
/// but the first begin with `indent`. A longer word has a line of its own.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let start = text.len() - text.trim_start().len();
    let mut line = text[..start].to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let length = line.chars().count() + word.chars().count() + usize::from(!is_empty);
        if !is_empty && length > width {
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

/// Returns a number of things: `1 file`, `2 files`.
pub(crate) fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

/// Returns a number of bytes in the largest decimal unit, such as `4.2 MB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if number < 1024 {
        return count(number, "byte");
    }
    let mut tenths = number.saturating_mul(10) / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// A length of time, in its largest unit or two.
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

/// Date and time of day, in that time zone.
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
    fn lines_break_between_words() {
        assert_eq!(wrapped("  a bb ccc", 6, "> "), ["  a bb", "> ccc"]);
        assert_eq!(wrapped("abcdefgh i", 4, "-"), ["abcdefgh", "-i"]);
        assert_eq!(wrapped("", 4, "-"), [""]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(12 << 20), "12.0 MiB");
        assert_eq!(bytes(3 << 40), "3.0 TiB");
        assert_eq!(duration(12), "12 ms");
        assert_eq!(duration(61_000), "1 min 1 s");
        assert_eq!(duration(90_000_000), "1 d 1 h");
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(0, "file"), "0 files");
        assert_eq!(date(0, &TimeZone::UTC), "1970-01-01 00:00:00");
    }
}
