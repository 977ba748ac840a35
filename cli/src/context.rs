//! What the commands share: the workspace and a connection to its daemon.

use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use touchmark_client::blocking::Client;
use touchmark_client::proto::Method;
use touchmark_client::proto::Reply;
use touchmark_client::proto::daemon::Role;
use touchmark_client::proto::sessions::{SessionList, SessionRow};
use touchmark_client::proto::{ClientPath, SessionId};
use touchmark_client::{Environment, Error, Hello, Start, Workspace, connect_or_start};

use crate::output::{self, Failure, Outcome};
use crate::progress;
use crate::project;
use crate::style;
use crate::system::terminal::is_terminal;
use crate::wire::result_json;

/// How long a daemon may take for an answer. An undo of large files takes
/// seconds, and the user can interrupt a command.
const PATIENCE: Duration = Duration::from_secs(120);

/// The options of every command, before or after its name.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Global {
    /// The workspace [default: the nearest directory upward with a running daemon, a .touchmark.toml or a .git]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Do not start a daemon if none runs
    #[arg(long, global = true)]
    pub(crate) no_start: bool,
}

/// One run of the command.
pub(crate) struct Context {
    /// The global options of the command line.
    pub(crate) global: Global,
    /// The directories of touchmark's files.
    pub(crate) environment: Environment,
}

impl Context {
    pub(crate) fn new(global: Global) -> Outcome<Self> {
        Ok(Self {
            global,
            environment: Environment::read()?,
        })
    }

    /// Returns the workspace of the command line, else the one found from the
    /// current directory.
    pub(crate) fn workspace(&self) -> Outcome<Workspace> {
        Ok(match &self.global.workspace {
            Some(directory) => Workspace::at(directory, &self.environment)?,
            None => Workspace::find(&current_directory()?, &self.environment)?,
        })
    }

    /// Connects to the daemon. Starts one if none runs, unless `--no-start` is
    /// given.
    pub(crate) fn connect(&self, workspace: &Workspace) -> Outcome<Client> {
        if self.global.no_start {
            return self.connect_running(workspace);
        }
        let client = connect_or_start(workspace, &hello(), &self.start())?;
        client.set_deadline(PATIENCE);
        Ok(client)
    }

    /// Connects to a daemon that runs already.
    pub(crate) fn connect_running(&self, workspace: &Workspace) -> Outcome<Client> {
        if workspace.is_asleep() {
            // Connecting would make systemd start the daemon.
            let socket = workspace.socket();
            return Err(Error::NoDaemon { socket }.into());
        }
        let client = workspace.connect(&hello())?;
        client.set_deadline(PATIENCE);
        Ok(client)
    }

    /// Returns how this command starts daemons.
    pub(crate) fn start(&self) -> Start {
        Start::default()
    }

