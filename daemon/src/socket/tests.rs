#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use touchmark_proto::codec::{
    ClientMessage, Encoder, MessageId, ReplyDecoder, ServerMessage, Wire,
};
use touchmark_proto::daemon::{Done, Ping};
use touchmark_proto::events::{Event as Notification, Happening};
use touchmark_proto::{Clock, ConnectionId, ErrorCode, Reply, Request};

use super::{DECODERS, Hub, Peer, Unfinished, serve};
use crate::event::Event;
use crate::time::Timeline;

const MAX_FRAME: usize = 64 << 10;

/// A connection whose requests the test answers in place of the loop.
struct World {
    client: UnixStream,
    peer: Arc<Peer>,
    events: UnboundedReceiver<Event>,
}

fn connect() -> World {
    let (hub, events) = hub(MAX_FRAME);
    let (client, peer) = connect_to(&hub, 1);
    World {
        client,
        peer,
        events,
    }
}

fn hub(max_frame: usize) -> (Arc<Hub>, UnboundedReceiver<Event>) {
    let (sender, events) = unbounded_channel();
    let hub = Hub {
        events: sender,
        requests: AtomicU64::new(1),
        max_frame,
        root: Arc::from(b"/w".as_slice()),
        time: Timeline::start(),
        unfinished: Unfinished::default(),
        decoders: Semaphore::new(DECODERS),
    };
    (Arc::new(hub), events)
}

fn connect_to(hub: &Arc<Hub>, number: u64) -> (UnixStream, Arc<Peer>) {
    let (client, server) = UnixStream::pair().unwrap();
    let peer = Arc::new(Peer::new(ConnectionId(number), server));
    tokio::spawn(serve(Arc::clone(&peer), Arc::clone(hub)));
    (client, peer)
}

/// Many connections send a large half of a request each. Those with the most
/// are refused, and one that completes a large request is answered.
#[tokio::test]
async fn half_sent_requests_are_bounded_all_together() {
    let (hub, mut events) = hub(touchmark_proto::codec::MAX_FRAME);
    let half = [b"{\"x\":\"".as_slice(), &vec![b'y'; 15 << 20]].concat();
    let mut clients = Vec::new();
    for number in 1..=10 {
        let (mut client, peer) = connect_to(&hub, number);
        // A connection that was refused meanwhile cannot write any more.
        let _refused = client.write_all(&half).await;
        clients.push((client, peer));
    }
    let (mut other, peer) = connect_to(&hub, 99);
    let mut whole = vec![b' '; 1 << 20];
    whole.extend(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    other.write_all(&whole).await.unwrap();
    let request = loop {
        match events.recv().await.unwrap() {
            Event::Ask { request, .. } => break request,
            Event::Disconnected(_) => {}
            event => panic!("{event:?}"),
        }
    };
    peer.answer(request, Ok(Reply::Ping(Done {})));
    peer.flush();
    let mut said = vec![0; 7];
    other.read_exact(&mut said).await.unwrap();
    assert!(hub.unfinished.bytes() <= 64 << 20);
    let open = clients.iter().filter(|(_, peer)| !peer.wanted().deaf);
    assert!((1..=4).contains(&open.count()), "of 10");
    let (mut first, refused) = clients
        .into_iter()
        .find(|(_, peer)| peer.wanted().deaf)
        .unwrap();
    let mut said = Vec::new();
    let _reset = first.read_to_end(&mut said).await;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("tooLarge"), "{said}: {refused:?}");
}

impl World {
    /// Answers every request with "done" until the connection ends.
    async fn answer_all(mut events: UnboundedReceiver<Event>, peer: Arc<Peer>) -> usize {
        let mut asked = 0;
        while let Some(event) = events.recv().await {
            match event {
                Event::Ask { request, .. } => {
                    asked += 1;
                    peer.answer(request, Ok(Reply::Ping(Done {})));
                    peer.flush();
                }
                Event::Disconnected(_) => break,
                event => panic!("{event:?}"),
            }
        }
        asked
    }

