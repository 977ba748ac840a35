//! `checkpoint/*`, `warning/*`: which files were edited after a moment (CHK).

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::checkpoints::{
    CheckpointCreate, CheckpointCreated, CheckpointDelete, CheckpointDetect, CheckpointDetected,
    CheckpointList, CheckpointRow, CheckpointRows, EditedFile, WarningCleanup, WarningStore,
    WarningTake, WarningTaken,
};
use touchmark_proto::daemon::Done;
use touchmark_proto::sessions::Warning;
use touchmark_proto::tasks::Removed;
use touchmark_proto::{Author, Error, ErrorCode, Millis, RelPath, Reply, SessionId};

use super::{number_cursor, path_cursor};
use crate::base::Base;
use crate::cursor::write_path;
use crate::effect::{Moment, Question};
use crate::input::{Edited, Learned};
use crate::ledger::record::Fact;
use crate::ledger::session_memory::{Note, PendingWarning};
use crate::ledger::wire_names::checkpoint_name;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::text::shown::show_text;
use crate::text::tokens;

/// The maximum number of characters that are kept of a label, a message's name
/// or a note.
const LABEL: usize = 1_000;
/// The maximum number of characters that are kept of a prompt.
const TEXT: usize = 80;
/// The maximum number of characters of a prompt that are searched for tokens.
const SEARCHED: usize = 4_000;
/// The maximum number of checkpoints of one session.
const CHECKPOINTS: usize = 10_000;
/// The maximum number of files that one warning may name.
const WARNED: usize = 1_000;
/// Operations that only read.
const READS: &[&str] = &["read_tool", "read_file", "file_mentioned"];

impl Base {
    /// Creates a checkpoint. What was written earlier is recorded before the
    /// fence, and so before the checkpoint (ATTR-16).
    pub(crate) fn checkpoint_create(&mut self, ask: &CheckpointCreate) -> Answered {
        let kept = self
            .state
            .memory(&ask.session)
            .map_or(0, |memory| memory.checkpoints.len());
        if kept >= CHECKPOINTS {
            return Err(Error::new(
                ErrorCode::TooLarge,
                format!("the session keeps {CHECKPOINTS} checkpoints already"),
            )
            .hint("delete some with `checkpoint/delete`")
            .into());
        }
        self.ensure_session(&ask.session);
        let checkpoint = self.state.checkpoints_created + 1;
        self.note(
            &ask.session,
            Note::CheckpointCreated {
                checkpoint,
                label: ask.label.as_deref().map(shorten),
                message: ask.message.as_deref().map(shorten),
                step: ask.step,
                text: ask.text.as_deref().and_then(beginning),
            },
        );
        done(Reply::CheckpointCreate(CheckpointCreated {
            checkpoint: checkpoint_name(checkpoint),
            clock: self.state.clock(self.state.n),
            time: self.state.time,
        }))
    }

    pub(crate) fn checkpoint_list(&mut self, ask: &CheckpointList) -> Answered {
        let after = number_cursor(ask.cursor.as_deref())?;
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let mut checkpoints = Vec::new();
        let mut more = None;
        let mut last = after;
        let kept = self
            .state
            .memory(&ask.session)
            .into_iter()
            .flat_map(|memory| memory.checkpoints.range(after.saturating_add(1)..));
        for (number, checkpoint) in kept {
            if checkpoints.len() == limit {
                more = Some(last.to_string());
                break;
            }
            last = *number;
            checkpoints.push(CheckpointRow {
                checkpoint: checkpoint_name(*number),
                clock: self.state.clock(checkpoint.n),
                time: checkpoint.time,
                label: checkpoint.label.clone(),
                message: checkpoint.message.clone(),
                step: checkpoint.step,
                text: checkpoint.text.clone(),
            });
        }
        done(Reply::CheckpointList(CheckpointRows { checkpoints, more }))
    }

    pub(crate) fn checkpoint_delete(&mut self, ask: &CheckpointDelete) -> Answered {
        let (checkpoint, _) = self.checkpoint(&ask.session, &ask.checkpoint)?;
        self.note(&ask.session, Note::CheckpointDeleted { checkpoint });
        done(Reply::CheckpointDelete(Done {}))
    }

