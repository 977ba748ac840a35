//! A subscription that continues after the daemon was restarted. It reconnects
//! and requests the missed events.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use touchmark_client::feed::{Feed, Next};
//! use touchmark_client::proto::daemon::Subscribe;
//! use touchmark_client::{Hello, Workspace};
//!
//! let workspace = Workspace::here()?;
//! let patience = Duration::from_secs(10);
//! let mut feed = Feed::open(workspace, Hello::default(), Subscribe::new(), patience)?;
//! loop {
//!     match feed.next(Duration::from_secs(60))? {
//!         Next::Event(event) => println!("{} {}", event.clock, event.happening.kind()),
//!         Next::Missed => println!("query the state of files again"),
//!         _ => {}
//!     }
//! }
//! # Ok::<(), touchmark_client::Error>(())
//! ```

use std::time::{Duration, Instant};

use touchmark_proto::daemon::Subscribe;
use touchmark_proto::events::Event;
use touchmark_proto::{Clock, ErrorCode};

use crate::Hello;
use crate::blocking::Client;
use crate::error::{Error, Result};
use crate::find::Workspace;

/// The pause between two attempts to connect to a daemon.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a feed returns.
#[derive(Debug)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Next {
    /// An event.
    Event(Box<Event>),
    /// No event within the given time.
    Quiet,
    /// The feed has reconnected to a daemon, and no event was missed.
    Reconnected,
    /// The feed has reconnected to a daemon, and events may be missing (DUR-2).
    /// Query the state of files again.
    Missed,
}

/// The events of one workspace, also after its daemon was restarted.
#[derive(Debug)]
pub struct Feed {
    workspace: Workspace,
    hello: Hello,
    wanted: Subscribe,
    /// How long to try to connect to a daemon before failing.
    patience: Duration,
    client: Option<Client>,
    /// The clock of the last event that was returned.
    since: Option<Clock>,
}

impl Feed {
    /// Subscribes to a running daemon.
    ///
    /// # Errors
    /// The same as [`Client::connect`] and [`Client::subscribe`].
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

    /// Returns the current connection; `None` while the feed has none.
    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// Returns the clock of the last event that was returned. Another feed can
    /// continue after it.
    pub fn since(&self) -> Option<Clock> {
        self.since
    }

    /// Returns the next event, waiting at most for `wait` while the daemon
    /// runs. If the daemon exits, waits for another one.
    ///
    /// # Errors
    /// `noDaemon` if no daemon answers within the feed's patience, and any
    /// other error of connecting and subscribing.
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

    /// Subscribes after the last event that was returned. Returns `true` if the
    /// daemon no longer has the events since then.
    fn subscribe(&mut self) -> Result<bool> {
        let client = self.workspace.connect(&self.hello)?;
        let mut asked = self.wanted.clone();
        asked.since = self.since;
        let missed = match client.subscribe(asked.clone()) {
            Ok(_) => false,
            Err(Error::Daemon(error)) if error.code == ErrorCode::UnknownClock => {
                self.since = None;
                asked.since = None;
                client.subscribe(asked)?;
                true
            }
            Err(error) => return Err(error),
        };
        if self.since.is_none() {
            // This clock lets the feed continue if the daemon exits before the
            // first event.
            self.since = client.server().map(|server| server.clock);
        }
        self.client = Some(client);
        Ok(missed)
    }
}
