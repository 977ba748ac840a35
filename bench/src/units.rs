//! Formats numbers for people.

use std::time::Duration;

/// Returns a duration with about three significant digits.
pub(crate) fn duration(took: Duration) -> String {
    let micros = took.as_secs_f64() * 1e6;
    match micros {
        micros if micros < 99.95 => format!("{micros:.1} us"),
        micros if micros < 9_999.5 => format!("{} us", grouped(micros)),
        micros if micros < 99_950.0 => format!("{:.1} ms", micros / 1e3),
        micros => format!("{} ms", grouped(micros / 1e3)),
    }
}

/// Returns a power of ten of microseconds, for an axis.
pub(crate) fn round_time(micros: f64) -> String {
    match micros {
        micros if micros >= 1e6 => format!("{} s", grouped(micros / 1e6)),
        micros if micros >= 1e3 => format!("{} ms", grouped(micros / 1e3)),
        micros if micros >= 1.0 => format!("{} us", grouped(micros)),
        micros => format!("{} us", number(micros)),
    }
}

/// Returns bytes as megabytes (millions of bytes).
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

pub(crate) fn rate(per_second: f64) -> String {
    format!("{} /s", grouped(per_second))
}

/// Returns a number with about three significant digits.
pub(crate) fn number(value: f64) -> String {
    if value.fract().abs() < 1e-9 || value >= 1_000.0 {
        grouped(value)
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Returns a number as [`number`] does, without trailing zeros.
pub(crate) fn shortest(value: f64) -> String {
    let text = number(value);
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}

/// Returns a whole number in groups of three digits.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a count in groups of three digits.
pub(crate) fn count(value: usize) -> String {
    grouped(value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_groups() {
        let said = [0.0, 999.0, 1_000.0, 123_456.0, -1_234.0].map(grouped);
        assert_eq!(said, ["0", "999", "1,000", "123,456", "-1,234"]);
    }

    #[test]
    fn durations_keep_three_digits() {
        let said = [99_940, 99_960, 12_345_000, 123_456_000]
            .map(|nanos| duration(Duration::from_nanos(nanos)));
        assert_eq!(said, ["99.9 us", "100 us", "12.3 ms", "123 ms"]);
    }
}
