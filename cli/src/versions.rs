//! The names of versions, files and authors on the command line.

use std::path::{Path, PathBuf};

use anstyle::Style;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use touchmark_client::Workspace;
use touchmark_client::blocking::Client;
use touchmark_client::proto::checkpoints::{CheckpointList, CheckpointRow};
use touchmark_client::proto::{
    At, Author, AuthorKind, ClientPath, Clock, Evidence, Millis, SessionId, native,
};

use crate::context::{self, Context, all_sessions, pages, zone};
use crate::output::{Failure, Outcome};
use crate::style;
use crate::text::{MAX_NAME, author, called, cut, date, escaped, now, time_of_day};

/// The longest name of an author in a column, in characters.
pub(crate) const WHO: usize = 16;

/// A version as it was named on the command line.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// In a form that the daemon takes.
    At(At),
    /// By the label of a checkpoint, or by `SESSION/LABEL`.
    Label(String),
}

/// Reads a version that stands alone, as in `--from V`. A time of day is in the
/// time zone of the user.
///
/// # Errors
/// None: a text in no other form may be the label of a checkpoint.
pub(crate) fn version(text: &str) -> Result<Said, String> {
    Ok(match text.parse::<At>() {
        Ok(at) => Said::At(at.exact(now(), &zone())),
        Err(_) => Said::Label(text.to_owned()),
    })
}

impl Said {
    /// Returns the version in a form that the daemon takes; `None` if none was
    /// named.
    pub(crate) fn resolved(said: Option<&Self>, client: &Client) -> Outcome<Option<At>> {
        match said {
            None => Ok(None),
            Some(Self::At(at)) => Ok(Some(at.clone())),
            Some(Self::Label(text)) => labelled(client, text).map(Some),
        }
    }
}

/// Returns the moment of the checkpoint with a label.
///
/// # Errors
/// If no checkpoint has that label, or several have it.
fn labelled(client: &Client, text: &str) -> Outcome<At> {
    let mut found: Vec<(String, Clock)> = Vec::new();
    for row in all_sessions(client)? {
        let name = called(&row.session, row.label.as_deref());
        let of_session = text.strip_prefix(name.as_str());
        let label = of_session.and_then(|rest| rest.strip_prefix('/'));
        for checkpoint in checkpoints(client, &row.session)? {
            let own = checkpoint.label.as_deref();
            if own == Some(text) || (own.is_some() && own == label) {
                let id = escaped(&checkpoint.checkpoint, MAX_NAME);
                found.push((format!("{name}/{id}"), checkpoint.clock));
            }
        }
    }
    let said = escaped(text, MAX_NAME);
    match found.as_slice() {
        [(_, clock)] => Ok(At::Clock {
            epoch: Some(clock.epoch),
            n: clock.n,
        }),
        [] => {
            let wrong = text.parse::<At>().err();
            let wrong = wrong.map_or_else(String::new, |error| format!(": {error}"));
            Err(Failure::Usage(format!(
                "{said} names no version, and is no label of a checkpoint{wrong}"
            )))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
            Err(Failure::Usage(format!(
                "several checkpoints have the label {said}: {}",
                names.join(", ")
            )))
        }
    }
}

/// Returns all checkpoints of a session, oldest first.
pub(crate) fn checkpoints(client: &Client, session: &SessionId) -> Outcome<Vec<CheckpointRow>> {
    pages(|cursor| {
        let answer = client.call(CheckpointList {
            session: session.clone(),
            limit: None,
            cursor,
        })?;
        Ok((answer.checkpoints, answer.more))
    })
}

