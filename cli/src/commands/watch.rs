//! `touchmark watch`: what happened lately, and what happens.
//!
//! On a terminal the header and the newest lines are redrawn: times age. In a
//! pipe each line is written once, with the time of day.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use touchmark_client::Workspace;
use touchmark_client::feed::{Feed, Next};
use touchmark_client::proto::codec::ServerMessage;
use touchmark_client::proto::codec::json::server_to_json;
use touchmark_client::proto::daemon::{Status, StatusReport, Subscribe};
use touchmark_client::proto::events::{Event, Happening};
use touchmark_client::proto::{Clock, SessionId, native};

use crate::context::{self, Context, directory, hello, is_terminal, zone};
use crate::feed::{Fold, Layout};
use crate::output::{self, Outcome};
use crate::style::{self, paint};
use crate::system::terminal::columns;
use crate::text::{count, now};

/// How long to wait for what may belong to the line before it. What caused
/// it and what it causes leave the daemon together.
const GATHER: Duration = Duration::from_millis(15);

/// How long to wait when no line is open; any length does.
const IDLE: Duration = Duration::from_secs(3600);

/// How long a daemon may be away, as in a restart, before the feed ends.
const PATIENCE: Duration = Duration::from_secs(3);

/// The live feed.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only what concerns this session
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
    /// Only these types of events
    #[arg(long, value_name = "TYPE", value_delimiter = ',', value_parser = PossibleValuesParser::new(Happening::KINDS))]
    only: Vec<String>,
    /// First what happened since this clock, as an earlier answer gave it
    #[arg(long, value_name = "CLOCK")]
    since: Option<Clock>,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let wanted = Subscribe {
        session: options.session.clone(),
        kinds: options.only.clone(),
        since: options.since,
    };
    let mut feed = Feed::open(workspace.clone(), hello(), wanted, PATIENCE)?;
    let mut screen = Screen::new(context, &workspace);
    screen.header(&client.call(Status {})?)?;
    // The feed has a connection of its own; this one would only keep the
    // daemon from counting it as gone.
    drop(client);
    loop {
        let wait = if screen.is_open() { GATHER } else { IDLE };
        match feed.next(wait) {
            Ok(Next::Event(event)) => screen.event(&event)?,
            Ok(Next::Quiet) => screen.flush()?,
            Ok(Next::Reconnected) => {
                screen.remark("another daemon took over; nothing was missed")?
            }
            Ok(Next::Missed) => {
                screen.remark("another daemon took over; what happened meanwhile is not known")?;
            }
            Err(error) if error.is_disconnected() => {
                return screen.remark("the daemon has ended");
            }
            Err(error) => {
                screen.flush()?;
                return Err(error.into());
            }
        }
    }
}

/// Where the feed is written.
struct Screen<'a> {
    context: &'a Context,
    workspace: &'a Workspace,
    fold: Fold,
    open: bool,
}

impl<'a> Screen<'a> {
    fn new(context: &'a Context, workspace: &'a Workspace) -> Self {
        Self {
            context,
            workspace,
            fold: Fold::default(),
            open: false,
        }
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn header(&self, status: &StatusReport) -> Outcome {
        if self.context.global.json || self.context.global.quiet {
            return Ok(());
        }
        let end = if is_terminal() { "  (Ctrl-C ends)" } else { "" };
        output::line(&format!(
            "{} {}{}",
            paint(style::BOLD, &directory(&self.workspace.root)),
            paint(
                style::DIM,
                &format!(
                    "· {} tracked · {}",
                    count(status.tracked_files, "file"),
                    count(status.sessions, "session")
                )
            ),
            paint(style::DIM, end),
        ))?;
        if status.tracked_files == 0 {
            output::line(&paint(
                style::DIM,
                "No agent has read a file yet. What agents read, and who changes it, will appear here.",
            ))?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Outcome {
        if self.context.global.json {
            return output::json(&event_json(event, self.workspace), false);
        }
        let done = self.fold.push(event, now());
        self.open = true;
        match done {
            Some(entry) => output::line(&self.layout().line(&entry)),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Outcome {
        self.open = false;
        match self.fold.flush() {
            Some(entry) => output::line(&self.layout().line(&entry)),
            None => Ok(()),
        }
    }

    fn remark(&mut self, text: &str) -> Outcome {
        self.flush()?;
        if self.context.global.json {
            return Ok(());
        }
        self.context.say(&paint(style::DIM, &format!("— {text} —")))
    }

    /// Asked for each line, since terminals change their size.
    fn layout(&self) -> Layout {
        Layout::new(columns(), zone())
    }
}

/// The event as the JSON wires send it.
fn event_json(event: &Event, workspace: &Workspace) -> Value {
    let message = ServerMessage::Event(event.clone());
    match server_to_json(&message, &native::bytes(&workspace.root)) {
        Value::Object(mut message) => message.remove("params").unwrap_or_default(),
        other => other,
    }
}
