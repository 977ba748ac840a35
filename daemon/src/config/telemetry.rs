//! The values of the keys below `telemetry`.

use std::collections::BTreeMap;
use std::fmt;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// The longest address, in bytes.
const MOST_ADDRESS: usize = 2_000;

/// The port of OTLP over HTTP.
const PORT: u16 = 4318;

/// The address of a collector: `http://HOST:PORT/PATH`.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    text: String,
    host: String,
    port: u16,
    path: String,
}

impl Endpoint {
    /// Reads the value of `telemetry.endpoint`. An empty one leaves the choice
    /// to the environment.
    ///
    /// # Errors
    /// The reason why it is no address, for people.
    pub(super) fn configured(text: &str) -> Result<Option<Self>, String> {
        match text {
            "" => Ok(None),
            text => Self::new(text).map(Some),
        }
    }

    /// Reads an address.
    ///
    /// # Errors
    /// The reason why it is none, for people.
    pub fn new(text: &str) -> Result<Self, String> {
        let no_address = || "an address is like \"http://127.0.0.1:4318\"".to_owned();
        if text.len() > MOST_ADDRESS {
            return Err(no_address());
        }
        let uri: Uri = text.parse().map_err(|_| no_address())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(
                    "https is not built in: run a collector on this machine, which sends on \
                            by https, and name its http:// address"
                        .into(),
                );
            }
            _ => return Err(no_address()),
        }
        let authority = uri.authority().ok_or_else(no_address)?;
        if authority.as_str().contains('@') {
            return Err("an address has no password: use `telemetry.headers`".into());
        }
        if uri.query().is_some() {
            return Err("an address has no `?`".into());
        }
        let host = authority.host();
        let host = host.strip_prefix('[').unwrap_or(host);
        let host = host.strip_suffix(']').unwrap_or(host);
        if host.is_empty() {
            return Err(no_address());
        }
        Ok(Self {
            text: text.to_owned(),
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(80),
            path: uri.path().to_owned(),
        })
    }

    /// Returns the usual address of a collector on this machine.
    pub fn usual() -> Self {
        Self {
            text: format!("http://127.0.0.1:{PORT}"),
            host: "127.0.0.1".into(),
            port: PORT,
            path: "/".into(),
        }
    }

    /// Returns this address with a part added to its path.
    #[must_use]
    pub fn join(&self, part: &str) -> Self {
        let slashed = |text: &str| format!("{}/{part}", text.trim_end_matches('/'));
        Self {
            text: slashed(&self.text),
            path: slashed(&self.path),
            ..self.clone()
        }
    }

    /// Returns the address as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host's name or number, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path, which begins with a slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the value of the header `Host`.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, out)
    }
}

/// Headers that are added to each request. Their values may be passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// Checks headers.
    ///
    /// # Errors
    /// The reason why one of them cannot be sent, for people. It has no value
    /// in it.
    pub fn new(headers: BTreeMap<String, String>) -> Result<Self, String> {
        for (name, value) in &headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("{name:?} is no header's name"));
            }
            if HeaderValue::from_str(value).is_err() {
                return Err(format!("the value of {name:?} is no header's value"));
            }
        }
        Ok(Self(headers))
    }

    /// Returns whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// How records name files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Paths {
    /// By their paths.
    Plain,
    /// By a hash with a key of the user's.
    #[default]
    Hash,
    /// Not at all.
    None,
}