/// Returns a file and which version of it: `PATH@V`, or `PATH` and the version
/// `at`.
pub(crate) fn file_and_version(
    context: &Context,
    workspace: &Workspace,
    client: &Client,
    said: &Path,
    at: Option<&Said>,
) -> Outcome<(ClientPath, Option<At>)> {
    let text = said.to_str();
    let at = Said::resolved(at, client)?;
    let parted = text.filter(|_| at.is_none()).and_then(At::split);
    match parted {
        // A file whose name has an `@` is meant.
        Some(_) if said.symlink_metadata().is_ok() => Ok((context.path(workspace, said)?, None)),
        Some((path, at)) => {
            let path = context.path(workspace, Path::new(path))?;
            Ok((path, Some(at.exact(now(), &zone()))))
        }
        None => {
            // The version is a label, or wrong. Without this check the error
            // would be that there is no file of the whole name.
            if let Some((file, version)) = text.and_then(|text| text.rsplit_once('@'))
                && at.is_none()
                && said.symlink_metadata().is_err()
                && Path::new(file).symlink_metadata().is_ok()
            {
                let at = labelled(client, version)?;
                return Ok((context.path(workspace, Path::new(file))?, Some(at)));
            }
            Ok((context.path(workspace, said)?, at))
        }
    }
}

/// Returns files and directories as paths for the daemon; `None` for the whole
/// workspace.
pub(crate) fn files(
    context: &Context,
    workspace: &Workspace,
    said: &[PathBuf],
) -> Outcome<Option<Vec<ClientPath>>> {
    let here: Vec<PathBuf> = said
        .iter()
        .map(|path| match path.as_os_str() == "." {
            true => std::env::current_dir().unwrap_or_default(),
            false => path.clone(),
        })
        .collect();
    let root = native::bytes(&workspace.root);
    let mut paths = Vec::new();
    for path in here {
        let path = context.path(workspace, &path)?;
        // The root directory selects all files.
        if path.as_bytes() == &*root {
            return Ok(None);
        }
        paths.push(path);
    }
    Ok((!paths.is_empty()).then_some(paths))
}

/// The authors whose changes are shown.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// `me`: the user.
    Me,
    /// `command`: a session's shell commands.
    Command,
    /// A session.
    Session(SessionId),
}

impl By {
    /// Parses the name from the command line; `None` if none was given.
    pub(crate) fn said(client: &Client, said: Option<&str>) -> Outcome<Option<Self>> {
        Ok(Some(match said {
            None => return Ok(None),
            Some("me") => Self::Me,
            Some("command") => Self::Command,
            Some(name) => {
                let name = context::session(name).map_err(Failure::Usage)?;
                Self::Session(context::meant(client, &name)?)
            }
        }))
    }

    /// Returns whether a change with this author and evidence is selected.
    pub(crate) fn is(&self, author: &Author, evidence: Evidence) -> bool {
        match self {
            Self::Me => author.kind == AuthorKind::User,
            Self::Command => evidence == Evidence::Command,
            Self::Session(session) => author.is(session),
        }
    }
}

/// Returns a version's short name: its number without the epoch.
pub(crate) fn name(clock: Option<Clock>) -> String {
    clock.map_or_else(|| "-".into(), |clock| clock.n.to_string())
}

/// Returns an author's name, cut to a column's width.
pub(crate) fn who(of: &Author) -> String {
    cut(&author(of), WHO)
}

/// Returns the style for an author's name.
pub(crate) fn colour(author: &Author) -> Style {
    match author.kind {
        AuthorKind::User => style::USER,
        AuthorKind::Agent => style::AGENT,
        AuthorKind::Unknown => style::UNKNOWN,
        AuthorKind::Committed => style::DIM,
    }
}

/// Formats a time: within the last 24 hours only the time of day.
pub(crate) fn when(time: Millis, zone: &TimeZone) -> String {
    let yesterday = jiff::Timestamp::now().checked_sub(24.hours());
    let yesterday = yesterday.map_or(0, |time| time.as_millisecond());
    match i64::try_from(time).is_ok_and(|time| time > yesterday) {
        true => time_of_day(time, zone),
        false => date(time, zone).chars().take(16).collect(),
    }
}
