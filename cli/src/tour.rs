//! The tour: shows what touchmark is for, with a real daemon in a temporary
//! workspace. Every claim that it prints is checked against the daemon's
//! answer.

mod narrator;
mod story;
mod world;

pub(crate) use narrator::Pace;

use crate::output::Outcome;

/// Runs the tour.
pub(crate) fn run(pace: Pace) -> Outcome {
    let world = world::World::new()?;
    let told = story::tell(&world, &mut narrator::Narrator::new(pace));
    // The daemon is stopped and the directory removed even if the tour failed.
    let ended = world.end();
    told.and(ended)
}
