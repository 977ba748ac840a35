//! Tests of both clients against a small fake daemon.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;

use std::time::Duration;

use fake::{Act, Fake, pong, reply};
use serde_json::json;
use touchmark_proto::daemon::{Ping, Shutdown, Status, Subscribe, Sync};
use touchmark_proto::edits::{EditBegin, EditCommit};
use touchmark_proto::events::Event;
use touchmark_proto::{Clock, Error as DaemonError, ErrorCode, Method, Reply, Request};

use crate::blocking::Client;
use crate::feed::{Feed, Next};
use crate::{Error, Hello, Session, Start, aio, connect_or_start, hash_of};

const SHORT: Duration = Duration::from_millis(60);

fn hello() -> Hello {
    Hello::default()
}

fn event(n: u64) -> Event {
    let event =
        json!({"subscription": 1, "clock": format!("1:{n}"), "happening": {"overflow": {}}});
    serde_json::from_value(event).unwrap()
}

/// Returns the reply to `sync` with this clock.
fn synced(epoch: u64, n: u64) -> Reply {
    reply::<Sync>(json!({"clock": format!("{epoch}:{n}")}))
}

/// Returns the reply to `edit/begin`.
fn begun() -> Reply {
    reply::<EditBegin>(json!({"edit": "e1", "deadline": 0, "files": []}))
}

/// Returns the error of a daemon with this version of the protocol.
fn incompatible(message: &str, server: u32) -> DaemonError {
    let mut error = DaemonError::new(ErrorCode::Incompatible, message);
    error.data.server = Some(server);
    error
}

/// Answers each `sync` with its place in the order of arrival, as the clock.
fn counting() -> impl FnMut(&Request) -> Act + Send {
    let mut n = 0;
    move |request| match request {
        Request::Sync(_) => {
            n += 1;
            Act::Reply(synced(1, n))
        }
        _ => Act::Done,
    }
}

/// SEC-8: `TOUCHMARK_SOCKET` is the same for every directory, so it may name
/// the socket of another workspace's daemon.
#[test]
fn sec8_another_workspaces_daemon_is_refused_with_both_paths() {
    let fake = Fake::new(|_| Act::Done);
    let elsewhere = tempfile::tempdir().unwrap();
    let theirs = fake.workspace();
    let root = elsewhere.path().canonicalize().unwrap();
    let mut places = theirs.places.clone();
    places.runtime = root.join("run");
    let meant = crate::Workspace { root, places };
    let refused = |error: Error| {
        assert_eq!(error.code(), "place", "{error}");
        let told = error.to_string();
        for path in [&meant.root, &theirs.root, &theirs.places.socket] {
            assert!(told.contains(&*path.to_string_lossy()), "{told}");
        }
    };
    refused(meant.connect(&hello()).unwrap_err());
    refused(meant.connect_silent(&hello()).unwrap_err());
    refused(connect_or_start(&meant, &hello(), &Start::default()).unwrap_err());
    run(async {
        refused(aio::connect(&meant, &hello()).await.unwrap_err());
        let start = Start::default();
        let started = aio::connect_or_start(&meant, &hello(), &start).await;
        refused(started.unwrap_err());
    });
    assert!(fake.methods().iter().all(|method| *method == "initialize"));
    theirs.connect(&hello()).unwrap();
}

/// SEC-8: this test needs root, to let another user listen.
#[cfg(target_os = "linux")]
#[test]
fn sec8_another_user_is_not_spoken_to() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};
    let me = crate::local::me();
    assert_eq!(
        me.uid, 0,
        "only root becomes another user: run this as root"
    );
    let home = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(home.path(), open).unwrap();
    let socket = home.path().join("s");
    let listening = "$| = 1; $s = IO::Socket::UNIX->new(Local => shift, Listen => 5) or die $!; \
                     print qq(\n); <STDIN>";
    let mut stranger = Command::new("setpriv")
        .args(["--reuid=1002", "--regid=1002", "--clear-groups"])
        .args(["perl", "-MIO::Socket::UNIX", "-e", listening])
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let said = stranger.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).unwrap();
    assert_eq!(line, "\n", "it does not listen");
    let error = Client::connect(&socket, &hello()).unwrap_err();
    assert_eq!(error.code(), "place", "{error}");
    assert!(error.to_string().contains("user 1002"), "{error}");
    assert!(Client::connect_silent(&socket, hello().deadline).is_err());
    let asked = run(aio::Client::connect(&socket, &hello()));
    assert_eq!(asked.unwrap_err().code(), "place");
    assert!(!crate::sockets::listens(&socket), "it marks no workspace");
    drop(stranger.stdin.take());
    stranger.wait().unwrap();
}

