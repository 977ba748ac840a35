//! `edit/begin`, `edit/mark`: marks made before a write.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::edits::{EditBegin, EditBegun, EditMark, EditMarked};
use touchmark_proto::events::{EditPhase, Happening};
use touchmark_proto::files::Source;
use touchmark_proto::{
    Author, AuthorKind, ConnectionId, Error, ErrorCode, ErrorData, Hash, HashOrAbsent, Millis,
    RelPath, Reply, SessionId,
};

use crate::base::Base;
use crate::ledger::record::{EditFact, EditFileFact, Fact};
use crate::ledger::wire_names::{edit_name, edit_number};
use crate::requests::limits::not_too_long;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::requests::table::EditNamed;
use crate::text::shown::{show, show_authors, show_text};
use crate::timers::Timer;
use crate::view::View;

/// The maximum number of files of one edit. The size of a frame limits the
/// request anyway; this limits the answer.
const FILES_PER_EDIT: usize = 10_000;

/// The maximum number of sessions and files for which it is remembered that a
/// session was asked whether to create the file again.
const ASKED: usize = 10_000;

/// An edit that is about to begin.
pub(super) struct Plan {
    pub session: SessionId,
    pub files: Vec<(RelPath, Option<HashOrAbsent>, Option<Hash>)>,
    pub require_read: bool,
    pub force: bool,
    pub ttl: Millis,
    pub one_shot: bool,
    pub bound: Option<ConnectionId>,
    pub call: Option<String>,
    pub tool: Option<String>,
    pub step: Option<u64>,
}

