//! The listener, the routes, and when the server ends.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use touchmark_client::Workspace;

use super::answer::{self, Response};
use super::calls::Daemon;
use super::gate::{Gate, Pass};
use super::stream::Open;
use super::{assets, events, peer};
use crate::output::Outcome;
use crate::system::signals;

/// How many connections may be open. A browser opens six for one host.
const MAX_CONNECTIONS: usize = 64;

/// How long a client may take to send a request's headers. An idle connection
/// is closed after that time, too.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);

/// How long a client may take to receive some of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most that a request's headers may take.
const MAX_HEADERS: usize = 64 * 1024;

/// How long the server waits for the first page.
const FIRST_PAGE: Duration = Duration::from_secs(300);

/// Why the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By a signal.
    Signal,
    /// All pages were closed.
    Closed,
    /// No page was opened.
    NeverOpened,
}

/// What all connections share.
struct Server {
    gate: Gate,
    workspace: Workspace,
    daemon: Daemon,
    /// Each page that is open has a stream of events.
    open: Open,
}

/// Serves the page of a workspace on a port of 127.0.0.1 (0: a free one) until
/// a signal comes or its pages have been closed for `linger`. `ready` gets the
/// address once the server listens.
pub(crate) fn serve(
    workspace: Workspace,
    port: u16,
    linger: Duration,
    ready: impl FnOnce(&str) -> Outcome,
) -> Outcome<End> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime")?;
    let served = runtime.block_on(until_the_end(workspace, port, linger, ready));
    runtime.shutdown_background();
    served
}

async fn until_the_end(
    workspace: Workspace,
    port: u16,
    linger: Duration,
    ready: impl FnOnce(&str) -> Outcome,
) -> Outcome<End> {
    let told_to_end = signals::told_to_end().context("signals")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("port {port} of 127.0.0.1"))?;
    let port = listener.local_addr().context("the port")?.port();
    let server = Arc::new(Server {
        gate: Gate::new(port).context("random bytes")?,
        daemon: Daemon::new(workspace.clone()),
        workspace,
        open: Open::default(),
    });
    ready(&server.gate.address())?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut ended = pin!(async {
        tokio::select! {
            end = without_pages(&server.open, linger) => end,
            () = told_to_end => End::Signal,
        }
    });
    loop {
        let accepted = tokio::select! {
            end = &mut ended => return Ok(end),
            accepted = listener.accept() => accepted,
        };
        let Ok((connection, _)) = accepted else {
            // No descriptors are left; some will be.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // One that finds no place is closed.
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                server.connection(connection).await;
                drop(place);
            });
        }
    }
}

/// Returns once no page has been open for `linger`. A page that is loaded again
/// closes its stream and opens another. The first page may take longer: a
/// person opens it.
async fn without_pages(open: &Open, linger: Duration) -> End {
    let mut count = open.subscribe();
    let first = timeout(FIRST_PAGE.max(linger), count.wait_for(|count| *count > 0));
    if first.await.is_err() {
        return End::NeverOpened;
    }
    loop {
        let _ = count.wait_for(|count| *count == 0).await;
        let next = timeout(linger, count.wait_for(|count| *count > 0));
        if next.await.is_err() {
            return End::Closed;
        }
    }
}

impl Server {
    async fn connection(self: Arc<Self>, connection: TcpStream) {
        let (Ok(other), Ok(here)) = (connection.peer_addr(), connection.local_addr()) else {
            return;
        };
        if !peer::is_own(other, here) {
            return;
        }
        peer::give_up_after(&connection, PATIENCE);
        let service = service_fn(|request| Arc::clone(&self).respond(request));
        // Its errors are the client's: it has sent no HTTP, or went away.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_DEADLINE)
            .max_buf_size(MAX_HEADERS)
            .serve_connection(TokioIo::new(connection), service)
            .await;
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Result<Response, Infallible> {
        let (head, body) = request.into_parts();
        let mut response = match self.gate.check(&head) {
            Ok(Pass::Cookie) => self.route(&head, body).await,
            Ok(Pass::Token) => self.welcome(),
            Err(why) => refused(&head, why),
        };
        answer::complete(response.headers_mut());
        Ok(response)
    }

    /// Answers a request of the page.
    async fn route(&self, head: &Parts, body: Incoming) -> Response {
        match (&head.method, head.uri.path()) {
            (&Method::POST, "/api/call") => self.daemon.answer(&head.headers, body).await,
            (&Method::GET, "/api/events") => {
                events::answer(&self.workspace, &self.open, &head.uri, &head.headers)
            }
            (&Method::GET, "/api/about") => self.about(),
            (&Method::GET, path) => assets::serve(path, head.uri.query(), &head.headers),
            _ => {
                let hint = "the page sends GET, and POST to /api/call";
                let status = StatusCode::METHOD_NOT_ALLOWED;
                answer::error(status, "no such method here", hint)
            }
        }
    }

    /// Replaces the token in the address by a cookie, so that it is in no
    /// bookmark and in no history.
    fn welcome(&self) -> Response {
        let mut response = answer::text(StatusCode::SEE_OTHER, "Continue at /");
        let headers = response.headers_mut();
        headers.insert(header::LOCATION, HeaderValue::from_static("/"));
        if let Ok(cookie) = HeaderValue::from_str(&self.gate.set_cookie()) {
            headers.insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Returns what the page shows in addition to the daemon's answers.
    fn about(&self) -> Response {
        let home = std::env::var_os("HOME").unwrap_or_default();
        let about = json!({
            "workspace": self.workspace.root.to_string_lossy(),
            "version": env!("CARGO_PKG_VERSION"),
            "home": home.to_string_lossy(),
        });
        answer::json(StatusCode::OK, &about)
    }
}

/// Returns the answer to a request that was refused.
fn refused(head: &Parts, why: &str) -> Response {
    const HINT: &str = "Run `touchmark ui` again, and open the address that it prints.";
    if head.uri.path().starts_with("/api/") {
        return answer::error(StatusCode::FORBIDDEN, why, HINT);
    }
    answer::text(StatusCode::FORBIDDEN, &format!("touchmark: {why}\n{HINT}"))
}
