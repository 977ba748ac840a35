//! One scenario many times: several worlds in parallel, several repetitions in
//! each, half of them while every core is busy.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::parts::append;
use crate::user::pause;
use crate::{Session, World, paths};

/// Returns how often a scenario runs: 30 unless `TOUCHMARK_REPEAT` sets another
/// number.
pub fn repetitions() -> usize {
    std::env::var("TOUCHMARK_REPEAT")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(30)
}

/// The number of parallel worlds in one half of a scenario's repetitions.
const WORLDS: usize = 4;

/// Keeps two cores busy until dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    /// Starts the load.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..2)
            .map(|_| {
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || {
                    let mut bytes = [7_u8; 4096];
                    while !stop.load(Ordering::Relaxed) {
                        for byte in &mut bytes {
                            *byte = byte.wrapping_mul(31).wrapping_add(1);
                        }
                        std::hint::black_box(&bytes);
                    }
                })
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One repetition's part of a world: its own directory and session.
pub struct Lane<'w> {
    /// The world, shared with other repetitions.
    pub world: &'w World,
    /// The number of the repetition.
    pub rep: usize,
    /// The agent's session.
    pub agent: Session,
}

impl<'w> Lane<'w> {
    /// Returns the lane of repetition `rep` in a world.
    pub fn new(world: &'w World, rep: usize) -> Self {
        let agent = world.session(&format!("s{rep}"));
        std::fs::create_dir_all(world.path(format!("r{rep}"))).expect("a lane's directory");
        Self { world, rep, agent }
    }

    /// Returns a name in this lane, relative to the workspace.
    pub fn name(&self, name: &str) -> String {
        format!("r{}/{name}", self.rep)
    }

    /// Creates a file that the session has read. Returns its name and absolute
    /// path.
    pub fn tracked(&mut self, name: &str, content: &str) -> (String, PathBuf) {
        let (name, path) = self.untracked(name, content);
        self.agent.read(&name);
        (name, path)
    }

    /// Creates a file that is not tracked. Returns its name and absolute path.
    pub fn untracked(&self, name: &str, content: &str) -> (String, PathBuf) {
        let name = self.name(name);
        self.world.file(&name, content);
        let path = self.world.path(&name);
        (name, path)
    }

    /// Returns the directory of this lane.
    pub fn dir(&self) -> PathBuf {
        self.world.path(format!("r{}", self.rep))
    }

    /// Returns another session in this lane.
    pub fn other(&self, name: &str) -> Session {
        self.world.session(&format!("{name}{}", self.rep))
    }

    /// Waits until everything has settled: longer than the daemon's settling
    /// time, so that it has decided without a query, and then for a fence.
    pub fn settle(&mut self) {
        pause(150);
        self.agent.sync();
    }

    /// Checks that `modified/take` lists exactly these files. Even repetitions
    /// ask immediately, and nothing more may be listed after everything has
    /// settled. Odd ones ask only then.
    pub fn listed(&mut self, expected: &[&str]) -> Vec<serde_json::Value> {
        let mut wanted: Vec<&str> = expected.to_vec();
        wanted.sort_unstable();
        if self.rep.is_multiple_of(2) {
            let at_once = self.agent.take();
            self.check("asked at once", &at_once, &wanted);
            self.settle();
            let later = self.agent.take();
            self.check("asked again, settled", &later, &[]);
            at_once
        } else {
            self.settle();
            let settled = self.agent.take();
            self.check("asked when settled", &settled, &wanted);
            let again = self.agent.take();
            self.check("asked again", &again, &[]);
            settled
        }
    }

    /// Checks that exactly these files are listed, and that the session's
    /// copies of them are stale or deleted.
    pub fn reported(&mut self, expected: &[&str]) -> Vec<serde_json::Value> {
        let first = self.listed(expected);
        for name in expected {
            let state = self.agent.state(name);
            assert!(
                state == "stale" || state == "deleted",
                "{name} is reported, and yet {state}"
            );
        }
        first
    }

    /// Checks that one file is listed, and returns its change.
    pub fn reported_one(&mut self, expected: &str) -> serde_json::Value {
        self.reported(&[expected]).remove(0)
    }

    /// Checks that nothing is listed, neither immediately nor after settling.
    pub fn silent(&mut self) {
        self.reported(&[]);
    }

    /// Checks that the file counts as written by the session: nothing is
    /// listed, and it is `fresh` and editable.
    pub fn own(&mut self, name: &str) {
        self.silent();
        let status = self.agent.status(name);
        assert_eq!(status["state"], "fresh", "{status}");
        assert_eq!(status["mayEdit"], true, "{status}");
    }

