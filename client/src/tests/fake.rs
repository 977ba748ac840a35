//! A small fake daemon: a function decides what to do with each request.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use touchmark_proto::codec::{
    ClientMessage, Decoder, Encoder, Incoming, MAX_FRAME, MessageId, ServerMessage, Wire,
};
use touchmark_proto::daemon::{Done, Initialize, Subscribe};
use touchmark_proto::events::Event;
use touchmark_proto::sessions::SessionOpen;
use touchmark_proto::{BaseDirectories, Error, Method, PROTOCOL, Places, Reply, Request};

use crate::find::Workspace;

/// Returns a method's reply. Results are given as JSON, since only the daemon
/// can name all of their fields.
pub(super) fn reply<M: Method>(result: Value) -> Reply {
    Reply::from_json(M::NAME, result).unwrap()
}

/// Returns the reply to `ping`.
pub(super) fn pong() -> Reply {
    Reply::Ping(Done::default())
}

/// What the fake daemon does with a request.
pub(super) enum Act {
    /// Sends this reply.
    Reply(Reply),
    /// Sends the method's empty result.
    Done,
    /// Sends this error.
    Error(Error),
    /// Sends this reply after the reply to the next request.
    Hold(Reply),
    /// Answers `subscribe` and sends these events.
    Subscribed(Vec<Event>),
    /// Answers `subscribe`, sends these events and closes the connection.
    SubscribedThenClose(Vec<Event>),
    /// Closes the connection.
    Close,
    /// Closes the connection and stops listening.
    End,
}

type Answer = Box<dyn FnMut(&Request) -> Act + Send>;

struct State {
    answer: Mutex<Answer>,
    seen: Mutex<Vec<ClientMessage>>,
    ended: AtomicBool,
    say_hello: bool,
    /// The workspace that `initialize` returns.
    serves: String,
    open: Mutex<Vec<UnixStream>>,
}

pub(super) struct Fake {
    home: tempfile::TempDir,
    workspace: Workspace,
    state: Arc<State>,
}

impl Fake {
    /// Returns a fake daemon that answers `initialize` itself.
    pub(super) fn new(answer: impl FnMut(&Request) -> Act + Send + 'static) -> Self {
        Self::start(Box::new(answer), true)
    }

    /// Returns a fake daemon whose function also handles `initialize`.
    pub(super) fn with_hello(answer: impl FnMut(&Request) -> Act + Send + 'static) -> Self {
        Self::start(Box::new(answer), false)
    }

    fn start(answer: Answer, say_hello: bool) -> Self {
        let home = tempfile::tempdir().unwrap();
        let base = BaseDirectories {
            runtime: Some(home.path().join("run")),
            state: home.path().join("state"),
            config: home.path().join("config"),
            cache: home.path().join("cache"),
        };
        std::fs::create_dir_all(base.runtime_directory()).unwrap();
        let workspace = Workspace {
            root: home.path().to_owned(),
            places: Places::new(&base, home.path(), None),
        };
        let listener = UnixListener::bind(&workspace.places.socket).unwrap();
        let state = Arc::new(State {
            answer: Mutex::new(answer),
            seen: Mutex::default(),
            ended: AtomicBool::new(false),
            say_hello,
            serves: workspace.root.to_string_lossy().into_owned(),
            open: Mutex::default(),
        });
        let serving = state.clone();
        thread::spawn(move || accept(&listener, &serving));
        Self {
            home,
            workspace,
            state,
        }
    }

    pub(super) fn socket(&self) -> &Path {
        &self.workspace.places.socket
    }

    pub(super) fn workspace(&self) -> Workspace {
        self.workspace.clone()
    }

    pub(super) fn seen(&self) -> Vec<ClientMessage> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(super) fn methods(&self) -> Vec<&'static str> {
        let seen = self.state.seen.lock().unwrap();
        seen.iter()
            .map(|message| message.request.method())
            .collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        end(&self.state);
        // The thread blocks until it gets a connection; this connection lets it
        // end.
        let _ = UnixStream::connect(self.socket());
        let _ = std::fs::remove_dir_all(self.home.path());
    }
}

fn end(state: &State) {
    state.ended.store(true, Ordering::SeqCst);
    for stream in state.open.lock().unwrap().drain(..) {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

fn accept(listener: &UnixListener, state: &Arc<State>) {
    for stream in listener.incoming() {
        if state.ended.load(Ordering::SeqCst) {
            return;
        }
        let stream = stream.unwrap();
        state.open.lock().unwrap().push(stream.try_clone().unwrap());
        let serving = state.clone();
        let socket = listener.local_addr().unwrap();
        thread::spawn(move || {
            serve(stream, &serving);
            if serving.ended.load(Ordering::SeqCst) {
                let _ = UnixStream::connect_addr(&socket);
            }
        });
    }
}

fn serve(mut stream: UnixStream, state: &State) {
    let mut decoder = Decoder::new(Wire::Frames, MAX_FRAME);
    let mut held: Vec<ServerMessage> = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        while let Ok(Some(message)) = decoder.next() {
            let Incoming::One(message) = message else {
                return;
            };
            let message = message.unwrap();
            let id = message.id.clone().unwrap();
            let request = message.request.clone();
            state.seen.lock().unwrap().push(message);
            let mut out = Vec::new();
            let mut close = false;
            let reply = |outcome| ServerMessage::Reply {
                id: id.clone(),
                outcome,
            };
            match act(&request, state) {
                Act::Reply(answer) => out.push(reply(Ok(answer))),
                Act::Done => out.push(reply(Ok(done(&request)))),
                Act::Error(error) => out.push(reply(Err(error))),
                Act::Hold(answer) => {
                    held.push(reply(Ok(answer)));
                    continue;
                }
                Act::Subscribed(events) => out.extend(subscribed(id, events)),
                Act::SubscribedThenClose(events) => {
                    out.extend(subscribed(id, events));
                    close = true;
                }
                Act::Close => close = true,
                Act::End => {
                    end(state);
                    close = true;
                }
            }
            out.append(&mut held);
            let mut bytes = Vec::new();
            let encoder = Encoder::new(Wire::Frames, MAX_FRAME, &b"/"[..]);
            for message in &out {
                encoder.encode(message, &mut bytes).unwrap();
            }
            if stream.write_all(&bytes).is_err() || close {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(count) => decoder.push(&chunk[..count]),
        }
    }
}

fn act(request: &Request, state: &State) -> Act {
    if let Request::Initialize(_) = request
        && state.say_hello
    {
        return Act::Reply(reply::<Initialize>(json!({
            "server": {"name": "fake", "version": "0"},
            "protocol": PROTOCOL,
            "workspace": state.serves,
            "clock": "1:3",
            "capabilities": [],
        })));
    }
    (state.answer.lock().unwrap())(request)
}

fn subscribed(id: MessageId, events: Vec<Event>) -> Vec<ServerMessage> {
    let reply = ServerMessage::Reply {
        id,
        outcome: Ok(reply::<Subscribe>(json!({"subscription": 1}))),
    };
    std::iter::once(reply)
        .chain(events.into_iter().map(ServerMessage::Event))
        .collect()
}

fn done(request: &Request) -> Reply {
    match request {
        Request::SessionOpen(asked) => reply::<SessionOpen>(json!({
            "session": asked.session,
            "resumed": false,
            "clock": "1:1",
            "modified": [],
        })),
        Request::EditAbort(_) => Reply::EditAbort(Done::default()),
        Request::Shutdown(_) => Reply::Shutdown(Done::default()),
        Request::Ping(_) => pong(),
        other => panic!("{} has no \"done\"", other.method()),
    }
}
