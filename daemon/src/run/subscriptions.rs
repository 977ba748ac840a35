//! Subscriptions: which events each subscriber receives.

use std::collections::BTreeMap;

use touchmark_engine::State;
use touchmark_proto::daemon::Subscribe;
use touchmark_proto::events::Happening;
use touchmark_proto::{ConnectionId, Error, ErrorCode, ErrorData, SessionId};

/// The most subscriptions of one connection.
const MOST: usize = 64;

/// One subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscription {
    /// The connection that receives its events.
    pub(super) connection: ConnectionId,
    session: Option<SessionId>,
    kinds: Vec<String>,
}

impl Subscription {
    /// Creates a subscription.
    ///
    /// # Errors
    /// `invalidParams` for an unknown kind of event.
    pub(super) fn new(connection: ConnectionId, ask: &Subscribe) -> Result<Self, Error> {
        if let Some(unknown) = ask
            .kinds
            .iter()
            .find(|kind| !Happening::KINDS.contains(&kind.as_str()))
        {
            let known = Happening::KINDS.join(", ");
            return Err(Error::invalid(format!(
                "there are no events of type {:.40?}",
                unknown.as_str()
            ))
            .hint(format!("name some of {known}")));
        }
        Ok(Self {
            connection,
            session: ask.session.clone(),
            kinds: ask.kinds.clone(),
        })
    }

    /// Returns whether the subscription receives this event.
    pub(super) fn wants(&self, happening: &Happening, state: &State) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == happening.kind());
        kind && self
            .session
            .as_ref()
            .is_none_or(|session| concerns(session, happening, state))
    }
}

/// Returns whether an event concerns a session. A version concerns the session
/// that wrote it and those that track its file. Reduced coverage concerns all
/// sessions.
fn concerns(session: &SessionId, happening: &Happening, state: &State) -> bool {
    match happening {
        Happening::Version { version, .. } => {
            version.author.is(session)
                || version.candidates.iter().flatten().any(|c| c == session)
                || state.knowledge(session, &version.path).is_some()
        }
        Happening::Stale { session: of, .. }
        | Happening::Read { session: of, .. }
        | Happening::Edit { session: of, .. }
        | Happening::Session { session: of, .. } => of == session,
        Happening::Command { command } => command.session == *session,
        Happening::Undone { session: of, .. } => of.as_ref() == Some(session),
        Happening::Recovered { .. } | Happening::Degraded { .. } | Happening::Overflow {} => true,
    }
}

/// All subscriptions, by number.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    by_number: BTreeMap<u64, Subscription>,
    last: u64,
}

impl Subscriptions {
    /// Returns the number of a new subscription.
    ///
    /// # Errors
    /// `tooLarge` if the connection has too many.
    pub(super) fn number(&mut self, connection: ConnectionId) -> Result<u64, Error> {
        if self.count(connection) >= MOST {
            return Err(Error::new(
                ErrorCode::TooLarge,
                format!("a connection has at most {MOST} subscriptions"),
            )
            .with(ErrorData {
                limit: Some(MOST as u64),
                ..ErrorData::default()
            })
            .hint("unsubscribe first"));
        }
        self.last += 1;
        Ok(self.last)
    }

    /// Adds a subscription, which receives events from now on.
    pub(super) fn insert(&mut self, number: u64, subscription: Subscription) {
        self.by_number.insert(number, subscription);
    }

    /// Ends a subscription of a connection. Returns false if the connection has
    /// none of that number.
    pub(super) fn remove(&mut self, number: u64, connection: ConnectionId) -> bool {
        match self.by_number.get(&number) {
            Some(subscription) if subscription.connection == connection => {
                self.by_number.remove(&number);
                true
            }
            _ => false,
        }
    }

    /// Ends all subscriptions of a connection.
    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        self.by_number
            .retain(|_, subscription| subscription.connection != connection);
    }

    /// Returns the number of all subscriptions.
    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns the number of a connection's subscriptions.
    pub(super) fn count(&self, connection: ConnectionId) -> usize {
        self.by_number
            .values()
            .filter(|subscription| subscription.connection == connection)
            .count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Returns the subscriptions that receive this event, with their
    /// connections.
    pub(super) fn wanting<'a>(
        &'a self,
        happening: &'a Happening,
        state: &'a State,
    ) -> impl Iterator<Item = (u64, ConnectionId)> + 'a {
        self.by_number
            .iter()
            .filter(|(_, subscription)| subscription.wants(happening, state))
            .map(|(number, subscription)| (*number, subscription.connection))
    }
}
