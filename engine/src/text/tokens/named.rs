//! Random values whose name says that they are secret: assignments, options,
//! fields of JSON and YAML, headers, and passwords in addresses.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

use super::random::is_random;

/// Parts of names. Case-insensitive.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "access-key",
    "account_key",
    "accountkey",
    "auth_key",
    "authkey",
    "private_key",
    "privatekey",
    "credential",
    "authorization",
    "pwd",
    "://",
];

/// `None` cannot occur: the table is fixed, and a test builds it.
static NAMED: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(NAMES)
        .ok()
});

/// The longest rest of a name after the part that says "secret", in bytes.
const REST: usize = 32;

/// The longest value, in bytes. Longer ones are data.
const LONGEST: usize = 512;

/// Returns whether a text assigns a random value to a name that says "secret".
pub(super) fn any(text: &[u8]) -> bool {
    let found = NAMED.iter().flat_map(|names| names.find_iter(text));
    let mut rests = found.filter_map(|found| {
        let rest = text.get(found.end()..)?;
        if found.pattern().as_usize() == NAMES.len() - 1 {
            return password_of_an_address(rest);
        }
        value(rest)
    });
    rests.any(is_random)
}

/// Returns the password of `user:password@host`.
fn password_of_an_address(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.get(..rest.len().min(LONGEST))?;
    let end = rest
        .iter()
        .position(|byte| !is_in_address(*byte) || *byte == b'@')?;
    let user = rest.get(..end)?.iter().position(|byte| *byte == b':')?;
    (rest.get(end) == Some(&b'@')).then(|| rest.get(user + 1..end))?
}

fn is_in_address(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"/\"'`<>{}$ ".contains(&byte)
}

/// Returns the value that is assigned after the name, of which `rest` is what
/// follows.
fn value(rest: &[u8]) -> Option<&[u8]> {
    let name = rest
        .iter()
        .take(REST)
        .take_while(|byte| is_in_name(**byte))
        .count();
    let rest = rest.get(name..)?;
    let rest = after(rest, b"\\\"'`] \t");
    let (sign, rest) = rest.split_first()?;
    if !b"=:,".contains(sign) {
        return None;
    }
    let mut rest = after(rest, b"=> \t");
    // A type between the name and the value: `token: &str = "..."`.
    if *sign == b':'
        && let Some(end) = rest
            .iter()
            .take(REST)
            .position(|byte| b"=\n\"'".contains(byte))
        && rest.get(end) == Some(&b'=')
        && rest.get(end + 1) == Some(&b' ')
    {
        rest = after(rest.get(end..)?, b"=> \t");
    }
    for scheme in [&b"Bearer "[..], b"Basic ", b"Token ", b"token "] {
        rest = rest.strip_prefix(scheme).unwrap_or(rest);
    }
    let rest = after(rest, b"\\");
    let quote = rest.first().copied().filter(|byte| b"\"'`".contains(byte));
    // A value after a comma is an argument, and must be quoted.
    if *sign == b',' && quote.is_none() {
        return None;
    }
    let rest = rest.get(usize::from(quote.is_some())..)?;
    let rest = rest.get(..rest.len().min(LONGEST + 1))?;
    let end = rest.iter().position(|byte| match quote {
        Some(quote) => [quote, b'\\', b'\n'].contains(byte),
        None => !byte.is_ascii_graphic() || b"\"'`;,&|\\".contains(byte),
    });
    let value = rest.get(..end.unwrap_or(rest.len()))?;
    let is_code = |byte: &u8| match quote {
        Some(_) => b" {}<>()".contains(byte),
        None => b"{}<>()[]$*".contains(byte),
    };
    let literal = value.len() <= LONGEST && !value.iter().any(is_code);
    literal.then_some(value)
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// Returns what follows the leading bytes of a set.
fn after<'a>(text: &'a [u8], set: &[u8]) -> &'a [u8] {
    let skipped = text.iter().take_while(|byte| set.contains(byte)).count();
    text.get(skipped..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_of_secret_names_are_found() {
        assert!(NAMED.is_some());
        for text in [
            r#"password = "a9Zk2Lq8Wv5TnX1b""#,
            "DATABASE_URL=postgres://app:a9Zk2Lq8Wv5TnX1b@db.example.com/app",
            "CLOUDFLARE_API_TOKEN=v7Qm2_Rt9xKz4Lw8Pn1Bc6Yd3Hs5Jf0Ga-Tu2Ve7X",
            "Authorization: Basic dXNlcjpYcTdSYjJMbVo5MHdLZTRUZllwMQ==",
            r#"{"clientSecret": "a9Zk2Lq8Wv5TnX1b"}"#,
            r#"{\"clientSecret\": \"a9Zk2Lq8Wv5TnX1b\"}"#,
            "api_key: a9Zk2Lq8Wv5TnX1b",
            "AccountKey=a9Zk2Lq8Wv5TnX1ba9Zk2Lq8Wv5TnX1b==;EndpointSuffix=x",
            r#"let token: &str = "a9Zk2Lq8Wv5TnX1b";"#,
            r#"os.environ["SECRET"] = "a9Zk2Lq8Wv5TnX1b""#,
            r#"setenv("API_TOKEN", "a9Zk2Lq8Wv5TnX1b")"#,
        ] {
            assert!(any(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn names_code_and_placeholders_are_not() {
        for text in [
            "token = tokens(text.as_bytes(), 1)",
            "password = os.environ['DB_PASSWORD_2']",
            "api_key: ${API_KEY_V2_FROM_ENV}",
            "secret = \"<your 16 digit secret a9Zk2Lq8>\"",
            "postgres://postgres:postgres@localhost/x",
            "let token = Token2::Identifier(Name3)",
            "password: changeme123456",
            "https://example.org/a:b1C2d3E4f5G6h7@x",
        ] {
            assert!(!any(text.as_bytes()), "{text}");
        }
    }
}
