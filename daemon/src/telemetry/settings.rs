//! Where records are sent, by the user's configuration and the standard
//! variables (TEL-1).

use std::collections::BTreeMap;
use std::ffi::OsString;

use percent_encoding::percent_decode_str;

use crate::config::{Config, Endpoint, Headers, Paths};

/// The variables of OpenTelemetry's specification.
const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const LOGS: &str = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Where records are sent, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(super) endpoint: Endpoint,
    pub(super) headers: Headers,
    pub(super) paths: Paths,
}

impl Settings {
    /// Returns the settings of this process; `None` while telemetry is off.
    ///
    /// # Errors
    /// Which variable is wrong, and why, for people.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, String> {
        Self::with(config, |name| std::env::var_os(name))
    }

    fn with(
        config: &Config,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, String> {
        if !config.telemetry {
            return Ok(None);
        }
        let text = |name: &str| -> Result<Option<String>, String> {
            let value = variable(name).filter(|value| !value.is_empty());
            value
                .map(|value| value.into_string().map_err(|_| format!("{name}: no text")))
                .transpose()
        };
        let endpoint = |name: &str| -> Result<Option<Endpoint>, String> {
            let read = |value: String| Endpoint::new(&value);
            let read = text(name)?.map(read).transpose();
            read.map_err(|why| format!("{name}: {why}"))
        };
        let endpoint = match &config.telemetry_endpoint {
            Some(base) => base.join("v1/logs"),
            None => match endpoint(LOGS)? {
                Some(logs) => logs,
                None => endpoint(BASE)?
                    .unwrap_or_else(Endpoint::usual)
                    .join("v1/logs"),
            },
        };
        let headers = match config.telemetry_headers.is_empty() {
            false => config.telemetry_headers.clone(),
            true => {
                let named = named(&text(HEADERS)?.unwrap_or_default());
                Headers::new(named).map_err(|why| format!("{HEADERS}: {why}"))?
            }
        };
        Ok(Some(Self {
            endpoint,
            headers,
            paths: config.telemetry_paths,
        }))
    }

    /// Returns the address to which records are sent.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// Reads `name=value,name=value`, with values in percent-encoding.
fn named(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| {
            let value = percent_decode_str(value.trim()).decode_utf8_lossy();
            (name.trim().to_owned(), value.into_owned())
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn settings(config: &Config, variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::with(config, |name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| value.into())
        })
    }

    fn on() -> Config {
        Config {
            telemetry: true,
            ..Config::default()
        }
    }

    #[test]
    fn tel_1_variables_alone_switch_nothing_on() {
        let all = [(BASE, "http://a:1"), (HEADERS, "a=b")];
        assert_eq!(settings(&Config::default(), &all), Ok(None));
    }

    #[test]
    fn the_configuration_comes_before_the_variables() {
        let at = |config: &Config, variables: &[(&str, &str)]| {
            let settings = settings(config, variables).unwrap().unwrap();
            settings.endpoint.as_str().to_owned()
        };
        let usual = "http://127.0.0.1:4318/v1/logs";
        assert_eq!(at(&on(), &[(BASE, "")]), usual);
        assert_eq!(at(&on(), &[(BASE, "http://b/x/")]), "http://b/x/v1/logs");
        let variables = [(BASE, "http://b/x/"), (LOGS, "http://l:2/own")];
        assert_eq!(at(&on(), &variables), "http://l:2/own");
        let named = Config {
            telemetry_endpoint: Some(Endpoint::new("http://[::1]:9/").unwrap()),
            ..on()
        };
        assert_eq!(at(&named, &variables), "http://[::1]:9/v1/logs");
    }

    #[test]
    fn headers_are_decoded_and_checked() {
        let read = |text: &str| settings(&on(), &[(HEADERS, text)]).map(Option::unwrap);
        let headers = read("authorization=Bearer%20x, b = c=d").unwrap().headers;
        let found: Vec<_> = headers.iter().collect();
        assert_eq!(found, [("authorization", "Bearer x"), ("b", "c=d")]);
        let wrong = read("a b=secret").unwrap_err();
        assert!(
            wrong.contains(HEADERS) && !wrong.contains("secret"),
            "{wrong}"
        );
    }

    #[test]
    fn tel_1_an_address_with_https_says_what_to_do() {
        let wrong = settings(&on(), &[(BASE, "https://a")]).unwrap_err();
        assert!(
            wrong.contains(BASE) && wrong.contains("collector"),
            "{wrong}"
        );
        for text in [
            "a",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a?b",
            "http:///x",
        ] {
            assert!(Endpoint::new(text).is_err(), "{text}");
        }
        let endpoint = Endpoint::new("http://example.com/otlp").unwrap();
        assert_eq!((endpoint.port(), endpoint.path()), (80, "/otlp"));
    }
}
