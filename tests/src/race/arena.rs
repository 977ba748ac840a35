//! One round of the race: a world, the players' processes, the killer, and the
//! oracle's checks at the end.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::log::{Log, now};
use super::{FILES, account, agent, authors, copies, order, people};
use crate::dice::Dice;
use crate::wire::{self, Answer};
use crate::{World, sha256, user};

/// The variable that turns a process of this program into a player.
pub const SEAT: &str = "TOUCHMARK_RACE_SEAT";

/// The agents: the names of their sessions.
const AGENTS: &[&str] = &["ann", "ben"];

/// How long most players go for the same file, in nanoseconds.
const CROWD: u64 = 150_000_000;

/// A player's instructions.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Its role.
    pub role: String,
    /// Its name, and its session's.
    pub name: String,
    /// The number of the player's run, from 0. It increases each time the
    /// player is killed.
    pub turn: u64,
    /// The seed of its random numbers.
    pub seed: u64,
    /// When the round ends, as [`now`] returns the time.
    pub until: u64,
    /// The daemon's socket.
    pub socket: PathBuf,
    /// The workspace.
    pub workspace: PathBuf,
    /// The directory of logs, locks and contents.
    pub directory: PathBuf,
}

impl Seat {
    fn to_json(&self) -> Value {
        json!({
            "role": self.role, "name": self.name, "turn": self.turn, "seed": self.seed,
            "until": self.until, "socket": self.socket, "workspace": self.workspace,
            "directory": self.directory,
        })
    }

    fn from_json(value: &Value) -> Self {
        let text = |field: &str| crate::text(value, field);
        let number = |field: &str| value[field].as_u64().expect("a number");
        Self {
            role: text("role"),
            name: text("name"),
            turn: number("turn"),
            seed: number("seed"),
            until: number("until"),
            socket: text("socket").into(),
            workspace: text("workspace").into(),
            directory: text("directory").into(),
        }
    }

    /// Returns this player's random numbers for this run.
    pub fn dice(&self) -> Dice {
        Dice::new(self.seed, &format!("{} {}", self.name, self.turn))
    }

    /// Returns this player's log.
    pub fn log(&self) -> Log {
        Log::open(&self.directory, &self.name, self.turn)
    }

    /// Returns the file to go for: mostly the one that all players go for at
    /// this moment.
    pub fn aim(&self, dice: &mut Dice) -> &'static str {
        let crowd = now() / CROWD;
        let alone = dice.below(FILES.len() as u64);
        let index = if dice.percent(70) { crowd } else { alone };
        FILES[usize::try_from(index).expect("an index") % FILES.len()]
    }

    /// Returns the absolute path of a file in the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    /// Stores a content for the oracle, which otherwise has only hashes.
    /// Returns its hash.
    pub fn keep(&self, bytes: &[u8]) -> String {
        let hash = sha256(bytes);
        let file = self.directory.join("contents").join(&hash);
        if !file.exists() {
            // Written under another name first, so that a killed player leaves
            // no half file.
            let part = file.with_extension(format!("{}-{}", self.name, self.turn));
            fs::write(&part, bytes).expect("a content");
            fs::rename(&part, &file).expect("a content's name");
        }
        hash
    }

    /// Returns a connection to the daemon.
    pub fn link(&self) -> Link {
        Link {
            link: wire::Link::new(&self.socket),
            until: self.until,
        }
    }
}

/// A connection that reconnects after the daemon was killed.
pub struct Link {
    link: wire::Link,
    until: u64,
}

impl Link {
    /// Sends a request, once a daemon can be reached. Returns `None` if no answer
    /// arrived: the request may or may not have taken effect.
    pub fn ask(&mut self, method: &str, params: &Value) -> Option<Answer> {
        while !self.link.connect() {
            if now() > self.until {
                return None;
            }
            user::pause(2);
        }
        self.link.ask(method, params)
    }
}

/// Runs a player if this process is to be one. Returns whether it was.
pub fn play() -> bool {
    let Ok(text) = std::env::var(SEAT) else {
        return false;
    };
    let seat = Seat::from_json(&serde_json::from_str(&text).expect("a seat"));
    match seat.role.as_str() {
        "agent" => agent::play(&seat),
        "user" => people::user(&seat),
        "rival" => people::rival(&seat),
        "editor" => people::editor(&seat),
        "git" => people::git(&seat),
        other => panic!("nobody plays {other}"),
    }
    true
}

/// Player processes. They are killed when dropped.
struct Players(Vec<(Seat, Child)>);

impl Players {
    fn add(&mut self, player: &str, seat: Seat) {
        let log = seat
            .directory
            .join(format!("{}.{}.out", seat.name, seat.turn));
        let out = File::create(log).expect("a player's output");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", player, "--nocapture"])
            .env(SEAT, seat.to_json().to_string())
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("the output"))
            .stderr(out)
            .process_group(0);
        let child = command.spawn().expect("a player");
        self.0.push((seat, child));
    }

    /// Waits until every player has exited. Panics if one failed.
    fn finish(&mut self) {
        for (seat, child) in &mut self.0 {
            let status = child.wait().expect("a player's end");
            let said = seat
                .directory
                .join(format!("{}.{}.out", seat.name, seat.turn));
            assert!(
                status.success(),
                "{} failed: {}",
                seat.name,
                fs::read_to_string(said).unwrap_or_default()
            );
        }
    }
}

