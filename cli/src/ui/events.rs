//! `GET /api/events`: the daemon's events as server-sent events.
//!
//! A stream goes on when the daemon was restarted. Each of its messages has a
//! clock as its id, so that a browser that has reconnected continues there.

use std::thread;
use std::time::Duration;

use http_body_util::Either;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{StatusCode, Uri};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use touchmark_client::feed::{Feed, Next};
use touchmark_client::proto::Clock;
use touchmark_client::proto::daemon::Subscribe;
use touchmark_client::{Error, Workspace};

use super::answer::{self, Response};
use super::stream::{Open, Stream};
use crate::context::hello;
use crate::wire::event_json;

/// How many streams may be open.
const MAX_STREAMS: usize = 8;

/// How long a stream's thread waits for an event before it looks whether the
/// page is still there.
const WAIT: Duration = Duration::from_secs(5);

/// The pause before the daemon is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How many messages may wait for a page that reads slowly. Beyond that the
/// thread waits, and then the daemon's client for it.
const MAX_WAITING: usize = 1024;

/// Answers `GET /api/events`.
pub(super) fn answer(
    workspace: &Workspace,
    open: &Open,
    uri: &Uri,
    headers: &HeaderMap,
) -> Response {
    let since = match since(uri, headers) {
        Ok(since) => since,
        Err(said) => {
            let message = format!("{said:?} is no clock");
            let hint = "send the id of the last event, as it was";
            return answer::error(StatusCode::BAD_REQUEST, &message, hint);
        }
    };
    if *open.borrow() >= MAX_STREAMS {
        let hint = "close some of the pages";
        let status = StatusCode::TOO_MANY_REQUESTS;
        return answer::error(status, "too many pages are open", hint);
    }
    let (sender, messages) = mpsc::channel(MAX_WAITING);
    let workspace = workspace.clone();
    // Its connection blocks, so it needs a thread, which ends with the stream.
    thread::spawn(move || follow(workspace, since, &sender));
    let mut response = hyper::Response::new(Either::Right(Stream::new(messages, open)));
    let content_type = HeaderValue::from_static("text/event-stream");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// Returns the clock after which events are requested; `None` means only new
/// events.
fn since(uri: &Uri, headers: &HeaderMap) -> Result<Option<Clock>, String> {
    let last = headers.get("last-event-id").map(HeaderValue::to_str);
    let named = uri.query().and_then(|query| query.strip_prefix("since="));
    let said = match (last, named) {
        (Some(Ok(last)), _) => last.to_owned(),
        // As `encodeURIComponent` writes it.
        (_, Some(named)) => named.replace("%3A", ":"),
        (_, None) => return Ok(None),
    };
    said.parse().map(Some).map_err(|_| said)
}

/// Sends the events of the workspace's daemon, and of the daemons that replace
/// it, until the stream is dropped.
fn follow(workspace: Workspace, mut since: Option<Clock>, to: &mpsc::Sender<String>) {
    let mut feed: Option<Feed> = None;
    let mut lost = false;
    while !to.is_closed() {
        let next = match &mut feed {
            Some(feed) => feed.next(WAIT),
            None => open(&workspace, since).map(|(opened, next)| {
                feed = Some(opened);
                next
            }),
        };
        let connected = match next {
            Ok(Next::Quiet) => continue,
            Ok(Next::Event(event)) => {
                since = Some(event.clock);
                let kind = event.happening.kind();
                let sent = message(kind, since, &event_json(&event, &workspace.root));
                if to.blocking_send(sent).is_err() {
                    return;
                }
                continue;
            }
            Ok(Next::Reconnected) => json!({"state": "connected"}),
            Ok(Next::Missed) => json!({"state": "connected", "missed": true}),
            Err(error) => {
                if !lost && to.blocking_send(lost_because(&error)).is_err() {
                    return;
                }
                lost = true;
                thread::sleep(LOOK_AGAIN);
                continue;
            }
        };
        lost = false;
        since = feed.as_ref().and_then(Feed::since).or(since);
        if to
            .blocking_send(message("connection", since, &connected))
            .is_err()
        {
            return;
        }
    }
}

/// Subscribes, if a daemon runs. Also returns whether events are missing.
fn open(workspace: &Workspace, since: Option<Clock>) -> Result<(Feed, Next), Error> {
    let wanted = Subscribe {
        since,
        ..Subscribe::new()
    };
    // No time limit: the page shows at once that the daemon has exited.
    let feed = Feed::open(workspace.clone(), hello(), wanted, Duration::ZERO)?;
    // Where the daemon no longer knew the clock, the feed begins at another.
    let next = match since.is_some() && feed.since() != since {
        true => Next::Missed,
        false => Next::Reconnected,
    };
    Ok((feed, next))
}

fn lost_because(error: &Error) -> String {
    let why = json!({"state": "lost", "message": error.to_string(), "hint": error.hint()});
    message("connection", None, &why)
}

/// Returns one message. JSON has no line breaks, and neither have kinds and
/// clocks.
fn message(kind: &str, id: Option<Clock>, data: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {kind}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_stream_continues_after_the_last_event() {
        let clock = |text: &str| Some(text.parse::<Clock>().unwrap());
        let asked = |target: &str, last: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(last) = last {
                headers.insert("last-event-id", last.parse().unwrap());
            }
            since(&target.parse().unwrap(), &headers)
        };
        assert_eq!(asked("/api/events", None), Ok(None));
        assert_eq!(asked("/api/events?since=1:7", None), Ok(clock("1:7")));
        assert_eq!(asked("/api/events?since=1%3A7", None), Ok(clock("1:7")));
        // What the browser adds on reconnecting is newer than the address.
        assert_eq!(
            asked("/api/events?since=1:7", Some("1:9")),
            Ok(clock("1:9"))
        );
        assert!(asked("/api/events?since=x", None).is_err());
        assert!(asked("/api/events?since=", None).is_err());
    }

    #[test]
    fn a_message_is_one_whatever_its_text() {
        let data = json!({"label": "a\n\ndata: x\r\u{2028}"});
        let text = message("read", Some("1:7".parse().unwrap()), &data);
        let lines: Vec<&str> = text.split(['\n', '\r']).collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!(lines[..2], ["id: 1:7", "event: read"]);
        assert_eq!(lines[3..], ["", ""]);
    }
}
