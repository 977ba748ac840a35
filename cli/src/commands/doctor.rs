//! `touchmark doctor`: lists problems, and how to fix them.

mod agents;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use touchmark_client::proto::Places;
use touchmark_client::proto::daemon::{Degraded, Savings, Stats, Status, StatusReport};
use touchmark_client::{Error, Hello, Workspace, find};

use crate::context::{Context, hello};
use crate::daemon::doctor::{Finding, examine};
use crate::findings;
use crate::hints;
use crate::off;
use crate::output::Outcome;
use crate::project;
use crate::service::Service;
use crate::settings;
use crate::text::{MAX_NAME, count, escaped, path};

/// How long the daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) fn run(context: &Context) -> Outcome {
    let (root, places) = workspace(context)?;
    let meant = Workspace {
        root: root.clone(),
        places: places.clone(),
    };
    let mut found = examine(&root, &places);
    let service = Service::of(&context.environment, root.clone());
    found.extend(service.examine());
    found.extend(project::finding(&meant));
    found.extend(passed_over(context, &root));
    let asked = ask(&meant);
    let status = asked.as_ref().ok().map(|(status, _)| status);
    let switched = status.and_then(|status| status.off.clone());
    found.extend(off::findings(
        &switched.unwrap_or_else(|| off::local(&meant)),
    ));
    found.extend(agents::examine(context, &root, status));
    let places = settings::Places::of(&context.environment, &root);
    found.extend(places.map(|places| places.examine()).unwrap_or_default());
    found.extend(daemon(&meant, asked));
    match context.global.json {
        true => context.json(&json!({
            "workspace": root.to_string_lossy(),
            "wrong": findings::wrong(&found),
            "checks": findings::json(&found),
        }))?,
        false => findings::print(context, &found)?,
    }
    findings::verdict(&found)
}

/// Returns the workspace and its places, even if no socket can be created
/// there.
fn workspace(context: &Context) -> Outcome<(PathBuf, Places)> {
    match context.workspace() {
        Ok(workspace) => Ok((workspace.root, workspace.places)),
        Err(failure) => {
            let named = match &context.global.workspace {
                Some(directory) => directory.canonicalize(),
                None => std::env::current_dir(),
            };
            // Another problem than a missing workspace directory.
            let root = named.ok().filter(|root| root.is_dir()).ok_or(failure)?;
            let places = context.environment.places(&root);
            Ok((root, places))
        }
    }
}

/// Requests the daemon's status and counts, if a daemon runs.
fn ask(workspace: &Workspace) -> Result<(StatusReport, Savings), Error> {
    if workspace.is_asleep() {
        // Connecting would make systemd start the daemon.
        let socket = workspace.socket();
        return Err(Error::NoDaemon { socket });
    }
    let patient = Hello {
        deadline: PATIENCE,
        ..hello()
    };
    let client = workspace.connect(&patient)?;
    Ok((client.call(Status {})?, client.call(Stats::default())?))
}

/// Returns findings on whether the daemon answers, and on its answer.
fn daemon(workspace: &Workspace, asked: Result<(StatusReport, Savings), Error>) -> Vec<Finding> {
    let places = &workspace.places;
    const CHECK: &str = "daemon";
    if workspace.is_asleep() {
        return vec![Finding::good(CHECK, "none runs; systemd starts one")];
    }
    match asked {
        Ok((status, stats)) => {
            let mut found = reported(&status);
            found.extend(workspace.is_elsewhere().then(|| {
                Finding::wrong(
                    CHECK,
                    format!(
                        "process {} runs in another mount namespace, such as a sandbox: it may see other files than you",
                        workspace.holder().unwrap_or_default()
                    ),
                    "`touchmark stop`: the next command starts one here",
                )
            }));
            found.extend(unanswered(&stats));
            found.extend(unseen(&status));
            found
        }
        Err(Error::NoDaemon { .. }) if let Some(pid) = workspace.holder() => vec![Finding::wrong(
            CHECK,
            format!(
                "process {pid} holds the store, and its socket cannot be reached from here: it may run in a sandbox"
            ),
            format!("`touchmark stop --pid {pid}`: the next command starts one here"),
        )],
        Err(Error::NoDaemon { .. }) if is_there(places) => vec![Finding::wrong(
            CHECK,
            format!(
                "no daemon listens at {}: one was killed and left its socket",
                places.socket.display()
            ),
            "`touchmark start`: the next daemon replaces it",
        )],
        Err(Error::NoDaemon { .. }) if !project::is_one(workspace) => {
            vec![Finding::good(CHECK, "none runs")]
        }
        Err(Error::NoDaemon { .. }) => vec![Finding::good(CHECK, "none runs; commands start one")],
        Err(error @ Error::Deadline { .. }) => vec![Finding::wrong(
            CHECK,
            format!("a daemon runs but does not answer: {error}"),
            "see `touchmark logs`; if it does not recover, kill its process (the number is in the \
             lock file): nothing that was answered is lost",
        )],
        Err(error) => vec![Finding::wrong(CHECK, error.to_string(), hints::of(&error))],
    }
}

/// Returns a finding about hooks that got no answer in time; `None` if there
/// were none.
fn unanswered(stats: &Savings) -> Option<Finding> {
    (stats.unanswered_hooks > 0).then(|| {
        Finding::note(
            "hooks in time",
            format!(
                "{} got no answer in time, in all recorded sessions",
                count(stats.unanswered_hooks, "hook")
            ),
            "their answers were reported later; to give hooks more time, set TOUCHMARK_HOOK_MS \
             (in milliseconds) in the agent's environment",
        )
    })
}

