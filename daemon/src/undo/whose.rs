//! Determines which versions an undo request selects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};

use touchmark_engine::Fact;
use touchmark_engine::recall::{command_name, edit_name};
use touchmark_proto::at::AtError;
use touchmark_proto::checkpoints::CheckpointList;
use touchmark_proto::history::FileContent;
use touchmark_proto::undo::Undo;
use touchmark_proto::{
    Author, AuthorKind, ClientPath, Error, ErrorCode, Evidence, RelPath, SessionId, Version,
};

use super::Undoer;
use crate::inside::Inside;
use crate::past::Lineage;

/// The versions that a request selects.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// The numbers of the selected versions' facts, by the name of the file in
    /// the log.
    pub(super) paths: BTreeMap<RelPath, BTreeSet<u64>>,
    /// The authors of the selected versions.
    pub(super) authors: Vec<Author>,
    /// Whether the request names one command or version, not an author.
    pub(super) by_name: bool,
    /// The versions whose lines were selected, by the numbers of the claims.
    claimed: BTreeMap<u64, u64>,
    /// The session of each selected version's author, by the version's number.
    sessions: BTreeMap<u64, Option<SessionId>>,
    /// What the request selects, in words for people.
    said: String,
    /// Whether text stays that is only likely the authors' (UNDO-7).
    spares_likely: bool,
    /// Whether lines stay that another author has decided about (UNDO-9).
    pub(super) spares_decided: bool,
}

/// The properties of a version by which a request can select it.
#[derive(Clone, Debug)]
struct Undoable {
    n: u64,
    path: RelPath,
    author: Author,
    edit: Option<String>,
    command: Option<String>,
    /// The version whose lines are meant; `None` for all that it changed.
    claimed: Option<u64>,
}

impl Chosen {
    /// Returns the versions that a request selects.
    ///
    /// # Errors
    /// `invalidParams`, `notFound`, `storage`.
    pub(super) async fn of(undoer: &Undoer, ask: &Undo) -> Result<Self, Error> {
        let says = ask.session.is_some()
            || ask.since.is_some()
            || ask.command.is_some()
            || ask.edit.is_some()
            || ask.path.is_some()
            || ask.last;
        if !says {
            return Err(
                Error::invalid("the request selects no changes to undo").hint(
                    "name a `session`, a `command`, an `edit`, a prompt as `since`, or a `path` and `at`; or set `last`",
                ),
            );
        }
        let all = rows(undoer).await?;
        let prompt = match (&ask.session, &ask.prompt, &ask.since) {
            (_, Some(_), Some(_)) => {
                return Err(Error::invalid("`prompt` and `since` exclude each other"));
            }
            (Some(session), Some(prompt), None) => Some(turn(undoer, session, prompt).await?),
            (None, Some(_), None) => return Err(Error::invalid("a prompt is of a `session`")),
            (Some(session), None, Some(since)) => {
                Some((turn(undoer, session, since).await?.0, u64::MAX))
            }
            (None, None, Some(since)) => {
                Some((checkpoint(&undoer.cx.inside, since).await?, u64::MAX))
            }
            (_, None, None) => None,
        };
        let version = match (&ask.path, &ask.at) {
            (Some(spoken), Some(at)) => {
                let path = undoer.place(spoken)?;
                Some((path, version(undoer, spoken, at).await?))
            }
            (None, None) => None,
            _ => {
                return Err(Error::invalid(
                    "a version has a `path` and is named by `at`",
                ));
            }
        };
        let below: Option<Vec<RelPath>> = ask
            .paths
            .as_ref()
            .map(|paths| paths.iter().map(|path| undoer.place(path)).collect())
            .transpose()?;
        let is_meant = |row: &Undoable| {
            let by_session = ask
                .session
                .as_ref()
                .is_none_or(|session| is_of(&row.author, session));
            let by_name =
                |own: &Option<String>, asked: &Option<String>| asked.is_none() || own == asked;
            // Without a version's name, a request selects only agents'
            // versions.
            let by_agent = version.is_some() || row.author.kind == AuthorKind::Agent;
            by_session
                && by_agent
                && by_name(&row.edit, &ask.edit)
                && by_name(&row.command, &ask.command)
                && prompt.is_none_or(|(from, to)| row.n > from && row.n <= to)
                && version
                    .as_ref()
                    .is_none_or(|(path, n)| *n == row.n && *path == row.path)
                && below
                    .as_ref()
                    .is_none_or(|below| below.iter().any(|path| is_below(&row.path, path)))
        };
        let mut meant: Vec<Undoable> = all.into_iter().filter(is_meant).collect();
        if ask.last {
            meant = last(meant);
        }
        if meant.is_empty() {
            return Err(Error::new(
                ErrorCode::NotFound,
                "no change is selected: there was none, or its history is no longer stored",
            )
            .hint("see what was changed with `modified/list`, and by whom with `file/history`"));
        }
        let mut chosen = Self {
            said: said(ask),
            // Who names one version has looked at it.
            spares_likely: !ask.likely && ask.at.is_none(),
            spares_decided: !ask.decided && ask.at.is_none(),
            by_name: ask.command.is_some() || ask.at.is_some(),
            ..Self::default()
        };
        for row in meant {
            chosen
                .claimed
                .extend(row.claimed.map(|version| (row.n, version)));
            chosen.sessions.insert(row.n, row.author.session.clone());
            if !chosen.authors.contains(&row.author) {
                chosen.authors.push(row.author);
            }
            chosen.paths.entry(row.path).or_default().insert(row.n);
        }
        Ok(chosen)
    }

