//! The systemd service of a workspace: its files, and its state in the manager.

mod manager;
pub(crate) mod units;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use touchmark_client::Environment;
use touchmark_client::proto::{Places, native};

use crate::daemon::doctor::Finding;
use crate::output::{Failure, Outcome};
use crate::system::files::private_directory;

pub(crate) use manager::Manager;
use units::Instance;

/// Variables that move the base directories.
const PLACES: [&str; 3] = ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"];

/// The service of one workspace.
#[derive(Debug)]
pub(crate) struct Service<'e> {
    environment: &'e Environment,
    /// The workspace, which may no longer exist.
    pub(crate) workspace: PathBuf,
    pub(crate) places: Places,
}

impl<'e> Service<'e> {
    /// Returns the service of a workspace, given by its canonical path.
    pub(crate) fn of(environment: &'e Environment, workspace: PathBuf) -> Self {
        Self {
            places: environment.places(&workspace),
            workspace,
            environment,
        }
    }

    /// Returns all installed services.
    pub(crate) fn all(environment: &'e Environment) -> Vec<Self> {
        let entries = fs::read_dir(environment.base.services_directory());
        let mut all: Vec<Self> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(Places::is_key))
            .filter_map(|entry| fs::read(entry.path()).ok())
            .map(|note| {
                let workspace = PathBuf::from(native::owned(note));
                Self::of(environment, workspace)
            })
            .collect();
        all.sort_by(|a, b| a.workspace.cmp(&b.workspace));
        all
    }

    /// Returns whether the service is installed.
    pub(crate) fn is_installed(&self) -> bool {
        self.places.service.exists()
    }

    /// Returns the name of the socket unit.
    pub(crate) fn socket(&self) -> String {
        units::socket(&self.places.key)
    }

    /// Returns the name of the daemon's unit.
    pub(crate) fn daemon(&self) -> String {
        units::service(&self.places.key)
    }

    /// Returns the directory of this user's units.
    fn units(&self) -> PathBuf {
        self.environment.base.config.join("systemd/user")
    }

    fn drop_in(&self) -> PathBuf {
        let directory = format!("{}.d", self.daemon());
        self.units().join(directory).join(units::DROP_IN)
    }

    /// Writes all files and makes the manager listen. A running daemon must
    /// have been stopped before.
    pub(crate) fn install(&self, manager: &Manager) -> Outcome {
        let base = &self.environment.base;
        let listened_on = self.places.usual_socket();
        if self.places.socket != listened_on {
            return Err(Failure::Usage(format!(
                "{} is set: systemd would listen at {}, clients look for {}",
                touchmark_client::proto::places::SOCKET_VARIABLE,
                listened_on.display(),
                self.places.socket.display()
            )));
        }
        let program = std::env::current_exe().context("find this program")?;
        let drop_in = units::drop_in(&Instance {
            workspace: &self.workspace,
            program: &program,
            writes: vec![base.state_directory(), base.runtime_directory()],
            reads: vec![base.config.clone()],
            environment: PLACES
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?)))
                .filter(|(_, value)| !value.is_empty())
                .collect(),
        })
        .map_err(Failure::Usage)?;
        // Directories that the unit may write to must exist when the daemon
        // starts.
        private(&base.state_directory())?;
        private(&base.runtime_directory())?;
        let packaged = self.is_packaged(manager)?;
        for (name, text) in [units::SOCKET, units::SERVICE] {
            let own = self.units().join(name);
            if packaged {
                remove(&own)?;
            } else {
                write(&own, text.as_bytes())?;
            }
        }
        write(&self.drop_in(), drop_in.as_bytes())?;
        // Written last, since clients leave the daemon to systemd once it
        // exists.
        write(&self.places.service, &native::bytes(&self.workspace))?;
        manager.order(&["daemon-reload"])?;
        for unit in [self.socket(), self.daemon()] {
            let state = manager.property(Some(&unit), "LoadState")?;
            if state != "loaded" {
                return Err(manager::failure(
                    format!("{unit} is {state}: written to {}", self.units().display()),
                    "the manager may look elsewhere: compare `systemctl --user show --property=UnitPath`",
                ));
            }
        }
        manager.order(&["enable", &self.socket()])?;
        // A running socket continues. A restart would remove it.
        manager.order(&["start", &self.socket()])
    }

    /// Removes all files. Returns `false` if nothing was installed.
    pub(crate) fn uninstall(&self, manager: &Manager) -> Outcome<bool> {
        if !self.is_installed() && !self.drop_in().exists() {
            return Ok(false);
        }
        let (socket, daemon) = (self.socket(), self.daemon());
        // The socket first, since it would start the daemon again.
        for unit in [&socket, &daemon] {
            if manager.property(Some(unit), "ActiveState")? != "inactive" {
                manager.order(&["stop", unit])?;
                // An error is fine: a unit that has not failed has nothing to
                // reset.
                let _ = manager.order(&["reset-failed", unit]);
            }
        }
        if manager.property(Some(&socket), "LoadState")? == "loaded" {
            manager.order(&["--quiet", "disable", &socket])?;
        }
        remove(&self.drop_in())?;
        remove(&self.places.service)?;
        if Self::all(self.environment).is_empty() {
            for (name, _) in [units::SOCKET, units::SERVICE] {
                remove(&self.units().join(name))?;
            }
        }
        manager.order(&["daemon-reload"])?;
        Ok(true)
    }

    /// Returns whether identical units are in another directory of the manager.
    fn is_packaged(&self, manager: &Manager) -> Outcome<bool> {
        let path = manager.property(None, "UnitPath")?;
        let own = self.units();
        let here = |directory: &Path| {
            [units::SOCKET, units::SERVICE].iter().all(|(name, text)| {
                fs::read(directory.join(name)).is_ok_and(|found| found == text.as_bytes())
            })
        };
        Ok(path
            .split_whitespace()
            .map(Path::new)
            .any(|directory| directory != own && here(directory)))
    }

    /// Returns findings about the service, for `touchmark doctor`.
    pub(crate) fn examine(&self) -> Vec<Finding> {
        const CHECK: &str = "service";
        const AGAIN: &str = "`touchmark service install` rewrites it";
        let mut found = Vec::new();
        if self.is_installed() {
            found.push(match self.defect() {
                Some(defect) => Finding::wrong(CHECK, defect, AGAIN),
                None => Finding::good(CHECK, format!("systemd listens: {}", self.socket())),
            });
        } else if self.drop_in().exists() {
            let left = self.drop_in().display().to_string();
            found.push(Finding::wrong(
                CHECK,
                format!("{left} belongs to no installed service"),
                AGAIN,
            ));
        }
        found.extend(
            Self::all(self.environment)
                .iter()
                .filter(|service| !service.workspace.exists())
                .map(|service| {
                    let gone = service.workspace.display();
                    Finding::note(
                        CHECK,
                        format!("{gone} no longer exists, but its service is installed"),
                        "`touchmark service uninstall --workspace` with that path",
                    )
                }),
        );
        found
    }

    fn defect(&self) -> Option<String> {
        let note = fs::read(&self.places.service).unwrap_or_default();
        if note != *native::bytes(&self.workspace) {
            let note = self.places.service.display();
            return Some(format!("{note} names another workspace"));
        }
        if !self.drop_in().exists() {
            return Some(format!("{} is missing", self.drop_in().display()));
        }
        let manager = match Manager::reach() {
            Ok(manager) => manager,
            Err(failure) => return Some(failure.to_string()),
        };
        let state = |unit: &str, name: &str| manager.property(Some(unit), name).ok();
        for (unit, name, wanted) in [
            (self.daemon(), "LoadState", "loaded"),
            (self.socket(), "ActiveState", "active"),
        ] {
            match state(&unit, name) {
                Some(state) if state == wanted => {}
                state => return Some(format!("{unit} is {}", state.unwrap_or_default())),
            }
        }
        // The property is `{ path=/usr/bin/touchmark ; argv[]=...`.
        let start = state(&self.daemon(), "ExecStart").unwrap_or_default();
        let program = start
            .split_once("path=")
            .and_then(|(_, rest)| rest.split_once(" ; "))
            .map(|(program, _)| program)?;
        (!Path::new(program).exists())
            .then(|| format!("the program that it starts no longer exists: {program}"))
    }
}

fn private(directory: &Path) -> Outcome {
    let made = private_directory().recursive(true).create(directory);
    Ok(made.with_context(|| format!("make {}", directory.display()))?)
}

/// Writes a file completely or not at all.
fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let written = || -> anyhow::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    Ok(written().with_context(|| format!("write {}", path.display()))?)
}

/// Removes a file, and its directory if that is then empty.
fn remove(path: &Path) -> Outcome {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(anyhow::Error::new(error)
                .context(format!("remove {}", path.display()))
                .into());
        }
        _ => {}
    }
    if let Some(directory) = path.parent() {
        let _others_are_there = fs::remove_dir(directory);
    }
    Ok(())
}
