//! What was done, for `activity/list`: commands, undos, redos, restores,
//! reviews, prompts and git's operations. One function for each place that
//! remembers some of it.

use std::collections::HashMap;

use touchmark_engine::{Fact, Record};
use touchmark_proto::activity::{Activity, ActivityKind};
use touchmark_proto::checkpoints::CheckpointList;
use touchmark_proto::commands::{CommandList, CommandRow};
use touchmark_proto::daemon::Sync;
use touchmark_proto::sessions::SessionList;
use touchmark_proto::undo::{UndoList, UndoRow};
use touchmark_proto::{Clock, Error, Millis, RelPath, SessionId};

use super::operations::{Operation, operations};
use crate::context::aside;
use crate::history::Past;

/// The maximum number of commands, which are all that are kept.
const COMMANDS: u32 = 1_000;

/// The maximum number of files that one row names.
const PATHS: usize = 200;

/// How many versions before a restore are looked at to find what it wrote.
const BEFORE: usize = 50;

impl Past {
    /// Returns what was done of some kinds, in any order.
    pub(crate) async fn actions(&self, kinds: &[ActivityKind]) -> Result<Vec<Activity>, Error> {
        let is_any = |some: &[ActivityKind]| some.iter().any(|kind| kinds.contains(kind));
        if !is_any(ActivityKind::OF_PEOPLE) {
            return Ok(Vec::new());
        }
        let now = self.cx.inside.ask(Sync {}).await?.clock;
        let sessions = self.sessions().await?;
        let mut lasting = self.look(|log| log.lasting_after(0)).await??;
        lasting.extend(self.look(|log| log.claims(None)).await??);
        let mut rows = Vec::new();
        let is_git = is_any(&[ActivityKind::Command, ActivityKind::Git]);
        let mut commands = match is_git {
            true => self.commands().await?,
            false => Vec::new(),
        };
        if is_git {
            rows.extend(self.git(&mut commands).await?);
        }
        rows.extend(commands.into_iter().map(|row| command(row, now)));
        if is_any(&[ActivityKind::Undo, ActivityKind::Redo]) {
            for row in self.cx.inside.ask(UndoList {}).await?.undos {
                let begun = self.clock_at(row.time).await?;
                rows.push(undo(row, begun, &lasting, &sessions));
            }
        }
        if is_any(&[ActivityKind::Prompt]) {
            for session in sessions.keys() {
                rows.extend(self.prompts(session).await?);
            }
        }
        for record in &lasting {
            rows.extend(self.of_fact(record, &sessions).await?);
        }
        rows.retain(|row| kinds.contains(&row.kind));
        Ok(rows)
    }

    /// Returns the labels of all sessions.
    async fn sessions(&self) -> Result<HashMap<SessionId, Option<String>>, Error> {
        let mut sessions = HashMap::new();
        let mut cursor = None;
        loop {
            let limit = None;
            let page = self.cx.inside.ask(SessionList { limit, cursor }).await?;
            let rows = page.sessions.into_iter();
            sessions.extend(rows.map(|row| (row.session, row.label)));
            cursor = page.more;
            if cursor.is_none() {
                return Ok(sessions);
            }
        }
    }

    async fn commands(&self) -> Result<Vec<CommandRow>, Error> {
        let ask = CommandList::new().limit(COMMANDS);
        Ok(self.cx.inside.ask(ask).await?.commands)
    }

    /// Returns the rows of git's operations since this state began. What a
    /// command did whose line names git is added to the command instead.
    async fn git(&self, commands: &mut [CommandRow]) -> Result<Vec<Activity>, Error> {
        let root = self.cx.workspace.root.clone();
        let places = self.cx.workspace.places.clone();
        let found = aside(move || operations(&root, &places)).await?;
        let mut rows = Vec::new();
        for one in found {
            // Git's log has whole seconds. What happened in the state's first
            // second may have been before it.
            if one.second <= self.cx.epoch / 1_000 {
                continue;
            }
            let second = one.second;
            let mut beside = commands.iter_mut().filter(|row| {
                let end = row.ended_at.map_or(Millis::MAX, |end| end / 1_000);
                (row.begun_at / 1_000..=end).contains(&second)
            });
            let names_git = |row: &CommandRow| {
                let words = row.label.as_deref().unwrap_or_default();
                words
                    .split(|letter: char| !letter.is_alphanumeric())
                    .any(|word| word == "git")
            };
            let mut doubt = None;
            let by = beside.find(|row| {
                doubt.get_or_insert_with(|| row.command.clone());
                names_git(row)
            });
            match by {
                Some(by) => {
                    let label = by.label.take().unwrap_or_default();
                    by.label = Some(format!("{label} ({})", one.text));
                }
                None => {
                    let end = (one.second + 1) * 1_000;
                    let newest = self.look(move |log| log.newest_before_time(end));
                    let clock = self.clock(newest.await??);
                    rows.push(of_git(one, clock, doubt));
                }
            }
        }
        Ok(rows)
    }

    async fn prompts(&self, session: &SessionId) -> Result<Vec<Activity>, Error> {
        let mut rows = Vec::new();
        let mut cursor = None;
        loop {
            let ask = CheckpointList {
                cursor,
                ..CheckpointList::new(session.clone())
            };
            let page = self.cx.inside.ask(ask).await?;
            for row in page.checkpoints {
                rows.push(Activity {
                    session: Some(session.clone()),
                    name: Some(row.checkpoint),
                    text: row.text.or(row.label),
                    ..bare(row.clock, row.time, ActivityKind::Prompt)
                });
            }
            cursor = page.more;
            if cursor.is_none() {
                return Ok(rows);
            }
        }
    }

