//! systemd's user manager, through its own commands.

use std::process::{Command, Stdio};

use crate::output::{Failure, Outcome};

/// A hint for when there is no user manager.
const NONE: &str = "log in with a session of your own (not by `su`), or have root run `loginctl enable-linger USER`; \
                    without a service, clients start the daemon by themselves";

/// The manager of this user's units.
#[derive(Debug)]
pub(crate) struct Manager;

impl Manager {
    /// Returns the user manager, if one answers.
    ///
    /// # Errors
    /// No manager answers.
    pub(crate) fn reach() -> Outcome<Self> {
        let asked = call("systemctl", &["--user", "show", "--property=Version"]);
        asked.map(|_| Self).map_err(|said| {
            failure(
                format!("no systemd manages this user's services: {said}"),
                NONE,
            )
        })
    }

    /// Runs a `systemctl` command.
    ///
    /// # Errors
    /// The command's error message.
    pub(crate) fn order(&self, arguments: &[&str]) -> Outcome {
        self.ask(arguments).map(drop)
    }

    /// Returns a property of a unit; for `None` a property of the manager.
    ///
    /// # Errors
    /// The command's error message.
    pub(crate) fn property(&self, unit: Option<&str>, name: &str) -> Outcome<String> {
        let name = format!("--property={name}");
        let mut arguments = vec!["show", "--value", name.as_str()];
        arguments.extend(unit);
        Ok(self.ask(&arguments)?.trim_end().to_owned())
    }

    fn ask(&self, arguments: &[&str]) -> Outcome<String> {
        let arguments = [&["--user", "--no-pager"], arguments].concat();
        call("systemctl", &arguments).map_err(|said| {
            let hint = "see `systemctl --user status` and `journalctl --user` of that unit";
            failure(format!("systemctl {}: {said}", arguments.join(" ")), hint)
        })
    }

    /// Returns whether the manager stays after the user's last session ends;
    /// `None` if that is not known.
    pub(crate) fn lingers(&self) -> Option<bool> {
        let user = rustix::process::getuid().as_raw().to_string();
        let said = call(
            "loginctl",
            &["show-user", "--property=Linger", "--value", &user],
        );
        match said.ok()?.trim_ascii() {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }
}

/// Returns an error of systemd.
pub(super) fn failure(message: String, hint: &'static str) -> Failure {
    Failure::Coded {
        code: 3,
        message,
        hint,
    }
}

/// Runs a command, and returns what it printed.
///
/// # Errors
/// The last line of its error output, or why it does not run.
fn call(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Err(last.map_or_else(|| output.status.to_string(), str::to_owned))
}
