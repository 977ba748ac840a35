//! Wraps an agent's tools: functions of arguments. A repeated call is answered
//! with the earlier result as long as every file that the result depends on has
//! the same content as then.
//!
//! ```no_run
//! use serde_json::json;
//! use touchmark_client::tools::{Output, Tools};
//!
//! let tools = Tools::here("fix-42");
//! let search = tools.wrap("search", |args| {
//!     let found = format!("all that matches {args}");
//!     Ok::<_, std::io::Error>(Output::from(found).rests_on(["src/parser.rs"]))
//! });
//! let first = search.call(&json!({"pattern": "fn parse"}))?;
//! let again = search.call(&json!({"pattern": "fn parse"}))?;
//! assert!(!first.cached && again.cached);
//! println!("{}", again.text()); // [Cached result from 10:23:45] ...
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Without a daemon the tools run as if they were not wrapped; the `notice` of
//! the first answer reports that.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use touchmark_proto::ClientPath;
use touchmark_proto::calls::{CallChecked, Duplicate};
use touchmark_proto::files::{FileText, TextEncoding};
use touchmark_proto::native;

use crate::blocking::Session;
use crate::error::{Error, Result};
use crate::{Hello, Start, Workspace, connect_or_start};

/// How long to wait after a failed connection before the next attempt.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// The output of a tool, and the files that it depends on in addition to those
/// that the arguments name.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Output {
    /// The tool's result.
    pub result: Value,
    /// The files that the result depends on.
    pub paths: Vec<ClientPath>,
}

impl Output {
    /// Returns the output with these files added to those that it depends on.
    #[must_use]
    pub fn rests_on<P: Into<ClientPath>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.paths.extend(paths.into_iter().map(Into::into));
        self
    }
}

impl<T: Into<Value>> From<T> for Output {
    fn from(result: T) -> Self {
        Self {
            result: result.into(),
            paths: Vec::new(),
        }
    }
}

/// The answer to give for a call of a tool.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Answer {
    /// The tool's result, from this call or an earlier one.
    pub result: Value,
    /// Whether the tool did not run, because the result is an earlier call's.
    pub cached: bool,
    /// One sentence for the model, to put before a result that is not new.
    pub message: Option<String>,
    /// Why calls are not compared with earlier ones; reported only once.
    pub notice: Option<String>,
}

impl Answer {
    pub(crate) fn new(result: Value, notice: Option<String>) -> Self {
        Self {
            result,
            cached: false,
            message: None,
            notice,
        }
    }

    /// Returns the result as text, preceded by the message.
    pub fn text(&self) -> String {
        let result = match &self.result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match &self.message {
            Some(message) => format!("{message}\n\n{result}"),
            None => result,
        }
    }
}

/// How calls are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Rules {
    /// Whether calls are compared with earlier ones; default true.
    pub enabled: bool,
    /// Whether the earlier result also answers a call that is only similar, for
    /// example another call about the same file; default false.
    pub similar: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            enabled: true,
            similar: false,
        }
    }
}

impl Rules {
    /// Returns the earlier result if it may replace running the tool.
    pub(crate) fn serve(self, checked: CallChecked) -> Option<Answer> {
        let serves = checked.cached || (self.similar && checked.duplicate == Duplicate::Similar);
        let result = checked.result.filter(|_| serves)?;
        Some(Answer {
            result: result.0,
            cached: true,
            message: checked.message,
            notice: None,
        })
    }
}

/// The tools of one session. Cloning is cheap; clones share the session.
#[derive(Clone)]
pub struct Tools {
    shared: Arc<Shared>,
    rules: Rules,
}

struct Shared {
    open: Box<dyn Fn() -> Result<Session> + Send + Sync>,
    /// The directory for paths of files, used if there is no daemon.
    root: Option<PathBuf>,
    link: Mutex<Link>,
}

