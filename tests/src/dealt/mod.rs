//! Sessions of several authors in the same files, and the contents that the
//! files must have after one author's changes are undone. Each line's author is
//! known from the script, so no texts are compared to find it.
//!
//! - [`histories`]: the contents: this repository's own commits.
//! - [`deal`]: which author makes which part of a change, and when.
//! - [`truth`]: what remains without an author.
//!
//! The engine's tests include this module and `dice` by their paths. Both use
//! only `std`.

pub mod deal;
pub mod histories;
pub mod truth;

/// An author: an index into [`AUTHORS`].
pub type Who = usize;

/// Two agents, an agent that only runs commands, and the user.
pub const AUTHORS: [&str; 4] = ["a", "b", "c", "user"];

/// The agent that only runs commands.
pub const COMMANDS: Who = 2;

/// The user.
pub const USER: Who = 3;

/// A line that a file contains in some version.
#[derive(Clone, Debug)]
pub struct Line {
    /// The text, without the line end.
    pub text: String,
    /// The author; `None` for a line of the first version.
    pub by: Option<Who>,
}

/// A file's content after a step.
#[derive(Clone, Debug)]
pub struct Version {
    /// The author; `None` for the first version.
    pub by: Option<Who>,
    /// The lines, as indexes into [`File::lines`]; `None` for no file.
    pub lines: Option<Vec<usize>>,
}

/// A file and its history.
#[derive(Clone, Debug)]
pub struct File {
    /// The script's name and the file's place in it.
    pub mark: String,
    /// The path in the workspace.
    pub path: String,
    /// All lines of all versions.
    pub lines: Vec<Line>,
    /// The contents: the initial one, then one for each step.
    pub versions: Vec<Version>,
    /// The line end.
    pub end: &'static str,
    /// A line that is always the last and has no line end; `None` for no such
    /// line.
    pub open: Option<usize>,
}

/// The steps of several authors, in order.
#[derive(Clone, Debug)]
pub struct Script {
    /// The origin of the script's contents, and the script's number.
    pub name: String,
    /// The files. No file's path is below another's.
    pub files: Vec<File>,
    /// The steps, in order: the file, and the version that it gets.
    pub steps: Vec<(usize, usize)>,
}

/// How lines are written to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As in the history, with many equal lines such as braces and empty lines.
    Plain,
    /// With each line's index in [`File::lines`] and the file's mark, so that no
    /// two lines are equal, also of different files and scripts: a file that is
    /// like a removed one counts as that one, moved (HIST-9).
    Marked,
}

impl File {
    /// Returns a line's text, with its line end.
    pub fn written(&self, line: usize, style: Style) -> String {
        let text = &self.lines[line].text;
        let end = if self.open == Some(line) {
            ""
        } else {
            self.end
        };
        match style {
            Style::Plain => format!("{text}{end}"),
            Style::Marked => format!("{text} // {} {line}{end}", self.mark),
        }
    }

    /// Returns the file's content in a version; `None` for no file.
    pub fn text(&self, version: usize, style: Style) -> Option<String> {
        let lines = self.versions[version].lines.as_ref()?;
        Some(
            lines
                .iter()
                .map(|line| self.written(*line, style))
                .collect(),
        )
    }

    /// Returns the file's content in the last version; `None` for no file.
    pub fn last(&self, style: Style) -> Option<String> {
        self.text(self.versions.len() - 1, style)
    }

    /// Returns whether this author has changed the file.
    pub fn is_touched_by(&self, who: Who) -> bool {
        self.versions.iter().any(|version| version.by == Some(who))
    }
}