impl Base {
    pub(crate) fn edit_begin(&mut self, pending: &mut Pending, ask: &EditBegin) -> Answered {
        let texts = [
            ("callId", ask.call_id.as_ref()),
            ("tool", ask.tool.as_ref()),
        ];
        not_too_long(&texts)?;
        if ask.files.is_empty() || ask.files.len() > FILES_PER_EDIT {
            return Err(
                Error::invalid(format!("an edit names 1 to {FILES_PER_EDIT} files")).into(),
            );
        }
        let mut files: Vec<(RelPath, Option<HashOrAbsent>, Option<Hash>)> = Vec::new();
        let mut named = BTreeSet::new();
        for file in &ask.files {
            match self.view().resolve(&file.path) {
                Ok(path) => {
                    if !named.insert(path.clone()) {
                        return Err(
                            Error::invalid(format!("{} is named twice", show(&path))).into()
                        );
                    }
                    files.push((path, file.expect, file.base));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let ttl = ask.ttl_ms.unwrap_or(match ask.call_id {
            // Each event of a hook has its own connection, and the agent may
            // ask a person for permission between two events (ATTR-9).
            Some(_) => self.config.hook_ttl,
            None => self.config.edit_ttl,
        });
        if let (Some(wait), None) = (ask.wait_ms, pending.wait_until) {
            pending.wait_until = Some(self.now.saturating_add(wait));
        }
        let plan = Plan {
            session: ask.session.clone(),
            files,
            require_read: ask.require_read != Some(false),
            force: ask.force,
            ttl,
            one_shot: false,
            bound: pending.connection().filter(|_| ask.bind),
            call: ask.call_id.clone(),
            tool: ask.tool.clone(),
            step: ask.step,
        };
        let (edit, deadline) = self.begin(pending, &plan)?;
        let files = plan.files.iter();
        let files = files.map(|(path, ..)| self.view().file_state(&plan.session, path, None));
        done(Reply::EditBegin(EditBegun {
            edit: edit_name(edit),
            deadline,
            files: files.collect(),
        }))
    }

    pub(crate) fn edit_mark(&mut self, pending: &mut Pending, ask: &EditMark) -> Answered {
        let path = self.view().resolve(&ask.path)?;
        self.read_named(pending, std::slice::from_ref(&path))?;
        self.view().usable(&path, pending)?;
        // A mark that comes after its write claims that write (ATTR-14), unless
        // another session has an edit open on the path (GUARD-5).
        if let Some(expect) = ask.expect
            && self
                .view()
                .busy(&ask.session, std::slice::from_ref(&path))
                .is_none()
            && self
                .declare_late(pending, &ask.session, &path, expect, ask.step)
                .is_some()
        {
            return done(Reply::EditMark(EditMarked {
                edit: None,
                deadline: None,
                file: self.view().file_state(&ask.session, &path, None),
                late: Some(true),
            }));
        }
        let plan = Plan {
            session: ask.session.clone(),
            files: vec![(path.clone(), ask.expect, None)],
            require_read: ask.require_read,
            force: false,
            ttl: ask.ttl_ms.unwrap_or(self.config.flag_ttl),
            one_shot: true,
            bound: pending.connection().filter(|_| ask.bind),
            call: None,
            tool: None,
            step: ask.step,
        };
        let (edit, deadline) = self.begin(pending, &plan)?;
        done(Reply::EditMark(EditMarked {
            edit: Some(edit_name(edit)),
            deadline: Some(deadline),
            file: self.view().file_state(&ask.session, &path, None),
            late: None,
        }))
    }

    /// Begins an edit of all its paths, or of none.
    fn begin(&mut self, pending: &mut Pending, plan: &Plan) -> Result<(u64, Millis), Box<Stop>> {
        let paths: Vec<RelPath> = plan.files.iter().map(|(path, ..)| path.clone()).collect();
        self.read_named(pending, &paths)?;
        self.check(pending, plan)?;
        Ok(self.record_begun(pending, plan))
    }

    /// Checks whether an edit may begin, and remembers of which removed files
    /// the session is asked by that.
    pub(super) fn check(&mut self, pending: &Pending, plan: &Plan) -> Result<(), Box<Stop>> {
        let checked = self.view().may_begin(pending, plan);
        if let Err(stop) = &checked
            && let Stop::Refused(error) = &**stop
        {
            let asked = error.files.iter().chain([&*error.data]);
            for data in asked.filter(|data| data.cause.is_some()) {
                if self.asked_of.len() >= ASKED {
                    self.asked_of.clear();
                }
                let path = data.path.clone();
                self.asked_of
                    .extend(path.map(|path| (plan.session.clone(), path)));
            }
        }
        checked
    }

    /// Records the beginning of an edit that was checked before.
    pub(super) fn record_begun(&mut self, pending: &Pending, plan: &Plan) -> (u64, Millis) {
        let paths: Vec<RelPath> = plan.files.iter().map(|(path, ..)| path.clone()).collect();
        self.ensure_session(&plan.session);
        for path in &paths {
            self.begin_log(path, pending);
            self.hold(&plan.session, path, Source::AgentEdited, None);
            // Nothing written so far belongs to this edit, and no earlier close
            // ends its writes.
            if let Some(live) = self.tracker.live_if_any(path) {
                live.hints.forget_written();
                live.save.consumed = None;
            }
        }
        let edit = self.state.edits_begun + 1;
        let deadline = self.now.saturating_add(plan.ttl);
        let files = plan
            .files
            .iter()
            .map(|(path, expect, base)| {
                let held = self.view().current(path, None).held.hash;
                EditFileFact {
                    path: path.clone(),
                    expect: *expect,
                    began: held,
                    base: base.or(held),
                }
            })
            .collect();
        self.record(Fact::EditBegun(EditFact {
            edit,
            session: plan.session.clone(),
            call: plan.call.clone(),
            files,
            deadline,
            one_shot: plan.one_shot,
            bound: plan.bound.map(|connection| connection.0),
            tool: plan.tool.clone(),
            step: plan.step,
        }));
        self.timers.insert((deadline, Timer::Edit(edit)));
        self.publish(
            Happening::Edit {
                session: plan.session.clone(),
                edit: edit_name(edit),
                phase: EditPhase::Begun,
                paths,
                label: None,
            },
            None,
        );
        (edit, deadline)
    }

    /// Has the paths of a mark read before it is answered. What was written
    /// before the mark belongs to its writer (ATTR-16).
    pub(super) fn read_named(
        &mut self,
        pending: &mut Pending,
        paths: &[RelPath],
    ) -> Result<(), Box<Stop>> {
        let unread: Vec<RelPath> = paths
            .iter()
            .filter(|path| !pending.reads.found.contains_key(*path) || self.tracker.is_hinted(path))
            .cloned()
            .collect();
        if unread.is_empty() || pending.rechecked {
            return Ok(());
        }
        // Each path is read once after the fence. A file that is written all
        // the time must not delay the request forever.
        pending.rechecked = true;
        Err(Stop::Read(unread, false).into())
    }
}

impl View<'_> {
    /// Checks whether an edit of paths that have been read may begin (GUARD-4,
    /// GUARD-5).
    fn may_begin(&self, pending: &Pending, plan: &Plan) -> Result<(), Box<Stop>> {
        let paths: Vec<RelPath> = plan.files.iter().map(|(path, ..)| path.clone()).collect();
        for path in &paths {
            self.usable(path, pending)?;
        }
        if let Some(error) = self.busy(&plan.session, &paths) {
            return Err(Stop::Blocked(error).into());
        }
        self.may_mark(&plan.session, paths.len())?;
        if plan.require_read && !plan.force {
            self.may_edit(pending, plan)?;
        }
        Ok(())
    }

    /// Returns the `busy` error if another session has an edit open on one of
    /// the paths (GUARD-5), else `None`.
    fn busy(&self, session: &SessionId, paths: &[RelPath]) -> Option<Error> {
        // One pass over all open edits, since both lists may be long.
        let named: BTreeSet<&RelPath> = paths.iter().collect();
        let mut held = BTreeMap::new();
        // A mark made for a tool call claims versions, but blocks no other
        // session (GUARD-5).
        let edits = self.state.edits.values();
        let edits = edits.filter(|edit| edit.fact.call.is_none() || edit.fact.bound.is_some());
        for edit in edits.filter(|edit| edit.fact.session != *session) {
            for file in &edit.files {
                if named.contains(&file.path) {
                    held.entry(&file.path).or_insert(edit);
                }
            }
        }
        let mut files = Vec::new();
        for path in paths {
            if let Some(edit) = held.get(path) {
                files.push(ErrorData {
                    path: Some(path.clone()),
                    holder: Some(edit.fact.session.clone()),
                    deadline: Some(edit.fact.deadline),
                    ..ErrorData::default()
                });
            }
        }
        let first = files.first()?.clone();
        let message = format!(
            "{} is being edited by another session",
            first.path.as_ref().map(show).unwrap_or_default()
        );
        let mut error = Error::new(ErrorCode::Busy, message).with(first);
        if files.len() > 1 {
            error.files = files;
        }
        Some(error)
    }

    /// Checks that the session has seen the current content of each existing
    /// file (GUARD-4).
    fn may_edit(&self, pending: &Pending, plan: &Plan) -> Result<(), Error> {
        let mut not_read = Vec::new();
        let mut stale = Vec::new();
        let mut removed = Vec::new();
        for (path, expect, base) in &plan.files {
            let now = self.current(path, pending.reads.found.get(path));
            let Some(hash) = now.held.hash else {
                // A file that does not exist needs no read, but its session may
                // not know that it is gone.
                if now.trouble.is_none() {
                    if *expect != Some(HashOrAbsent::Absent) {
                        removed.extend(self.removed_by_others(plan, path));
                    }
                    continue;
                }
                stale.push(self.stale_data(plan, path, None));
                continue;
            };
            let knowledge = self.state.knowledge(&plan.session, path);
            // A hook that missed a read must not block the edit that follows it
            // (SEEN-9).
            if plan.call.is_some() && knowledge.as_ref().is_some_and(|known| known.is_missed()) {
                continue;
            }
            let Some(knowledge) = knowledge.filter(|knowledge| knowledge.any()) else {
                not_read.push(ErrorData {
                    path: Some(path.clone()),
                    ..ErrorData::default()
                });
                continue;
            };
            let seen = knowledge.may_edit(Some(hash));
            if !seen || now.trouble.is_some() || base.is_some_and(|base| base != hash) {
                stale.push(self.stale_data(plan, path, Some(hash)));
            }
        }
        removed.append(&mut stale);
        let stale = removed;
        let (code, mut files) = if not_read.is_empty() {
            (ErrorCode::Stale, stale)
        } else {
            (ErrorCode::NotRead, not_read)
        };
        let Some(first) = files.first().cloned() else {
            return Ok(());
        };
        let path = first.path.as_ref().map(show).unwrap_or_default();
        let message = if code == ErrorCode::NotRead {
            format!("{path} has not been read by this session")
        } else {
            format!(
                "{path} {} since this session read it, {}",
                first.cause.as_deref().unwrap_or("has changed"),
                show_authors(first.changed_by.as_deref().unwrap_or(&[Author::UNKNOWN]))
            )
        };
        if files.len() == 1 {
            files.clear();
        }
        let is_gone = first.cause.is_some();
        let mut error = Error::new(code, message).with(first);
        if is_gone {
            error = error.hint("repeat the request to create it again");
        }
        error.files = files;
        Err(error)
    }

    /// Returns what others did to a file that the session has seen and that does
    /// not exist any more, if the session was not asked yet whether to create it
    /// again.
    fn removed_by_others(&self, plan: &Plan, path: &RelPath) -> Option<ErrorData> {
        let session = &plan.session;
        let knowledge = self.state.knowledge(session, path)?;
        let was_there = knowledge.last().is_none_or(|last| last.hash.is_some());
        if !knowledge.any()
            || !was_there
            || self.asked_of.contains(&(session.clone(), path.clone()))
        {
            return None;
        }
        let data = self.stale_data(plan, path, None);
        // A removal during the session's own command is the command's.
        let by_others = data.changed_by.iter().flatten().any(|author| {
            author.kind != AuthorKind::Agent
                || author.session.as_ref().is_some_and(|who| who != session)
        });
        by_others.then(|| ErrorData {
            cause: Some(self.state.where_it_went(path)),
            ..data
        })
    }

    fn stale_data(&self, plan: &Plan, path: &RelPath, hash: Option<Hash>) -> ErrorData {
        let (changed_by, since) = self.blame(&plan.session, path);
        ErrorData {
            path: Some(path.clone()),
            hash,
            seen_hash: self
                .state
                .knowledge(&plan.session, path)
                .and_then(|knowledge| knowledge.last()?.hash),
            changed_by,
            since,
            ..ErrorData::default()
        }
    }

    /// Returns the open edit that a request names, or `None`.
    pub(crate) fn edit_of(&self, named: EditNamed<'_>) -> Option<u64> {
        match (named.edit, named.session) {
            (Some(name), _) => edit_number(name).filter(|n| self.state.edits.contains_key(n)),
            (None, Some(session)) => self.open_edit(session, named.call),
            (None, None) => None,
        }
    }

    /// Returns the session's newest open edit, only of the given call if one is
    /// named.
    pub(crate) fn open_edit(&self, session: &SessionId, call: Option<&str>) -> Option<u64> {
        self.state
            .edits
            .values()
            .rev()
            .find(|edit| {
                edit.fact.session == *session
                    && call.is_none_or(|call| edit.fact.call.as_deref() == Some(call))
            })
            .map(|edit| edit.fact.edit)
    }

    /// Returns the paths of an open edit.
    pub(crate) fn paths_of_edit(&self, edit: u64) -> Vec<RelPath> {
        self.state.edits.get(&edit).map_or_else(Vec::new, |open| {
            open.files.iter().map(|file| file.path.clone()).collect()
        })
    }
}

/// Returns the error for an edit that does not exist or has ended.
pub(super) fn unknown_edit(edit: Option<&str>) -> Error {
    let name: String = edit.unwrap_or_default().chars().take(40).collect();
    Error::new(
        ErrorCode::UnknownEdit,
        if name.is_empty() {
            "the session has no such edit open".to_owned()
        } else {
            format!("there is no open edit {}", show_text(&name))
        },
    )
    .with(ErrorData {
        edit: edit.map(|_| name),
        ..ErrorData::default()
    })
}
