//! `touchmark ui`: its server, as a browser and as other programs see it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};
use touchmark_tests::http::{Answer, Event, Request};
use touchmark_tests::process::{signal, until};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{Session, Way, World, children, text};

/// A running `touchmark ui`, and a browser that has opened its address.
struct Ui {
    child: Child,
    port: u16,
    /// What follows the port in the address.
    target: String,
    cookie: String,
    /// Closed, the server could not print any more.
    printed: BufReader<std::process::ChildStdout>,
}

impl Ui {
    /// A server whose address was not opened yet.
    fn unopened(world: &World, options: &[&str]) -> Self {
        let arguments = [&["ui", "--no-open", "--no-start"], options].concat();
        let mut command = world.command(&arguments);
        command.stdout(Stdio::piped());
        let mut child = children::start(&mut command).unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        printed.read_line(&mut address).unwrap();
        let rest = address.trim_end().strip_prefix("http://127.0.0.1:");
        let (port, target) = rest.unwrap_or_default().split_once('/').unwrap_or_default();
        Self {
            child,
            port: port.parse().unwrap_or_else(|_| panic!("{address:?}")),
            target: format!("/{target}"),
            cookie: String::new(),
            printed,
        }
    }

    fn new(world: &World) -> Self {
        Self::with(world, &[])
    }

    fn with(world: &World, options: &[&str]) -> Self {
        let mut ui = Self::unopened(world, options);
        let opened = Request::new(ui.port, "GET", &ui.target).send();
        assert_eq!(opened.status, 303, "{opened:?}");
        let cookie = opened.header("set-cookie").unwrap();
        ui.cookie = cookie.split(';').next().unwrap().to_owned();
        ui
    }

    /// A request with the cookie, as the browser of the page would send it.
    fn request(&self, method: &str, target: &str) -> Request {
        let request = Request::new(self.port, method, target)
            .with("Cookie", &self.cookie)
            .with("Sec-Fetch-Site", "same-origin");
        match method {
            "GET" => request,
            _ => request
                .with("Origin", &format!("http://127.0.0.1:{}", self.port))
                .with("X-Touchmark", "1")
                .with("Content-Type", "application/json"),
        }
    }

    /// The request of a call.
    fn calling(&self, method: &str, params: Value) -> Request {
        let body = json!({"method": method, "params": params});
        self.request("POST", "/api/call").body(body.to_string())
    }

    /// The result of a call.
    fn ok(&self, method: &str, params: Value) -> Value {
        let answer = self.calling(method, params).send();
        assert_eq!(answer.status, 200, "{method}: {}", answer.text());
        let mut answer = answer.json();
        assert_eq!(answer["error"], Value::Null, "{method}: {answer}");
        answer["result"].take()
    }

    /// A page's stream of events, and its first message.
    fn events(&self, since: &str) -> (Answer, Event) {
        let target = format!("/api/events{since}");
        let mut stream = self.request("GET", &target).begin().unwrap();
        assert_eq!(stream.status, 200);
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        let first = stream.event();
        assert_eq!(first.kind, "connection");
        (stream, first)
    }

