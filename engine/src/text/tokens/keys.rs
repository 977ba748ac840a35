//! Private keys in text form: the line that says so, and their body, also
//! behind headers, comment signs, quotes and written line breaks.

use memchr::memmem;

use super::Token;
use super::random::is_random;

/// The lines before a body. Upper case, as the formats write them.
const HEADERS: &[&[u8]] = &[b"PRIVATE KEY", b"Private-Lines:"];

/// The shortest run of a body's letters, in bytes. Lines of all formats are
/// longer: 64 to 76.
const RUN: usize = 40;

/// How far after the header a body may begin, in bytes: a few headers of its
/// own, such as `Proc-Type` and `Comment`.
const HEAD: usize = 1024;

/// How far before `PRIVATE KEY` the word `BEGIN` stands, in bytes.
const BEGIN: usize = 32;

/// Returns the private keys of a text.
pub(super) fn blocks(text: &[u8]) -> impl Iterator<Item = Token> + '_ {
    let headers = HEADERS.iter().flat_map(move |header| {
        memmem::find_iter(text, header).map(move |at| (at, at + header.len(), *header))
    });
    headers.filter_map(move |(start, shown, header)| {
        if header == HEADERS[0] {
            let before = text.get(start.saturating_sub(BEGIN)..start)?;
            memmem::find(before, b"BEGIN")?;
        }
        let rest = text.get(shown..)?;
        // The end of the header's own line: ` BLOCK-----`.
        let own = rest.strip_prefix(b" BLOCK").unwrap_or(rest);
        let dashes = own.iter().take_while(|byte| b" -".contains(byte)).count();
        let from = rest.len() - own.len() + dashes;
        let until = memmem::find(rest.get(from..)?, b"----").map_or(rest.len(), |at| from + at);
        let near = rest.get(..until.min(from + HEAD))?;
        let mut runs = near.split(|byte| !base64(*byte));
        runs.any(|run| run.len() >= RUN && is_random(run))
            .then_some(Token {
                start,
                shown,
                end: shown + until,
            })
    })
}

fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";

    fn found(text: &str) -> bool {
        blocks(text.as_bytes()).next().is_some()
    }

    #[test]
    fn keys_are_found_in_each_form() {
        for text in [
            format!("-----BEGIN PRIVATE KEY-----\n{LINE}\n{LINE}\n-----END PRIVATE KEY-----"),
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                 DEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n{LINE}"
            ),
            format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{LINE}"),
            format!("# -----BEGIN EC PRIVATE KEY-----\n# {LINE}"),
            format!("\"-----BEGIN RSA PRIVATE KEY-----\\n\"\n\"{LINE}\\n\""),
            format!("[\"-----BEGIN PRIVATE KEY-----\",\"{LINE}\"]"),
            format!("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"x\"\n{LINE}"),
            format!("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 14\n{LINE}"),
        ] {
            assert!(found(&text), "{text}");
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_not_found() {
        for text in [
            "-----BEGIN PRIVATE KEY-----\" + body + \"-----END PRIVATE KEY-----".to_owned(),
            format!(
                "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n\
                 -----BEGIN CERTIFICATE-----\n{LINE}"
            ),
            format!("// a PRIVATE KEY is not this: {LINE}"),
        ] {
            assert!(!found(&text), "{text}");
        }
    }
}
