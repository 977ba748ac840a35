#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use touchmark_proto::{BaseDirectories, Places};

use super::{Options, run};
use crate::Error;
use crate::config::Config;
use crate::guard::Umask;
use crate::life::systemd::Manager;
use crate::life::{Lock, private_directory};
use crate::socket::Listener;

/// A separate home with a workspace in it.
struct World {
    places: Places,
    workspace: std::path::PathBuf,
    config: Config,
    on_demand: bool,
    _home: TempDir,
}

struct Running {
    ended: JoinHandle<Result<(), Error>>,
    shutdown: oneshot::Sender<()>,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("w").canonicalize().unwrap_or_else(|_| {
            std::fs::create_dir(home.path().join("w")).unwrap();
            home.path().join("w").canonicalize().unwrap()
        });
        let base = BaseDirectories {
            runtime: Some(home.path().join("run")),
            state: home.path().join("state"),
            config: home.path().join("config"),
            cache: home.path().join("cache"),
        };
        let places = Places::new(&base, &workspace, None);
        private_directory(&places.runtime).unwrap();
        Self {
            places,
            workspace,
            config: Config::default(),
            on_demand: false,
            _home: home,
        }
    }

    fn lock(&self) -> Result<Lock, Error> {
        Lock::of(&self.places, &self.workspace)
    }

    fn start(&self) -> Running {
        let lock = self.lock().unwrap();
        let listener = Listener::bind(&self.places.socket).unwrap();
        let options = Options {
            workspace: self.workspace.clone(),
            places: self.places.clone(),
            config: std::sync::Arc::new(self.config.clone()),
            refused: None,
            user_is_wrong: false,
            user_config: None,
            on_demand: self.on_demand,
            manager: Manager::default(),
            umask: Umask(0o022),
            inherited: Vec::new(),
        };
        let (shutdown, wanted) = oneshot::channel::<()>();
        let ended = tokio::spawn(run(listener, lock, options, async {
            let _dropped_with_the_test = wanted.await;
        }));
        Running { ended, shutdown }
    }

    /// Starts a daemon that fails, and returns the error.
    async fn refused(&self) -> String {
        let running = self.start();
        running.ended.await.unwrap().unwrap_err().to_string()
    }

    async fn client(&self) -> Client {
        Client(BufReader::new(
            UnixStream::connect(&self.places.socket).await.unwrap(),
        ))
    }
}

