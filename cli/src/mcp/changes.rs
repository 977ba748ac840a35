//! The resource `touchmark://changes`: what others changed in the session's
//! files and it was not told yet; and who is told that there is something.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use serde_json::Value;
use touchmark_client::Error;
use touchmark_client::aio::{Client, Events};
use touchmark_client::proto::SessionId;
use touchmark_client::proto::changes::{Ack, ModifiedTake};
use touchmark_client::proto::daemon::{Ping, Subscribe};
use touchmark_client::proto::events::{Event, Happening};

use super::link::{Again, Link};

/// The resource's name.
pub(super) const URI: &str = "touchmark://changes";

/// How often to look for a daemon that is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

fn look(session: SessionId) -> ModifiedTake {
    ModifiedTake {
        session,
        peek: true,
        ack: Ack::Implicit,
        paths: None,
        sync: None,
        verify: None,
        limit: None,
    }
}

/// What waits to be told. A look: it stays untold.
///
/// # Errors
/// The daemon's own, or that none could be had.
pub(super) async fn untold(link: &Link) -> Result<Value, Error> {
    let mut untold = link.ask(Again::Yes, look).await?;
    if let Some(untold) = untold.as_object_mut() {
        // Whoever looks has nothing to acknowledge.
        untold.remove("cursor");
    }
    Ok(untold)
}

/// Who is told, in either era.
pub(super) enum Listener {
    /// Since `resources/subscribe`.
    Connection(Peer<RoleServer>),
    /// Since `subscriptions/listen`.
    Request(SubscriptionSink),
}

impl Listener {
    /// Says that there is something; `false` if nobody hears it.
    async fn tell(&self) -> bool {
        match self {
            Self::Connection(peer) => {
                let updated = ResourceUpdatedNotificationParam::new(URI);
                peer.notify_resource_updated(updated).await.is_ok()
            }
            Self::Request(sink) => sink.notify_resource_updated(URI).await.is_ok(),
        }
    }
}

/// A subscription to what happens to the session's files.
pub(super) struct Watch {
    client: Client,
    events: Events,
}

impl Watch {
    /// Begins to listen: what happens from now on is told.
    ///
    /// # Errors
    /// The daemon's own, or that none could be had.
    pub(super) async fn begin(link: &Link) -> Result<Self, Error> {
        // The session must exist, and with it a daemon.
        link.ask(Again::Yes, |_| Ping {}).await?;
        Self::listen(link).await
    }

    async fn listen(link: &Link) -> Result<Self, Error> {
        let client = link.listen().await?;
        let wanted = Subscribe {
            session: Some(link.id()),
            kinds: vec!["version".into()],
            since: None,
        };
        let (_, events) = client.subscribe(wanted).await?;
        Ok(Self { client, events })
    }

    /// Whether something waits to be told. Asked on the connection of the
    /// events, which come before the answer then.
    async fn waits(&self, link: &Link) -> bool {
        let untold = self.client.call(look(link.id())).await;
        untold.is_ok_and(|untold| !untold.changes.is_empty())
    }

    /// Tells each time that something changed, across restarts of the daemon,
    /// until nobody listens.
    pub(super) async fn run(mut self, link: &Link, listener: &Listener) {
        loop {
            // What happened before there was a subscription makes no event.
            if self.waits(link).await {
                // Those that came by now speak of what is told here.
                while self.events.try_recv().is_ok() {}
                if !listener.tell().await {
                    return;
                }
            }
            loop {
                let event = tokio::select! {
                    event = self.events.recv() => event,
                    // Its files are others.
                    () = link.changed() => None,
                };
                let Some(event) = event else { break };
                let mut news = is_news(link, &event);
                // One word for what has come by now.
                while let Ok(event) = self.events.try_recv() {
                    news |= is_news(link, &event);
                }
                if news && !listener.tell().await {
                    return;
                }
            }
            drop(self.client);
            self = loop {
                link.reconnected(LOOK_AGAIN).await;
                if let Ok(again) = Self::listen(link).await {
                    break again;
                }
            };
        }
    }
}

/// Whether somebody else wrote.
fn is_news(link: &Link, event: &Event) -> bool {
    match &event.happening {
        Happening::Version { version, .. } => !version.author.is(&link.id()),
        _ => false,
    }
}
