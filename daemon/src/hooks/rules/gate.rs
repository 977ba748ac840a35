//! The gate `destructive` (HOOK-4): a tool that is about to write to a file is
//! denied only if it would destroy lines that its session has not seen.

use std::path::Path;

use touchmark_engine::text::{form, lines, tokens};
use touchmark_engine::{Fact, Hunk, Passing, Refusal};
use touchmark_proto::files::FileMention;
use touchmark_proto::{
    ClientPath, Error, ErrorCode, ErrorData, FileState, Hash, LineRange, SessionId,
};

use super::super::daemon_handle::DaemonHandle;
use super::super::destroys::{self, Shown, Texts};
use super::super::happened::{Change, Verdict, Writing};
use super::super::memory::InDenial;
use super::super::{edits, notice};
use super::{DENIAL, Outcome, reads};

/// The number of lines that a session is shown of a file that it was about to
/// replace without having read it.
const FIRST: u32 = 10;

/// Whether a tool may run.
pub(super) enum Weighed {
    /// It destroys nothing that the session has not seen. The notices must be
    /// shown to the session after it.
    Passes(Vec<String>),
    /// It must not run. The lines in the denial count as seen once it was
    /// delivered.
    Denied(Box<Outcome>),
    /// The tool's result, or what has changed, is not known.
    Unsure,
}

/// Decides about a call that writes files of which the session may not edit
/// some, so that its `edit/begin` was refused with this error. A call that may
/// run has one fact [`Fact::Passed`], as it has one [`Fact::Refused`], so that
/// the difference of both is the number of denied calls.
pub(super) async fn weigh(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    files: &[Writing],
    refused: &Error,
) -> Weighed {
    let mut passing = Vec::new();
    for Writing { path, change } in files {
        let Some(path) = daemon.place(cwd, path).await else {
            continue;
        };
        let Some(status) = daemon.status(session, &path).await else {
            continue;
        };
        if status.may_edit {
            continue;
        }
        let file = File {
            daemon,
            session,
            path,
            status,
        };
        match file.weigh(change).await {
            Some(Judgement::Passes(seen)) => passing.push((file, seen)),
            Some(Judgement::Denied(text, shown)) => {
                return Weighed::Denied(Box::new(file.denied(text, shown)));
            }
            None => return Weighed::Unsure,
        }
    }
    if let Some(path) = &refused.data.path {
        daemon.cx.inside.record(vec![Fact::Passed {
            session: session.clone(),
            path: path.clone(),
            cause: match refused.code {
                ErrorCode::NotRead => Passing::Unread,
                _ => Passing::Beside,
            },
        }]);
    }
    let mut notices = Vec::new();
    for (file, Seen { hash, lines, news }) in passing {
        reads::seen(daemon, session, &file.path, hash, &lines).await;
        notices.extend(news);
    }
    Weighed::Passes(notices)
}

/// Denies a call that replaces or removes a file of which the session has seen
/// only what it wrote there itself. `None` if the call may run.
pub(super) async fn replaces_unread(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    files: &[Writing],
) -> Option<Outcome> {
    // Most calls name lines; for these no file is examined.
    for Writing { path, change } in files.iter().filter(|file| !file.change.names_lines()) {
        let Some(path) = daemon.place(cwd, path).await else {
            continue;
        };
        if !daemon.memory.is_unread(session, &path) {
            continue;
        }
        let status = daemon.status(session, &path).await?;
        let status = FileState {
            seen_hash: None,
            ..status
        };
        let file = File {
            daemon,
            session,
            path,
            status,
        };
        if let Some(Judgement::Denied(text, shown)) = file.weigh(change).await {
            daemon.memory.shown(session, &file.path);
            // The engine counts the other refusals: those of `edit/begin`.
            daemon.cx.inside.record(vec![Fact::Refused {
                session: session.clone(),
                path: Some(file.status.path.clone()),
                cause: Refusal::NotRead,
            }]);
            return Some(file.denied(text, shown));
        }
    }
    None
}

/// Denies a call that replaces or removes a file and takes back lines which its
/// session was shown in a notice alone: it may write from an older copy. The
/// repeated call may run. `None` if the call may run.
pub(super) async fn takes_back(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    files: &[Writing],
) -> Option<Outcome> {
    for Writing { path, change } in files.iter().filter(|file| !file.change.names_lines()) {
        let Some(path) = daemon.place(cwd, path).await else {
            continue;
        };
        let Ok(named) = path.normalise(&daemon.cx.root_bytes()) else {
            continue;
        };
        let Some(noticed) = daemon.memory.noticed(session, &named) else {
            continue;
        };
        let status = daemon.status(session, &path).await?;
        let status = FileState {
            seen_hash: Some(noticed.before),
            changed_by: Some(noticed.changed_by),
            since: Some(noticed.since),
            ..status
        };
        let file = File {
            daemon,
            session,
            path,
            status,
        };
        let (text, shown) = match file.weigh(change).await {
            Some(Judgement::Passes(_)) => continue,
            Some(Judgement::Denied(text, shown)) => (text, shown),
            // The texts cannot be compared.
            None => (file.changed_since_read()?, None),
        };
        daemon.cx.inside.record(vec![Fact::Refused {
            session: session.clone(),
            path: Some(file.status.path.clone()),
            cause: Refusal::Stale,
        }]);
        return Some(file.denied(text, shown));
    }
    None
}

