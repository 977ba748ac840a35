//! Where touchmark does nothing for a while, and why (OFF).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::{Millis, RelPath, SessionId};

/// The variable that an agent is started with so that its hooks do nothing.
pub const BYPASS_VARIABLE: &str = "TOUCHMARK_BYPASS";

/// Why touchmark does nothing in a workspace.
#[apply(choice!)]
pub enum OffCause {
    /// The user has paused it there.
    Paused,
    /// The user has paused it in all workspaces.
    PausedEverywhere,
    /// The user's configuration lists the directory, or one above it.
    Listed,
}

/// Why and until when touchmark does nothing in a workspace.
#[apply(answer!)]
#[derive(Copy)]
pub struct Off {
    /// The cause.
    pub cause: OffCause,
    /// The time when it began; `None` for a listed directory.
    pub since: Option<Millis>,
    /// The time when it ends; `None` if only the user ends it.
    pub until: Option<Millis>,
}

/// An agent whose hooks do nothing, since it was started with
/// `TOUCHMARK_BYPASS`.
#[apply(answer!)]
pub struct Bypassed {
    /// The agent's name, as in `touchmark hook AGENT`.
    pub agent: String,
    /// The id of the agent's process.
    pub pid: u32,
    /// The time of its first hook.
    pub since: Millis,
}

/// A write that the user has allowed after a denial.
#[apply(answer!)]
pub struct Allowed {
    /// The session that was denied.
    pub session: SessionId,
    /// The file.
    pub path: RelPath,
    /// The time when the permission ends, if it was not used before.
    pub until: Millis,
}

/// What only the user may do.
#[apply(choice!)]
pub enum UsersOnly {
    /// `touchmark pause`.
    Pause,
    /// `touchmark resume`.
    Resume,
    /// `touchmark allow`.
    Allow,
    /// A change by `touchmark config`.
    Config,
    /// `TOUCHMARK_BYPASS` in a hook's environment.
    Bypass,
    /// A comment in a review.
    Comment,
}

impl UsersOnly {
    const ALL: [Self; 6] = [
        Self::Pause,
        Self::Resume,
        Self::Allow,
        Self::Config,
        Self::Bypass,
        Self::Comment,
    ];

    /// Returns what was tried, as the user would type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "touchmark pause",
            Self::Resume => "touchmark resume",
            Self::Allow => "touchmark allow",
            Self::Config => "touchmark config",
            Self::Bypass => BYPASS_VARIABLE,
            Self::Comment => "touchmark review --comment",
        }
    }

    /// Returns the word for it in a file.
    pub fn word(self) -> &'static str {
        self.name().rsplit(' ').next().unwrap_or_default()
    }

    /// Returns what a word in a file stands for.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// An attempt that was refused.
#[apply(answer!)]
pub struct OffRefused {
    /// What was tried.
    pub what: UsersOnly,
    /// The time of the attempt.
    pub time: Millis,
    /// Who tried it and why it was refused, for people.
    pub why: String,
}

/// Everything that switches touchmark off in a workspace, or tried to.
#[apply(answer!)]
#[derive(Default)]
pub struct OffReport {
    /// Why touchmark does nothing in the workspace; `None` if it works.
    pub off: Option<Off>,
    /// The running agents whose hooks do nothing.
    pub bypassed: Vec<Bypassed>,
    /// The writes that the user has allowed and that were not made yet.
    pub allowed: Vec<Allowed>,
    /// The attempts of the last day that were refused, oldest first.
    pub refused: Vec<OffRefused>,
}

/// The pauses that the user has set: the content of
/// [`Places::pauses`](crate::Places::pauses), one a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses(Vec<Pause>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pause {
    /// The workspace's key; `None` for all workspaces.
    key: Option<String>,
    since: Millis,
    until: Option<Millis>,
}

