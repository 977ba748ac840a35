//! Finds secrets in any text (SEC-3): by the shape of a token, by the name that
//! a random value is assigned to, and by the header of a private key; also in
//! UTF-16, in base64, and after an escape such as `\n` or `%3D`.

mod coded;
mod keys;
mod named;
mod random;
mod shapes;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The place of a token in a text.
struct Token {
    start: usize,
    /// The end of the token's prefix, which may stay visible.
    shown: usize,
    end: usize,
}

/// Returns whether a text contains a secret.
pub fn any(text: &[u8]) -> bool {
    let text = coded::narrow(text);
    holds(&text) || coded::decoded(&text).any(|inner| holds(&inner))
}

fn holds(text: &[u8]) -> bool {
    tokens(text).next().is_some() || named::any(text)
}

fn tokens(text: &[u8]) -> impl Iterator<Item = Token> + '_ {
    shapes::tokens(text)
        .chain(shapes::triples(text))
        .chain(keys::blocks(text))
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
    let mut tokens: Vec<Token> = tokens(text.as_bytes()).collect();
    tokens.sort_by_key(|token| token.start);
    for token in tokens {
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
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(MASKED.len(), VALUES.len());
    }

    #[test]
    fn secrets_are_found_in_utf_16_and_in_base64() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let wide: Vec<u8> = format!("token = {token}\n")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(any(&wide));
        let coded = BASE64_STANDARD.encode(&token);
        assert!(any(format!("  value: {coded}\n").as_bytes()));
        assert!(!any(
            b"an ordinary text, with an ordinary_name_of_some_length in it"
        ));
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
