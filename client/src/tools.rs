//! Tools of an agent that do not do twice what was done already: any function
//! of arguments, wrapped so that a repeated call is answered with the earlier
//! result as long as every file it rests on holds what it held then.
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
//! Without a daemon the tools run as if they were not wrapped; the first
//! answer says so.

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

/// Without a daemon, this long no other is looked for.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// What a tool answered, and which files that rests on beside those that its
/// arguments name.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The result.
    pub result: Value,
    /// The files.
    pub paths: Vec<ClientPath>,
}

impl Output {
    /// The same, resting on these files as well.
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

/// What is to be told in a tool's place.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The tool's result, of this call or of an earlier one.
    pub result: Value,
    /// The tool did not run: the result is an earlier call's.
    pub cached: bool,
    /// The line to say before a result that is not new.
    pub message: Option<String>,
    /// Said once: why nothing is compared with earlier calls.
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

    /// The result as text, with the message before it.
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
pub struct Rules {
    /// Whether they are at all; true unless told.
    pub enabled: bool,
    /// Whether a call that is merely alike (another one of the same file, say)
    /// is answered with the earlier result too; false unless told.
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
    /// The earlier result, if it may stand in place of running the tool.
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

/// The tools of one session. Cheap to clone; clones share the session.
#[derive(Clone)]
pub struct Tools {
    shared: Arc<Shared>,
    rules: Rules,
}

struct Shared {
    open: Box<dyn Fn() -> Result<Session> + Send + Sync>,
    /// Where the files are, should there be no daemon to ask.
    root: Option<PathBuf>,
    link: Mutex<Link>,
}

#[derive(Default)]
struct Link {
    session: Option<Session>,
    /// When the last one was lost or could not be had.
    lost: Option<Instant>,
    /// That was said.
    told: bool,
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Tools {
    /// Of a session in the current directory's workspace, whose daemon is
    /// started where none runs. Nothing is done before the first call.
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

    /// Of a session that is open.
    pub fn of(session: &Session) -> Self {
        let session = session.clone();
        Self::over(Some(session.root().to_owned()), move || Ok(session.clone()))
    }

    /// Of a session that `open` gives, at the first call and when a connection
    /// was lost. Files are looked for in `root` where there is no daemon.
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

    /// The same by other rules.
    #[must_use]
    pub fn with(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Wraps a tool. Its name decides how calls are compared, and whether they
    /// are kept at all (`calls.rules`, `calls.never`).
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

    /// Reads a file as a tool does: its text, or one line in place of what is
    /// in the context already.
    ///
    /// # Errors
    /// `notFound`, `notAFile`, `unreadable`; without a daemon what the file
    /// system says.
    pub fn read_file(&self, path: impl Into<ClientPath>) -> Result<Answer> {
        let path = path.into();
        let read = self.ask(|session| match self.rules.enabled {
            true => session.read_text(path.clone()),
            false => session.read_text_again(path.clone()),
        });
        match read {
            Ok(read) => Ok(told(read)),
            Err(Without::Refused(error)) => Err(error),
            Err(Without::Daemon(notice)) => {
                let bytes = self.without(&path, |file| fs::read(file))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Ok(Answer::new(text.into(), notice))
            }
        }
    }

    /// Writes a file as a tool does, declared as the session's. The next read
    /// of it is full.
    ///
    /// # Errors
    /// `stale`, `notRead`, `busy`, and what the file system says.
    pub fn write_file(&self, path: impl Into<ClientPath>, bytes: &[u8]) -> Result<Answer> {
        let path = path.into();
        let done = Value::from(format!(
            "File written: {}",
            String::from_utf8_lossy(path.as_bytes())
        ));
        let written = self.ask(|session| session.write(path.clone(), bytes));
        match written {
            Ok(_) => Ok(Answer::new(done, None)),
            Err(Without::Refused(error)) => Err(error),
            Err(Without::Daemon(notice)) => {
                self.without(&path, |file| fs::write(file, bytes))?;
                Ok(Answer::new(done, notice))
            }
        }
    }

    /// Edits a file as a tool does: `change` makes the new text out of the
    /// old. Written through the daemon, guarded (GUARD-1): what is saved
    /// while `change` works is not overwritten.
    ///
    /// # Errors
    /// `stale`, `notRead`, `busy`, `conflict`; `io` for a text that is not
    /// UTF-8, and without a daemon what the file system says.
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
                // Saved since the mark: the next one refuses what was not read.
            }
        });
        match edited {
            Ok(_) => Ok(Answer::new(done, None)),
            Err(Without::Refused(error)) => Err(error),
            Err(Without::Daemon(notice)) => {
                self.without(&path, |file| {
                    fs::write(file, change(&fs::read_to_string(file)?))
                })?;
                Ok(Answer::new(done, notice))
            }
        }
    }

