//! What a collector's answer means (TEL-3).

use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use prost::Message as _;
use serde::Deserialize;

/// The longest text of the collector's that is reported, in characters.
const MOST_TEXT: usize = 200;

/// The longest pause that a collector can ask for.
const MOST_PAUSE: Duration = Duration::from_secs(600);

/// An answer, as it was received.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The value of the header `Retry-After`.
    pub(super) retry_after: Option<String>,
    /// The value of the header `Content-Type`.
    pub(super) content_type: Option<String>,
    pub(super) body: Vec<u8>,
}

/// What an answer means for the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The collector has it. It has rejected some of the records for good.
    Taken { rejected: u64, says: Option<String> },
    /// The batch is to be sent again, after a pause.
    Later {
        after: Option<Duration>,
        why: String,
    },
    /// The collector does not accept this batch.
    Malformed(String),
}

impl Answer {
    pub(super) fn meaning(&self) -> Meaning {
        let why = || format!("the collector answers {}", self.status);
        match self.status {
            200..300 => self.taken(),
            400 | 413 | 415 | 422 => Meaning::Malformed(why()),
            _ => Meaning::Later {
                after: self.pause(),
                why: why(),
            },
        }
    }

    /// Reads the answer to a batch that was taken. What is no such answer comes
    /// from another server.
    fn taken(&self) -> Meaning {
        let kind = self.content_type.as_deref().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let read = match kind {
            _ if self.body.is_empty() => Some((0, String::new())),
            "application/x-protobuf" | "application/octet-stream" | "" => self.protobuf(),
            "application/json" => self.json(),
            _ => None,
        };
        match read {
            Some((rejected, says)) => Meaning::Taken {
                rejected,
                says: told(&says),
            },
            None => Meaning::Later {
                after: None,
                why: format!("what answers {} there is no collector", self.status),
            },
        }
    }

    fn protobuf(&self) -> Option<(u64, String)> {
        let read = ExportLogsServiceResponse::decode(&*self.body).ok()?;
        let partial = read.partial_success.unwrap_or_default();
        let rejected = u64::try_from(partial.rejected_log_records).unwrap_or(0);
        Some((rejected, partial.error_message))
    }

    fn json(&self) -> Option<(u64, String)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Read {
            #[serde(default)]
            partial_success: Partial,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Partial {
            rejected_log_records: Number,
            error_message: String,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Number {
            Number(u64),
            // As protobuf writes large numbers in JSON.
            Text(String),
        }
        impl Default for Number {
            fn default() -> Self {
                Self::Number(0)
            }
        }
        let read: Read = serde_json::from_slice(&self.body).ok()?;
        let rejected = match read.partial_success.rejected_log_records {
            Number::Number(number) => number,
            Number::Text(text) => text.parse().ok()?,
        };
        Some((rejected, read.partial_success.error_message))
    }

    /// Returns the pause that the collector asks for, in whole seconds.
    fn pause(&self) -> Option<Duration> {
        let seconds = self.retry_after.as_ref()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds).min(MOST_PAUSE))
    }
}

/// Returns a collector's text as it may be shown; `None` if it is empty.
fn told(text: &str) -> Option<String> {
    let clean = text.chars().filter(|c| !c.is_control()).take(MOST_TEXT);
    Some(clean.collect::<String>()).filter(|text| !text.is_empty())
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsPartialSuccess;

    fn answer(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Meaning {
        Answer {
            status,
            content_type: Some(kind.into()),
            body: body.into(),
            retry_after: None,
        }
        .meaning()
    }

    fn taken(rejected: u64) -> Meaning {
        Meaning::Taken {
            rejected,
            says: None,
        }
    }

    fn is_later(meaning: &Meaning) -> bool {
        matches!(meaning, Meaning::Later { .. })
    }

    #[test]
    fn only_a_collectors_answer_acknowledges() {
        let proto = "application/x-protobuf";
        assert_eq!(answer(200, proto, ""), taken(0));
        assert_eq!(answer(202, "text/plain", ""), taken(0));
        let partial = ExportLogsServiceResponse {
            partial_success: Some(ExportLogsPartialSuccess {
                rejected_log_records: 3,
                error_message: "no\n\x1b[1mroom".into(),
            }),
        };
        let expected = Meaning::Taken {
            rejected: 3,
            says: Some("no[1mroom".into()),
        };
        assert_eq!(answer(200, proto, partial.encode_to_vec()), expected);
        let json = "application/json; charset=utf-8";
        assert_eq!(answer(200, json, "{}"), taken(0));
        let text = r#"{"partialSuccess":{"rejectedLogRecords":"2"}}"#;
        assert_eq!(answer(200, json, text), taken(2));
        assert!(is_later(&answer(200, "text/html", "<html>hello</html>")));
        assert!(is_later(&answer(200, proto, "<html>hello</html>")));
        assert!(is_later(&answer(200, json, r#"{"hello":1}"#)));
    }

    #[test]
    fn what_can_pass_is_waited_for_and_what_cannot_is_not() {
        for status in [302, 401, 403, 404, 408, 429, 500, 501, 502, 503, 504] {
            assert!(is_later(&answer(status, "", "")), "{status}");
        }
        for status in [400, 413, 422] {
            let meaning = answer(status, "", "");
            assert!(matches!(meaning, Meaning::Malformed(_)), "{status}");
        }
        let after = |text: &str| {
            let answer = Answer {
                status: 429,
                retry_after: Some(text.into()),
                ..Answer::default()
            };
            match answer.meaning() {
                Meaning::Later { after, .. } => after,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("99999999999"), Some(MOST_PAUSE));
        assert_eq!(after("Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }
}
