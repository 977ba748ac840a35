//! `file/*`: which files sessions have read, and whether their copies are
//! current.

use touchmark_proto::daemon::Done;
use touchmark_proto::files::{
    FileHistory, FileInvalidate, FileList, FileMention, FileRecords, FileStates, FileStatus,
    FileUntrack, Source,
};
use touchmark_proto::{Error, FileState, RelPath, Reply, RequestId, SessionId};

use super::path_cursor;
use super::reads::{Reading, wrong_range};
use crate::base::Base;
use crate::cursor::write_path;
use crate::effect::{Answer, Effect, Marks, Recall};
use crate::ledger::record::Fact;
use crate::parts::Core;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::view::View;

impl Core {
    pub(crate) fn file_untrack(&mut self, ask: &FileUntrack) -> Answered {
        let path = self.base.view().resolve(&ask.path)?;
        if self.base.state.knowledge(&ask.session, &path).is_some() {
            let names = self.base.view().names_of(&path);
            let named = self.base.names_used.named.get(&path).unwrap_or(&path);
            // If the session uses several names of the file, only the named one
            // is released.
            let one = self
                .base
                .state
                .names
                .uses_another(&ask.session, named, &path);
            self.base.record(Fact::Untracked {
                session: ask.session.clone(),
                path: if one { named.clone() } else { path },
            });
            for name in names {
                self.unwatch(&name);
            }
        }
        done(Reply::FileUntrack(Done {}))
    }
}

impl Base {
    pub(crate) fn file_mention(&mut self, pending: &mut Pending, ask: &FileMention) -> Answered {
        let path = self.view().resolve(&ask.path)?;
        if ask.range.is_some_and(|range| !range.is_valid()) {
            return Err(wrong_range().into());
        }
        if ask.missed && ask.hash.is_some() {
            let error = "`missed` and `hash` exclude each other";
            return Err(Error::invalid(error).into());
        }
        self.read_first(pending, &path, false)?;
        self.view().usable(&path, pending)?;
        if ask.range.is_some()
            && let Some(question) =
                self.view()
                    .texts_to_show(pending, &ask.session, &path, ask.hash)
        {
            return Err(Stop::Learn(question).into());
        }
        self.ensure_session(&ask.session);
        self.begin_log(&path, pending);
        let now = self.view().current(&path, None);
        match ask.hash {
            Some(hash) => {
                let lines = if Some(hash) == now.held.hash {
                    now.held.lines
                } else {
                    ask.range
                        .map_or(now.held.lines, |range| range.end.max(now.held.lines))
                };
                self.record_read(&Reading {
                    session: &ask.session,
                    path: &path,
                    hash: Some(hash),
                    lines,
                    range: ask.range,
                    source: Source::FileMentioned,
                    step: ask.step,
                    texts: &pending.texts,
                });
            }
            None => {
                let source = match ask.missed {
                    true => Source::ReadMissed,
                    false => Source::FileMentioned,
                };
                self.hold(&ask.session, &path, source, ask.step);
            }
        }
        done(Reply::FileMention(self.view().file_state(
            &ask.session,
            &path,
            None,
        )))
    }

    pub(crate) fn file_invalidate(&mut self, ask: &FileInvalidate) -> Answered {
        let path = ask
            .path
            .as_ref()
            .map(|path| self.view().resolve(path))
            .transpose()?;
        self.record(Fact::Invalidated {
            session: ask.session.clone(),
            path,
        });
        done(Reply::FileInvalidate(Done {}))
    }

    pub(crate) fn file_status(&mut self, pending: &mut Pending, ask: &FileStatus) -> Answered {
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let named = ask.paths.is_some();
        let from: Option<usize> = ask
            .cursor
            .as_deref()
            .filter(|_| named)
            .and_then(|cursor| cursor.parse().ok());
        let cursor = path_cursor(ask.cursor.as_deref().filter(|_| !named))?;
        let paths: Vec<RelPath> = match &ask.paths {
            Some(named) => {
                let mut paths = Vec::with_capacity(named.len());
                for path in named {
                    match self.view().resolve(path) {
                        Ok(path) => paths.push(path),
                        Err(error) => return Err(error.into()),
                    }
                }
                paths
            }
            None => self
                .state
                .sessions
                .get(&ask.session)
                .map(|session| session.files.keys().cloned().collect())
                .unwrap_or_default(),
        };
        if pending.verify && !pending.rechecked && !paths.is_empty() {
            pending.rechecked = true;
            return Err(Stop::Read(paths, false).into());
        }
        // Paths that were tracked when the request came, and were released
        // since.
        let unknown: Vec<RelPath> = paths
            .iter()
            .filter(|path| {
                !self.state.paths.contains_key(path) && !pending.reads.found.contains_key(*path)
            })
            .cloned()
            .collect();
        if !unknown.is_empty() {
            return Err(Stop::Read(unknown, false).into());
        }
        if ask.paths.is_some() {
            for path in &paths {
                self.name_copy(&ask.session, path);
            }
        }
        let mut files: Vec<FileState> = Vec::new();
        let mut more = None;
        for (index, path) in paths.iter().enumerate() {
            // Named paths keep their order and their repeats, so the cursor
            // counts them. Without named paths, the rows are sorted by name,
            // and the cursor is a name.
            let seen_already = if named {
                from.is_some_and(|from| index < from)
            } else {
                cursor.as_ref().is_some_and(|cursor| path <= cursor)
            };
            if seen_already {
                continue;
            }
            if files.len() == limit {
                more = if named {
                    Some(index.to_string())
                } else {
                    index.checked_sub(1).map(|last| write_path(&paths[last]))
                };
                break;
            }
            let mut file =
                self.view()
                    .file_state(&ask.session, path, pending.reads.found.get(path));
            // One request may name several names of one file.
            let name = ask.paths.as_ref().and_then(|named| named.get(index));
            if let Some(Ok(name)) = name.map(|name| self.view().resolve_name(name)) {
                file.path = name;
            } else {
                let name = self.state.names.last_used(&ask.session, path);
                file.path = name.clone();
            }
            if ask.state.is_empty() || ask.state.contains(&file.state) {
                files.push(file);
            }
        }
        done(Reply::FileStatus(FileStates {
            files,
            more,
            pending: pending.late(),
        }))
    }

