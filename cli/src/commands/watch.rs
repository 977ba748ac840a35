//! `touchmark watch`: what happened lately, and what happens.
//!
//! On a terminal the header, what is the case now and the newest lines are
//! redrawn: times age. In a pipe each line is written once, with the time of day.

mod past;

use std::io::Write as _;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::feed::{Feed, Next};
use touchmark_client::proto::activity::{Activity, ActivityKind, ActivityList};
use touchmark_client::proto::at::When;
use touchmark_client::proto::commands::CommandList;
use touchmark_client::proto::daemon::{Status, Subscribe};
use touchmark_client::proto::events::{Event, Happening};
use touchmark_client::proto::review::ReviewList;
use touchmark_client::proto::writes::RecoveryList;
use touchmark_client::proto::{At, SessionId};
use touchmark_client::{Error, Workspace, blocking};

use crate::complete;
use crate::context::{self, Connection, Context, all_sessions, hello};
use crate::feed::{Entry, Fold, Frame, Header, Layout, Note, Size, Time, Verb, Who};
use crate::output::{self, Failure, Outcome};
use crate::progress;
use crate::style::{self, paint};
use crate::system::terminal;
use crate::table::View;
use crate::text::{directory, now, wrapped};
use crate::versions::{VersionName, version};
use crate::wire::event_json;

/// How often a terminal is looked at: times age, and its size changes.
const PACE: Duration = Duration::from_secs(1);

/// The least time between two pictures: a flood of events is drawn together.
const PICTURE: Duration = Duration::from_millis(40);

/// The least time between two queries for the header.
const HEADER: Duration = Duration::from_secs(2);

/// A query for the header that took long is not repeated before this many times
/// its duration have passed.
const REST: u32 = 20;

/// How often the running commands are asked for: their beginnings are no events.
const COMMANDS: Duration = Duration::from_secs(3);

/// How many of the newest commands, of the newest reads and of the newest losses
/// are asked for.
const RECENT: u32 = 100;
const LOSSES: u32 = 3;

/// How long a loss is shown, in seconds. Some people leave it at that.
const DAY: u64 = 86_400;

/// How long to wait for events in a pipe. Its end has no effect.
const IDLE: Duration = Duration::from_secs(3600);

/// How long a daemon may be away, as in a restart, before the feed ends.
const PATIENCE: Duration = Duration::from_secs(3);

/// Shown while nothing has happened.
const HINT: &str =
    "No agent has read a file yet. What agents read, and who changes it, will appear here.";

/// What happened lately, and what happens.
///
/// On a terminal of 16 rows or more, the lines above the feed say what each session does now, and
/// what was lost in the last day and can be brought back.
#[derive(Debug, Args)]
#[command(after_help = crate::versions::NAMES)]
pub(crate) struct Options {
    /// Only what concerns this session
    #[arg(long, short, value_name = "S", value_parser = context::session, add = ArgValueCompleter::new(complete::session))]
    session: Option<SessionId>,
    /// Only these types of events
    #[arg(long, value_name = "TYPE", value_delimiter = ',', value_parser = PossibleValuesParser::new(Happening::KINDS))]
    only: Vec<String>,
    /// Begin with what changed since then: a time (10m, 14:30), a clock, a checkpoint; `now` for nothing [default: 10m, with --json now]
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    since: Option<VersionName>,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let connection = context.open()?;
    let since = VersionName::resolved(options.since.as_ref(), &connection.client)?;
    let is_json = context.global.json;
    let mut wanted = Subscribe {
        session: connection.meant(options.session.as_ref())?,
        ..Subscribe::new().kinds(options.only.clone())
    };
    if is_json {
        wanted.since = past::clock(&connection.client, since.as_ref())?;
    }
    let Connection {
        workspace, client, ..
    } = connection;
    let mut feed = Feed::open(workspace.clone(), hello(), wanted.clone(), PATIENCE)?;
    // With a second connection the daemon would stay longer than needed.
    drop(client);
    let mut screen = Screen::new(context, &workspace);
    if !is_json {
        let since = since.unwrap_or_else(past::lately);
        let client = feed.client().ok_or_else(lost)?;
        screen.begin(client, &wanted, &since)?;
    }
    loop {
        match feed.next(screen.wait()) {
            Ok(Next::Event(event)) => screen.event(&event)?,
            Ok(Next::Quiet) => {}
            Ok(Next::Reconnected) => {
                let text = "another daemon took over; nothing was missed";
                screen.remark(Verb::Restarted, text)?;
            }
            Ok(Next::Missed) => {
                let text = "another daemon took over; changes in between are not known";
                screen.remark(Verb::Restarted, text)?;
            }
            Err(error) if error.is_disconnected() => {
                screen.remark(Verb::Ended, "the daemon has ended")?;
                return screen.last();
            }
            Err(error) => {
                screen.last()?;
                return Err(error.into());
            }
        }
        match screen.tick(feed.client()) {
            // The next call of the feed returns this error, too.
            Err(Failure::Client(error)) if error.is_disconnected() => {}
            done => done?,
        }
    }
}

