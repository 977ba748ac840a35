//! Labels: short names of sessions, for people and models (SES-2). Machines use
//! ids. Wherever an answer has a session's id, the label is next to it.

use touchmark_proto::events::Happening;
use touchmark_proto::review::Comment;
use touchmark_proto::{Author, Change, Error, FileState, Reply, SessionId, Version};

use crate::ledger::state::State;

/// The word for a session whose program is not known.
const NOBODY: &str = "agent";

/// The maximum number of characters of a program's name that are used as the
/// word.
const WORD: usize = 16;

/// The maximum number of words that have their own numbers. Further programs
/// get the word `agent`.
const WORDS: usize = 256;

/// Splits a label into its word and its number.
pub(crate) fn parts(label: &str) -> Option<(&str, u64)> {
    let (word, number) = label.rsplit_once('-')?;
    Some((word, number.parse().ok()?))
}

/// Returns the first word of a program's name, in lower case: `claude` for
/// `Claude Code`.
fn word(program: &str) -> String {
    let mut words = program.split(|letter: char| !letter.is_ascii_alphanumeric());
    let first = words.find(|word| !word.is_empty()).unwrap_or(NOBODY);
    first.chars().take(WORD).collect::<String>().to_lowercase()
}

impl State {
    /// Returns the label for a session that opens now. Its word never had this
    /// number, so no older message refers to it, and no session has it as id.
    pub(crate) fn next_label(&self, program: Option<&str>) -> String {
        let word = program.map_or_else(|| NOBODY.to_owned(), word);
        let counted = self.labels.contains_key(&word) || self.labels.len() < WORDS;
        let word = if counted { word } else { NOBODY.to_owned() };
        let mut number = self.labels.get(&word).copied().unwrap_or(0);
        loop {
            number += 1;
            let label = format!("{word}-{number}");
            let taken = SessionId::new(&label).is_ok_and(|id| self.sessions.contains_key(&id));
            if !taken {
                return label;
            }
        }
    }

    /// Returns a session's label, or `None` if it has none or is not known.
    pub fn label(&self, session: &SessionId) -> Option<&str> {
        self.sessions.get(session)?.label.as_deref()
    }

    /// Returns a session's label, or its id if it has none.
    pub fn label_or_id<'a>(&'a self, session: &'a SessionId) -> &'a str {
        self.label(session).unwrap_or_else(|| session.as_str())
    }

