//! Requests about edits: the errors with which they may be refused, and the
//! outcomes of commits.

use touchmark_proto::edits::{
    CommitFile, EditAbort, EditBegin, EditCommit, EditFile, EditMark, Outcome,
};
use touchmark_proto::writes::FileWrite;
use touchmark_proto::{ErrorCode, HashOrAbsent, Reply, Request};

use crate::belief::Worth;
use crate::disk::Name;
use crate::op::{How, Kind};
use crate::people::{Actor, Edit, Told, UNKNOWN, USER};
use crate::text::{Make, Text, bytes, hash};

use crate::play::{Done, Play, session};

impl Play {
    /// Returns whether a request to write may be allowed, and the errors with
    /// which it may be refused.
    pub fn refusals(&self, who: usize, name: Name, guarded: bool) -> (bool, Vec<ErrorCode>) {
        let file = self.truth.file(name);
        let held = file.held.get(&who);
        let (mut may, mut refusals) = match (file.text(), self.truth.worth(who, name)) {
            _ if !guarded => (true, vec![]),
            (None, Worth::Unread) => (true, vec![]),
            // Asked once whether to create again what others removed.
            (None, _) => (true, vec![ErrorCode::Stale]),
            (_, Worth::Unread) => (false, vec![ErrorCode::NotRead]),
            (_, Worth::Fresh) => (true, vec![]),
            (_, Worth::Open) => (true, vec![ErrorCode::Stale, ErrorCode::NotRead]),
            // SEEN-3: a session that was last shown a part of the content may
            // edit it.
            (Some(text), _) if held.is_some_and(|held| held.copy.shown_last(text)) => {
                (true, vec![])
            }
            (Some(text), _) if held.is_some_and(|held| held.copy.has_some_of(text)) => {
                (true, vec![ErrorCode::Stale])
            }
            _ if held.is_some_and(|held| held.joined) => {
                (false, vec![ErrorCode::Stale, ErrorCode::NotRead])
            }
            _ => (false, vec![ErrorCode::Stale]),
        };
        let id = self.truth.of[name];
        for edit in self.truth.edits.values().filter(|edit| edit.session != who) {
            if edit.call.is_some() {
                continue;
            }
            let sure = self.truth.of[edit.name] == id && !edit.murky;
            // Names that resolve to no file are not one file.
            let sure = sure && (edit.name == name || file.text().is_some());
            if sure || edit.murky || edit.names.iter().any(|name| self.truth.of[name] == id) {
                may &= !sure;
                refusals.push(ErrorCode::Busy);
                if sure {
                    refusals = vec![ErrorCode::Busy, ErrorCode::Stale, ErrorCode::NotRead];
                }
            }
        }
        (may, refusals)
    }

    pub fn refused<T: std::fmt::Debug>(
        &self,
        who: usize,
        name: Name,
        guarded: bool,
        answer: &Result<T, touchmark_proto::Error>,
    ) -> Done {
        let (may, refusals) = self.refusals(who, name, guarded);
        let right = match answer {
            Ok(_) => may,
            Err(error) => refusals.contains(&error.code),
        };
        if right {
            return Ok(());
        }
        let kind = match answer {
            Ok(_) => "allowed",
            Err(_) => "refused",
        };
        Err(format!(
            "{kind}: s{who} {name}: may be allowed {may}, refused as {refusals:?}; {answer:?}; {:?}; {:?}",
            self.truth.file(name).held.get(&who),
            self.truth.edits
        ))
    }

