//! The user's comments on agents' changes, and which sessions have received
//! them (REV-5). They are stored in a file next to the store.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use touchmark_proto::quoting::{escaped, quoted};
use touchmark_proto::{Error, ErrorCode, ErrorData, LineRange, Millis, RelPath, SessionId};

use crate::context::not_stored;
use crate::system::open::replace_private;

/// The maximum number of comments that are stored.
const MOST: usize = 200;

/// The maximum length of the comments in one answer, in bytes. Agents cut off or
/// drop longer texts.
const ANSWER: usize = 4_000;

/// The maximum length of a name, in characters.
const NAME: usize = 200;

/// The maximum number of lines of a change that a comment shows, and the maximum
/// length of such a line in characters.
const LINES: usize = 8;
const LINE: usize = 160;

/// A session that receives a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receiver {
    pub(crate) session: SessionId,
    /// Whether a sub-agent of the session made the change.
    pub(crate) is_by_child: bool,
    /// When the session received the comment; `None` if it has not.
    pub(crate) told: Option<Millis>,
}

/// A comment as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredComment {
    /// The number, by which an acknowledgement names it.
    pub(crate) number: u64,
    pub(crate) path: RelPath,
    /// The change's id.
    pub(crate) id: String,
    /// The lines of the change; `None` for a change that has no lines.
    pub(crate) lines: Option<LineRange>,
    pub(crate) text: String,
    pub(crate) time: Millis,
    /// The first lines of the change, as in a diff. Empty if the contents were
    /// forgotten, or if the change has no lines.
    pub(crate) diff: String,
    pub(crate) to: Vec<Receiver>,
}

impl StoredComment {
    fn is_told(&self) -> bool {
        self.to.iter().any(|to| to.told.is_some())
    }

    fn is_on(&self, path: &RelPath, id: &str) -> bool {
        self.path == *path && self.id == id
    }

    /// Returns what a session receives.
    fn sentence(&self, to: &Receiver) -> String {
        let whose = match to.is_by_child {
            true => "your sub-agent's change",
            false => "your change",
        };
        let name = quoted(&self.path.to_string_lossy(), NAME);
        let lines = match self.lines {
            Some(LineRange { start, end }) if start == end => format!(", line {start}"),
            Some(LineRange { start, end }) => format!(", lines {start}-{end}"),
            None => String::new(),
        };
        let mut text = format!("The user comments on {whose} of {name}{lines}:");
        for line in self.text.lines() {
            let _infallible = write!(text, "\n> {}", escaped(line, ANSWER));
        }
        if !self.diff.is_empty() {
            text += "\nThe change, when the comment was written:\n";
            text += &self.diff;
        }
        text + "\nAnswer the user's comment."
    }
}

/// Returns the first lines of a change as in a diff.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let removed = before.lines().map(|line| ('-', line));
    let lines: Vec<(char, &str)> = removed
        .chain(after.lines().map(|line| ('+', line)))
        .collect();
    let shown = lines
        .iter()
        .take(LINES)
        .map(|(sign, line)| format!("{sign} {}", escaped(line, LINE)));
    let mut shown: Vec<String> = shown.collect();
    if let more @ 1.. = lines.len().saturating_sub(LINES) {
        shown.push(format!("(and {more} more)"));
    }
    shown.join("\n")
}

/// All comments.
#[derive(Debug, Default)]
pub(crate) struct Comments {
    /// Where they are stored; `None` in tests.
    file: Option<PathBuf>,
    durable: bool,
    /// The oldest first.
    all: Mutex<Vec<StoredComment>>,
}

impl Comments {
    /// Opens the comments of the workspace whose state directory is `state`. If
    /// they cannot be read, there are none.
    pub(crate) fn open(state: &Path, durable: bool) -> Self {
        let file = state.join("comments.json");
        let read = || serde_json::from_slice(&fs::read(&file).ok()?).ok();
        Self {
            all: Mutex::new(read().unwrap_or_default()),
            file: Some(file),
            durable,
        }
    }

    /// Returns all comments, the oldest first.
    pub(crate) fn all(&self) -> Vec<StoredComment> {
        self.list().clone()
    }

    /// Stores a comment, with a number of its own. It replaces one on the same
    /// change that no session has received.
    ///
    /// # Errors
    /// `tooLarge` if too many comments wait, `storage`.
    pub(crate) fn put(&self, mut comment: StoredComment) -> Result<(), Error> {
        {
            let mut all = self.list();
            let last = all.last().map_or(0, |last| last.number);
            comment.number = last + 1;
            all.retain(|known| known.is_told() || !known.is_on(&comment.path, &comment.id));
            if all.len() >= MOST {
                let is_done = |known: &StoredComment| known.to.iter().all(|to| to.told.is_some());
                match all.iter().position(is_done) {
                    Some(oldest) => drop(all.remove(oldest)),
                    None => {
                        let said = format!("{MOST} comments wait for their sessions");
                        return Err(Error::new(ErrorCode::TooLarge, said)
                            .with(ErrorData {
                                limit: Some(MOST as u64),
                                ..ErrorData::default()
                            })
                            .hint("withdraw some, with empty texts"));
                    }
                }
            }
            all.push(comment);
        }
        self.write()
    }