    fn check(&mut self, when: &str, changes: &[serde_json::Value], wanted: &[&str]) {
        let found = paths(changes);
        if found == wanted {
            return;
        }
        let mut about = String::new();
        let differing = found
            .iter()
            .map(String::as_str)
            .filter(|path| !wanted.contains(path))
            .chain(
                wanted
                    .iter()
                    .copied()
                    .filter(|path| !found.iter().any(|f| f == path)),
            );
        for path in differing.take(3) {
            let history = self.agent.client.ok("file/history", json!({"path": path}));
            let status = self.agent.call("file/status", json!({"paths": [path]}));
            about.push_str(&format!("\n  {path}: {status:?}\n  history: {history:#}"));
        }
        let few = |list: &[String]| format!("{} {:?}", list.len(), &list[..list.len().min(5)]);
        let wanted: Vec<String> = wanted.iter().map(|path| (*path).to_owned()).collect();
        panic!(
            "{when}: listed {}, should be {}{about}",
            few(&found),
            few(&wanted)
        );
    }
}

/// Collects the failures, with their repetitions.
struct Verdicts {
    wrong: Mutex<Vec<(usize, String)>>,
}

impl Verdicts {
    fn judge(&self, rep: usize, run: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "a panic without words".into());
            self.wrong
                .lock()
                .expect("the verdicts")
                .push((rep, message));
        }
    }

    fn deliver(self, total: usize) {
        let wrong = self.wrong.into_inner().expect("the verdicts");
        report(total, &wrong);
        if let Some((rep, message)) = wrong.first() {
            panic!("{}/{total} wrong; repetition {rep}: {message}", wrong.len());
        }
    }
}

/// Appends the result of a test's repetitions to the file that
/// `TOUCHMARK_SCENARIO_REPORT` names, as one line of JSON: `{"test": "s1_...",
/// "runs": 30, "wrong": 0}`.
fn report(runs: usize, wrong: &[(usize, String)]) {
    let Some(file) = std::env::var_os("TOUCHMARK_SCENARIO_REPORT") else {
        return;
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main");
    // With a single test thread, tests run on the main thread, whose name is
    // not the test's.
    assert_ne!(test, "main", "a report needs more than one test thread");
    // Without the module.
    let test = test.rsplit("::").next().unwrap_or(test);
    let wrong: BTreeSet<usize> = wrong.iter().map(|(rep, _)| *rep).collect();
    append(
        file.as_ref(),
        &json!({"test": test, "runs": runs, "wrong": wrong.len()}).to_string(),
    );
}

/// Runs a scenario in lanes: many repetitions share a daemon, several daemons
/// run in parallel, and the second half runs with every core busy.
pub fn lanes(scenario: impl Fn(&mut Lane) + Sync) {
    lanes_at_once(usize::MAX, scenario);
}

/// Runs a scenario in lanes like [`lanes`], with at most `at_once` repetitions
/// at a time in each world, for heavy scenarios.
pub fn lanes_at_once(at_once: usize, scenario: impl Fn(&mut Lane) + Sync) {
    let total = repetitions();
    let verdicts = Verdicts {
        wrong: Mutex::default(),
    };
    let half = total.div_ceil(2);
    for (loaded, reps) in [(false, 0..half), (true, half..total)] {
        let _load = loaded.then(Load::start);
        let reps: Vec<usize> = reps.collect();
        std::thread::scope(|scope| {
            for number in 0..WORLDS.min(reps.len()) {
                let mine: Vec<usize> = reps.iter().copied().skip(number).step_by(WORLDS).collect();
                let (verdicts, scenario) = (&verdicts, &scenario);
                scope.spawn(move || {
                    verdicts.judge(mine[0], || {
                        let mut world = World::new();
                        let next = AtomicUsize::new(0);
                        std::thread::scope(|scope| {
                            for _ in 0..at_once.min(mine.len()) {
                                scope.spawn(|| {
                                    while let Some(&rep) =
                                        mine.get(next.fetch_add(1, Ordering::Relaxed))
                                    {
                                        verdicts.judge(rep, || {
                                            scenario(&mut Lane::new(&world, rep));
                                        });
                                    }
                                });
                            }
                        });
                        world.healthy();
                    });
                });
            }
        });
    }
    verdicts.deliver(total);
}

/// Runs a scenario with a world for each repetition, four at a time.
pub fn own_worlds(scenario: impl Fn(&mut World, usize) + Sync) {
    let total = repetitions();
    let verdicts = Verdicts {
        wrong: Mutex::default(),
    };
    let half = total.div_ceil(2);
    for (loaded, reps) in [(false, 0..half), (true, half..total)] {
        let _load = loaded.then(Load::start);
        let next = AtomicUsize::new(reps.start);
        std::thread::scope(|scope| {
            for _ in 0..WORLDS {
                scope.spawn(|| {
                    loop {
                        let rep = next.fetch_add(1, Ordering::Relaxed);
                        if rep >= reps.end {
                            break;
                        }
                        verdicts.judge(rep, || {
                            let mut world = World::new();
                            scenario(&mut world, rep);
                            world.healthy();
                        });
                    }
                });
            }
        });
    }
    verdicts.deliver(total);
}