    /// Makes a session track a path, if it does not already.
    pub(crate) fn hold(
        &mut self,
        session: &SessionId,
        path: &RelPath,
        source: Source,
        step: Option<u64>,
    ) {
        let named = self
            .state
            .knowledge(session, path)
            .is_some_and(|knowledge| !knowledge.copied && step.is_none());
        let named = named && source != Source::ReadMissed;
        let tracked = Fact::Tracked {
            session: session.clone(),
            path: path.clone(),
            source,
            step,
        };
        if !named {
            self.record(tracked);
            return;
        }
        // The session tracks the file already, but perhaps by another name
        // until now.
        for used in self.names_used(&tracked) {
            self.record(used);
        }
    }

    /// Makes a copied name a name that the session uses, because a request
    /// named it (ATTR-12). The session uses no other name of the file by that
    /// (FILE-1).
    fn name_copy(&mut self, session: &SessionId, path: &RelPath) {
        let copied = self
            .state
            .knowledge(session, path)
            .filter(|knowledge| knowledge.copied)
            .map(|knowledge| (knowledge.record.source, knowledge.record.step));
        if let Some((source, step)) = copied {
            self.record_alone(Fact::Tracked {
                session: session.clone(),
                path: path.clone(),
                source,
                step,
            });
        }
    }
}

impl View<'_> {
    pub(crate) fn file_list(&self, pending: &mut Pending, ask: &FileList) -> Answered {
        if let Some(paths) = self.verify_paths(pending, &ask.session) {
            return Err(Stop::Read(paths, false).into());
        }
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let cursor = path_cursor(ask.cursor.as_deref())?;
        let paths: Vec<RelPath> = self
            .state
            .sessions
            .get(&ask.session)
            .map(|session| session.files.keys().cloned().collect())
            .unwrap_or_default();
        let mut files = Vec::new();
        let mut previews = Vec::new();
        let mut more = None;
        for path in paths {
            if cursor.as_ref().is_some_and(|cursor| path <= *cursor) {
                continue;
            }
            if files.len() >= limit {
                more = files
                    .last()
                    .map(|file: &touchmark_proto::files::FileRecord| write_path(&file.path));
                break;
            }
            for (record, hash) in self.records(&ask.session, &path, ask.all) {
                if let Some(hash) = hash {
                    previews.push((files.len(), hash));
                }
                files.push(record);
            }
        }
        Ok(Answer {
            reply: Reply::FileList(FileRecords {
                files,
                more,
                pending: pending.late(),
            }),
            lines: Vec::new(),
            previews,
        })
    }

    pub(crate) fn file_history(
        &self,
        request: RequestId,
        pending: &mut Pending,
        ask: &FileHistory,
    ) -> Answered {
        let path = self.resolve(&ask.path)?;
        let before = ask
            .before
            .map(|clock| self.known_clock(clock))
            .transpose()?;
        if pending.verify && !pending.rechecked && self.state.paths.contains_key(&path) {
            pending.rechecked = true;
            return Err(Stop::Read(vec![path], false).into());
        }
        let overwritten = self.state.paths.get(&path).map_or_else(Vec::new, |state| {
            state
                .versions
                .iter()
                .filter(|kept| kept.lost)
                .map(|kept| kept.n)
                .collect()
        });
        Err(Stop::Passed(Effect::Recall {
            request,
            recall: Recall::History {
                earlier: self.state.names.history(&path).to_vec(),
                named: self.names_used.named.get(&path).unwrap_or(&path).clone(),
                path,
                before,
                limit: ask.limit.unwrap_or(self.config.list_limit) as usize,
                marks: Marks {
                    overwritten,
                    open_edits: self.state.edits.keys().copied().collect(),
                },
            },
        })
        .into())
    }
}
