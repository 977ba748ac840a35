//! The names of versions, files and authors on the command line.

use std::path::{Path, PathBuf};

use anstyle::Style;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use touchmark_client::blocking::Client;
use touchmark_client::proto::{
    At, Author, AuthorKind, ClientPath, Clock, Evidence, FileMode, Millis, SessionId, Version,
    VersionKind, native,
};

use crate::checkpoints::labelled;
use crate::context::{self, Connection};
use crate::output::{Failure, Outcome};
use crate::style;
use crate::text::{author, cut, date, now, path, time_of_day, zone};

/// The longest name of an author in a column, in characters.
pub(crate) const WHO: usize = 16;

/// How versions are named, for the help of each command that takes one.
pub(crate) const NAMES: &str = "Versions (V):
  17, 1795468026370:17  a clock, as `touchmark log` prints it; the long one names the epoch
  9f86d081              at least 6 digits of the content's hash
  @10m @2h @3d          so long ago
  @14:30 @2026-11-22    then, in your time zone
  yesterday, monday, '2 hours ago', '20 nov'
  k3, claude-1/k3       at that checkpoint
  before-lunch          at the checkpoint with that label
  seen:claude-1         what that session saw last
  now                   the file's current content";

/// A version as it was named on the command line.
#[derive(Clone, Debug)]
pub(crate) enum VersionName {
    /// In a form that the daemon takes.
    At(At),
    /// By the label of a checkpoint, or by `SESSION/LABEL`.
    Label(String),
}

/// Parses a version without a file, as in `--from V`. A time of day is in the
/// time zone of the user.
///
/// # Errors
/// None: a text in no other form may be the label of a checkpoint.
pub(crate) fn version(text: &str) -> Result<VersionName, String> {
    Ok(match text.parse::<At>() {
        Ok(at) => VersionName::At(at.exact(now(), &zone())),
        Err(_) => VersionName::Label(text.to_owned()),
    })
}

impl VersionName {
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

/// Returns a file and which version of it: `PATH@V`, or `PATH` and the version
/// `at`.
pub(crate) fn file_and_version(
    connection: &Connection<'_>,
    said: &Path,
    at: Option<&VersionName>,
) -> Outcome<(ClientPath, Option<At>)> {
    let text = said.to_str();
    let client = &connection.client;
    let at = VersionName::resolved(at, client)?;
    let parted = text.filter(|_| at.is_none()).and_then(At::split);
    match parted {
        // The name of the file has an `@`.
        Some(_) if said.symlink_metadata().is_ok() => Ok((connection.path(said)?, None)),
        Some((path, at)) => {
            let path = connection.path(Path::new(path))?;
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
                return Ok((connection.path(Path::new(file))?, Some(at)));
            }
            Ok((connection.path(said)?, at))
        }
    }
}

/// Returns files and directories as paths for the daemon; `None` for the whole
/// workspace.
pub(crate) fn files(
    connection: &Connection<'_>,
    said: &[PathBuf],
) -> Outcome<Option<Vec<ClientPath>>> {
    let root = native::bytes(&connection.workspace.root);
    let mut paths = Vec::new();
    for path in said {
        let path = match path.as_os_str() == "." {
            true => connection.path(&std::env::current_dir().unwrap_or_default())?,
            false => connection.path(path)?,
        };
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
            Self::Command => evidence.is_of_command(),
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

/// Returns what happened to a file, in one word.
pub(crate) fn verb(kind: VersionKind) -> &'static str {
    match kind {
        VersionKind::Created => "created",
        VersionKind::Modified => "edited",
        VersionKind::Deleted => "deleted",
        VersionKind::Renamed => "renamed",
    }
}

/// Returns whether a mode is that of a symlink or of a file.
pub(crate) fn kind(mode: FileMode) -> &'static str {
    if mode.is_link() { "symlink" } else { "file" }
}

/// Returns how a mode differs from the one before; `None` if they are equal.
pub(crate) fn mode_change(before: FileMode, now: FileMode) -> Option<String> {
    if kind(before) != kind(now) {
        return Some(format!("{} replaced by {}", kind(before), kind(now)));
    }
    let [old, new] = [before, now].map(FileMode::permissions);
    (old != new).then(|| format!("mode {old:03o} → {new:03o}"))
}

/// Returns the remarks about a version: how its author is known, and what is
/// special about it.
pub(crate) fn remarks(version: &Version) -> String {
    let mut remarks = vec![evidence(version.evidence).to_owned()];
    if let Some(from) = &version.from {
        remarks.push(format!("from {}", path(from)));
    }
    remarks.extend(
        version
            .mode_before
            .and_then(|before| mode_change(before, version.mode?)),
    );
    if let Some(amended) = version.amends {
        remarks.push(format!("corrects {amended}"));
    }
    for (said, remark) in [
        (version.late, "late"),
        (version.provisional, "its edit is open"),
        (version.overwritten, "replaced unseen"),
        (version.unobserved, "never seen on disk"),
        (version.formatted, "by a formatter"),
    ] {
        if said == Some(true) {
            remarks.push(remark.into());
        }
    }
    remarks.join(", ")
}

/// Returns how the author of a version is known.
pub(crate) fn evidence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Declared => "declared",
        Evidence::Marked => "marked",
        Evidence::Command => "by a command",
        Evidence::Editor => "saved in an editor",
        Evidence::Process => "seen by the kernel",
        Evidence::Unmarked => "unmarked",
        Evidence::Gap => "while not watched",
        Evidence::Claimed => "you said so",
        Evidence::Commit => "in a commit",
    }
}