    /// Sends bytes, closes the sending side, and collects what is answered.
    async fn say(self, bytes: &[u8]) -> (String, usize) {
        let World {
            mut client,
            peer,
            events,
            ..
        } = self;
        let answers = tokio::spawn(Self::answer_all(events, peer));
        // The other side may close before it has read everything.
        let _cut_off = client.write_all(bytes).await;
        let _closed = client.shutdown().await;
        let mut said = Vec::new();
        let _reset = client.read_to_end(&mut said).await;
        (String::from_utf8(said).unwrap(), answers.await.unwrap())
    }
}

#[tokio::test]
async fn a_ping_over_each_wire() {
    for wire in [Wire::Frames, Wire::Lines, Wire::ContentLength] {
        let World {
            mut client,
            peer,
            events,
            ..
        } = connect();
        let answers = tokio::spawn(World::answer_all(events, peer));
        let encoder = Encoder::new(wire, MAX_FRAME, b"/w".as_slice());
        let mut bytes = wire.preface().to_vec();
        for id in 1..=3_u64 {
            let message = ClientMessage {
                id: Some(id.into()),
                within_ms: Some(1000),
                request: Request::Ping(Ping {}),
            };
            encoder.request(&message, &mut bytes).unwrap();
        }
        // One byte at a time: no message may depend on how the bytes are split.
        for byte in bytes {
            client.write_all(&[byte]).await.unwrap();
        }
        let mut decoder = ReplyDecoder::new(wire, MAX_FRAME, b"/w".as_slice());
        let mut got = Vec::new();
        while got.len() < 3 {
            let mut buffer = [0; 100];
            let count = client.read(&mut buffer).await.unwrap();
            assert!(count > 0, "{wire:?} closed after {got:?}");
            decoder.push(&buffer[..count]);
            while let Some(message) = decoder.next(|_| Some("ping")).unwrap() {
                got.push(message);
            }
        }
        for (message, id) in got.into_iter().zip(1_u64..) {
            let expected = ServerMessage::Reply {
                id: MessageId::from(id),
                outcome: Ok(Reply::Ping(Done {})),
            };
            assert_eq!(message, expected, "{wire:?}");
        }
        drop(client);
        assert_eq!(answers.await.unwrap(), 3);
    }
}

