//! The shapes of tokens: fixed letters, and what follows or precedes them.
//!
//! The table is the project's own, made from what the services document.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

use super::Token;
use super::random::is_random;

/// The shape of a kind of token.
struct Shape {
    /// The fixed letters.
    prefix: &'static str,
    /// Returns whether a byte may follow the prefix.
    has: fn(u8) -> bool,
    /// The minimum number of bytes after the prefix.
    least: usize,
    rest: Rest,
    before: Before,
}

/// What is required of the bytes after a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Their number is enough: the prefix is rare.
    Any,
    /// They must look random: the prefix also begins words.
    Random,
    /// They have a dot: JSON in base64, and more of it.
    Signed,
}

/// What is required of the bytes before a prefix.
#[derive(Clone, Copy)]
enum Before {
    /// No letter or digit, except those of an escape such as `\n` or `%3D`.
    Boundary,
    /// This many bytes of the token itself.
    Part(usize, fn(u8) -> bool),
}

const fn shape(prefix: &'static str, has: fn(u8) -> bool, least: usize) -> Shape {
    Shape {
        prefix,
        has,
        least,
        rest: Rest::Any,
        before: Before::Boundary,
    }
}

/// A prefix that also begins ordinary words.
const fn weak(prefix: &'static str, has: fn(u8) -> bool, least: usize) -> Shape {
    Shape {
        rest: Rest::Random,
        ..shape(prefix, has, least)
    }
}

