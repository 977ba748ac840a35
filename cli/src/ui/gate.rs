//! Which requests are the page's: `Host`, origin, token and cookie.
//!
//! A page of another site can send requests to this server, and by DNS
//! rebinding it can even read the answers. Programs of other ports share the
//! cookies of a host. So each of these checks is needed.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::{Method, Uri};
use touchmark_client::hash_of;

/// The header that only a script of the page can send: another origin's would
/// need the permission of this server (CORS), which no response gives.
const OWN_HEADER: HeaderName = HeaderName::from_static("x-touchmark");

/// What the browser reports about the page that made the request.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// How a request that may pass was recognised.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// By the cookie.
    Cookie,
    /// By the token, which is used up now. The browser is to get the cookie.
    Token,
}

/// Why a request was refused; a sentence for people.
pub(super) type Refusal = &'static str;

/// The secrets of one server.
#[derive(Debug)]
pub(super) struct Gate {
    port: u16,
    /// `None` once it was used.
    token: Mutex<Option<String>>,
    cookie: String,
}

impl Gate {
    /// Creates secrets for the server on this port.
    ///
    /// # Errors
    /// The system's error if it gives no random bytes.
    pub(super) fn new(port: u16) -> io::Result<Self> {
        Ok(Self {
            port,
            token: Mutex::new(Some(secret()?)),
            cookie: secret()?,
        })
    }

    /// Returns the address that opens the page, once.
    pub(super) fn address(&self) -> String {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let token = token.as_deref().unwrap_or_default();
        format!("http://127.0.0.1:{}/?token={token}", self.port)
    }

    /// Returns the value of `Set-Cookie`. The name contains the port, since
    /// browsers send the cookies of a host to all of its ports.
    pub(super) fn set_cookie(&self) -> String {
        format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie_name(),
            self.cookie
        )
    }

    fn cookie_name(&self) -> String {
        format!("touchmark-{}", self.port)
    }

    /// Checks a request (SEC-12).
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn check(&self, request: &Parts) -> Result<Pass, Refusal> {
        let headers = &request.headers;
        let host = self.host(&request.uri, headers)?;
        is_own_origin(headers, &host)?;
        if request.method != Method::GET && one(headers, &OWN_HEADER)? != Some("1") {
            return Err("The request does not come from a script of the page.");
        }
        if let Some(token) = token_of(request) {
            return self.take(token);
        }
        let known = self
            .cookies(headers)
            .any(|cookie| same(cookie, &self.cookie));
        match known {
            true => Ok(Pass::Cookie),
            false => Err("This page was opened without its address."),
        }
    }

    /// Returns the host that the request names, if it is one of this server's.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<String, Refusal> {
        const OTHER: Refusal = "The request names another host.";
        let named = one(headers, &header::HOST)?.ok_or(OTHER)?;
        // An absolute address is for proxies.
        let own = ["127.0.0.1", "localhost"]
            .iter()
            .any(|name| named == format!("{name}:{}", self.port));
        match own && uri.authority().is_none() {
            true => Ok(named.to_owned()),
            false => Err(OTHER),
        }
    }

    /// Uses the token up.
    fn take(&self, token: &str) -> Result<Pass, Refusal> {
        let mut valid = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if valid.as_deref().is_some_and(|valid| same(valid, token)) {
            *valid = None;
            return Ok(Pass::Token);
        }
        Err("This address was used before, or is of a server that has ended.")
    }

    /// Returns the values of all cookies with this server's name.
    fn cookies<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let name = self.cookie_name();
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(move |pair| {
                let (own, value) = pair.trim().split_once('=')?;
                (own == name).then_some(value)
            })
    }
}

/// Checks that the page that made the request is this server's. A user who
/// enters the address, or another program that opens it, is no page.
fn is_own_origin(headers: &HeaderMap, host: &str) -> Result<(), Refusal> {
    const OTHER: Refusal = "The request comes from a page of another origin.";
    if let Some(origin) = one(headers, &header::ORIGIN)?
        && origin != format!("http://{host}")
    {
        return Err(OTHER);
    }
    match one(headers, &SITE)? {
        // Also refused: `same-site`, which other ports of this host are.
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(OTHER),
    }
}

/// Returns a header's only value; `None` if it was not sent.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    const STRANGE: Refusal = "The request has a header twice, or one that is not text.";
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(|value| value.to_str());
    match (value, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(STRANGE),
    }
}

/// Returns the token of `GET /?token=T`.
fn token_of(request: &Parts) -> Option<&str> {
    let token = request.uri.query()?.strip_prefix("token=")?;
    (request.method == Method::GET && request.uri.path() == "/").then_some(token)
}

/// Compares two secrets. How long it takes depends on their hashes, which no
/// client can choose, and not on how many bytes are equal.
fn same(one: &str, other: &str) -> bool {
    hash_of(one.as_bytes()) == hash_of(other.as_bytes())
}

/// Returns 256 random bits as text.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests;