fn lost() -> Failure {
    Error::Gone {
        reason: String::new(),
    }
    .into()
}

/// The feed as it is written.
struct Screen<'a> {
    context: &'a Context,
    workspace: &'a Workspace,
    /// What a terminal shows, redrawn again and again; `None` in a pipe or a file,
    /// where each line is written once.
    frame: Option<Frame>,
    fold: Fold,
    /// When the newest event arrived.
    newest: Instant,
    /// When the oldest event arrived that `fold` has not returned yet.
    held: Option<Instant>,
    /// Events up to this fact were shown as the past.
    shown: u64,
    /// Whether the header may have changed, and when to ask next.
    changed: bool,
    due: Instant,
    /// When the running commands were asked for.
    asked: Instant,
    /// The only session that is shown.
    session: Option<SessionId>,
    /// When the terminal was drawn last.
    drawn: Option<Instant>,
}

impl<'a> Screen<'a> {
    fn new(context: &'a Context, workspace: &'a Workspace) -> Self {
        let redraws = !context.global.json && terminal::redraws();
        Self {
            context,
            workspace,
            frame: redraws.then(Frame::default),
            fold: Fold::default(),
            newest: Instant::now(),
            held: None,
            shown: 0,
            changed: false,
            due: Instant::now(),
            asked: Instant::now(),
            session: None,
            drawn: None,
        }
    }

    /// Shows the header, and what changed since a moment.
    fn begin(&mut self, client: &blocking::Client, wanted: &Subscribe, since: &At) -> Outcome {
        self.session = wanted.session.clone();
        let header = match self.context.global.quiet {
            true => None,
            false => Some(self.header(client)?),
        };
        let past = past::changes(client, wanted, since)?;
        if let Some(frame) = &mut self.frame {
            frame.now.activity(&done_lately(client));
            for (event, time) in &past.events {
                frame.now.event(event, *time);
            }
        }
        self.shown = past.newest;
        for command in past.commands {
            self.fold.know(command);
        }
        let mut entries = Vec::new();
        for (event, time) in past.events {
            entries.extend(self.fold.push(&event, time));
        }
        entries.extend(self.fold.flush());
        match &mut self.frame {
            Some(frame) => frame.header = header,
            None => {
                if let Some(header) = header {
                    output::line(&header.line(None))?;
                    if header.files == 0 && entries.is_empty() {
                        output::line(&paint(style::DIM, HINT))?;
                    }
                }
            }
        }
        self.write(entries)?;
        self.draw()
    }

    fn header(&mut self, client: &blocking::Client) -> Outcome<Header> {
        let status = client.call(Status {})?;
        let sessions = all_sessions(client)?;
        let queue = client.call(ReviewList::default()).ok();
        let name = directory(&self.workspace.root);
        let header = Header::new(name, &status, &sessions, queue.as_ref());
        if let Some(frame) = &mut self.frame {
            let mut sessions = sessions;
            if let Some(only) = &self.session {
                sessions.retain(|row| row.session == *only);
            }
            frame.now.sessions(sessions);
            let overwrote = ActivityList {
                kinds: Some(vec![ActivityKind::Overwrote]),
                since: Some(At::Time(When::Ago(DAY))),
                ..ActivityList::new().limit(LOSSES)
            };
            let lost = client.call(overwrote).map(|lost| lost.rows);
            let kept = client.call(RecoveryList::new()).map(|kept| {
                let lately = now().saturating_sub(DAY * 1_000);
                let lately = kept.items.iter().filter(|item| item.time > lately);
                lately.count()
            });
            frame
                .now
                .lost(lost.unwrap_or_default(), kept.unwrap_or_default());
        }
        self.commands(client)?;
        Ok(header)
    }

    /// Asks which commands run.
    fn commands(&mut self, client: &blocking::Client) -> Outcome {
        if let Some(frame) = &mut self.frame {
            let ran = client.call(CommandList::new().limit(RECENT))?;
            frame.now.commands(&ran.commands);
            self.asked = Instant::now();
        }
        Ok(())
    }

    /// Returns how long to wait for the next event.
    fn wait(&self) -> Duration {
        let idle = self.frame.as_ref().map_or(IDLE, |_| PACE);
        let drawn = self.drawn.map(|drawn| drawn.elapsed());
        let undrawn = drawn.and_then(|past| PICTURE.checked_sub(past));
        let held = self.fold.wait();
        let held = held.map(|wait| wait.saturating_sub(self.newest.elapsed()));
        let waits = [Some(idle), undrawn, held];
        waits.into_iter().flatten().min().unwrap_or(idle)
    }

