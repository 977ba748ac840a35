//! Records what clients really declared: claims, reads, reports, ends of edits.

use super::*;

impl Audit {
    pub(super) fn claim(&mut self, session: &SessionId, path: &str, what: HashOrAbsent) {
        let key = (session.clone(), path.to_owned());
        if let HashOrAbsent::Hash(hash) = what {
            self.maybe_seen.entry(key.clone()).or_default().insert(hash);
        }
        self.claims.entry(key).or_default().insert(what);
    }

    pub(super) fn asked(&mut self, asked: &Asked) {
        use touchmark_proto::Request;
        if !matches!(
            asked.asking.ask,
            Ask::Take { .. } | Ask::Status { .. } | Ask::Sync | Ask::ModList
        ) {
            // Reads, marks and their ends may make a save a change again.
            self.continued.clear();
        }
        let who = asks::session(asked.asking.session);
        let name = |path: &touchmark_proto::ClientPath| {
            String::from_utf8_lossy(path.as_bytes()).into_owned()
        };
        match &asked.request {
            Request::EditBegin(begin) => {
                for file in &begin.files {
                    if let Some(expect) = file.expect {
                        self.claim(&who, &name(&file.path), expect);
                    }
                }
            }
            Request::EditMark(mark) => {
                if let Some(expect) = mark.expect {
                    self.claim(&who, &name(&mark.path), expect);
                }
            }
            Request::EditCommit(commit) => {
                let edit = self.edit_of(commit.edit.as_deref());
                let session = edit
                    .and_then(|edit| self.edits.get(&edit))
                    .map_or(who, |edit| edit.session.clone());
                for file in &commit.files {
                    if let Some(hash) = file.hash {
                        self.claim(&session, &name(&file.path), hash);
                    }
                }
                self.mark_ending(commit.edit.as_deref(), &session);
            }
            Request::EditAbort(abort) => {
                self.mark_ending(abort.edit.as_deref(), &who);
            }
            Request::SessionClose(_) => {
                self.closing.insert(who.clone());
                self.last.retain(|(session, _), _| *session != who);
                self.told.retain(|(session, _), _| *session != who);
            }
            Request::FileRead(read) => {
                let key = (who, name(&read.path));
                if let Some(hash) = read.hash {
                    self.told.remove(&key);
                    self.maybe_seen.entry(key.clone()).or_default().insert(hash);
                    // A content that the daemon may never have seen (SEEN-1).
                    self.gaps.insert(key.1.clone());
                }
                self.last.remove(&key);
                self.read_asked
                    .entry(key)
                    .or_default()
                    .push((if asked.asking.sync { asked.moment } else { 0 }, asked.id));
            }
            Request::FileReadText(read) => {
                let key = (who, name(&read.path));
                self.last.remove(&key);
                self.read_asked
                    .entry(key)
                    .or_default()
                    .push((if asked.asking.sync { asked.moment } else { 0 }, asked.id));
            }
            Request::FileMention(mention) => {
                let key = (who, name(&mention.path));
                if let Some(hash) = mention.hash {
                    self.told.remove(&key);
                    self.maybe_seen.entry(key.clone()).or_default().insert(hash);
                    self.gaps.insert(key.1.clone());
                    self.read_asked
                        .entry(key.clone())
                        .or_default()
                        .push((if asked.asking.sync { asked.moment } else { 0 }, asked.id));
                }
                self.last.remove(&key);
            }
            Request::FileInvalidate(_) => {
                self.last.retain(|(session, _), _| *session != who);
            }
            Request::FileUntrack(untrack) => {
                let key = (who, name(&untrack.path));
                self.last.remove(&key);
                self.told.remove(&key);
            }
            Request::EditorDidSave(saved) => {
                self.saves
                    .entry(name(&saved.path))
                    .or_default()
                    .insert(saved.hash);
            }
            _ => {}
        }
    }

    pub(super) fn edit_of(&self, named: Option<&str>) -> Option<u64> {
        named?.strip_prefix('e')?.parse().ok()
    }

    pub(super) fn mark_ending(&mut self, named: Option<&str>, session: &SessionId) {
        match self.edit_of(named) {
            Some(number) => {
                if let Some(edit) = self.edits.get_mut(&number) {
                    edit.end_asked = true;
                }
            }
            // By the call's name, perhaps before the edit has begun.
            None => {
                self.closing.insert(session.clone());
            }
        }
    }
}