    /// Withdraws the comment on a change that no session has received. Returns
    /// whether there was one.
    ///
    /// # Errors
    /// `storage`.
    pub(crate) fn withdraw(&self, path: &RelPath, id: &str) -> Result<bool, Error> {
        let before = self.list().len();
        self.list()
            .retain(|known| known.is_told() || !known.is_on(path, id));
        let is_any = self.list().len() < before;
        if is_any {
            self.write()?;
        }
        Ok(is_any)
    }

    /// Returns the comments that a session has not received: the number of each,
    /// and its text for the agent.
    pub(super) fn waiting(&self, session: &SessionId) -> Vec<(u64, String)> {
        let mut room = ANSWER;
        let mut waiting = Vec::new();
        for comment in self.list().iter() {
            let mut own = comment.to.iter();
            let own = own.find(|to| to.session == *session && to.told.is_none());
            let Some(text) = own.map(|to| comment.sentence(to)) else {
                continue;
            };
            if text.len() > room && !waiting.is_empty() {
                break;
            }
            room = room.saturating_sub(text.len());
            waiting.push((comment.number, text));
        }
        waiting
    }

    /// Notes that a session has received some comments.
    pub(super) fn told(&self, session: &SessionId, numbers: &[u64], now: Millis) {
        for comment in self.list().iter_mut() {
            let is_it = numbers.contains(&comment.number);
            let own = comment.to.iter_mut().filter(|to| to.session == *session);
            for to in own.filter(|_| is_it) {
                to.told.get_or_insert(now);
            }
        }
        self.write_or_log();
    }

    /// Forgets a session, or all contents if `session` is `None` (SEC-3).
    pub(crate) fn forget(&self, session: Option<&SessionId>) {
        {
            let mut all = self.list();
            if all.is_empty() {
                return;
            }
            match session {
                Some(session) => {
                    for comment in all.iter_mut() {
                        comment.to.retain(|to| to.session != *session);
                    }
                    all.retain(|comment| !comment.to.is_empty());
                }
                None => all.iter_mut().for_each(|comment| comment.diff.clear()),
            }
        }
        self.write_or_log();
    }

    /// Stores the comments. If that fails, the error is logged, and after a
    /// restart sessions receive comments a second time.
    fn write_or_log(&self) {
        if let Err(error) = self.write() {
            tracing::warn!("{error}");
        }
    }

    fn write(&self) -> Result<(), Error> {
        let stored = self.try_write();
        stored.map_err(|error| not_stored("the comments", &error.to_string()))
    }

    fn try_write(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let bytes = serde_json::to_vec(&*self.list())?;
        replace_private(file, &bytes, self.durable)
    }

    fn list(&self) -> MutexGuard<'_, Vec<StoredComment>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn comment(id: &str, text: &str) -> StoredComment {
        StoredComment {
            number: 0,
            path: RelPath::new(b"a").unwrap(),
            id: id.into(),
            lines: None,
            text: text.into(),
            time: 1,
            diff: diff("old\n", "new\n"),
            to: vec![Receiver {
                session: SessionId::new("s").unwrap(),
                is_by_child: false,
                told: None,
            }],
        }
    }

    #[test]
    fn a_comment_replaces_one_that_waits_and_not_one_that_was_told() {
        let comments = Comments::default();
        let session = SessionId::new("s").unwrap();
        comments.put(comment("x", "wy?")).unwrap();
        comments.put(comment("x", "why?")).unwrap();
        let waiting = comments.waiting(&session);
        assert_eq!(waiting.len(), 1);
        assert!(waiting[0].1.contains("> why?\n"), "{waiting:?}");
        assert!(waiting[0].1.contains("- old\n+ new"), "{waiting:?}");
        comments.told(&session, &[waiting[0].0], 2);
        assert_eq!(comments.waiting(&session), []);
        comments.put(comment("x", "and this?")).unwrap();
        assert_eq!(comments.all().len(), 2);
        let path = RelPath::new(b"a").unwrap();
        assert!(comments.withdraw(&path, "x").unwrap());
        assert!(!comments.withdraw(&path, "x").unwrap());
        comments.forget(Some(&session));
        assert_eq!(comments.all(), []);
    }

    #[test]
    fn comments_are_bounded() {
        let comments = Comments::default();
        let session = SessionId::new("s").unwrap();
        for n in 0..MOST {
            let text = "x".repeat(900);
            comments.put(comment(&n.to_string(), &text)).unwrap();
        }
        let error = comments.put(comment("more", "x")).unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge);
        let waiting = comments.waiting(&session);
        assert!((2..10).contains(&waiting.len()), "{}", waiting.len());
        comments.told(&session, &[waiting[0].0], 2);
        comments.put(comment("more", "x")).unwrap();
        assert_eq!(comments.all().len(), MOST);
        let many = "x\n".repeat(LINES + 3) + &"y".repeat(LINE + 1);
        let shown = diff("", &many);
        assert!(shown.ends_with("(and 4 more)"), "{shown}");
    }
}