/// One file of a call.
struct File<'a> {
    daemon: &'a DaemonHandle,
    session: &'a SessionId,
    path: ClientPath,
    status: FileState,
}

enum Judgement {
    Passes(Seen),
    Denied(String, Option<(Hash, Vec<LineRange>)>),
}

/// The text after an edit, and the hunks of the edit.
struct Edit {
    result: String,
    hunks: Vec<Hunk>,
}

/// What a session will have seen of a file that it is about to change.
struct Seen {
    hash: Hash,
    lines: Vec<LineRange>,
    /// A notice for the model about other changes; `None` if there are none.
    news: Option<String>,
}

impl File<'_> {
    /// Returns the reason of a denial without lines.
    fn changed_since_read(&self) -> Option<String> {
        let data = ErrorData {
            path: Some(self.status.path.clone()),
            changed_by: self.status.changed_by.clone(),
            since: self.status.since,
            ..ErrorData::default()
        };
        let error = Error::new(ErrorCode::Stale, String::new()).with(data);
        notice::refusal(&error, None)
    }

    async fn weigh(&self, change: &Change) -> Option<Judgement> {
        let (hash, now) = self.daemon.bytes(&self.path).await?;
        // A tool that keeps the form of the file, or one that does not, destroys
        // no line by that.
        let text = form::plain(&now)?;
        let result = match change {
            Change::Delete => Some(String::new()),
            // The patch applies to the bytes of another file.
            Change::Patch { from: Some(_), .. } => return None,
            _ => edits::likeliest(change, &now),
        };
        let edit = match result {
            Some(result) => Some(Edit {
                hunks: lines::places(text.as_bytes(), result.as_bytes())?,
                result,
            }),
            None => None,
        };
        match self.status.seen_hash {
            Some(seen) => self.out_of_date(hash, &text, seen, change, edit).await,
            None => self.unread(hash, &text, change, edit?.hunks).await,
        }
    }

    async fn out_of_date(
        &self,
        hash: Hash,
        text: &str,
        seen: Hash,
        change: &Change,
        edit: Option<Edit>,
    ) -> Option<Judgement> {
        // Secrets are not shown to a session that has not requested them
        // (SEC-3).
        let old = self.daemon.content(seen).await?;
        let old = form::plain(&old)?;
        if tokens::any(text.as_bytes()) {
            return None;
        }
        let changed = lines::places(old.as_bytes(), text.as_bytes())?;
        let changed = destroys::unquoted(changed, text, &change.quotes());
        let places = destroys::places(&changed, self.status.line_count);
        let shown = destroys::shown(text, &places);
        let destroys = |edit: &Edit| {
            let texts = Texts {
                seen: old.as_bytes(),
                result: edit.result.as_bytes(),
                changed: &changed,
                edit: &edit.hunks,
            };
            texts.destroy()
        };
        let can_repeat = edit.is_some();
        let Some(edit) = edit.filter(|edit| !destroys(edit)) else {
            let counts = self.daemon.lines(seen, hash).await;
            let text = notice::would_destroy(&self.status, counts, &shown, can_repeat);
            return Some(Judgement::Denied(text, Some((hash, shown.lines))));
        };
        let news = notice::changed_elsewhere(&self.status, &shown);
        let news = Some(news).filter(|_| !changed.is_empty());
        let touched = destroys::touched(&edit.hunks, self.status.line_count);
        Some(Judgement::Passes(Seen {
            hash,
            lines: [shown.lines, touched].concat(),
            news,
        }))
    }

    async fn unread(
        &self,
        hash: Hash,
        text: &str,
        change: &Change,
        edit: Vec<Hunk>,
    ) -> Option<Judgement> {
        if change.names_lines() || edit.is_empty() {
            self.daemon.memory.edits_unread(self.session, &self.path);
            return Some(Judgement::Passes(Seen {
                hash,
                lines: destroys::touched(&edit, self.status.line_count),
                news: None,
            }));
        }
        let shown = self.beginning(hash, text).await;
        let text = notice::not_read(&self.status, shown.as_ref());
        let seen = shown.map(|shown| (hash, shown.lines));
        Some(Judgement::Denied(text, seen))
    }

    /// Returns the first lines of a file. `None` for a secret (SEC-3), which is
    /// recognised by its content not being stored.
    async fn beginning(&self, hash: Hash, text: &str) -> Option<Shown> {
        let mention = FileMention::new(self.session.clone(), self.path.clone());
        self.daemon.ask(mention).await.ok()?;
        self.daemon.content(hash).await?;
        let end = self.status.line_count.min(FIRST);
        let place = LineRange { start: 1, end };
        (end > 0).then(|| destroys::shown(text, &[place]))
    }

    fn denied(&self, text: String, shown: Option<(Hash, Vec<LineRange>)>) -> Outcome {
        let ack = shown.map(|(hash, lines)| {
            let number = self.daemon.memory.deny(InDenial {
                session: self.session.clone(),
                path: self.path.clone(),
                hash,
                lines,
                noticed: None,
            });
            format!("{DENIAL}{number}")
        });
        Outcome {
            verdict: Verdict::Deny(text),
            ack,
            ..Outcome::default()
        }
    }
}