/// Fixed letters inside a token, after `size` bytes of the set `part`.
const fn inner(
    (size, part): (usize, fn(u8) -> bool),
    letters: &'static str,
    has: fn(u8) -> bool,
    least: usize,
) -> Shape {
    Shape {
        before: Before::Part(size, part),
        ..shape(letters, has, least)
    }
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

fn azure(byte: u8) -> bool {
    dotted(byte) || byte == b'~'
}

fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// Hexadecimal digits in groups, and the letters of a version.
fn dashed(byte: u8) -> bool {
    letter(byte) || byte == b'-'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn base64(byte: u8) -> bool {
    letter(byte) || b"+/=".contains(&byte)
}

/// The rest of an address.
fn path(byte: u8) -> bool {
    word(byte) || byte == b'/' || byte == b'@'
}

const SHAPES: &[Shape] = &[
    // Cloud services.
    shape("AKIA", upper, 16),
    shape("ASIA", upper, 16),
    shape("ABIA", upper, 16),
    shape("ACCA", upper, 16),
    shape("ABSK", base64, 109),
    shape("AIza", word, 35),
    shape("GOCSPX-", word, 28),
    shape("ya29.", dotted, 30),
    shape("1//0", word, 90),
    shape("LTAI", letter, 20),
    shape("AQVN", word, 35),
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
    shape("dp.ct.", letter, 40),
    shape("dp.st.", dotted, 40),
    shape("dp.sa.", letter, 40),
    shape("dp.scim.", letter, 40),
    shape("dp.audit.", letter, 40),
    shape("fo1_", word, 43),
    shape("fm1r_", base64, 100),
    shape("fm2_", base64, 100),
    shape("HRKU-AA", word, 50),
    shape("v1.0-", dashed, 150),
    shape("nfp_", letter, 36),
    shape("sbp_", hex, 40),
    weak("vcp_", letter, 24),
    weak("rnd_", letter, 32),
    shape("napi_", letter, 60),
    shape("tskey-auth-", word, 20),
    shape("tskey-api-", word, 20),
    shape("tskey-client-", word, 20),
    shape("sha256~", word, 43),
    shape("SSWS 00", word, 40),
    shape("ops_eyJ", base64, 200),
    shape("lsv2_pt_", hex, 32),
    shape("lsv2_sk_", hex, 32),
    shape("dt0c01.", dotted, 80),
    shape("dt0s01.", dotted, 80),
    // Forges, registries and builds.
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
    shape("glrtr-", word, 20),
    shape("glcbt-", word, 20),
    shape("gloas-", word, 20),
    shape("glsoat-", word, 20),
    shape("glft-", word, 20),
    shape("glimt-", word, 20),
    shape("glffct-", word, 20),
    shape("glagent-", word, 40),
    shape("GR1348941", word, 20),
    shape("ATATT3", word, 160),
    shape("ATCTT3", word, 160),
    weak("ATBB", letter, 32),
    shape("npm_", letter, 36),
    shape("pypi-AgEIcHlwaS5vcmc", word, 50),
    shape("rubygems_", hex, 48),
    shape("oy2", letter, 43),
    weak("cio", letter, 32),
    shape("CLOJARS_", letter, 60),
    shape("AKCp", letter, 60),
    shape("dckr_pat_", word, 27),
    shape("dckr_oat_", word, 27),
    shape("bkua_", hex, 40),
    shape("CCIPAT_", word, 50),
    shape("CCIPRJ_", word, 50),
    shape("sqp_", hex, 40),
    shape("squ_", hex, 40),
    shape("sqa_", hex, 40),
    shape("snyk_uat.", dotted, 40),
    shape("sgp_", word, 40),
    // Model providers and agents.
    shape("sk-ant-", word, 60),
    shape("sk-proj-", word, 40),
    shape("sk-svcacct-", word, 40),
    shape("sk-admin-", word, 40),
    shape("sk-or-", word, 50),
    shape("sk-lf-", dashed, 36),
    shape("sk-", hex, 32),
    weak("sk-", word, 40),
    shape("sk_", hex, 48),
    shape("gsk_", letter, 48),
    shape("xai-", letter, 70),
    shape("r8_", letter, 36),
    shape("csk-", letter, 40),
    shape("tgp_v1_", word, 40),
    shape("nvapi-", word, 60),
    shape("hf_", letter, 34),
    shape("api_org_", letter, 34),
    shape("pplx-", letter, 48),
    weak("pa-", word, 43),
    weak("fw_", letter, 24),
    weak("co_", letter, 40),
    shape("fc-", hex, 32),
    shape("tvly-", word, 30),
    shape("jina_", word, 50),
    shape("ctx7sk-", dashed, 32),
    shape("crsr_", hex, 60),
    shape("key_", hex, 64),
    // Messaging and other services.
    shape("xoxb-", word, 20),
    shape("xoxp-", word, 20),
    shape("xoxa-", word, 20),
    shape("xoxr-", word, 20),
    shape("xoxs-", word, 20),
    shape("xoxe-", word, 20),
    shape("xoxe.xox", word, 20),
    shape("xapp-", word, 20),
    shape("hooks.slack.com/services/", base64, 40),
    shape("hooks.slack.com/workflows/", base64, 40),
    shape("hooks.slack.com/triggers/", base64, 40),
    shape("webhook.office.com/webhookb2/", path, 36),
    shape("discord.com/api/webhooks/", path, 60),
    shape("discordapp.com/api/webhooks/", path, 60),
    shape("SG.", dotted, 66),
    shape("sk_live_", letter, 10),
    shape("sk_test_", letter, 10),
    shape("sk_prod_", letter, 10),
    shape("rk_live_", letter, 10),
    shape("rk_test_", letter, 10),
    shape("rk_prod_", letter, 10),
    shape("whsec_", base64, 32),
    shape("sq0atp-", word, 22),
    shape("sq0csp-", word, 43),
    weak("EAAA", word, 60),
    shape("EAAB", letter, 100),
    shape("shpat_", hex, 32),
    shape("shpca_", hex, 32),
    shape("shppa_", hex, 32),
    shape("shpss_", hex, 32),
    shape("shippo_live_", hex, 40),
    shape("shippo_test_", hex, 40),
    shape("FLWSECK-", dashed, 32),
    shape("FLWSECK_TEST-", dashed, 32),
    shape("xkeysib-", dashed, 64),
    shape("glc_", base64, 32),
    shape("glsa_", word, 40),
    shape("eyJrIjoi", base64, 60),
    shape("lin_api_", letter, 40),
    shape("ntn_", letter, 40),
    weak("secret_", letter, 43),
    shape("PMAK-", word, 59),
    shape("NRAK-", letter, 27),
    shape("NRJS-", hex, 19),
    shape("sntrys_", dotted, 60),
    shape("sntryu_", hex, 64),
    shape("SK", hex, 32),
    shape("AC", hex, 32),
    shape("key-", hex, 32),
    shape("EZAK", letter, 54),
    shape("EZTK", letter, 54),
    shape("figd_", word, 40),
    shape("tk-us-", word, 48),
    shape("CFPAT-", word, 43),
    shape("pat-na1-", dashed, 36),
    shape("pat-eu1-", dashed, 36),
    shape("phx_", letter, 40),
    shape("phs_", letter, 40),
    shape("pnu_", letter, 36),
    shape("rdme_", letter, 70),
    shape("tfp_", word, 59),
    shape("ico-", letter, 32),
    weak("pat", dotted, 75),
    shape("AGE-SECRET-KEY-1", upper, 58),
    Shape {
        rest: Rest::Signed,
        ..shape("eyJ", dotted, 60)
    },
    // Fixed letters inside.
    inner((20, letter), "T3BlbkFJ", letter, 20),
    inner((14, letter), ".atlasv1.", word, 60),
    inner((3, letter), "Q~", azure, 31),
    inner((8, digit), ":AA", word, 33),
    inner((32, hex), "-us", digit, 1),
];

/// Finds the prefixes. `None` cannot occur: the table is fixed, and a test
/// builds it. If it did, no token would be found.
static PREFIXES: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasickBuilder::new()
        .kind(Some(AhoCorasickKind::DFA))
        .build(SHAPES.iter().map(|shape| shape.prefix))
        .ok()
});

