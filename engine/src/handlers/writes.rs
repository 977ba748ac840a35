//! `file/write`, `file/edit`: writes that the daemon carries out itself, so
//! that they destroy nothing that the session has not seen (GUARD-1).
//!
//! A write has these steps: read the path, check that the session may write
//! (GUARD-4, GUARD-5), begin an edit that declares the new content, order the
//! shell to replace the base with it, read the path again, and end the edit
//! according to the content found. No other request takes effect meanwhile, so
//! no client can see a state in between.

use base64::Engine as _;
use touchmark_proto::edits::Outcome;
use touchmark_proto::events::{EditPhase, Happening};
use touchmark_proto::writes::{FileEdit, FileEdited, FileWrite, FileWritten, Guard};
use touchmark_proto::{
    Error, ErrorCode, ErrorData, Hash, HashOrAbsent, RelPath, Reply, SessionId, Version,
};

use super::edits::Plan;
use crate::disk::Found;
use crate::effect::WriteOrder;
use crate::input::WriteOutcome;
use crate::parts::Core;
use crate::ranges::RangeSet;
use crate::requests::pending::TextFound;
use crate::requests::pending::Write;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::text::form::{Lacks, in_form_of};
use crate::text::replace::{GROWTH, NotReplaced, Wanted, replace};
use crate::text::shown::{show, show_text};
use crate::view::View;

/// A write that is about to begin.
struct Draft {
    plan: Plan,
    path: RelPath,
    base: Option<Hash>,
    bytes: Vec<u8>,
    /// Whether the write replaces all of the base, not only a text that the
    /// session named.
    whole: bool,
    create_directories: bool,
    found: Option<TextFound>,
}

