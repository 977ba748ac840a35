//! Asks the daemon of another worktree who wrote lines there. It is not started
//! for that, and nothing depends on its answer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use touchmark_proto::history::Blame;
use touchmark_proto::places::key;
use touchmark_proto::{Author, Holder, LineRange, Places, RelPath};

use crate::git::files::read;
use crate::system::open::check_owner;
use crate::system::process::lives;

/// How long the other daemon may take to answer.
const PATIENCE: Duration = Duration::from_millis(300);

/// The most bytes of a lock that are read.
const LOCK: u64 = 16 << 10;

/// The most bytes of an answer that are read.
const ANSWER: u64 = 4 << 20;

/// The maximum number of authors that are named.
const AUTHORS: usize = 4;

/// Returns the socket of the daemon that serves a directory; `None` if none
/// runs. `own` are the places of this daemon; the locks of all daemons are in
/// one directory. The daemon that the lock names must be alive: where systemd
/// listens, connecting would start one.
pub(super) fn socket(own: &Places, root: &Path) -> Option<PathBuf> {
    let lock = own.lock.with_file_name(format!("{}.lock", key(root)));
    check_owner(&lock.symlink_metadata().ok()?).ok()?;
    let holder = Holder::parse(&read(&lock, LOCK).ok()?)?;
    let socket = holder.socket.filter(|_| lives(holder.pid))?;
    (holder.workspace == root).then_some(socket)
}

/// Returns who wrote lines of a file, according to the daemon that listens on
/// `socket`. Returns no author if it does not answer in time.
pub(super) async fn authors(socket: &Path, path: &RelPath, lines: &[LineRange]) -> Vec<Author> {
    let asked = tokio::time::timeout(PATIENCE, blame(socket, path, lines)).await;
    asked.ok().flatten().unwrap_or_default()
}

async fn blame(socket: &Path, path: &RelPath, lines: &[LineRange]) -> Option<Vec<Author>> {
    check_owner(&socket.symlink_metadata().ok()?).ok()?;
    let mut stream = UnixStream::connect(socket).await.ok()?;
    let peer = stream.peer_cred().ok()?.uid();
    // Nothing is sent to another user's process (SEC-8).
    if peer != rustix::process::geteuid().as_raw() {
        return None;
    }
    let name = std::str::from_utf8(path.as_bytes()).ok()?;
    let mut authors: Vec<Author> = Vec::new();
    let (input, mut output) = stream.split();
    let mut input = BufReader::new(input.take(ANSWER));
    for range in lines {
        let ask = json!({
            "jsonrpc": "2.0", "id": 1, "method": "file/blame",
            "params": {"path": name, "range": range, "commits": false},
        });
        output.write_all(format!("{ask}\n").as_bytes()).await.ok()?;
        let mut line = String::new();
        input.read_line(&mut line).await.ok()?;
        let mut answer: Value = serde_json::from_str(&line).ok()?;
        let blame: Blame = serde_json::from_value(answer.get_mut("result")?.take()).ok()?;
        for line in blame.lines {
            if !authors.contains(&line.author) && authors.len() < AUTHORS {
                authors.push(line.author);
            }
        }
    }
    Some(authors)
}