    fn event(&mut self, event: &Event) -> Outcome {
        if self.context.global.json {
            return output::json(&event_json(event, &self.workspace.root), false);
        }
        self.changed = true;
        if event.clock.n <= self.shown {
            return Ok(());
        }
        if let Some(frame) = &mut self.frame {
            frame.now.event(event, now());
        }
        self.newest = Instant::now();
        self.held.get_or_insert(self.newest);
        let done = self.fold.push(event, now());
        if !done.is_empty() {
            self.held = Some(self.newest);
        }
        self.write(done)
    }

    /// Shows entries that are complete by now, and keeps a terminal up to date.
    fn tick(&mut self, client: Option<&blocking::Client>) -> Outcome {
        if self.context.global.json {
            return Ok(());
        }
        if self.fold.lacks_command()
            && let Some(client) = client
        {
            for command in client.call(CommandList::default())?.commands {
                self.fold.know(command);
            }
        }
        let is_quiet = self
            .fold
            .wait()
            .is_some_and(|wait| self.newest.elapsed() >= wait);
        let is_late = self.held.is_some_and(|held| held.elapsed() >= PACE);
        if is_quiet || is_late {
            self.flush()?;
        }
        self.refresh(client)?;
        self.draw()
    }

    /// Asks for the header's numbers, if they may have changed.
    fn refresh(&mut self, client: Option<&blocking::Client>) -> Outcome {
        let begun = Instant::now();
        let has_header = self
            .frame
            .as_ref()
            .is_some_and(|frame| frame.header.is_some());
        let Some(client) = client else {
            return Ok(());
        };
        if !self.changed || begun < self.due {
            return match has_header && self.asked.elapsed() >= COMMANDS {
                true => self.commands(client),
                false => Ok(()),
            };
        }
        if has_header {
            let header = Some(self.header(client)?);
            if let Some(frame) = &mut self.frame {
                frame.header = header;
            }
        }
        self.changed = false;
        self.due = Instant::now() + HEADER.max(begun.elapsed() * REST);
        Ok(())
    }

    /// Shows everything before the feed ends.
    fn last(&mut self) -> Outcome {
        self.flush()?;
        self.drawn = None;
        self.draw()
    }

    fn flush(&mut self) -> Outcome {
        self.held = None;
        let done = self.fold.flush();
        self.write(done)
    }

    fn write(&mut self, entries: Vec<Entry>) -> Outcome {
        let layout = Layout::new(View {
            columns: None,
            ..View::here()
        });
        for entry in entries {
            match &mut self.frame {
                Some(frame) => frame.push(entry),
                None => output::line(&layout.line(&entry, Time::OfDay))?,
            }
        }
        Ok(())
    }

    fn remark(&mut self, verb: Verb, text: &str) -> Outcome {
        if self.context.global.json {
            return Ok(());
        }
        self.flush()?;
        self.changed = true;
        if self.context.global.quiet {
            return self.draw();
        }
        let mut entry = Entry::new(now(), Who::Touchmark, verb);
        entry.notes.push(Note::Text(text.to_owned()));
        self.write(vec![entry])?;
        self.draw()
    }

    /// Brings the terminal up to date, unless it was drawn just now.
    fn draw(&mut self) -> Outcome {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < PICTURE) {
            return Ok(());
        }
        let (Some(frame), Some((columns, rows))) = (&mut self.frame, terminal::size()) else {
            return Ok(());
        };
        let hint = wrapped(HINT, columns, "");
        let hint: Vec<String> = match &frame.header {
            Some(header) if header.files == 0 => {
                hint.iter().map(|line| paint(style::DIM, line)).collect()
            }
            _ => Vec::new(),
        };
        let text = frame.draw(&View::here(), Size { rows, columns }, &hint);
        if text.is_empty() {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        progress::end();
        // `anstream` would take the movements of the cursor out together with
        // the colours.
        let mut out = std::io::stdout().lock();
        match AutoStream::choice(&out) {
            ColorChoice::Never => out.write_all(colourless(&text).as_bytes())?,
            _ => out.write_all(text.as_bytes())?,
        }
        Ok(out.flush()?)
    }
}

/// Returns what sessions did to files lately, the newest first. Without it the
/// picture of now begins empty.
fn done_lately(client: &blocking::Client) -> Vec<Activity> {
    let done = client.call(ActivityList::new().limit(RECENT));
    done.map(|done| done.rows).unwrap_or_default()
}

/// Returns the text without colours, but with all other control sequences.
fn colourless(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (number, part) in text.split("\u{1b}[").enumerate() {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        match end {
            _ if number == 0 => plain.push_str(part),
            Some(end) if part[end..].starts_with('m') => plain.push_str(&part[end + 1..]),
            _ => {
                plain.push_str("\u{1b}[");
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_the_cursor_still_moves() {
        let text = format!("\r\u{1b}[3A{}\u{1b}[K\n\u{1b}[J", paint(style::USER, "you"));
        assert_eq!(colourless(&text), "\r\u{1b}[3Ayou\u{1b}[K\n\u{1b}[J");
    }
}
