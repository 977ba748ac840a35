//! What switches touchmark off, for `status`, `doctor` and `log`, and the check
//! that a user asks for it (OFF).

use touchmark_client::proto::ErrorCode;
use touchmark_client::proto::daemon::Sync;
use touchmark_client::proto::hooks::HookAllow;
use touchmark_client::proto::off::{BYPASS_VARIABLE, Off, OffCause, OffReport, UsersOnly};
use touchmark_client::{Error, Workspace};

use crate::context::Context;
use crate::daemon::doctor::Finding;
use crate::daemon::{off, running};
use crate::output::{Failure, Outcome};
use crate::settings::Agent;
use crate::text::{ago, duration, escaped, now, path, session, zone};

/// The longest text about a refused attempt, in characters.
const MAX_WHY: usize = 200;

/// Returns what switches touchmark off in a workspace, without its daemon.
pub(crate) fn local(workspace: &Workspace) -> OffReport {
    let (places, now) = (&workspace.places, now());
    off::report(places, off::off(places, &workspace.root, now), now)
}

/// Returns a name and a text for each thing that switches touchmark off, or tried
/// to.
pub(crate) fn rows(report: &OffReport) -> Vec<(&'static str, String)> {
    let now = now();
    let mut rows = Vec::new();
    rows.extend(report.off.map(|off| ("off", of(off))));
    for one in &report.bypassed {
        let (agent, pid) = (escaped(&one.agent, 40), one.pid);
        let text =
            format!("{agent} ({pid}) was started with {BYPASS_VARIABLE}: its hooks do nothing");
        rows.push(("bypassed", text));
    }
    for one in &report.allowed {
        let (who, file) = (session(&one.session), path(&one.path));
        rows.push(("allowed", format!("the next write of {who} to {file}")));
    }
    for one in &report.refused {
        let (when, why) = (ago(one.time, now, &zone()), escaped(&one.why, MAX_WHY));
        rows.push(("refused", format!("{}, {when}: {why}", one.what.name())));
    }
    rows
}

/// Returns why touchmark does nothing, and what ends that.
fn of(off: Off) -> String {
    let left = match off.until {
        Some(until) => format!("for {} more", duration(until.saturating_sub(now()))),
        None => "until you resume it".to_owned(),
    };
    match off.cause {
        OffCause::Paused => {
            format!("you have paused touchmark here, {left}; `touchmark resume` ends it")
        }
        OffCause::PausedEverywhere => format!(
            "you have paused touchmark in all workspaces, {left}; `touchmark resume --all` ends it"
        ),
        OffCause::Listed => "`off` in your configuration has this directory".to_owned(),
    }
}

/// Returns `doctor`'s findings.
pub(crate) fn findings(report: &OffReport) -> Vec<Finding> {
    let rows = rows(report).into_iter();
    rows.map(|(check, says)| Finding::note(check, says, ""))
        .collect()
}

/// Checks that no agent runs this command (OFF-5), and waits until the daemons
/// have recorded every change so far. They are those of all workspaces with
/// `all`.
///
/// # Errors
/// An agent's process is above this one.
pub(crate) fn by_the_user(
    workspace: &Workspace,
    context: &Context,
    all: bool,
    what: UsersOnly,
) -> Outcome {
    let mut above = off::processes::agent_above(std::process::id(), &Agent::programs())
        .map(|who| off::why(&who));
    for client in running(workspace, context, all) {
        if above.is_none()
            && let Err(Error::Daemon(error)) = client.call(HookAllow::new())
            && error.code == ErrorCode::Denied
        {
            above = error.data.cause;
        }
        // A daemon that does not answer has recorded what it could.
        let _late = client.call(Sync {});
    }
    let Some(why) = above else { return Ok(()) };
    off::refused(&workspace.places, what, &why, now());
    Err(Failure::Coded {
        code: 4,
        message: off::refusal(&why),
        hint: "run it in a terminal of your own",
    })
}
