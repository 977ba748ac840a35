//! Writes. The mark before a write declares the file's future content if it can
//! be known. The commit after it declares what the tool was told to write, and
//! never simply the content on disk, since a user may have saved meanwhile.

use std::path::Path;
use std::sync::Arc;

use touchmark_proto::editors::EditorDidSave;
use touchmark_proto::edits::{CommitFile, EditAbort, EditBegin, EditCommit, EditFile};
use touchmark_proto::files::FileHistory;
use touchmark_proto::{
    ClientPath, Error, ErrorCode, Evidence, Hash, HashOrAbsent, Millis, Request, SessionId,
};

use super::super::daemon_handle::DaemonHandle;
use super::super::edits::Candidate;
use super::super::happened::{Change, Verdict, Writing};
use super::super::memory::{Left, Marked};
use super::super::{edits, notice};
use super::gate::{self, Weighed};
use super::{Outcome, reads, remember, unsaved, worktrees};
use crate::config::Gate;

/// The maximum length of a tool's name that is stored, in bytes.
const TOOL: usize = 100;

/// The maximum length in bytes of a text to be written that is remembered until
/// the tool has run.
const KEPT: usize = 64 << 10;

/// The maximum time between a tool's write and a formatter's, in milliseconds
/// (ATTR-17).
const FORMATTER: Millis = 5_000;

/// Marks the files of a tool that is about to write, or denies the call.
pub(super) async fn begin(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    tool: &str,
    files: &[Writing],
) -> Outcome {
    let mut plan: Vec<(EditFile, Planned, &Change)> = Vec::new();
    let mut known = Vec::new();
    for Writing { path, change } in files {
        let Some(place) = daemon.place(cwd, path).await else {
            continue;
        };
        if plan.iter().any(|(file, ..)| file.path == place) {
            // The patch names this file twice, so the result is not known.
            plan.retain(|(file, ..)| file.path != place);
            plan.push((
                mark(place, None, None),
                Planned::default(),
                &Change::Unknown,
            ));
            continue;
        }
        let others = daemon.memory.beside(session, &place);
        let mut base = None;
        let read = match change.names_lines() || !others.is_empty() {
            true => {
                let from = match change {
                    Change::Patch {
                        from: Some(from), ..
                    } => daemon.place(cwd, from).await,
                    _ => Some(place.clone()),
                };
                let read = match &from {
                    Some(from) => daemon.bytes(from).await,
                    None => None,
                };
                base = read
                    .as_ref()
                    .map(|(hash, _)| *hash)
                    .filter(|_| from.as_ref() == Some(&place));
                read.map(|(_, bytes)| bytes)
            }
            false => None,
        };
        if daemon.settings.worktrees && !matches!(change, Change::Patch { from: Some(_), .. }) {
            let before = read.as_deref().filter(|_| change.names_lines());
            let after = before.and_then(|before| edits::likeliest(change, before));
            known.extend(worktrees::edit(daemon, &place, before, after));
        }
        let mut planned = Planned {
            candidates: edits::candidates(change, read.as_deref()),
            change: Some(change).filter(|change| is_small(change)).cloned(),
            beside: !others.is_empty(),
        };
        if planned.beside {
            join(
                daemon,
                session,
                &place,
                &mut planned,
                &others,
                read.as_deref(),
            );
        }
        // If several results are possible, or calls run in parallel, the mark
        // declares no content, and the commit decides.
        let expect = match planned.candidates.as_slice() {
            [one] if !planned.beside => Some(one.hash),
            _ => None,
        };
        plan.push((mark(place, expect, base), planned, change));
    }
    if plan.is_empty() {
        return Outcome::default();
    }
    let begin = EditBegin::new(
        session.clone(),
        plan.iter().map(|(file, ..)| file.clone()).collect(),
    )
    .call_id(call)
    .require_read(daemon.settings.gate != Gate::Off)
    .tool(super::cut(tool, TOOL));
    let destructive = daemon.settings.gate == Gate::Destructive;
    if destructive && let Some(denied) = gate::replaces_unread(daemon, session, cwd, files).await {
        return denied;
    }
    let mut begun = daemon.ask(begin.clone()).await;
    if let Err(error) = &begun
        && destructive
        && matches!(error.code, ErrorCode::NotRead | ErrorCode::Stale)
    {
        match gate::weigh(daemon, session, cwd, files, error).await {
            Weighed::Denied(denied) => return *denied,
            Weighed::Unsure => {}
            Weighed::Passes(news) => {
                for text in news {
                    daemon
                        .memory
                        .say_later(&daemon.cx.inside, session, Some(text));
                }
                begun = daemon.ask(begin).await;
            }
        }
    }
    let too_late = matches!(&begun, Err(error) if error.code == ErrorCode::TooLate);
    if too_late {
        // The tool runs without a mark. What it was told to write is still
        // remembered.
        let marked = plan
            .into_iter()
            .map(|(file, planned, _)| planned.marked(file, None));
        remember(daemon, session, call, |known| {
            known.marked = marked.collect()
        });
        return Outcome::default();
    }
    match begun {
        Ok(begun) => {
            let changes = plan.iter().map(|(_, _, change)| *change);
            let verdict = unsaved::before(daemon, session, begun.files.iter().zip(changes)).await;
            if matches!(verdict, Verdict::Deny(_)) {
                super::abort(daemon, session, call).await;
                return verdict.into();
            }
            let marked = plan
                .into_iter()
                .zip(begun.files)
                .map(|((file, planned, _), state)| planned.marked(file, state.hash))
                .collect();
            remember(daemon, session, call, |known| known.marked = marked);
            worktrees::before(daemon, session, known);
            Outcome {
                verdict,
                undo: vec![Request::EditAbort(
                    EditAbort::new().session(session.clone()).call_id(call),
                )],
                ..Outcome::default()
            }
        }
        Err(error) => refused(daemon, session, &error).await,
    }
}

