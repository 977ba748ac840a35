//! Asks the daemon of another worktree who wrote lines there. It is not started
//! for that, and each question has a time limit.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use touchmark_proto::history::{Blame, BlameLine, FileBlame};
use touchmark_proto::places::key;
use touchmark_proto::{At, Author, Hash, Holder, LineRange, Places, RelPath};

use super::trees::Repository;
use crate::system::open::check_owner;
use crate::system::open::read_regular;
use crate::system::process::lives;

/// How long the other daemon may take to name the authors of lines.
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
    let holder = Holder::parse(&read_regular(&lock, LOCK).ok()?)?;
    let socket = holder.socket.filter(|_| lives(holder.pid))?;
    (holder.workspace == root).then_some(socket)
}

/// The daemon of another worktree of a repository.
#[derive(Debug)]
pub(crate) struct Neighbour {
    socket: PathBuf,
    /// Git's own directory of the worktree.
    pub(crate) own: PathBuf,
}

impl Neighbour {
    /// Returns the daemons that run for other worktrees of the repository that a
    /// workspace is in, each for the same directory in its worktree. `places`
    /// are the workspace's.
    pub(crate) fn all(root: &Path, places: &Places) -> Vec<Self> {
        let repository = Repository::of(root, places);
        let trees = repository.iter().flat_map(Repository::others);
        let known = trees.filter_map(|tree| {
            let socket = socket(places, &tree.root)?;
            tree.is_there().then_some(Self {
                socket,
                own: tree.own,
            })
        });
        known.collect()
    }

    /// Returns who wrote lines of the newest version of a file that has a
    /// content; `None` if the daemon does not know that content, or does not
    /// answer within `time`. It must not be called by asynchronous code.
    pub(crate) fn of_content(
        &self,
        path: &RelPath,
        content: Hash,
        lines: LineRange,
        time: Duration,
    ) -> Option<Vec<BlameLine>> {
        let ask = FileBlame {
            at: Some(At::Hash(content.to_string())),
            range: Some(lines),
            ..asked(path)?
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let answers = within(time, &self.socket, std::iter::once(ask));
        let answer = runtime.ok()?.block_on(answers)?.pop()?;
        (answer.start == lines.start).then_some(answer.lines)
    }
}

/// Returns who wrote lines of a file, according to the daemon that listens on
/// `socket`. Returns no author if it does not answer in time.
pub(super) async fn authors(socket: &Path, path: &RelPath, lines: &[LineRange]) -> Vec<Author> {
    let Some(ask) = asked(path) else {
        return Vec::new();
    };
    let asks = lines.iter().map(|range| FileBlame {
        range: Some(*range),
        ..ask.clone()
    });
    let mut authors: Vec<Author> = Vec::new();
    let answers = within(PATIENCE, socket, asks).await.unwrap_or_default();
    for line in answers.into_iter().flat_map(|blame| blame.lines) {
        if !authors.contains(&line.author) && authors.len() < AUTHORS {
            authors.push(line.author);
        }
    }
    authors
}

/// Returns a question about a file; `None` if its name is no text.
fn asked(path: &RelPath) -> Option<FileBlame> {
    std::str::from_utf8(path.as_bytes()).ok()?;
    Some(FileBlame::new(path).commits(false))
}

async fn within(
    time: Duration,
    socket: &Path,
    asks: impl Iterator<Item = FileBlame>,
) -> Option<Vec<Blame>> {
    let asked = tokio::time::timeout(time, blame(socket, asks)).await;
    asked.ok().flatten()
}

async fn blame(socket: &Path, asks: impl Iterator<Item = FileBlame>) -> Option<Vec<Blame>> {
    check_owner(&socket.symlink_metadata().ok()?).ok()?;
    let mut stream = UnixStream::connect(socket).await.ok()?;
    let peer = stream.peer_cred().ok()?.uid();
    // Nothing is sent to another user's process (SEC-8).
    if peer != rustix::process::geteuid().as_raw() {
        return None;
    }
    let (input, mut output) = stream.split();
    let mut input = BufReader::new(input.take(ANSWER));
    let mut answers = Vec::new();
    for params in asks {
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "file/blame", "params": params});
        output.write_all(format!("{ask}\n").as_bytes()).await.ok()?;
        let mut line = String::new();
        input.read_line(&mut line).await.ok()?;
        let mut answer: Value = serde_json::from_str(&line).ok()?;
        answers.push(serde_json::from_value(answer.get_mut("result")?.take()).ok()?);
    }
    Some(answers)
}
