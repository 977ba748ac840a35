//! What records say about sessions.

use std::collections::HashMap;

use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use touchmark_engine::session_memory::Note;
use touchmark_engine::{Fact, State};
use touchmark_proto::SessionId;

use crate::event::Event;
use crate::inside::look_from;

/// The most sessions that are remembered between two batches.
const MOST: usize = 256;

/// How many sessions above a sub-agent's are looked at for its conversation.
const MOST_ABOVE: usize = 8;

/// What records say about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    /// The conversation to which the session belongs, for a sub-agent; `None`
    /// if it is one of its own.
    pub(crate) conversation: Option<SessionId>,
    /// The name of the agent's program.
    pub(crate) agent: Option<String>,
    /// The version of the agent's program.
    pub(crate) version: Option<String>,
    /// The model that it uses.
    pub(crate) model: Option<String>,
    /// Its short name.
    pub(crate) label: Option<String>,
}

impl Described {
    /// Returns what the state has of a session; `None` if it has none.
    pub(crate) fn of(state: &State, id: &SessionId) -> Option<Self> {
        let session = state.sessions.get(id)?;
        let mut conversation = None;
        let mut above = session.parent.as_ref();
        for _ in 0..MOST_ABOVE {
            let Some(parent) = above else { break };
            conversation = Some(parent.clone());
            above = state.sessions.get(parent).and_then(|s| s.parent.as_ref());
        }
        let agent = session.agent.as_ref();
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Some(Self {
            conversation,
            agent: agent.and_then(|agent| text(&agent.name)),
            version: agent.and_then(|agent| text(&agent.version)),
            model: session
                .memory
                .models
                .last()
                .and_then(|use_| text(&use_.model)),
            label: session.label.clone(),
        })
    }
}

/// Returns whether a fact says something about a session that records say.
pub(super) fn concerns(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::SessionOpened { .. }
            | Fact::Labelled { .. }
            | Fact::SessionForgotten { .. }
            | Fact::Noted {
                note: Note::ModelRecorded { .. },
                ..
            }
    )
}

/// The sessions of the newest records. They follow the facts, so that a record
/// names the model that the session used then.
pub(super) struct Sessions {
    events: UnboundedSender<Event>,
    known: HashMap<SessionId, Option<Described>>,
}

impl Sessions {
    pub(super) fn new(events: UnboundedSender<Event>) -> Self {
        Self {
            events,
            known: HashMap::new(),
        }
    }

    /// Forgets sessions, if there are many.
    pub(super) fn bound(&mut self) {
        if self.known.len() > MOST {
            self.known = HashMap::new();
        }
    }

    /// Takes what a fact says about its session.
    pub(super) fn follow(&mut self, fact: &Fact) {
        match fact {
            // The state has merged it with what was known before.
            Fact::SessionOpened { session, .. } | Fact::Labelled { session, .. } => {
                self.known.remove(session);
            }
            Fact::SessionForgotten { session } => {
                self.known.insert(session.clone(), None);
            }
            Fact::Noted {
                session,
                note: Note::ModelRecorded { model, .. },
            } => {
                if let Some(Some(known)) = self.known.get_mut(session) {
                    known.model = Some(model.clone()).filter(|model| !model.is_empty());
                }
            }
            _ => {}
        }
    }

    /// Returns what is known of a session. Asks the loop and waits for it, so
    /// it must not be called on the loop's thread.
    pub(super) fn get(&mut self, session: &SessionId) -> Option<&Described> {
        if !self.known.contains_key(session) {
            let id = session.clone();
            let described = look_from(&self.events, move |state| Described::of(state, &id));
            let described = Handle::current().block_on(described);
            // Without the loop, the record goes without it.
            self.known.insert(session.clone(), described.flatten());
        }
        self.known.get(session)?.as_ref()
    }
}