    /// Connects to the daemon of the workspace, for a command about what is
    /// recorded. Starts one unless `--no-start` is given, but only in a project
    /// or in the directory of `--workspace` (LIFE-5).
    pub(crate) fn open(&self) -> Outcome<Connection<'_>> {
        self.check_project()?;
        self.open_anywhere()
    }

    /// Connects to the daemon of the workspace, which it starts in any directory
    /// unless `--no-start` is given.
    pub(crate) fn open_anywhere(&self) -> Outcome<Connection<'_>> {
        let workspace = self.workspace()?;
        let client = self.connect(&workspace)?;
        Ok(self.opened(workspace, client))
    }

    /// Connects to the daemon of the workspace, if one runs.
    pub(crate) fn open_running(&self) -> Outcome<Connection<'_>> {
        self.check_project()?;
        let workspace = self.workspace()?;
        let client = self.connect_running(&workspace)?;
        Ok(self.opened(workspace, client))
    }

    /// Checks that the workspace is a project, or named by `--workspace`.
    ///
    /// # Errors
    /// The text that says what to do (LIFE-5).
    pub(crate) fn check_project(&self) -> Outcome {
        let workspace = self.workspace()?;
        match self.global.workspace.is_some() || project::is_one(&workspace) {
            true => Ok(()),
            false => Err(project::missing(&workspace)),
        }
    }

    fn opened(&self, workspace: Workspace, client: Client) -> Connection<'_> {
        Connection {
            context: self,
            workspace,
            client,
        }
    }

    /// Prints a value as JSON.
    pub(crate) fn json(&self, value: &Value) -> Outcome {
        output::json(value, is_terminal())
    }

    /// Prints a line that is not a result. `--quiet` suppresses it.
    pub(crate) fn say(&self, text: &str) -> Outcome {
        if self.global.quiet {
            return Ok(());
        }
        output::line(&output::fitted(text))
    }

    /// Prints what was done: with `--json` as facts, else as a line that is not a
    /// result.
    pub(crate) fn tell(&self, facts: &Value, text: &str) -> Outcome {
        match self.global.json {
            true => self.json(facts),
            false => self.say(text),
        }
    }

    /// Prints the lines of a list, or `empty` if there are none.
    pub(crate) fn list(&self, lines: &[String], empty: &str) -> Outcome {
        match lines.is_empty() {
            true => self.say(empty),
            false => output::lines(lines),
        }
    }

    /// Shows on a terminal what is done from now on, until the next output, if it
    /// takes long. `--json` and `--quiet` suppress it.
    pub(crate) fn doing(&self, what: &'static str) {
        if !self.global.json && !self.global.quiet {
            progress::begin(what);
        }
    }

    /// Prints a line for the user on standard error, next to the output of a
    /// command that runs. `--quiet` suppresses it.
    pub(crate) fn note(&self, text: &str) {
        if !self.global.quiet {
            progress::end();
            let text = output::noted(style::DIM, &crate::text::escaped(text, 2000));
            let _output_is_closed = writeln!(anstream::stderr(), "{text}");
        }
    }
}

/// A connection to the daemon of the workspace.
pub(crate) struct Connection<'c> {
    pub(crate) context: &'c Context,
    pub(crate) workspace: Workspace,
    pub(crate) client: Client,
}

impl Connection<'_> {
    /// Sends a request, and returns its result. With `--json` the result is
    /// printed, and `None` returned.
    pub(crate) fn answer<M: Method>(&self, ask: M) -> Outcome<Option<M::Result>> {
        if self.context.global.json {
            self.json(self.client.request(ask.into_request())?)?;
            return Ok(None);
        }
        Ok(Some(self.client.call(ask)?))
    }

    /// Prints the result of a reply as JSON.
    pub(crate) fn json(&self, reply: Reply) -> Outcome {
        self.context.json(&result_json(reply, &self.workspace.root))
    }

    /// Returns a file from the command line as a path for the daemon.
    pub(crate) fn path(&self, file: &Path) -> Outcome<ClientPath> {
        let absolute = spoken(file, &current_directory()?, &self.workspace.root);
        Ok(ClientPath::from(absolute.as_path()))
    }

    /// Returns the session that a user means; `None` if none was named.
    pub(crate) fn meant(&self, said: Option<&SessionId>) -> Outcome<Option<SessionId>> {
        said.map(|said| meant(&self.client, said)).transpose()
    }
}

/// Returns the absolute path of a name. Names are relative to the current
/// directory. A name that would be outside the workspace is tried relative to
/// the workspace, which `--workspace` may have set.
fn spoken(file: &Path, current: &Path, root: &Path) -> PathBuf {
    let absolute = current.join(file);
    let real = match (absolute.parent(), absolute.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => parent
            .canonicalize()
            .map_or_else(|_| absolute.clone(), |parent| parent.join(name)),
        _ => absolute.clone(),
    };
    if real.starts_with(root) || file.is_absolute() {
        real
    } else {
        file.to_owned()
    }
}

fn current_directory() -> Outcome<PathBuf> {
    std::env::current_dir()
        .map_err(|error| Failure::Usage(format!("the current directory: {error}")))
}

/// The variable with the session's id.
pub(crate) const SESSION: &str = "TOUCHMARK_SESSION";

