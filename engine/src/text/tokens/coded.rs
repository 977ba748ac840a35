//! Texts in another form: UTF-16, and base64 inside a text.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Accepts a run that was cut, and padding or none.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The shortest run of base64 that is decoded, in bytes. The shortest token of
/// the table has 20 bytes, which are 27 in base64.
const RUN: usize = 26;

/// The first bytes of a run, which are decoded to see whether it holds text: 12
/// bytes are 9 in plain. Of 10,000 ordinary names about one passes.
const PROBE: usize = 12;

/// The number of first bytes that tell whether a text is UTF-16.
const SAMPLE: usize = 512;

/// Returns UTF-16 as one byte for each unit, `?` where it is not ASCII. Any other
/// text is returned as it is.
pub(super) fn narrow(text: &[u8]) -> Cow<'_, [u8]> {
    let sample = text.get(..SAMPLE.min(text.len() & !1)).unwrap_or(text);
    let zeros = |odd: usize| {
        let units = sample.chunks_exact(2);
        units.filter(|unit| unit[odd] == 0).count()
    };
    let units = sample.len() / 2;
    let high = match (zeros(0), zeros(1)) {
        (high, low) if units >= 8 && high * 2 > units && low * 8 < units => 0,
        (low, high) if units >= 8 && high * 2 > units && low * 8 < units => 1,
        _ => return Cow::Borrowed(text),
    };
    let bytes = text.chunks_exact(2).map(|unit| match unit[high] {
        0 => unit[1 - high],
        _ => b'?',
    });
    Cow::Owned(bytes.collect())
}

/// Returns what the runs of base64 in a text hold, if it is text.
pub(super) fn decoded(text: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let runs = text.split(|byte| !in_base64(*byte));
    runs.filter(|run| run.len() >= RUN).filter_map(|run| {
        let probe = BASE64.decode(standard(run.get(..PROBE)?)).ok()?;
        if !probe
            .iter()
            .all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
        {
            return None;
        }
        // The last byte of a run that is no multiple of 4 may stand alone.
        let whole = run.get(..run.len() - usize::from(run.len() % 4 == 1))?;
        BASE64.decode(standard(whole)).ok()
    })
}

fn in_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// Returns base64 of the alphabet for addresses in the standard one.
fn standard(run: &[u8]) -> Vec<u8> {
    let bytes = run.iter().map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

    use super::*;

    #[test]
    fn utf_16_is_narrowed_with_and_without_a_mark() {
        let text = "token = a1b2c3 \u{e9} and more of it";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little.clone(), [&b"\xff\xfe"[..], &little].concat(), big] {
            let narrowed = String::from_utf8_lossy(&narrow(&bytes)).into_owned();
            assert!(narrowed.contains("token = a1b2c3 "), "{narrowed}");
        }
        assert_eq!(narrow(b"plain text of some length").len(), 25);
    }

    #[test]
    fn text_in_base64_is_returned_and_other_bytes_are_not() {
        let plain = b"user:ghp_0123456789 and more?>";
        for coded in [
            BASE64_STANDARD.encode(plain),
            BASE64_URL_SAFE_NO_PAD.encode(plain),
        ] {
            let text = format!("  token: {coded}\n");
            let found: Vec<Vec<u8>> = decoded(text.as_bytes()).collect();
            assert_eq!(found, [plain.to_vec()]);
        }
        let image = BASE64_STANDARD.encode([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255].repeat(9));
        assert_eq!(decoded(image.as_bytes()).count(), 0);
    }
}