    /// Does something to a file without a daemon.
    fn without<T>(
        &self,
        path: &ClientPath,
        act: impl FnOnce(&Path) -> std::io::Result<T>,
    ) -> Result<T> {
        let name = native::name(path.as_bytes());
        let file = match &self.shared.root {
            Some(root) => root.join(name),
            None => PathBuf::from(name.into_owned()),
        };
        act(&file).map_err(|error| Error::io(file.display().to_string(), error))
    }

    /// Asks the daemon, on a new connection if the old one is lost.
    fn ask<T>(&self, ask: impl Fn(&Session) -> Result<T>) -> std::result::Result<T, Without> {
        let mut again = true;
        loop {
            let session = self.session()?;
            match ask(&session) {
                Ok(answer) => return Ok(answer),
                Err(Error::Daemon(error))
                    if error.code != touchmark_proto::ErrorCode::ShuttingDown =>
                {
                    return Err(Without::Refused(Error::Daemon(error)));
                }
                Err(Error::Io { doing, source }) => {
                    return Err(Without::Refused(Error::Io { doing, source }));
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

    fn session(&self) -> std::result::Result<Session, Without> {
        let mut link = self.link();
        if let Some(session) = &link.session {
            return Ok(session.clone());
        }
        if link.lost.is_some_and(|lost| lost.elapsed() < TRY_AGAIN) {
            return Err(Without::Daemon(None));
        }
        match (self.shared.open)() {
            Ok(session) => {
                *link = Link {
                    session: Some(session.clone()),
                    lost: None,
                    told: false,
                };
                Ok(session)
            }
            Err(error) => Err(link.lose(&error)),
        }
    }

    /// The connection is of no more use. Where another is tried at once,
    /// nothing is lost yet.
    fn lose(&self, error: &Error, again: bool) -> Without {
        let mut link = self.link();
        link.session = None;
        if again && error.is_disconnected() {
            return Without::Daemon(None);
        }
        link.lose(error)
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        // Whatever panicked, a session is there or it is not.
        self.shared
            .link
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn lose(&mut self, error: &Error) -> Without {
        self.lost = Some(Instant::now());
        let told = std::mem::replace(&mut self.told, true);
        Without::Daemon((!told).then(|| unwatched(error)))
    }
}

/// Why the daemon gave no answer.
enum Without {
    /// There is none; what to say of it, once.
    Daemon(Option<String>),
    /// It refused.
    Refused(Error),
}

/// The line that says that tools run as if they were not wrapped.
pub(crate) fn unwatched(error: &Error) -> String {
    format!("[touchmark: {error}; repeated calls are not recognised]")
}

/// A read as it is told.
fn told(read: FileText) -> Answer {
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
pub struct Tool<T> {
    tools: Tools,
    name: String,
    tool: T,
}

impl<T> fmt::Debug for Tool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<T> Tool<T> {
    /// The earlier result of such a call, or the tool's own, which is
    /// remembered.
    ///
    /// # Errors
    /// The tool's: one that failed is not remembered.
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
        match checked {
            Ok(checked) => {
                if let Some(answer) = self.tools.rules.serve(checked) {
                    return Ok(answer);
                }
            }
            Err(Without::Daemon(said)) => notice = said,
            // The tool is not to blame for what the daemon thinks of the call.
            Err(Without::Refused(error)) => notice = Some(unwatched(&error)),
        }
        let output = (self.tool)(args)?;
        let recorded = self.tools.ask(|session| {
            let paths = Some(output.paths.clone()).filter(|paths| !paths.is_empty());
            session.call_record(&self.name, args.clone(), output.result.clone(), paths)
        });
        match recorded {
            Err(Without::Daemon(Some(said))) => notice = Some(said),
            Err(Without::Refused(error)) => notice = Some(unwatched(&error)),
            Ok(_) | Err(Without::Daemon(None)) => {}
        }
        Ok(Answer::new(output.result, notice))
    }
}