    /// Returns whether a version is selected, and is still its author's. The
    /// author may have been corrected since the selection, for example by an
    /// editor's report (ATTR-2).
    pub(super) fn has(&self, version: &Version) -> bool {
        let author = self.sessions.get(&version.clock.n);
        author.is_some_and(|session| *session == version.author.session)
    }

    /// Returns whether the version of this number was selected.
    pub(super) fn has_number(&self, n: u64) -> bool {
        self.sessions.contains_key(&n)
    }

    /// Returns the selected versions, and those whose lines were selected, each
    /// with its name.
    pub(super) fn versions(&self) -> impl Iterator<Item = (&RelPath, u64)> {
        let all = self.paths.iter();
        all.flat_map(|(path, own)| {
            let version = |n| self.claimed.get(n).unwrap_or(n);
            own.iter().map(move |n| (path, *version(n)))
        })
    }

    /// Returns the names that the files of the selected versions have now. A file
    /// that another one has replaced is found by its last name, unless that one
    /// has moved on.
    pub(super) fn names(&self, lineage: &Lineage) -> BTreeSet<RelPath> {
        let places = self.versions().map(|(path, n)| lineage.place(path, n));
        places
            .filter(|place| place.over.is_none() || !lineage.has_left(&place.name))
            .map(|place| place.name)
            .collect()
    }

    /// Returns the sessions that wrote those of these versions that are
    /// selected.
    pub(super) fn sessions_of(
        &self,
        versions: impl IntoIterator<Item = u64>,
    ) -> BTreeSet<Option<SessionId>> {
        let found = versions.into_iter().filter_map(|n| self.sessions.get(&n));
        found.cloned().collect()
    }

    /// Returns whether text stays that appeared in a version, since its
    /// author is only likely (UNDO-7).
    pub(super) fn spares(&self, version: &Version) -> bool {
        self.spares_likely && version.is_likely()
    }

    /// Returns what is undone, in words for people.
    pub(super) fn what(&self) -> String {
        self.said.clone()
    }
}

fn said(ask: &Undo) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut add = |word: &str, value: Option<&str>| {
        said.extend(value.map(|value| format!("{word} {value}").trim().to_owned()));
    };
    add("session", ask.session.as_ref().map(SessionId::as_str));
    add("prompt", ask.prompt.as_deref());
    add("since", ask.since.as_deref());
    add("command", ask.command.as_deref());
    add("edit", ask.edit.as_deref());
    add("version", ask.at.as_deref());
    add("the last change", ask.last.then_some(""));
    said.join(", ")
}

