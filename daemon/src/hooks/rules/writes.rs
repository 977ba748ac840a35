//! Writes. The mark before a write declares the file's future content if it can
//! be known. The commit after it declares what the tool was told to write, and
//! never simply the content on disk, since a user may have saved meanwhile.

use std::path::Path;
use std::sync::Arc;

use touchmark_proto::edits::{CommitFile, EditAbort, EditBegin, EditCommit, EditFile};
use touchmark_proto::{ClientPath, Error, ErrorCode, Hash, HashOrAbsent, Request, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::edits::Candidate;
use super::super::happened::{Change, Verdict, Writing};
use super::super::memory::{Left, Marked};
use super::super::{edits, links, notice};
use super::gate::{self, Weighed};
use super::{Outcome, remember, unsaved, unseen, worktrees, written};
use crate::config::Gate;

/// The maximum length of a tool's name that is stored, in bytes.
const TOOL: usize = 100;

/// The maximum length in bytes of a text to be written that is remembered until
/// the tool has run.
const KEPT: usize = 64 << 10;

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
        let read = match change {
            Change::Delete | Change::Unknown => None,
            _ => {
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
        };
        if daemon.settings.worktrees && !matches!(change, Change::Patch { from: Some(_), .. }) {
            let before = read.as_deref().filter(|_| change.names_lines());
            let after = before.and_then(|before| edits::likeliest(change, before));
            let after = after.map(String::into_bytes);
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
        // declares no content, and the commit decides (`written`).
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
    if destructive && let Some(denied) = gate::takes_back(daemon, session, cwd, files).await {
        return denied;
    }
    let mut begun = daemon.ask(begin.clone()).await;
    if let Err(error) = &begun
        && destructive
        && matches!(error.code, ErrorCode::NotRead | ErrorCode::Stale)
        // A file that is gone has no lines to compare.
        && error.files.first().unwrap_or(&error.data).cause.is_none()
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
            if destructive && let Some(denied) = unseen::removed(daemon, session, cwd, files).await
            {
                super::abort(daemon, session, call).await;
                return denied;
            }
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
        Err(error) => {
            let creates = |change: &Change| {
                !change.names_lines() || change.quotes().iter().all(|quote| quote.is_empty())
            };
            let creates = files.iter().any(|file| creates(&file.change));
            refused(daemon, session, &error, creates).await
        }
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
async fn refused(
    daemon: &DaemonHandle,
    session: &SessionId,
    error: &Error,
    creates: bool,
) -> Outcome {
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
        notice::without_own(
            data.changed_by.as_deref_mut().unwrap_or_default(),
            session,
            true,
        );
    }
    let data = error.files.first().unwrap_or(&error.data);
    let text = match data.cause {
        Some(_) => notice::gone(data, creates),
        None => notice::refusal(&error, counts),
    };
    let Some(text) = text else {
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
        ..Outcome::default()
    }
}

/// Ends the mark of a tool that has written. Returns a text about symlinks that
/// it has replaced; `None` if it has replaced none.
pub(super) async fn commit(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    files: &[Writing],
) -> Option<String> {
    let mut marked = daemon
        .memory
        .recall(session, call)
        .unwrap_or_default()
        .marked;
    let began_unknown = marked.is_empty();
    for Writing { path, change } in files {
        let Some(path) = daemon.place(cwd, path).await else {
            continue;
        };
        if began_unknown {
            // The mark was set before the daemon was restarted, or not at all.
            marked.push(Marked {
                path,
                began: None,
                candidates: edits::candidates(change, None),
                change: Arc::new(change.clone()),
                beside: false,
            });
        } else if let [one] = marked.as_mut_slice()
            && one.path == path
            && files.len() == 1
        {
            // It may have been too large to be remembered.
            one.change = Arc::new(change.clone());
        }
    }
    let mut committed = Vec::new();
    for marked in marked {
        daemon.uses(session, &marked.path);
        let written = written::find(daemon, session, &marked, began_unknown).await;
        if let Some(written) = written {
            let path = marked.path.clone();
            daemon.memory.leave(session, Left { path, written });
        }
        let hash = written.map(|written| written.hash);
        // A path without a mark is committed only with its content (ATTR-14).
        if hash.is_some() || !began_unknown {
            let path = marked.path;
            committed.push(CommitFile { path, hash });
        }
    }
    if committed.is_empty() {
        return None;
    }
    let commit = EditCommit::new()
        .session(session.clone())
        .call_id(call)
        .files(committed);
    let committed = daemon.ask(commit).await.ok()?;
    links::by_edit(daemon, &committed.files).await
}
