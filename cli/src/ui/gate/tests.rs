#![allow(clippy::unwrap_used)]
use hyper::Request;

use super::*;

const PORT: u16 = 4711;

/// A request with these headers, as `check` sees it.
fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// A gate and the cookie that passes it.
fn gate() -> (Gate, String) {
    let gate = Gate::new(PORT).unwrap();
    let cookie = gate.set_cookie();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    (gate, cookie)
}

/// Checks a `GET` and a `POST` of the page with these headers in addition, or
/// in place of its own.
fn passes(more: &[(&str, &str)]) -> bool {
    let (gate, cookie) = gate();
    let own = [
        ("host", "127.0.0.1:4711"),
        ("cookie", cookie.as_str()),
        ("x-touchmark", "1"),
    ];
    let kept = own
        .iter()
        .filter(|(name, _)| more.iter().all(|(other, _)| other != name));
    let headers: Vec<(&str, &str)> = kept.chain(more).copied().collect();
    let get = gate.check(&request("GET", "/api/about", &headers)).is_ok();
    let post = gate.check(&request("POST", "/api/call", &headers)).is_ok();
    assert_eq!(get, post, "{more:?}");
    get
}

#[test]
fn the_token_passes_once_and_the_cookie_always() {
    let (gate, cookie) = gate();
    let address = gate.address();
    let target = address.strip_prefix("http://127.0.0.1:4711").unwrap();
    let host = ("host", "127.0.0.1:4711");
    let wrong = gate.check(&request("GET", "/?token=x", &[host]));
    assert!(wrong.is_err());
    // On no other path, and by no other method.
    let (_, query) = target.split_once('?').unwrap();
    for (method, target) in [
        ("GET", format!("/api/about?{query}")),
        ("POST", target.to_owned()),
        ("GET", format!("{target}x")),
    ] {
        let tried = request(method, &target, &[host, ("x-touchmark", "1")]);
        assert!(gate.check(&tried).is_err(), "{method} {target}");
    }
    let first = gate.check(&request("GET", target, &[host]));
    assert_eq!(first, Ok(Pass::Token), "a wrong one does not use it up");
    assert!(gate.check(&request("GET", target, &[host])).is_err());
    // Not even from a browser that has the cookie.
    let known = [host, ("cookie", cookie.as_str())];
    assert!(gate.check(&request("GET", target, &known)).is_err());
    let page = gate.check(&request("GET", "/", &known));
    assert_eq!(page, Ok(Pass::Cookie));
}

#[test]
fn an_empty_token_is_none() {
    let (gate, _) = gate();
    let host = ("host", "127.0.0.1:4711");
    let token = gate.address();
    let target = token.strip_prefix("http://127.0.0.1:4711").unwrap();
    gate.check(&request("GET", target, &[host])).unwrap();
    assert!(gate.check(&request("GET", "/?token=", &[host])).is_err());
}

#[test]
fn only_this_host_is_served() {
    assert!(passes(&[]));
    assert!(passes(&[("host", "localhost:4711")]));
    for other in [
        "127.0.0.1",
        "127.0.0.1:4712",
        "localhost.:4711",
        "LOCALHOST:4711",
        "[::1]:4711",
        "evil.example:4711",
        "127.0.0.1:4711.evil.example",
        "evil.example",
        "",
    ] {
        assert!(!passes(&[("host", other)]), "{other}");
    }
    let twice = [("host", "127.0.0.1:4711"), ("host", "evil.example")];
    assert!(!passes(&twice));
    let (gate, cookie) = gate();
    let cookie = ("cookie", cookie.as_str());
    let none = request("GET", "/", &[cookie]);
    assert!(gate.check(&none).is_err(), "HTTP/1.0 names no host");
    let host = ("host", "127.0.0.1:4711");
    let proxied = request("GET", "http://evil.example/", &[host, cookie]);
    assert!(gate.check(&proxied).is_err());
}

#[test]
fn only_this_origin_is_served() {
    assert!(passes(&[("origin", "http://127.0.0.1:4711")]));
    for other in [
        "null",
        "http://127.0.0.1:4712",
        "https://127.0.0.1:4711",
        "http://evil.example",
        // The other name of this server is another origin as well.
        "http://localhost:4711",
    ] {
        assert!(!passes(&[("origin", other)]), "{other}");
    }
    assert!(passes(&[("sec-fetch-site", "same-origin")]));
    assert!(passes(&[("sec-fetch-site", "none")]));
    for other in ["same-site", "cross-site", "anything"] {
        assert!(!passes(&[("sec-fetch-site", other)]), "{other}");
    }
}

#[test]
fn only_this_servers_cookie_counts() {
    let (gate, cookie) = gate();
    let checked = |line: &str| {
        let headers = [("host", "127.0.0.1:4711"), ("cookie", line)];
        gate.check(&request("GET", "/", &headers)).is_ok()
    };
    let (name, value) = cookie.split_once('=').unwrap();
    assert_eq!(name, "touchmark-4711");
    assert!(checked(&format!("a=b; {cookie}; c")));
    // Another program on this host has set one of the same name.
    assert!(checked(&format!("{name}=x; {cookie}")));
    assert!(!checked(&format!("touchmark-4712={value}")));
    assert!(!checked(&format!("{name}=")));
    assert!(!checked(&format!("{cookie}x")));
    assert!(!checked(value));
}

#[test]
fn a_request_that_is_no_get_needs_the_header_of_a_script() {
    let (gate, cookie) = gate();
    let own = [("host", "127.0.0.1:4711"), ("cookie", cookie.as_str())];
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let plain = gate.check(&request(method, "/api/call", &own));
        assert!(plain.is_err(), "{method}");
    }
    let [host, cookie] = own;
    let scripted = request("POST", "/api/call", &[host, cookie, ("x-touchmark", "1")]);
    assert_eq!(gate.check(&scripted), Ok(Pass::Cookie));
}

#[test]
fn secrets_differ() {
    let (one, other) = (Gate::new(PORT).unwrap(), Gate::new(PORT).unwrap());
    assert_ne!(one.address(), other.address());
    assert_ne!(one.set_cookie(), other.set_cookie());
    assert!(!one.address().contains(&one.cookie));
    assert_eq!(one.cookie.len(), 43);
}
