//! Finds secrets by their shape, in any text (SEC-3).
//!
//! The shapes are those of gitleaks' published list that begin with fixed
//! letters. Text that only looks random is not treated as a secret.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};

/// The shape of a kind of token: its prefix and what follows.
struct Shape {
    prefix: &'static str,
    /// Returns whether a byte may follow the prefix.
    has: fn(u8) -> bool,
    /// The minimum number of bytes after the prefix.
    least: usize,
}

const fn shape(prefix: &'static str, has: fn(u8) -> bool, least: usize) -> Shape {
    Shape { prefix, has, least }
}

fn letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    letter(byte) || byte == b'_' || byte == b'-'
}

fn dotted(byte: u8) -> bool {
    word(byte) || byte == b'.'
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn base64(byte: u8) -> bool {
    letter(byte) || b"+/=".contains(&byte)
}

/// Returns whether a byte may be in the body of a private key, also if its line
/// breaks are written as `\n`.
fn key(byte: u8) -> bool {
    base64(byte) || b"\\\r\n\t ".contains(&byte)
}

const SHAPES: &[Shape] = &[
    // Cloud services.
    shape("AKIA", upper, 16),
    shape("ASIA", upper, 16),
    shape("ABIA", upper, 16),
    shape("ACCA", upper, 16),
    shape("AIza", word, 35),
    shape("GOCSPX-", word, 28),
    shape("ya29.", dotted, 30),
    shape("LTAI", letter, 20),
    shape("dop_v1_", hex, 64),
    shape("doo_v1_", hex, 64),
    shape("dor_v1_", hex, 64),
    shape("dapi", hex, 32),
    shape("pul-", hex, 40),
    shape("pscale_tkn_", dotted, 32),
    shape("pscale_pw_", dotted, 32),
    shape("pscale_oauth_", dotted, 32),
    shape("hvs.", word, 90),
    shape("hvb.", word, 138),
    shape("dp.pt.", letter, 43),
    shape("fo1_", word, 43),
    shape("fm1r_", base64, 100),
    shape("fm2_", base64, 100),
    // Forges and registries.
    shape("ghp_", letter, 36),
    shape("gho_", letter, 36),
    shape("ghu_", letter, 36),
    shape("ghs_", letter, 36),
    shape("ghr_", letter, 36),
    shape("github_pat_", word, 36),
    shape("glpat-", word, 20),
    shape("gldt-", word, 20),
    shape("glptt-", hex, 40),
    shape("glrt-", word, 20),
    shape("glcbt-", word, 20),
    shape("gloas-", word, 20),
    shape("GR1348941", word, 20),
    shape("npm_", letter, 36),
    shape("pypi-AgEIcHlwaS5vcmc", word, 50),
    shape("rubygems_", hex, 48),
    shape("oy2", letter, 43),
    shape("dckr_pat_", word, 27),
    // Model providers.
    shape("sk-ant-api03-", word, 40),
    shape("sk-ant-admin01-", word, 40),
    shape("sk-proj-", word, 40),
    shape("sk-svcacct-", word, 40),
    shape("sk-admin-", word, 40),
    shape("hf_", letter, 34),
    shape("api_org_", letter, 34),
    shape("pplx-", letter, 48),
    // Messaging and other services.
    shape("xoxb-", word, 20),
    shape("xoxp-", word, 20),
    shape("xoxa-", word, 20),
    shape("xoxr-", word, 20),
    shape("xoxs-", word, 20),
    shape("xoxe-", word, 20),
    shape("xapp-", word, 20),
    shape("hooks.slack.com/services/", base64, 40),
    shape("SG.", dotted, 66),
    shape("sk_live_", letter, 10),
    shape("sk_test_", letter, 10),
    shape("rk_live_", letter, 10),
    shape("rk_test_", letter, 10),
    shape("sq0atp-", word, 22),
    shape("sq0csp-", word, 43),
    shape("shpat_", hex, 32),
    shape("shpca_", hex, 32),
    shape("shppa_", hex, 32),
    shape("shpss_", hex, 32),
    shape("glc_", base64, 32),
    shape("glsa_", word, 40),
    shape("lin_api_", letter, 40),
    shape("ntn_", letter, 40),
    shape("PMAK-", word, 59),
    shape("NRAK-", letter, 27),
    shape("sntrys_", dotted, 60),
    shape("sntryu_", hex, 64),
    shape("SK", hex, 32),
    shape("key-", hex, 32),
    shape("EZAK", letter, 54),
    shape("EZTK", letter, 54),
    shape("figd_", word, 40),
    shape("tk-us-", word, 48),
    // Keys in text form.
    shape("AGE-SECRET-KEY-1", upper, 58),
    shape("PRIVATE KEY-----", key, 64),
    shape("PRIVATE KEY BLOCK-----", key, 64),
    // JSON in base64, a dot, and more of it: a signed token.
    shape("eyJ", dotted, 60),
];

/// Finds the prefixes. `None` cannot occur: the table is fixed, and a test
/// builds it. If it did, no token would be found.
static PREFIXES: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(SHAPES.iter().map(|shape| shape.prefix)).ok());

/// The place of a token in a text.
struct Token {
    start: usize,
    /// The end of the token's prefix, which may stay visible.
    shown: usize,
    end: usize,
}