    /// Waits until the process has ended; its exit code, and what it has
    /// printed behind the address.
    fn wait_end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.printed.read_to_string(&mut rest).unwrap();
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), rest);
            }
            assert!(Instant::now() < end, "touchmark ui does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// The next event of a kind.
fn next(stream: &mut Answer, kind: &str) -> Event {
    loop {
        let event = stream.event();
        if event.kind == kind {
            return event;
        }
    }
}

/// The next version of the one file.
fn saved(stream: &mut Answer) -> Event {
    let event = next(stream, "version");
    assert_eq!(event.data["version"]["path"], "f");
    event
}

/// An agent's edit of a file that it creates, in two places.
fn edited(world: &World, agent: &mut Session) {
    let lines = |changed: [&str; 2]| {
        let line = |n: usize| match n {
            2 => format!("{}\n", changed[0]),
            8 => format!("{}\n", changed[1]),
            _ => format!("line {n}\n"),
        };
        (1..=10).map(line).collect::<String>()
    };
    world.file("f", lines(["line 2", "line 8"]));
    agent.read("f");
    agent.edit(Way::Declared, "f", &lines(["two", "eight"]), |path| {
        fs::write(path, lines(["two", "eight"])).unwrap();
    });
}

#[test]
fn sec12_the_address_works_once_and_its_cookie_at_this_server_only() {
    let world = World::new();
    let unopened = Ui::unopened(&world, &[]);
    for target in ["/", "/index.html", "/api/about", "/api/events", "/nothing"] {
        let refused = Request::new(unopened.port, "GET", target).send();
        assert_eq!(refused.status, 403, "{target}");
        assert!(refused.text().contains("touchmark ui"), "{refused:?}");
    }
    let open = Request::new(unopened.port, "GET", &unopened.target);
    let opened = open.send();
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
    let cookie = opened.header("set-cookie").unwrap();
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    assert!(cookie.starts_with(&format!("touchmark-{}=", unopened.port)));
    // An address that was used is of no use, with the cookie neither.
    assert_eq!(open.send().status, 403);
    assert_eq!(open.with("Cookie", cookie).send().status, 403);
    let page = Request::new(unopened.port, "GET", "/").with("Cookie", cookie);
    let answer = page.send();
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );

    // Two at once, in one browser: it sends both cookies to both.
    let other = Ui::new(&world);
    let both = format!("{cookie}; {}", other.cookie);
    let about = |port| Request::new(port, "GET", "/api/about");
    for port in [unopened.port, other.port] {
        assert_eq!(about(port).with("Cookie", &both).send().status, 200);
    }
    assert_eq!(about(other.port).with("Cookie", cookie).send().status, 403);
    let (_, value) = cookie.split_once('=').unwrap();
    let renamed = format!("touchmark-{}={value}", other.port);
    assert_eq!(
        about(other.port).with("Cookie", &renamed).send().status,
        403
    );
    let told = about(other.port)
        .with("Cookie", &other.cookie)
        .send()
        .json();
    assert_eq!(told["workspace"], world.workspace().to_str().unwrap());
    assert_eq!(told["home"], world.outside().to_str().unwrap());
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn sec12_other_hosts_and_other_origins_are_refused() {
    let world = World::new();
    let mut agent = world.session("a");
    edited(&world, &mut agent);
    let ui = Ui::new(&world);
    let queue = ui.ok("review/list", json!({}));
    let hunk = &queue["hunks"][0];
    let named = json!({"hunks": [{"path": hunk["path"], "id": hunk["id"]}]});
    let requests = [
        ui.calling("review/undo", named),
        ui.request("GET", "/"),
        ui.request("GET", "/api/about"),
        ui.request("GET", "/api/events"),
    ];
    let (port, before) = (ui.port, fs::read(world.path("f")).unwrap());
    let wrong = [
        // DNS rebinding: the name of another site that leads to this address.
        ("Host", format!("evil.example:{port}")),
        ("Host", "evil.example".into()),
        ("Host", "127.0.0.1".into()),
        ("Host", format!("127.0.0.1:{}", port - 1)),
        // Another site, another port of this host, a sandboxed frame.
        ("Origin", "https://evil.example".into()),
        ("Origin", format!("http://127.0.0.1:{}", port - 1)),
        ("Origin", format!("http://localhost:{port}")),
        ("Origin", "null".into()),
        ("Sec-Fetch-Site", "cross-site".into()),
        ("Sec-Fetch-Site", "same-site".into()),
        // No cookie.
        ("Cookie", "touchmark=1".into()),
    ];
    for request in &requests {
        for (name, value) in &wrong {
            let refused = request.clone().with(name, value).send();
            assert_eq!(refused.status, 403, "{request:?} {name}: {value}");
            assert_eq!(refused.header("access-control-allow-origin"), None);
        }
        assert!(matches!(
            request.clone().without("Host").send().status,
            400 | 403
        ));
    }
    // What a form, or a script of another site, can send without asking.
    for (name, value) in [("X-Touchmark", "0"), ("Content-Type", "text/plain")] {
        let status = requests[0].clone().with(name, value).send().status;
        assert!(matches!(status, 403 | 415), "{name}: {status}");
    }
    let asking = ui.request("OPTIONS", "/api/call").without("X-Touchmark");
    let asking = asking.with("Access-Control-Request-Method", "POST").send();
    assert_eq!(asking.status, 403);
    assert!(
        asking
            .headers
            .iter()
            .all(|(name, _)| !name.starts_with("access-control"))
    );
    assert_eq!(fs::read(world.path("f")).unwrap(), before);
    assert_eq!(ui.ok("review/list", json!({}))["hunks"], queue["hunks"]);
    // The other name of this server, wholly.
    let named = ui
        .calling("status", json!({}))
        .with("Host", &format!("localhost:{port}"));
    let named = named.with("Origin", &format!("http://localhost:{port}"));
    assert_eq!(named.send().status, 200);
}

#[test]
fn sec12_every_answer_forbids_what_the_page_does_not_need() {
    let world = World::new();
    let ui = Ui::new(&world);
    let answers = [
        ui.request("GET", "/").send(),
        ui.request("GET", "/nothing").send(),
        ui.request("GET", "/").without("Cookie").send(),
        ui.calling("status", json!({})).send(),
        ui.calling("shutdown", json!({})).send(),
        ui.events("").0,
        Request::new(ui.port, "GET", &ui.target).send(),
    ];
    for answer in &answers {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        // Nothing of another place, nothing that stands in the page itself.
        for directive in policy.split(';') {
            let mut sources = directive.split_whitespace().skip(1);
            let own = ["'none'", "'self'", "data:"];
            assert!(sources.all(|source| own.contains(&source)), "{policy}");
        }
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        let cached = answer.header("cache-control");
        assert!(
            matches!(cached, Some("no-store" | "no-cache")),
            "{answer:?}"
        );
    }
}

#[test]
fn sec12_the_page_may_call_only_what_it_needs() {
    let mut world = World::new();
    world.file("f", "one\n");
    let ui = Ui::new(&world);
    for (method, params) in [
        ("shutdown", json!({})),
        (
            "file/write",
            json!({"session": "s", "path": "f", "text": "two\n", "force": true}),
        ),
        ("file/readText", json!({"session": "s", "path": "f"})),
        (
            "edit/begin",
            json!({"session": "s", "files": [{"path": "f"}]}),
        ),
        ("modified/take", json!({"session": "s"})),
        ("session/open", json!({"session": "s"})),
        ("contents/forget", json!({})),
        ("hook/event", json!({})),
        ("initialize", json!({})),
        ("subscribe", json!({})),
        ("no/such", json!({})),
    ] {
        let refused = ui.calling(method, params).send();
        assert_eq!(refused.status, 403, "{method}");
        assert_eq!(refused.json()["error"]["data"]["code"], "refused");
    }
    assert_eq!(fs::read(world.path("f")).unwrap(), b"one\n");
    assert_eq!(ui.ok("session/list", json!({}))["sessions"], json!([]));

    let call = || ui.request("POST", "/api/call");
    assert_eq!(call().body("{").send().status, 400);
    assert_eq!(
        call().body(r#"{"method":"status","more":1}"#).send().status,
        400
    );
    assert_eq!(call().body(vec![b' '; 2 << 20]).send().status, 413);
    assert_eq!(ui.request("PUT", "/api/call").body("{}").send().status, 405);
    assert_eq!(ui.request("GET", "/api/call").send().status, 404);
    // A body of unknown length has the same bound.
    let endless = call()
        .with("Transfer-Encoding", "chunked")
        .body(endless(2 << 20));
    assert_eq!(endless.without("Content-Length").send().status, 413);
    world.healthy();
}

/// A body in pieces, of this length at least.
fn endless(length: usize) -> Vec<u8> {
    let piece = [b"10000\r\n", [b' '; 0x10000].as_slice(), b"\r\n"].concat();
    let mut body = piece.repeat(length / 0x10000 + 1);
    body.extend_from_slice(b"0\r\n\r\n");
    body
}

#[test]
fn sec12_another_users_process_is_not_served() {
    assert!(
        rustix::process::geteuid().is_root(),
        "only root can become another user: run this test as root"
    );
    let world = World::new();
    let ui = Ui::new(&world);
    // It has the cookie: browsers send a host's cookies to all of its ports.
    let script = "use IO::Socket::INET; $SIG{PIPE} = 'IGNORE'; \
        my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $ARGV[0]) or die; \
        $s->autoflush(1); \
        print $s qq(GET /api/about HTTP/1.1\\r\\nHost: 127.0.0.1:$ARGV[0]\\r\\nCookie: $ARGV[1]\\r\\nConnection: close\\r\\n\\r\\n); \
        my $answer = <$s>; print defined $answer ? $answer : qq(closed\\n);";
    let said = |user: &str| {
        let identity = ["--reuid", user, "--regid", user, "--clear-groups"];
        let output = Command::new("setpriv")
            .args(identity)
            .args(["perl", "-e", script, &ui.port.to_string(), &ui.cookie])
            .output()
            .expect("setpriv");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said("65534"), "closed\n");
    assert_eq!(said("0"), "HTTP/1.1 200 OK\r\n");
}

#[test]
fn the_page_keeps_one_change_and_undoes_another() {
    let mut world = World::new();
    let mut agent = world.session("a");
    edited(&world, &mut agent);
    let ui = Ui::new(&world);
    let mut wire = world.client();
    let queue = ui.ok("review/list", json!({}));
    assert_eq!(queue, wire.ok("review/list", json!({})), "as on the wire");
    let hunks = queue["hunks"].as_array().unwrap();
    let named = |hunk: &Value| json!({"hunks": [{"path": hunk["path"], "id": hunk["id"]}]});
    let [kept, undone] = hunks.as_slice() else {
        panic!("{queue}");
    };
    assert_eq!(ui.ok("review/keep", named(kept))["kept"], 1);
    let answer = ui.ok("review/undo", named(undone));
    assert_eq!(answer["files"][0]["outcome"], "undone", "{answer}");
    let now = fs::read_to_string(world.path("f")).unwrap();
    assert!(now.contains("two\n") && now.contains("line 8\n"), "{now}");
    let undo = text(&answer, "undo");
    ui.ok("redo", json!({"undo": undo}));
    let now = fs::read_to_string(world.path("f")).unwrap();
    assert!(now.contains("eight\n"), "{now}");
    let first = ui.ok("file/history", json!({"path": "f"}));
    let first = first["versions"].as_array().unwrap().last().unwrap();
    ui.ok("file/restore", json!({"path": "f", "at": first["clock"]}));
    let now = fs::read_to_string(world.path("f")).unwrap();
    assert!(now.contains("line 2\n"), "{now}");
    // The daemon's errors, as on the wire.
    let failed = ui
        .calling("file/content", json!({"path": "../x", "at": "now"}))
        .send();
    assert_eq!(failed.json()["error"]["data"]["code"], "outsideWorkspace");
    assert_eq!(failed.json()["error"]["code"], -32014);
    let failed = ui.calling("status", json!({"more": 1})).send();
    assert_eq!(failed.json()["error"]["data"]["code"], "invalidParams");
    world.healthy();
}

#[test]
fn the_pages_events_go_on_over_a_restart_of_the_daemon() {
    let mut world = World::new();
    world.file("f", "one\n");
    world.session("a").read("f");
    let ui = Ui::new(&world);
    let (mut page, first) = ui.events("");
    assert_eq!(first.data, json!({"state": "connected"}));
    world.file("f", "two\n");
    let two = saved(&mut page);
    assert_eq!(two.id.as_deref(), two.data["clock"].as_str());
    world.kill();
    let lost = next(&mut page, "connection");
    assert_eq!(lost.data["state"], "lost");
    let answer = ui.calling("status", json!({})).send();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["error"]["data"]["code"], "noDaemon");
    // What happens while no daemon runs is found by the next one, and told.
    world.file("f", "three\n");
    world.start();
    let again = next(&mut page, "connection");
    assert_eq!(again.data["state"], "connected", "{again:?}");
    world.session("a").status("f");
    saved(&mut page);
    ui.ok("status", json!({}));
    // A page that was away gets what it has missed, and that once.
    world.file("f", "four\n");
    let four = saved(&mut page);
    drop(page);
    let (mut back, _) = ui.events(&format!("?since={}", two.id.unwrap()));
    loop {
        let event = saved(&mut back);
        assert_ne!(event.data["version"], two.data["version"]);
        if event.data["version"]["hash"] == four.data["version"]["hash"] {
            break;
        }
    }
    let (_, unknown) = ui.events("?since=9:1");
    assert_eq!(unknown.data, json!({"state": "connected", "missed": true}));
    let wrong = ui.request("GET", "/api/events?since=x").send();
    assert_eq!(wrong.status, 400);
    world.healthy();
}

#[test]
fn the_server_ends_with_the_last_of_its_pages() {
    let world = World::new();
    let ui = Ui::with(&world, &["--linger", "0"]);
    let mut pages: Vec<Answer> = (0..8).map(|_| ui.events("").0).collect();
    pages.pop();
    // It has noticed that one was closed once there is a place again.
    until("a closed page keeps its place", || {
        let more = ui.request("GET", "/api/events").begin().unwrap();
        more.status == 200 && {
            pages.push(more);
            true
        }
    });
    ui.ok("status", json!({}));
    drop(pages);
    let (code, printed) = ui.wait_end();
    assert_eq!(code, Some(0));
    assert!(printed.ends_with("The page was closed.\n"), "{printed}");
}

#[test]
fn the_server_ends_on_signals_also_while_its_page_is_open() {
    let world = World::new();
    for told in [Signal::INT, Signal::TERM] {
        let ui = Ui::new(&world);
        let (_page, _) = ui.events("");
        signal(ui.child.id(), told);
        assert_eq!(ui.wait_end().0, Some(0), "{told:?}");
    }
}

#[test]
fn connections_and_streams_are_bounded() {
    let world = World::new();
    let ui = Ui::new(&world);
    let mut pages: Vec<Answer> = (0..8).map(|_| ui.events("").0).collect();
    assert_eq!(
        ui.request("GET", "/api/events").begin().unwrap().status,
        429
    );
    pages.pop();
    until("a closed stream keeps its place", || {
        ui.request("GET", "/api/events").begin().unwrap().status == 200
    });
    drop(pages);

    // Clients that send half of a request, and then nothing.
    let half = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ui.port)).unwrap();
        let _closed = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
        stream
    };
    let mut slow = Vec::new();
    until("any number of connections is kept", || {
        slow.push(half());
        ui.request("GET", "/").begin().is_err()
    });
    drop(slow);
    until("a closed connection keeps its place", || {
        ui.request("GET", "/").begin().is_ok()
    });
    let long = ui.request("GET", "/").with("X-Long", &"x".repeat(1 << 20));
    let status = long.begin().map(|answer| answer.status);
    assert!(!matches!(status, Ok(200)), "{status:?}");
}

#[test]
fn the_browser_gets_the_address_and_no_daemon_is_an_error() {
    let mut world = World::new();
    let bin = tempfile::tempdir().unwrap();
    let opened = bin.path().join("opened");
    let program = bin.path().join("xdg-open");
    fs::write(
        &program,
        format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        bin.path().display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = world.command(&["ui", "--json"]);
    command.env("PATH", path).stdout(Stdio::piped());
    let mut child = children::start(&mut command).unwrap();
    let mut printed = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut printed)
        .unwrap();
    let printed: Value = serde_json::from_str(&printed).unwrap();
    until("no browser was started", || {
        fs::read_to_string(&opened).is_ok_and(|address| address.ends_with('\n'))
    });
    let address = fs::read_to_string(&opened).unwrap();
    assert_eq!(address.trim_end(), text(&printed, "address"));
    signal(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(0));

    world.stop();
    let refused = world.run(&["ui", "--no-open", "--no-start"]);
    assert_eq!(refused.status.code(), Some(3));
}
