//! The client's session, on a connection to the daemon that is made anew
//! when it breaks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use touchmark_client::aio::{Client, Session, connect, connect_or_start};
use touchmark_client::proto::daemon::Program;
use touchmark_client::proto::sessions::{SessionClose, SessionOpen};
use touchmark_client::proto::{Method, SessionId};
use touchmark_client::{DEFAULT_DEADLINE, Error, Hello, Start, Workspace};

use crate::commands::call::result_json;
use crate::context::hello;

/// How long the end of this process may wait for the session's.
const CLOSE_DEADLINE: Duration = Duration::from_millis(1000);

/// Of a client's name and version, what is kept: they are the client's own
/// words.
const MAX_NAME: usize = 100;

/// Whether a request may be sent a second time when the connection broke
/// before its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It changes nothing, or changes the same a second time.
    Yes,
    /// It may have taken effect.
    No,
}

/// One MCP client's session.
#[derive(Debug)]
pub(super) struct Link {
    workspace: Workspace,
    /// How a daemon is started, unless it may not be.
    start: Option<Start>,
    session: SessionId,
    /// The session began here and ends here.
    own: bool,
    /// It has begun.
    opened: AtomicBool,
    /// Who the client is, by its own words.
    agent: Mutex<Option<Program>>,
    /// The session on its connection.
    open: tokio::sync::Mutex<Option<Session>>,
    /// Told when there is a connection again.
    connected: Notify,
}

impl Link {
    pub(super) fn new(
        workspace: Workspace,
        start: Option<Start>,
        session: SessionId,
        own: bool,
    ) -> Self {
        Self {
            workspace,
            start,
            session,
            own,
            opened: AtomicBool::new(false),
            agent: Mutex::default(),
            open: tokio::sync::Mutex::default(),
            connected: Notify::new(),
        }
    }

    /// The workspace's directory.
    pub(super) fn root(&self) -> &Path {
        &self.workspace.root
    }

    /// The session's name.
    pub(super) fn id(&self) -> &SessionId {
        &self.session
    }

    /// Remembers who the client is; the first word stands.
    pub(super) fn introduce(&self, name: &str, version: &str) {
        let short = |text: &str| text.chars().take(MAX_NAME).collect::<String>();
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        agent.get_or_insert_with(|| Program {
            name: short(name),
            version: short(version),
        });
    }

    /// Asks the daemon for the session; the answer as JSON, as on the wire.
    ///
    /// # Errors
    /// The daemon's own, or that none could be had.
    pub(super) async fn ask<M: Method>(
        &self,
        again: Again,
        params: impl Fn(SessionId) -> M,
    ) -> Result<Value, Error> {
        let mut second = false;
        loop {
            let session = self.session().await?;
            let request = params(self.session.clone()).into_request();
            match session.client().request(request, DEFAULT_DEADLINE).await {
                Ok(reply) => return Ok(result_json(reply, &self.workspace.root)),
                // A daemon that is ending has not done what it was asked.
                Err(error)
                    if !second
                        && error.is_disconnected()
                        && (again == Again::Yes || error.daemon().is_some()) =>
                {
                    second = true;
                    self.drop_closed(&session).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The open session, on a connection that lives as far as one knows.
    async fn session(&self) -> Result<Session, Error> {
        let mut open = self.open.lock().await;
        if let Some(session) = open.as_ref().filter(|open| !open.client().is_closed()) {
            return Ok(session.clone());
        }
        let client = match &self.start {
            Some(start) => connect_or_start(&self.workspace, &self.hello(), start).await?,
            None => connect(&self.workspace, &self.hello()).await?,
        };
        let agent = || {
            let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
            agent.clone()
        };
        let ask = SessionOpen {
            session: self.session.clone(),
            // Of a session that somebody else opened, he says whose it is.
            agent: self.own.then(agent).flatten(),
            parent: None,
            pid: None,
        };
        let (session, _) = Session::open_with(&client, ask).await?;
        *open = Some(session.clone());
        self.opened.store(true, Ordering::Relaxed);
        self.connected.notify_waiters();
        Ok(session)
    }

    /// A second connection, for events. It starts no daemon: one who listens
    /// must not wake what was told to stop.
    pub(super) async fn listen(&self) -> Result<Client, Error> {
        connect(&self.workspace, &self.hello()).await
    }

    /// Comes back when there is a connection again, or at the latest after
    /// this time.
    pub(super) async fn reconnected(&self, at_most: Duration) {
        // Late is as good as told: whoever waits looks again.
        let _ = tokio::time::timeout(at_most, self.connected.notified()).await;
    }

    async fn drop_closed(&self, session: &Session) {
        let mut open = self.open.lock().await;
        // Somebody else may have connected again meanwhile.
        if open
            .as_ref()
            .is_some_and(|open| open.client().is_same(session.client()))
        {
            *open = None;
        }
    }

    /// Ends the session, if it began here. A daemon that does not hear it
    /// forgets the session by its age.
    pub(super) async fn close(&self) {
        if !self.own || !self.opened.load(Ordering::Relaxed) {
            return;
        }
        let open = self.open.lock().await.take();
        let live = open
            .map(|session| session.client().clone())
            .filter(|client| !client.is_closed());
        let client = match live {
            Some(client) => client,
            // The daemon was restarted since: the session survived it.
            None => match self.listen().await {
                Ok(client) => client,
                Err(_) => return,
            },
        };
        let close = SessionClose {
            session: self.session.clone(),
            forget: false,
        };
        let _ = client.call_within(close, CLOSE_DEADLINE).await;
    }

    fn hello(&self) -> Hello {
        Hello {
            session: Some(self.session.clone()),
            ..hello()
        }
    }
}
