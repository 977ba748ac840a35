//! Sessions of several authors in the same files, and what the files have to
//! hold without one of them. Who wrote which line is known from the dealing:
//! nothing here compares texts to find it out.
//!
//! - [`histories`]: what is dealt out: this repository's own commits.
//! - [`deal`]: who does which part of them, and when.
//! - [`truth`]: what is left without an author.
//!
//! The engine's tests include this module and `dice` by their paths; both use
//! `std` alone.

pub mod deal;
pub mod histories;
pub mod truth;

/// Who changes files, by their place in [`AUTHORS`].
pub type Who = usize;

/// Two agents, one that only runs commands, and the user.
pub const AUTHORS: [&str; 4] = ["a", "b", "c", "user"];

/// The one that runs commands.
pub const COMMANDS: Who = 2;

/// The user.
pub const USER: Who = 3;

/// A line that a file ever held.
#[derive(Clone, Debug)]
pub struct Line {
    /// Without its end.
    pub text: String,
    /// Who wrote it; `None` for what was there at first.
    pub by: Option<Who>,
}

/// What a file held after a step.
#[derive(Clone, Debug)]
pub struct Version {
    /// Who made it so; `None` for what was there at first.
    pub by: Option<Who>,
    /// Its lines, by their place in [`File::lines`]; `None` for no file.
    pub lines: Option<Vec<usize>>,
}

/// A file, and all that became of it.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path in the workspace.
    pub path: String,
    /// All lines that it ever held.
    pub lines: Vec<Line>,
    /// What it held: first what was there, then after each step.
    pub versions: Vec<Version>,
    /// How its lines end.
    pub end: &'static str,
    /// A line that is always the last, and has no end.
    pub open: Option<usize>,
}

/// What is dealt out to the authors.
#[derive(Clone, Debug)]
pub struct Script {
    /// Where it is from, and its seed.
    pub name: String,
    /// The files, none of which is in another's way.
    pub files: Vec<File>,
    /// In their order: which file, and which of its versions it gets.
    pub steps: Vec<(usize, usize)>,
}

/// How lines are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As they are in the history: braces and empty lines are many.
    Plain,
    /// With the place of each in [`File::lines`]: no two are equal.
    Marked,
}

impl File {
    /// A line as it is written down.
    pub fn written(&self, line: usize, style: Style) -> String {
        let text = &self.lines[line].text;
        let end = if self.open == Some(line) {
            ""
        } else {
            self.end
        };
        match style {
            Style::Plain => format!("{text}{end}"),
            Style::Marked => format!("{text} // {line}{end}"),
        }
    }

    /// What it holds in a version; `None` for no file.
    pub fn text(&self, version: usize, style: Style) -> Option<String> {
        let lines = self.versions[version].lines.as_ref()?;
        Some(
            lines
                .iter()
                .map(|line| self.written(*line, style))
                .collect(),
        )
    }

    /// What it holds in the end.
    pub fn last(&self, style: Style) -> Option<String> {
        self.text(self.versions.len() - 1, style)
    }

    /// Whether this author has changed it.
    pub fn is_touched_by(&self, who: Who) -> bool {
        self.versions.iter().any(|version| version.by == Some(who))
    }
}
