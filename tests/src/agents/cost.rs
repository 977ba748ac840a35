//! How much of an agent's time touchmark's hooks take.

use std::time::{Duration, Instant};

use super::matrix::fetched;
use super::{Agent, Does, Setting, Stage};
use crate::network;

/// The number of reads, and of edits, that are timed.
const EACH: usize = 10;

/// Returns, for each agent that can be fetched, the median time of a whole tool
/// call with touchmark's hooks and without. It is measured from the model's
/// answer to its next request.
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