/// What is known of a write before the tool runs.
#[derive(Default)]
struct Planned {
    candidates: Vec<Candidate>,
    change: Option<Change>,
    beside: bool,
}

impl Planned {
    fn marked(self, file: EditFile, began: Option<Hash>) -> Marked {
        Marked {
            path: file.path,
            began,
            candidates: self.candidates,
            change: Arc::new(self.change.unwrap_or(Change::Unknown)),
            beside: self.beside,
        }
    }
}

/// Returns whether a change is small enough to be remembered until its tool has
/// run.
fn is_small(change: &Change) -> bool {
    match change {
        Change::Whole(text) => text.len() <= KEPT,
        Change::Replace(parts) => parts.iter().all(|part| part.new.len() <= KEPT),
        _ => true,
    }
}

/// Adds the results of calls on the same file that are announced together. They
/// are executed one after the other, so the content after each can contain
/// parts of the others.
fn join(
    daemon: &DaemonHandle,
    session: &SessionId,
    place: &ClientPath,
    planned: &mut Planned,
    others: &[(String, Arc<Change>)],
    bytes: Option<&[u8]>,
) {
    let (Some(own), Some(bytes)) = (&planned.change, bytes) else {
        return;
    };
    let mut changes: Vec<&Change> = vec![own];
    changes.extend(others.iter().map(|(_, change)| &**change));
    let mut found = edits::together(&changes, bytes).into_iter();
    if let Some(own) = found.next() {
        planned.candidates.extend(own);
    }
    for ((call, _), candidates) in others.iter().zip(found) {
        daemon.memory.join(session, call, place, &candidates);
    }
}

fn mark(path: ClientPath, expect: Option<HashOrAbsent>, base: Option<Hash>) -> EditFile {
    EditFile { path, expect, base }
}

/// Returns the outcome of a refused mark. Only changes by others deny the call.
/// Other errors, such as a path that is no file or a store that cannot be
/// written, do not concern the tool.
async fn refused(daemon: &DaemonHandle, session: &SessionId, error: &Error) -> Outcome {
    if !matches!(
        error.code,
        ErrorCode::NotRead | ErrorCode::Stale | ErrorCode::Busy
    ) {
        return Outcome::default();
    }
    let data = error.files.first().unwrap_or(&error.data);
    let counts = match (data.seen_hash, data.hash) {
        (Some(old), Some(new)) => daemon.lines(old, new).await,
        _ => None,
    };
    let mut error = error.clone();
    for data in error.files.iter_mut().chain([&mut *error.data]) {
        notice::without_own(data.changed_by.as_deref_mut().unwrap_or_default(), session);
    }
    let Some(text) = notice::refusal(&error, counts) else {
        return Outcome::default();
    };
    let named = data.path.clone().filter(|_| error.code == ErrorCode::Stale);
    let ack = match named {
        Some(path) => super::said(daemon, session, ClientPath::from(&path)).await,
        None => None,
    };
    Outcome {
        verdict: Verdict::Deny(text),
        ack,
        undo: Vec::new(),
    }
}