impl Core {
    pub(crate) fn file_write(&mut self, pending: &mut Pending, ask: &FileWrite) -> Answered {
        if let Some(write) = pending.take_write() {
            return self.end_write(pending, write);
        }
        let bytes = match (&ask.text, &ask.base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(text)) => {
                match base64::engine::general_purpose::STANDARD.decode(text.as_bytes()) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        return Err(Error::invalid(format!("base64: {error}")).into());
                    }
                }
            }
            _ => {
                return Err(
                    Error::invalid("give the content either as `text` or as `base64`").into(),
                );
            }
        };
        let path = self.base.view().resolve(&ask.path)?;
        // Only the file's bytes show its form.
        let keep_form = ask.keep_form && ask.text.is_some();
        if keep_form && !pending.rechecked {
            pending.rechecked = true;
            return Err(Stop::Read(vec![path], true).into());
        }
        self.base.read_named(pending, std::slice::from_ref(&path))?;
        let now = self
            .base
            .view()
            .current(&path, pending.reads.found.get(&path));
        let named = ask.base.filter(|_| !ask.force);
        let plan = Plan {
            require_read: ask.require_read != Some(false),
            ..self
                .base
                .view()
                .write_plan(&ask.session, &path, named, ask.force, ask.step)
        };
        self.base.check(pending, &plan)?;
        if now.trouble.is_some() {
            return Err(unstable(&path).into());
        }
        if named.is_some_and(|named| Some(named) != now.held.hash) {
            let error = self.base.view().conflict(
                pending,
                &path,
                named,
                "it differs from `base`",
                Vec::new(),
            );
            return Err(error.into());
        }
        let bytes = match (keep_form, now.held.hash, pending.reads.texts.get(&path)) {
            (false, ..) | (_, None, _) => bytes,
            (true, Some(hash), Some((content, file))) if content.hash == hash => {
                let text = ask.text.as_deref().unwrap_or_default();
                in_form_of(file, text).map_err(|lacks| cannot_store(&path, lacks))?
            }
            _ => return Err(no_text(pending, &path).into()),
        };
        self.begin_write(
            pending,
            Draft {
                plan,
                base: now.held.hash,
                bytes,
                whole: true,
                create_directories: ask.create_directories,
                found: None,
                path,
            },
        )
    }

    pub(crate) fn file_edit(&mut self, pending: &mut Pending, ask: &FileEdit) -> Answered {
        if let Some(write) = pending.take_write() {
            return self.end_write(pending, write);
        }
        if ask.old_string.is_empty() {
            return Err(Error::invalid("`oldString` is empty")
                .hint("to write a whole file, use `file/write`")
                .into());
        }
        let path = self.base.view().resolve(&ask.path)?;
        if !pending.rechecked {
            pending.rechecked = true;
            return Err(Stop::Read(vec![path], true).into());
        }
        let content = pending.reads.texts.get(&path).cloned();
        let base = content.as_ref().map(|(content, _)| content.hash);
        let plan = self
            .base
            .view()
            .write_plan(&ask.session, &path, base, ask.force, ask.step);
        self.base.check(pending, &plan)?;
        let Some((_, bytes)) = content else {
            return Err(no_text(pending, &path).into());
        };
        let wanted = Wanted {
            old: &ask.old_string,
            new: &ask.new_string,
            all: ask.replace_all,
        };
        let replaced = match replace(&bytes, wanted) {
            Ok(replaced) => replaced,
            Err(NotReplaced::Matches(matches)) => {
                return Err(no_match(&path, matches).into());
            }
            Err(NotReplaced::Lacks(lacks)) => return Err(cannot_store(&path, lacks).into()),
            Err(NotReplaced::TooLarge) => return Err(grows(&path).into()),
        };
        self.begin_write(
            pending,
            Draft {
                plan,
                base,
                found: Some(TextFound {
                    matched: replaced.matched,
                    count: replaced.count,
                    line: replaced.line,
                }),
                bytes: replaced.bytes,
                whole: false,
                create_directories: false,
                path,
            },
        )
    }

    fn begin_write(&mut self, pending: &mut Pending, draft: Draft) -> Answered {
        let Draft {
            mut plan,
            path,
            base,
            bytes,
            whole,
            create_directories,
            found,
        } = draft;
        let hash = Hash::of(&bytes);
        let session = plan.session.clone();
        if base.is_none() {
            self.settle_absence(&path);
        }
        if base == Some(hash) {
            // The content is already there, so nothing is written. The session
            // has named it, and so has seen it.
            self.base.ensure_session(&session);
            self.base.begin_log(&path, pending);
            self.base.hold(
                &session,
                &path,
                touchmark_proto::files::Source::AgentEdited,
                plan.step,
            );
            self.base.wrote(&session, &path, HashOrAbsent::Hash(hash));
            let version = self
                .base
                .state
                .paths
                .get(&path)
                .and_then(|state| state.latest())
                .filter(|kept| kept.hash == Some(hash))
                .map(|kept| kept.n);
            let version = version.and_then(|n| self.base.view().version(&path, n));
            return done(reply(
                version,
                Outcome::Unchanged,
                (Guard::Checked, false, Vec::new()),
                found,
            ));
        }
        let seen = base.is_none_or(|base| {
            self.base
                .state
                .knowledge(&session, &path)
                .filter(|knowledge| !knowledge.uncertain)
                .is_some_and(|knowledge| {
                    let seen = knowledge.of(Some(base));
                    seen.is_some_and(|seen| seen.ranges.covers(&RangeSet::whole()))
                })
        });
        let base_author = self
            .base
            .state
            .paths
            .get(&path)
            .and_then(|state| state.latest())
            .filter(|kept| kept.hash == base)
            .map(|kept| kept.author());
        plan.files = vec![(path.clone(), Some(HashOrAbsent::Hash(hash)), base)];
        let (edit, _) = self.base.record_begun(pending, &plan);
        let ticket = self.base.tracker.next_ticket();
        Err(Stop::Write(
            Box::new(Write {
                ticket,
                session,
                path: path.clone(),
                edit,
                base,
                hash,
                found,
                outcome: None,
            }),
            WriteOrder {
                path,
                ticket,
                base,
                bytes: bytes.into(),
                hash,
                keep_base: whole && !seen,
                base_author,
                create_directories,
            },
        )
        .into())
    }

    /// Handles the outcome of a write by the shell: ends the edit if it failed,
    /// and orders one more read of the path.
    pub(crate) fn written(&mut self, path: &RelPath, ticket: u64, outcome: WriteOutcome) {
        let recovered = match &outcome {
            WriteOutcome::Done { recovered, .. } | WriteOutcome::Conflict { recovered, .. } => {
                recovered.as_slice()
            }
            WriteOutcome::Failed(_) => &[],
        };
        for kept in recovered {
            self.base.publish(
                Happening::Recovered {
                    path: path.clone(),
                    kept: kept.clone(),
                },
                None,
            );
        }
        let request = self.requests.of_write(ticket);
        if let Some((_, edit)) = request
            && !matches!(outcome, WriteOutcome::Done { .. })
        {
            // The content now on disk is not this edit's.
            self.end_all(edit, EditPhase::Aborted);
        }
        let last = self.base.turn().order_read(path, false);
        self.base.tracker.writes(path, Some(last));
        if let Some((request, _)) = request {
            self.requests.written(request, path, last, outcome);
        }
    }

    fn end_write(&mut self, pending: &Pending, write: Write) -> Answered {
        let Write {
            session,
            path,
            edit,
            base,
            hash,
            found,
            outcome,
            ..
        } = write;
        match outcome {
            Some(WriteOutcome::Done {
                guard,
                lease,
                recovered,
            }) => {
                let claim = Some(HashOrAbsent::Hash(hash));
                let verdict = self.commit_path(pending, edit, &session, &path, claim);
                let version = verdict
                    .version
                    .and_then(|n| self.base.view().version(&path, n));
                done(reply(
                    version,
                    verdict.outcome,
                    (guard, lease, recovered),
                    found,
                ))
            }
            Some(WriteOutcome::Conflict {
                cause, recovered, ..
            }) => Err(self
                .base
                .view()
                .conflict(pending, &path, base, &cause, recovered)
                .into()),
            Some(WriteOutcome::Failed(error)) => Err(error.into()),
            None => Err(Error::new(ErrorCode::InternalError, "a write without an outcome").into()),
        }
    }
}