impl Drop for Players {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The disturbances in one round, in addition to the writes.
#[derive(Clone, Copy, Debug)]
struct Dangers {
    kill: bool,
    stop: bool,
    kill_agents: bool,
}

/// Runs a round of this length from a seed. `player` is the name of the test
/// that calls [`play`]. Returns a one-line summary.
pub fn round(seed: u64, length: Duration, player: &str) -> String {
    let mut dice = Dice::new(seed, "killer");
    let dangers = Dangers {
        // Some rounds have no gap. In those no author is `unknown`.
        kill: !seed.is_multiple_of(3),
        stop: seed % 3 != 1,
        kill_agents: !seed.is_multiple_of(4),
    };
    let mut world = World::asleep();
    // Every version is looked up at the end.
    world.configure("[versions]\nkeep = \"1,000,000 per path\"\n");
    let directory = world.outside().join("race");
    for name in ["locks", "contents"] {
        fs::create_dir_all(directory.join(name)).expect("a directory");
    }
    let referee = Seat {
        role: "killer".into(),
        name: "killer".into(),
        turn: 0,
        seed,
        until: 0,
        socket: world.socket().to_owned(),
        workspace: world.workspace().to_owned(),
        directory: directory.clone(),
    };
    let mut log = referee.log();
    for path in FILES {
        let content = format!("killer 0 {path}\n");
        let put = json!({"path": path, "hash": referee.keep(content.as_bytes()), "way": "start"});
        let id = log.begin("put", put);
        world.file(path, content);
        log.end(id, json!({}));
    }
    people::repository(&referee);
    world.start();
    let clock = (Instant::now(), now());
    let until = now() + u64::try_from(length.as_nanos()).expect("a short time");
    let mut players = Players(Vec::new());
    let seat = |role: &str, name: &str, turn: u64| Seat {
        role: role.into(),
        name: name.into(),
        turn,
        until,
        ..referee.clone()
    };
    for name in AGENTS {
        players.add(player, seat("agent", name, 0));
    }
    for role in ["user", "rival", "editor", "git"] {
        players.add(player, seat(role, role, 0));
    }
    let mut lives = 0;
    while now() < until {
        user::pause(30 + dice.below(250));
        match dice.below(3) {
            0 if dangers.kill => {
                let id = log.begin("down", json!({}));
                world.kill();
                user::pause(dice.below(40));
                world.start();
                // Until the daemon has looked at a file again, it cannot know
                // when the file changed.
                let mut client = world.client();
                for path in FILES {
                    let _gone = client.call("file/snapshot", json!({"path": path}));
                }
                log.end(id, json!({}));
            }
            1 if dangers.stop => {
                let pid = Pid::from_raw(world.pid().cast_signed()).expect("a pid");
                kill_process(pid, Signal::STOP).expect("a stop");
                user::pause(dice.below(80));
                kill_process(pid, Signal::CONT).expect("going on");
            }
            2 if dangers.kill_agents && now() + 200_000_000 < until => {
                let which = dice.below(AGENTS.len() as u64);
                let which = usize::try_from(which).expect("an index");
                let (seat, child) = &mut players.0[which];
                child.kill().expect("a kill");
                let _killed = child.wait().expect("its end");
                lives += 1;
                let again = Seat {
                    turn: lives,
                    ..seat.clone()
                };
                players.0.swap_remove(which);
                players.add(player, again);
                // Agents stay first in the list.
                let last = players.0.len() - 1;
                players.0.swap(which, last);
            }
            _ => {}
        }
    }
    players.finish();
    let (by_one, by_other) = (clock.0.elapsed().as_nanos(), u128::from(now() - clock.1));
    if by_one.abs_diff(by_other) > 2_000_000 {
        return "not tested: the system's clock was set during the round".into();
    }
    judge(&mut world, &directory, seed)
}

/// Compares the logs with the daemon's answers and the disk. Panics if
/// something is wrong.
fn judge(world: &mut World, directory: &Path, seed: u64) -> String {
    let mut client = world.client();
    let account = account::Account::take(world, &mut client, directory, AGENTS);
    let mut wrong = order::check(&account);
    wrong.extend(authors::check(&account));
    wrong.extend(copies::check(&account, &mut client));
    let report = account.report();
    if !wrong.is_empty() {
        let shown: Vec<String> = wrong.iter().take(20).cloned().collect();
        panic!(
            "seed {seed}: {} wrong; again with TOUCHMARK_SEED={seed}\n{report}\n{}",
            wrong.len(),
            shown.join("\n")
        );
    }
    world.healthy();
    report
}
