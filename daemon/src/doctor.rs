//! Checks of the daemon's surroundings, made without a daemon (`touchmark
//! doctor`). Nothing is started, created or repaired here.

#[cfg_attr(not(target_os = "linux"), path = "doctor/machine/unsupported.rs")]
mod machine;
mod places;

use std::borrow::Cow;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use touchmark_proto::Places;

use crate::config::{Case, Config, Configured, Endpoint, probe_case_insensitive};
use crate::system::process::most_descriptors;
use crate::telemetry::Settings;
use crate::{store, watch};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing is wrong.
    Good,
    /// The user should know about it; no action is needed.
    Note,
    /// Something is wrong.
    Wrong,
}

impl Level {
    /// Returns the name that is used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Wrong => "wrong",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable name of the check.
    pub check: Cow<'static, str>,
    /// The outcome of the check.
    pub level: Level,
    /// What was found, for people.
    pub says: String,
    /// What the user can do; empty if nothing needs to be done.
    pub hint: String,
}

impl Finding {
    /// Returns a finding that nothing is wrong.
    pub fn good(check: impl Into<Cow<'static, str>>, says: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            level: Level::Good,
            says: says.into(),
            hint: String::new(),
        }
    }

    /// Returns a finding that the user should know about.
    pub fn note(
        check: impl Into<Cow<'static, str>>,
        says: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            check: check.into(),
            level: Level::Note,
            says: says.into(),
            hint: hint.into(),
        }
    }

    /// Returns a finding that something is wrong.
    pub fn wrong(
        check: impl Into<Cow<'static, str>>,
        says: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            check: check.into(),
            level: Level::Wrong,
            says: says.into(),
            hint: hint.into(),
        }
    }
}

/// Checks everything around the daemon of a canonical workspace, whether it
/// runs or not. The order is the one in which a start would meet the problems.
pub fn examine(workspace: &Path, places: &Places) -> Vec<Finding> {
    let (config, configured) = configuration(places);
    let mut found = vec![
        places::workspace(workspace),
        file_system(workspace),
        configured,
        case(workspace, &config),
        places::private("runtime directory", &places.runtime),
        places::socket_path(&places.socket),
        places::lock(&places.lock),
        places::private("state directory", &places.state),
    ];
    found.extend(places::room("runtime space", &places.runtime, 1 << 20));
    found.extend(places::room("state space", &places.state, 32 << 20));
    found.push(kept(&places.state));
    found.extend(places::set_aside(&places.state));
    found.push(hooks(&places.state));
    found.extend(telemetry(&config));
    found.push(machine::watches());
    found.push(machine::instances());
    found.push(machine::queue());
    found.push(descriptors(config.connections));
    found
}

/// Returns the configuration without its wrong entries, and the finding about
/// it.
fn configuration(places: &Places) -> (Config, Finding) {
    const CHECK: &str = "configuration";
    const HINT: &str = "`touchmark config edit` opens your file, `--here` the workspace's; the daemon \
                        runs without what is named here";
    match Config::of(places, None) {
        Ok(Configured { config, wrong, .. }) if wrong.is_empty() => {
            (config, Finding::good(CHECK, "understood"))
        }
        Ok(configured) => (
            configured.config.clone(),
            Finding::wrong(CHECK, configured.refused().unwrap_or_default(), HINT),
        ),
        Err(error) => (
            Config::default(),
            Finding::wrong(CHECK, error.to_string(), HINT),
        ),
    }
}

fn file_system(workspace: &Path) -> Finding {
    const CHECK: &str = "file system";
    match watch::silent_file_system(workspace) {
        None => Finding::good(CHECK, "its changes make events"),
        Some(cause) => Finding::wrong(
            CHECK,
            cause,
            "answers stay right, since files are read for each query, but cost more, and \
             changes are not pushed; a workspace on a local disk has neither limit",
        ),
    }
}

/// Compares the limit of open files with what a daemon with `connections`
/// connections needs.
fn descriptors(connections: u32) -> Finding {
    const CHECK: &str = "open files";
    match most_descriptors() {
        Some(most) if most < u64::from(connections) => Finding::note(
            CHECK,
            format!("{most} at most, limits.connections is {connections}"),
            "raise the hard limit (`ulimit -Hn`), or lower limits.connections",
        ),
        Some(most) => Finding::good(CHECK, format!("{most} at most")),
        None => Finding::good(CHECK, "no limit"),
    }
}

/// Counts the hook events that got no answer in time and that no later event
/// has caught up on (HOOK-2).
fn hooks(state: &Path) -> Finding {
    const CHECK: &str = "hooks";
    match crate::hooks::waiting(state) {
        0 => Finding::good(CHECK, "no missed hook event is pending"),
        count => Finding::note(
            CHECK,
            format!("{count} got no answer in time; the next event makes up for them"),
            "if no daemon runs, see the checks below; `touchmark stats` counts all there were",
        ),
    }
}

/// Checks that something listens where records are sent (TEL-1). Nothing is
/// sent. `None` while telemetry is off.
fn telemetry(config: &Config) -> Option<Finding> {
    const CHECK: &str = "telemetry";
    const HINT: &str = "start the collector, or correct `telemetry.endpoint`; records wait in the \
                        log meanwhile";
    let settings = match Settings::of(config) {
        Ok(settings) => settings?,
        Err(wrong) => {
            return Some(Finding::wrong(
                CHECK,
                wrong,
                "correct the variable, then restart the daemon, or set `telemetry.endpoint`",
            ));
        }
    };
    let endpoint = settings.endpoint();
    let address = endpoint.as_str();
    Some(match connects(endpoint) {
        Ok(()) => Finding::good(CHECK, format!("{address} accepts connections")),
        Err(error) => Finding::wrong(CHECK, format!("{address}: {error}"), HINT),
    })
}

/// Tries to connect to one of an endpoint's addresses.
fn connects(endpoint: &Endpoint) -> std::io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let mut last = std::io::Error::other("the name has no address");
    for address in (endpoint.host(), endpoint.port()).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn unknown(check: &'static str) -> Finding {
    Finding::note(check, "the system does not say", "")
}

fn case(workspace: &Path, config: &Config) -> Finding {
    const CHECK: &str = "case of names";
    let insensitive = probe_case_insensitive(workspace);
    let probed = if insensitive {
        "names that differ in case are one file here"
    } else {
        "names that differ in case are different files here"
    };
    match config.case {
        Some(case) if (case == Case::Insensitive) != insensitive => Finding::wrong(
            CHECK,
            format!("{probed}, the configuration says otherwise"),
            "take the key `case` out of the configuration",
        ),
        _ => Finding::good(CHECK, probed),
    }
}

/// Checks that the store can be read and is not damaged.
fn kept(state: &Path) -> Finding {
    const CHECK: &str = "store";
    match store::examine(state) {
        Ok(None) => Finding::good(CHECK, "none yet"),
        Ok(Some(bytes)) => Finding::good(CHECK, format!("whole, {} KiB", bytes.div_ceil(1024))),
        Err(error) => Finding::wrong(CHECK, error.to_string(), error.hint()),
    }
}
