//! A file's blame, whatever its length, and lines as they are named on the
//! command line.

use touchmark_client::Result;
use touchmark_client::blocking::Client;
use touchmark_client::proto::LineRange;
use touchmark_client::proto::history::{Blame, FileBlame};

/// The number of lines that are requested at a time: as many as one answer may
/// have.
const PAGE: u32 = 40_000;

/// How often a long file's blame begins again because the file has changed.
const TRIES: usize = 8;

/// Parses lines from the command line: `10,20`, `10,+5`, `10` or `10,`.
///
/// # Errors
/// A text in another form.
pub(crate) fn range(text: &str) -> Result<LineRange, String> {
    let wrong = || "lines are 10,20 or 10,+5".to_owned();
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (start, end) = match text.split_once(',') {
        None => (number(text)?, number(text)?),
        Some((start, end)) => {
            let start = number(start)?;
            let end = match end.strip_prefix('+') {
                Some(count) => start.saturating_add(number(count)?).saturating_sub(1),
                None if end.is_empty() => u32::MAX,
                None => number(end)?,
            };
            (start, end)
        }
    };
    match start >= 1 && start <= end {
        true => Ok(LineRange { start, end }),
        false => Err(wrong()),
    }
}

/// Returns the ranges of consecutive numbers, the first and the last of each.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last.1 + 1 == number => last.1 = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// Requests a file's blame, in several parts if the file is long.
///
/// # Errors
/// The daemon's error.
pub(crate) fn blamed(client: &Client, ask: &FileBlame) -> Result<Blame> {
    for _ in 0..TRIES {
        if let Some(blame) = unchanged(client, ask)? {
            return Ok(blame);
        }
    }
    // The file changes all the time.
    client.call(ask.clone())
}

/// Returns the whole blame; `None` if the file has changed between two parts.
fn unchanged(client: &Client, ask: &FileBlame) -> Result<Option<Blame>> {
    let (mut start, last) = ask
        .range
        .map_or((1, u32::MAX), |asked| (asked.start, asked.end));
    let mut whole: Option<Blame> = None;
    loop {
        let end = last.min(start.saturating_add(PAGE - 1));
        let part = client.call(FileBlame {
            range: Some(LineRange { start, end }),
            ..ask.clone()
        })?;
        let is_last = end == last || part.lines.len() < PAGE as usize;
        match &mut whole {
            Some(whole) if whole.hash != part.hash => return Ok(None),
            Some(whole) => {
                whole.lines.extend(part.lines);
                whole.cause = whole.cause.take().or(part.cause);
            }
            None => whole = Some(part),
        }
        if is_last {
            return Ok(whole);
        }
        start = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_as_for_git() {
        let of = |text| range(text).map(|range| (range.start, range.end)).ok();
        assert_eq!(of("10,20"), Some((10, 20)));
        assert_eq!(of("10,+5"), Some((10, 14)));
        assert_eq!(of("10,"), Some((10, u32::MAX)));
        assert_eq!(of("7"), Some((7, 7)));
        for wrong in ["0,3", "5,4", "a", "", "3,+0"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
