//! Agents' changes that wait for review, as code actions: kept or undone one by
//! one. Text that may be the user's is undone only after they have said that it
//! is not theirs (UNDO-7).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use touchmark_client::Error;
use touchmark_client::aio::Client;
use touchmark_client::proto::review::{
    ReviewHunk, ReviewKeep, ReviewList, ReviewNamed, ReviewUndo,
};
use touchmark_client::proto::{ClientPath, ErrorCode, RelPath, SessionId};

use super::document::Shown;
use super::messages::Range;
use super::words::{change, stays};
use crate::likely::{claim, is_doubtful};
use crate::text::{MAX_NAME, escaped, path};

/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an undo may take: that of a large file takes seconds.
const UNDO: Duration = Duration::from_secs(120);

/// The kind of the code actions.
const KIND: &str = "quickfix";

/// What a code action does to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// The change stays, and leaves the queue.
    Keep,
    /// The change goes.
    Undo,
    /// The user says that they have made it.
    Mine,
    /// The user says that the agent has made it, and it goes.
    UndoTheirs,
}

impl Deed {
    const ALL: [Self; 4] = [Self::Keep, Self::Undo, Self::Mine, Self::UndoTheirs];

    /// Returns the command's name in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Keep => "touchmark.keep",
            Self::Undo => "touchmark.undo",
            Self::Mine => "touchmark.mine",
            Self::UndoTheirs => "touchmark.undoTheirs",
        }
    }

    /// Returns the deed of a command; `None` if there is no such command.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|deed| deed.name() == name)
    }

    /// Returns the names of all commands.
    pub(super) fn names() -> [&'static str; 4] {
        Self::ALL.map(Self::name)
    }

    /// Returns whether it writes to the file.
    pub(super) fn is_undo(self) -> bool {
        matches!(self, Self::Undo | Self::UndoTheirs)
    }

    fn title(self, hunk: &ReviewHunk) -> String {
        let change = change(hunk);
        match self {
            Self::Keep => format!("Keep {change}"),
            Self::Undo => format!("Undo {change}"),
            Self::Mine => format!("Mine: {change}"),
            Self::UndoTheirs => format!("Not mine: undo {change}"),
        }
    }
}

/// The argument of the commands.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Chosen {
    /// The file, as the editor named it.
    pub(super) uri: String,
    /// The change's name in the queue.
    id: String,
}

/// Returns whether code actions of this kind are wanted.
pub(super) fn is_wanted(only: Option<&[String]>) -> bool {
    let fits = |kind: &String| kind.is_empty() || kind == KIND;
    only.is_none_or(|only| only.iter().any(fits))
}

/// Returns the code actions for the changes in a part of the text, which must be
/// shown as they are on disk.
pub(super) async fn actions(
    client: Client,
    name: RelPath,
    uri: String,
    shown: Shown,
    range: Range,
) -> Value {
    let mut actions = Vec::new();
    for hunk in queue(&client, &name).await.unwrap_or_default() {
        let is_here = shown.lines_of(&hunk).is_some_and(|lines| {
            // Counted from 1.
            lines.start <= range.end.line.saturating_add(1) && lines.end > range.start.line
        });
        if hunk.deleted == Some(true) || !is_here {
            continue;
        }
        let deeds: &[Deed] = match (is_doubtful(&hunk), agent(&hunk)) {
            (false, _) => &[Deed::Keep, Deed::Undo],
            (true, Some(_)) => &[Deed::Keep, Deed::Mine, Deed::UndoTheirs],
            (true, None) => &[Deed::Keep, Deed::Mine],
        };
        for deed in deeds {
            let title = deed.title(&hunk);
            let chosen = Chosen {
                uri: uri.clone(),
                id: hunk.id.clone(),
            };
            let command =
                json!({"title": title, "command": deed.name(), "arguments": [json!(chosen)]});
            actions.push(json!({"title": title, "kind": KIND, "command": command}));
        }
    }
    actions.into()
}

/// Carries out a command. Returns what to tell the user, and whether that is a
/// warning.
pub(super) async fn execute(
    client: Client,
    deed: Deed,
    name: RelPath,
    chosen: Chosen,
) -> (String, bool) {
    match done(&client, deed, &name, &chosen).await {
        Ok(said) => (said, false),
        Err(Refused::Stays(said)) => (said, true),
        Err(Refused::Error(error)) if error.daemon().is_some_and(is_gone) => (gone(&name), true),
        Err(Refused::Error(error)) => {
            let why = escaped(&error.to_string(), MAX_NAME);
            (format!("{}: {why}", path(&name)), true)
        }
    }
}

/// Why a command has not done all that it says.
enum Refused {
    Error(Error),
    /// What stays, and why.
    Stays(String),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

async fn done(
    client: &Client,
    deed: Deed,
    name: &RelPath,
    chosen: &Chosen,
) -> Result<String, Refused> {
    let queue = queue(client, name).await?;
    let hunk = queue.iter().find(|hunk| hunk.id == chosen.id);
    let hunk = hunk.ok_or_else(|| Refused::Stays(gone(name)))?;
    let what = format!("{}: {}", path(name), change(hunk));
    let hunks = vec![ReviewNamed::new(&hunk.path, hunk.id.clone())];
    match deed {
        Deed::Keep => {
            client.call_within(ReviewKeep::new(hunks), UNDO).await?;
            return Ok(format!("kept {what}"));
        }
        Deed::Mine => {
            client.call(claim(hunk, &[hunk], &queue, None)).await?;
            return Ok(format!("yours: {what}"));
        }
        Deed::Undo if is_doubtful(hunk) => {
            return Err(Refused::Stays(format!("{what} may be yours, so it stays")));
        }
        Deed::UndoTheirs if is_doubtful(hunk) => {
            let whose = agent(hunk).ok_or_else(|| Refused::Stays(gone(name)))?;
            client
                .call(claim(hunk, &[hunk], &queue, Some(whose)))
                .await?;
        }
        Deed::Undo | Deed::UndoTheirs => {}
    }
    let undone = client.call_within(ReviewUndo::new(hunks), UNDO).await?;
    match stays(&undone) {
        Some(stays) => Err(Refused::Stays(stays)),
        None => Ok(format!("undone: {what} (back: touchmark redo)")),
    }
}

/// Returns the changes of a file that wait for review.
async fn queue(client: &Client, name: &RelPath) -> Result<Vec<ReviewHunk>, Error> {
    let ask = ReviewList::new().paths(vec![ClientPath::from(name)]);
    Ok(client.call_within(ask, PATIENCE).await?.hunks)
}

/// Returns the agent that may have made a change.
fn agent(hunk: &ReviewHunk) -> Option<SessionId> {
    let mut sessions = hunk.authors.iter().filter_map(|one| one.session.clone());
    sessions.next()
}

fn is_gone(error: &touchmark_client::proto::Error) -> bool {
    error.code == ErrorCode::NotFound
}

fn gone(name: &RelPath) -> String {
    let name = path(name);
    format!("conflict in {name}: the change is no longer as it was listed, nothing was done")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_on_save_are_none_of_these() {
        let only = |kinds: &[&str]| {
            let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            is_wanted(Some(&kinds))
        };
        assert!(is_wanted(None) && only(&["quickfix"]) && only(&["refactor", ""]));
        assert!(!only(&[
            "source.fixAll",
            "source.organizeImports",
            "refactor"
        ]));
    }

    #[test]
    fn each_command_has_its_name() {
        for deed in Deed::ALL {
            assert_eq!(Deed::of(deed.name()), Some(deed));
        }
        assert_eq!(Deed::of("touchmark.other"), None);
    }
}
