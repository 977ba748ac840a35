//! Events whose hook had to let its agent continue before the answer (HOOK-2).
//! Their effects take place now, and the texts of their answers are added to
//! the answer of the session's next event.

use std::path::Path;
use std::time::Duration;

use touchmark_engine::Input;
use touchmark_engine::{Fact, Passing};
use touchmark_proto::files::{FileHistory, FileMention};
use touchmark_proto::{
    Author, ClientPath, Error, ErrorCode, ErrorData, Millis, RelPath, SessionId, State, Version,
};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::{Happened, Tool, Verdict, What, Writing};
use super::super::notice;
use super::super::unanswered::Held;
use super::{Outcome, Told, commands, follow, prints};
use crate::config::Gate;

/// The maximum number of versions of a file that are examined.
const VERSIONS: u32 = 32;

/// Processes such an event, as far as it can still have an effect.
pub(in crate::hooks) async fn make_up(
    daemon: &DaemonHandle,
    time: Millis,
    happened: Happened,
    held: &[Held],
) {
    let daemon = &daemon.at_leisure();
    let session = happened.session.clone();
    let cwd = happened.cwd.clone();
    let cwd = cwd.as_deref();
    let standing = daemon.standing(&session).await;
    let is_over = standing.known && !standing.open;
    // If this is true, only the answer was too late; the event was processed.
    let heard = daemon.memory.has_heard(&happened);
    match &happened.what {
        _ if is_over => {}
        What::Before {
            tool: Tool::Write { files, .. },
            ..
        } => {
            for (file, held) in files.iter().zip(held) {
                let refusal = refusal(daemon, &session, cwd, file, *held).await;
                let text = refusal.map(|(path, refusal)| {
                    daemon.cx.inside.record(vec![Fact::Passed {
                        session: session.clone(),
                        path,
                        cause: Passing::Late,
                    }]);
                    notice::unanswered(time, &refusal)
                });
                daemon.memory.say_later(&daemon.cx.inside, &session, text);
            }
        }
        What::Before { .. } => {}
        _ if heard => {}
        What::After { call, tool, .. } | What::Failed { call, tool, .. } => match tool {
            Tool::Read(reading) => {
                daemon.memory.recall(&session, call);
                if matches!(happened.what, What::After { .. }) {
                    missed(daemon, &session, cwd, &reading.path).await;
                }
            }
            Tool::Shell { command } => {
                daemon.memory.recall(&session, call);
                for named in prints::named(daemon, cwd, command).await {
                    if let Some(path) = named.path.to_str() {
                        missed(daemon, &session, cwd, path).await;
                    }
                }
                let mut told = Told::default();
                commands::end(daemon, &session, call, Duration::ZERO, &mut told).await;
                let text = (!told.texts.is_empty()).then(|| told.texts.join("\n"));
                daemon.memory.say_later(&daemon.cx.inside, &session, text);
            }
            Tool::Write { .. } | Tool::Other => {
                let quiet = Happened {
                    can_tell: false,
                    ..happened
                };
                follow(daemon, quiet).await;
            }
        },
        _ => {
            let quiet = Happened {
                can_tell: false,
                ..happened
            };
            follow(daemon, quiet).await;
        }
    }
    daemon.cx.inside.feed(Input::HookUnanswered { session });
}

/// Records that a tool has read a file and that it is not known what it saw
/// (SEEN-9).
pub(super) async fn missed(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    path: &str,
) {
    if let Some(path) = daemon.place(cwd, path).await {
        let mention = FileMention::new(session.clone(), path).missed(true);
        let _not_a_file = daemon.ask(mention).await;
    }
}

/// Returns the file, and why a tool would have been denied to write it when it
/// had the content `held`; `None` if it would not have been denied.
async fn refusal(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    file: &Writing,
    held: Held,
) -> Option<(RelPath, String)> {
    let Held::Content(held) = held else {
        return None;
    };
    if daemon.settings.gate == Gate::Off {
        return None;
    }
    let place = daemon.place(cwd, &file.path).await?;
    let status = daemon.status(session, &place).await?;
    if matches!(status.state, State::Unknown | State::Unreadable) || status.seen_hash == Some(held)
    {
        return None;
    }
    let Some(seen) = status.seen_hash else {
        let unread = Error::path(ErrorCode::NotRead, &status.path, "");
        return Some((status.path, notice::refusal(&unread, None)?));
    };
    let versions = versions(daemon, place).await.unwrap_or_default();
    // The versions from the one that the tool was about to overwrite back to
    // the one that the session has seen. Later ones may be the tool's.
    let since: Vec<&Version> = versions
        .iter()
        .skip_while(|version| version.hash != Some(held))
        .take_while(|version| version.hash != Some(seen))
        .filter(|version| version.author.session.as_ref() != Some(session))
        .collect();
    let mut changed_by: Vec<Author> = Vec::new();
    for version in &since {
        if !changed_by.contains(&version.author) {
            changed_by.push(version.author.clone());
        }
    }
    let stale = Error::new(ErrorCode::Stale, "").with(ErrorData {
        path: Some(status.path.clone()),
        changed_by: Some(changed_by),
        since: since.last().map(|first| first.time),
        ..ErrorData::default()
    });
    Some((status.path, notice::refusal(&stale, None)?))
}

/// Returns the newest versions with their last corrections, the newest first.
async fn versions(daemon: &DaemonHandle, path: ClientPath) -> Option<Vec<Version>> {
    let ask = FileHistory::new(path).limit(VERSIONS);
    let rows = daemon.ask(ask).await.ok()?.versions;
    let corrections: Vec<Version> = rows
        .iter()
        .filter(|row| row.amends.is_some())
        .cloned()
        .collect();
    let corrected = |mut row: Version| {
        // The rows have the newest correction first.
        let newest = corrections.iter().find(|one| one.amends == Some(row.clock));
        if let Some(newest) = newest {
            row.author = newest.author.clone();
        }
        row
    };
    let rows = rows.into_iter().filter(|row| row.amends.is_none());
    Some(rows.map(corrected).collect())
}

/// Adds the session's pending texts to an answer; with `takes_comments`, also the
/// user's comments (REV-5).
pub(in crate::hooks) fn with_late(
    daemon: &DaemonHandle,
    session: &SessionId,
    outcome: Outcome,
    takes_comments: bool,
) -> Outcome {
    if matches!(
        outcome.verdict,
        Verdict::Deny(_) | Verdict::Ask(_) | Verdict::Replace(_)
    ) {
        return outcome;
    }
    let mut texts = daemon.memory.late(session);
    let count = texts.len();
    let undos = daemon.memory.undone(|undone| undone.send(session));
    let mut names: String = undos.iter().map(|(undo, _)| format!("u{undo}")).collect();
    texts.extend(undos.into_iter().map(|(_, text)| text));
    if takes_comments {
        for (number, text) in daemon.memory.comments.waiting(session) {
            names += &format!("m{number}");
            texts.push(text);
        }
    }
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() {
        return outcome;
    }
    if let Verdict::Tell(text) = &outcome.verdict {
        texts.push(text.clone());
    }
    let rest = match &outcome.ack {
        Some(ack) => ack.clone(),
        None => format!("- - {session}"),
    };
    Outcome {
        verdict: Verdict::Tell(texts.join("\n")),
        ack: Some(format!("{count}{names}{rest}")),
        undo: outcome.undo,
        shown: outcome.shown,
    }
}
