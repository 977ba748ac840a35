//! Moments in words: `yesterday`, `2 hours ago`, `monday`, `20 nov`.

use interim::{Dialect, parse_date_string};
use jiff::{ToSpan as _, Zoned};

/// The words of a moment. The library takes a text that begins with one of them
/// for it, which the label of a checkpoint must not be.
const DAYS: &str = "sun sunday mon monday tue tues tuesday wed wednesday thu thur thurs thursday \
    fri friday sat saturday";
const MONTHS: &str = "jan january feb february mar march apr april may jun june jul july aug \
    august sep sept september oct october nov november dec december";
const OTHERS: &str = "a ago am an d day days h hour hours hr hrs last m min mins minute minutes \
    month months pm s sec second seconds secs t today w week weeks year years yesterday";

/// Returns the moment that a text names in words, in the time zone of `now`.
/// `None` if the text names none, or one in the future. A day without a time of
/// day is its beginning.
pub(crate) fn worded(text: &str, now: &Zoned) -> Option<Zoned> {
    let text = text.to_lowercase();
    let letters = text.split(|letter: char| !letter.is_alphabetic());
    let mut letters = letters.filter(|word| !word.is_empty()).peekable();
    letters.peek()?;
    let is_in = |list: &str, word: &str| list.split(' ').any(|known| known == word);
    if !letters.all(|word| [DAYS, MONTHS, OTHERS].iter().any(|list| is_in(list, word))) {
        return None;
    }
    let words = text.split_whitespace();
    let words = words.map(|word| match word {
        "a" | "an" => "1",
        other => other,
    });
    let plain = words.collect::<Vec<_>>().join(" ");
    let found = parse_date_string(&plain, now.clone(), Dialect::Uk).ok()?;
    let found = match &*plain {
        "yesterday" | "today" => found.start_of_day().ok()?,
        _ => found,
    };
    if found <= *now {
        return Some(found);
    }
    // `monday` is the last one, and so is `28 nov`.
    let is_weekday = plain.split(' ').any(|word| is_in(DAYS, word));
    let back = if is_weekday { 1.week() } else { 1.year() };
    let earlier = found.checked_sub(back).ok()?;
    (earlier <= *now).then_some(earlier)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_people_say_is_in_the_past() {
        let now: Zoned = "2026-11-25T15:04:05[Europe/Berlin]".parse().unwrap();
        let cases = [
            ("yesterday", "2026-11-24T00:00"),
            ("Yesterday 10:30", "2026-11-24T10:30"),
            ("today", "2026-11-25T00:00"),
            ("2 hours ago", "2026-11-25T13:04:05"),
            ("an hour ago", "2026-11-25T14:04:05"),
            ("a week ago", "2026-11-18T15:04:05"),
            ("5 min ago", "2026-11-25T14:59:05"),
            ("3 days ago", "2026-11-22T15:04:05"),
            ("last week", "2026-11-18T15:04:05"),
            ("monday", "2026-11-23T00:00"),
            ("last friday", "2026-11-20T00:00"),
            ("monday 9am", "2026-11-23T09:00"),
            ("wednesday", "2026-11-25T00:00"),
            ("20 nov", "2026-11-20T00:00"),
            ("28 nov", "2025-11-28T00:00"),
            ("nov 20", "2026-11-20T00:00"),
            ("20 november 2025", "2025-11-20T00:00"),
        ];
        for (text, wanted) in cases {
            let wanted: jiff::civil::DateTime = wanted.parse().unwrap();
            let found = worded(text, &now).map(|found| found.datetime());
            assert_eq!(found, Some(wanted), "{text}");
        }
        for label in [
            "before-lunch",
            "monkey",
            "k3",
            "march-release",
            "tomorrow",
            "next friday",
            "17",
        ] {
            assert_eq!(worded(label, &now), None, "{label}");
        }
    }
}