impl Running {
    async fn end(self) {
        self.shutdown.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

struct Client(BufReader<UnixStream>);

impl Client {
    async fn send(&mut self, id: u64, method: &str, params: Value) {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let line = format!("{line}\n");
        self.0.get_mut().write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = self.0.read_line(&mut line).await.unwrap();
        (count > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(1, method, params).await;
        self.next().await.expect("an answer")
    }
}

fn nothing_in(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[tokio::test]
async fn says_who_it_is_and_leaves_nothing_behind() {
    let world = World::new();
    let running = world.start();
    let mut client = world.client().await;
    let answer = client
        .call(
            "initialize",
            json!({"client": {"name": "t", "version": "0"}, "protocol": 2}),
        )
        .await;
    assert_eq!(
        answer["result"]["workspace"],
        world.workspace.to_str().unwrap()
    );
    let status = client.call("status", json!({})).await;
    assert_eq!(status["result"]["pid"], std::process::id());
    assert_eq!(status["result"]["connections"], 1);
    assert_eq!(status["result"]["degraded"], json!([]));
    assert!(status["result"]["rssBytes"].as_u64().unwrap() > 0);
    let mode = std::fs::metadata(&world.places.state)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    running.end().await;
    assert!(nothing_in(&world.places.runtime));
    assert!(client.next().await.is_none(), "still connected");
}

#[tokio::test]
async fn another_protocol_is_refused_with_both_numbers() {
    let world = World::new();
    let running = world.start();
    let mut client = world.client().await;
    let answer = client
        .call(
            "initialize",
            json!({"client": {"name": "t", "version": "0"}, "protocol": 7}),
        )
        .await;
    assert_eq!(answer["error"]["code"], -32023);
    assert_eq!(answer["error"]["data"]["server"], 2);
    assert_eq!(answer["error"]["data"]["client"], 7);
    running.end().await;
}

#[tokio::test]
async fn answers_before_it_ends_and_can_be_started_again() {
    let world = World::new();
    for _ in 0..2 {
        let running = world.start();
        let mut client = world.client().await;
        let answer = client.call("shutdown", json!({})).await;
        assert_eq!(answer["result"], json!({}));
        assert!(client.next().await.is_none());
        running.ended.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_second_starter_finds_the_lock_taken() {
    let world = World::new();
    let running = world.start();
    world.client().await.call("ping", json!({})).await;
    assert!(matches!(
        world.lock(),
        Err(Error::AlreadyRunning { pid, .. }) if pid == std::process::id()
    ));
    running.end().await;
    world.lock().unwrap();
}

#[tokio::test]
async fn a_removed_socket_is_bound_again() {
    let world = World::new();
    let running = world.start();
    let mut before = world.client().await;
    before.call("ping", json!({})).await;
    std::fs::remove_file(&world.places.socket).unwrap();
    let stream = loop {
        match UnixStream::connect(&world.places.socket).await {
            Ok(stream) => break stream,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let mut after = Client(BufReader::new(stream));
    assert!(after.call("ping", json!({})).await["error"].is_null());
    // Clients that were connected already stay connected.
    assert!(before.call("ping", json!({})).await["error"].is_null());
    running.end().await;
    assert!(nothing_in(&world.places.runtime));
}

#[tokio::test]
async fn ends_with_its_workspace() {
    let world = World::new();
    let running = world.start();
    world.client().await.call("ping", json!({})).await;
    std::fs::remove_dir_all(&world.workspace).unwrap();
    running.ended.await.unwrap().unwrap();
    assert!(nothing_in(&world.places.runtime));
}

#[tokio::test]
async fn ends_when_idle_if_started_on_demand() {
    let mut world = World::new();
    world.on_demand = true;
    world.config.idle_exit = 0;
    let running = world.start();
    running.ended.await.unwrap().unwrap();
    assert!(nothing_in(&world.places.runtime));
}

#[tokio::test]
async fn subscriptions_begin_and_end_by_number() {
    let world = World::new();
    let running = world.start();
    let mut client = world.client().await;
    let wrong = client
        .call("subscribe", json!({"kinds": ["weather"]}))
        .await;
    assert_eq!(wrong["error"]["code"], -32602);
    let unknown = client.call("subscribe", json!({"since": "1:1"})).await;
    assert_eq!(unknown["error"]["code"], -32021);
    let first = client
        .call("subscribe", json!({"kinds": ["version"]}))
        .await;
    let number = first["result"]["subscription"].clone();
    assert!(number.is_u64(), "{first}");
    let ask = json!({"subscription": number});
    let mut other = world.client().await;
    assert_eq!(
        other.call("unsubscribe", ask.clone()).await["error"]["code"],
        -32016
    );
    assert_eq!(
        client.call("unsubscribe", ask.clone()).await["result"],
        json!({})
    );
    assert_eq!(
        client.call("unsubscribe", ask).await["error"]["code"],
        -32016
    );
    running.end().await;
}

#[tokio::test]
async fn one_too_many_is_told_so() {
    let mut world = World::new();
    world.config.connections = 1;
    let running = world.start();
    let mut first = world.client().await;
    first.call("ping", json!({})).await;
    let mut second = world.client().await;
    assert_eq!(second.next().await.unwrap()["error"]["code"], -32019);
    assert!(second.next().await.is_none());
    running.end().await;
}

fn hash(bytes: &[u8]) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(bytes);
    touchmark_proto::Hash(digest.into()).to_string()
}

impl Client {
    async fn ok(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params).await;
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    async fn state(&mut self, session: &str, path: &str) -> Value {
        let ask = json!({"session": session, "paths": [path]});
        let states = self.ok("file/status", ask).await;
        states["files"][0]["state"].clone()
    }
}

#[tokio::test]
async fn what_was_written_before_the_query_is_in_its_answer() {
    let world = World::new();
    let running = world.start();
    let file = world.workspace.join("a.txt");
    std::fs::write(&file, "one\n").unwrap();
    let mut client = world.client().await;
    let read = client
        .ok("file/read", json!({"session": "s", "path": "a.txt"}))
        .await;
    assert_eq!(read["hash"], hash(b"one\n"));
    for n in 0..50 {
        assert_eq!(client.state("s", "a.txt").await, "fresh");
        std::fs::write(&file, format!("two {n}\n")).unwrap();
        assert_eq!(client.state("s", "a.txt").await, "stale");
        client
            .ok("file/read", json!({"session": "s", "path": "a.txt"}))
            .await;
    }
    let taken = client.ok("modified/take", json!({"session": "s"})).await;
    assert_eq!(taken["changes"], json!([]));
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let taken = client.ok("modified/take", json!({"session": "s"})).await;
    let change = &taken["changes"][0];
    assert_eq!(change["changedBy"][0]["kind"], "user");
    assert_eq!(change["lines"], json!({"added": 2, "removed": 1}));
    running.end().await;
}

#[tokio::test]
async fn what_was_answered_is_known_after_a_restart() {
    let world = World::new();
    let file = world.workspace.join("a.txt");
    std::fs::write(&file, "one\n").unwrap();
    let running = world.start();
    let mut client = world.client().await;
    client
        .ok("file/read", json!({"session": "s", "path": "a.txt"}))
        .await;
    let begun = client
        .ok(
            "edit/begin",
            json!({"session": "s", "files": [{"path": "a.txt", "expect": hash(b"two\n")}]}),
        )
        .await;
    running.end().await;

    std::fs::write(&file, "two\n").unwrap();
    let running = world.start();
    let mut client = world.client().await;
    let committed = client
        .ok("edit/commit", json!({"edit": begun["edit"]}))
        .await;
    assert_eq!(committed["files"][0]["outcome"], "applied", "{committed}");
    let history = client.ok("file/history", json!({"path": "a.txt"})).await;
    let newest = &history["versions"][0];
    assert_eq!(newest["evidence"], "declared", "{history}");
    assert_eq!(client.state("s", "a.txt").await, "fresh");
    running.end().await;
}

#[tokio::test]
async fn a_subscriber_misses_nothing_and_hears_nothing_twice() {
    let world = World::new();
    let file = world.workspace.join("a.txt");
    std::fs::write(&file, "0").unwrap();
    let running = world.start();
    let mut client = world.client().await;
    client
        .ok("file/read", json!({"session": "s", "path": "a.txt"}))
        .await;
    let since = client.ok("sync", json!({})).await["clock"].clone();
    let mut subscriber = world.client().await;
    let mut expected = Vec::new();
    for n in 1..=40 {
        let text = format!("{n}");
        std::fs::write(&file, &text).unwrap();
        expected.push(hash(text.as_bytes()));
        if n == 20 {
            // While other requests are in progress: waits for no turn and no
            // commit.
            client.send(2, "sync", json!({})).await;
            let ask = json!({"kinds": ["version"], "since": since});
            subscriber.send(1, "subscribe", ask).await;
            client.next().await.unwrap();
        } else {
            client.ok("sync", json!({})).await;
        }
    }
    let answer = subscriber.next().await.unwrap();
    assert!(answer["result"]["subscription"].is_u64(), "{answer}");
    let mut heard = Vec::new();
    while heard.last() != expected.last() {
        let event = subscriber.next().await.unwrap();
        heard.push(
            event["params"]["version"]["hash"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(heard, expected);
    running.end().await;
}

#[tokio::test]
async fn a_large_file_is_read_aside() {
    let world = World::new();
    let running = world.start();
    let bytes = vec![b'x'; 3 << 20];
    std::fs::write(world.workspace.join("big"), &bytes).unwrap();
    let mut client = world.client().await;
    let read = client
        .ok("file/read", json!({"session": "s", "path": "big"}))
        .await;
    assert_eq!(read["hash"], hash(&bytes));
    running.end().await;
}

#[tokio::test]
async fn a_snapshot_that_is_no_state_costs_itself() {
    let world = World::new();
    let running = world.start();
    std::fs::write(world.workspace.join("a"), "one\n").unwrap();
    let mut client = world.client().await;
    client
        .ok("file/read", json!({"session": "s", "path": "a"}))
        .await;
    running.end().await;
    another_snapshot(&world, b"{\"of\":\"another time\"}");

    let running = world.start();
    let mut client = world.client().await;
    let status = client.ok("status", json!({})).await;
    let causes = status["degraded"].as_array().unwrap().iter();
    let causes: Vec<_> = causes.map(|one| one["cause"].as_str().unwrap()).collect();
    assert!(
        causes[0].starts_with("state was lost: 1 record"),
        "{causes:?}"
    );
    assert!(causes[1].ends_with("cannot be read: 1"), "{causes:?}");
    let history = client.ok("file/history", json!({"path": "a"})).await;
    assert_eq!(history["versions"].as_array().unwrap().len(), 1);
    running.end().await;
}

/// Replaces the snapshot in the store of a daemon that has ended.
fn another_snapshot(world: &World, body: &[u8]) {
    let options = crate::store::Options::new(&world.places.state, &world.workspace);
    let opened = crate::store::open(&options, |_| {}).unwrap();
    opened.store.snapshot(opened.last + 1, body.to_vec());
    opened.store.close();
}

#[tokio::test]
async fn a_snapshot_of_a_newer_format_ends_the_start() {
    let world = World::new();
    world.start().end().await;
    another_snapshot(&world, &[0x82, 1, 2]);
    let file = world.places.state.join("store.db");
    let before = std::fs::read(&file).unwrap();
    let refused = world.refused().await;
    assert!(refused.contains("record version 2"), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
}
