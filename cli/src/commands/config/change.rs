//! Changes of a configuration file. A file is written only if what it then says
//! is understood.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use touchmark_client::Workspace;
use touchmark_client::proto::daemon::Status;
use touchmark_client::proto::off::UsersOnly;

use super::document;
use crate::context::Context;
use crate::daemon::config::{Config, ConfigError, Part, Whose};
use crate::off::by_the_user;
use crate::output::{Failure, Outcome};
use crate::settings::SettingsFile;
use crate::text::{directory, plural};
use crate::{confirm, daemon, editor};

/// A configuration file that is to be changed.
struct Target<'a> {
    context: &'a Context,
    workspace: &'a Workspace,
    whose: Whose,
    path: PathBuf,
    file: SettingsFile,
    /// The configuration that the file is applied to.
    below: Config,
    before: Option<Vec<u8>>,
}

pub(super) fn set(
    context: &Context,
    workspace: &Workspace,
    key: &str,
    typed: &str,
    here: bool,
) -> Outcome {
    let target = Target::new(context, workspace, here)?;
    let text = target.text()?;
    // The refusal of the first reading: as a value of TOML if the argument is one,
    // else as a text.
    let mut refused = None;
    for value in document::meant(typed) {
        let after = document::set(text, key, &value)?;
        let wrong = target.wrong(&after);
        match wrong.into_iter().find(|wrong| concerns(wrong, key)) {
            None => return target.write(&after, Some(key), &format!("`{key}` is {value}")),
            Some(wrong) => {
                refused.get_or_insert(wrong);
            }
        }
    }
    Err(Failure::Usage(
        refused.map_or_else(String::new, |wrong| wrong.reason),
    ))
}

pub(super) fn unset(context: &Context, workspace: &Workspace, key: &str, here: bool) -> Outcome {
    let target = Target::new(context, workspace, here)?;
    match document::unset(target.text()?, key)? {
        Some(after) => target.write(&after, Some(key), &format!("`{key}` is no longer set")),
        None => Err(Failure::No(format!(
            "`{key}` is not set in {}",
            directory(&target.path)
        ))),
    }
}

/// Opens a copy in the user's editor, and replaces the file by it once it is
/// right.
pub(super) fn edit(context: &Context, workspace: &Workspace, here: bool) -> Outcome {
    let target = Target::new(context, workspace, here)?;
    let mut copy = tempfile::Builder::new().suffix(".toml").tempfile()?;
    copy.write_all(target.before.as_deref().unwrap_or_default())?;
    copy.flush()?;
    let mut line = 1;
    loop {
        editor::open(copy.path(), line)?;
        let after = std::fs::read(copy.path())?;
        if target.before.as_deref().unwrap_or_default() == after {
            return context.say("nothing was changed");
        }
        let after = String::from_utf8(after)
            .map_err(|_| Failure::No("nothing was changed: the text is not UTF-8".into()))?;
        let wrong = target.wrong(&after);
        let Some(first) = wrong.first() else {
            return target.write(&after, None, "saved");
        };
        for wrong in &wrong {
            context.note(&format!("line {}: {}", wrong.line, wrong.reason));
        }
        line = u32::try_from(first.line).unwrap_or(1).max(1);
        let again = std::io::stdin().is_terminal() && confirm::agreed("Edit it again?", "")?;
        if !again {
            return Err(Failure::No("nothing was changed".into()));
        }
    }
}

/// Returns whether an entry that is wrong is the key's, or hides it.
fn concerns(wrong: &ConfigError, key: &str) -> bool {
    match wrong.part {
        Part::File => true,
        Part::Unknown => false,
        Part::Key(name) => name == key,
    }
}

impl<'a> Target<'a> {
    fn new(context: &'a Context, workspace: &'a Workspace, here: bool) -> Outcome<Self> {
        let places = &workspace.places;
        if here {
            context.check_project()?;
        }
        by_the_user(workspace, context, !here, UsersOnly::Config)?;
        let (whose, path, project) = match here {
            true => (
                Whose::Repository,
                &places.workspace_config,
                Some(&*workspace.root),
            ),
            false => (Whose::User, &places.config, None),
        };
        let file = SettingsFile::of(path, project)?;
        let before = file.read()?;
        // A repository's file tightens what the user's says.
        let mut below = Config::default();
        if here && let Some(users) = SettingsFile::of(&places.config, None)?.read()? {
            below.apply(&places.config, &users, Whose::User);
        }
        Ok(Self {
            context,
            workspace,
            whose,
            path: path.clone(),
            file,
            below,
            before,
        })
    }

    fn text(&self) -> Outcome<&str> {
        let bytes = self.before.as_deref().unwrap_or_default();
        str::from_utf8(bytes)
            .map_err(|_| Failure::No(format!("{} is not UTF-8", directory(&self.path))))
    }

    fn wrong(&self, text: &str) -> Vec<ConfigError> {
        let mut config = self.below.clone();
        config.apply(&self.path, text.as_bytes(), self.whose).wrong
    }

    /// Writes the file, and has the daemons read it again. `key` is the key that
    /// was changed; `None` for an edit of the whole file.
    fn write(&self, after: &str, key: Option<&str>, what: &str) -> Outcome {
        self.file
            .replace(self.before.as_deref(), Some(after.as_bytes()))?;
        let daemons = self.read_again();
        let waits = self
            .below
            .settings()
            .any(|one| Some(one.key) == key && one.at_restart);
        let when = match (daemons, waits) {
            (0, _) => String::new(),
            // A daemon leaves all as it was while anything is wrong there.
            _ if self.whose == Whose::User && !self.wrong(after).is_empty() => {
                ": running daemons wait until what else is wrong there is corrected; `touchmark \
                 config` names it"
                    .to_owned()
            }
            (_, true) => ": `touchmark restart` puts it in effect".to_owned(),
            (count, false) => {
                let daemons = plural(count, "running daemon has", "running daemons have");
                format!(": {daemons} been told")
            }
        };
        let file = self.path.to_string_lossy();
        let facts = json!({ "file": file, "daemons": daemons, "atRestart": waits });
        let file = directory(&self.path);
        self.context
            .tell(&facts, &format!("{what} in {file}{when}"))
    }

    /// Tells the running daemons that read the file to read it again. Returns
    /// their number.
    fn read_again(&self) -> u64 {
        let all = self.whose == Whose::User;
        let clients = daemon::running(self.workspace, self.context, all);
        let told = clients.iter().filter(|client| {
            let status = client.call(Status {}).ok();
            let pid = status.and_then(|status| Pid::from_raw(status.pid.try_into().ok()?));
            // A daemon outside this container has another process id here.
            pid.is_some_and(|pid| kill_process(pid, Signal::HUP).is_ok())
        });
        told.count() as u64
    }
}