    /// Returns the numbers of a session's checkpoint and of the fact that
    /// created it, by the checkpoint's name.
    fn checkpoint(&self, session: &SessionId, name: &str) -> Result<(u64, u64), Error> {
        let number = name.strip_prefix('k').and_then(|text| text.parse().ok());
        let memory = self.state.memory(session);
        number
            .and_then(|number: u64| Some((number, memory?.checkpoints.get(&number)?.n)))
            .ok_or_else(|| {
                Error::new(
                    ErrorCode::NotFound,
                    format!("the session has no checkpoint {}", show_text(name)),
                )
                .hint("`touchmark checkpoint list` (`checkpoint/list`) lists those it has; they are lost with the state")
            })
    }

    /// Answers `checkpoint/detect` (CHK-1). The log says what was edited since
    /// the checkpoint and what the content was then. The disk says what the
    /// content is now.
    pub(crate) fn checkpoint_detect(
        &mut self,
        pending: &mut Pending,
        ask: &CheckpointDetect,
    ) -> Answered {
        let edited = match pending.learned.clone() {
            None => return Err(Stop::Learn(self.detect_question(ask)?).into()),
            Some(Ok(Learned::Edited(edited))) => edited,
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(_)) => Edited::default(),
        };
        let deleted = self.deleted_paths(ask)?;
        let cursor = path_cursor(ask.cursor.as_deref())?;
        let mut rows = fold_edits(&edited);
        for path in &deleted {
            rows.entry(path.clone()).or_default().deleted = true;
        }
        let unread: Vec<RelPath> = rows
            .keys()
            .filter(|path| {
                let tracked = self.state.paths.contains_key(path);
                let wanted = !tracked || (pending.verify && !pending.rechecked);
                wanted && !pending.reads.found.contains_key(*path)
            })
            .cloned()
            .collect();
        if !unread.is_empty() {
            pending.rechecked = true;
            return Err(Stop::Read(unread, false).into());
        }
        let all: Vec<RelPath> = rows.keys().cloned().collect();
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let mut files = Vec::new();
        let mut more = None;
        for (path, row) in rows {
            if cursor.as_ref().is_some_and(|cursor| path <= *cursor) {
                continue;
            }
            if files.len() == limit {
                more = files.last().map(|file: &EditedFile| write_path(&file.path));
                break;
            }
            let now = self.view().current(&path, pending.reads.found.get(&path));
            let known = now.trouble.is_none().then_some(now.held.hash);
            files.push(EditedFile {
                differs: edited
                    .then
                    .get(&path)
                    .and_then(|then| Some(*then != known?)),
                edited_by: row.authors,
                first_edit: row.first,
                last_edit: row.last,
                versions: row.versions,
                from_deleted_messages: row.deleted,
                path,
            });
        }
        let warning = if ask.store_warning && !all.is_empty() {
            self.ensure_session(&ask.session);
            Some(self.store_warning(&ask.session, all, None))
        } else {
            None
        };
        done(Reply::CheckpointDetect(CheckpointDetected {
            files,
            warning,
            more,
        }))
    }

    fn detect_question(&self, ask: &CheckpointDetect) -> Result<Question, Error> {
        let also = self.deleted_paths(ask)?.into_iter().collect();
        let moment = match (&ask.checkpoint, ask.clock, ask.time) {
            (Some(name), None, None) => Moment::After(self.checkpoint(&ask.session, name)?.1),
            (None, Some(clock), None) => Moment::After(self.view().known_clock(clock)?),
            (None, None, Some(time)) => Moment::Time(time),
            _ => {
                return Err(Error::invalid(
                    "name the moment by one of `checkpoint`, `clock`, `time`",
                ));
            }
        };
        let paths = match &ask.paths {
            Some(named) => {
                let resolved: Result<Vec<RelPath>, Error> =
                    named.iter().map(|path| self.view().resolve(path)).collect();
                Some(resolved?)
            }
            None => None,
        };
        Ok(Question::Edited {
            moment,
            paths,
            also,
        })
    }

    /// Returns the files that deleted messages wrote, or may have written.
    fn deleted_paths(&self, ask: &CheckpointDetect) -> Result<BTreeSet<RelPath>, Error> {
        ask.deleted
            .iter()
            .filter(|deleted| !READS.contains(&deleted.operation.as_str()))
            .map(|deleted| self.view().resolve(&deleted.path))
            .collect()
    }

    pub(crate) fn warning_store(&mut self, ask: &WarningStore) -> Answered {
        if ask.files.len() > WARNED {
            return Err(Error::invalid(format!("a warning names at most {WARNED} files")).into());
        }
        let files = ask.files.iter().map(|path| self.view().resolve(path));
        let files = files.collect::<Result<Vec<RelPath>, Error>>()?;
        self.ensure_session(&ask.session);
        self.store_warning(&ask.session, files, ask.note.as_deref());
        done(Reply::WarningStore(Done {}))
    }

    fn store_warning(
        &mut self,
        session: &SessionId,
        mut files: Vec<RelPath>,
        note: Option<&str>,
    ) -> Warning {
        files.sort();
        files.dedup();
        files.truncate(WARNED);
        let note = note.map(shorten);
        self.note(
            session,
            Note::WarningStored {
                files: files.clone(),
                note: note.clone(),
            },
        );
        Warning {
            files,
            note,
            created_at: self.state.time,
        }
    }

    /// Returns a session's pending warning without taking it.
    pub(super) fn pending_warning(&self, session: &SessionId) -> Option<Warning> {
        let PendingWarning { files, note, time } = self.state.memory(session)?.warning.clone()?;
        Some(Warning {
            files,
            note,
            created_at: time,
        })
    }

    pub(crate) fn warning_take(&mut self, ask: &WarningTake) -> Answered {
        let warning = self.pending_warning(&ask.session);
        if warning.is_some() {
            self.note(&ask.session, Note::WarningTaken);
        }
        done(Reply::WarningTake(WarningTaken { warning }))
    }

    pub(crate) fn warning_cleanup(&mut self, ask: &WarningCleanup) -> Answered {
        let orphaned: Vec<SessionId> = self
            .state
            .sessions
            .iter()
            .filter(|(name, session)| session.memory.warning.is_some() && !ask.live.contains(name))
            .map(|(name, _)| name.clone())
            .collect();
        for session in &orphaned {
            self.note(session, Note::WarningTaken);
        }
        done(Reply::WarningCleanup(Removed {
            removed: orphaned.len() as u64,
        }))
    }
}

