//! The resource `touchmark://changes`: changes by others in the session's files
//! that were not reported to it yet. Also the notifications that there are such
//! changes.

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

/// The resource's URI.
pub(super) const URI: &str = "touchmark://changes";

/// How often to try to reconnect to the daemon.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

fn look(session: SessionId) -> ModifiedTake {
    ModifiedTake::new(session).peek(true).ack(Ack::Implicit)
}

/// Returns the changes that are not reported yet. They stay unreported.
///
/// # Errors
/// The daemon's error, or that no daemon could be reached.
pub(super) async fn untold(link: &Link) -> Result<Value, Error> {
    let mut untold = link.ask(Again::Yes, look).await?;
    if let Some(untold) = untold.as_object_mut() {
        // Without an acknowledgement the cursor is of no use.
        untold.remove("cursor");
    }
    Ok(untold)
}

/// The receiver of notifications, in either version of the protocol.
pub(super) enum Listener {
    /// A connection, since `resources/subscribe`.
    Connection(Peer<RoleServer>),
    /// A request, since `subscriptions/listen`.
    Request(SubscriptionSink),
}

impl Listener {
    /// Sends a notification. Returns `false` if the receiver is gone.
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

/// A subscription to events of the session's files.
pub(super) struct Watch {
    client: Client,
    events: Events,
}

impl Watch {
    /// Subscribes to events from now on.
    ///
    /// # Errors
    /// The daemon's error, or that no daemon could be reached.
    pub(super) async fn begin(link: &Link) -> Result<Self, Error> {
        // This creates the session, and starts a daemon if needed.
        link.ask(Again::Yes, |_| Ping {}).await?;
        Self::listen(link).await
    }

    async fn listen(link: &Link) -> Result<Self, Error> {
        let client = link.listen().await?;
        let kinds = vec!["version".into()];
        let wanted = Subscribe::new().session(link.id()).kinds(kinds);
        let (_, events) = client.subscribe(wanted).await?;
        Ok(Self { client, events })
    }

    /// Returns whether there are unreported changes. The request uses the
    /// connection of the events, so that earlier events arrive before the
    /// answer.
    async fn waits(&self, link: &Link) -> bool {
        let untold = self.client.call(look(link.id())).await;
        untold.is_ok_and(|untold| !untold.changes.is_empty())
    }

    /// Sends a notification after each change, across restarts of the daemon,
    /// until the receiver is gone.
    pub(super) async fn run(mut self, link: &Link, listener: &Listener) {
        loop {
            // Changes before the subscription make no event.
            if self.waits(link).await {
                // Events that have arrived by now are covered by this
                // notification.
                while self.events.try_recv().is_ok() {}
                if !listener.tell().await {
                    return;
                }
            }
            loop {
                let event = tokio::select! {
                    event = self.events.recv() => event,
                    // Another session now has other files.
                    () = link.changed() => None,
                };
                let Some(event) = event else { break };
                let mut news = is_news(link, &event);
                // One notification covers all events that have arrived by now.
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

/// Returns whether another author than the session wrote a version.
fn is_news(link: &Link, event: &Event) -> bool {
    match &event.happening {
        Happening::Version { version, .. } => !version.author.is(&link.id()),
        _ => false,
    }
}
