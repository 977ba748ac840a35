//! What touchmark's hooks take of an agent's time.

use std::time::{Duration, Instant};

use super::matrix::fetched;
use super::{Agent, Does, Setting, Stage};
use crate::network;

/// Reads, and as many edits.
const EACH: usize = 10;

/// The median time of a whole tool call, from the model's answer to its next
/// request, with touchmark's hooks and without, for each agent that can be
/// fetched.
pub fn of_a_call() -> Vec<(&'static Agent, Duration, Duration)> {
    let agents = fetched().into_iter();
    let timed = agents.map(|(agent, packages)| {
        let median = |bare| {
            let setting = Setting {
                bare,
                ..Setting::default()
            };
            network::loopback_alone("the real agents", || {
                median(&Stage::new(agent, &packages, setting))
            })
        };
        (agent, median(false), median(true))
    });
    timed.collect()
}

fn median(stage: &Stage) -> Duration {
    stage.world.file("f.txt", "one\ntwo\nthree\n");
    let mut run = stage.ask("Change f.txt, and back.");
    let mut times = Vec::new();
    let (there, back) = (("two", "second"), ("second", "two"));
    for step in 0..EACH {
        let (old, new) = if step % 2 == 0 { there } else { back };
        for does in [Does::Read("f.txt"), Does::Edit("f.txt", old, new)] {
            let began = Instant::now();
            run.does(&does);
            times.push(began.elapsed());
        }
    }
    run.ends();
    times.sort();
    times[times.len() / 2]
}
