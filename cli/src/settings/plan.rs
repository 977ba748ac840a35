//! The planned changes of an agent's files, and their execution.

use std::path::{Path, PathBuf};

use super::agent::{Agent, NAME};
use super::difference::difference;
use super::document::Unreadable;
use super::file::{self, SettingsFile};
use super::part::{self, Kind, Part, Which, files};
use super::places::{Places, Scope};
use super::record::{Record, Records};
use super::server::Presence;
use crate::daemon::off;
use crate::output::{Failure, Outcome};

/// The change of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Add what is touchmark's.
    Install,
    /// Remove it.
    Uninstall,
}

impl Direction {
    /// Returns what a question asks whether to do with the files.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Install => "Write",
            Self::Uninstall => "Restore",
        }
    }
}

/// A change of one file that is not made yet.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The file's path, before symlinks are followed.
    pub(crate) path: PathBuf,
    /// The kinds of parts that it changes.
    pub(crate) kinds: Vec<Kind>,
    /// There is another MCP server with touchmark's name, which stays.
    pub(crate) theirs: bool,
    target: SettingsFile,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    earlier: Option<Record>,
    record: Option<Record>,
    records: Records,
}

impl Places<'_> {
    /// Plans the change of each of an agent's files.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, with line and reason. The agent's
    /// other files are still planned.
    pub(crate) fn plans(
        &self,
        agent: Agent,
        scope: Scope,
        action: Direction,
        which: Which,
    ) -> Outcome<Vec<Outcome<Plan>>> {
        let mut files = files(agent, scope, self)?;
        if action == Direction::Uninstall {
            // First the setting that names a file, then the file.
            files.sort_by_key(|(_, parts)| matches!(parts[..], [Part::Script(..)]));
        }
        let meant = files
            .into_iter()
            .filter(|(_, parts)| parts.iter().any(|part| part.is(which)));
        let project = (scope == Scope::Project).then_some(self.workspace);
        let plans = meant.map(|(path, parts)| {
            let target = SettingsFile::of(&path, project)?;
            let before = target.read()?;
            if let ([Part::Script(Kind::Witness, _)], Direction::Uninstall, Some(_)) =
                (&parts[..], action, &before)
            {
                self.is_unused(agent, &path)?;
            }
            let records = Records::of(self.environment);
            let earlier = records.read(&path);
            let bytes = before.as_deref();
            let mut change = changed(&path, &parts, action, which, bytes, earlier.clone())?;
            if let (None, Some(_), Some(record)) = (&before, &change.after, &mut change.record) {
                record.directories = made_for(target.real(), &records);
            }
            let kinds = parts.iter().filter(|part| part.is(which)).map(Part::kind);
            Ok(Plan {
                kinds: kinds.collect(),
                theirs: change.theirs,
                path,
                target,
                before,
                after: change.after,
                earlier,
                record: change.record,
                records,
            })
        });
        Ok(plans.collect())
    }
}

impl Places<'_> {
    /// Checks that no running agent starts its commands through a file: an agent
    /// reads its settings when it starts.
    ///
    /// # Errors
    /// One may do so.
    fn is_unused(&self, agent: Agent, path: &Path) -> Outcome {
        let programs = agent.settings().programs;
        match off::processes::running(programs, &self.home) {
            None => Ok(()),
            Some(who) => Err(Failure::No(format!(
                "{} is left: {who} runs its commands through it. Run `touchmark setup --remove` once it has ended",
                crate::text::directory(path)
            ))),
        }
    }
}

/// The new content of a file, and what to record of it.
#[derive(Debug)]
pub(super) struct FileChange {
    pub(super) after: Option<Vec<u8>>,
    pub(super) record: Option<Record>,
    /// There is another MCP server with touchmark's name, which stays.
    theirs: bool,
}

/// Returns the change of a file with these bytes.
///
/// # Errors
/// The text cannot be edited.
pub(super) fn changed(
    path: &Path,
    parts: &[Part],
    action: Direction,
    which: Which,
    before: Option<&[u8]>,
    earlier: Option<Record>,
) -> Outcome<FileChange> {
    if let [part] = parts
        && let Some(text) = part.whole()
    {
        let (after, record) = of_file(text, path, action, before, earlier)?;
        return Ok(FileChange {
            after,
            record,
            theirs: false,
        });
    }
    let text = Text::of(path, before)?;
    let made = earlier.as_ref().map(|record| &record.made);
    let mut theirs = false;
    let mut wanted = Vec::new();
    for part in parts {
        let found = part.found(text.inner, made).map_err(text.unreadable())?;
        theirs |= found == Presence::Theirs && part.is(which);
        let wants = match part.is(which) {
            true => action == Direction::Install,
            false => matches!(found, Presence::Ours | Presence::Older),
        };
        wanted.push((part, found, wants && found != Presence::Theirs));
    }
    let (after, record) = of_parts(&wanted, &text, before, earlier)?;
    Ok(FileChange {
        after,
        record,
        theirs,
    })
}

/// A file's text, without a byte order mark.
struct Text<'a> {
    path: &'a Path,
    mark: &'static [u8],
    inner: &'a str,
}

impl<'a> Text<'a> {
    fn of(path: &'a Path, bytes: Option<&'a [u8]>) -> Outcome<Self> {
        let bytes = bytes.unwrap_or_default();
        let (mark, bytes) = match bytes.strip_prefix(file::BYTE_ORDER_MARK) {
            Some(rest) => (file::BYTE_ORDER_MARK, rest),
            None => (&[][..], bytes),
        };
        let text = Self {
            path,
            mark,
            inner: "",
        };
        let inner = std::str::from_utf8(bytes).map_err(|error| {
            let read = &bytes[..error.valid_up_to()];
            text.unreadable()(Unreadable {
                line: read.iter().filter(|&&byte| byte == b'\n').count() + 1,
                reason: "it is not UTF-8".into(),
            })
        })?;
        Ok(Self { inner, ..text })
    }