fn tokens(text: &[u8]) -> impl Iterator<Item = Token> + '_ {
    let found = PREFIXES
        .iter()
        .flat_map(move |prefixes| prefixes.find_overlapping_iter(text));
    found.filter_map(move |found| {
        let shape = SHAPES.get(found.pattern().as_usize())?;
        let (start, shown) = (found.start(), found.end());
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        if shape.prefix != "PRIVATE KEY-----" && before.is_some_and(|byte| letter(*byte)) {
            return None;
        }
        let rest = text.get(shown..)?;
        let long = rest.iter().take_while(|byte| (shape.has)(**byte)).count();
        let end = shown + long;
        let signed = || {
            text.get(shown..end)
                .is_some_and(|rest| rest.contains(&b'.'))
        };
        (long >= shape.least && (shape.prefix != "eyJ" || signed())).then_some(Token {
            start,
            shown,
            end,
        })
    })
}

/// Returns whether a text contains a token.
pub fn any(text: &[u8]) -> bool {
    tokens(text).next().is_some()
}

/// The text that replaces a secret.
const MASK: &str = "***";

/// Values in a command that are secret because of what precedes them. The first
/// group stays, and the rest is removed.
const VALUES: &[&str] = &[
    // API_TOKEN=..., --password=..., "secret": "..."
    r#"(?i)([\w.-]*(?:token|secret|passw(?:or)?d|passphrase|api_?key|access_?key|private_?key|credential)[\w.-]*(?:["']?\s*=\s*|["']\s*:\s*|:\s+))(?:"[^"]*"|'[^']*'|[^\s"'&;|]+)"#,
    // --password ..., -token ...
    r#"(?i)(\s--?(?:[\w-]*(?:token|secret|passw(?:or)?d|passphrase|api-?key))\s+)(?:"[^"]*"|'[^']*'|[^\s"'&;|-][^\s"'&;|]*)"#,
    // -H 'Authorization: Bearer ...'
    r#"(?i)((?:authorization|cookie|x-[\w-]*(?:key|token|auth)[\w-]*)\s*:\s*)[^"'\n]+"#,
    // https://user:...@host, and curl -u user:...
    r#"(://[^/\s:@'"]*:)[^/\s@'"]+(?:@)"#,
    r#"(\s(?:-u|--user)\s+["']?[^\s:'"]+:)[^\s'"]+"#,
];

static MASKED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compiled = VALUES.iter().map(|pattern| Regex::new(pattern));
    compiled.filter_map(Result::ok).collect()
});

/// Returns a command as it may be kept: tokens, and values that a name says to
/// be secret, are replaced. The rest is unchanged.
pub fn masked(command: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(command);
    for values in MASKED.iter() {
        if let Cow::Owned(shorter) = values.replace_all(&text, hidden) {
            text = Cow::Owned(shorter);
        }
    }
    let mut out = String::new();
    let mut from = 0;
    for token in tokens(text.as_bytes()) {
        // Two prefixes may match at the same place.
        if token.start >= from
            && let Some(before) = text.get(from..token.shown)
        {
            out.push_str(before);
            out.push_str(MASK);
            from = token.end;
        }
    }
    match text.get(from..) {
        Some(rest) if from > 0 => Cow::Owned(out + rest),
        _ => text,
    }
}

fn hidden(found: &Captures<'_>) -> String {
    let kept = found.get(1).map_or("", |kept| kept.as_str());
    let host = if found[0].ends_with('@') { "@" } else { "" };
    format!("{kept}{MASK}{host}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_row_of_the_tables_works() {
        assert!(PREFIXES.is_some());
        assert_eq!(MASKED.len(), VALUES.len());
        for shape in SHAPES {
            let byte = (b'!'..b'z').find(|byte| (shape.has)(*byte) && *byte != b'.');
            let mut text = format!("x = \"{}", shape.prefix);
            text.push_str(&char::from(byte.unwrap()).to_string().repeat(shape.least));
            if shape.prefix == "eyJ" {
                text.push_str(".eyJ");
            }
            assert!(any(text.as_bytes()), "{text}");
            let short = text.len() - if shape.prefix == "eyJ" { 10 } else { 1 };
            assert!(!any(&text.as_bytes()[..short]), "{text}");
        }
    }

    #[test]
    fn ordinary_texts_have_no_tokens() {
        for text in [
            "let task_sk_test_case = 1; // ghp_ is a prefix",
            "-----BEGIN PRIVATE KEY-----\" + body + \"-----END PRIVATE KEY-----",
            "SKETCH DAKIAxxxxxxxxxxxxxxxxxxxxx",
            "https://example.org/a:b@c",
        ] {
            assert!(!any(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn commands_lose_their_secrets_alone() {
        let ghp = format!("ghp_{}", "a1B2".repeat(9));
        for (command, kept) in [
            (
                "export GITHUB_TOKEN=abc && git push",
                "export GITHUB_TOKEN=*** && git push",
            ),
            (
                "curl -H 'Authorization: Bearer abc' x",
                "curl -H 'Authorization: ***' x",
            ),
            (
                "git clone https://me:abc@host/x",
                "git clone https://me:***@host/x",
            ),
            (
                "mysql --password abc -e 'select 1'",
                "mysql --password *** -e 'select 1'",
            ),
            ("x '{\"api_key\": \"abc\"}'", "x '{\"api_key\": ***}'"),
            ("curl -u me:abc x", "curl -u me:*** x"),
            (
                "cargo test tokens::any -- --nocapture",
                "cargo test tokens::any -- --nocapture",
            ),
            (
                "grep -rn 'fn main' src | head -5",
                "grep -rn 'fn main' src | head -5",
            ),
        ] {
            assert_eq!(masked(command), kept);
        }
        assert_eq!(masked(&format!("push {ghp} now")), "push ghp_*** now");
    }
}
