//! The body of the fuzz target `collector`: what a collector answers, and the
//! address of a repository. It is a module of the daemon's, since it calls what
//! is private there.
#![allow(missing_docs, clippy::panic)]

use std::time::Duration;

use super::answer::{Answer, Meaning};
use super::remote;
use crate::fuzzed::parts;

/// Reads the bytes as an answer, whose first three parts are the status and two
/// headers, and as a configuration with an address. A text of the collector's
/// is short and controls no terminal, a pause is short, and an address has no
/// password.
pub fn collector(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let [status, retry_after, content_type, _] = parts(&text);
    let body = bytes.windows(5).enumerate();
    let body = body.filter(|(_, window)| window == b"\n%%%\n").nth(2);
    let answer = Answer {
        status: status.parse().unwrap_or(200),
        retry_after: Some(retry_after.to_owned()),
        content_type: Some(content_type.to_owned()),
        body: body.map_or(bytes, |(at, _)| &bytes[at + 5..]).to_vec(),
    };
    match answer.meaning() {
        Meaning::Taken { says, .. } => {
            let says = says.unwrap_or_default();
            assert!(says.chars().count() <= 200 && !says.contains(char::is_control));
        }
        Meaning::Later { after, why } => {
            assert!(after.is_none_or(|after| after <= Duration::from_secs(600)));
            assert!(why.len() <= 200);
        }
        Meaning::Malformed(why) => assert!(why.len() <= 200),
    }
    let addresses = remote::origin(&text).into_iter().chain([text.into_owned()]);
    for address in addresses {
        if let Some(address) = remote::normalised(&address) {
            let (host, path) = address.split_once('/').unwrap_or_default();
            assert!(
                !host.is_empty() && !path.is_empty() && !host.contains('@'),
                "{address}"
            );
        }
    }
}