/// Ends the mark of a tool that has written.
pub(super) async fn commit(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    files: &[Writing],
) {
    let mut marked = daemon
        .memory
        .recall(session, call)
        .unwrap_or_default()
        .marked;
    let began_unknown = marked.is_empty();
    if began_unknown {
        // The mark was set before the daemon was restarted, or not at all. The
        // content is still known if the tool was given all of it.
        for Writing { path, change } in files {
            if let Some(path) = daemon.place(cwd, path).await {
                marked.push(Marked {
                    path,
                    began: None,
                    candidates: edits::candidates(change, None),
                    change: Arc::new(Change::Unknown),
                    beside: false,
                });
            }
        }
    }
    let mut committed = Vec::new();
    for marked in marked {
        let now = reads::look(daemon, session, &marked.path)
            .await
            .map(|found| found.hash);
        let written = claim(now, &marked, began_unknown);
        if let Some(written) = written {
            let path = marked.path.clone();
            daemon.memory.leave(session, Left { path, written });
        }
        committed.push(CommitFile {
            path: marked.path,
            hash: written.map(|written| written.hash),
        });
    }
    if committed.is_empty() {
        return;
    }
    let commit = EditCommit::new()
        .session(session.clone())
        .call_id(call)
        .files(committed);
    let _no_such_edit = daemon.ask(commit).await;
}

/// Finds what formatters have done that an agent runs after its tools. Some end
/// before the hook after the tool runs, some run at the same time. A content
/// with the words of what the tool wrote is a formatter's (ATTR-17); one with
/// other words was typed by a person. With `again`, files that are as the tool
/// left them are checked once more at the next event.
pub(super) async fn formatted(daemon: &DaemonHandle, session: &SessionId, again: bool) {
    for Left { path, written } in daemon.memory.left(session) {
        let Some(words) = written.words else { continue };
        let Some((hash, bytes)) = daemon.bytes(&path).await else {
            continue;
        };
        if HashOrAbsent::Hash(hash) == written.hash {
            if again {
                daemon.memory.leave(session, Left { path, written });
            }
            continue;
        }
        if edits::words(&bytes) != Some(words) || !is_unclaimed(daemon, &path, hash).await {
            continue;
        }
        let saved = EditorDidSave::new(path, hash).formatted(true);
        let _told_by_an_editor = daemon.ask(saved).await;
    }
}

/// Returns whether no evidence shows who wrote a file's content, and the
/// content before it was written by an agent's tool a short time ago.
async fn is_unclaimed(daemon: &DaemonHandle, path: &ClientPath, hash: Hash) -> bool {
    let history = FileHistory::new(path.clone()).limit(8);
    let Ok(history) = daemon.ask(history).await else {
        return false;
    };
    let versions = history.versions;
    let newest = versions
        .iter()
        .position(|version| version.hash == Some(hash));
    let (newest, older) = match newest.and_then(|at| versions.get(at..)) {
        Some([newest, older @ ..]) => (newest, older),
        _ => return false,
    };
    let before = older.iter().find(|version| version.hash != newest.hash);
    // A later correction may have attributed that content to the agent.
    let written = versions.iter().find(|version| {
        before.is_some_and(|before| before.hash == version.hash)
            && matches!(version.evidence, Evidence::Declared | Evidence::Marked)
    });
    let Some(written) = written else {
        return false;
    };
    newest.evidence == Evidence::Unmarked && newest.time.abs_diff(written.time) <= FORMATTER
}

/// Returns the content that a tool is declared to have written; `None` if it is
/// not known.
fn claim(now: Option<Hash>, marked: &Marked, began_unknown: bool) -> Option<Candidate> {
    let found = HashOrAbsent::from(now);
    let candidates = &marked.candidates;
    if let Some(found) = candidates.iter().find(|one| one.hash == found) {
        return Some(*found);
    }
    // An unchanged file means that the tool wrote nothing. If several calls ran
    // in parallel, it is not known which content is whose.
    if marked.beside || (!began_unknown && now == marked.began) {
        return None;
    }
    candidates.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_is_said_to_have_written() {
        let hash = |text: &str| Hash::of(text.as_bytes());
        let candidate = |hash| Candidate { hash, words: None };
        let marked = |candidates: &[HashOrAbsent], beside| Marked {
            path: ClientPath::from("a"),
            began: Some(hash("0")),
            candidates: candidates.iter().copied().map(candidate).collect(),
            change: Arc::new(Change::Unknown),
            beside,
        };
        let said = |now, marked: &Marked| claim(now, marked, false).map(|said| said.hash);
        let (one, two) = (HashOrAbsent::Hash(hash("1")), HashOrAbsent::Hash(hash("2")));
        let (both, beside) = (marked(&[one, two], false), marked(&[one, two], true));
        assert_eq!(said(Some(hash("2")), &both), Some(two));
        assert_eq!(said(Some(hash("0")), &both), None, "nothing written");
        assert_eq!(said(Some(hash("user")), &both), Some(one), "saved over");
        assert_eq!(said(Some(hash("user")), &beside), None, "who knows");
        assert_eq!(said(Some(hash("x")), &marked(&[], false)), None);
        let gone = marked(&[HashOrAbsent::Absent], false);
        assert_eq!(said(None, &gone), Some(HashOrAbsent::Absent));
    }
}
