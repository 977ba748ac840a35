//! Hooks that let their agent continue before the daemon had answered, since it
//! was down, starting, or slow. Each event is stored in a file next to the
//! store, without contents, until the next event of any session (HOOK-2).

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use touchmark_proto::{Hash, Millis};

use super::agent::Agent;
use super::daemon_handle::DaemonHandle;
use super::happened::{Happened, Tool, What};
use super::rules;
use crate::life;
use crate::system::open::{patient, private_itself};

/// The file's name in the state directory.
const FILE: &str = "unanswered";

/// The maximum size of the file in bytes. Events beyond that are not stored.
const MOST: u64 = 1 << 20;

/// The maximum size of one event in bytes.
const LINE: usize = 64 << 10;

/// The maximum size in bytes of a file about to be written whose content the
/// hook hashes.
const FILE_BYTES: u64 = 4 << 20;

/// An event whose hook could not wait for the answer.
#[derive(Debug, Deserialize, Serialize)]
pub struct Unanswered {
    time: Millis,
    /// The agent through whose hook it came.
    #[serde(default)]
    hook: String,
    happened: Happened,
    /// The contents, before the write, of the files that the tool is about to
    /// write, in the tool's order.
    #[serde(default)]
    held: Vec<Held>,
}

/// What a file contained before a tool wrote it, as the hook found it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum Held {
    /// The file had this content.
    Content(Hash),
    /// There was no file.
    Absent,
    /// The file could not be read, or is too large.
    Unknown,
}

impl Held {
    fn of(path: &Path) -> Self {
        let mut file = match patient().read(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::Absent,
            Err(_) => return Self::Unknown,
        };
        let small = |file: &File| {
            let stat = file.metadata().ok()?;
            (stat.is_file() && stat.len() <= FILE_BYTES).then_some(())
        };
        let mut bytes = Vec::new();
        let read = small(&file).and_then(|()| file.read_to_end(&mut bytes).ok());
        read.map_or(Self::Unknown, |_| Self::Content(Hash::of(&bytes)))
    }
}

impl Unanswered {
    /// Returns the event in what an agent's hook received at `time`. `agent` is
    /// the name of the hook's command. `None` if `input` is no event.
    pub fn of(agent: &str, input: &Value, time: Millis) -> Option<Self> {
        let hook = Agent::named(agent)?;
        let happened = hook.speaker(input).read(input).happened?;
        Some(Self {
            time,
            hook: hook.name.to_owned(),
            happened,
            held: Vec::new(),
        })
    }

    /// Stores the event in the state directory of its workspace's daemon, with
    /// the contents of the files that the tool is about to write.
    ///
    /// # Errors
    /// The system's error.
    pub fn keep(mut self, state: &Path) -> io::Result<()> {
        if let What::Before {
            tool: Tool::Write { files, .. },
            ..
        } = &self.happened.what
        {
            let cwd = self.happened.cwd.clone().unwrap_or_default();
            let held = files.iter().map(|file| Held::of(&cwd.join(&file.path)));
            self.held = held.collect();
        }
        let line = serde_json::to_string(&self)? + "\n";
        life::private_directory(state).map_err(io::Error::other)?;
        let mut options = private_itself();
        let mut file = options.append(true).create(true).open(state.join(FILE))?;
        file.lock()?;
        if line.len() <= LINE && file.metadata()?.len() < MOST {
            file.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns the number of events that are pending in a state directory.
pub(crate) fn waiting(state: &Path) -> usize {
    let text = std::fs::read(state.join(FILE)).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Removes and returns all pending events. Returns none while a hook is adding
/// one: the next event finds it.
pub(super) fn take(state: &Path) -> io::Result<Vec<Unanswered>> {
    let mut file: File = private_itself()
        .read(true)
        .write(true)
        .open(state.join(FILE))?;
    if file.metadata()?.len() == 0 || file.try_lock().is_err() {
        return Ok(Vec::new());
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    file.set_len(0)?;
    // A line that was cut, or that another version wrote, is skipped.
    let lines = text.lines();
    Ok(lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// Processes the pending events, before anything else happens.
pub(super) async fn make_up(daemon: &DaemonHandle) {
    let _one_at_a_time = daemon.memory.making_up.lock().await;
    let state = daemon.cx.workspace.places.state.clone();
    let taken = tokio::task::spawn_blocking(move || take(&state)).await;
    for unanswered in taken.ok().and_then(Result::ok).unwrap_or_default() {
        let (hook, happened) = (Agent::named(&unanswered.hook), &unanswered.happened);
        let is_first = hook.is_none_or(|hook| daemon.memory.is_first(happened, hook.name));
        if !is_first && !daemon.memory.has_heard(happened) {
            continue;
        }
        rules::make_up(
            daemon,
            unanswered.time,
            unanswered.happened,
            &unanswered.held,
        )
        .await;
    }
}
