//! Resolves which session a request names (SES-1, SES-3).

use touchmark_proto::{Error, ErrorCode, ErrorData, Request, SessionId};

use crate::requests::table::{Naming, row, session_mut};
use crate::text::shown::show_text;
use crate::view::View;

/// The maximum number of sessions that an error names.
const CANDIDATES: usize = 5;

impl View<'_> {
    /// Replaces the session's name in a request with the session's id.
    pub(crate) fn name_session(&self, ask: &mut Request) -> Result<(), Error> {
        let naming = row(ask).naming;
        let Some(name) = session_mut(ask) else {
            return Ok(());
        };
        if self.state.sessions.contains_key(name) || naming == Naming::Introduces {
            return Ok(());
        }
        match (naming, self.labelled(name.as_str())) {
            (_, Some(session)) => *name = session,
            (Naming::Asks, None) => *name = self.beginning(name.as_str())?,
            (Naming::Knows, None) => return Err(self.unknown(name.as_str())),
            (Naming::Introduces | Naming::Opens | Naming::Names, None) => {}
        }
        Ok(())
    }

    /// Returns the session with a label, or `None`.
    fn labelled(&self, label: &str) -> Option<SessionId> {
        let (word, number) = crate::ledger::labels::parts(label)?;
        // Avoids a search of all sessions if no session can have this label.
        (number <= *self.state.labels.get(word)?).then_some(())?;
        let mut sessions = self.state.sessions.iter();
        let found = sessions.find(|(_, session)| session.label.as_deref() == Some(label));
        found.map(|(id, _)| id.clone())
    }

    /// Returns the only session whose id or label begins with `start`.
    fn beginning(&self, start: &str) -> Result<SessionId, Error> {
        let mut sessions = self.state.sessions.iter().filter(|(id, session)| {
            let label = session.label.as_deref();
            id.as_str().starts_with(start) || label.is_some_and(|label| label.starts_with(start))
        });
        match (sessions.next(), sessions.next()) {
            (Some((only, _)), None) => Ok(only.clone()),
            _ => Err(self.unknown(start)),
        }
    }

    /// Returns the error for a name that matches no session or several, with
    /// the most similar ones.
    fn unknown(&self, name: &str) -> Error {
        let near = |id: &SessionId| {
            let label = self.state.label(id).unwrap_or_default();
            common(id.as_str(), name).max(common(label, name))
        };
        let mut sessions: Vec<(usize, u64, &SessionId)> = self
            .state
            .sessions
            .iter()
            .map(|(id, session)| (near(id), session.last_active, id))
            .collect();
        let begin = sessions.iter().filter(|(near, ..)| *near == name.len());
        let several = begin.count() > 1;
        if several {
            sessions.retain(|(near, ..)| *near == name.len());
        }
        // The most similar sessions first; among equally similar ones, the most
        // recently active first.
        sessions.sort_by(|a, b| (b.0, b.1, a.2).cmp(&(a.0, a.1, b.2)));
        let candidates: Vec<String> = sessions
            .iter()
            .take(CANDIDATES)
            .map(|(.., id)| self.state.label_or_id(id).to_owned())
            .collect();
        let shown = show_text(name);
        let message = match several {
            true => format!("several sessions begin with {shown}"),
            false => format!("there is no session {shown}"),
        };
        let hint = match candidates.is_empty() {
            true => {
                "no session is known; one opens by `session/open`, or by what it records".into()
            }
            false => {
                let names: Vec<String> = candidates.iter().map(|name| show_text(name)).collect();
                format!("known: {}; `session/list` has all", names.join(", "))
            }
        };
        Error::new(ErrorCode::UnknownSession, message)
            .hint(hint)
            .with(ErrorData {
                session: Some(name.to_owned()),
                candidates: Some(candidates),
                ..ErrorData::default()
            })
    }
}

/// Returns the number of bytes that two names have in common at their
/// beginning.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}