    /// Adds the labels to an answer.
    pub fn label_reply(&self, reply: &mut Reply) {
        match reply {
            Reply::SessionOpen(opened) => {
                opened.label = self.label(&opened.session).map(str::to_owned);
                self.in_changes(&mut opened.modified);
            }
            Reply::SessionList(list) => {
                for row in &mut list.sessions {
                    row.label = self.label(&row.session).map(str::to_owned);
                }
            }
            Reply::TaskList(list) => {
                for row in &mut list.tasks {
                    row.label = self.label(&row.session).map(str::to_owned);
                }
            }
            Reply::ActivityList(list) => {
                for row in &mut list.rows {
                    let label = row.session.as_ref().and_then(|id| self.label(id));
                    row.label = label.map(str::to_owned);
                }
            }
            Reply::FileRead(read) => {
                self.in_authors(read.changed_by.iter_mut().flatten());
                self.in_changes(read.change.as_mut_slice());
            }
            Reply::FileMention(file) => self.in_file(file),
            Reply::FileStatus(list) => list.files.iter_mut().for_each(|file| self.in_file(file)),
            Reply::FileHistory(list) => {
                let versions = list.versions.iter_mut();
                versions.for_each(|version| self.in_version(version));
            }
            Reply::FileLog(log) => {
                let entries = log.entries.iter_mut();
                entries.for_each(|entry| self.in_version(&mut entry.version));
            }
            Reply::EditBegin(begun) => begun.files.iter_mut().for_each(|file| self.in_file(file)),
            Reply::EditMark(marked) => self.in_file(&mut marked.file),
            Reply::EditCommit(committed) => {
                let versions = committed.files.iter_mut();
                let versions = versions.filter_map(|file| file.version.as_mut());
                versions.for_each(|version| self.in_version(version));
                self.in_changes(&mut committed.changes);
            }
            Reply::CommandEnd(ended) => self.in_changes(&mut ended.changes),
            Reply::FileWrite(written) => written
                .version
                .iter_mut()
                .for_each(|version| self.in_version(version)),
            Reply::FileEdit(edited) => edited
                .version
                .iter_mut()
                .for_each(|version| self.in_version(version)),
            Reply::Undo(undone) | Reply::Redo(undone) | Reply::ReviewUndo(undone) => {
                self.in_authors(undone.authors.iter_mut());
                let conflicts = undone.files.iter_mut().flat_map(|file| &mut file.conflicts);
                self.in_authors(conflicts.flatten().map(|conflict| &mut conflict.by));
            }
            Reply::ReviewList(list) => {
                let hunks = list.hunks.iter_mut().map(|hunk| &mut hunk.authors);
                let files = list.files.iter_mut().flatten();
                let all = hunks.chain(files.map(|file| &mut file.authors));
                self.in_authors(all.flatten());
                self.in_comments(list.comments.iter_mut().flatten());
            }
            Reply::ReviewComment(commented) => self.in_comments(commented.comment.iter_mut()),
            Reply::ModifiedList(list) => self.in_changes(&mut list.changes),
            Reply::ModifiedTake(taken) => self.in_changes(&mut taken.changes),
            Reply::CheckpointDetect(detected) => {
                let authors = detected.files.iter_mut();
                self.in_authors(authors.flat_map(|file| &mut file.edited_by));
            }
            _ => {}
        }
    }

    /// Adds the labels to an event.
    pub fn label_happening(&self, happening: &mut Happening) {
        match happening {
            Happening::Version { version, .. } => self.in_version(version),
            Happening::Stale {
                session,
                file,
                label,
            } => {
                *label = self.label(session).map(str::to_owned);
                self.in_file(file);
            }
            Happening::Read { session, label, .. }
            | Happening::Edit { session, label, .. }
            | Happening::Session { session, label, .. } => {
                *label = self.label(session).map(str::to_owned);
            }
            Happening::Undone { session, label, .. } => {
                let session = session.as_ref().and_then(|id| self.label(id));
                *label = session.map(str::to_owned);
            }
            // A command's row gets its label when it is built.
            Happening::Command { .. }
            | Happening::Recovered { .. }
            | Happening::Degraded { .. }
            | Happening::Overflow {} => {}
        }
    }

    /// Adds the labels to an error's fields.
    pub fn label_error(&self, error: &mut Error) {
        let all = std::iter::once(error.data.as_mut()).chain(&mut error.files);
        for data in all {
            self.in_authors(data.changed_by.iter_mut().flatten());
            let holder = data.holder.as_ref().and_then(|holder| self.label(holder));
            data.holder_label = holder.map(str::to_owned);
        }
    }

    /// Adds the labels to authors.
    pub(crate) fn in_authors<'a>(&self, authors: impl IntoIterator<Item = &'a mut Author>) {
        for author in authors {
            let label = author.session.as_ref().and_then(|id| self.label(id));
            author.label = label.map(str::to_owned);
        }
    }

    /// Adds the labels of the sessions that receive comments.
    fn in_comments<'a>(&self, comments: impl IntoIterator<Item = &'a mut Comment>) {
        for to in comments.into_iter().flat_map(|comment| &mut comment.to) {
            to.label = self.label(&to.session).map(str::to_owned);
        }
    }

    fn in_changes(&self, changes: &mut [Change]) {
        for change in changes {
            self.in_authors(&mut change.changed_by);
            change
                .lost
                .iter_mut()
                .for_each(|version| self.in_version(version));
        }
    }

    fn in_version(&self, version: &mut Version) {
        self.in_authors([&mut version.author]);
    }

    fn in_file(&self, file: &mut FileState) {
        self.in_authors(file.changed_by.iter_mut().flatten());
    }
}
