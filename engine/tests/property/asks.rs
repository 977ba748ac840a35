//! Turns the short forms of a run into the protocol's requests.

use std::collections::BTreeMap;

use touchmark_proto::changes::{Ack, ModifiedAck, ModifiedList, ModifiedTake};
use touchmark_proto::daemon::Sync;
use touchmark_proto::editors::{EditorDidClose, EditorDidOpen, EditorDidSave, EditorDirty};
use touchmark_proto::edits::{CommitFile, EditAbort, EditBegin, EditCommit, EditFile, EditMark};
use touchmark_proto::files::{
    FileHistory, FileInvalidate, FileList, FileMention, FileRead, FileReadText, FileStatus,
    FileUntrack,
};
use touchmark_proto::sessions::{
    SessionClose, SessionCompacted, SessionOpen, SessionTruncated, Truncated,
};
use touchmark_proto::{ClientPath, HashOrAbsent, LineRange, Request, SessionId};

use crate::content::hash;
use crate::op::{Ask, Asking, Named, Range, SESSIONS};
use crate::world::Slot;

pub fn session(index: usize) -> SessionId {
    SessionId::new(SESSIONS[index % SESSIONS.len()]).unwrap()
}

pub fn range(range: Range) -> Option<LineRange> {
    range.map(|(start, end)| LineRange { start, end })
}

fn paths(all: &[&'static str]) -> Vec<ClientPath> {
    all.iter().map(|path| ClientPath::from(*path)).collect()
}

/// Returns the request, or `None` if there is nothing to request, such as a
/// commit of an edit that never began.
#[allow(clippy::too_many_lines)] // one arm a method
pub fn request(
    asking: &Asking,
    slots: &BTreeMap<usize, Slot>,
    cursor: Option<String>,
    named: &dyn Fn(&str, Named) -> Option<HashOrAbsent>,
) -> Option<Request> {
    let who = session(asking.session);
    let sync = (!asking.sync).then_some(false);
    Some(match &asking.ask {
        Ask::Open => Request::SessionOpen(SessionOpen::new(who)),
        Ask::Close { forget } => Request::SessionClose(SessionClose {
            session: who,
            forget: *forget,
        }),
        Ask::Compacted { keep } => Request::SessionCompacted(SessionCompacted {
            session: who,
            keep: paths(keep),
        }),
        Ask::Truncated { path, range: r } => Request::SessionTruncated(SessionTruncated {
            session: who,
            items: vec![Truncated {
                path: (*path).into(),
                range: range(*r),
            }],
        }),
        Ask::Read {
            path,
            named: n,
            range: r,
        } => Request::FileRead(FileRead {
            hash: named(path, *n).and_then(HashOrAbsent::hash),
            range: range(*r),
            sync,
            ..FileRead::new(who, *path)
        }),
        Ask::ReadText {
            path,
            range: r,
            force,
        } => Request::FileReadText(FileReadText {
            range: range(*r),
            force: *force,
            sync,
            ..FileReadText::new(who, *path)
        }),
        Ask::Mention {
            path,
            named: n,
            range: r,
        } => Request::FileMention(FileMention {
            hash: named(path, *n).and_then(HashOrAbsent::hash),
            range: range(*r),
            ..FileMention::new(who, *path)
        }),
        Ask::Invalidate { path } => Request::FileInvalidate(FileInvalidate {
            session: who,
            path: path.map(ClientPath::from),
        }),
        Ask::Status { paths: p } => Request::FileStatus(FileStatus {
            paths: p.as_ref().map(|p| paths(p)),
            sync,
            ..FileStatus::new(who)
        }),
        Ask::List => Request::FileList(FileList {
            sync,
            ..FileList::new(who)
        }),
        Ask::History { path } => Request::FileHistory(FileHistory {
            sync,
            ..FileHistory::new(*path)
        }),
        Ask::Untrack { path } => Request::FileUntrack(FileUntrack {
            session: who,
            path: (*path).into(),
        }),
        Ask::Begin {
            slot,
            require_read,
            force,
            wait,
            ttl,
            bind,
            ..
        } => {
            let slot = slots.get(slot)?;
            Request::EditBegin(EditBegin {
                bind: *bind,
                call_id: slot.call.clone(),
                require_read: (!require_read).then_some(false),
                force: *force,
                wait_ms: *wait,
                ttl_ms: *ttl,
                ..EditBegin::new(
                    who,
                    slot.files
                        .iter()
                        .map(|(path, expect, _)| EditFile {
                            expect: *expect,
                            ..EditFile::new(*path)
                        })
                        .collect(),
                )
            })
        }
        Ask::Mark {
            slot,
            path,
            expect: _,
            ttl,
            bind,
        } => Request::EditMark(EditMark {
            expect: slots.get(slot)?.files[0].1,
            bind: *bind,
            ttl_ms: *ttl,
            ..EditMark::new(who, *path)
        }),
        Ask::Commit {
            slot,
            files,
            name_hash,
            by_call,
        } => {
            let slot = slots.get(slot)?;
            if slot.edit.is_none() && !(*by_call && slot.call.is_some()) {
                return None;
            }
            let all: Vec<usize> = if files.is_empty() && *name_hash {
                (0..slot.files.len()).collect()
            } else {
                files.iter().map(|file| file % slot.files.len()).collect()
            };
            let by_call = *by_call && slot.call.is_some();
            Request::EditCommit(EditCommit {
                edit: if by_call { None } else { slot.edit.clone() },
                session: by_call.then(|| session(slot.session)),
                call_id: if by_call { slot.call.clone() } else { None },
                files: all
                    .into_iter()
                    .map(|file| {
                        let (path, _, planned) = &slot.files[file];
                        CommitFile {
                            path: (*path).into(),
                            hash: name_hash.then(|| match planned {
                                Some(bytes) => HashOrAbsent::Hash(hash(bytes)),
                                None => HashOrAbsent::Absent,
                            }),
                        }
                    })
                    .collect(),
            })
        }
        Ask::Abort { slot } => {
            let slot = slots.get(slot)?;
            slot.edit.as_ref()?;
            Request::EditAbort(EditAbort {
                edit: slot.edit.clone(),
                ..EditAbort::new()
            })
        }
        Ask::ModList => Request::ModifiedList(ModifiedList {
            session: Some(who),
            sync,
            ..ModifiedList::new()
        }),
        Ask::Take {
            peek,
            explicit,
            paths: p,
        } => Request::ModifiedTake(ModifiedTake {
            peek: *peek,
            ack: if *explicit {
                Ack::Explicit
            } else {
                Ack::Implicit
            },
            paths: p.as_ref().map(|p| paths(p)),
            sync,
            ..ModifiedTake::new(who)
        }),
        Ask::Ack => Request::ModifiedAck(ModifiedAck {
            session: who,
            cursor: cursor?,
        }),
        Ask::Saved { path, named: n } => Request::EditorDidSave(EditorDidSave::new(
            *path,
            named(path, *n).and_then(HashOrAbsent::hash)?,
        )),
        Ask::EditorOpen { path } => Request::EditorDidOpen(EditorDidOpen {
            path: (*path).into(),
        }),
        Ask::EditorClose { path } => Request::EditorDidClose(EditorDidClose {
            path: (*path).into(),
        }),
        Ask::Dirty { path, dirty } => Request::EditorDirty(EditorDirty::new(*path, *dirty)),
        Ask::Sync => Request::Sync(Sync {}),
    })
}
