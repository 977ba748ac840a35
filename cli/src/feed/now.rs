//! What is the case at this moment: which agent is in which file, and what was
//! lost and can be brought back. Shown below the header.

use std::collections::HashMap;

use anstyle::Style;
use touchmark_client::proto::activity::{Activity, ActivityKind};
use touchmark_client::proto::commands::CommandRow;
use touchmark_client::proto::events::{EditPhase, Event, Happening, SessionPhase};
use touchmark_client::proto::quoting::restore_command;
use touchmark_client::proto::sessions::SessionRow;
use touchmark_client::proto::{Author, Millis, RelPath, SessionId, VersionKind};

use crate::style::{self, paint};
use crate::table::{Step, Table, View};
use crate::text::{author, called, count, cut, escaped, path, wrapped};

/// Session, what it does, since when, stale copies.
const TABLE: Table = Table::new(&[Step::Middle(1, 16), Step::Middle(0, 8), Step::Out(2)]);

/// A session that sent nothing for this long is only counted.
const QUIET: Millis = 1_800_000;

/// The number of sessions, and of losses, that are shown.
const SESSIONS: usize = 6;
const LOSSES: usize = 2;

/// The longest command line that is shown, in characters.
const COMMAND: usize = 200;

/// The least number of rows of a screen with room for this beside the feed.
const ROWS: usize = 16;

/// What is the case at this moment.
#[derive(Debug, Default)]
pub(crate) struct Now {
    sessions: Vec<SessionRow>,
    /// The command that each session runs, and since when.
    running: HashMap<SessionId, (String, Millis)>,
    /// The newest thing that each session did to a file.
    newest: HashMap<SessionId, Deed>,
    /// The lines that sessions have overwritten unseen and that are gone,
    /// the newest first.
    losses: Vec<Activity>,
    /// The number of contents that are kept without a name.
    kept: usize,
}

#[derive(Debug)]
struct Deed {
    time: Millis,
    verb: &'static str,
    path: RelPath,
    /// The edit that is open.
    edit: Option<String>,
}

impl Now {
    /// Takes an event that came at `now`.
    pub(crate) fn event(&mut self, event: &Event, now: Millis) {
        match &event.happening {
            Happening::Version { version, .. } => {
                if let Some(session) = &version.author.session {
                    self.did(
                        session,
                        version.time,
                        verb(version.kind),
                        &version.path,
                        None,
                    );
                }
            }
            Happening::Read { session, path, .. } => self.did(session, now, "read", path, None),
            Happening::Edit {
                session,
                edit,
                phase,
                paths,
                ..
            } => match (phase, paths.first()) {
                (EditPhase::Begun, Some(path)) => {
                    self.did(session, now, "edits", path, Some(edit.clone()));
                }
                (EditPhase::Begun, None) => {}
                _ => {
                    let newest = self.newest.get_mut(session);
                    let open = newest.filter(|deed| deed.edit.as_ref() == Some(edit));
                    if let Some(deed) = open {
                        deed.edit = None;
                        deed.time = now;
                        deed.verb = match phase {
                            EditPhase::Committed => "edited",
                            _ => "gave up an edit of",
                        };
                    }
                }
            },
            Happening::Session { session, phase, .. } if *phase != SessionPhase::Opened => {
                self.newest.remove(session);
            }
            _ => {}
        }
    }

    fn did(
        &mut self,
        session: &SessionId,
        time: Millis,
        verb: &'static str,
        path: &RelPath,
        edit: Option<String>,
    ) {
        let before = self.newest.get(session);
        // The version of an edit comes before the edit's end.
        let is_newer = before.is_none_or(|deed| deed.time <= time && deed.edit.is_none());
        if is_newer || edit.is_some() {
            let path = path.clone();
            let deed = Deed {
                time,
                verb,
                path,
                edit,
            };
            self.newest.insert(session.clone(), deed);
        }
    }

    /// Takes what sessions did to files, the newest first.
    pub(crate) fn activity(&mut self, rows: &[Activity]) {
        for row in rows.iter().rev() {
            let verb = match row.kind {
                ActivityKind::Read => "read",
                ActivityKind::Stale | ActivityKind::NotRead | ActivityKind::Conflict => {
                    "was refused an edit of"
                }
                _ => continue,
            };
            if let (Some(session), Some(path)) = (&row.session, &row.path) {
                self.did(session, row.time, verb, path, None);
            }
        }
    }

