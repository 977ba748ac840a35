//! The conformance vectors on every wire and with the Rust client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use touchmark_client::{Hello, aio, blocking};
use touchmark_proto::codec::{
    ClientMessage, Decoder, Encoder, Incoming, MAX_FRAME, MessageId, ServerMessage, Wire as Spoken,
};
use touchmark_proto::{Reply, Request};
use touchmark_tests::vectors::{self, Vector, Wire};
use touchmark_tests::wire::{Answer, Client, PATIENCE, answer};
use touchmark_tests::{Framed, World};

/// The number of vectors that are played in parallel.
const LANES: usize = 4;

struct Lines(Client);

impl Wire for Lines {
    fn call(&mut self, method: &str, params: &Value) -> Answer {
        self.0.call(method, params.clone())
    }
    fn event(&mut self) -> Value {
        self.0.event()
    }
}

struct Lengths(Framed);

impl Wire for Lengths {
    fn call(&mut self, method: &str, params: &Value) -> Answer {
        self.0.call(method, params)
    }
    fn event(&mut self) -> Value {
        self.0.event()
    }
}

/// Translates typed requests and replies from and to JSON. bincode has the same
/// content, and vectors are written in JSON.
struct Translated {
    root: Arc<[u8]>,
}

impl Translated {
    fn of(world: &World) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        Self {
            root: world.workspace().as_os_str().as_bytes().into(),
        }
    }

    fn request(&self, method: &str, params: &Value) -> Request {
        let mut decoder = Decoder::new(Spoken::Lines, MAX_FRAME);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        decoder.push(format!("{message}\n").as_bytes());
        match decoder.next().unwrap() {
            Some(Incoming::One(message)) => match *message {
                Ok(ClientMessage { request, .. }) => request,
                Err(rejected) => panic!("{method}: {rejected:?}"),
            },
            other => panic!("{method}: {other:?}"),
        }
    }

    fn message(&self, message: &ServerMessage) -> Value {
        let mut line = Vec::new();
        let encoder = Encoder::new(Spoken::Lines, MAX_FRAME, Arc::clone(&self.root));
        encoder.encode(message, &mut line).unwrap();
        serde_json::from_slice(&line).unwrap()
    }

    fn answer(&self, came: Result<Reply, touchmark_client::Error>) -> Answer {
        let outcome = came.map_err(|error| match error {
            touchmark_client::Error::Daemon(error) => error,
            other => panic!("{other}"),
        });
        let id = MessageId::Number(1);
        answer(&self.message(&ServerMessage::Reply { id, outcome }))
    }
}

/// The blocking client, which uses bincode.
struct Blocking {
    translated: Translated,
    client: blocking::Client,
}

impl Wire for Blocking {
    fn call(&mut self, method: &str, params: &Value) -> Answer {
        let request = self.translated.request(method, params);
        self.translated.answer(self.client.request(request))
    }
    fn event(&mut self) -> Value {
        let event = self.client.next_event(PATIENCE).unwrap().expect("an event");
        self.translated.message(&ServerMessage::Event(event))["params"].clone()
    }
}

/// The client for tokio.
struct Tokio {
    translated: Translated,
    runtime: tokio::runtime::Runtime,
    client: aio::Client,
    events: Option<aio::Events>,
}

impl Wire for Tokio {
    fn call(&mut self, method: &str, params: &Value) -> Answer {
        let request = self.translated.request(method, params);
        let came = self.runtime.block_on(async {
            // Its events come through a channel that subscribing makes.
            match request {
                Request::Subscribe(subscribe) => {
                    let (subscription, events) = self.client.subscribe(subscribe).await?;
                    self.events = Some(events);
                    let subscribed = touchmark_proto::daemon::Subscribed { subscription };
                    Ok(Reply::Subscribe(subscribed))
                }
                request => self.client.request(request, PATIENCE).await,
            }
        });
        self.translated.answer(came)
    }
    fn event(&mut self) -> Value {
        let events = self.events.as_mut().expect("a subscription");
        let event = self.runtime.block_on(events.recv()).expect("an event");
        self.translated.message(&ServerMessage::Event(event))["params"].clone()
    }
}

fn hello() -> Hello {
    Hello {
        deadline: PATIENCE,
        ..Hello::new("vectors", "1")
    }
}

fn play_all<W: Wire>(fits: impl Fn(&Vector) -> bool, connect: impl Fn(&World) -> W + Sync) {
    let vectors: Vec<Vector> = vectors::all().into_iter().filter(|one| fits(one)).collect();
    // Mostly they wait for daemons to start and end.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(vector) = vectors.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let world = vector.world();
                    vectors::play(vector, &world, &mut connect(&world));
                }
            });
        }
    });
}

#[test]
fn json_lines() {
    play_all(|_| true, |world| Lines(world.client()));
}

#[test]
fn content_length() {
    play_all(|_| true, |world| Lengths(Framed::connect(world.socket())));
}

#[test]
fn the_rust_client_and_bincode() {
    play_all(Vector::is_typed, |world| Blocking {
        translated: Translated::of(world),
        client: blocking::Client::connect(world.socket(), &hello()).unwrap(),
    });
}

#[test]
fn the_rust_client_for_tokio() {
    play_all(Vector::is_typed, |world| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(aio::Client::connect(world.socket(), &hello()));
        Tokio {
            translated: Translated::of(world),
            client: client.unwrap(),
            runtime,
            events: None,
        }
    });
}

#[test]
fn every_method_has_a_vector() {
    let known = vectors::methods();
    let missing: Vec<&&str> = touchmark_proto::methods::METHODS
        .iter()
        .filter(|method| !known.iter().any(|known| known == **method))
        .collect();
    assert!(missing.is_empty(), "no vector calls {missing:?}");
}
