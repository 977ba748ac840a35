//! Whether touchmark is off in a workspace, by the user's wish (OFF).

pub mod processes;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use touchmark_proto::off::{
    Bypassed, Off, OffCause, OffRefused, OffReport, Pauses, UsersOnly, is_listed,
};
use touchmark_proto::{Millis, Places};

use crate::config;
use crate::life::private_directory;
use crate::system::open::{private_itself, replace_private};
use crate::system::proc;
use crate::system::process::Process;
use processes::Run;

/// How long a refused attempt is reported, in milliseconds.
const REPORTED: Millis = 24 * 60 * 60 * 1_000;

/// The size in bytes above which old lines of the file with runs and attempts
/// are dropped, and the number of lines that are left.
const MOST: usize = 32 << 10;
const LEFT: usize = 100;

/// Returns why touchmark does nothing in a workspace; `None` if it works. The
/// user's configuration is read.
pub fn off(places: &Places, root: &Path, now: Millis) -> Option<Off> {
    let listed = || config::users_off(&places.config);
    paused(places, now).or_else(|| is_listed(&listed(), root).then_some(LISTED))
}

/// Returns the same with the configuration's list.
pub(crate) fn off_with(
    places: &Places,
    root: &Path,
    listed: &[PathBuf],
    now: Millis,
) -> Option<Off> {
    paused(places, now).or_else(|| is_listed(listed, root).then_some(LISTED))
}

const LISTED: Off = Off {
    cause: OffCause::Listed,
    since: None,
    until: None,
};

/// Returns the pause of a workspace; `None` if there is none now.
pub(crate) fn paused(places: &Places, now: Millis) -> Option<Off> {
    let text = fs::read_to_string(&places.pauses).ok()?;
    Pauses::parse(&text).of(&places.key, now)
}

/// Changes the user's pauses.
///
/// # Errors
/// The system's error.
pub fn change_pauses(places: &Places, change: impl FnOnce(&mut Pauses)) -> io::Result<()> {
    let text = fs::read_to_string(&places.pauses).unwrap_or_default();
    let mut pauses = Pauses::parse(&text);
    change(&mut pauses);
    if let Some(directory) = places.pauses.parent() {
        private_directory(directory).map_err(io::Error::other)?;
    }
    replace_private(&places.pauses, pauses.text().as_bytes(), false)
}

/// Returns whether the hooks of the run to which this hook's process belongs do
/// nothing, since the agent was started with `TOUCHMARK_BYPASS`. The first hook
/// of a run notes that, and why the variable does not count.
/// `programs` are the names of agents' programs.
pub fn is_bypassed(places: &Places, agent: &str, programs: &[&str], now: Millis) -> bool {
    match processes::run(std::process::id(), programs) {
        Run::Bypassed(process) => {
            let Process { pid, start } = process;
            note(places, now, &format!("run {pid} {start} {agent}"));
            true
        }
        Run::Watched(why) => {
            refused(places, UsersOnly::Bypass, &why, now);
            false
        }
    }
}

/// Returns the same for an agent whose own process sends its events, without a
/// hook's process.
pub(crate) fn is_bypassed_itself(places: &Places, agent: &str, pid: u32, now: Millis) -> bool {
    let Some(Process { pid, start }) = processes::bypassed(pid) else {
        return false;
    };
    note(places, now, &format!("run {pid} {start} {agent}"));
    true
}

/// Returns why an attempt below an agent's process is refused.
pub fn why(agent: &str) -> String {
    format!("it was run below {agent}")
}

/// Returns the message for the process that has tried.
pub fn refusal(why: &str) -> String {
    format!("only the user may do that, and {why}")
}

/// Notes an attempt that was refused.
pub fn refused(places: &Places, what: UsersOnly, why: &str, now: Millis) {
    tracing::warn!("refused: {}: {why}", what.name());
    note(places, now, &format!("{} {why}", what.word()));
}

