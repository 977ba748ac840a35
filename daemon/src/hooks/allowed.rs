//! Writes that the user allows after a denial (OFF-4): the session's next write
//! of the file passes.

use std::collections::VecDeque;
use std::path::Path;

use touchmark_engine::within;
use touchmark_proto::hooks::{HookAllow, HookAllowed};
use touchmark_proto::off::{Allowed, UsersOnly};
use touchmark_proto::{Error, ErrorCode, ErrorData, Millis, RelPath, SessionId};

use super::agent::Agent;
use super::daemon_handle::DaemonHandle;
use super::happened::{Verdict, Writing};
use crate::config::{Gate, Unsaved};
use crate::off;
use crate::system::proc;

/// The maximum number of denials that are remembered.
const DENIALS: usize = 256;

/// How long a permission is valid if it is not used, in milliseconds.
const VALID: Millis = 60 * 60 * 1_000;

/// The files that sessions were denied to write, and those that the user has
/// allowed since.
#[derive(Debug, Default)]
pub(super) struct Allowances {
    denied: VecDeque<(SessionId, RelPath)>,
    allowed: Vec<Allowed>,
}

impl Allowances {
    fn deny(&mut self, session: &SessionId, path: RelPath) {
        let denied = (session.clone(), path);
        self.denied.retain(|known| *known != denied);
        self.denied.push_back(denied);
        if self.denied.len() > DENIALS {
            self.denied.pop_front();
        }
    }

    /// Allows the next write of a file to the sessions that were denied it.
    fn allow(&mut self, path: &RelPath, now: Millis) -> Vec<SessionId> {
        let is_it = |denied: &(SessionId, RelPath)| denied.1 == *path;
        let (found, left): (VecDeque<_>, VecDeque<_>) = self.denied.drain(..).partition(is_it);
        self.denied = left;
        for (session, path) in &found {
            self.allowed.push(Allowed {
                session: session.clone(),
                path: path.clone(),
                until: now + VALID,
            });
        }
        found.into_iter().map(|(session, _)| session).collect()
    }

    /// Uses a permission. Returns whether there was one.
    fn take(&mut self, session: &SessionId, path: &RelPath, now: Millis) -> bool {
        let before = self.valid(now).len();
        self.allowed
            .retain(|one| one.session != *session || one.path != *path);
        self.allowed.len() < before
    }

    /// Returns the permissions that were not used yet.
    pub(super) fn valid(&mut self, now: Millis) -> &[Allowed] {
        self.allowed.retain(|one| now < one.until);
        &self.allowed
    }
}

/// The files of a tool that is about to write.
pub(super) struct Wanted {
    paths: Vec<RelPath>,
    is_allowed: bool,
}

/// Returns the files of a tool that is about to write, and uses what the user has
/// allowed of them.
pub(super) async fn wanted(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    files: &[Writing],
) -> Wanted {
    let mut paths = Vec::new();
    for file in files {
        let place = daemon.place(cwd, &file.path).await;
        paths.extend(place.and_then(|place| within(&place, &daemon.cx.root_bytes()).ok()));
    }
    let now = daemon.cx.now;
    let is_allowed = daemon.memory.allowances(|allowances| {
        let taken = paths.iter().map(|path| allowances.take(session, path, now));
        taken.fold(false, |any, one| any | one)
    });
    Wanted { paths, is_allowed }
}

impl Wanted {
    /// Returns the handle for the rules: with a permission they deny nothing that
    /// the session has not seen.
    pub(super) fn handle(&self, daemon: &DaemonHandle) -> DaemonHandle {
        let mut settings = daemon.settings;
        if self.is_allowed {
            (settings.gate, settings.unsaved) = (Gate::Off, Unsaved::Off);
        }
        daemon.with(daemon.cx.clone(), settings)
    }

    /// Takes back a denial of what the user has allowed, and remembers any other.
    pub(super) fn settle(self, daemon: &DaemonHandle, session: &SessionId, verdict: &mut Verdict) {
        if !matches!(verdict, Verdict::Deny(_)) {
            return;
        }
        if self.is_allowed {
            *verdict = Verdict::Nothing;
            return;
        }
        daemon.memory.allowances(|allowances| {
            for path in self.paths {
                allowances.deny(session, path);
            }
        });
    }
}

/// Allows the next write of a file.
///
/// # Errors
/// `denied` if the requesting process runs below an agent; `outsideWorkspace`;
/// `notFound` if nothing was denied there.
pub(super) fn allow(daemon: &DaemonHandle, ask: &HookAllow) -> Result<HookAllowed, Error> {
    by_the_user(daemon, ask.path.as_ref().map(|_| UsersOnly::Allow))?;
    let Some(path) = &ask.path else {
        return Ok(HookAllowed {
            path: None,
            sessions: Vec::new(),
        });
    };
    let path = within(path, &daemon.cx.root_bytes())?;
    let sessions = daemon
        .memory
        .allowances(|allowances| allowances.allow(&path, daemon.cx.now));
    if sessions.is_empty() {
        let message = "no agent was denied to write this file";
        return Err(Error::path(ErrorCode::NotFound, &path, message)
            .hint("a permission is for the next write after a denial"));
    }
    Ok(HookAllowed {
        path: Some(path),
        sessions,
    })
}

/// Returns an error if the requesting process runs below an agent (OFF-5). The
/// attempt at `what` is noted.
///
/// # Errors
/// `denied`.
pub(super) fn by_the_user(daemon: &DaemonHandle, what: Option<UsersOnly>) -> Result<(), Error> {
    let above = daemon.cx.process.and_then(|pid| agent_above(daemon, pid));
    let Some(why) = above.map(|who| off::why(&who)) else {
        return Ok(());
    };
    if let Some(what) = what {
        let places = &daemon.cx.workspace.places;
        off::refused(places, what, &why, daemon.cx.now);
    }
    let error = Error::new(ErrorCode::Denied, off::refusal(&why));
    Err(error.hint("ask the user to run it").with(ErrorData {
        cause: Some(why),
        ..ErrorData::default()
    }))
}

/// Returns which agent a process runs below, for people.
fn agent_above(daemon: &DaemonHandle, pid: u32) -> Option<String> {
    off::processes::agent_above(pid, &Agent::programs()).or_else(|| {
        let above = proc::and_above(pid);
        let agent = daemon.memory.agents(|agents| agents.above(&above))?;
        Some(off::processes::called(agent.pid))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_permission_is_for_one_write_after_a_denial() {
        let (session, path) = (SessionId::new("s").unwrap(), RelPath::new(b"a").unwrap());
        let mut allowances = Allowances::default();
        assert!(allowances.allow(&path, 1).is_empty());
        allowances.deny(&session, path.clone());
        allowances.deny(&session, path.clone());
        assert!(!allowances.take(&session, &path, 1));
        assert_eq!(allowances.allow(&path, 1), std::slice::from_ref(&session));
        assert_eq!(allowances.valid(1).len(), 1);
        assert!(!allowances.take(&session, &RelPath::new(b"b").unwrap(), 1));
        assert!(allowances.take(&session, &path, 1));
        assert!(!allowances.take(&session, &path, 1));
        allowances.deny(&session, path.clone());
        allowances.allow(&path, 1);
        assert!(!allowances.take(&session, &path, 1 + VALID));
    }
}