    pub fn begin(
        &mut self,
        slot: usize,
        who: usize,
        name: Name,
        make: Make,
        (declared, kind, guarded): (bool, Kind, bool),
    ) -> Done {
        if self.is_half(name) || self.truth.edits.contains_key(&slot) {
            return Ok(());
        }
        let planned = self.make(name, make);
        let expect = declared.then(|| HashOrAbsent::Hash(hash(&planned)));
        let call = (kind == Kind::Hook).then(|| format!("call{slot}"));
        let request = if kind == Kind::Flag {
            Request::EditMark(EditMark {
                expect,
                require_read: guarded,
                ..EditMark::new(session(who), name)
            })
        } else {
            Request::EditBegin(EditBegin {
                call_id: call.clone(),
                require_read: (!guarded).then_some(false),
                ..EditBegin::new(
                    session(who),
                    vec![EditFile {
                        expect,
                        ..EditFile::new(name)
                    }],
                )
            })
        };
        let last = self.truth.file(name).versions.last();
        let before = last.map(|last| (last.maybe, self.truth.file(name).versions.len()));
        let answer = self.try_ask(who, request);
        let late = matches!(&answer, Ok(Reply::EditMark(marked)) if marked.late == Some(true));
        if !late {
            self.refused(who, name, guarded, &answer)?;
        }
        let (id, deadline) = match answer {
            Ok(Reply::EditBegin(begun)) => (begun.edit, begun.deadline),
            Ok(Reply::EditMark(marked)) if marked.late == Some(true) => {
                if !declared {
                    return Err(format!("late: nothing was declared; {marked:?}"));
                }
                self.truth.spoke(who, name);
                return self.claimed_late(who, name, &planned);
            }
            Ok(Reply::EditMark(marked)) => match (marked.edit, marked.deadline) {
                (Some(edit), Some(deadline)) => (edit, deadline),
                other => return Err(format!("reply: {other:?}")),
            },
            _ => return Ok(()),
        };
        self.truth.spoke(who, name);
        let file = self.truth.of[name];
        let early = before
            .is_some_and(|(maybe, count)| maybe || count != self.truth.file(name).versions.len());
        let vague = |declared: bool, planned: &Text, began: Option<&Text>| {
            !declared || began == Some(planned)
        };
        let mut beside = false;
        let now = self.truth.text(name);
        for other in self.truth.edits.values_mut() {
            if other.session == who && other.name == name {
                beside |= vague(declared, &planned, now.as_ref())
                    || vague(other.declared, &other.planned, other.began.as_ref());
                other.beside |= beside;
            }
        }
        self.truth.edits.insert(
            slot,
            Edit {
                session: who,
                id,
                call,
                name,
                names: self.truth.names_of(file),
                began: self.truth.text(name),
                planned,
                declared,
                flag: kind == Kind::Flag,
                deadline,
                since: self.truth.file(name).newest(),
                own: None,
                wrote: false,
                murky: self.truth.text(name).is_none() && self.truth.names_of(file).len() > 1,
                clobbered: Some(false),
                guess: false,
                used: false,
                early,
                beside,
            },
        );
        Ok(())
    }

    /// ATTR-14: returns the version that a late declaration may claim: one that
    /// no session had claimed, and that this session has not read.
    pub fn may_be_late(&self, who: usize, name: Name, text: &Text) -> Option<usize> {
        let file = self.truth.file(name);
        let shown = file.held.get(&who).and_then(|held| held.shown);
        let young = |(index, version): &(usize, &crate::people::Version)| {
            version.text.as_ref() == Some(text)
                && (*index < file.newest() || shown.is_none_or(|shown| shown < *index))
                && version.by & (USER | UNKNOWN) != 0
                && version.at + 10_000 > self.truth.now
        };
        let versions = file.versions.iter().enumerate();
        let newest = file.newest();
        let first = newest <= file.from && file.text() == Some(text);
        let found = versions.rev().find(young).map(|(index, _)| index);
        found.or_else(|| first.then_some(newest))
    }

    pub fn claimed_late(&mut self, who: usize, name: Name, text: &Text) -> Done {
        match self.may_be_late(who, name, text) {
            Some(index) => {
                self.truth.claimed_late(who, name, index);
                Ok(())
            }
            None => Err(format!(
                "late: s{who} {name} {text:?}: {:?}",
                self.truth.file(name)
            )),
        }
    }