/// Adds a line, unless the file has it for this workspace since a day.
fn note(places: &Places, now: Millis, what: &str) {
    let what = what.replace(['\n', '\r'], " ");
    let key = &places.key;
    let text = fs::read_to_string(&places.bypasses).unwrap_or_default();
    let mut known = lines(&text, key, now).into_iter();
    if known.any(|(_, known)| known == what) {
        return;
    }
    let add = || -> io::Result<()> {
        let line = format!("{key} {now} {what}\n");
        if let Some(directory) = places.bypasses.parent() {
            private_directory(directory).map_err(io::Error::other)?;
        }
        if text.len() > MOST {
            let lines: Vec<&str> = text.lines().collect();
            let left = lines.get(lines.len().saturating_sub(LEFT)..);
            let left = left.unwrap_or_default().join("\n") + "\n";
            replace_private(&places.bypasses, left.as_bytes(), false)?;
        }
        let mut options = private_itself();
        let mut file = options.append(true).create(true).open(&places.bypasses)?;
        file.write_all(line.as_bytes())
    };
    let _full_or_read_only = add();
}

/// Returns the lines about a workspace that are younger than a day, each with
/// its time.
fn lines<'a>(text: &'a str, key: &str, now: Millis) -> Vec<(Millis, &'a str)> {
    let line = |line: &'a str| {
        let (whose, rest) = line.split_once(' ')?;
        let (time, what) = rest.split_once(' ')?;
        let time: Millis = time.parse().ok()?;
        (whose == key && now.saturating_sub(time) < REPORTED).then_some((time, what))
    };
    text.lines().filter_map(line).collect()
}

/// Returns everything that switches touchmark off in a workspace, or tried to,
/// apart from the writes that are allowed.
pub fn report(places: &Places, off: Option<Off>, now: Millis) -> OffReport {
    let text = fs::read_to_string(&places.bypasses).unwrap_or_default();
    let mut report = OffReport {
        off,
        ..OffReport::default()
    };
    for (time, what) in lines(&text, &places.key, now) {
        let Some((word, rest)) = what.split_once(' ') else {
            continue;
        };
        if let Some(what) = UsersOnly::of_word(word) {
            let why = rest.to_owned();
            report.refused.push(OffRefused { what, time, why });
        } else if let Some((process, agent)) = run(rest)
            && proc::and_above(process.pid).first() == Some(&process)
        {
            report.bypassed.push(Bypassed {
                agent: agent.to_owned(),
                pid: process.pid,
                since: time,
            });
        }
    }
    report
}

fn run(text: &str) -> Option<(Process, &str)> {
    let mut words = text.splitn(3, ' ');
    let pid = words.next()?.parse().ok()?;
    let start = words.next()?.parse().ok()?;
    Some((Process { pid, start }, words.next()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_proto::BaseDirectories;

    use super::*;

    #[test]
    fn what_is_noted_is_reported_once_and_for_a_day() {
        let home = tempfile::tempdir().unwrap();
        let base = BaseDirectories {
            runtime: None,
            state: home.path().join("state"),
            config: home.path().join("config"),
            cache: home.path().join("cache"),
        };
        let places = Places::new(&base, Path::new("/w"), None);
        assert_eq!(report(&places, None, 5), OffReport::default());
        refused(&places, UsersOnly::Pause, "below claude\n(5)", 5);
        refused(&places, UsersOnly::Pause, "below claude\n(5)", 6);
        let own = *proc::and_above(std::process::id()).first().unwrap();
        note(&places, 7, &format!("run {} {} claude", own.pid, own.start));
        note(&places, 8, &format!("run {} 1 claude", own.pid));
        let told = report(&places, None, 9);
        let why: Vec<&str> = told.refused.iter().map(|one| one.why.as_str()).collect();
        assert_eq!(why, ["below claude (5)"]);
        assert_eq!(told.bypassed.len(), 1, "{told:?}");
        let another = Places::new(&base, Path::new("/v"), None);
        assert_eq!(report(&another, None, 9), OffReport::default());
        assert_eq!(report(&places, None, 9 + REPORTED), OffReport::default());

        change_pauses(&places, |pauses| pauses.set(Some(&places.key), 5, Some(9))).unwrap();
        assert!(paused(&places, 8).is_some());
        assert!(paused(&places, 9).is_none());
        assert!(paused(&another, 8).is_none());
    }
}