    fn unreadable(&self) -> impl Fn(Unreadable) -> Failure + use<'a> {
        let path = self.path;
        move |wrong| {
            Failure::No(format!(
                "{} line {}: {}; the file is left as it is",
                crate::text::directory(path),
                wrong.line,
                wrong.reason
            ))
        }
    }
}

/// Returns the new content of a text and its record. Each part comes with its
/// current state and whether it is wanted.
fn of_parts(
    parts: &[(&Part, Presence, bool)],
    text: &Text<'_>,
    before: Option<&[u8]>,
    earlier: Option<Record>,
) -> Outcome<(Option<Vec<u8>>, Option<Record>)> {
    let as_wanted = |(_, found, wanted): &(&Part, Presence, bool)| match found {
        Presence::Ours => *wanted,
        Presence::Nothing => !*wanted,
        Presence::Older => false,
        Presence::Theirs => true,
    };
    let is_any_wanted = parts.iter().any(|(_, _, wanted)| *wanted);
    // What was created for parts that others have removed is removed as well.
    if parts.iter().all(as_wanted) && (is_any_wanted || earlier.is_none()) {
        return Ok((before.map(<[u8]>::to_vec), earlier));
    }
    // Remove everything of touchmark's, then add what is wanted. So the whole
    // previous text is known.
    let made = earlier.as_ref().map(|record| &record.made);
    let mut without = text.inner.to_owned();
    for (part, ..) in parts.iter().rev() {
        without = part.take(&without, made).map_err(text.unreadable())?;
    }
    let mut record = Record {
        file: earlier
            .as_ref()
            .map_or(before.is_none(), |record| record.file),
        directories: earlier.map(|record| record.directories).unwrap_or_default(),
        ..Record::default()
    };
    if !is_any_wanted {
        let nothing = record.file && without.trim().is_empty() && text.mark.is_empty();
        let left = before
            .filter(|_| !nothing)
            .map(|_| [text.mark, without.as_bytes()].concat());
        return Ok((left, (nothing && before.is_some()).then_some(record)));
    }
    let mut with = without;
    for (part, ..) in parts.iter().filter(|(_, _, wanted)| *wanted) {
        with = part
            .put(&with, &mut record.made)
            .map_err(text.unreadable())?;
    }
    Ok((Some([text.mark, with.as_bytes()].concat()), Some(record)))
}

/// Returns the directories that are touchmark's once the file exists: those
/// created for it, and those created for another file.
fn made_for(path: &Path, records: &Records) -> Vec<PathBuf> {
    let made = records.directories();
    let above = path.ancestors().skip(1);
    let is_ours = |directory: &&Path| {
        std::fs::symlink_metadata(directory).is_err() || made.contains(*directory)
    };
    above.take_while(is_ours).map(Path::to_owned).collect()
}

fn of_file(
    text: &str,
    path: &Path,
    action: Direction,
    before: Option<&[u8]>,
    earlier: Option<Record>,
) -> Outcome<(Option<Vec<u8>>, Option<Record>)> {
    let is_its_file = |before| part::is_its_file(&String::from_utf8_lossy(before), text);
    if before.is_some_and(|before| !is_its_file(before)) {
        return Err(Failure::No(format!(
            "{} is not touchmark's: its first line is another; the file is left as it is",
            crate::text::directory(path)
        )));
    }
    let mut record = earlier.unwrap_or_default();
    record.file = true;
    Ok(match action {
        Direction::Install => (Some(text.as_bytes().to_vec()), Some(record)),
        Direction::Uninstall => (None, before.is_some().then_some(record)),
    })
}

impl Plan {
    /// Returns whether the plan changes anything.
    pub(crate) fn changes(&self) -> bool {
        self.before != self.after
    }

    /// Returns whether this plan adds and removes the same lines of touchmark's
    /// as another plan. It compares the plan that was shown with one that was
    /// made from the current content.
    pub(crate) fn does_as(&self, shown: &Self) -> bool {
        let lines = |plan: &Self| -> Vec<String> {
            let lines = plan.difference("").into_iter();
            lines
                .filter(|line| line.starts_with(['+', '-']) && line.contains(NAME))
                .collect()
        };
        lines(self) == lines(shown)
    }

    /// Returns the lines of the change as a diff of a file with this name; none
    /// if the plan changes nothing.
    pub(crate) fn difference(&self, name: &str) -> Vec<String> {
        let [before, after] =
            [&self.before, &self.after].map(|bytes| bytes.as_deref().map(String::from_utf8_lossy));
        match self.changes() {
            true => difference(name, before.as_deref(), after.as_deref()),
            false => Vec::new(),
        }
    }

    /// Makes the change.
    ///
    /// # Errors
    /// The file was changed in the meantime, or a system error.
    pub(crate) fn carry_out(&self) -> Outcome {
        let replace = || {
            let (before, after) = (self.before.as_deref(), self.after.as_deref());
            self.target.replace(before, after)
        };
        match (&self.after, &self.record) {
            (Some(_), Some(record)) => {
                // The record first, so that everything that is created can be
                // removed.
                self.records.write(&self.path, Some(record))?;
                replace().inspect_err(|_| {
                    let _as_well_as_can_be = self.records.write(&self.path, self.earlier.as_ref());
                })
            }
            (Some(_), None) => {
                replace()?;
                self.records.write(&self.path, None)
            }
            (None, record) => {
                replace()?;
                let made = record.iter().flat_map(|record| &record.directories);
                file::remove_empty(made);
                self.records.write(&self.path, None)
            }
        }
    }
}
