//! Which session a request means (SES-1, SES-3).

use touchmark_proto::{Error, ErrorCode, ErrorData, Request, SessionId};

use crate::handlers::show_text;
use crate::requests::{row, session_mut};
use crate::view::View;

/// Sessions named in an error at most.
const CANDIDATES: usize = 5;

/// How a request takes the name of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By its id alone, since an agent says its own here; opens it.
    Introduces,
    /// By its id or label. It records: an unknown name opens a session of
    /// exactly that id, so the beginning of another's is never taken for that
    /// other.
    Opens,
    /// By its id or label. It changes what is known of a session, which has
    /// to be known.
    Knows,
    /// By its id or label, or a beginning that no other has: it only asks.
    Asks,
    /// By its id or label. It ends something, chooses, or says nothing about
    /// the session: an unknown name means nothing.
    Names,
}

impl Naming {
    /// Whether a session opens that is not known.
    pub(crate) fn opens(self) -> bool {
        matches!(self, Self::Introduces | Self::Opens)
    }

    /// Another where that is so.
    pub(crate) fn or(self, other: Self, so: bool) -> Self {
        if so { other } else { self }
    }
}

impl View<'_> {
    /// Puts the id of the session that a request means in the place of its
    /// name.
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

    /// The session of that label.
    fn labelled(&self, label: &str) -> Option<SessionId> {
        let (word, number) = crate::ledger::labels::parts(label)?;
        // Without going through all sessions where nobody can have it.
        (number <= *self.state.labels.get(word)?).then_some(())?;
        let mut sessions = self.state.sessions.iter();
        let found = sessions.find(|(_, session)| session.label.as_deref() == Some(label));
        found.map(|(id, _)| id.clone())
    }

    /// The one session whose id or label begins so.
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

    /// No session is meant, or several are: with those that may have been.
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
        // The most alike first, of those the one that was active last.
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

/// How many bytes two names have in common at their beginning.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}