    pub fn late(&mut self, who: usize, name: Name, make: Make) -> Done {
        let text = self.make(name, make);
        if self.is_half(name)
            || self
                .truth
                .edits
                .values()
                .any(|edit| edit.names.contains(&name))
            || self.truth.text(name).as_ref() == Some(&text)
            || !self.truth.uses(who, name)
        {
            return Ok(());
        }
        self.settle();
        if !self.put(name, &text, How::InPlace, Actor::User) {
            return Ok(());
        }
        let answer = self.try_ask(
            who,
            Request::EditMark(
                EditMark::new(session(who), name).expect(HashOrAbsent::Hash(hash(&text))),
            ),
        );
        match answer {
            Ok(Reply::EditMark(marked)) if marked.late == Some(true) => {
                self.truth.spoke(who, name);
                self.claimed_late(who, name, &text)
            }
            Ok(Reply::EditMark(marked)) => {
                // An editor's report of a save that was not read, or that
                // changed nothing, may explain the next save of the same
                // content (ATTR-2).
                let versions = &self.truth.file(name).versions;
                let unseen = versions.iter().any(|version| {
                    version.maybe && version.reported && version.text.as_ref() == Some(&text)
                });
                let late = self.may_be_late(who, name, &text);
                let must = !unseen
                    && late.is_some_and(|index| !versions[index].reported)
                    && self.truth.worth(who, name) != Worth::Open;
                let edit = EditAbort {
                    edit: marked.edit.clone(),
                    ..EditAbort::new()
                };
                self.ask(who, Request::EditAbort(edit))?;
                self.truth.spoke(who, name);
                if must {
                    return Err(format!("not late: s{who} {name} {text:?}; {marked:?}"));
                }
                Ok(())
            }
            other => Err(format!("reply: {other:?}")),
        }
    }

    pub fn guarded(&mut self, who: usize, name: Name, make: Make) -> Done {
        let text = self.make(name, make);
        let file = self.truth.file(name);
        if file.half.is_some()
            || file.text().is_none()
            || file.text() == Some(&text)
            || self
                .truth
                .edits
                .values()
                .any(|edit| edit.names.contains(&name))
            || self.world.disk.lead(name).place != name
        {
            return Ok(());
        }
        let several = self.truth.names_of(self.truth.of[name]).len() > 1;
        if several {
            return Ok(());
        }
        let answer = self.try_ask(
            who,
            Request::FileWrite(FileWrite {
                text: String::from_utf8(bytes(&text)).ok(),
                ..FileWrite::new(session(who), name)
            }),
        );
        self.refused(who, name, true, &answer)?;
        let Ok(Reply::FileWrite(written)) = answer else {
            return Ok(());
        };
        if written.outcome != Outcome::Applied {
            return Err(format!("file/write: {name}: {written:?}"));
        }
        self.truth.spoke(who, name);
        self.truth.look(&self.world.disk, Actor::User);
        self.truth.settle_of(&[self.truth.of[name]]);
        self.truth
            .claimed_late(who, name, self.truth.file(name).newest());
        Ok(())
    }

