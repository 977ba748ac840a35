//! What the state has of a session when a request arrives.

use touchmark_engine::{State, recall};
use touchmark_proto::SessionId;

/// What the state has of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The session; `None` after the end of the loop.
    pub(crate) session: Option<SessionId>,
    /// Whether the session is known.
    pub(crate) known: bool,
    /// Whether the session is open.
    pub(crate) open: bool,
    /// The ids of calls whose edits are open.
    pub(crate) edits: Vec<String>,
    /// The command windows that are still open: the id of the call, and the id
    /// of the window.
    pub(crate) windows: Vec<(String, String)>,
    /// The number of checkpoints that are stored for the session.
    pub(crate) checkpoints: usize,
    /// The oldest checkpoint; `None` if there is none.
    pub(crate) oldest_checkpoint: Option<String>,
    /// The message of the newest checkpoint; `None` if there is none.
    pub(crate) last_message: Option<String>,
}

impl Standing {
    /// Returns what the state has of a session.
    pub(crate) fn of(state: &State, session: &SessionId) -> Self {
        let Some(known) = state.sessions.get(session) else {
            return Self {
                session: Some(session.clone()),
                ..Self::default()
            };
        };
        let checkpoints = &known.memory.checkpoints;
        let edits = state.edits.values();
        let commands = state.commands.values();
        Self {
            session: Some(session.clone()),
            known: true,
            open: known.open,
            edits: edits
                .filter(|edit| edit.fact.session == *session)
                .filter_map(|edit| edit.fact.call.clone())
                .collect(),
            windows: commands
                .filter(|open| open.fact.session == *session)
                .filter_map(|open| {
                    let name = recall::command_name(open.fact.command);
                    Some((open.fact.call.clone()?, name))
                })
                .collect(),
            checkpoints: checkpoints.len(),
            oldest_checkpoint: checkpoints
                .first_key_value()
                .map(|(number, _)| recall::checkpoint_name(*number)),
            last_message: checkpoints
                .last_key_value()
                .and_then(|(_, newest)| newest.message.clone()),
        }
    }
}