/// Returns the session from the option, else from the environment.
pub(crate) fn named(session: Option<SessionId>) -> Outcome<SessionId> {
    if let Some(session) = session {
        return Ok(session);
    }
    inherited()?
        .ok_or_else(|| Failure::Usage(format!("whose? Name the session by --session or {SESSION}")))
}

/// Returns the session from the environment; `None` if it has none.
pub(crate) fn inherited() -> Outcome<Option<SessionId>> {
    let named = std::env::var(SESSION).unwrap_or_default();
    if named.is_empty() {
        return Ok(None);
    }
    self::session(&named)
        .map(Some)
        .map_err(|error| Failure::Usage(format!("{SESSION}: {error}")))
}

/// Requests all rows of a list, page by page (LIM-2).
pub(crate) fn pages<T>(
    mut page: impl FnMut(Option<String>) -> Outcome<(Vec<T>, Option<String>)>,
) -> Outcome<Vec<T>> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let (rows, more) = page(cursor)?;
        all.extend(rows);
        if more.is_none() {
            return Ok(all);
        }
        cursor = more;
    }
}

/// Returns all sessions.
pub(crate) fn all_sessions(client: &Client) -> Outcome<Vec<SessionRow>> {
    pages(|cursor| {
        let ask = SessionList {
            cursor,
            ..SessionList::new()
        };
        let answer = client.call(ask)?;
        Ok((answer.sessions, answer.more))
    })
}

/// Returns a session's name for people: its label if it has one.
pub(crate) fn label(client: &Client, session: &SessionId) -> Outcome<String> {
    let rows = all_sessions(client)?;
    let row = rows.iter().find(|row| row.session == *session);
    let label = row.and_then(|row| row.label.as_deref());
    Ok(crate::text::called(session, label))
}

/// Parses a session's id from the command line.
pub(crate) fn session(name: &str) -> Result<SessionId, String> {
    SessionId::new(name).map_err(|error| error.to_string())
}

/// Returns the session that a user means: by id, by label, or by a unique
/// beginning of either. The daemon resolves names in queries itself. A request
/// that changes something must name a session in full (SES-3).
pub(crate) fn meant(client: &Client, said: &SessionId) -> Outcome<SessionId> {
    let sessions = all_sessions(client)?;
    let said = said.as_str();
    let label = |row: &SessionRow| row.label.clone().unwrap_or_default();
    let exact = sessions
        .iter()
        .find(|row| row.session.as_str() == said)
        .or_else(|| sessions.iter().find(|row| label(row) == said));
    if let Some(row) = exact {
        return Ok(row.session.clone());
    }
    let begin: Vec<&SessionRow> = sessions
        .iter()
        .filter(|row| row.session.as_str().starts_with(said) || label(row).starts_with(said))
        .collect();
    let said = crate::text::escaped(said, 60);
    match begin.as_slice() {
        [only] => Ok(only.session.clone()),
        [] => Err(Failure::No(format!(
            "there is no session {said}; `touchmark sessions` has them"
        ))),
        several => {
            let names: Vec<String> = several.iter().take(5).map(|row| label(row)).collect();
            Err(Failure::No(format!(
                "several sessions begin with {said}: {}",
                names.join(", ")
            )))
        }
    }
}

/// Returns this command's introduction to the daemon.
pub(crate) fn hello() -> Hello {
    Hello {
        role: Some(Role::Tool),
        ..Hello::new("touchmark", env!("CARGO_PKG_VERSION"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_relative_to_where_one_stands_and_else_to_the_workspace() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let (root, elsewhere) = (home.join("w"), home.join("e"));
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&root, home.join("link")).unwrap();
        let said = |file: &str, current: &Path| spoken(Path::new(file), current, &root);
        assert_eq!(said("a", &root.join("src")), root.join("src/a"));
        assert_eq!(said("../a", &root.join("src")), root.join("a"));
        assert_eq!(said("src/a", &elsewhere), Path::new("src/a"));
        let linked = home.join("link/src/a");
        assert_eq!(
            said(linked.to_str().unwrap(), &elsewhere),
            root.join("src/a")
        );
        assert_eq!(said("/etc/passwd", &root), Path::new("/etc/passwd"));
    }
}