    pub fn commit(&mut self, slot: usize, named: bool) -> Done {
        let Some(edit) = self.truth.edits.get(&slot).cloned() else {
            return Ok(());
        };
        if self.is_half(edit.name) {
            return Ok(());
        }
        if edit.flag {
            return Ok(());
        }
        let named = named && edit.wrote;
        let unseen = self
            .truth
            .file(edit.name)
            .versions
            .iter()
            .any(|version| version.maybe && version.text.as_ref() == Some(&edit.planned));
        let reply = self.ask(
            edit.session,
            Request::EditCommit(EditCommit {
                edit: edit.call.is_none().then(|| edit.id.clone()),
                session: edit.call.is_some().then(|| session(edit.session)),
                call_id: edit.call.clone(),
                files: named
                    .then(|| CommitFile {
                        path: edit.name.into(),
                        hash: Some(HashOrAbsent::Hash(hash(&edit.planned))),
                    })
                    .into_iter()
                    .collect(),
            }),
        )?;
        let Reply::EditCommit(committed) = reply else {
            return Err(format!("reply: {reply:?}"));
        };
        let row = committed
            .files
            .iter()
            .find(|row| row.path.to_string_lossy() == edit.name);
        let Some(row) = row else {
            if edit.murky || self.truth.edits[&slot].names.len() > 1 {
                self.truth.end(slot, None);
                self.truth
                    .leave_open(edit.session, edit.name, "its edit went with another name");
                return Ok(());
            }
            return Err(format!("commit: no word of {}; {committed:?}", edit.name));
        };
        if row
            .version
            .as_ref()
            .is_some_and(|v| v.unobserved == Some(true))
        {
            // Later versions are reported once more, together with the one that
            // was not read.
            for held in self.truth.file_mut(edit.name).held.values_mut() {
                held.told = Told::Open;
            }
        }
        let before = self.truth.file(edit.name).held.get(&edit.session).cloned();
        let ended = self.truth.end(slot, named.then_some(&edit.planned));
        let Some(ended) = ended else {
            return Ok(());
        };
        if named && ended.own.is_none() {
            self.truth
                .leave_open(edit.session, edit.name, "it named what was there before");
        }
        if row.late == Some(true) && ended.own.is_some() {
            return Ok(());
        }
        let file = self.truth.file(edit.name);
        let since = file.versions.iter().skip(edit.since + 1);
        let mut own = since.filter(|version| version.real == Some(edit.session));
        let may = self.may_be_late(edit.session, edit.name, &edit.planned);
        if row.late == Some(true)
            && may.is_none()
            && own.any(|version| version.text.as_ref() == Some(&edit.planned))
        {
            let why = "what it wrote was found late";
            self.truth.leave_open(edit.session, edit.name, why);
            return Ok(());
        }
        if row.late == Some(true) {
            return self.claimed_late(edit.session, edit.name, &edit.planned);
        }
        let file = self.truth.file(edit.name);
        let newest = file.newest();
        let changed = file.versions.len() > edit.since + 1;
        use Outcome::{Applied, Clobbered, NotApplied, Overwritten, Unchanged};
        let right: &[Outcome] = match ended.own {
            _ if ended.murky || edit.murky || committed.files.len() > 1 => return Ok(()),
            Some(own) if file.versions[own].maybe || unseen || ended.guess => {
                &[Applied, Clobbered, Overwritten, NotApplied, Unchanged]
            }
            Some(own) if file.versions[own].real != Some(edit.session) => {
                &[Applied, Clobbered, Overwritten]
            }
            Some(_) if edit.began.as_ref() == Some(&edit.planned) => {
                &[Applied, Clobbered, Overwritten, Unchanged]
            }
            // The user saved the same content once more, and may be its author.
            Some(own) if own == newest && file.versions[own].by_flag => {
                &[Applied, Clobbered, Unchanged]
            }
            Some(own) if own == newest => match ended.clobbered {
                Some(true) => &[Clobbered],
                Some(false) => &[Applied],
                None => &[Applied, Clobbered],
            },
            Some(_) if file.text() == Some(&edit.planned) => &[Applied, Overwritten, Clobbered],
            // Another author has written since.
            Some(_) if named => match ended.clobbered {
                Some(false) => &[Overwritten],
                _ => &[Overwritten, Clobbered],
            },
            // Another edit of the session may have claimed it.
            Some(_) if edit.beside => &[Applied, Overwritten, Clobbered, Unchanged],
            Some(_) => &[Applied, Overwritten, Clobbered],
            None if file.text().is_none() => return Ok(()),
            None if !changed && edit.wrote => &[Unchanged],
            None if !changed => &[Unchanged, NotApplied],
            // The session wrote the content that was already there, or nothing.
            None => &[Applied, Clobbered, Overwritten, NotApplied, Unchanged],
        };
        if !right.contains(&row.outcome) {
            return Err(format!(
                "outcome {:?}: not one of {right:?}; {ended:?}; {:?}; it knew {before:?}; {committed:?}",
                row.outcome, file.versions
            ));
        }
        if !committed.changes.is_empty() {
            self.truth.told_by_commit(&edit);
        }
        Ok(())
    }
}
