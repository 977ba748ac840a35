//! What the command prints, and how it ends.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anstyle::Style;
use serde_json::Value;
use touchmark_client::Error as ClientError;
use touchmark_client::proto;

use crate::hints;
use crate::progress;
use crate::style::{self, paint};
use crate::system::terminal;
use crate::text::{MAX_NAME, escaped, path, width, without_hidden, wrapped};

/// Why the command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The answer is no, or nothing was done.
    #[error("{0}")]
    No(String),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// An error of the client, or one that the daemon returned.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The same in `touchmark call`. Its hint is shown as it is, since the user
    /// has named a method.
    #[error(transparent)]
    Call(ClientError),
    /// An error with its own exit code: of `touchmark daemon`, of systemd,
    /// of `touchmark run` or of the command of `--check`.
    #[error("{message}")]
    Coded {
        /// The exit code of this process.
        code: u8,
        /// What went wrong.
        message: String,
        /// What to do; empty for nothing.
        hint: &'static str,
    },
    /// The command of `touchmark run` failed. It has printed why.
    #[error("the command ended with {code}")]
    Ended {
        /// The exit code of this process.
        code: u8,
    },
    /// The reader has closed the output.
    #[error("the output was closed")]
    Closed,
    /// Any other error.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::Closed
        } else {
            Self::Other(error.into())
        }
    }
}

impl Failure {
    /// Returns an error with this exit code and without a hint.
    pub(crate) fn coded(code: u8, message: impl Into<String>) -> Self {
        Self::Coded {
            code,
            message: message.into(),
            hint: "",
        }
    }

    /// Returns the exit code: 1 the answer is no, 2 wrong use, 3 no daemon and
    /// none could be started, 4 the daemon returned an error, 5 the command of
    /// `--check` failed.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // A closed reader has read what it wanted, as with any filter.
            Self::Closed => 0,
            Self::No(_) | Self::Other(_) => 1,
            Self::Usage(_) => 2,
            Self::Coded { code, .. } | Self::Ended { code } => *code,
            Self::Client(error) | Self::Call(error) => match error {
                ClientError::Daemon(_) | ClientError::Protocol(_) => 4,
                ClientError::Place { .. } => 2,
                _ => 3,
            },
        }
    }

    /// Prints on standard error what went wrong and what to do.
    pub(crate) fn report(&self) {
        progress::end();
        let (name, hint) = match self {
            Self::Closed | Self::Ended { .. } => return,
            Self::Client(error) => (Some(error.code()), hints::of(error)),
            Self::Call(error) => (Some(error.code()), error.hint().to_owned()),
            Self::Coded { hint, .. } => (None, (*hint).to_owned()),
            _ => (None, String::new()),
        };
        let message = self.to_string();
        // The lines of a message stay, but its characters are not trusted.
        let lines = message.lines().take(20).map(|line| escaped(line, 2000));
        let mut lines: Vec<String> = lines.collect();
        if let (Some(name), Some(last)) = (name, lines.last_mut()) {
            let _ = write!(last, " ({name})");
        }
        let (first, rest) = lines.split_first().unwrap_or((&message, &[]));
        let mut text = noted(style::WARN, first);
        for line in rest {
            let _ = write!(text, "\n{}", fitted(&format!("  {line}")));
        }
        if let Self::Client(ClientError::Daemon(error)) | Self::Call(ClientError::Daemon(error)) =
            self
        {
            text.push_str(&concerned(error));
        }
        if !hint.is_empty() {
            let hint = fitted(&format!("  hint: {}", escaped(&hint, 2000)));
            let hint = hint.replacen("hint:", &paint(style::BOLD, "hint:"), 1);
            let _ = write!(text, "\n{hint}");
        }
        // If standard error is closed, the message is lost.
        let _ = writeln!(anstream::stderr(), "{text}");
    }
}

/// Returns a message in lines that fit the terminal. In a pipe or a file it stays
/// one line.
pub(crate) fn fitted(message: &str) -> String {
    let room = terminal::room();
    match width(message) <= room {
        true => message.to_owned(),
        false => wrapped(message, room, "  ").join("\n"),
    }
}

/// Returns a message for standard error, after this program's name.
pub(crate) fn noted(how: Style, message: &str) -> String {
    let name = paint(how, "touchmark:");
    fitted(&format!("touchmark: {message}")).replacen("touchmark:", &name, 1)
}

/// Returns the files that an error is about, each on a separate line.
fn concerned(error: &proto::Error) -> String {
    let mut text = String::new();
    for file in error.files.iter().take(20) {
        let name = match (&file.path, &file.spoken) {
            (Some(name), _) => path(name),
            (None, Some(name)) => escaped(name, MAX_NAME),
            (None, None) => continue,
        };
        let _ = write!(text, "\n  {name}");
    }
    text
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Prints one line.
pub(crate) fn line(text: &str) -> Outcome {
    progress::end();
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Prints several lines.
pub(crate) fn lines(lines: &[String]) -> Outcome {
    lines.iter().try_for_each(|text| line(text))
}

/// Prints a value as JSON: on one line, or indented if `wide`.
pub(crate) fn json(value: &Value, wide: bool) -> Outcome {
    let text = if wide {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    line(&harmless_json(&text.map_err(anyhow::Error::from)?))
}

/// Returns a value as JSON on one line.
pub(crate) fn one_line(value: &Value) -> String {
    harmless_json(&value.to_string())
}

/// Returns JSON with all hidden characters escaped. They can only be in its
/// strings, where an escape means the same; line breaks are only outside.
fn harmless_json(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(without_hidden).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::text::is_hidden;

    #[test]
    fn json_stays_the_same_value_and_becomes_harmless() {
        let value = serde_json::json!({"a": "x\u{9b}\u{202e}\u{e0041}\n"});
        let text = harmless_json(&value.to_string());
        assert!(!text.chars().any(is_hidden));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn exit_codes_as_documented() {
        use touchmark_client::proto::{Error, ErrorCode};
        let daemon = Error::new(ErrorCode::Stale, "x");
        let code = |failure: Failure| failure.exit_code();
        assert_eq!(code(Failure::No(String::new())), 1);
        assert_eq!(code(Failure::Usage(String::new())), 2);
        assert_eq!(
            code(Failure::Client(ClientError::NoDaemon {
                socket: "/x".into()
            })),
            3
        );
        assert_eq!(code(Failure::Client(ClientError::Daemon(daemon))), 4);
    }
}
