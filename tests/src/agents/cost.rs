//! How much of an agent's time touchmark's hooks take: the same calls without a
//! hook, with a hook that is `true`, and with touchmark's. The three run side
//! by side and take turns call by call, so that a busy moment of the machine
//! hits all of them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::matrix::fetched;
use super::{Agent, By, Does, Run, Setting, Stage};
use crate::network;

/// What each edit puts in the place of the text before it. All are different,
/// and there are few: Gemini CLI takes repeated calls for a loop, and asks its
/// model whether it loops after 30.
const TEXTS: [&str; 15] = [
    "two", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
];

/// What the calls of an agent take. Each is a median over all timed calls,
/// measured from the model's answer to its next request.
pub struct Cost {
    /// The agent.
    pub agent: &'static Agent,
    /// A call without a hook.
    pub bare: Duration,
    /// The time that hooks with the command `true` add to the same call, in
    /// milliseconds; `None` if the agent has a plug-in instead of hooks.
    pub idle_ms: Option<f64>,
    /// The time that touchmark's hooks add to the same call, in milliseconds.
    pub ours_ms: f64,
}

impl Cost {
    /// Returns a line for people.
    pub fn line(&self) -> String {
        let bare = self.bare.as_secs_f64() * 1_000.0;
        let ours = self.ours_ms;
        let title = self.agent.title;
        match self.idle_ms {
            Some(idle) => format!(
                "{title}: a call takes {bare:.1} ms; a hook that is `true` adds {idle:.1} ms, touchmark's {ours:.1} ms, which is {:.1} ms above `true`",
                ours - idle
            ),
            None => {
                format!("{title}: a call takes {bare:.1} ms; touchmark's plug-in adds {ours:.1} ms")
            }
        }
    }
}

/// Measures each agent with hooks that can be fetched.
pub fn of_a_call() -> impl Iterator<Item = Cost> {
    let agents = fetched().into_iter();
    let hooked = agents.filter(|(agent, _)| agent.by == By::Hooks);
    hooked.map(|(agent, packages)| {
        network::loopback_alone("the real agents", || measured(agent, &packages))
    })
}

fn measured(agent: &'static Agent, packages: &Path) -> Cost {
    let bare = Setting {
        bare: true,
        ..Setting::default()
    };
    let stages = [bare, Setting::default(), Setting::default()];
    let stages = stages.map(|setting| Stage::new(agent, packages, setting));
    let [_, _, idle] = &stages;
    let count = if made_idle(idle) { 3 } else { 2 };
    let stages = &stages[..count];
    let mut runs: Vec<Run<'_>> = Vec::new();
    for stage in stages {
        stage.world.file("f.txt", "one\ntwo\nthree\n");
        runs.push(stage.ask("Change f.txt again and again."));
    }
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); count];
    for (step, texts) in TEXTS.windows(2).enumerate() {
        let (old, new) = (texts[0], texts[1]);
        for does in [Does::Read("f.txt"), Does::Edit("f.txt", old, new)] {
            // Another one begins each time.
            for turn in 0..count {
                let which = (step + turn) % count;
                let began = Instant::now();
                runs[which].does(&does);
                times[which].push(began.elapsed());
            }
        }
    }
    runs.into_iter().for_each(Run::ends);
    let added = |which: usize| {
        let pairs = times[which].iter().zip(&times[0]);
        median(
            pairs
                .map(|(with, without)| ms(*with) - ms(*without))
                .collect(),
        )
    };
    let bare = median(times[0].iter().copied().map(ms).collect());
    Cost {
        agent,
        bare: Duration::from_secs_f64(bare / 1_000.0),
        idle_ms: (count == 3).then(|| added(2)),
        ours_ms: added(1),
    }
}

/// Replaces touchmark's hooks in an agent's settings by `true`. Returns whether
/// there are any.
fn made_idle(stage: &Stage) -> bool {
    let shown = stage.told(&["hook", "install", stage.agent.name, "--dry-run"]);
    let file = shown["file"].as_str().expect("a file of settings");
    if file.ends_with(".js") {
        // A plug-in names no hook in settings.
        return false;
    }
    let text = fs::read_to_string(file).expect("settings");
    let end = format!("hook {}\"", stage.agent.name);
    let mut idle = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(&end) {
        let begin = rest[..at].rfind('"').expect("a text begins");
        idle += &rest[..begin];
        idle += "\"true\"";
        rest = &rest[at + end.len()..];
    }
    assert!(!idle.is_empty(), "{file} names no hook");
    idle += rest;
    fs::write(file, idle).expect("settings");
    true
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