#[test]
fn calls_are_typed_and_errors_keep_name_and_hint() {
    let fake = Fake::new(|request| match request {
        Request::Ping(_) => Act::Reply(pong()),
        Request::Sync(_) => Act::Error(DaemonError::new(ErrorCode::Busy, "held").hint("wait")),
        // This reply belongs to another method.
        _ => Act::Reply(pong()),
    });
    let client = Client::connect(fake.socket(), &hello()).unwrap();
    assert_eq!(client.server().unwrap().server.name, "fake");
    client.call(Ping::new()).unwrap();
    let error = client.call(Sync::new()).unwrap_err();
    assert_eq!((error.code(), error.hint()), ("busy", "wait"));
    assert_eq!(client.call(Status::new()).unwrap_err().code(), "protocol");
    client.call(Ping::new()).unwrap();
}

#[test]
fn a_pipeline_keeps_the_order_and_each_error() {
    let mut n = 0;
    let fake = Fake::new(move |_| {
        n += 1;
        match n {
            100 => Act::Error(DaemonError::new(ErrorCode::Storage, "full")),
            _ => Act::Reply(synced(1, n)),
        }
    });
    let client = Client::connect(fake.socket(), &hello()).unwrap();
    let answers = client.pipeline((0..300).map(|_| Sync::new())).unwrap();
    assert_eq!(answers.len(), 300);
    for (answer, n) in answers.iter().zip(1..) {
        match answer {
            Ok(synced) => assert_eq!(synced.clock.n, n),
            Err(error) => assert_eq!((error.code(), n), ("storage", 100)),
        }
    }
}

#[test]
fn a_silent_daemon_is_an_error_at_the_deadline_and_a_late_answer_is_dropped() {
    // LIFE-4: the answer to the first `sync` is sent only after the next
    // request.
    let mut held = true;
    let fake = Fake::new(move |request| match request {
        Request::Sync(_) if held => {
            held = false;
            Act::Hold(synced(9, 9))
        }
        Request::Sync(_) => Act::Reply(synced(1, 2)),
        _ => Act::Done,
    });
    let client = Client::connect(fake.socket(), &hello()).unwrap();
    let error = client.call_within(Sync::new(), SHORT).unwrap_err();
    assert_eq!(error.code(), "deadline");
    assert!(error.to_string().contains("sync"), "{error}");
    assert_eq!(client.call(Sync::new()).unwrap().clock.n, 2);
}

#[test]
fn the_deadline_travels_with_the_request() {
    let fake = Fake::new(|_| Act::Reply(pong()));
    let client = Client::connect(fake.socket(), &hello()).unwrap();
    client
        .call_within(Ping::new(), Duration::from_secs(7))
        .unwrap();
    assert_eq!(fake.seen().last().unwrap().within_ms, Some(7000));
}

#[test]
fn a_daemon_that_goes_away_ends_the_call() {
    let fake = Fake::new(|_| Act::Close);
    let client = Client::connect(fake.socket(), &hello()).unwrap();
    let error = client.call(Ping::new()).unwrap_err();
    assert_eq!(error.code(), "connectionClosed");
    assert!(error.is_disconnected());
    assert!(client.call(Ping::new()).is_err(), "and every later one");
}

#[test]
fn nobody_listening_says_so() {
    let home = tempfile::tempdir().unwrap();
    let error = Client::connect(&home.path().join("none.sock"), &hello()).unwrap_err();
    assert_eq!(error.code(), "noDaemon");
}

#[test]
fn events_between_answers_are_kept_in_order() {
    let fake = Fake::new(|request| match request {
        Request::Subscribe(_) => Act::Subscribed((1..=5).map(event).collect()),
        _ => Act::Done,
    });
    let client = Client::connect(fake.socket(), &hello()).unwrap();
    client.subscribe(Subscribe::default()).unwrap();
    client.call(Ping::new()).unwrap();
    for n in 1..=5 {
        let event = client.next_event(Duration::from_secs(5)).unwrap();
        assert_eq!(event.unwrap().clock.n, n);
    }
    assert!(client.next_event(Duration::ZERO).unwrap().is_none());
}