impl Pauses {
    /// Parses a file's content. Lines that are not understood are skipped.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ');
            let (key, since, until) = (words.next()?, words.next()?, words.next()?);
            Some(Pause {
                key: (key != "*").then(|| key.to_owned()),
                since: since.parse().ok()?,
                until: match until {
                    "-" => None,
                    until => Some(until.parse().ok()?),
                },
            })
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// Returns the file's content.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Pause { key, since, until } in &self.0 {
            let key = key.as_deref().unwrap_or("*");
            let until = until.map_or_else(|| "-".to_owned(), |until| until.to_string());
            let _ = writeln!(text, "{key} {since} {until}");
        }
        text
    }

    /// Returns the pause of the workspace with this key that lasts longest;
    /// `None` if there is none now.
    pub fn of(&self, key: &str, now: Millis) -> Option<Off> {
        let is_now = |pause: &&Pause| {
            pause.key.as_deref().is_none_or(|own| own == key)
                && pause.until.is_none_or(|until| now < until)
        };
        let longest = self.0.iter().filter(is_now);
        let longest = longest.max_by_key(|pause| pause.until.unwrap_or(Millis::MAX))?;
        Some(Off {
            cause: match longest.key {
                Some(_) => OffCause::Paused,
                None => OffCause::PausedEverywhere,
            },
            since: Some(longest.since),
            until: longest.until,
        })
    }

    /// Sets the pause of one workspace, or of all if `key` is `None`. Drops the
    /// pauses that have ended.
    pub fn set(&mut self, key: Option<&str>, now: Millis, until: Option<Millis>) {
        self.clear(key);
        self.0
            .retain(|pause| pause.until.is_none_or(|until| now < until));
        self.0.push(Pause {
            key: key.map(str::to_owned),
            since: now,
            until,
        });
    }

    /// Removes the pause of one workspace, or all pauses if `key` is `None`.
    pub fn clear(&mut self, key: Option<&str>) {
        self.0
            .retain(|pause| key.is_some() && pause.key.as_deref() != key);
    }
}

/// Returns whether a list of directories has this one, or one above it.
pub fn is_listed(listed: &[PathBuf], directory: &Path) -> bool {
    listed.iter().any(|above| directory.starts_with(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_of_one_workspace_or_of_all_and_ends() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.of("a", 5), None);
        pauses.set(Some("a"), 5, Some(10));
        let off = |cause, since, until| {
            Some(Off {
                cause,
                since: Some(since),
                until,
            })
        };
        assert_eq!(pauses.of("a", 9), off(OffCause::Paused, 5, Some(10)));
        assert_eq!(pauses.of("a", 10), None);
        assert_eq!(pauses.of("b", 9), None);
        pauses.set(None, 7, None);
        assert_eq!(pauses.of("a", 9), off(OffCause::PausedEverywhere, 7, None));
        assert_eq!(Pauses::parse(&pauses.text()), pauses);
        pauses.set(Some("b"), 12, None);
        assert_eq!(pauses.text(), "* 7 -\nb 12 -\n");
        pauses.clear(Some("b"));
        assert_eq!(pauses.text(), "* 7 -\n");
        pauses.clear(None);
        assert_eq!(pauses, Pauses::default());
        assert_eq!(Pauses::parse("odd\n\na 1\nb x -\nc 1 x\n"), pauses);
    }

    #[test]
    fn a_listed_directory_is_listed_with_all_below_it() {
        let listed = [PathBuf::from("/srv/mirror")];
        assert!(is_listed(&listed, Path::new("/srv/mirror")));
        assert!(is_listed(&listed, Path::new("/srv/mirror/a/b")));
        assert!(!is_listed(&listed, Path::new("/srv/mirrors")));
        assert!(!is_listed(&listed, Path::new("/srv")));
    }

    #[test]
    fn what_only_the_user_may_do_is_read_as_written() {
        for what in UsersOnly::ALL {
            assert_eq!(UsersOnly::of_word(what.word()), Some(what));
        }
        assert_eq!(UsersOnly::of_word("stop"), None);
    }
}