/// Returns the tokens of a text that the table describes.
pub(super) fn tokens(text: &[u8]) -> impl Iterator<Item = Token> + '_ {
    let found = PREFIXES
        .iter()
        .flat_map(move |prefixes| prefixes.find_overlapping_iter(text));
    found.filter_map(move |found| {
        let shape = SHAPES.get(found.pattern().as_usize())?;
        let (at, shown) = (found.start(), found.end());
        let start = match shape.before {
            Before::Boundary => is_boundary(text.get(..at)?).then_some(at)?,
            Before::Part(size, has) => {
                let start = at.checked_sub(size)?;
                text.get(start..at)?
                    .iter()
                    .all(|byte| has(*byte))
                    .then_some(start)?
            }
        };
        let rest = text.get(shown..)?;
        let long = rest.iter().take_while(|byte| (shape.has)(**byte)).count();
        let rest = rest.get(..long)?;
        let fits = match shape.rest {
            Rest::Any => true,
            Rest::Random => is_random(rest),
            Rest::Signed => rest.contains(&b'.'),
        };
        (long >= shape.least && fits).then_some(Token {
            start,
            shown,
            end: shown + long,
        })
    })
}

/// Returns whether a token may begin after this text. The last letter may belong
/// to an escape: `\n`, `\x3d`, `\u003d`, `%3D`, `=3D`.
fn is_boundary(before: &[u8]) -> bool {
    let Some(last) = before.last() else {
        return true;
    };
    let escape = |sign: &[u8], digits: usize| {
        let Some(from) = before.len().checked_sub(sign.len() + digits) else {
            return false;
        };
        let tail = before.get(from..).unwrap_or_default();
        tail.strip_prefix(sign)
            .is_some_and(|rest| rest.iter().all(|byte| hex(*byte)))
    };
    !letter(*last)
        || (b"nrtfvb0".contains(last) && before.get(before.len() - 2) == Some(&b'\\'))
        || escape(b"%", 2)
        || escape(b"=", 2)
        || escape(b"\\x", 2)
        || escape(b"\\u", 4)
}

/// The parts of a token of three parts that a chat service gives to bots: an id
/// in base64, a time, and a signature.
const TRIPLE: (std::ops::RangeInclusive<usize>, usize, usize) = (24..=30, 6, 27);

/// Returns the tokens of three parts.
pub(super) fn triples(text: &[u8]) -> impl Iterator<Item = Token> + '_ {
    let (id, time, signature) = TRIPLE;
    memchr::memchr_iter(b'.', text).filter_map(move |dot| {
        let second = dot + 1 + time;
        if text.get(second) != Some(&b'.') {
            return None;
        }
        let before = text.get(..dot)?.iter().rev();
        let start = dot
            - before
                .take(id.end() + 1)
                .take_while(|byte| word(**byte))
                .count();
        let rest = text.get(second + 1..)?;
        let long = rest.iter().take_while(|byte| word(**byte)).count();
        let end = second + 1 + long;
        let fits = id.contains(&(dot - start))
            && b"MNO".contains(text.get(start)?)
            && text.get(dot + 1..second)?.iter().all(|byte| word(*byte))
            && long >= signature
            && is_random(text.get(second + 1..end)?);
        fits.then_some(Token {
            start,
            shown: dot,
            end,
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn any(text: &str) -> bool {
        tokens(text.as_bytes()).next().is_some()
    }

    /// Random letters of a set, the same in each run.
    fn letters(has: fn(u8) -> bool, count: usize) -> String {
        let set: Vec<u8> = (b'!'..=b'z')
            .filter(|byte| has(*byte) && byte.is_ascii_alphanumeric())
            .collect();
        let mut state = 7_usize;
        let next = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(set[(state >> 33) % set.len()])
        });
        next.take(count).collect()
    }

    #[test]
    fn every_row_of_the_table_works() {
        for shape in SHAPES {
            let before = match shape.before {
                Before::Boundary => String::new(),
                Before::Part(size, has) => letters(has, size),
            };
            let dot = if shape.rest == Rest::Signed { "." } else { "" };
            let token = |least| {
                let rest = letters(shape.has, least);
                format!("x = \"{before}{}{dot}{rest}\"", shape.prefix)
            };
            let found = tokens(token(shape.least).as_bytes()).count();
            assert!(found > 0, "{}", token(shape.least));
            let shorter = token(shape.least - 1 - dot.len());
            let fewer = tokens(shorter.as_bytes()).count();
            assert!(fewer < found, "{shorter}");
        }
    }

    #[test]
    fn the_automaton_is_small() {
        let size = PREFIXES.as_ref().unwrap().memory_usage();
        assert!(size < 1 << 20, "{size} bytes");
    }

    #[test]
    fn a_token_may_follow_an_escape_and_no_letter() {
        let token = format!("ghp_{}", letters(letter, 36));
        for before in ["\\n", "\\t", "%3D", "=3D", "\\u003d", "\\x3d", "="] {
            assert!(any(&format!("'first{before}{token}'")), "{before}");
        }
        assert!(!any(&format!("'first{token}'")));
    }

    #[test]
    fn ordinary_texts_have_no_tokens() {
        for text in [
            "let task_sk_test_case = 1; // ghp_ is a prefix",
            "SKETCH DAKIAxxxxxxxxxxxxxxxxxxxxx",
            "a-sk-toggleable__content-that-is-a-class-name-of-a-page",
            "https://example.org/a:b@c",
        ] {
            assert!(!any(text), "{text}");
        }
    }
}
