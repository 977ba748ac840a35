//! What commands print: the lines of files that their output shows count as
//! read (SEEN-10).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use touchmark_proto::files::FileRead;
use touchmark_proto::{ClientPath, LineRange, SessionId, State};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::Output;
use super::super::memory::{Before, Call, Noted};
use super::super::named::{self, Named};
use super::super::shown::{self, Held, Seen};
use super::{late, reads, remember};

/// The maximum time of a search for the names in a command: the agent waits for
/// it.
const PATIENCE: Duration = Duration::from_millis(50);

/// The size in bytes up to which an output is taken to be complete that the
/// agent does not report. Agents cut longer ones.
const SMALL: u64 = 8 << 10;

/// The time by which a file's timestamps may be behind the clock.
const TICK: Duration = Duration::from_millis(10);

/// The maximum number of ranges of one file that are recorded.
const RANGES: usize = 256;

/// The maximum number of bytes that are compared on this thread; more are
/// compared on another one.
const SPOT: usize = 64 << 10;

/// Remembers the contents of the files that a command names before it runs: it
/// will print these contents or newer ones.
pub(super) async fn before(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    command: &str,
) {
    let began = SystemTime::now();
    let mut noted = Vec::new();
    for named in named(daemon, cwd, command).await {
        noted.extend(note(daemon, cwd, named).await);
    }
    remember(daemon, session, call, |known| {
        known.began = Some(began);
        known.noted = noted;
    });
}

/// Returns the files that a command names.
pub(super) async fn named(daemon: &DaemonHandle, cwd: Option<&Path>, command: &str) -> Vec<Named> {
    let words = command.to_owned();
    let named = look(daemon, cwd, move |place| named::in_command(place, &words));
    let named = tokio::time::timeout(PATIENCE, named);
    named.await.ok().flatten().unwrap_or_default()
}

/// Records the lines that a command's output shows as read.
pub(super) async fn after(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    command: &str,
    output: &Output,
) {
    let Some(known) = daemon.memory.recall(session, call) else {
        return;
    };
    let Some(text) = &output.text else {
        return unreported(daemon, session, cwd, &known.noted, command).await;
    };
    if !text.is_empty() {
        return compare(daemon, session, cwd, known, command, text).await;
    }
    // Of an empty file there is nothing to print.
    for noted in known.noted.iter().filter(|noted| noted.text.is_empty()) {
        record_all(daemon, session, &noted.before).await;
    }
}

/// Records what a command may have shown whose agent reports no outputs. A file
/// that a plain `cat` prints is read. Of others that the command names it is not
/// known what was shown (SEEN-9).
async fn unreported(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    noted: &[Noted],
    command: &str,
) {
    let words: Vec<&str> = command.split_ascii_whitespace().collect();
    let is_plain =
        |word: &str| !word.contains(|c: char| c.is_ascii_punctuation() && !"/._-".contains(c));
    let is_cat = matches!(words[..], ["cat", name] if is_plain(name));
    for noted in noted {
        if is_cat && noted.before.size <= SMALL {
            record_all(daemon, session, &noted.before).await;
            continue;
        }
        let known = daemon.status(session, &noted.before.path).await;
        if known.is_none_or(|known| known.state == State::Unread)
            && let Some(path) = noted.named.path.to_str()
        {
            late::missed(daemon, session, cwd, path).await;
        }
    }
}

async fn record_all(daemon: &DaemonHandle, session: &SessionId, file: &Before) {
    let end = file.lines.max(1);
    record(daemon, session, file, vec![LineRange { start: 1, end }]).await;
}

