//! Writes: the mark before, with what will be there where that can be known;
//! the commit after, with what the tool was told to write and never simply
//! with what the disk holds, since a user may have saved meanwhile.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_proto::edits::{CommitFile, EditAbort, EditBegin, EditCommit, EditFile};
use touchmark_proto::files::{FileReadText, FileText, TextEncoding};
use touchmark_proto::{ClientPath, Error, ErrorCode, Hash, HashOrAbsent, Request, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::memory::Marked;
use super::super::{Change, Verdict, Writing, edits, notice};
use super::{Outcome, reads, remember};

/// Bytes of a tool's name that are kept.
const TOOL: usize = 100;

/// Marks the files of a tool about to write, or says why it must not.
pub(super) async fn begin(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    tool: &str,
    files: &[Writing],
) -> Outcome {
    let mut plan: Vec<(EditFile, Vec<HashOrAbsent>)> = Vec::new();
    for Writing { path, change } in files {
        let Some(place) = daemon.place(cwd, path).await else {
            continue;
        };
        if plan.iter().any(|(file, _)| file.path == place) {
            // A patch that names a file twice: what comes of it is not known.
            plan.retain(|(file, _)| file.path != place);
            plan.push((mark(place, None, None), Vec::new()));
            continue;
        }
        let mut base = None;
        let candidates = if edits::needs_bytes(change) {
            let from = match change {
                Change::Patch {
                    from: Some(from), ..
                } => daemon.place(cwd, from).await,
                _ => Some(place.clone()),
            };
            let read = match &from {
                Some(from) => bytes(daemon, session, from).await,
                None => None,
            };
            base = read
                .as_ref()
                .map(|(hash, _)| *hash)
                .filter(|_| from.as_ref() == Some(&place));
            edits::candidates(change, read.as_ref().map(|(_, bytes)| bytes.as_slice()))
        } else {
            edits::candidates(change, None)
        };
        // Where tools differ, nothing is declared, and the commit decides.
        let expect = match candidates.as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        plan.push((mark(place, expect, base), candidates));
    }
    if plan.is_empty() {
        return Outcome::default();
    }
    let begin = EditBegin {
        session: session.clone(),
        files: plan.iter().map(|(file, _)| file.clone()).collect(),
        bind: false,
        call_id: Some(call.to_owned()),
        require_read: Some(true),
        force: false,
        wait_ms: None,
        ttl_ms: None,
        tool: Some(super::cut(tool, TOOL)),
        step: None,
    };
    match daemon.ask(begin).await {
        Ok(begun) => {
            let marked = plan
                .into_iter()
                .zip(begun.files)
                .map(|((file, candidates), state)| Marked {
                    path: file.path,
                    began: state.hash,
                    candidates,
                })
                .collect();
            remember(daemon, session, call, |known| known.marked = marked);
            Outcome {
                undo: vec![Request::EditAbort(EditAbort {
                    edit: None,
                    session: Some(session.clone()),
                    call_id: Some(call.to_owned()),
                })],
                ..Outcome::default()
            }
        }
        Err(error) => refused(daemon, &error).await,
    }
}

fn mark(path: ClientPath, expect: Option<HashOrAbsent>, base: Option<Hash>) -> EditFile {
    EditFile { path, expect, base }
}

/// Only what others did stands in a tool's way; that a path is no file, or
/// that nothing can be stored, is for the tool to find out or not.
async fn refused(daemon: &DaemonHandle, error: &Error) -> Outcome {
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
    notice::refusal(error, counts)
        .map(Verdict::Deny)
        .unwrap_or_default()
        .into()
}

/// The bytes of a file, as far as one answer holds all of them.
async fn bytes(
    daemon: &DaemonHandle,
    session: &SessionId,
    path: &ClientPath,
) -> Option<(Hash, Vec<u8>)> {
    let read = FileReadText {
        session: session.clone(),
        path: path.clone(),
        range: None,
        step: None,
        force: true,
        track: Some(false),
        sync: None,
        verify: None,
    };
    let FileText {
        text,
        hash,
        truncated: false,
        encoding,
        ..
    } = daemon.ask(read).await.ok()?
    else {
        return None;
    };
    let bytes = match encoding {
        TextEncoding::Utf8 => text?.into_bytes(),
        TextEncoding::Base64 => STANDARD.decode(text?).ok()?,
    };
    // Only what is the file's to the byte can be reckoned with.
    hash.filter(|hash| *hash == Hash::of(&bytes))
        .map(|hash| (hash, bytes))
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
        // The mark was set by an earlier life of the daemon, or by nobody:
        // what the tool was told is still known where it was told all.
        for Writing { path, change } in files {
            if let Some(path) = daemon.place(cwd, path).await {
                marked.push(Marked {
                    path,
                    began: None,
                    candidates: edits::candidates(change, None),
                });
            }
        }
    }
    let mut committed = Vec::new();
    for Marked {
        path,
        began,
        candidates,
    } in marked
    {
        let now = reads::look(daemon, session, &path)
            .await
            .map(|found| found.hash);
        let hash = claim(now, began, &candidates, began_unknown);
        committed.push(CommitFile { path, hash });
    }
    if committed.is_empty() {
        return;
    }
    let commit = EditCommit {
        edit: None,
        session: Some(session.clone()),
        call_id: Some(call.to_owned()),
        files: committed,
    };
    let _no_such_edit = daemon.ask(commit).await;
}

/// What a tool is said to have written.
fn claim(
    now: Option<Hash>,
    began: Option<Hash>,
    candidates: &[HashOrAbsent],
    began_unknown: bool,
) -> Option<HashOrAbsent> {
    let found = HashOrAbsent::from(now);
    if candidates.contains(&found) {
        return Some(found);
    }
    // As it was before: a tool that wrote nothing looks like that.
    if !began_unknown && now == began {
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
        let (one, two) = (HashOrAbsent::Hash(hash("1")), HashOrAbsent::Hash(hash("2")));
        let began = Some(hash("0"));
        let both = [one, two];
        assert_eq!(claim(Some(hash("2")), began, &both, false), Some(two));
        assert_eq!(claim(began, began, &both, false), None, "nothing written");
        assert_eq!(
            claim(Some(hash("user")), began, &both, false),
            Some(one),
            "saved over"
        );
        assert_eq!(claim(Some(hash("x")), began, &[], false), None);
        assert_eq!(
            claim(None, began, &[HashOrAbsent::Absent], false),
            Some(HashOrAbsent::Absent)
        );
    }
}