#[test]
fn a_dropped_edit_is_aborted_and_a_committed_one_is_not() {
    let fake = Fake::new(|request| match request {
        Request::EditBegin(_) => Act::Reply(begun()),
        Request::EditCommit(_) => {
            Act::Reply(reply::<EditCommit>(json!({"files": [], "changes": []})))
        }
        _ => Act::Done,
    });
    let client = Client::connect(fake.socket(), &hello()).unwrap();
    let session = Session::open(&client, "s").unwrap();
    drop(session.edit("a").unwrap());
    session.edit("b").unwrap().commit(b"new").unwrap();
    let methods: Vec<&str> = fake.methods();
    assert_eq!(
        methods[2..],
        ["edit/begin", "edit/abort", "edit/begin", "edit/commit"]
    );
    let seen = fake.seen();
    let Request::EditBegin(begin) = &seen[2].request else {
        panic!("{seen:?}")
    };
    assert!(begin.bind, "ATTR-9: bound to the connection");
    let Request::EditCommit(commit) = &seen[5].request else {
        panic!("{seen:?}")
    };
    assert_eq!(commit.files[0].hash.unwrap().hash(), Some(hash_of(b"new")));
}

#[test]
fn an_older_daemon_is_asked_to_end() {
    let fake = Fake::with_hello(|request| match request {
        Request::Initialize(_) => Act::Error(incompatible("old", 0)),
        Request::Shutdown(_) => Act::End,
        _ => Act::Done,
    });
    let start = Start {
        binary: "false".into(),
        deadline: SHORT,
        environment: Vec::new(),
    };
    // `false` exits with 1, like a daemon that finds the lock taken. No other
    // daemon runs.
    let error = connect_or_start(&fake.workspace(), &hello(), &start).unwrap_err();
    assert_eq!(error.code(), "startFailed");
    assert_eq!(fake.methods(), ["initialize", Shutdown::NAME]);
}

#[test]
fn a_newer_daemon_is_left_alone() {
    let fake = Fake::with_hello(|_| Act::Error(incompatible("new", 99)));
    let error = connect_or_start(&fake.workspace(), &hello(), &Start::default()).unwrap_err();
    assert_eq!(error.code(), "incompatible");
    assert_eq!(fake.methods(), ["initialize"]);
}

#[test]
fn what_a_daemon_says_before_it_dies_is_told() {
    let fake = Fake::new(|_| Act::Done);
    let workspace = fake.workspace();
    drop(fake);
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("daemon");
    std::fs::write(&script, "#!/bin/sh\necho no room here >&2\nexit 7\n").unwrap();
    make_executable(&script);
    let start = Start {
        binary: script.into(),
        ..Start::default()
    };
    let error = connect_or_start(&workspace, &hello(), &start).unwrap_err();
    assert_eq!(error.code(), "startFailed");
    assert!(error.to_string().contains("no room here"), "{error}");
}

/// In this test systemd listens while the first daemon starts, and then stops.
#[test]
fn a_daemon_that_gave_way_to_nobody_is_started_again() {
    let fake = Fake::new(|_| Act::Done);
    let workspace = fake.workspace();
    drop(fake);
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("daemon");
    let says = "#!/bin/sh
if mkdir \"$0.first\"; then echo somebody else listens >&2; exit 1; fi
echo the store is newer >&2; exit 3
";
    std::fs::write(&script, says).unwrap();
    make_executable(&script);
    let start = Start {
        binary: script.into(),
        ..Start::default()
    };
    let error = connect_or_start(&workspace, &hello(), &start).unwrap_err();
    assert!(error.to_string().contains("the store is newer"), "{error}");
}