/// Returns whether the author is this session or one of its sub-agents, whose
/// ids begin with the session's id and a `/` (HOOK).
pub(crate) fn is_of(author: &Author, session: &SessionId) -> bool {
    let Some(own) = &author.session else {
        return false;
    };
    let below = own.as_str().strip_prefix(session.as_str());
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a path is the same as `directory` or is below it.
pub(crate) fn is_below(path: &RelPath, directory: &RelPath) -> bool {
    path == directory || path.below(directory).is_some()
}

/// Returns the versions of the newest edit or command among `rows`. If the
/// newest version belongs to neither, returns that version alone.
fn last(mut rows: Vec<Undoable>) -> Vec<Undoable> {
    let Some(newest) = rows.iter().max_by_key(|row| row.n).cloned() else {
        return rows;
    };
    rows.retain(|row| match (&newest.edit, &newest.command) {
        (Some(_), _) => row.edit == newest.edit,
        (None, Some(_)) => row.command == newest.command,
        (None, None) => row.n == newest.n,
    });
    rows
}

/// Returns the numbers of the facts between which a prompt's turn is. The first
/// number is excluded, the second included.
async fn turn(undoer: &Undoer, session: &SessionId, prompt: &str) -> Result<(u64, u64), Error> {
    let mut rows = Vec::new();
    let mut cursor = None;
    loop {
        let ask = CheckpointList {
            cursor,
            ..CheckpointList::new(session.clone())
        };
        let page = undoer.cx.inside.ask(ask).await?;
        rows.extend(page.checkpoints);
        cursor = page.more;
        if cursor.is_none() {
            break;
        }
    }
    let found = match prompt {
        "last" => rows.len().checked_sub(1),
        _ => rows
            .iter()
            .rposition(|row| row.checkpoint == prompt || row.message.as_deref() == Some(prompt)),
    };
    let Some(at) = found else {
        let name = touchmark_proto::quoting::quoted(prompt, 80);
        return Err(Error::new(
            ErrorCode::NotFound,
            format!("the session has no prompt {name}"),
        )
        .hint("`checkpoint/list` has them"));
    };
    let to = rows.get(at + 1).map_or(u64::MAX, |next| next.clock.n);
    Ok((rows[at].clock.n, to))
}

/// Returns the number of the fact that created a checkpoint of any session.
async fn checkpoint(inside: &Inside, name: &str) -> Result<u64, Error> {
    let number = name
        .strip_prefix('k')
        .and_then(|digits| digits.parse().ok());
    let number = number.ok_or_else(|| Error::invalid("`since` is a checkpoint, such as `k3`"))?;
    crate::history::checkpoint(inside, None, number).await
}

/// Returns the number of the version that `at` names.
async fn version(undoer: &Undoer, path: &ClientPath, at: &str) -> Result<u64, Error> {
    if let Ok(n) = at.parse() {
        return Ok(n);
    }
    let content = FileContent {
        path: path.clone(),
        at: Some(
            at.parse()
                .map_err(|error: AtError| Error::invalid(error.to_string()))?,
        ),
    };
    let found = undoer.cx.inside.ask(content).await?;
    found.clock.map(|clock| clock.n).ok_or_else(|| {
        Error::new(ErrorCode::NotFound, "that version is not on record")
            .hint("`touchmark log PATH` (`file/log`) lists the clock of each version")
    })
}

/// Returns all versions in the log, each with its newest amendment applied.
async fn rows(undoer: &Undoer) -> Result<Vec<Undoable>, Error> {
    let log = Arc::clone(&undoer.log);
    let read = tokio::task::spawn_blocking(move || {
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = log.versions_after(0)?;
        records.extend(log.claims(None)?);
        Ok::<_, Error>(records)
    });
    let records = read
        .await
        .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))??;
    let mut rows: Vec<Undoable> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    for record in records {
        let fact = match record.fact {
            Fact::Version(fact) => fact,
            // Lines of a session's that the user pointed out (ATTR-18).
            Fact::Claimed {
                path,
                version,
                session,
                ..
            } => {
                rows.push(Undoable {
                    n: record.n,
                    path,
                    author: session.map_or(Author::USER, Author::agent),
                    edit: None,
                    command: None,
                    claimed: Some(version),
                });
                continue;
            }
            _ => continue,
        };
        let claims = matches!(fact.evidence, Evidence::Declared | Evidence::Marked);
        let row = Undoable {
            n: fact.amends.unwrap_or(record.n),
            path: fact.path,
            author: fact.author,
            edit: fact.edit.filter(|_| claims).map(edit_name),
            command: fact.command.map(command_name),
            claimed: None,
        };
        match fact.amends.and_then(|of| places.get(&of)) {
            Some(place) => rows[*place] = row,
            None if fact.amends.is_none() => {
                places.insert(row.n, rows.len());
                rows.push(row);
            }
            // The version that this fact amends is no longer in the log.
            None => {}
        }
    }
    Ok(rows)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use touchmark_proto::Hash;

    use super::*;
    use crate::history::unnamed;

    /// Selected as what a command had written. An editor's report comes before
    /// the plan is made (ATTR-2).
    #[test]
    fn undo7_a_version_that_turns_out_to_be_the_users_is_not_selected() {
        let session = SessionId::new("agent").unwrap();
        let path = RelPath::new(b"f").unwrap();
        let mut version = unnamed(path, Hash::of(b"text"), b"text", 0);
        version.clock.n = 7;
        version.author = Author::agent(session.clone());
        let chosen = Chosen {
            sessions: BTreeMap::from([(7, Some(session))]),
            ..Chosen::default()
        };
        assert!(chosen.has(&version));
        version.author = Author::USER;
        assert!(!chosen.has(&version));
    }
}
