//! SEC-1 and the daemon's lifetime: modes, lock, stale sockets, other users.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use serde_json::json;
use touchmark_tests::world::{binary, finish};
use touchmark_tests::{World, sha256};

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn sec1_modes_and_the_sockets_name() {
    let world = World::new();
    let socket = world.socket();
    assert_eq!(mode(socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    let key = &sha256(world.workspace().as_os_str().as_encoded_bytes())[..16];
    let named = world
        .runtime()
        .join("touchmark")
        .join(format!("{key}.sock"));
    assert_eq!(socket, named);
    let state = world.state().join("touchmark").join(key);
    assert_eq!(mode(&state), 0o700);
    for entry in fs::read_dir(&state).unwrap() {
        let entry = entry.unwrap();
        // The daemon removes the file with which it checks for free space.
        let Ok(found) = entry.metadata() else {
            continue;
        };
        assert_eq!(found.mode() & 0o077, 0, "{entry:?}");
        assert_eq!(found.uid(), rustix::process::geteuid().as_raw());
    }
    // Nothing of touchmark's own is in the user's tree.
    assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 0);
}

#[test]
fn sec1_a_second_starter_names_the_first_and_ends() {
    let mut world = World::new();
    let first = world.client().ok("status", json!({}))["pid"].clone();
    let second = world.run(&["daemon"]);
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    let printed = [second.stdout, second.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(
        printed.contains(world.socket().to_str().unwrap()),
        "{printed}"
    );
    assert_eq!(world.client().ok("status", json!({}))["pid"], first);
    world.healthy();
    // Many at once, none running: exactly one stays.
    world.kill();
    let mut children: Vec<_> = (0..8)
        .map(|_| {
            world
                .command(&["daemon"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let end = std::time::Instant::now() + touchmark_tests::wire::PATIENCE;
    let mut codes = Vec::new();
    while children.len() > 1 {
        children.retain_mut(|child| match child.try_wait().unwrap() {
            Some(status) => {
                codes.push(status.code());
                false
            }
            None => true,
        });
        assert!(std::time::Instant::now() < end, "several daemons run");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(codes, [Some(1); 7]);
    let mut last = children.remove(0);
    // The one that stays answers as soon as it listens.
    let mut client = loop {
        if let Ok(client) = touchmark_tests::Client::connect(world.socket()) {
            break client;
        }
        assert!(last.try_wait().unwrap().is_none(), "none stays");
        assert!(std::time::Instant::now() < end, "none answers");
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    assert_eq!(client.ok("status", json!({}))["pid"], last.id());
    client.ok("shutdown", json!({}));
    assert_eq!(finish(last, "the daemon").status.code(), Some(0));
    // It leaves no socket.
    assert!(!world.socket().exists());
}

#[test]
fn a_stale_socket_is_replaced() {
    let mut world = World::new();
    world.kill();
    assert!(world.socket().exists(), "kill -9 leaves the socket");
    world.start();
    world.client().ok("ping", json!({}));
    assert_eq!(world.stop(), Some(0));
    assert!(!world.socket().exists());
    // A stranger's file under the name is not removed, and the daemon says
    // what is in its way.
    fs::write(world.socket(), "not a socket").unwrap();
    let refused = world.run(&["daemon"]);
    assert!(!refused.status.success());
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains(world.socket().to_str().unwrap()), "{told}");
    assert_eq!(fs::read(world.socket()).unwrap(), b"not a socket");
}

#[test]
fn sec1_a_foreign_runtime_directory_is_not_used() {
    let mut world = World::new();
    assert_eq!(world.stop(), Some(0));
    let directory = world.socket().parent().unwrap().to_owned();
    // Open to others: mended or refused, never used as it is.
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let started = world
        .command(&["daemon"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut started = started;
    let end = std::time::Instant::now() + touchmark_tests::wire::PATIENCE;
    loop {
        if let Some(status) = started.try_wait().unwrap() {
            assert!(!status.success());
            break;
        }
        if touchmark_tests::Client::connect(world.socket()).is_ok() {
            assert_eq!(mode(&directory), 0o700, "used as it was");
            started.kill().unwrap();
            started.wait().unwrap();
            break;
        }
        assert!(std::time::Instant::now() < end);
    }
}

/// A connection of another user. The directory already keeps other users out.
/// Here it is opened on purpose, to test the check of the peer.
#[test]
fn sec1_another_user_is_refused() {
    assert!(
        rustix::process::geteuid().is_root(),
        "only root can become another user: run this test as root"
    );
    let mut world = World::new();
    for path in [world.runtime(), world.socket().parent().unwrap()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(world.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    // Any program that can connect and speak a line: perl is everywhere git
    // is.
    let script = "use IO::Socket::UNIX; $SIG{PIPE} = 'IGNORE'; \
        my $s = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $ARGV[0]) or die \"connect: $!\"; \
        $s->autoflush(1); \
        print $s qq({\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\\n); \
        my $answer = <$s>; print defined $answer ? $answer : qq(closed\\n);";
    let output = Command::new("setpriv")
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "perl",
            "-e",
            script,
        ])
        .arg(world.socket())
        .output()
        .expect("setpriv");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        told == "closed\n" || told.contains("\"denied\""),
        "{told} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!told.contains("uptimeMs"), "{told}");
    // The daemon itself goes on.
    fs::set_permissions(world.socket(), fs::Permissions::from_mode(0o600)).unwrap();
    world.client().ok("ping", json!({}));
    world.healthy();
}

#[test]
fn the_socket_of_each_workspace_is_its_own() {
    let world = World::new();
    let sub = world.path("sub");
    fs::create_dir(&sub).unwrap();
    let mut command = Command::new(binary());
    command.args(["socket", "--workspace"]).arg(&sub);
    world.dress(&mut command);
    let other = command.output().unwrap();
    assert!(other.status.success(), "{other:?}");
    let other = String::from_utf8(other.stdout).unwrap();
    assert_ne!(other.trim_end(), world.socket().to_str().unwrap());
    assert!(other.trim_end().len() < 108);
}