#[derive(Default)]
struct Link {
    session: Option<Session>,
    /// When the connection was lost, or the last attempt to connect failed.
    lost: Option<Instant>,
    /// Whether the missing daemon was already reported.
    reported: bool,
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Tools {
    /// Returns the tools of a session in the current directory's workspace. The
    /// first call connects to the daemon, and starts one if none runs.
    pub fn here(session: &str) -> Self {
        let name = session.to_owned();
        let workspace = Workspace::here();
        let root = workspace.as_ref().ok().map(|found| found.root.clone());
        Self::over(root, move || {
            let workspace = Workspace::here()?;
            let client = connect_or_start(&workspace, &Hello::default(), &Start::default())?;
            Session::open(&client, &name)
        })
    }

    /// Returns the tools of an open session.
    pub fn of(session: &Session) -> Self {
        let session = session.clone();
        Self::over(Some(session.root().to_owned()), move || Ok(session.clone()))
    }

    /// Returns the tools of a session that `open` returns. `open` is called at
    /// the first call, and again after the connection was lost. Without a
    /// daemon, paths are relative to `root`.
    pub fn over(
        root: Option<PathBuf>,
        open: impl Fn() -> Result<Session> + Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                open: Box::new(open),
                root,
                link: Mutex::default(),
            }),
            rules: Rules::default(),
        }
    }

    /// Returns the tools with these rules.
    #[must_use]
    pub fn with(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Wraps a tool. The name selects how calls are compared (`calls.rules`),
    /// and whether they are stored (`calls.never`).
    pub fn wrap<T, E>(&self, name: &str, tool: T) -> Tool<T>
    where
        T: Fn(&Value) -> std::result::Result<Output, E>,
    {
        Tool {
            tools: self.clone(),
            name: name.into(),
            tool,
        }
    }

    /// Reads a file as a tool: returns its text, or a sentence that replaces a
    /// text which is already in the context.
    ///
    /// # Errors
    /// `notFound`, `notAFile` or `unreadable`; without a daemon, the file
    /// system's error.
    pub fn read_file(&self, path: impl Into<ClientPath>) -> Result<Answer> {
        let path = path.into();
        let read = self.ask(|session| match self.rules.enabled {
            true => session.read_text(path.clone()),
            false => session.read_text_again(path.clone()),
        });
        self.or_without(read.map(of_read), &path, |file| {
            let bytes = fs::read(file)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned().into())
        })
    }

    /// Writes a file as a tool, declared as the session's write. The session's
    /// next read of it returns the full text.
    ///
    /// # Errors
    /// `stale`, `notRead` or `busy`, and errors of the file system.
    pub fn write_file(&self, path: impl Into<ClientPath>, bytes: &[u8]) -> Result<Answer> {
        let path = path.into();
        let done = Value::from(format!(
            "File written: {}",
            String::from_utf8_lossy(path.as_bytes())
        ));
        let written = self.ask(|session| session.write(path.clone(), bytes));
        let written = written.map(|_| Answer::new(done.clone(), None));
        self.or_without(written, &path, |file| {
            fs::write(file, bytes)?;
            Ok(done)
        })
    }

    /// Edits a file as a tool: `change` computes the new text from the old one.
    /// The write is guarded (GUARD-1), so a save during `change` is not
    /// overwritten.
    ///
    /// # Errors
    /// `stale`, `notRead`, `busy` or `conflict`; `io` for a text that is not
    /// UTF-8; without a daemon, the file system's error.
    pub fn edit_file(
        &self,
        path: impl Into<ClientPath>,
        change: impl Fn(&str) -> String,
    ) -> Result<Answer> {
        let path = path.into();
        let done = Value::from(format!(
            "File edited: {}",
            String::from_utf8_lossy(path.as_bytes())
        ));
        let edited = self.ask(|session| {
            loop {
                let edit = session.edit(path.clone())?;
                let target = edit.target();
                let before = fs::read_to_string(&target)
                    .map_err(|error| Error::io(format!("read {}", target.display()), error))?;
                let marked = edit.before().and_then(|state| state.hash);
                if marked == Some(crate::hash_of(before.as_bytes())) {
                    return edit.write(change(&before).as_bytes());
                }
                // The file was saved after the mark. The next `edit` refuses it
                // if the session has not read that content.
            }
        });
        let edited = edited.map(|_| Answer::new(done.clone(), None));
        self.or_without(edited, &path, |file| {
            fs::write(file, change(&fs::read_to_string(file)?))?;
            Ok(done)
        })
    }

    /// Returns the answer. If no daemon can be reached, returns the result of
    /// `act`, which accesses the file itself.
    fn or_without(
        &self,
        answer: std::result::Result<Answer, NoResult>,
        path: &ClientPath,
        act: impl FnOnce(&Path) -> std::io::Result<Value>,
    ) -> Result<Answer> {
        let notice = match answer {
            Ok(answer) => return Ok(answer),
            Err(NoResult::Refused(error)) => return Err(error),
            Err(NoResult::Daemon(notice)) => notice,
        };
        let name = native::name(path.as_bytes());
        let file = match &self.shared.root {
            Some(root) => root.join(name),
            None => PathBuf::from(name.into_owned()),
        };
        match act(&file) {
            Ok(result) => Ok(Answer::new(result, notice)),
            Err(error) => Err(Error::io(file.display().to_string(), error)),
        }
    }

    /// Sends a request to the daemon. Reconnects if the connection was lost.
    fn ask<T>(&self, ask: impl Fn(&Session) -> Result<T>) -> std::result::Result<T, NoResult> {
        let mut again = true;
        loop {
            let session = self.session()?;
            match ask(&session) {
                Ok(answer) => return Ok(answer),
                Err(error @ (Error::Daemon(_) | Error::Io { .. })) if !error.is_disconnected() => {
                    return Err(NoResult::Refused(error));
                }
                Err(error) => {
                    let lost = self.lose(&error, again);
                    if !(again && error.is_disconnected()) {
                        return Err(lost);
                    }
                    again = false;
                }
            }
        }
    }

    fn session(&self) -> std::result::Result<Session, NoResult> {
        let mut link = self.link();
        if let Some(session) = &link.session {
            return Ok(session.clone());
        }
        if link.lost.is_some_and(|lost| lost.elapsed() < TRY_AGAIN) {
            return Err(NoResult::Daemon(None));
        }
        match (self.shared.open)() {
            Ok(session) => {
                *link = Link {
                    session: Some(session.clone()),
                    lost: None,
                    reported: false,
                };
                Ok(session)
            }
            Err(error) => Err(link.lose(&error)),
        }
    }

    /// Drops the connection. The loss is not recorded if another attempt
    /// follows immediately.
    fn lose(&self, error: &Error, again: bool) -> NoResult {
        let mut link = self.link();
        link.session = None;
        if again && error.is_disconnected() {
            return NoResult::Daemon(None);
        }
        link.lose(error)
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        // After a panic the link is still valid: it has a session or none.
        self.shared
            .link
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn lose(&mut self, error: &Error) -> NoResult {
        self.lost = Some(Instant::now());
        let reported = std::mem::replace(&mut self.reported, true);
        NoResult::Daemon((!reported).then(|| unwatched(error)))
    }
}

