//! The client's session, on a connection to the daemon that is restored when it
//! breaks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use touchmark_client::aio::{Client, connect, connect_or_start};
use touchmark_client::proto::daemon::Program;
use touchmark_client::proto::hooks::HookJoin;
use touchmark_client::proto::sessions::{SessionClose, SessionOpen};
use touchmark_client::proto::{FreeJson, Method, SessionId};
use touchmark_client::{DEFAULT_DEADLINE, Error, Hello, Start, Workspace};

use crate::context::hello;
use crate::wire::result_json;

/// How long this process may wait for the session to close.
const CLOSE_DEADLINE: Duration = Duration::from_millis(1000);

/// The maximum length of a client's name and version, in characters. The client
/// chooses them freely.
const MAX_NAME: usize = 100;

tokio::task_local! {
    /// The session of the call that is being answered.
    static CALLER: SessionId;
}

/// What a client reports about a tool call.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCall {
    /// The agent's id for the call; `None` if MCP servers do not get it.
    pub(super) id: Option<String>,
    /// The tool's name.
    pub(super) tool: Option<String>,
    /// Its arguments.
    pub(super) arguments: Option<Value>,
}

/// Whether a request may be sent again when the connection broke before its
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It may: it changes nothing, or has the same effect a second time.
    Yes,
    /// It may not: the first one may have taken effect.
    No,
}

