//! The body of the fuzz target `page`: requests to `touchmark ui`. It is a module
//! of the command's, since it calls what is private there.
#![allow(missing_docs, clippy::unwrap_used)]

use hyper::Request;

use super::gate::{Gate, Pass};

const PORT: u16 = 4711;

/// Checks a request: a method and an address in the first line, then headers.
/// `$cookie` and `$token` stand for the server's secrets. Only a request to this
/// server that has one of them passes, and the token passes once.
pub(crate) fn page(bytes: &[u8]) {
    let gate = Gate::new(PORT).unwrap();
    let cookie = gate.set_cookie();
    let cookie = cookie.split(';').next().unwrap();
    let address = gate.address();
    let token = address.split_once("token=").unwrap().1;
    let text = String::from_utf8_lossy(bytes).into_owned();
    let said = text.replace("$cookie", cookie).replace("$token", token);
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    let (method, address) = first.split_once(' ').unwrap_or(("GET", first));
    let mut request = Request::builder().method(method).uri(address);
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        request = request.header(name, value);
    }
    let Ok(request) = request.body(()) else {
        return;
    };
    let (head, ()) = request.into_parts();
    let passed = gate.check(&head);
    let has = |secret: &str| text.contains(secret);
    match passed {
        Ok(Pass::Cookie) => assert!(has("$cookie")),
        Ok(Pass::Token) => {
            assert!(has("$token") && method == "GET");
            assert!(gate.check(&head).is_err());
        }
        Err(why) => assert!(!why.contains(cookie) && !why.contains(token)),
    }
    if passed.is_ok() {
        let value = |name: &str| head.headers.get(name)?.to_str().ok();
        let host = value("host").unwrap();
        assert!(host == "127.0.0.1:4711" || host == "localhost:4711");
        let own = format!("http://{host}");
        assert!(value("origin").is_none_or(|origin| origin == own));
        assert!(method == "GET" || value("x-touchmark") == Some("1"));
        assert_ne!(value("sec-fetch-site"), Some("cross-site"));
    }
}

#[cfg(test)]
#[test]
fn seeds_of_requests() {
    crate::seeds::each_seed("page", page);
}
