//! Returns whether a value looks random, as generated secrets do and names and
//! placeholders do not.

/// The shortest value that is considered, in bytes. Shorter ones are too often
/// words.
pub(super) const LEAST: usize = 12;

/// The shortest value of hexadecimal digits alone, in bytes. Shorter ones are
/// mostly checksums and numbers.
const LEAST_HEX: usize = 24;

/// The minimum entropy of a value in bits for each byte. Of 12 random letters
/// and digits it is about 3.4, of words and placeholders below 3.
const ENTROPY: f64 = 3.0;

/// The minimum share of adjacent bytes, in percent, that change between lower
/// case, upper case, digits and signs. Random letters and digits have about 45;
/// `camelCase2` and `words-with-2-numbers` have at most 20.
const CHANGES: usize = 25;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Sign,
    /// Joins words: it says nothing about what stands around it.
    Joint,
}

fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b'-' | b'_' | b'.' | b'/' | b':' | b'=' | b' ' => Class::Joint,
        _ => Class::Sign,
    }
}

/// Returns whether a value looks random.
pub(super) fn is_random(value: &[u8]) -> bool {
    let has = |wanted: Class| value.iter().any(|byte| class(*byte) == wanted);
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    value.len() >= if is_hex { LEAST_HEX } else { LEAST }
        && (has(Class::Digit) || has(Class::Sign))
        && (has(Class::Lower) || has(Class::Upper))
        && entropy(value) >= ENTROPY
        && changes(value) * 100 >= CHANGES * (value.len() - 1)
}

/// Returns how often adjacent bytes change their class. A capital letter before
/// a small one does not count: words begin so.
fn changes(value: &[u8]) -> usize {
    let pairs = value.windows(2).filter(|pair| {
        let [before, after] = [class(pair[0]), class(pair[1])];
        let starts_a_word = before == Class::Upper && after == Class::Lower;
        let joint = before == Class::Joint || after == Class::Joint;
        before != after && !starts_a_word && !joint
    });
    pairs.count()
}

/// Returns the Shannon entropy in bits for each byte.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let total = value.len() as f64;
    let shares = counts.iter().filter(|count| **count > 0);
    shares
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_values_look_random() {
        for value in [
            "Xq7Rb2LmZ90wKe4TfYp1",
            "d41d8cd98f00b204e9800998ecf8427e",
            "a!9Zk@2Lq#8Wv$5Tn%",
            "550e8400e29b41d4a716446655440000",
        ] {
            assert!(is_random(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn names_and_placeholders_do_not() {
        for value in [
            "changeme",
            "your-api-key-here-2024",
            "getUserTokenFromDatabase2",
            "correct-horse-battery-staple",
            "xxxxxxxxxxxxxxxxxxxx1234",
            "test_password_123456",
            "00000000-0000-0000-0000-000000000000",
            "ff2b807a577495b0",
            "process.env.SECRET_TOKEN_V2",
        ] {
            assert!(!is_random(value.as_bytes()), "{value}");
        }
    }
}
