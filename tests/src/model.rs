//! A model that answers as a test orders: a server on loopback that real agents
//! use as their provider.
//!
//! Each request of an agent waits until the test has looked at the text that
//! was sent and orders the answer. So a test decides what happens between two
//! steps. A request without tools is a side request (a title, a summary, a
//! token count). It gets a plain answer immediately.
//!
//! - [`wire`]: the providers' protocols, one file for each.

pub mod wire;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::parts::append;
use wire::{WIRES, Wire};

/// The answer to a side request, such as one for a summary.
pub const ASIDE: &str = "What a scripted model says aside.";

/// The reported size of a side request, in tokens. Large enough that the model
/// can have read the conversation that it summarises, and small enough that the
/// summary need not be summarised itself.
const ASIDE_TOKENS: u64 = 40_000;

/// The model's answer in one turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Text, which ends the agent's turn.
    Text(String),
    /// One tool call: name and arguments. `SPACE.NAME` for a tool in a
    /// namespace.
    Call(String, Value),
    /// One call of a tool that takes a text instead of arguments: name and
    /// text.
    Free(String, String),
    /// Like `Free`, in the format of Chat Completions.
    Custom(String, String),
}

/// A request that waits for its answer.
pub struct Asked {
    /// The texts in the request that are not the model's: the user's words,
    /// tool results, added contexts. In order.
    pub sent: Vec<String>,
    /// The part of these texts before the model's first answer. It
    /// distinguishes the conversations of sub-agents.
    pub opening: String,
    /// The whole request.
    pub body: Value,
    wire: &'static dyn Wire,
    streams: bool,
    answer: oneshot::Sender<String>,
}

impl Asked {
    /// Sends the answer, and reports this number of tokens as the size of the
    /// conversation so far.
    pub fn answer(self, said: &Said, tokens: u64) {
        let body = match self.streams {
            true => self.wire.stream(said, tokens),
            false => self.wire.whole(said, tokens).to_string(),
        };
        // An agent that has exited receives nothing.
        let _ended = self.answer.send(body);
    }
}

/// The server. It ends with the test's process.
pub struct Model {
    address: SocketAddr,
    asked: Receiver<Asked>,
    kept: VecDeque<Asked>,
}

impl Model {
    /// Listens on a free port, in the calling thread's network. Writes each
    /// request to a log, one line each: its path and its body. A request
    /// without tools is a side request if the agent `offers_tools`.
    pub fn start(log: &Path, offers_tools: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        let (sender, asked) = channel();
        let log = log.to_owned();
        std::thread::spawn(move || serve(listener, &sender, &log, offers_tools));
        Self {
            address,
            asked,
            kept: VecDeque::new(),
        }
    }

    /// Returns the server's address: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the next request for which `is_meant` is true, or `None` if none
    /// arrives in time. Other requests are queued for later calls.
    pub fn next(&mut self, within: Duration, is_meant: impl Fn(&Asked) -> bool) -> Option<Asked> {
        if let Some(place) = self.kept.iter().position(&is_meant) {
            return self.kept.remove(place);
        }
        let asked = self.asked.recv_timeout(within).ok()?;
        if is_meant(&asked) {
            return Some(asked);
        }
        self.kept.push_back(asked);
        None
    }
}

fn serve(listener: TcpListener, asked: &Sender<Asked>, log: &Path, offers_tools: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a socket");
        let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
        while let Ok((stream, _)) = listener.accept().await {
            let (asked, log) = (asked.clone(), log.to_owned());
            let service = service_fn(move |request| {
                answer(request, asked.clone(), log.clone(), offers_tools)
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // The connections of a killed agent break off.
            tokio::spawn(async move { drop(connection.await) });
        }
    });
}

async fn answer(
    request: Request<Incoming>,
    asked: Sender<Asked>,
    log: PathBuf,
    offers_tools: bool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Ok(Response::default()),
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    append(&log, &format!("{path} {body}"));
    let Some(wire) = WIRES.iter().copied().find(|wire| wire.speaks(&path)) else {
        return Ok(respond(
            StatusCode::OK,
            false,
            wire::other(&path).to_string(),
        ));
    };
    let streams = wire.streams(&path, &body);
    let plain = Said::Text(ASIDE.into());
    let (sent, opening) = wire::sent(wire.items(&body));
    let is_main = !offers_tools || wire::offers_tools(&body);
    let said = match is_main && !wire::forbids_tools(&sent) {
        true => {
            let (sender, answered) = oneshot::channel();
            let _nobody_asks_any_more = asked.send(Asked {
                sent,
                opening,
                body,
                wire,
                streams,
                answer: sender,
            });
            answered.await.ok()
        }
        false if streams => Some(wire.stream(&plain, ASIDE_TOKENS)),
        false => Some(wire.whole(&plain, ASIDE_TOKENS).to_string()),
    };
    Ok(match said {
        Some(said) => respond(StatusCode::OK, streams, said),
        None => {
            let gone = json!({"error": {"message": "the script has ended"}});
            respond(StatusCode::BAD_REQUEST, false, gone.to_string())
        }
    })
}

fn respond(status: StatusCode, streams: bool, body: String) -> Response<Full<Bytes>> {
    let kind = match streams {
        true => "text/event-stream",
        false => "application/json",
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(Full::from(body))
        .expect("a response")
}