impl View<'_> {
    fn write_plan(
        &self,
        session: &SessionId,
        path: &RelPath,
        base: Option<Hash>,
        force: bool,
        step: Option<u64>,
    ) -> Plan {
        Plan {
            session: session.clone(),
            files: vec![(path.clone(), None, base)],
            require_read: true,
            force,
            // The edit stays open that long only if the daemon is killed during
            // the write.
            ttl: self.config.flag_ttl,
            one_shot: false,
            bound: None,
            call: None,
            tool: None,
            step,
        }
    }

    fn conflict(
        &self,
        pending: &Pending,
        path: &RelPath,
        expected: Option<Hash>,
        cause: &str,
        recovered: Vec<String>,
    ) -> Error {
        let now = self.current(path, pending.reads.found.get(path));
        Error::new(
            ErrorCode::Conflict,
            format!("{} was not written: {cause}", show(path)),
        )
        .with(ErrorData {
            path: Some(path.clone()),
            hash: now.held.hash,
            expected: Some(HashOrAbsent::from(expected)),
            recovered: Some(recovered),
            cause: Some(cause.to_owned()),
            ..ErrorData::default()
        })
    }
}

fn reply(
    version: Option<Version>,
    outcome: Outcome,
    (guard, lease, recovered): (Guard, bool, Vec<String>),
    found: Option<TextFound>,
) -> Reply {
    match found {
        None => Reply::FileWrite(FileWritten {
            version,
            outcome,
            guard,
            lease,
            recovered,
        }),
        Some(TextFound {
            matched,
            count,
            line,
        }) => Reply::FileEdit(FileEdited {
            version,
            outcome,
            guard,
            lease,
            recovered,
            matched,
            replacements: count,
            line,
        }),
    }
}

/// Returns the error for a file that changed during each read.
pub(super) fn unstable(path: &RelPath) -> Error {
    Error::path(
        ErrorCode::Unreadable,
        path,
        format!("{} changes faster than it can be read", show(path)),
    )
    .hint("send the request again when the writer has paused")
}

/// Returns the error for a file whose bytes were not read.
fn no_text(pending: &Pending, path: &RelPath) -> Error {
    match pending.reads.found.get(path).map(|outcome| &outcome.found) {
        Some(Found::File(_)) if pending.reads.texts.contains_key(path) => unstable(path),
        Some(Found::File(content)) => Error::new(
            ErrorCode::TooLarge,
            format!("{} is too large to be edited here", show(path)),
        )
        .with(ErrorData {
            path: Some(path.clone()),
            size: Some(content.size),
            ..ErrorData::default()
        })
        .hint("mark it with `edit/begin` and write it yourself"),
        Some(Found::Unstable { .. }) => unstable(path),
        _ => Error::path(
            ErrorCode::NotFound,
            path,
            format!("there is no file {}", show(path)),
        ),
    }
}

/// Returns the error for a text that the file's encoding cannot store.
fn cannot_store(
    path: &RelPath,
    Lacks {
        character,
        encoding,
    }: Lacks,
) -> Error {
    let number = u32::from(character);
    let message = format!(
        "{} is stored as {encoding}, which has no {} (U+{number:04X})",
        show(path),
        show_text(&character.to_string()),
    );
    Error::path(ErrorCode::InvalidParams, path, message)
        .hint("leave the character out, or convert the file to UTF-8 first")
}

fn grows(path: &RelPath) -> Error {
    let limit = GROWTH >> 20;
    let message = format!(
        "the replacements would make {} more than {limit} MiB larger",
        show(path)
    );
    Error::path(ErrorCode::TooLarge, path, message).hint("replace fewer places at once")
}

fn no_match(path: &RelPath, matches: u32) -> Error {
    let message = match matches {
        0 => format!("the text is not in {}", show(path)),
        n => format!("the text is in {} {n} times", show(path)),
    };
    let error = Error::new(ErrorCode::NoMatch, message).with(ErrorData {
        path: Some(path.clone()),
        matches: Some(matches),
        ..ErrorData::default()
    });
    match matches {
        0 => error,
        _ => error.hint("give more of the text around it, or set `replaceAll`"),
    }
}