/// Returns a finding about commands of which a witness has not seen all writes;
/// `None` if there were none.
fn unseen(status: &StatusReport) -> Option<Finding> {
    let newest = status.witnessed.iter().filter_map(|one| one.gap.as_ref());
    let newest = newest.max_by_key(|gap| gap.at)?;
    let commands = status.witnessed.iter().map(|one| one.incomplete).sum();
    Some(Finding::note(
        "witness",
        format!(
            "not all writes of {} were seen, the last of {}: {}",
            count(commands, "command"),
            escaped(&newest.command, 20),
            escaped(&newest.why, MAX_NAME)
        ),
        "what changed meanwhile may be theirs; docs/witness.md has the reasons",
    ))
}

/// Returns a finding about another user's mark that would have made another
/// directory the workspace (SEC-6).
fn passed_over(context: &Context, root: &Path) -> Option<Finding> {
    let (mark, why) = find::passed_over(root, &context.environment)?;
    let list = context.environment.base.trusted_file();
    Some(Finding::note(
        "marks of others",
        format!("{} is ignored: {why}", mark.display()),
        format!("to use it, add its directory to {}", list.display()),
    ))
}

/// Returns a finding about configuration that the daemon does not apply.
fn not_in_force(status: &StatusReport) -> Option<Finding> {
    const CHECK: &str = "configuration in force";
    let stated = &status.configuration;
    if let Some(reason) = &stated.refused {
        return Some(Finding::wrong(
            CHECK,
            format!("the daemon does not apply all of it: {reason}"),
            format!("correct the file, then `kill -HUP {}`", status.pid),
        ));
    }
    (!stated.at_restart.is_empty()).then(|| {
        Finding::note(
            CHECK,
            format!(
                "has changed since the start: {}",
                stated.at_restart.join(", ")
            ),
            "`touchmark restart`: state and open edits survive",
        )
    })
}

fn is_there(places: &Places) -> bool {
    match fs::symlink_metadata(&places.socket) {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn reported(status: &StatusReport) -> Vec<Finding> {
    let own = env!("CARGO_PKG_VERSION");
    let mut found = vec![if status.version == own {
        Finding::good(
            "daemon",
            format!("touchmark {own} answers, pid {}", status.pid),
        )
    } else {
        Finding::note(
            "daemon",
            format!(
                "the daemon is touchmark {}, this program is {own}",
                status.version
            ),
            "`touchmark restart`: state and open edits survive",
        )
    }];
    found.extend(not_in_force(status));
    let overflows = status.counters.overflows;
    found.push(if overflows == 0 {
        Finding::good("overflows", "none since the daemon started")
    } else {
        Finding::note(
            "overflows",
            format!(
                "{} since the daemon started: each time all tracked files were compared with the disk",
                count(overflows, "overflow")
            ),
            "if they are many, raise fs.inotify.max_queued_events",
        )
    });
    // What is no place that lacks coverage, with what to do.
    let others = [
        (
            "clock",
            Degraded::CLOCK,
            "check the machine's clock; nothing is removed by age because of it",
        ),
        (
            "daemons",
            Degraded::COMPANY,
            "let both sides use one daemon, as docs/agents/claude-code.md says under Containers",
        ),
    ];
    let mut degraded: Vec<_> = status.degraded.iter().collect();
    for (check, cause, hint) in others {
        let (these, rest): (Vec<_>, _) = degraded
            .into_iter()
            .partition(|part| part.cause.starts_with(cause));
        found.extend(
            these
                .iter()
                .map(|part| Finding::note(check, &part.cause, hint)),
        );
        degraded = rest;
    }
    if degraded.is_empty() {
        found.push(Finding::good("coverage", "full"));
    }
    for part in degraded {
        let about = part
            .path
            .as_ref()
            .map(|name| format!("{}: ", path(name)))
            .unwrap_or_default();
        found.push(Finding::wrong(
            "coverage",
            format!("{about}{}", part.cause),
            "answers stay right, at a higher cost; see the checks above for the cause",
        ));
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::daemon::doctor::Level;

    #[test]
    fn a_clock_that_was_set_is_no_want_of_coverage() {
        let set = format!("{} went ahead", Degraded::CLOCK);
        let status = json!({
            "pid": 1, "version": "0", "protocol": 2, "workspace": "/w", "clock": "1:1",
            "uptimeMs": 1, "trackedFiles": 0, "watchedDirectories": 0, "sessions": 0,
            "connections": 1, "openEdits": 0, "backend": "inotify", "rssBytes": 0,
            "counters": {"events": 0, "versions": 0, "fences": 0, "overflows": 0,
                         "rescans": 0, "requests": 0},
            "store": {"path": "/s", "sizeBytes": 0, "durability": "process"},
            "configuration": {"refused": null, "atRestart": []},
            "degraded": [{"path": null, "cause": set}],
            "agents": [],
            "startedBy": "client", "idleMs": 0, "openCommands": 0, "subscriptions": 0,
            "privateBytes": 0,
        });
        let found = reported(&serde_json::from_value(status).unwrap());
        let of = |check| found.iter().find(|finding| finding.check == check).unwrap();
        assert_eq!((of("clock").level, &of("clock").says), (Level::Note, &set));
        assert_eq!(of("coverage").level, Level::Good);
    }
}
