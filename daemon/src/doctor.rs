//! What can be wrong around a daemon, found without one (`touchmark doctor`).
//! Nothing is started, made or mended here.

#[cfg_attr(not(target_os = "linux"), path = "doctor/machine/unsupported.rs")]
mod machine;
mod places;

use std::borrow::Cow;
use std::path::Path;

use touchmark_proto::Places;

use crate::config::{Case, Config, Configured, probe_case_insensitive};
use crate::system::process::most_descriptors;
use crate::{store, watch};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// All is well.
    Good,
    /// Worth knowing; nothing to do.
    Note,
    /// Something is wrong.
    Wrong,
}

impl Level {
    /// As it is spelled in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Wrong => "wrong",
        }
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: a stable name.
    pub check: Cow<'static, str>,
    /// How it ended.
    pub level: Level,
    /// What was found.
    pub says: String,
    /// What to do; empty where there is nothing to do.
    pub hint: String,
}

impl Finding {
    /// All is well.
    pub fn good(check: impl Into<Cow<'static, str>>, says: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            level: Level::Good,
            says: says.into(),
            hint: String::new(),
        }
    }

    /// Worth knowing.
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

    /// Something is wrong.
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

/// Looks at everything around the daemon of a canonical workspace, whether or
/// not it runs; in the order in which a start would come upon it.
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
    found.push(machine::watches());
    found.push(machine::instances());
    found.push(machine::queue());
    found.push(descriptors(config.connections));
    found
}

/// The configuration, without what is wrong in it.
fn configuration(places: &Places) -> (Config, Finding) {
    const CHECK: &str = "configuration";
    const HINT: &str = "correct the file, then send the daemon SIGHUP, or `touchmark restart`; the \
                        daemon runs without what is named here";
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
            "answers stay right, since files are read when asked for, but cost more and come \
             without a push; a workspace on a local disk has neither",
        ),
    }
}

/// Open files that a daemon with that many connections would need.
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

/// Hooks whose agents went on without an answer, and that nothing has made up
/// for yet (HOOK-2).
fn hooks(state: &Path) -> Finding {
    const CHECK: &str = "hooks";
    match crate::hooks::waiting(state) {
        0 => Finding::good(CHECK, "none waits to be made up for"),
        count => Finding::note(
            CHECK,
            format!("{count} got no answer in time; the next event makes up for them"),
            "if no daemon runs, see the checks below; `touchmark stats` counts all there were",
        ),
    }
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

/// The store's own word about itself.
fn kept(state: &Path) -> Finding {
    const CHECK: &str = "store";
    match store::examine(state) {
        Ok(None) => Finding::good(CHECK, "none yet"),
        Ok(Some(bytes)) => Finding::good(CHECK, format!("whole, {} KiB", bytes.div_ceil(1024))),
        Err(error) => Finding::wrong(CHECK, error.to_string(), error.hint()),
    }
}