    /// Returns the row of a fact; `None` for facts of other kinds.
    async fn of_fact(
        &self,
        record: &Record,
        sessions: &HashMap<SessionId, Option<String>>,
    ) -> Result<Option<Activity>, Error> {
        let clock = self.clock(record.n);
        let row = |kind| bare(clock, record.time, kind);
        Ok(match &record.fact {
            Fact::BroughtBack { path, version, .. } => {
                let (n, name) = (record.n, path.clone());
                let begun = self.look(move |log| {
                    let before = log.versions_before(n, BEFORE)?;
                    let mut own = before
                        .iter()
                        .filter(|before| before.fact.version_path() == Some(&name));
                    Ok::<_, Error>(own.next().map(|written| written.n.saturating_sub(1)))
                });
                Some(Activity {
                    path: Some(path.clone()),
                    text: version.map(|n| n.to_string()),
                    files: Some(1),
                    paths: Some(vec![path.clone()]),
                    begun: begun.await??.map(|n| self.clock(n)),
                    ..row(ActivityKind::Restore)
                })
            }
            Fact::Kept {
                session,
                files,
                changes,
            } => {
                let plural = if *changes == 1 { "" } else { "s" };
                let by = session
                    .as_ref()
                    .map(|id| format!(" by {}", label(id, sessions)));
                Some(Activity {
                    text: Some(format!(
                        "{changes} change{plural}{}",
                        by.unwrap_or_default()
                    )),
                    files: Some(*files),
                    ..row(ActivityKind::Keep)
                })
            }
            Fact::Claimed {
                path,
                lines,
                session,
                ..
            } => {
                let plural = if lines.len() == 1 { "" } else { "s" };
                let by = session.as_ref().map(|id| label(id, sessions));
                let by = by.unwrap_or("you");
                Some(Activity {
                    path: Some(path.clone()),
                    text: Some(format!("{} line{plural}, by {by}", lines.len())),
                    files: Some(1),
                    paths: Some(vec![path.clone()]),
                    ..row(ActivityKind::Claim)
                })
            }
            _ => None,
        })
    }

    fn clock(&self, n: u64) -> Clock {
        Clock {
            epoch: self.cx.epoch,
            n,
        }
    }

    /// Returns the clock of the newest version at a time.
    async fn clock_at(&self, time: Millis) -> Result<Clock, Error> {
        let before = time.saturating_add(1);
        let newest = self.look(move |log| log.last_before_time(before)).await??;
        Ok(self.clock(newest.unwrap_or(0)))
    }
}

/// Returns a row with nothing but a moment and a kind.
fn bare(clock: Clock, time: Millis, kind: ActivityKind) -> Activity {
    Activity {
        clock,
        time,
        session: None,
        label: None,
        kind,
        path: None,
        verdict: None,
        lost: None,
        name: None,
        text: None,
        files: None,
        paths: None,
        begun: None,
        doubt: None,
    }
}

fn command(row: CommandRow, now: Clock) -> Activity {
    let time = row.ended_at.unwrap_or(row.begun_at);
    Activity {
        session: Some(row.session),
        name: Some(row.command),
        text: row.label,
        begun: Some(row.begun),
        ..bare(row.ended.unwrap_or(now), time, ActivityKind::Command)
    }
}

fn of_git(one: Operation, clock: Clock, beside: Option<String>) -> Activity {
    let text = match &beside {
        Some(command) => format!("{} (while {command} ran)", one.text),
        None => one.text,
    };
    Activity {
        text: Some(text),
        doubt: beside.map(|_| true),
        ..bare(clock, one.second * 1_000, ActivityKind::Git)
    }
}

/// Returns the row of an undo or a redo that began at the clock `begun`.
fn undo(
    row: UndoRow,
    begun: Clock,
    lasting: &[Record],
    sessions: &HashMap<SessionId, Option<String>>,
) -> Activity {
    let number = |name: &str| name.strip_prefix('u').and_then(|n| n.parse::<u64>().ok());
    let is_redo = row.redo_of.is_some();
    let named = number(row.redo_of.as_deref().unwrap_or(&row.undo));
    // The facts about it were recorded after its versions.
    let mut facts = lasting.iter().filter(|record| {
        let about = match record.fact {
            Fact::Undone { undo, redo, .. } => Some((Some(undo), redo)),
            _ => None,
        };
        record.n > begun.n && about == Some((named, is_redo))
    });
    let end = facts.next().map_or(begun.n, |first| first.n);
    let text = match row.redo_of {
        Some(of) => of,
        None => with_labels(&row.what, sessions),
    };
    let kind = match is_redo {
        true => ActivityKind::Redo,
        false => ActivityKind::Undo,
    };
    let mut paths: Vec<RelPath> = row.paths;
    let files = u32::try_from(paths.len()).unwrap_or(u32::MAX);
    paths.truncate(PATHS);
    Activity {
        name: Some(row.undo),
        text: Some(text),
        files: Some(files),
        paths: Some(paths),
        begun: Some(begun),
        ..bare(Clock { n: end, ..begun }, row.time, kind)
    }
}

fn label<'a>(session: &'a SessionId, sessions: &'a HashMap<SessionId, Option<String>>) -> &'a str {
    let label = sessions.get(session).and_then(Option::as_deref);
    label.unwrap_or_else(|| session.as_str())
}

/// Returns what an undo has undone, with labels instead of ids.
fn with_labels(what: &str, sessions: &HashMap<SessionId, Option<String>>) -> String {
    let parts = what.split(", ").map(|part| {
        let session = part.strip_prefix("session ");
        let session = session.and_then(|id| SessionId::new(id).ok());
        match session {
            Some(session) => label(&session, sessions).to_owned(),
            None => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}