async fn compare(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    known: Call,
    command: &str,
    output: &str,
) {
    let mut noted = known.noted;
    let output = shown::plain(output).into_owned();
    let Some(began) = known.began else { return };
    let (words, said) = (command.to_owned(), output.clone());
    let names: Vec<Named> = noted.iter().map(|noted| noted.named.clone()).collect();
    let found = look(daemon, cwd, move |place| {
        let mut found = named::in_output(place, &words, &said, &names);
        // If a file has changed since the announcement, it is not known which
        // content the command saw.
        found.retain(|named| is_older(&named.path, began));
        found
    });
    for named in found.await.unwrap_or_default() {
        noted.extend(note(daemon, cwd, named).await);
    }
    let mut now: Vec<(Before, Arc<str>)> = Vec::new();
    for noted in &noted {
        let same = (noted.before.clone(), Arc::clone(&noted.text));
        let path = &noted.before.path;
        now.push(match reads::look(daemon, session, path).await {
            Some(found) if found.hash == noted.before.hash => same,
            Some(_) => content(daemon, path).await.unwrap_or(same),
            None => same,
        });
    }
    let shortest = named::shortest(command);
    let bytes = noted.iter().map(|noted| noted.text.len());
    let bytes = bytes.sum::<usize>() + output.len();
    let compared = move || {
        let held: Vec<Held<'_>> = noted
            .iter()
            .zip(&now)
            .map(|(noted, (_, now))| Held {
                names: &noted.named.names,
                before: &noted.text,
                now,
            })
            .collect();
        let seen = shown::seen(&output, &held, shortest);
        let of = |(seen, (noted, (now, _))): (Seen, (Noted, (Before, _)))| match seen.of_now {
            true => (now, seen.ranges),
            false => (noted.before, seen.ranges),
        };
        let files = noted.into_iter().zip(now);
        seen.into_iter().zip(files).map(of).collect::<Vec<_>>()
    };
    let read = match bytes > SPOT {
        true => tokio::task::spawn_blocking(compared)
            .await
            .unwrap_or_default(),
        false => compared(),
    };
    for (file, ranges) in read {
        record(daemon, session, &file, ranges).await;
    }
}

/// Records lines of a file as read.
pub(super) async fn record(
    daemon: &DaemonHandle,
    session: &SessionId,
    file: &Before,
    ranges: Vec<LineRange>,
) {
    daemon.uses(session, &file.path);
    for range in ranges.into_iter().take(RANGES) {
        let read = FileRead {
            range: Some(range).filter(|range| range.start > 1 || range.end < file.lines),
            hash: Some(file.hash),
            ..reads::file_read(session, &file.path)
        };
        let _not_a_file = daemon.ask(read).await;
    }
}

/// Searches the disk on another thread.
async fn look(
    daemon: &DaemonHandle,
    cwd: Option<&Path>,
    look: impl FnOnce(named::Place<'_>) -> Vec<Named> + Send + 'static,
) -> Option<Vec<Named>> {
    let (workspace, cwd) = (Arc::clone(&daemon.cx.workspace), cwd?.to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        look(named::Place {
            root: &workspace.root,
            cwd: &cwd,
            trusted: &workspace.places.trusted,
        })
    });
    looked.await.ok()
}

async fn note(daemon: &DaemonHandle, cwd: Option<&Path>, named: Named) -> Option<Noted> {
    let path: ClientPath = daemon.place(cwd, named.path.to_str()?).await?;
    let (before, text) = content(daemon, &path).await?;
    Some(Noted {
        before,
        text,
        named,
    })
}

/// Returns a file's content, if it is text.
pub(super) async fn content(
    daemon: &DaemonHandle,
    path: &ClientPath,
) -> Option<(Before, Arc<str>)> {
    let (hash, bytes) = daemon.bytes(path).await?;
    if bytes.contains(&0) {
        return None;
    }
    // As agents show what is not UTF-8.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let held = Before {
        path: path.clone(),
        hash,
        lines: u32::try_from(text.lines().count()).ok()?,
        size: bytes.len() as u64,
    };
    Some((held, text.into()))
}

/// Returns whether a file was last changed before a moment.
fn is_older(path: &Path, moment: SystemTime) -> bool {
    let moment = moment.checked_sub(TICK);
    let time = |seconds: i64, nanos: i64| {
        let since = Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?);
        SystemTime::UNIX_EPOCH.checked_add(since)
    };
    fs::metadata(path).is_ok_and(|file| {
        let changed = time(file.ctime(), file.ctime_nsec());
        let written = time(file.mtime(), file.mtime_nsec());
        changed < moment && written < moment
    })
}