fn make_executable(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_feed_goes_on_where_it_stopped() {
    let mut subscriptions = 0;
    let fake = Fake::new(move |request| match request {
        Request::Subscribe(asked) => {
            subscriptions += 1;
            match (subscriptions, asked.since) {
                (1, None) => Act::SubscribedThenClose(vec![event(4), event(5)]),
                (2, Some(Clock { epoch: 1, n: 5 })) => Act::SubscribedThenClose(vec![event(6)]),
                (3, Some(Clock { epoch: 1, n: 6 })) => {
                    Act::Error(DaemonError::new(ErrorCode::UnknownClock, "gone"))
                }
                (4, None) => Act::Subscribed(vec![event(7)]),
                other => panic!("{other:?}"),
            }
        }
        _ => Act::Done,
    });
    let patience = Duration::from_secs(5);
    let mut feed = Feed::open(fake.workspace(), hello(), Subscribe::default(), patience).unwrap();
    let mut told = Vec::new();
    while told.len() < 6 {
        told.push(match feed.next(patience).unwrap() {
            Next::Event(event) => event.clock.n.to_string(),
            Next::Reconnected => "again".into(),
            Next::Missed => "missed".into(),
            Next::Quiet => panic!("quiet after {told:?}"),
        });
    }
    assert_eq!(told, ["4", "5", "again", "6", "missed", "7"]);
}

#[test]
fn a_feed_whose_daemon_stays_away_ends() {
    let fake = Fake::new(|request| match request {
        Request::Subscribe(_) => Act::Subscribed(Vec::new()),
        _ => Act::End,
    });
    let mut feed = Feed::open(
        fake.workspace(),
        hello(),
        Subscribe::default(),
        Duration::ZERO,
    )
    .unwrap();
    let other = Client::connect(fake.socket(), &hello()).unwrap();
    // The daemon may exit before it sends the answer.
    let _ = other.call(Ping::new());
    drop(fake);
    let error = feed.next(Duration::from_secs(5)).unwrap_err();
    assert!(error.is_disconnected(), "{error}");
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn async_calls_find_their_answers_in_any_order() {
    let mut first = true;
    let mut counted = counting();
    let fake = Fake::new(move |request| match request {
        Request::Ping(_) if first => {
            first = false;
            Act::Hold(pong())
        }
        other => counted(other),
    });
    run(async {
        let client = aio::Client::connect(fake.socket(), &hello()).await.unwrap();
        // The ping's answer is sent after the answer to the later sync.
        let (ping, sync) = tokio::join!(client.call(Ping::new()), client.call(Sync::new()));
        ping.unwrap();
        assert_eq!(sync.unwrap().clock.n, 1);
    });
}

#[test]
fn async_calls_end_at_the_deadline_and_with_the_daemon() {
    let mut held = true;
    let fake = Fake::new(move |request| match request {
        Request::Sync(_) if held => {
            held = false;
            Act::Hold(pong())
        }
        _ => Act::Close,
    });
    run(async {
        let client = aio::Client::connect(fake.socket(), &hello()).await.unwrap();
        let error = client.call_within(Sync::new(), SHORT).await.unwrap_err();
        assert_eq!(error.code(), "deadline");
        let (a, b) = tokio::join!(client.call(Ping::new()), client.call(Ping::new()));
        assert_eq!(a.unwrap_err().code(), "connectionClosed");
        assert_eq!(b.unwrap_err().code(), "connectionClosed");
        assert!(
            client
                .call(Ping::new())
                .await
                .unwrap_err()
                .is_disconnected()
        );
    });
}

#[test]
fn async_events_and_a_dropped_edit() {
    let fake = Fake::new(|request| match request {
        Request::Subscribe(_) => Act::Subscribed(vec![event(1), event(2)]),
        Request::EditBegin(_) => Act::Reply(begun()),
        _ => Act::Done,
    });
    run(async {
        let client = aio::Client::connect(fake.socket(), &hello()).await.unwrap();
        let (_, mut events) = client.subscribe(Subscribe::default()).await.unwrap();
        assert_eq!(events.recv().await.unwrap().clock.n, 1);
        assert_eq!(events.recv().await.unwrap().clock.n, 2);
        let session = aio::Session::open(&client, "s").await.unwrap();
        drop(session.edit_to("a", b"x").await.unwrap());
        client.call(Ping::new()).await.unwrap();
    });
    let methods = fake.methods();
    assert_eq!(methods[3..], ["edit/begin", "edit/abort", "ping"]);
}

#[test]
fn errors_are_values_with_a_hint() {
    let error = Error::Gone {
        reason: String::new(),
    };
    assert_eq!(error.to_string(), "the daemon closed the connection");
    assert!(!error.hint().is_empty());
}