/// The edits of one path.
#[derive(Default)]
struct Edits {
    /// The number of each version's fact, with the version's author.
    by: Vec<(u64, Author)>,
    authors: Vec<Author>,
    first: Option<Millis>,
    last: Option<Millis>,
    versions: u32,
    deleted: bool,
}

/// Returns the beginning of a prompt in one line, with tokens left out (SEC-3);
/// `None` if it has no text.
fn beginning(prompt: &str) -> Option<String> {
    let searched: String = prompt.chars().take(SEARCHED).collect();
    let masked = tokens::masked(&searched);
    let words: Vec<&str> = masked.split_whitespace().collect();
    let words = words.join(" ");
    let mut line: String = words.chars().take(TEXT).collect();
    if line.len() < words.len() {
        line.pop();
        line.push('…');
    }
    (!line.is_empty()).then_some(line)
}

/// Groups versions by path. A correction replaces the author of its version.
fn fold_edits(edited: &Edited) -> BTreeMap<RelPath, Edits> {
    let mut rows: BTreeMap<RelPath, Edits> = BTreeMap::new();
    for record in &edited.versions {
        let Fact::Version(fact) = &record.fact else {
            continue;
        };
        if let Some(amended) = fact.amends {
            // The corrected version may be older than the moment; then nothing
            // was edited after it.
            let version = rows
                .get_mut(&fact.path)
                .and_then(|row| row.by.iter_mut().find(|(n, _)| *n == amended));
            if let Some((_, author)) = version {
                *author = fact.author.clone();
            }
            continue;
        }
        let row = rows.entry(fact.path.clone()).or_default();
        row.by.push((record.n, fact.author.clone()));
        row.first.get_or_insert(record.time);
        row.last = Some(record.time);
        row.versions = row.versions.saturating_add(1);
    }
    for row in rows.values_mut() {
        for (_, author) in &row.by {
            if !row.authors.contains(author) {
                row.authors.push(author.clone());
            }
        }
    }
    rows
}
fn shorten(text: &str) -> String {
    text.chars().take(LABEL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prompt_ends_with_a_sign_that_it_goes_on() {
        let exact = "é".repeat(TEXT);
        assert_eq!(beginning(&exact).as_deref(), Some(&*exact));
        let cut = format!("{}…", "é".repeat(TEXT - 1));
        assert_eq!(beginning(&format!("{exact} more")), Some(cut));
        assert_eq!(beginning(" \n"), None);
    }
}