/// One MCP client's session.
#[derive(Debug)]
pub(super) struct Link {
    workspace: Workspace,
    /// How to start a daemon; `None` if none may be started.
    start: Option<Start>,
    session: SessionId,
    /// Whether the session was opened here, and is closed here.
    own: bool,
    /// Whether the session has been opened.
    opened: AtomicBool,
    /// The session of the agent's hooks; `None` until the daemon has recorded
    /// it.
    joined: watch::Sender<Option<SessionId>>,
    /// The client's program, as the client reports it; `None` before that.
    agent: Mutex<Option<Program>>,
    /// The connection, and whether the session was opened on it; `None` without
    /// a connection.
    open: tokio::sync::Mutex<Option<(Client, bool)>>,
    /// Notified when there is a connection again.
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
            joined: watch::Sender::new(None),
            agent: Mutex::default(),
            open: tokio::sync::Mutex::default(),
            connected: Notify::new(),
        }
    }

    /// Returns the workspace's directory.
    pub(super) fn root(&self) -> &Path {
        &self.workspace.root
    }

    /// Returns the id of the session: that of the call that is being answered,
    /// else the client's.
    pub(super) fn id(&self) -> SessionId {
        let caller = CALLER.try_with(SessionId::clone).ok();
        let joined = || self.joined.borrow().clone();
        caller
            .or_else(joined)
            .unwrap_or_else(|| self.session.clone())
    }

    /// Returns when the client's session has changed.
    pub(super) async fn changed(&self) {
        // The sender is in `self`, so this cannot fail.
        let _ = self.joined.subscribe().changed().await;
    }

    /// Runs a future on behalf of a session.
    pub(super) async fn speaking_for<T>(
        &self,
        session: SessionId,
        doing: impl Future<Output = T>,
    ) -> T {
        CALLER.scope(session, doing).await
    }

    /// Returns the session of a call: that of the agent's hooks if they have
    /// reported the call (HOOK-9), else the client's current one.
    pub(super) async fn whose(&self, call: ToolCall) -> SessionId {
        let client = {
            let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
            agent.as_ref().map(|agent| agent.name.clone())
        };
        let join = HookJoin {
            session: self.session.clone(),
            client,
            arguments: call.arguments.filter(|_| call.id.is_none()).map(FreeJson),
            call_id: call.id,
            tool: call.tool,
        };
        let joined = match (self.own, self.client().await) {
            (true, Ok(client)) => client.call_within(join, DEFAULT_DEADLINE).await.ok(),
            _ => None,
        };
        let Some(session) = joined.and_then(|joined| joined.session) else {
            return self.id();
        };
        let news = Some(session.clone());
        self.joined.send_if_modified(|known| {
            let changed = *known != news;
            *known = news;
            changed
        });
        session
    }

    /// Stores the client's name and version. Only the first call has an effect.
    pub(super) fn introduce(&self, name: &str, version: &str) {
        let short = |text: &str| text.chars().take(MAX_NAME).collect::<String>();
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        agent.get_or_insert_with(|| Program {
            name: short(name),
            version: short(version),
        });
    }

    /// Sends the daemon a request for the session. Returns the answer as JSON,
    /// as on the wire.
    ///
    /// # Errors
    /// The daemon's error, or that no daemon could be reached.
    pub(super) async fn ask<M: Method>(
        &self,
        again: Again,
        params: impl Fn(SessionId) -> M,
    ) -> Result<Value, Error> {
        let id = match CALLER.try_with(SessionId::clone) {
            Ok(id) => id,
            Err(_) => self.whose(ToolCall::default()).await,
        };
        let mut second = false;
        loop {
            let client = self.client().await?;
            if id == self.session {
                self.open(&client).await?;
            }
            let request = params(id.clone()).into_request();
            match client.request(request, DEFAULT_DEADLINE).await {
                Ok(reply) => return Ok(result_json(reply, &self.workspace.root)),
                // A daemon that is shutting down has not executed the request.
                Err(error)
                    if !second
                        && error.is_disconnected()
                        && (again == Again::Yes || error.daemon().is_some()) =>
                {
                    second = true;
                    self.drop_closed(&client).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns a connection that is open as far as is known.
    async fn client(&self) -> Result<Client, Error> {
        let mut open = self.open.lock().await;
        if let Some((client, _)) = open.as_ref().filter(|(client, _)| !client.is_closed()) {
            return Ok(client.clone());
        }
        let client = match &self.start {
            Some(start) => connect_or_start(&self.workspace, &self.hello(), start).await?,
            None => connect(&self.workspace, &self.hello()).await?,
        };
        *open = Some((client.clone(), false));
        self.connected.notify_waiters();
        Ok(client)
    }

    /// Opens the client's own session, once on each connection.
    async fn open(&self, client: &Client) -> Result<(), Error> {
        let mut open = self.open.lock().await;
        let known = open.as_mut().filter(|(known, _)| known.is_same(client));
        let Some((_, opened)) = known else {
            return Ok(());
        };
        if *opened {
            return Ok(());
        }
        let agent = || {
            let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
            agent.clone()
        };
        let ask = SessionOpen {
            // For a session that was opened elsewhere, its opener reports the
            // agent.
            agent: self.own.then(agent).flatten(),
            ..SessionOpen::new(self.session.clone())
        };
        client.call(ask).await?;
        *opened = true;
        self.opened.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Opens a second connection, for events. It starts no daemon: a
    /// subscription must not restart a daemon that was stopped.
    pub(super) async fn listen(&self) -> Result<Client, Error> {
        connect(&self.workspace, &self.hello()).await
    }

    /// Returns when there is a connection again, and at the latest after this
    /// time.
    pub(super) async fn reconnected(&self, at_most: Duration) {
        // A timeout is fine, since the caller checks again.
        let _ = tokio::time::timeout(at_most, self.connected.notified()).await;
    }

    async fn drop_closed(&self, client: &Client) {
        let mut open = self.open.lock().await;
        // Another task may have reconnected in the meantime.
        if open.as_ref().is_some_and(|(open, _)| open.is_same(client)) {
            *open = None;
        }
    }

    /// Closes the session if it was opened here. If the daemon does not receive
    /// this, it forgets the session by age.
    pub(super) async fn close(&self) {
        if !self.own || !self.opened.load(Ordering::Relaxed) {
            return;
        }
        let open = self.open.lock().await.take();
        let live = open
            .map(|(client, _)| client)
            .filter(|client| !client.is_closed());
        let client = match live {
            Some(client) => client,
            // The daemon was restarted. The session survived that.
            None => match self.listen().await {
                Ok(client) => client,
                Err(_) => return,
            },
        };
        let close = SessionClose::new(self.session.clone());
        let _ = client.call_within(close, CLOSE_DEADLINE).await;
    }

    fn hello(&self) -> Hello {
        Hello {
            session: Some(self.session.clone()),
            ..hello()
        }
    }
}
