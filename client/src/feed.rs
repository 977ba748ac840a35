//! A subscription that outlives its daemon: it connects again and asks for
//! what it missed.

use std::time::{Duration, Instant};

use touchmark_proto::daemon::Subscribe;
use touchmark_proto::events::Event;
use touchmark_proto::{Clock, ErrorCode};

use crate::Hello;
use crate::blocking::Client;
use crate::error::{Error, Result};
use crate::find::Workspace;

/// How long to wait between two looks for a daemon.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a feed has to say.
#[derive(Debug)]
pub enum Next {
    /// Something happened.
    Event(Box<Event>),
    /// Nothing within the time given.
    Quiet,
    /// The daemon went away and another answers. Nothing was missed.
    Reconnected,
    /// The same, but what happened in between is not known (DUR-2): what was
    /// believed about files has to be asked again.
    Missed,
}

/// Events of one workspace, across restarts of its daemon.
#[derive(Debug)]
pub struct Feed {
    workspace: Workspace,
    hello: Hello,
    wanted: Subscribe,
    /// How long to look for another daemon before giving up.
    patience: Duration,
    client: Option<Client>,
    /// The clock of the last event handed out.
    since: Option<Clock>,
}

impl Feed {
    /// Subscribes to a running daemon.
    ///
    /// # Errors
    /// As [`Client::connect`] and [`Client::subscribe`].
    pub fn open(
        workspace: Workspace,
        hello: Hello,
        wanted: Subscribe,
        patience: Duration,
    ) -> Result<Self> {
        let mut feed = Self {
            workspace,
            hello,
            since: wanted.since,
            wanted,
            patience,
            client: None,
        };
        feed.subscribe()?;
        Ok(feed)
    }

    /// The connection in use, if the daemon still answers.
    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// The clock of the last event handed out: where another feed would go
    /// on.
    pub fn since(&self) -> Option<Clock> {
        self.since
    }

    /// The next thing to say, waiting for at most `wait` while the daemon
    /// lives. When it goes away, waits for another.
    ///
    /// # Errors
    /// `noDaemon` when none came within the feed's patience, and whatever
    /// else keeps it from being heard.
    pub fn next(&mut self, wait: Duration) -> Result<Next> {
        let Some(client) = &self.client else {
            return self.reconnect();
        };
        match client.next_event(wait) {
            Ok(Some(event)) => {
                self.since = Some(event.clock);
                Ok(Next::Event(Box::new(event)))
            }
            Ok(None) => Ok(Next::Quiet),
            Err(error) if error.is_disconnected() || matches!(error, Error::Lagged { .. }) => {
                self.client = None;
                self.reconnect()
            }
            Err(error) => Err(error),
        }
    }

    fn reconnect(&mut self) -> Result<Next> {
        let until = Instant::now() + self.patience;
        loop {
            match self.subscribe() {
                Ok(missed) => {
                    return Ok(if missed {
                        Next::Missed
                    } else {
                        Next::Reconnected
                    });
                }
                Err(error) if error.is_disconnected() && Instant::now() < until => {
                    std::thread::sleep(LOOK_AGAIN.min(self.patience));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Subscribes from where the feed stopped; `true` if the daemon does not
    /// know that place any more.
    fn subscribe(&mut self) -> Result<bool> {
        let client = self.workspace.connect(&self.hello)?;
        let asked = Subscribe {
            since: self.since,
            ..self.wanted.clone()
        };
        let missed = match client.subscribe(asked) {
            Ok(_) => false,
            Err(Error::Daemon(error)) if error.code == ErrorCode::UnknownClock => {
                self.since = None;
                client.subscribe(Subscribe {
                    since: None,
                    ..self.wanted.clone()
                })?;
                true
            }
            Err(error) => return Err(error),
        };
        if self.since.is_none() {
            // So that a daemon that dies before the first event can be
            // followed as well.
            self.since = client.server().map(|server| server.clock);
        }
        self.client = Some(client);
        Ok(missed)
    }
}
