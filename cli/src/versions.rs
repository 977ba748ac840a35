//! The names of versions, files and authors on the command line.

use std::path::{Path, PathBuf};

use anstyle::Style;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use touchmark_client::Workspace;
use touchmark_client::blocking::Client;
use touchmark_client::proto::{
    At, Author, AuthorKind, ClientPath, Clock, Evidence, Millis, SessionId, native,
};

use crate::context::{self, Context, zone};
use crate::output::{Failure, Outcome};
use crate::style;
use crate::text::{MAX_NAME, author, cut, date, escaped, now, time_of_day};

/// The longest name of an author in a column, in characters.
const WHO: usize = 16;

/// A version that stands by itself, as `--from V`. A time of day is one here.
pub(crate) fn version(text: &str) -> Result<At, String> {
    let at: At = text.parse().map_err(|error| format!("{error}"))?;
    Ok(at.exact(now(), &zone()))
}

/// A file and which version of it: `PATH@V`, unless `at` says it.
pub(crate) fn file_and_version(
    context: &Context,
    workspace: &Workspace,
    said: &Path,
    at: Option<At>,
) -> Outcome<(ClientPath, Option<At>)> {
    let text = said.to_str();
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
                let wrong = version.parse::<At>().err();
                let wrong = wrong.map_or_else(String::new, |error| error.to_string());
                let version = escaped(version, MAX_NAME);
                return Err(Failure::Usage(format!(
                    "{version} names no version: {wrong}"
                )));
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