/// Why the daemon has given no result.
enum NoResult {
    /// No daemon can be reached. The text reports that; it is `None` if it was
    /// already reported.
    Daemon(Option<String>),
    /// The daemon returned an error.
    Refused(Error),
}

impl NoResult {
    /// Returns the text that reports it; `None` if it was already reported.
    fn notice(self) -> Option<String> {
        match self {
            Self::Daemon(notice) => notice,
            Self::Refused(error) => Some(unwatched(&error)),
        }
    }
}

/// Returns the sentence which reports that tools run as if they were not
/// wrapped.
pub(crate) fn unwatched(error: &Error) -> String {
    format!("[touchmark: {error}; repeated calls are not recognised]")
}

/// Returns the answer for a read.
fn of_read(read: FileText) -> Answer {
    let cut = read.truncated.then(|| {
        let end = read.range.map_or(0, |range| range.end);
        format!(
            "[{end} of {} lines; read the rest by range]",
            read.line_count
        )
    });
    match read.text {
        Some(text) => {
            let mut lines: Vec<String> = read.message.into_iter().collect();
            if read.encoding == TextEncoding::Base64 {
                lines.push("[not UTF-8: base64]".into());
            }
            lines.extend(cut);
            Answer {
                result: text.into(),
                cached: false,
                message: (!lines.is_empty()).then(|| lines.join("\n")),
                notice: None,
            }
        }
        None => Answer {
            result: read.message.unwrap_or_default().into(),
            cached: true,
            message: None,
            notice: None,
        },
    }
}

/// A wrapped tool.
pub struct Tool<T, S = Tools> {
    pub(crate) tools: S,
    pub(crate) name: String,
    pub(crate) tool: T,
}

impl<T, S> fmt::Debug for Tool<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<T> Tool<T> {
    /// Returns the result of an earlier call with these arguments, or runs the
    /// tool and stores its result.
    ///
    /// # Errors
    /// The tool's error. A failed call is not stored.
    pub fn call<E>(&self, args: &Value) -> std::result::Result<Answer, E>
    where
        T: Fn(&Value) -> std::result::Result<Output, E>,
    {
        if !self.tools.rules.enabled {
            return Ok(Answer::new((self.tool)(args)?.result, None));
        }
        let checked = self
            .tools
            .ask(|session| session.call_check(&self.name, args.clone()));
        let mut notice = None;
        // An error of the daemon must not make the tool's call fail.
        match checked.map(|checked| self.tools.rules.serve(checked)) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(none) => notice = none.notice(),
        }
        let output = (self.tool)(args)?;
        let recorded = self.tools.ask(|session| {
            let paths = Some(output.paths.clone()).filter(|paths| !paths.is_empty());
            session.call_record(&self.name, args.clone(), output.result.clone(), paths)
        });
        if let Err(none) = recorded {
            notice = none.notice().or(notice);
        }
        Ok(Answer::new(output.result, notice))
    }
}
