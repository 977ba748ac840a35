//! The line above the entries: the workspace, with counts of stale copies and of
//! changes to review.

use touchmark_client::proto::daemon::StatusReport;
use touchmark_client::proto::review::ReviewHunks;
use touchmark_client::proto::sessions::SessionRow;

use crate::style::{self, paint};
use crate::text::{count, cut, plural, width};

/// The least room for the workspace's directory.
const DIRECTORY: usize = 12;

/// The state of the workspace in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// The workspace's directory, for people.
    pub(crate) directory: String,
    /// The number of tracked files.
    pub(crate) files: u64,
    /// The number of open sessions.
    pub(crate) sessions: u64,
    /// The number of stale copies of open sessions.
    pub(crate) stale: u64,
    /// The number of changes to review, and whether there are more.
    pub(crate) review: Option<(u64, bool)>,
}

impl Header {
    /// Returns the header of a workspace. `queue` is `None` if the review queue
    /// could not be read.
    pub(crate) fn new(
        directory: String,
        status: &StatusReport,
        sessions: &[SessionRow],
        queue: Option<&ReviewHunks>,
    ) -> Self {
        let open = sessions.iter().filter(|session| session.open);
        Self {
            directory,
            files: status.tracked_files,
            sessions: open.clone().count() as u64,
            stale: open.map(|session| session.stale).sum(),
            review: queue.map(|queue| (queue.hunks.len() as u64, queue.more == Some(true))),
        }
    }

    /// Returns the header as one line, without a line break. On a terminal that
    /// is too narrow, the last facts are left out and the directory loses its
    /// middle.
    pub(crate) fn line(&self, columns: Option<usize>) -> String {
        let stale = plural(self.stale, "stale copy", "stale copies");
        let mut facts = vec![
            (style::DIM, count(self.sessions, "session")),
            (warn(self.stale), stale),
        ];
        if let Some((changes, more)) = self.review {
            let many = if more { "more than " } else { "" };
            let text = format!("{many}{} to review", count(changes, "change"));
            facts.push((warn(changes), text));
        }
        facts.push((style::DIM, format!("{} tracked", count(self.files, "file"))));
        if columns.is_some() {
            facts.push((style::DIM, "Ctrl-C ends".into()));
        }
        let Some(columns) = columns else {
            return join(&self.directory, &facts);
        };
        let taken = |facts: &[(anstyle::Style, String)]| -> usize {
            facts.iter().map(|(_, text)| width(text) + width(GAP)).sum()
        };
        let least = width(&self.directory).min(DIRECTORY);
        while !facts.is_empty() && taken(&facts) + least > columns {
            facts.pop();
        }
        let room = columns.saturating_sub(taken(&facts));
        join(&cut(&self.directory, room), &facts)
    }
}

/// The text between two facts.
const GAP: &str = " · ";

fn warn(number: u64) -> anstyle::Style {
    if number > 0 { style::WARN } else { style::DIM }
}

fn join(directory: &str, facts: &[(anstyle::Style, String)]) -> String {
    let mut line = paint(style::BOLD, directory);
    for (style, fact) in facts {
        line.push_str(&paint(style::DIM, GAP));
        line.push_str(&paint(*style, fact));
    }
    line
}