    /// Takes the sessions that are listed.
    pub(crate) fn sessions(&mut self, sessions: Vec<SessionRow>) {
        self.sessions = sessions;
        self.sessions.retain(|row| row.open);
        self.sessions
            .sort_by_key(|row| std::cmp::Reverse(row.last_active));
    }

    /// Takes the newest commands, of which some may run.
    pub(crate) fn commands(&mut self, commands: &[CommandRow]) {
        let running = commands.iter().filter(|row| row.ended_at.is_none());
        let running = running.map(|row| {
            let label = row.label.as_deref().unwrap_or("a command");
            let label = escaped(label.lines().next().unwrap_or_default(), COMMAND);
            (row.session.clone(), (label, row.begun_at))
        });
        self.running = running.collect();
    }

    /// Takes what was lost: what was overwritten, and how much is kept.
    pub(crate) fn lost(&mut self, losses: Vec<Activity>, kept: usize) {
        self.losses = losses;
        self.kept = kept;
    }

    /// Returns the lines, each without a line break: on a screen with few rows
    /// none.
    pub(crate) fn lines(&self, view: &View, rows: usize) -> Vec<String> {
        if rows < ROWS {
            return Vec::new();
        }
        let is_here = |row: &&SessionRow| {
            let quiet = view.now.saturating_sub(row.last_active);
            quiet < QUIET || self.running.contains_key(&row.session)
        };
        let here = self.sessions.iter().filter(is_here).take(SESSIONS);
        let here: Vec<&SessionRow> = here.collect();
        let mut lines = TABLE.lines(here.iter().map(|row| self.row(row, view)), view.columns);
        let others = self.sessions.len().saturating_sub(here.len());
        if others > 0 && !here.is_empty() {
            let others = count(others as u64, "other open session");
            lines.push(paint(style::DIM, &format!("and {others}")));
        }
        for loss in self.losses.iter().take(LOSSES) {
            lines.extend(lost(loss, view));
        }
        let more = self.losses.len().saturating_sub(LOSSES);
        if more > 0 {
            lines.push(paint(style::WARN, "and more: touchmark log"));
        }
        if self.kept > 0 {
            let kept = count(self.kept as u64, "content");
            let text = format!("kept: {kept}: touchmark recovered list");
            lines.push(paint(style::WARN, &fitting(&text, view)));
        }
        // The feed needs the larger part.
        lines.truncate(rows / 2);
        lines
    }

    fn row(&self, row: &SessionRow, view: &View) -> Vec<(Style, String)> {
        let (what, since) = match (
            self.running.get(&row.session),
            self.newest.get(&row.session),
        ) {
            (Some((label, begun)), _) => (format!("runs `{label}`"), view.age(*begun)),
            (None, Some(deed)) => {
                let what = format!("{} {}", deed.verb, path(&deed.path));
                (what, view.ago(deed.time))
            }
            (None, None) => ("has done nothing yet".into(), view.ago(row.last_active)),
        };
        let stale = match row.stale {
            0 => String::new(),
            stale => format!("{stale} stale"),
        };
        vec![
            (style::AGENT, called(&row.session, row.label.as_deref())),
            (Style::new(), what),
            (style::DIM, since),
            (style::WARN, stale),
        ]
    }
}

/// Returns a loss, with the command that brings it back.
fn lost(loss: &Activity, view: &View) -> Vec<String> {
    let file = loss.path.as_ref();
    let name = file.map_or_else(|| "a file".to_owned(), path);
    let by = loss.session.as_ref().map_or_else(String::new, |session| {
        let label = loss.label.clone();
        let by = Author {
            label,
            ..Author::agent(session.clone())
        };
        format!(" by {}", author(&by))
    });
    let text = format!(
        "lost: {name}, overwritten unseen{by} {}",
        view.ago(loss.time)
    );
    let mut lines = vec![paint(style::WARN, &fitting(&text, view))];
    let back = file.zip(loss.lost);
    if let Some(command) = back.and_then(|(file, clock)| restore_command(file, clock)) {
        let room = view.columns.unwrap_or(usize::MAX).saturating_sub(2);
        let command = wrapped(&command, room, "").into_iter();
        lines.extend(command.map(|part| format!("  {}", cut(&part, room))));
    }
    lines
}

fn fitting(text: &str, view: &View) -> String {
    cut(text, view.columns.unwrap_or(usize::MAX))
}

fn verb(kind: VersionKind) -> &'static str {
    match kind {
        VersionKind::Created => "created",
        VersionKind::Deleted => "deleted",
        VersionKind::Renamed => "renamed",
        _ => "edited",
    }
}