#[tokio::test]
async fn a_client_that_has_said_all_still_gets_its_answers() {
    let (said, asked) = connect()
        .say(b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}")
        .await;
    assert_eq!(said, "{\"id\":\"a\",\"jsonrpc\":\"2.0\",\"result\":{}}\n");
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn a_batch_is_answered_as_one_array_and_notifications_not_at_all() {
    let (said, asked) = connect()
        .say(
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},\
              {\"jsonrpc\":\"2.0\",\"method\":\"ping\"},\
              {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"nope\"}]\n\
              {\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n",
        )
        .await;
    assert_eq!(asked, 3);
    let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
    let answers = answer.as_array().unwrap();
    assert_eq!(answers.len(), 2);
    let code = |id: u64| {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        answer["error"]["code"].as_i64()
    };
    assert_eq!(code(1), None);
    assert_eq!(code(2), Some(-32601));
}

#[tokio::test]
async fn hostile_bytes_get_an_error_or_an_end() {
    let mut huge_line = b"{\"id\":1,\"method\":\"".to_vec();
    huge_line.resize(3 * MAX_FRAME, b'x');
    let mut huge_frame = b"TMK1".to_vec();
    huge_frame.extend_from_slice(&u32::MAX.to_le_bytes());
    let cases: [(&[u8], &str); 8] = [
        (b"GET / HTTP/1.1\r\n\r\n", "-32700"),
        (b"\x16\x03\x01", "-32700"),
        (b"{not json}\n", "-32700"),
        (b"[]\n", "-32600"),
        (b"{\"id\":1,\"method\":\"\xff\"}\n", "-32700"),
        (b"Content-Length: 99999999999\r\n\r\n", "-32019"),
        (b"Content-Length: 10\r\n\r\n{}", "-32600"),
        (&huge_line, "-32019"),
    ];
    for (bytes, code) in cases {
        let (said, asked) = connect().say(bytes).await;
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
        assert!(said.contains(code), "{shown:?} was answered {said:?}");
        assert_eq!(asked, 0, "{shown:?}");
    }
    for bytes in [b"TMKX\0\0\0\0".as_slice(), b"TM", &huge_frame] {
        let World {
            mut client,
            peer,
            events,
            ..
        } = connect();
        let answers = tokio::spawn(World::answer_all(events, peer));
        let _cut_off = client.write_all(bytes).await;
        client.shutdown().await.unwrap();
        let mut said = Vec::new();
        let _reset = client.read_to_end(&mut said).await;
        assert_eq!(answers.await.unwrap(), 0);
    }
    // A client that sends nothing at all.
    assert_eq!(connect().say(b"").await, (String::new(), 0));
}

fn notification() -> Notification {
    Notification {
        subscription: 1,
        clock: Clock { epoch: 1, n: 1 },
        happening: Happening::Degraded {
            path: None,
            cause: "x".repeat(1 << 10),
        },
    }
}

#[tokio::test]
async fn a_reader_too_slow_for_its_events_is_cut_off() {
    let World {
        mut client,
        peer,
        mut events,
        ..
    } = connect();
    client
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .await
        .unwrap();
    let Some(Event::Ask { .. }) = events.recv().await else {
        panic!("no request");
    };
    // Far more than the limit and the socket's own buffer; the client reads
    // none of it.
    for _ in 0..20_000 {
        peer.event(notification());
    }
    let Some(Event::Disconnected(id)) = events.recv().await else {
        panic!("not disconnected");
    };
    assert_eq!(id, ConnectionId(1));
    let mut said = Vec::new();
    let _reset = client.read_to_end(&mut said).await;
    assert!(said.len() < super::peer::MAX_EVENT_BYTES);
}

#[tokio::test]
async fn a_client_that_only_asks_is_no_longer_read() {
    let World {
        mut client,
        peer,
        mut events,
        ..
    } = connect();
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    client
        .write_all(&line.repeat(super::peer::MAX_IN_FLIGHT * 2))
        .await
        .unwrap();
    let mut asked = Vec::new();
    while asked.len() < super::peer::MAX_IN_FLIGHT {
        match events.recv().await {
            Some(Event::Ask { request, .. }) => asked.push(request),
            event => panic!("{event:?}"),
        }
    }
    assert!(events.try_recv().is_err(), "read beyond the limit");
    // Each answer makes room for one more request.
    peer.answer(asked[0], Ok(Reply::Ping(Done {})));
    peer.flush();
    assert!(matches!(events.recv().await, Some(Event::Ask { .. })));
    tokio::task::yield_now().await;
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn a_client_that_vanishes_is_noticed_with_requests_open() {
    let World {
        mut client,
        peer: _peer,
        mut events,
        ..
    } = connect();
    client
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .await
        .unwrap();
    assert!(matches!(events.recv().await, Some(Event::Ask { .. })));
    drop(client);
    assert!(matches!(events.recv().await, Some(Event::Disconnected(_))));
}

#[tokio::test]
async fn the_last_answer_is_written_before_the_close() {
    let World {
        mut client,
        peer,
        mut events,
        ..
    } = connect();
    client
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\"}\n")
        .await
        .unwrap();
    let Some(Event::Ask { request, .. }) = events.recv().await else {
        panic!("no request");
    };
    peer.answer(
        request,
        Err(touchmark_proto::Error::new(ErrorCode::ShuttingDown, "bye")),
    );
    peer.close();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert!(said.contains("-32025"), "{said}");
}
