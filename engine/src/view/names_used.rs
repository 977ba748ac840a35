//! Translates file names in answers and events into the names that sessions use
//! (FILE-1).

use std::collections::BTreeMap;

use touchmark_proto::events::Happening;
use touchmark_proto::{Change, Error, FileState, RelPath, Reply, SessionId, Version};

use crate::ledger::state::State;
use crate::text::shown::{show, show_bare};

/// The names of files that an answer uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamesUsed {
    /// The session that gets the answer; `None` if the request names none.
    pub session: Option<SessionId>,
    /// For each file: the name that the request used.
    pub named: BTreeMap<RelPath, RelPath>,
    /// For each file: the name by which the request's edit was begun.
    pub begun: BTreeMap<RelPath, RelPath>,
}

impl NamesUsed {
    /// Returns the name to use for a file.
    fn name<'a>(&'a self, state: &'a State, file: &'a RelPath) -> &'a RelPath {
        let named = self.named.get(file).or_else(|| self.begun.get(file));
        named.unwrap_or_else(|| match &self.session {
            Some(session) => state.names.last_used(session, file),
            None => file,
        })
    }

    fn path(&self, state: &State, path: &mut RelPath) {
        let name = self.name(state, path);
        if name != path {
            *path = name.clone();
        }
    }

    fn version(&self, state: &State, version: &mut Version) {
        self.path(state, &mut version.path);
    }

    fn change(&self, state: &State, change: &mut Change) {
        self.path(state, &mut change.path);
        if let Some(lost) = &mut change.lost {
            self.version(state, lost);
        }
    }

    fn files(&self, state: &State, files: &mut [FileState]) {
        for file in files {
            self.path(state, &mut file.path);
        }
    }

    fn changes(&self, state: &State, changes: &mut [Change]) {
        for change in changes {
            self.change(state, change);
        }
    }

    fn text(&self, state: &State, text: &mut String) {
        for file in self.named.keys() {
            let name = self.name(state, file);
            if name == file {
                continue;
            }
            let bare = |path: &RelPath| show_bare(&path.to_string_lossy());
            let forms = [(show(file), show(name)), (bare(file), bare(name))];
            for (known, used) in forms {
                let at = text.find(&known).filter(|at| {
                    let edge =
                        |c: Option<char>| c.is_none_or(|c| matches!(c, ' ' | '.' | '"' | ']'));
                    edge(text[..*at].chars().next_back())
                        && edge(text[at + known.len()..].chars().next())
                });
                if let Some(at) = at {
                    text.replace_range(at..at + known.len(), &used);
                    break;
                }
            }
        }
    }

    /// Translates the names in an answer.
    pub(crate) fn reply(&self, state: &State, reply: &mut Reply) {
        match reply {
            Reply::FileRead(read) => {
                if let Some(change) = &mut read.change {
                    self.change(state, change);
                }
                if let Some(message) = &mut read.message {
                    self.text(state, message);
                }
            }
            Reply::FileReadText(read) => {
                if let Some(message) = &mut read.message {
                    self.text(state, message);
                }
            }
            Reply::FileMention(file) => self.path(state, &mut file.path),
            Reply::FileList(list) | Reply::FileRecent(list) => {
                for file in &mut list.files {
                    self.path(state, &mut file.path);
                }
            }
            Reply::EditBegin(begun) => self.files(state, &mut begun.files),
            Reply::EditMark(marked) => self.path(state, &mut marked.file.path),
            Reply::EditCommit(committed) => {
                for file in &mut committed.files {
                    self.path(state, &mut file.path);
                    if let Some(version) = &mut file.version {
                        self.version(state, version);
                    }
                }
                self.changes(state, &mut committed.changes);
            }
            Reply::FileWrite(written) => {
                if let Some(version) = &mut written.version {
                    self.version(state, version);
                }
            }
            Reply::FileEdit(edited) => {
                if let Some(version) = &mut edited.version {
                    self.version(state, version);
                }
            }
            Reply::ModifiedList(changes) => self.changes(state, &mut changes.changes),
            Reply::ModifiedTake(taken) => self.changes(state, &mut taken.changes),
            Reply::SessionOpen(opened) => self.changes(state, &mut opened.modified),
            Reply::CommandEnd(ended) => self.changes(state, &mut ended.changes),
            Reply::CheckpointDetect(detected) => {
                for file in &mut detected.files {
                    self.path(state, &mut file.path);
                }
            }
            // `file/status` translates names itself, since it may name a file
            // twice.
            _ => {}
        }
    }

    /// Translates the names in an error.
    pub(crate) fn error(&self, state: &State, error: &mut Error) {
        self.text(state, &mut error.message);
        let more = error.files.iter_mut();
        for data in more.chain([&mut *error.data]) {
            if let Some(path) = &mut data.path {
                self.path(state, path);
            }
        }
    }

    /// Translates the names in an event that is about one session.
    pub(crate) fn happening(state: &State, happening: &mut Happening) {
        let (session, path) = match happening {
            Happening::Stale { session, file, .. } => (session, &mut file.path),
            Happening::Read { session, path, .. } => (session, path),
            Happening::Edit { session, paths, .. } => {
                for path in paths {
                    *path = state.names.last_used(session, path).clone();
                }
                return;
            }
            _ => return,
        };
        let name = state.names.last_used(session, path);
        if name != path {
            *path = name.clone();
        }
    }
}
