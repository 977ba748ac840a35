//! The daemon's methods that the page may call.

use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::Incoming as Body;
use hyper::header::{self, HeaderMap};
use serde::Deserialize;
use serde_json::{Value, json};
use touchmark_client::aio::{Client, connect};
use touchmark_client::proto::codec::json::error_to_json;
use touchmark_client::proto::{Reply, Request, native};
use touchmark_client::{Error, Result, Workspace};

use super::answer::{self, Response};
use crate::context::hello;
use crate::wire::{parsed, result_json};

/// The largest body of a request: thousands of hunks by their names.
const MAX_BODY: usize = 1024 * 1024;

/// How long a body may take to arrive.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// How long the daemon may take to answer. An undo of many files takes
/// seconds.
const DEADLINE: Duration = Duration::from_secs(30);

/// Whether a call may be sent a second time when the connection broke before
/// its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Changes nothing.
    Reads,
    /// May have taken effect.
    Changes,
}
use Does::{Changes, Reads};

/// What the page may call, and for what. All other methods are refused: above
/// all those that act for a session (`file/read`, `edit/begin`,
/// `modified/take`), that write any content, and that end the daemon or remove
/// what is stored.
const ALLOWED: &[(&str, Does, &str)] = &[
    ("status", Reads, "counters, and what is degraded"),
    ("stats", Reads, "what was refused and saved"),
    ("sync", Reads, "the clock from which events continue"),
    ("session/list", Reads, "who works here"),
    ("file/list", Reads, "what a session has in its context"),
    (
        "file/status",
        Reads,
        "which of a session's copies are stale",
    ),
    ("file/history", Reads, "a file's versions"),
    ("file/log", Reads, "who changed what, over time"),
    (
        "activity/list",
        Reads,
        "what was read and refused, over time",
    ),
    ("file/content", Reads, "a version's text"),
    ("file/diff", Reads, "two versions beside each other"),
    ("file/blame", Reads, "the authors in the gutter"),
    ("file/restore", Changes, "gives a file a version again"),
    ("modified/list", Reads, "what changed since a moment"),
    ("command/list", Reads, "what agents ran"),
    ("checkpoint/list", Reads, "the marks on a timeline"),
    ("model/list", Reads, "which model a session uses"),
    ("task/list", Reads, "what still runs"),
    ("search/grep", Reads, "finds a file by what is in it"),
    ("review/list", Reads, "the queue"),
    ("review/keep", Changes, "takes hunks out of the queue"),
    ("review/undo", Changes, "takes hunks out of their files"),
    ("review/view", Changes, "marks hunks as viewed"),
    ("review/comment", Changes, "writes a comment to an agent"),
    ("undo", Changes, "undoes a session, a command or a version"),
    ("claim", Changes, "says who wrote a change"),
    ("undo/list", Reads, "what can be redone"),
    ("redo", Changes, "takes an undo back"),
    ("recovery/list", Reads, "bytes that lost their name"),
    ("recovery/show", Reads, "one of them"),
    ("worktree/list", Reads, "what other worktrees have changed"),
];

/// The body of `POST /api/call`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageCall {
    method: String,
    #[serde(default)]
    params: Option<Value>,
}

/// The daemon, for the calls of all pages.
#[derive(Debug)]
pub(super) struct Daemon {
    workspace: Workspace,
    /// Shared by all calls; made again when it breaks.
    connection: tokio::sync::Mutex<Option<Client>>,
}

impl Daemon {
    pub(super) fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            connection: tokio::sync::Mutex::default(),
        }
    }

    /// Answers `POST /api/call`.
    pub(super) async fn answer(&self, headers: &HeaderMap, body: Body) -> Response {
        let body = match read(headers, body).await {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        let call: PageCall = match serde_json::from_slice(&body) {
            Ok(call) => call,
            Err(error) => {
                let hint = r#"send {"method": "...", "params": {...}}"#;
                return answer::error(StatusCode::BAD_REQUEST, &error.to_string(), hint);
            }
        };
        let row = ALLOWED.iter().find(|(method, ..)| *method == call.method);
        let Some((method, does, _)) = row else {
            let hint = "cli/src/ui/calls.rs lists the methods of the page";
            return answer::error(StatusCode::FORBIDDEN, "the page may not call this", hint);
        };
        let params = call.params.unwrap_or_else(|| json!({}));
        let answer = match parsed(method, &params) {
            Ok(request) => self.call(request, *does).await,
            Err(error) => Err(Error::Daemon(error)),
        };
        let root = &self.workspace.root;
        let answer = match answer {
            Ok(reply) => json!({"result": result_json(reply, root)}),
            Err(Error::Daemon(error)) => {
                json!({"error": error_to_json(&error, &native::bytes(root))})
            }
            Err(error) => {
                json!({"error": answer::failure(error.code(), &error.to_string(), error.hint())})
            }
        };
        answer::json(StatusCode::OK, &answer)
    }

    async fn call(&self, request: Request, does: Does) -> Result<Reply> {
        match self.once(request.clone()).await {
            Err(error) if error.is_disconnected() && does == Reads => self.once(request).await,
            done => done,
        }
    }

    async fn once(&self, request: Request) -> Result<Reply> {
        self.client().await?.request(request, DEADLINE).await
    }

    /// Returns the connection. It starts no daemon: one that the user has
    /// stopped stays stopped.
    async fn client(&self) -> Result<Client> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let new = connect(&self.workspace, &hello()).await?;
        *connection = Some(new.clone());
        Ok(new)
    }
}

/// Reads a body of bounded size in bounded time.
async fn read(headers: &HeaderMap, body: Body) -> std::result::Result<Vec<u8>, Box<Response>> {
    let refuse = |status, message: &str, hint: &str| Box::new(answer::error(status, message, hint));
    // A form of another site cannot send this type without the permission of
    // this server.
    if headers
        .get(header::CONTENT_TYPE)
        .is_none_or(|sent| sent != "application/json")
    {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(refuse(
            status,
            "the body is not application/json",
            "send JSON",
        ));
    }
    let body = Limited::new(body, MAX_BODY).collect();
    match tokio::time::timeout(BODY_DEADLINE, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "a body has at most 1 MiB",
            "send several calls",
        )),
        Ok(Err(error)) => Err(refuse(
            StatusCode::BAD_REQUEST,
            &error.to_string(),
            "send it again",
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive",
            "send it again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use touchmark_client::proto::METHODS;

    use super::*;

    #[test]
    fn every_allowed_method_exists_once() {
        let names: BTreeSet<&str> = ALLOWED.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), ALLOWED.len());
        for name in names {
            assert!(METHODS.contains(&name), "{name}");
        }
    }

    /// A method that writes, acts for a session or ends something must be
    /// added here on purpose.
    #[test]
    fn these_may_change_something_and_no_others() {
        let changing = ALLOWED.iter().filter(|(_, does, _)| *does == Changes);
        let names: Vec<&str> = changing.map(|(name, ..)| *name).collect();
        let expected = [
            "file/restore",
            "review/keep",
            "review/undo",
            "review/view",
            "review/comment",
            "undo",
            "claim",
            "redo",
        ];
        assert_eq!(names, expected);
        for (name, does, _) in ALLOWED.iter().filter(|(_, does, _)| *does == Reads) {
            let verb = name.rsplit('/').next().unwrap_or_default();
            let reads = [
                "status", "stats", "sync", "list", "history", "log", "content", "diff", "blame",
                "grep", "show",
            ];
            assert!(reads.contains(&verb), "{name} {does:?}");
        }
    }
}
