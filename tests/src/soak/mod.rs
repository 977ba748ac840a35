//! Users, agents, commands and undos in one small workspace, at the same time,
//! while the daemon is killed and the disk fills up. The oracle has a
//! list of all lines that users have saved: each is in a file, or kept in
//! `recovery/list`.
//!
//! - [`ledger`]: the lines that users saved, and the writes that were
//!   acknowledged.
//! - [`actors`]: what users, agents, commands and undos do.
//! - [`trouble`]: kills, stops and a full disk.
//! - [`judge`]: the comparison with the disk and with the history.
//! - [`story`]: what happened to a line that is lost.

mod actors;
mod judge;
mod ledger;
mod story;
mod trouble;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::{World, mounts, user};
use actors::{Actor, Role};
use ledger::Ledger;
use trouble::Trouble;

/// The files that everybody edits.
const FILES: [&str; 5] = ["a.txt", "b.txt", "src/c.txt", "src/d.txt", "e.txt"];

/// The size of the file system with workspace and state. The smallest on which
/// the daemon stores everything for an hour.
const DISK: &str = "size=192m";

/// What all actors share.
struct Stage {
    workspace: PathBuf,
    socket: PathBuf,
    ledger: Ledger,
    /// Held for reading during each act. Who holds it for writing is alone.
    gate: RwLock<()>,
    ends: AtomicBool,
    /// Whether the disk is full, so that only safe ways to save are used.
    is_full: AtomicBool,
    /// What was done, and when, for a failed test's output.
    acts: Mutex<Vec<String>>,
}

impl Stage {
    fn note(&self, act: String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_millis());
        let mut acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        acts.push(format!("{now} {act}"));
    }

    fn acts(&self) -> String {
        let acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        acts.join("\n")
    }
}

/// What happened in a round, for the test's output.
#[derive(Debug, Default)]
pub struct Report {
    /// How often the daemon was killed.
    pub kills: u64,
    /// How often the disk was full.
    pub full: u64,
    /// The lines that users saved and that had to be there at the end.
    pub lines: usize,
    /// Those of them that were only in `recovery/list`.
    pub recovered: usize,
    /// The acknowledged writes that were looked up in the history.
    pub writes: usize,
    /// The undos, redos and undone hunks that changed a file.
    pub undos: u64,
}

/// Plays a round of this length from a seed, on a small file system of its own
/// where this thread may mount one. Panics if something is lost.
pub fn round(seed: u64, length: Duration, may_mount: bool) -> Report {
    if !may_mount {
        return play(World::asleep(), seed, length, false);
    }
    let place = tempfile::tempdir().expect("a directory");
    mounts::mount("tmpfs", "tmpfs", DISK, place.path());
    let report = play(World::asleep_in(place.path()), seed, length, true);
    mounts::detach(place.path());
    report
}

fn play(mut world: World, seed: u64, length: Duration, may_fill: bool) -> Report {
    // Old versions and commands are looked up at the end.
    world.configure("[versions]\nkeep = \"100,000 per path\"\n");
    world.set_env("JOURNAL_STREAM", "test");
    for path in FILES {
        world.file(path, format!("first line of {path}\nlast line of {path}\n"));
    }
    user::git(world.workspace(), &["init", "-q"]);
    world.start();
    let stage = Stage {
        workspace: world.workspace().to_owned(),
        socket: world.socket().to_owned(),
        ledger: Ledger::new(&FILES),
        gate: RwLock::new(()),
        ends: AtomicBool::new(false),
        is_full: AtomicBool::new(false),
        acts: Mutex::default(),
    };
    let end = Instant::now() + length;
    let mut trouble = Trouble::new(&stage, Dice::new(seed, "trouble"), may_fill);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        // Ends the actors also if something panics here.
        let _ending = Ending(&stage.ends);
        let actors: Vec<_> = Role::ALL
            .iter()
            .map(|(role, name)| {
                let actor = Actor::new(&stage, *role, name, Dice::new(seed, name));
                scope.spawn(|| actor.play())
            })
            .collect();
        let mut judged = Instant::now();
        while Instant::now() < end && actors.iter().all(|actor| !actor.is_finished()) {
            trouble.make(&mut world);
            if judged.elapsed() > Duration::from_secs(2) {
                judge::judge(&mut world, &stage, &mut trouble);
                judged = Instant::now();
            }
        }
        stage.ends.store(true, Ordering::Relaxed);
        for actor in actors {
            match actor.join() {
                Ok(undos) => report.undos += undos,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let judged = judge::judge(&mut world, &stage, &mut trouble);
    world.healthy();
    Report {
        kills: trouble.kills,
        full: trouble.full,
        undos: report.undos,
        ..judged
    }
}

struct Ending<'s>(&'s AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the parameters with the session's name added.
fn of(session: &str, mut params: Value) -> Value {
    params["session"] = json!(session);
    params
}
