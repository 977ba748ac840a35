//! systemd's user manager, through its own commands.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

use crate::output::{Failure, Outcome};
use crate::system::terminal::user;

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
    /// [`Failure::Manager`]: no manager answers.
    pub(crate) fn reach() -> Outcome<Self> {
        let failed = |said: &str| Failure::Manager {
            message: format!("no systemd manages this user's services: {said}"),
            hint: NONE,
        };
        let asked = call("systemctl", &["--user", "show", "--property=Version"]);
        match asked {
            Ok(output) if output.status.success() => Ok(Self),
            Ok(output) => Err(failed(&words(&output))),
            Err(error) => Err(failed(&format!("systemctl: {error}"))),
        }
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
        let failed = |said: &str| Failure::Manager {
            message: format!("systemctl {}: {said}", arguments.join(" ")),
            hint: "see `systemctl --user status` and `journalctl --user` of that unit",
        };
        match call("systemctl", &arguments) {
            Ok(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(output) => Err(failed(&words(&output))),
            Err(error) => Err(failed(&error.to_string())),
        }
    }

    /// Returns whether the manager stays after the user's last session ends;
    /// `None` if that is not known.
    pub(crate) fn lingers(&self) -> Option<bool> {
        let user = user()?.to_string();
        let said = call(
            "loginctl",
            &["show-user", "--property=Linger", "--value", &user],
        );
        let said = said.ok().filter(|output| output.status.success())?;
        match said.stdout.trim_ascii() {
            b"yes" => Some(true),
            b"no" => Some(false),
            _ => None,
        }
    }
}

fn call(program: &str, arguments: &[impl AsRef<OsStr>]) -> std::io::Result<Output> {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
}

/// Returns the last line of a command's error output.
fn words(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| output.status.to_string(), str::to_owned)
}
